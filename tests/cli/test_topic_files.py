"""Files of topics in four forms, recognized by their content; what cannot be read is named with its line."""

import gzip
from pathlib import Path

import pytest

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.cli.topic_files import read_topic_file

TREC = """<top>
<num> Number: 301
<title> Why is $a<b$
true?
<desc> Description:
Not this
</top>

<top><num>302</num><title></title><desc> Description: the description</desc></top>
"""
ARQMATH = """<?xml version="1.0"?>
<Topics>
<Topic number="A.1"><Title>Sum &lt;span class="math-container" id="q_1"&gt;$x$&lt;/span&gt;</Title>
<Question>&lt;p&gt;Why $a&lt;b$?&lt;/p&gt;</Question><Tags>a</Tags></Topic>
</Topics>
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("t.tsv", "1\t$x^2$ and more\n\n2\ttwo\r\n", [("1", "$x^2$ and more", 1), ("2", "two", 3)]),
        ("t.txt", "\ufeffA.1\tone\ttwo", [("A.1", "one\ttwo", 1)]),
        ("t.jsonl", '{"qid": "1", "query": "a"}\n\n{"_id": 2, "text": "b"}\n', [("1", "a", 1), ("2", "b", 3)]),
        ("t.tsv", '{"id": "1", "title": "T", "body": "<p>b</p>"}', [("1", "T\n\n<p>b</p>", 1)]),
        ("t.jsonl", TREC, [("301", "Why is $a<b$ true?", 1), ("302", "the description", 9)]),
        ("t", '<topics>\n<topic number="7"><query>q</query></topic></topics>', [("7", "q", 2)]),
        (
            "t.xml",
            ARQMATH,
            [("A.1", '<div>Sum <span class="math-container" id="q_1">$x$</span></div><p>Why $a<b$?</p>', 1)],
        ),
    ],
)
def test_topics_are_recognized_by_their_content(tmp_path: Path, name: str, text: str, expected: list) -> None:
    file, packed = tmp_path / name, tmp_path / f"{name}.gz"
    file.write_text(text, encoding="utf-8", newline="")
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert read_topic_file(file) == read_topic_file(packed) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: it has no topic; give topics of ARQMath or TREC"),
        ("\n \n", ":1: it has no topic"),
        ("1\tone\nno tab here\n", ":2: 'no tab here' has no tab; write an id"),
        ("1\tone\n\n1\tagain\n", ":3: topic 1 is also in line 1"),
        ("1\tone\n2\t  \n", ":2: topic 2 has no text"),
        ("\tone\n", ":1: the topic's id '' is not one word"),
        ("A 1\tone\n", ":1: the topic's id 'A 1' is not one word"),
        ('{"qid": "1", "query": "a"}\n{"qid"\n', ":2: this is not JSON"),
        ('{"qid": "1", "query": "a"}\n[1]\n', ":2: this is not a JSON object"),
        ('{"query": "a"}\n', ":1: the topic's id '' is not one word"),
        ('{"qid": "1", "query": 3}\n', ":1: topic 1 has no text"),
        ("<top>\n<num>1\n<title>a\n</top>\n<top>\n<num>2\n<title>b\n", ":5: the topic has no end"),
        ("<top>\n<num>1\n<title>a\n<top>\n<num>2\n<title>b\n</top>", ":1: the topic has no end"),
        ("<html><body>nothing</body></html>", ":1: it has no topic"),
        ("<top></top>", ":1: the topic's id '' is not one word"),
        (ARQMATH.replace(' number="A.1"', ""), ":3: topic: the topic has no number"),
        (ARQMATH[: ARQMATH.index("</Topic>")], ":3: "),
        ("{" * 100_000, ":1: this is not JSON"),
        ("\x00\x01\x02", r":1: '\x00\x01\x02' has no tab"),
    ],
)
def test_an_unreadable_file_is_an_error_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "topics"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(MathAMRError) as caught:
        read_topic_file(file)
    assert str(caught.value).startswith(f"{file}{message}")
    packed = tmp_path / "topics.gz"
    packed.write_bytes(b"1\tone\n")
    with pytest.raises(MathAMRError, match="the file cannot be read"):
        read_topic_file(packed)


def test_long_files_without_a_topic_take_linear_time(tmp_path: Path) -> None:
    file = tmp_path / "topics"
    for text in ("<top " * 100_000, "<top>" * 50_000, "<" * 500_000, "<top><num>" + "<title " * 100_000):
        file.write_text(text)
        with pytest.raises(MathAMRError):
            read_topic_file(file)
