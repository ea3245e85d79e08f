"""The builder of the bundled sample: same bytes each time, a small Markdown, and refusals that lose nothing."""

import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools" / "sample"
SAMPLE = Path(str(resources.files("pyterrier_mathamr"))) / "data" / "sample"
sys.path.insert(0, str(TOOLS))  # the builder is a script, not a part of the package

import markup  # noqa: E402
import source  # noqa: E402
import topic_files  # noqa: E402
from formulas import Formulas, mathml  # noqa: E402


def test_rebuilding_gives_the_shipped_bytes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(TOOLS / "build.py"), "--out", str(tmp_path)], check=True, capture_output=True)
    built = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    shipped = {path.relative_to(SAMPLE): path.read_bytes() for path in SAMPLE.rglob("*") if path.is_file()}
    assert built.keys() == shipped.keys()
    assert [str(name) for name in built if built[name] != shipped[name]] == []


def span(latex: str, dollar: str) -> str:
    return f"[{dollar}|{latex}]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo", "<p>one two</p> "),
        ("a < b & $a<b$", "<p>a &lt; b &amp; [$|a<b]</p> "),
        ("$$x\n+ y$$", "<p>[$$|x + y]</p> "),
        ("**so $a*b$** and *$a^*$*", "<p><strong>so [$|a*b]</strong> and <em>[$|a^*]</em></p> "),
        (r"costs \$5 or $5$", "<p>costs $5 or [$|5]</p> "),
        ("`a*b*c $x$`", "<p><code>a*b*c $x$</code></p> "),
        ("[see $n$](http://a.b/c)", '<p><a href="http://a.b/c">see [$|n]</a></p> '),
        ("- p\n- q", "<ul> <li>p</li> <li>q</li> </ul> "),
        ("1. p\n2. q", "<ol> <li>p</li> <li>q</li> </ol> "),
        ("> said\n> so", "<blockquote> <p>said so</p> </blockquote> "),
        ("    f(x)\n        <y>", "<pre><code>f(x)\n    &lt;y&gt;\n</code></pre> "),
        ("one\n\n    two\n\nthree", "<p>one</p> <pre><code>two\n</code></pre> <p>three</p> "),
    ],
)
def test_the_small_markdown_becomes_the_html_of_the_release(text: str, expected: str) -> None:
    assert markup.to_html(text, span) == expected


def test_spans_carry_ids_and_escaped_latex_with_dollars_only_in_topics() -> None:
    of_posts, of_topics = Formulas(), Formulas(prefix="q_", dollars=True)
    assert of_posts.html("$a<b$", "7", "7", "title") == '<span class="math-container" id="1">a&lt;b</span>'
    assert of_topics.html("$$a$$", "A.1", "9", "title") == '<span class="math-container" id="q_1">$$a$$</span>'
    assert of_posts.rows == [("1", "7", "7", "title", "a<b")]


def test_spelling_does_not_change_how_a_formula_looks() -> None:
    assert mathml(r"x^2 \le \frac12") == mathml(r"x^{2}\leq\frac{1}{2}")
    assert mathml("x^2") != mathml("x_2")


TOPIC = """# A.1
Title: Sum of $n$
Tags: a, b
Formula: n

Text.

## Answers
3: q.1 q.2

## Formulas
2: n
"""


def test_a_topic_is_read_with_its_judgments(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text(TOPIC, "utf-8")
    [topic] = source.read_topics(tmp_path)
    assert (topic.number, topic.text, topic.tags, topic.formula) == ("A.1", "Text.", ("a", "b"), "n")
    assert topic.answers == ((3, "q.1"), (3, "q.2"))
    assert topic.formulas == ((2, "n"),)
    assert topic_files.answer_judgments([topic], {"q": "1", "q.1": "2", "q.2": "3"}) == "A.1\t0\t2\t3\nA.1\t0\t3\t3\n"
    assert topic_files.formula_judgments([topic], {mathml("n"): ["8", "9"]}) == "B.1\t0\t8\t2\nB.1\t0\t9\t2\n"


def test_judgments_of_what_does_not_exist_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text(TOPIC, "utf-8")
    topics = source.read_topics(tmp_path)
    with pytest.raises(ValueError, match=r"do not exist: q\.2"):
        topic_files.answer_judgments(topics, {"q": "1", "q.1": "2"})
    with pytest.raises(ValueError, match=r"not in the collection:\nA\.1  n"):
        topic_files.formula_judgments(topics, {})


def test_a_line_that_is_not_a_judgment_is_refused() -> None:
    assert list(source.graded("0: a\n\n3: b c")) == [(0, "a"), (3, "b c")]
    with pytest.raises(ValueError, match="not a judgment: '4: a'"):
        list(source.graded("4: a"))


def test_a_topic_must_contain_its_formula(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text(TOPIC.replace("Formula: n", "Formula: m"), "utf-8")
    with pytest.raises(ValueError, match=r"A\.1: its text does not contain the formula m"):
        topic_files.topic_rows(source.read_topics(tmp_path), Formulas(prefix="q_", dollars=True))


def test_a_random_quarter_of_the_answers_nobody_graded_is_judged_irrelevant(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text(TOPIC, "utf-8")
    topics = source.read_topics(tmp_path)
    ids = {"q": "1", "q.1": "2", "q.2": "3"} | {f"r.{i}": str(100 + i) for i in range(400)}
    rows = [line.split("\t") for line in topic_files.answer_judgments(topics, ids).splitlines()]
    assert [row[2:] for row in rows[:2]] == [["2", "3"], ["3", "3"]]
    assert {row[3] for row in rows[2:]} == {"0"}
    assert 60 < len(rows) - 2 < 140
    assert len({row[2] for row in rows}) == len(rows)
