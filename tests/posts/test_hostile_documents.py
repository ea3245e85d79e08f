r"""Whatever a document contains, it is read or refused by name, and the documents beside it are read."""

import pytest

from pyterrier_mathamr._common.feedback import gathered
from pyterrier_mathamr._common.running.worker import OverLimitError, Worker
from pyterrier_mathamr.posts import (
    BeirFolder,
    DocumentError,
    document_post,
    html_from_markdown,
    markdown,
    post_from_any,
    post_from_html,
    read_posts,
)
from pyterrier_mathamr.posts import own_posts as document
from pyterrier_mathamr.posts.latex_document import text_from_latex
from pyterrier_mathamr.posts.markdown import title_of_markdown
from pyterrier_mathamr.posts.reading import post_from_markdown

BOMB = "".join(rf"\def\{chr(97 + i)}{{\{chr(98 + i)}\{chr(98 + i)}}}" for i in range(24)) + r"\def\y{yy} $\a$"


def posts_of(source):
    return [post for _, post in read_posts(source)]


def problems_of(source):
    with gathered() as found:
        posts_of(source)
    return [(post, what) for post, what, _ in found]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"\href{x}_{", "_"),
        (r"a \sqrt[b", "a [b"),
        (r"a \begin{array}[]{rcl}\end{array}", "a"),
        (r"} { a } \begin \end{ \" \c", 'a "'),
        (r"\section{ never closed", "never closed"),
        ("\\", "\\"),
        (r"\emph{a} \foo{b} {\bf c}", "a b c"),
    ],
)
def test_latex_without_balance_is_read_with_its_words(source, text) -> None:
    assert " ".join(text_from_latex(source)[1].split()) == text


@pytest.mark.parametrize("form", ["latex", "markdown"])
def test_macros_that_write_too_much_are_refused_by_name_and_other_posts_are_read(form) -> None:
    first, bomb, last = read_posts([{"id": 1, "text": "x"}, {"id": 2, form: BOMB}, {"id": 3, form: "y"}])
    assert str(bomb[1]).startswith("post 2: its macros write more than 1,00")
    assert (first[1].docno, last[1].docno) == ("1", "3")
    assert posts_of([{"id": 1, form: r"\def\a{\b\b}\def\b{yy} $\a$"}])[0].html.count("y") == 4
    with pytest.raises(OverLimitError, match="macros"):
        (text_from_latex if form == "latex" else html_from_markdown)(BOMB)


def test_a_row_whose_macros_write_too_much_is_named() -> None:
    with pytest.raises(OverLimitError, match="document 'd7': its macros write more than"):
        document_post({"docno": "d7", "markdown": BOMB})
    assert document_post({"docno": "d7", "markdown": r"\def\a{b} $\a$"}).formulas[0].latex == "{b}"


def test_markdown_that_takes_too_long_is_the_error_of_its_post(monkeypatch) -> None:
    monkeypatch.setattr(markdown, "_guarded", Worker(markdown.rendered, seconds=0.2))
    good, slow, other = posts_of([{"id": i, "markdown": text} for i, text in enumerate(("a", "![" * 60_000, "b"))])
    assert str(slow) == "post 2: it takes more than 0.2 s."
    assert (good.docno, other.docno) == ("0", "2")


def test_a_judgment_whose_grade_is_no_number_is_named(tmp_path) -> None:
    for name in ("corpus", "queries"):
        (tmp_path / f"{name}.jsonl").write_text('{"_id": "a", "text": "x"}\n')
    (tmp_path / "qrels").mkdir()
    for grade in ("nan", "inf", "1e999", "x"):
        (tmp_path / "qrels" / "test.tsv").write_bytes(f"q\td\tscore\nq\td\xff\t{grade}\n".encode("latin-1"))
        with pytest.raises(DocumentError, match=r"test\.tsv, line 2: it is no query-id"):
            list(BeirFolder(tmp_path).judgments())
    (tmp_path / "qrels" / "test.tsv").write_text("q\td\t2\n")
    assert [judgment.relevance for judgment in BeirFolder(tmp_path).judgments()] == [2]


@pytest.mark.parametrize("form", ["html", "text", "markdown", "latex"])
def test_a_post_of_more_than_a_stated_length_is_refused_by_name(form, monkeypatch) -> None:
    monkeypatch.setattr(document, "LONGEST_POST", 100)
    long, short = posts_of([{"id": 1, form: "a " * 60}, {"id": 2, form: "a " * 40}])
    assert str(long) == "post 1: its 120 characters are more than 100; split it."
    assert short.docno == "2"


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError(), KeyError("x"), OverLimitError("too long")])
def test_whatever_a_reader_raises_is_the_error_of_one_post(error, monkeypatch) -> None:
    real = document.post_from_any

    def read(text, **options):
        if text == "bad":
            raise error
        return real(text, **options)

    monkeypatch.setattr(document, "post_from_any", read)
    good, bad, other = posts_of([{"id": 1, "text": "x"}, {"id": 2, "text": "bad"}, {"id": 3, "text": "z"}])
    assert isinstance(bad, DocumentError)
    assert str(bad).startswith("post 2: ")
    assert (good.docno, other.docno) == ("1", "3")


def test_queries_are_read_without_markdown_and_latex(monkeypatch) -> None:
    monkeypatch.setattr("pyterrier_mathamr.posts.markdown._guarded", None)
    assert post_from_any(r"# a $x$ \begin{itemize} \foo").text.startswith("# a FORMULA_0")
    with pytest.raises(TypeError):
        post_from_markdown("a")


