from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import bert_tokenizer, tiny_bert
from transformers import AutoTokenizer, BertModel

from mathamr_systems import MathVocabulary, math_tokens
from mathamr_systems.math_tokens import post_text
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.posts import post_from_text

BRACED = partial(math_tokens, braces=True)


@pytest.mark.parametrize(
    ("latex", "options", "tokens"),
    [
        (r"\frac{X}{2}<\pi", {}, "frac X 2 less pi"),
        *((latex, {}, tokens) for latex, tokens in (("10", "1 0"), ("3.14", "3 point 1 4"), ("x_{12}", "x sub 1 2"))),
        *((zero, {"numbers": numbers}, "0") for zero, numbers in (("0", "characters"), ("0", "10e"), ("0.00", "10e"))),
        ("30", {"numbers": "10e"}, "3 10e1"),
        ("305", {"numbers": "10e"}, "3 10e2 5 10e0"),
        ("4.07", {"numbers": "10e"}, "4 10e0 7 10e-2"),
        ("007", {"numbers": "10e"}, "7 10e0"),
        (r"\frac12", {"braces": True}, "frac bgroup 1 egroup bgroup 2 egroup"),
        (r"\sqrt[3]{x+1}", {"braces": True}, "sqrt lbracket 3 rbracket bgroup x plus 1 egroup"),
        (r"X\Gamma", {}, "X Gamma"),
        (r"X\Gamma", {"case": False}, "x gamma"),
        (r"a<\frac12", {"names": {"<": "lt", "\\frac": "over"}}, "a lt over 1 2"),  # as a checkpoint has them
    ],
)
def test_each_symbol_is_a_token_between_dollars(latex: str, options: dict[str, Any], tokens: str) -> None:
    assert math_tokens(latex, **options) == [f"${token}$" for token in tokens.split()]


@pytest.mark.parametrize(
    ("latex", "same"),
    [
        (r"\frac12", r"\frac{1}{2}"),
        (r"\dfrac123", r"\frac{1}{2}3"),
        (r"x^2", "x^{2}"),
        ("x^10", "x^{1}0"),
        (r"x^\frac12", r"x^{\frac{1}{2}}"),
        (r"\sqrt[3]xy", r"\sqrt[3]{x}y"),
        (r"\mathbb R", r"\mathbb{R}"),
        ("x'^2", r"x^{\prime}^{2}"),
        ("f''", r"f^{\prime\prime}"),
        (r"{\rm d}x", "d x"),
        ("x_{n", "x_{n}"),
        ("a}b", "ab"),
        (r"\left(a", r"\left(a\right."),
        ("x^", "x"),
    ],
)
def test_only_arguments_get_braces(latex: str, same: str) -> None:
    assert BRACED(latex) == BRACED(same)


@given(st.text(alphabet="{}[]^_\\frac12qtx&$ \ue010'", max_size=30))
def test_any_text_gives_paired_braces_and_tokens_without_white_space(latex: str) -> None:
    tokens = math_tokens(latex, braces=True, numbers="10e")
    depths = [0]
    for token in tokens:
        depths.append(depths[-1] + (token == "$bgroup$") - (token == "$egroup$"))
    assert min(depths) == 0 == depths[-1]
    assert not any(character.isspace() for token in tokens for character in token)


def test_layout_and_spelling_change_nothing() -> None:
    assert math_tokens(r"\left(\displaystyle a\le b\right)") == math_tokens(r"(a \leqslant b)")


def test_a_post_keeps_its_text_and_has_tokens_for_formulas() -> None:
    post = post_from_text(r"Is $x<2$ or $y \text{ even}$? 10")
    assert post_text(post) == "Is $x$ $less$ $2$ or $y$ even? 10"
    assert post_text(post, partial(math_tokens, numbers="10e")) == "Is $x$ $less$ $2$ $10e0$ or $y$ even? 10"


def test_the_vocabulary_has_frequent_tokens_first() -> None:
    posts = [post_from_text(r"$x+x<\text{is}$ and $x$"), post_from_text("$y+2$")]
    assert MathVocabulary.learn(iter(posts), min_count=2).tokens == ("$x$", "$plus$")
    assert MathVocabulary.learn(posts, min_count=1).tokens == ("$x$", "$plus$", "$2$", "$less$", "$y$")


def test_new_rows_are_means_of_the_pieces_of_names_or_as_resizing_leaves_them(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder)
    old = model.get_input_embeddings().weight.detach().clone()
    added = MathVocabulary(("$leq$", "$X$", "$sum$", "$x$")).add_to(tokenizer, model)
    rows = model.get_input_embeddings().weight
    assert added == 3  # it had $x$
    assert tokenizer.tokenize("the $X$ $x$,$leq$") == ["the", "$X$", "$x$", ",", "$leq$"]
    assert torch.equal(rows[: len(old)], old)
    sum_of, new = tokenizer.convert_tokens_to_ids(["sum", "$sum$"])
    assert torch.equal(rows[new], rows[sum_of])
    pieces = tokenizer("less or equal", add_special_tokens=False)["input_ids"]
    assert torch.allclose(rows[tokenizer.convert_tokens_to_ids("$leq$")], old[pieces].mean(dim=0))

    folder = tiny_bert(tmp_path)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder)
    assert MathVocabulary(("$sum$",)).add_to(tokenizer, model, init="random") == 1
    rows = model.get_input_embeddings().weight
    assert rows.shape[0] == len(tokenizer) == 26
    assert not torch.equal(rows[25], rows[tokenizer.convert_tokens_to_ids("sum")])


def test_tokens_that_a_vocabulary_lacks_are_counted_in_a_warning(tmp_path: Path) -> None:
    vocabulary = MathVocabulary.of(bert_tokenizer(tmp_path))
    assert vocabulary.tokens == ("$frac$", "$x$", "$sup$", "$1$", "$2$")
    vocabulary.warn_lacking([r"\frac{x}{2}"])
    with pytest.warns(MathAMRWarning, match=r"3 of 5 formula tokens .* \(2 distinct, most often \$y\$, \$less\$\)"):
        vocabulary.warn_lacking(["y<y", "x2"])
