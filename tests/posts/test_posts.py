"""Posts from HTML and text: every formula found once, hostile input read as far as it makes sense."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.posts import (
    PLACEHOLDER,
    TOKEN,
    DocumentError,
    MathPost,
    PostFormula,
    is_formula,
    placeholder,
    plain_text,
    post_from_any,
    post_from_html,
    post_from_text,
)
from pyterrier_mathamr.posts.post import split_sentences


def numbers(text):
    return [int(n) for n in PLACEHOLDER.findall(text)]


def span(latex, formula_id=""):
    return f'<span class="math-container"{f" id={chr(34)}{formula_id}{chr(34)}" if formula_id else ""}>{latex}</span>'


HTML = [
    (f"<p>Prove {span('x&lt;y', '7')}&gt;0.</p>", "Prove FORMULA_0>0.", [("x<y", "7")]),
    (f"<p>a{span('n', '1')}th b</p>", "a FORMULA_0 th b", [("n", "1")]),
    (f"{span('a', '1')}{span('b', '2')}-module's", "FORMULA_0 FORMULA_1-module's", [("a", "1"), ("b", "2")]),
    (span("$$x$$", "q_1") + span("$y$", "q_2"), "FORMULA_0 FORMULA_1", [("x", "q_1"), ("y", "q_2")]),
    (span(span("x", "7")), "FORMULA_0", [("x", "7")]),
    (span(span("x"), "7"), "FORMULA_0", [("x", "7")]),
    (span("a " + span("b", "2") + " c", "1"), "FORMULA_0 FORMULA_1 FORMULA_2", [("a", "1"), ("b", "2"), ("c", "")]),
    (span("see $x$ and $y$"), "see FORMULA_0 and FORMULA_1", [("x", ""), ("y", "")]),
    (span("$$a", "7"), "FORMULA_0", [("a", "7")]),
    (span("", "7"), "FORMULA_0", [("", "7")]),
    (span(r"$0<r<p\le <1$", "q_5") + " so", "FORMULA_0 so", [(r"0<r<p\le <1", "q_5")]),
    ("<p>" + span("x", "1")[:-7] + "</p><p>next</p>", "FORMULA_0\nnext", [("x", "1")]),
    ("<p>if $a<b$ then $$c&gt;d$$.</p>", "if FORMULA_0 then FORMULA_1.", [("a<b", ""), ("c>d", "")]),
    (r"\(x\) and \[y\] or \begin{align}z&amp;1\end{align}", "FORMULA_0 and FORMULA_1 or FORMULA_2",
     [("x", ""), ("y", ""), (r"\begin{align}z&1\end{align}", "")]),
    ("I typed FORMULA_0, $x$", "I typed FORMULA-0, FORMULA_0", [("x", "")]),
    ("FORMULA_<b>3</b> &#70;ORMULA_4", "FORMULA-3 FORMULA-4", []),
    ("<code>$a$ \\(b\\)</code> $c$", "$a$ \\(b\\) FORMULA_0", [("c", "")]),
    ("a\x00b\u200bc\x1fd &#1;e\ud800", "abcd e", []),
    ("<!-- $x$ --><p>a<!-- b", "a<!-- b", []),
    ("<script>var $x$;</script>b", "b", []),
    ("<ul><li>one<li>two</ul>three", "one\ntwo\nthree", []),
    ("a < b and c > d, x<y>z", "a < b and c > d, x<y>z", []),
    ("", "", []),
    ("<p> </p></span></div>&nbsp;", "", []),
]  # fmt: skip


@pytest.mark.parametrize(("html", "text", "formulas"), HTML)
def test_html_becomes_text_with_placeholders(html, text, formulas):
    assert post_from_html(html) == MathPost(text, tuple(PostFormula(*f) for f in formulas))


@pytest.mark.parametrize("latex", ["x+y\\ ", "x \\\\", "x"])
def test_a_formula_that_is_written_as_text_is_read_again(latex):
    post = post_from_html(f'<span class="math-container">{latex}</span> and $z$')
    assert [each.latex for each in post_from_text(plain_text(post)).formulas] == [latex.strip(), "z"]


TEXT = [
    ("a $x^2$ b", "a FORMULA_0 b", ["x^2"]),
    ("a $$x\n\n+y$$ b", "a FORMULA_0 b", ["x\n+y"]),
    ("it costs $5 and $10", "it costs $5 and $10", []),
    ("from $5 to $10, $20 or $10, $", "from $5 to $10, $20 or $10, $", []),
    (r"\$x\$ a \\[2pt] b", r"$x$ a \\[2pt] b", []),
    (r"\\(x\\) and \\[y\\] or $2z$", "FORMULA_0 and FORMULA_1 or FORMULA_2", ["x", "y", "2z"]),
    (r"it costs \$5, $x$", "it costs $5, FORMULA_0", ["x"]),
    ("$5$ apples", "FORMULA_0 apples", ["5"]),
    (r"$\text{for $x$}$ a", "FORMULA_0 a", [r"\text{for $x$}"]),
    ("$x\n\ny$", "$x\ny$", []),
    ("one\ntwo\n \nthree", "one two\nthree", []),
    ("$ x $", "FORMULA_0", ["x"]),
    ("$$", "$$", []),
    (r"\(a \(b\)", r"\(a FORMULA_0", ["b"]),
]


@pytest.mark.parametrize(("source", "text", "latex"), TEXT)
def test_text_becomes_text_with_placeholders(source, text, latex):
    post = post_from_text(source)
    assert (post.text, [formula.latex for formula in post.formulas]) == (text, latex)


def test_the_title_is_the_first_block_and_its_formulas_come_first():
    assert post_from_html("<p>b $y$</p>", "a $x$?").text == "a FORMULA_0?\nb FORMULA_1"
    assert post_from_text("b $y$", "a $x$").text == "a FORMULA_0\nb FORMULA_1"


def test_a_text_is_read_as_html_only_where_it_looks_like_it():
    assert post_from_any("a <b $x<y$ & c").text == "a <b FORMULA_0 & c"
    assert post_from_any("a &lt; b").text == "a < b"
    assert post_from_any(f"<p>{span('x', '3')}</p>").formulas == (PostFormula("x", "3"),)


def test_values_that_are_not_text_are_refused():
    with pytest.raises(DocumentError, match="not NoneType"):
        post_from_html(None)


def test_plain_text_puts_the_latex_back():
    assert plain_text(post_from_text("a $x$, $$y$$")) == "a $x$, $y$"
    assert placeholder(3) == "FORMULA_3"
    assert PLACEHOLDER.findall("FORMULA_1-module xFORMULA_2 FORMULA_3x (FORMULA_4)") == ["1", "4"]


SENTENCES = [
    ("One. Two? Three!", ["One.", "Two?", "Three!"]),
    ("See e.g. Theorem 3. Then cf. Rudin.", ["See e.g. Theorem 3.", "Then cf. Rudin."]),
    ("1. First. 2. Second", ["1. First.", "2. Second"]),
    ("By J. Smith. Done", ["By J. Smith.", "Done"]),
    ("so on ... and on", ["so on ... and on"]),
    ("is it? yes", ["is it? yes"]),
    ("(See above.) Then", ["(See above.)", "Then"]),
    ("It is FORMULA_0. FORMULA_1 is.", ["It is FORMULA_0.", "FORMULA_1 is."]),
    ("useful.But I", ["useful.", "But I"]),
    ("We have\nFORMULA_0\nwhere it is.\nEnd", ["We have FORMULA_0 where it is.", "End"]),
    ("Title\nText", ["Title", "Text"]),
    ("", []),
]


@pytest.mark.parametrize(("text", "sentences"), SENTENCES)
def test_sentences_follow_the_rules(text, sentences):
    assert split_sentences(text) == tuple(sentences)


def test_a_sentence_has_at_most_120_tokens_and_is_cut_at_a_comma():
    pieces = split_sentences("word " * 90 + ", " + "FORMULA_1 " * 300)
    assert [len(TOKEN.findall(piece)) for piece in pieces] == [91, 120, 120, 60]
    assert " ".join(pieces).split() == ("word " * 90 + ", " + "FORMULA_1 " * 300).split()


@given(st.text(alphabet=list("a .?!,$\\()[]{}<>/spn\"'=FORMULA_01&;\n\x00\ue000é-"), max_size=120))
@settings(deadline=None, max_examples=150)
def test_whatever_is_written_each_formula_has_its_placeholder_once(text):
    for post in (post_from_html(text), post_from_text(text), post_from_any(text, text)):
        assert numbers(post.text) == list(range(len(post.formulas)))
        assert numbers(" ".join(post.sentences)) == list(range(len(post.formulas)))
        for i in range(len(post.formulas)):
            assert post.sentence_with(i) == next(text for text in post.sentences if i in numbers(text))
        assert post.sentence_with(len(post.formulas)) == ""
        assert not re.search("[\x00-\x09\x0b-\x1f\ue000-\ue002]", post.text)


@pytest.mark.parametrize(
    "unit", ["word ", "$", "${", "\\(", "<", "<!--", "<a \"", "<span class=math-container>", "$$x", "\\begin{align}",
             ".", "a,", "x", "<b ", "</p>", "&lt;", "\n"]
)  # fmt: skip
def test_two_hundred_thousand_of_anything_are_read(unit):
    text = (unit * (200_000 // len(unit) + 1))[:200_000]
    post = post_from_html(text)
    assert numbers(" ".join(post.sentences)) == list(range(len(post.formulas)))
    assert all(len(TOKEN.findall(sentence)) <= 120 for sentence in post.sentences)


def test_real_posts_and_topics_keep_each_formula_with_its_id(shared_data):
    folder = shared_data / "arqmath-mini"
    rows = [(row.get("Title") or "", row.get("Body")) for row in ET.parse(folder / "Posts.V1.3.xml").getroot()]
    for path in sorted((folder / "topics").glob("Topics_Task*.xml")):
        rows += [(t.find("Title").text or "", t.find("Question").text or "") for t in ET.parse(path).getroot()]
    assert len(rows) > 6_164
    for title, body in rows[::3]:
        post = post_from_html(body, title)
        ids = re.findall(r'<span class="math-container" id="([^"]+)"', title + body)
        assert [formula.id for formula in post.formulas if formula.id] == ids
        assert numbers(post.text) == numbers(" ".join(post.sentences)) == list(range(len(post.formulas)))
        assert not any(formula.latex[:1] == "$" for formula in post.formulas if formula.id)


def test_a_typed_formula_is_recognized_and_prose_or_unpaired_braces_are_none() -> None:
    typed = ["x", "x^2", "ABCD", "AB=CD", "sin x", "$abcd$", "abc", r"\frac{a}{b}", r"\{1, 2\}", "dx dy", "x, y"]
    assert [latex for latex in [*typed, r"\text{odd words}"] if not is_formula(latex)] == []
    prose = ["", " ", "$$", r"\frac{a", "a}", "}{", "word", "plain words", "Is it prime?", "sum of all"]
    assert [latex for latex in prose if is_formula(latex)] == []


def test_every_topic_of_the_formula_task_is_one(shared_data: Path) -> None:
    for year in (2020, 2022):
        topics = ET.parse(shared_data / "arqmath-mini" / "topics" / f"Topics_Task2_{year}.xml").getroot()
        found = [topic.findtext("Latex", "") for topic in topics]
        assert len(found) > 70
        assert [latex for latex in found if not is_formula(latex)] == []
