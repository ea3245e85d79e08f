r"""Passages: no formula is cut, no text is lost, and without formulas they are those of ``pt.text.sliding``."""

import re
from itertools import chain
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyterrier_mathamr as mathamr
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.posts import DocumentError, MathPost, post_from_html, post_from_text

WORDS = st.sampled_from(["let", "we", "get", "\\$5", "(see", "below).", "FORMULA_3", "5 < 7", "\n", "\n\n"])
FORMULAS = st.sampled_from(
    [
        "$x$", "$a + b$,", "($\\frac a b$)", "$\\text{ if $n$ is even }$", "$$ x =\n y $$",
        "\\(p \\to q\\)", "\\[ c < d \\].",
        "\\begin{align} a &= b \\\\ c &= d \\end{align}",
        "\\begin{equation*} x = \\begin{cases} 1 \\\\ 2 \\end{cases} \\end{equation*}",
    ]
)  # fmt: skip
HTML = st.sampled_from(
    [
        '<span class="math-container" id="7">a + b</span>,', '<span class="math-container">$$ x < y $$</span>',
        "<p>", "</p>", "<code>cost $a is here</code>", "<code>a b</code>", "<pre>$ ls\n$ cd</pre>",
        "<!-- $ not this -->",
        '<a title="x y" href="z">a link</a>', "$x + <em>y</em> + z$", "<math><mi>x</mi> <mo>=</mo> <mi>y</mi></math>",
        '<span class="katex"><math alttext="n ! "><mi>n</mi></math><span class="katex-html"> <b>!</b></span></span>',
        '<script type="math/tex">u + v</script>',
    ]
)  # fmt: skip
WINDOWS = st.integers(1, 12).flatmap(lambda length: st.tuples(st.just(length), st.integers(1, length)))


def passages(text: str, length: int, stride: int) -> list[str]:
    passager = mathamr.MathPassager("text", length, stride, prepend_attr=None)
    return passager(pd.DataFrame({"docno": ["d"], "text": [text]}))["text"].tolist()


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def formulas(post: MathPost) -> list[str]:
    return [squeezed(formula.latex) for formula in post.formulas]


def assert_whole(known: list[str], found: list[list[str]]) -> None:
    """The formulas of each passage are consecutive ones of the text, and together they are all."""
    assert set(chain.from_iterable(found)) == set(known)
    for some in found:
        assert any(known[i : i + len(some)] == some for i in range(len(known) + 1))


@settings(max_examples=40)
@given(st.lists(WORDS | FORMULAS, max_size=30), st.lists(WORDS | FORMULAS | HTML, max_size=30), WINDOWS)
def test_a_passage_has_whole_formulas_only_and_neither_they_nor_text_are_lost(
    pieces: list[str], tagged: list[str], window: tuple[int, int]
) -> None:
    for text, read in ((" ".join(pieces), post_from_text), ("<p>" + " ".join(tagged), post_from_html)):
        cut = passages(text, *window)
        assert_whole(formulas(read(text)), [formulas(read(passage)) for passage in cut])
        assert set(" ".join(cut).split()) == set(text.split())
        assert squeezed("".join(passages(text, window[0], window[0]))) == squeezed(text)
        assert read is post_from_html or all(each.replace("\\$", "").count("$") % 2 == 0 for each in cut)


@settings(max_examples=40)
@given(st.text(" \nab.<", max_size=60), WINDOWS)
def test_without_formulas_the_passages_are_pyterriers_and_the_rest_that_it_drops(
    text: str, window: tuple[int, int]
) -> None:
    frame = pd.DataFrame({"docno": ["d"], "text": [text], "n": [1]})
    length, stride = window
    expected = pt.text.sliding("text", length, stride, prepend_attr=None)(frame)
    found = mathamr.MathPassager("text", length, stride, prepend_attr=None)(frame)
    count = len(re.split(r"\s+", text))
    rest = count > length and (count - length) % stride > 0
    pd.testing.assert_frame_equal(found.iloc[: len(found) - rest], expected, check_dtype=False)
    if rest:
        assert found["docno"].iloc[-1] == f"d%p{len(expected)}"


def test_a_cut_in_a_formula_moves_to_its_beginning_and_a_longer_formula_is_a_passage() -> None:
    assert passages("one two $a + b$ three four five", 4, 4) == ["one two", "$a + b$ three", "four five"]
    assert passages("one two $a + b$ three four five", 4, 3) == ["one two", "$a + b$ three", "three four five"]
    assert passages("so \\[ a + b + c + d \\] holds", 3, 2) == ["so", "\\[ a + b + c + d \\]", "holds"]


def test_rankings_keep_their_columns_and_the_title_begins_each_passage() -> None:
    ranking = pd.DataFrame(
        {"qid": ["1", "2"], "query": "q", "docno": ["a", "b"], "score": [2.0, 1.0], "title": ["A $x$", None]}
    ).assign(body=["u v w", None])
    found = mathamr.MathPassager(length=2, stride=2, join="\n")(ranking)
    assert list(found.columns) == ["qid", "query", "docno", "score", "body"]
    assert found["docno"].tolist() == ["a%p0", "a%p1", "b%p0"]
    assert found["body"].tolist() == ["A $x$\nu\nv", "A $x$\nw", ""]
    assert found["score"].tolist() == [2.0, 2.0, 1.0]


def test_the_best_passage_ranks_its_document(tmp_path: Path) -> None:
    filler = " ".join(f"other{i}" for i in range(40))
    documents = pd.DataFrame(
        {"docno": ["long", "short"], "text": [f"{filler} when does $x + y$ converge {filler}", "does it converge?"]}
    )
    cut = mathamr.MathPassager("text", 8, 4, prepend_attr=None)
    index = (cut >> mathamr.BM25Index(tmp_path / "bm25").indexer()).index(documents)
    found = (index.retriever() >> pt.text.max_passage()).search("when does $x + y$ converge")
    assert found.sort_values("rank")["docno"].tolist() == ["long", "short"]
    rerank = pt.Transformer.from_df(documents.assign(qid="1", query="converge", score=0.0, rank=0))
    scored = (rerank >> cut >> index.scorer() >> pt.text.max_passage()).search("converge")
    assert set(scored["docno"]) == {"long", "short"}


@pytest.mark.parametrize("options", [{"length": 0}, {"stride": 0}, {"length": 10, "stride": 11}])
def test_a_window_that_would_leave_text_out_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        mathamr.MathPassager(**options)


def test_a_text_that_is_not_text_is_refused_by_its_document() -> None:
    with pytest.raises(DocumentError) as error:
        mathamr.MathPassager("text", prepend_attr=None)(pd.DataFrame({"docno": ["d7"], "text": [["a"]]}))
    assert error.value.place == "d7"
