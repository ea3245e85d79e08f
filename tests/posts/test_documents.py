"""Posts in whatever form they are, as records with formulas that have ids."""

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest
from post_helpers import posts_of, write

from pyterrier_mathamr._common.running.worker import OverLimitError
from pyterrier_mathamr.posts import BeirFolder, Document, DocumentError, Origin, own_posts, post_from_html, read_posts


def formulas_of(document) -> list[tuple[str, str]]:
    post = post_from_html(document.html, document.title)
    return [(formula.id, formula.latex) for formula in post.formulas]


def test_ids_and_texts_go_by_several_names_and_formulas_get_ids() -> None:
    source = [
        {"id": 1, "text": "so x²=1 and $a<b$", "title": "On $t$"},
        {"docno": "b", "html": '<p><span class="math-container" id="77">y</span> costs \\$5</p>', "title": None},
        {"_id": "c", "latex": r"\title{T $u$} \emph{Let} $\R$ \newcommand{\R}{\mathbb{R}}"},
    ]
    first, second, third = posts_of(source)
    assert (first.docno, formulas_of(first)) == ("1", [("1#0", "t"), ("1#1", "x^{2}=1"), ("1#2", "a<b")])
    assert formulas_of(second) == [("77", "y")]
    assert post_from_html(second.html).text == "FORMULA_0 costs $5"
    assert formulas_of(third) == [("c#0", "u"), ("c#1", r"\mathbb{R}")]
    assert formulas_of(posts_of(source, bare_formulas=False)[0]) == [("1#0", "t"), ("1#1", "a<b")]


def test_a_post_names_the_post_that_it_answers_or_its_title() -> None:
    texts = {"docno": ["1", "2", "3"], "text": ["a", "b", "c"]}
    parents = {"parent": [None, 1, 3], "parent_title": ["so x²=1", None, ""]}
    titled, answer, own = posts_of(pd.DataFrame({**texts, **parents}))
    assert (titled.parent, post_from_html(titled.parent_title).formulas[0].latex) == ("", "x^{2}=1")
    assert (answer.parent, answer.parent_title) == ("1", "")
    assert own.record() == {"docno": "3", "title": "", "html": "<p>c</p>"}  # it is not an answer to itself
    assert answer.record() == {"docno": "2", "title": "", "html": "<p>b</p>", "parent": "1"}