def test_marks_that_a_text_writes_as_entities_are_no_formulas() -> None:
    post = post_from_markdown("$x$ &#xe005;0&#xe005; &#xe005;99&#xe005; &#xe007;0&#xe007; y")
    assert [formula.latex for formula in post.formulas] == ["x"]
    assert post.text == "FORMULA_0 y"


def test_an_address_that_many_links_refer_to_is_not_written_for_each() -> None:
    html = html_from_markdown("[a]: http://" + "x" * 1000 + " 't'\n\n" + "[a] " * 100)
    assert html.count("<a>a</a>") == 100
    assert "xxx" not in html


def test_a_placeholder_that_tags_divide_is_text() -> None:
    (post,) = posts_of([{"id": 1, "html": "FORM<code>ULA_3</code> FORMULA_<code>0</code> $x$"}])
    assert post_from_html(post.html).text == "FORMULA-3 FORMULA-0 FORMULA_0"


def test_a_file_that_is_named_like_a_placeholder_is_read(tmp_path) -> None:
    (tmp_path / "FORMULA_3.txt").write_text("no title")
    (post,) = posts_of(tmp_path)
    assert (post.docno, post.title) == ("FORMULA_3", "<p>FORMULA-3</p>")


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_definitions_are_no_prose_and_their_macros_are_written_out(form) -> None:
    source = r"""\usepackage{amsmath} \newtheorem{thm}{Theorem}[section] \newtheorem*{rem}{Remark}
\newcommand{\R}{\mathbb{R}} \DeclareMathOperator*{\argmax}{arg\,max} \def\N#1{N_{#1}} \let\phi\varphi
\NewDocumentCommand{\half}{m m}{\frac{#1}{#2}} \newenvironment{ex}{begin}{end}

$\newcommand{\Q}{\mathbb{Q}}$ Let $\R \argmax \N2 \half34 \phi \Q$ be."""
    post = post_from_html(posts_of([{"id": 1, form: source}])[0].html)
    assert post.text == "Let FORMULA_0 be."
    assert [formula.latex for formula in post.formulas] == [
        r"{\mathbb{R}} {\operatorname{arg\,max}} {N_{2}} {\frac{3}{4}} \varphi {\mathbb{Q}}"
    ]


def test_code_in_markdown_keeps_its_definitions() -> None:
    post = post_from_markdown("`\\newcommand{\\a}{b}` $\\a$\n\n    \\def\\c{d}\n\n```\n\\let\\e\\f\n```")
    assert post.text.split("\n") == [r"\newcommand{\a}{b} FORMULA_0", r"\def\c{d}", r"\let\e\f"]
    assert post.formulas[0].latex == r"\a"


def test_a_macro_of_the_text_is_written_out_in_the_title() -> None:
    for form, source in (
        ("markdown", "# On $\\R$\n\n\\def\\R{\\mathbb R}"),
        ("latex", r"\def\R{\mathbb R}\section{On $\R$} x"),
    ):
        assert r">{\mathbb R}<" in posts_of([{"id": 1, form: source}])[0].title


def test_a_macro_of_its_own_old_meaning_is_written_out_once() -> None:
    source = r"\let\old\vec \renewcommand{\vec}[1]{\mathbf{\old{#1}}} $\vec{a} + \vec{\vec{b}}$"
    assert text_from_latex(source)[1] == r"${\mathbf{\vec{a}}} + {\mathbf{\vec{{\mathbf{\vec{b}}}}}}$"
    assert text_from_latex(r"\def\a{\b} \def\b{\a x} $\a$")[1] == r"${\b}$"


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_unknown_commands_of_a_text_and_files_that_it_includes_are_told(form) -> None:
    source = r"""a \frobnicate{b} and \input{chapter} $x$ \emph{c} \alpha {"""
    expected = [("p", r"the command \frobnicate is unknown"), ("p", r"\input is not followed, index that file too")]
    assert problems_of([{"id": "p", form: source}])[:2] == expected
    assert (
        problems_of(
            [
                {
                    "id": "p",
                    form: r"a \emph{b} $x$ \textbf{c} C:\Users\me \verb|\x| `\y`"[: 20 if form == "latex" else None],
                }
            ]
        )
        == []
    )


def test_a_brace_that_is_never_closed_is_told() -> None:
    assert problems_of([{"id": "p", "latex": r"a {\bf b"}]) == [("p", "{ is never closed")]
    assert problems_of([{"id": "p", "latex": r"a {\bf b}"}]) == []


def test_blocks_that_are_too_deep_are_told_and_others_are_read() -> None:
    source = ">" * 60 + " deep\n\nnext"
    assert problems_of([{"id": "p", "markdown": source}]) == [("p", "blocks more than 40 deep are left out")]
    assert post_from_markdown(source).text == "next"
    assert post_from_markdown(">" * 30 + " deep\n\nnext").text == "deep\nnext"
    assert problems_of([{"id": "p", "markdown": ">" * 30 + " deep"}]) == []


@pytest.mark.parametrize("blanks", ["", " " * 64_000])
def test_a_title_may_have_many_blanks(blanks) -> None:
    assert title_of_markdown(f"# a {blanks}b #{blanks}") == (f"a {blanks}b", "")
    assert title_of_markdown(f"---\ntitle: 'a {blanks}b'{blanks}\n---\nx") == (f"a {blanks}b", "x")
