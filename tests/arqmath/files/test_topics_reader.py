"""The reader of the topics."""

from pathlib import Path

import pytest

from pyterrier_mathamr.arqmath import ARQMathError, Topic, read_topics

LATER = "Topics/Task1&3 Topics/ARQMath-3/Topics/Topics_Task1_2022_V0.1.xml"


def test_a_topic_of_task_1_has_html_with_the_ids_of_its_formulas(release: Path) -> None:
    first, second = read_topics(release / LATER)
    title = 'Norms of <span class="math-container" id="q_1">$A$</span>'
    body = '<p>Is <span class="math-container" id="q_2">$a<b$</span> &amp; true?</p>'
    assert first == Topic("A.301", title, body, ("linear-algebra", "norm"), "", "", topic_id="A.301")
    assert second.body == "<p>No formula here.</p>"


def test_a_topic_of_task_2_has_its_formula_and_the_topic_of_task_1(release: Path) -> None:
    first, second = read_topics(release / LATER.replace("Task1&3", "Task2").replace("Task1", "Task2"))
    assert (first.id, first.formula_id, first.latex, first.topic_id) == ("B.301", "q_2", "a<b", "A.301")
    assert (second.formula_id, second.topic_id) == ("", "A.302")


def test_a_bare_less_than_and_ampersand_are_read_as_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    file.write_text(
        '<Topics><Topic number="B.1"><Formula_Id>q_1</Formula_Id><Latex>a < b & c<d &lt; e &#955;</Latex>'
        "<Title>A <b>title</b></Title><Question>x</Question><Tags>t</Tags></Topic></Topics>"
    )
    (topic,) = read_topics(file)
    assert topic.latex == "a < b & c<d < e λ"
    assert topic.title == "A <b>title</b>"
    file.write_bytes(
        b'<Topics><Topic number="A.1"><Title>a\x0bb</Title></Topic>'
        b'<Topic number="A.2"><Title>a\x0bb</Title><Question><![CDATA[<p>a &lt; b</p>]]></Question></Topic></Topics>'
    )
    one, other = read_topics(file)
    assert (one.title, other.body) == ("ab", "<p>a &lt; b</p>"), "control characters are dropped, CDATA is kept"


def test_a_file_that_has_no_topics_is_refused_by_name(tmp_path: Path) -> None:
    for text in ("", "<posts></posts>", "A.1\t0\t5\t3"):
        (tmp_path / "t.xml").write_text(text)
        with pytest.raises(ARQMathError, match=r"t\.xml:1: .*not a file of topics"):
            list(read_topics(tmp_path / "t.xml"))