@pytest.mark.parametrize("docno", ["a file", "it's", 'so "called"', "x > y", "1 & 2", "данные и сети"])
def test_formulas_have_the_whole_id_of_their_post_whatever_is_in_it(docno) -> None:
    (document,) = posts_of([{"docno": docno, "text": "$x$ or $y$"}])
    assert formulas_of(document) == [(f"{docno}#0", "x"), (f"{docno}#1", "y")]


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Roots &amp; $x^2$</title><link rel="stylesheet" href="a.css">
<style>p { color: red }</style></head><body><header><nav><a href="/">Home</a></nav></header><main>
<figure><svg viewBox="0 0 1 1"><path d="M0"/><text>drawn</text></svg><figcaption>A root</figcaption></figure>
<p>For <math><semantics><mrow><mi>x</mi><mo>&lt;</mo><mn>1</mn></mrow>
<annotation encoding="application/x-tex">x&lt;1</annotation>
</semantics></math> we have a<b and 2 <button>Vote</button></p></main><footer>End</footer></body></html>"""


@pytest.mark.parametrize("title", ["Roots &amp; $x^2$", "<i>Roots</i> &amp; $x^2$"])
def test_a_whole_page_is_read_without_its_tags_and_with_its_title(tmp_path, title) -> None:
    (tmp_path / "page.html").write_text(PAGE.replace("Roots &amp; $x^2$", title))
    (document,) = posts_of(tmp_path, bare_formulas=False)
    assert post_from_html(document.title).text == "Roots & FORMULA_0"
    words = post_from_html(document.html).text.split()
    assert " ".join(words) == "Home A root For FORMULA_0 we have a<b and 2 Vote End"


def test_a_record_that_is_not_a_dictionary_is_an_error_with_its_place() -> None:
    error, post = posts_of(["text", {"id": 1, "text": "x"}])
    assert str(error) == "post 1: no dictionary with an id and a text, but 'text'."
    assert post.docno == "1"
    with pytest.raises(DocumentError, match="no dictionaries, frame or path, but NoneType"):
        posts_of(None)


def test_money_and_code_do_not_become_formulas_when_records_are_read_again() -> None:
    document = posts_of([{"id": 1, "markdown": "pay $5 or `$x$` or $6; `y_1`"}])[0]
    post = post_from_html(document.html)
    assert post.formulas == ()
    assert post.text == "pay $5 or $x$ or $6; y_1"


def test_frames_files_and_folders_are_read(tmp_path) -> None:
    frame = pd.DataFrame({"docno": ["a", "b"], "text": ["$x$", "y"]})
    records = frame.to_dict("records")
    (tmp_path / "posts.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n\n")
    with gzip.open(tmp_path / "posts.jsonl.gz", "wt") as file:
        file.write("\n".join(map(json.dumps, records)))
    read = {str(source): posts_of(source) for source in (tmp_path / "posts.jsonl", str(tmp_path / "posts.jsonl.gz"))}
    expected = [post.record() for post in posts_of(records)]
    for root, found in [("", posts_of(frame)), *read.items()]:
        assert [post.record() for post in found] == expected
        assert [post.origin for post in found] == [Origin(root, "a"), Origin(root, "b")]
    files = {"a.md": "# Title $x$\n\ntext", "deep/b.tex": r"\title{B} Let $y$.", "c.txt": "only words"}
    notes = write(tmp_path / "notes", {**files, ".git/d.md": "hidden"})
    found = {document.docno: document for document in posts_of(notes)}
    assert list(found) == ["a.md", "c.txt", "deep/b.tex"]
    assert formulas_of(found["a.md"]) == [("a.md#0", "x")]
    assert post_from_html(found["c.txt"].title).text == "c"
    assert found["deep/b.tex"].origin[:4] == (str(notes), "deep/b.tex", 0, "")
    assert [post.record() for post in posts_of(notes / "a.md")] == [found["a.md"].record()]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"text": "x"}, "no id"),
        ({"docno": " ", "text": "x"}, "no id"),
        ({"docno": "a"}, "no text; give one of html, body"),
        ({"docno": "a", "text": 3}, "not int"),
        ({"docno": "a", "text": ""}, "the post is empty"),
        ({"docno": "a", "text": "  \n--- …"}, "the post is empty"),
        ({"docno": "a", "text": float("nan")}, "no text"),
        ({"docno": "a", "text": "x", "parent": ["b"]}, "its parent is ['b'], neither a text nor a number"),
        ({"docno": "a", "text": "x", "parent_title": 3}, "not int"),
    ],
)
def test_a_post_that_cannot_be_read_is_an_error_with_its_place(record, reason) -> None:
    error = posts_of([{"docno": "ok", "text": "x"}, record])[1]
    assert isinstance(error, DocumentError)
    assert str(error).startswith("post 2: ")
    assert reason in str(error)


def test_a_bad_line_names_its_number_and_a_wrong_path_lists_the_readable_forms(tmp_path) -> None:
    file = tmp_path / "posts.jsonl"
    file.write_text('{"id": "a", "text": "x"}\n{"id"\n[1]\n')
    _, second, third = posts_of(file)
    assert "posts.jsonl, line 2: this is not JSON" in str(second)
    assert "line 3: this is not a JSON object" in str(third)
    with pytest.raises(DocumentError, match=r"\.jsonl"):
        posts_of(tmp_path / "nothing.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DocumentError, match=r"files of \.md"):
        posts_of(tmp_path / "empty")


def test_a_blank_file_is_left_out_and_one_word_or_formula_is_a_post(tmp_path) -> None:
    texts = {"blank.md": "", "rule.md": "\n---\n", "space.txt": " \n\t", "page.html": "<p>&nbsp;</p>"}
    kept = {"word.md": "one", "formula.txt": r"$\to$", "title.tex": r"\title{Groups}"}
    read = dict(read_posts(write(tmp_path, {**texts, **kept})))
    left_out = {Path(place).name: post.reason for place, post in read.items() if isinstance(post, DocumentError)}
    empty, without = "the file is empty", "the file has neither a word nor a formula"
    assert left_out == {"blank.md": empty, "rule.md": without, "space.txt": empty, "page.html": without}
    docnos = sorted(post.docno for post in read.values() if isinstance(post, Document))
    assert docnos == ["formula.txt", "title.tex", "word.md"]


def test_two_files_of_one_name_and_an_id_that_comes_twice(tmp_path) -> None:
    files = {"a.md": "# A", "a.tex": r"\title{A}", "b.md": "# B", "sub/a.md": "# C"}
    assert [post.docno for post in posts_of(write(tmp_path, files))] == list(files)
    again = [{"id": "x", "text": "one"}, {"id": "x", "text": "two"}, {"id": "y", "text": "three"}]
    first, second, third = posts_of(again)
    assert (first.docno, third.docno) == ("x", "y")
    assert str(second) == "post 2: the id 'x' came before."


@pytest.mark.parametrize("form", ["html", "text", "markdown", "latex"])
def test_a_post_of_more_than_a_stated_length_is_refused_by_name(form, monkeypatch) -> None:
    monkeypatch.setattr(own_posts, "LONGEST_POST", 100)
    long, short = posts_of([{"id": 1, form: "a " * 60}, {"id": 2, form: "a " * 40}])
    assert str(long) == "post 1: its 120 characters are more than 100; split it."
    assert short.docno == "2"


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError(), KeyError("x"), OverLimitError("too long")])
def test_whatever_a_reader_raises_is_the_error_of_one_post(error, monkeypatch) -> None:
    real = own_posts.post_from_any

    def read(text, **options):
        if text == "bad":
            raise error
        return real(text, **options)

    monkeypatch.setattr(own_posts, "post_from_any", read)
    good, bad, other = posts_of([{"id": 1, "text": "x"}, {"id": 2, "text": "bad"}, {"id": 3, "text": "z"}])
    assert isinstance(bad, DocumentError)
    assert str(bad).startswith("post 2: ")
    assert (good.docno, other.docno) == ("1", "3")


def test_a_placeholder_that_tags_divide_or_a_file_is_named_after_is_text(tmp_path) -> None:
    (post,) = posts_of([{"id": 1, "html": "FORM<code>ULA_3</code> FORMULA_<code>0</code> $x$"}])
    assert post_from_html(post.html).text == "FORMULA-3 FORMULA-0 FORMULA_0"
    (tmp_path / "FORMULA_3.txt").write_text("no title")
    (post,) = posts_of(tmp_path)
    assert (post.docno, post.title) == ("FORMULA_3.txt", "<p>FORMULA-3</p>")


def test_a_judgment_whose_grade_is_not_a_number_is_named(tmp_path) -> None:
    line = '{"_id": "a", "text": "x"}\n'
    write(tmp_path, {"corpus.jsonl": line, "queries.jsonl": line, "qrels/test.tsv": ""})
    for grade in ("nan", "inf", "1e999", "x"):
        (tmp_path / "qrels" / "test.tsv").write_bytes(f"q\td\tscore\nq\td\xff\t{grade}\n".encode("latin-1"))
        with pytest.raises(DocumentError, match=r"test\.tsv, line 2: it is not query-id"):
            list(BeirFolder(tmp_path).judgments())
    (tmp_path / "qrels" / "test.tsv").write_text("q\td\t2\n")
    assert [judgment.relevance for judgment in BeirFolder(tmp_path).judgments()] == [2]
