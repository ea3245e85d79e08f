import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.posts import post_from_text
from pyterrier_mathamr.sparse import TokenOptions, formula_tokens, word_tokens
from pyterrier_mathamr.sparse.tokens import post_tokens

PAIRS = TokenOptions(stop_words=True, bigrams=True)
PLAIN = TokenOptions(stop_words=False, stem=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (TokenOptions(), ["seri", "converg"]),
        (TokenOptions(stop_words=True), ["seri", "use", "converg"]),  # the short list has function words only
        (PAIRS, ["seri", "use", "converg", "seri_use", "use_converg"]),
        (PLAIN, ["the", "series", "used", "is", "converging"]),
        (TokenOptions(words=False), []),
    ],
)
def test_words_are_lower_cased_and_stemmed_without_stop_words(options: TokenOptions, words: list[str]) -> None:
    assert word_tokens("The Series used is converging", options) == words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("完备性", ["完", "备", "性", "完备", "备性"]),
        ("群", ["群"]),
        ("设Banach是群", ["banach", "设", "是", "群", "是群"]),
        ("カタ・ｶﾞ", ["カ", "タ", "カタ", "ガ"]),  # the last one in half width
        ("연속 함수", ["연", "속", "연속", "함", "수", "함수"]),
        ("ลุ่ม", ["ลุ่", "ม", "ลุ่ม"]),  # marks stay with their letter
        ("𠀀𠀁", ["𠀀", "𠀁", "𠀀𠀁"]),
    ],
)
def test_a_script_without_spaces_is_cut_into_characters_and_pairs(text: str, tokens: list[str]) -> None:
    assert word_tokens(text) == word_tokens(text, PAIRS) == tokens


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी में समूह", ["हिन्दी", "में", "समूह"]),
        ("كِتَاب عن", ["كِتَاب", "عن"]),
        ("שָׁלוֹם", ["שָׁלוֹם"]),
        ("می\u200cروم", ["می\u200cروم"]),
        ("группа и кольцо", ["группа", "и", "кольцо"]),
        ("e\u0301tale x\u0304", ["étale", "x\u0304"]),
    ],
)
def test_a_mark_ends_no_word(text: str, words: list[str]) -> None:
    assert word_tokens(text, PLAIN) == words


@pytest.mark.parametrize(
    ("latex", "names"),
    [
        (r"\frac{X}{2}<\pi", ["mathfrac", "mathcapx", "math2", "mathless", "mathpi"]),
        (r"\gamma\Gamma", ["mathgamma", "mathcapgamma"]),
        ("3.14", ["math3point14"]),
        (r"\left(a\right)", ["mathlparen", "matha", "mathrparen"]),
        (r"\displaystyle\int_0^1 f\,d", ["mathint", "mathsub", "math0", "mathsup", "math1", "mathf", "mathd"]),
        (r"\begin{array}{lcr}a&b\\c\end{array}", ["matha", "mathb", "mathc"]),
        (r"\operatorname{Hom}(A)", ["mathcaphom", "mathlparen", "mathcapa", "mathrparen"]),
        (r"\{x\}", ["mathlbrace", "mathx", "mathrbrace"]),
        ("≤", ["mathleq"]),
        ("⊕", ["mathu2295"]),
        ("", []),
        (r"\frac{", ["mathfrac"]),
        ("\\", []),
    ],
)
def test_each_symbol_has_a_name_of_letters_and_digits(latex: str, names: list[str]) -> None:
    assert formula_tokens(latex) == names
    assert all(name.isalnum() and name.islower() for name in names)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x^2", "x^{2}"),
        ("f'", r"f^{\prime}"),
        ("f''", r"f^{\prime\prime}"),
        (r"\dfrac{1}{2}", r"\frac 1 2"),
        (r"a\le b", r"a \leq b"),
        (r"\operatorname{sin} x", r"\sin x"),
        (r"\lim\limits_{n\to\infty}", r"\lim_{n \rightarrow \infty}"),
        ("√2 + x² ≤ ½", r"\sqrt{2} + x^{2} \le \frac{1}{2}"),
    ],
)
def test_spellings_of_one_formula_have_the_same_tokens(one: str, other: str) -> None:
    assert formula_tokens(one) == formula_tokens(other)


