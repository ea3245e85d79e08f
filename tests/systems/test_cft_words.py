"""Formulas as sentences: the worked example of the specification, and what labels become."""

import pytest

from mathamr_systems.tangent_cft.word_vectors import EDGE, UNKNOWN, Characters, Word, sentences
from pyterrier_mathamr.formula import FormulaPair, FormulaTree, trees_from_latex


def words(text: str) -> list[Word]:
    """Tokens by spaces, words by bars; ``-a`` is the edge a, ``_`` the empty token."""
    spelled = (
        (EDGE + token[1:] if token[0] == "-" else token.strip("_") for token in word.split())
        for word in text.split("|")
    )
    return [tuple(word) for word in spelled]


def test_x_squared_plus_1_in_four_representations() -> None:
    written = sentences(trees_from_latex("x^2+1"))
    assert written == {
        "slt": words("V! x N! 2 -a | N! 2 0! _ -n | V! x + -n | V! x N! 1 -n -n | + N! 1 -n | N! 1 0! _ -n"),
        "slt_type": words("V! N! -a | N! 0! -n | V! + -n | V! N! -n -n | + N! -n | N! 0! -n"),
        "opt": words(
            "U! plus O! SUP -0 | U! plus N! 2 -0 -1 | U! plus V! 𝑥 -0 -0 | O! SUP V! 𝑥 -0 | V! 𝑥 0! _ -0"
            " | O! SUP N! 2 -1 | N! 2 0! _ -0 | U! plus N! 1 -0 | N! 1 0! _ -0"
        ),
        "opt_type": words(
            "U! O! -0 | U! N! -0 -1 | U! V! -0 -0 | O! V! -0 | V! 0! -0 | O! N! -1 | N! 0! -0 | U! N! -0 | N! 0! -0"
        ),
    }


@pytest.mark.parametrize(
    ("label", "slt", "opt", "of_type"),
    [
        ("N!3.14", "N! 3 . 1 4", "N! 3.14", "N!"),
        ("M!()1x3", "M! ()1x3", "M! ()1x3", "M!"),
        ("M!R!", "M! R", "M! R", "M!"),
        ("O!", "O!", "O!", "O!"),
        ("V!a!b", "V! a", "V! a", "V!"),
        ("=", "=", "=", "="),
        ("!", "!", "!", "!"),
    ],
)
def test_labels_become_words(label: str, slt: str, opt: str, of_type: str) -> None:
    pair = FormulaPair(FormulaTree((label,), (), kind="slt"), FormulaTree((label,), (), kind="opt"))
    assert sentences(pair) == {
        "slt": words(f"{slt} 0! _ -n"),
        "slt_type": words(f"{of_type} 0! -n"),
        "opt": words(f"{opt} 0! _ -0"),
        "opt_type": words(f"{of_type} 0! -0"),
    }


def test_a_missing_tree_has_no_sentence_and_renaming_keeps_the_sentences_of_types() -> None:
    x, y = (trees_from_latex(latex) for latex in ("x^2+1", "y^2+1"))
    assert list(sentences(FormulaPair(x.slt, None))) == ["slt", "slt_type"]
    assert sentences(FormulaPair(None, None)) == {}
    one, other = sentences(x), sentences(y)
    assert [name for name in one if one[name] == other[name]] == ["slt_type", "opt_type"]


def test_a_chain_of_600_symbols_is_written() -> None:
    pair = trees_from_latex("+".join("x" * 300))
    assert len(sentences(pair)["slt"]) == 598 + 597 + 1  # neighbors, the next but one, the end


def test_each_token_is_one_character_and_an_unknown_one_is_reported() -> None:
    characters = Characters.of_words({("V!", "x"): 2, ("V!", "x", EDGE + "n"): 1})
    assert characters.tokens == [EDGE + "n", "V!", "x"]
    spelled = characters.spell(("V!", "x", EDGE + "n"))
    assert len(set(spelled)) == 3
    assert not set(spelled) & set("<>")
    assert characters.spell(("V!", "y", "n")) == spelled[0] + UNKNOWN + UNKNOWN
