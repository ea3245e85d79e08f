"""An explanation as a table, in a terminal and in a notebook."""

import re

import lxml.html
import numpy as np
import pytest

from pyterrier_mathamr.explain import Explanation, Part, Reading
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.posts import post_from_text

QUERY = Reading(post_from_text("Solve $x^2 = 2$. Why is <b> odd?"), ("Solve FORMULA_0.", "Why is <b> odd?"))
DOCUMENT = Reading(post_from_text("We solved $y^2 = 3$. It is $z$."), ("We solved FORMULA_0.", "It is FORMULA_1."))
PARTS = [
    Part("BM25", "word", "Solve", "word", "solved", contribution=0.5),
    Part("M", "formula", "x^2 = 2", "formula", "y^2 = 3", 0.9, 2.0, 1.8, 0, 0, "q_1", "f_1"),
    Part("M", "sentence", "Why is <b> odd?", "sentence", "It is $z$.", -0.1, 1.0, -0.1, 2, 3),
    Part("M", "document", "…", "document", "…", 0.7, 1.0, 0.7, 3, 4),
]


@pytest.fixture
def explanation() -> Explanation:
    return Explanation.of("d<1>", PARTS, QUERY, DOCUMENT)


def test_the_parts_are_ordered_and_sum_to_the_score(explanation: Explanation) -> None:
    assert explanation.score == pytest.approx(2.9)
    assert explanation.parts["contribution"].tolist() == [1.8, 0.7, 0.5, -0.1]
    assert list(explanation.parts.columns) == list(Part._fields)
    assert explanation.rows[0] == PARTS[1]


def test_scores_of_several_systems_are_weighted_and_added(explanation: Explanation) -> None:
    half = explanation.scaled(0.5, "half")
    assert half.score == pytest.approx(1.45)
    assert half.parts["weight"].tolist()[:2] == [1.0, 0.5]
    assert set(half.parts["system"]) == {"half"}
    both = Explanation.of("d<1>", []) + explanation + half
    assert both.score == pytest.approx(4.35)
    assert (both.query, both.document, len(both.parts)) == (QUERY, DOCUMENT, 8)
    assert both.plus(Part("mean", "score", contribution=-1.0)).score == pytest.approx(3.35)


def test_a_terminal_shows_each_part_as_number_and_bar(explanation: Explanation) -> None:
    assert str(explanation).splitlines() == [
        "score of 'd<1>': 2.90",
        " 1.80  ██████████  M formula   x^2 = 2 ↔ y^2 = 3",
        " 0.70  ███▉        M document  …",
        " 0.50  ██▊         BM25 word   Solve ↔ solved",
        "-0.10  ▌           M sentence  Why is <b> odd? ↔ It is $z$.",
    ]
    many = Explanation.of("d", [Part("s", "word", f"w{i}", contribution=0.001) for i in range(40)])
    lines = str(many).splitlines()
    assert lines[-1].split() == ["0.0240", "24", "further", "parts"]
    assert lines[0] == "score of 'd': 0.0400"
    assert max(map(len, str(explanation.plus(Part("s", "sentence", "x" * 500, "", "y" * 500))).splitlines())) <= 100


def test_a_score_without_parts_is_nothing() -> None:
    nothing = Explanation.of("d", [])
    assert nothing.score == 0.0
    assert str(nothing) == "score of 'd': 0.00"
    assert "<table" not in nothing._repr_html_()
    assert nothing.parts["contribution"].dtype == np.float64


def test_a_notebook_shows_both_texts_each_match_in_one_color(explanation: Explanation) -> None:
    html = explanation._repr_html_()
    query, document = re.findall(r"<div style=\"flex.*?</div></div>", html)
    colors = {}
    for side in (query, document):
        painted = re.findall(r'background:(#\w{6})33;[^"]*"><span[^>]*>(\d)</span>(<math|\w+)', side)
        for color, number, content in painted:
            colors.setdefault((number, content.lower()[:5]), set()).add(color)
    assert {key for key in colors if key[1] in ("<math", "solve")} == {("1", "<math"), ("3", "solve")}
    assert all(len(found) == 1 for found in colors.values())
    assert "<b>query</b><span" in query  # the whole text has a number, too
    assert "<b>d&lt;1&gt;</b><span" in document
    bars = re.findall(r"background:([^;]+);border:1px solid", html)
    assert [ground == "none" for ground in bars] == [False, False, False, True]  # a negative part is an outline


def test_html_holds_no_tag_of_a_text_no_script_and_nothing_from_elsewhere(explanation: Explanation) -> None:
    hostile = "<script>alert(1)</script> <img src=x onerror=alert(1)>"
    post = post_from_text(f"{hostile} $\\href{{javascript:alert(1)}}{{x}}$")
    reading = Reading(post, post.sentences)
    parts = [*PARTS, Part(hostile, hostile, hostile, hostile, hostile, contribution=1.0)]
    html = Explanation.of(hostile, parts, reading, reading)._repr_html_()
    nodes = list(lxml.html.fromstring(html).iter())
    assert not {node.tag for node in nodes} & {"script", "img", "a", "link", "style", "iframe"}
    assert not {name for node in nodes for name in node.attrib if name.startswith(("href", "src", "on"))}
    assert "url(" not in "".join(node.get("style", "") for node in nodes)


def test_a_reading_is_what_the_graph_was_built_from() -> None:
    graph = GraphBuilder()([{"qid": "1", "query": "Solve $x^2 = 2$. I am lost."}])[0]["query_graph"]
    reading = Reading.of_graph(graph)
    assert reading is not None
    assert reading.post == post_from_text("Solve $x^2 = 2$. I am lost.")
    assert reading.sentences == ("Solve FORMULA_0.", "I am lost.")