def test_different_symbols_have_different_tokens_and_brackets_count_in_pairs_only() -> None:
    for one, other in (("x", "X"), (r"\gamma", r"\Gamma"), ("x^2", "x_2"), ("<", ">")):
        assert formula_tokens(one) != formula_tokens(other)
    assert formula_tokens("x^2", PAIRS) == ["mathx", "math2", "mathx_mathsup", "mathsup_math2"]
    assert formula_tokens(r"n \text{ is even}", PAIRS) == ["mathn", "even"]  # words inside a formula are words
    assert formula_tokens("n's") == ["mathn", "mathsup", "mathprimes"]  # as in indexes that exist


def test_a_post_gives_words_and_formulas_in_order_and_pairs_do_not_cross_between_them() -> None:
    post = post_from_text("Bounded sequence $a_n$ converges")
    assert post_tokens(post, PAIRS) == [
        *("bound", "sequenc", "bound_sequenc"),
        *("matha", "mathn", "matha_mathsub", "mathsub_mathn"),
        "converg",
    ]


def test_only_words_and_the_first_stemmer_of_porter() -> None:
    post = post_from_text(r"Generously sums $x^2$")
    assert post_tokens(post, TokenOptions(formulas=False)) == ["generous", "sum"]
    assert post_tokens(post, TokenOptions(stem="porter", formulas=False)) == ["gener", "sum"]
    words = TokenOptions(stem="porter", formulas=False)
    assert TokenOptions.from_dict(words.to_dict()) == words
    with pytest.raises(ConfigError, match="trigrams"):
        TokenOptions.from_dict({"trigrams": True})
    with pytest.raises(ConfigError, match="or 'porter'"):
        TokenOptions(stem="lancaster")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="or 'terrier'"):
        TokenOptions(stop_words="smart")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="bigrams"):
        TokenOptions(bigrams="terrier")  # type: ignore[arg-type]


STRUCTURES = TokenOptions(structures=True)


def structures_of(latex: str) -> set[str]:
    return {token for token in post_tokens(post_from_text(f"${latex}$"), STRUCTURES) if token.startswith("#")}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x^2+x", "t^2+t"),
        (r"\sum_{i=1}^n a_i", r"\sum_{k=1}^m b_k"),
        ("a+b=c", "y+x=z"),  # operands of a sum have no order
        (r"f(\alpha)<1", r"g(\beta)<1"),
    ],
)
def test_formulas_that_are_equal_up_to_renaming_have_the_same_structures(one: str, other: str) -> None:
    assert structures_of(one) == structures_of(other) != set()


def test_other_operators_and_other_repetitions_of_a_letter_are_another_structure() -> None:
    others = [("x^2+x", "x^2+y"), ("x^2+x", "x^2-x"), ("x^2", "x_2"), (r"\pi r^2", "p r^2"), ("a-b", "b-a+c")]
    for one, other in others:
        assert structures_of(one) != structures_of(other)
    assert structures_of("x^2+1") & structures_of("(t^2+1)^3") >= structures_of("x^2+1")  # a part is shared
    assert structures_of("x") == structures_of("17") == set()


def test_structures_use_commands_of_other_formulas_and_may_be_all_tokens() -> None:
    own = post_tokens(post_from_text(r"$\newcommand{\sq}[1]{#1^2}$ and $\sq{x}+1$"), STRUCTURES)
    assert structures_of("y^2+1") <= set(own)
    only = TokenOptions(words=False, formulas=False, structures=True)
    assert set(post_tokens(post_from_text("A square $x^2$ and more"), only)) == structures_of("t^2")
