"""The texts behind a graph's vectors: kept with it, and never another sentence's."""

import pickle
from dataclasses import replace

import pandas as pd
import pytest
from graph_examples import whole

from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.amr.parsing import ParsedPart, PartParser, part_of
from pyterrier_mathamr.graph import GraphBuilder, GraphError, MathAMRGraph, segments_of
from pyterrier_mathamr.graph.mathamr import sentence_texts
from pyterrier_mathamr.graph.structure import layout_of, sentence_numbers
from pyterrier_mathamr.posts import post_from_text


class Scripted(PartParser):
    """Answers with the given Penman texts, in order; an empty one is no graph."""

    name = "scripted"

    def __init__(self, *answers, unit="sentence"):
        self.answers, self.unit = answers, unit

    def parse_units(self, units, unit):
        return [part_of(decode_penman(answer)) if answer else ParsedPart() for answer in self.answers]


def build(text, *answers, unit="sentence"):
    return GraphBuilder(parser=Scripted(*answers, unit=unit)).build({"1": post_from_text(text)})[0]


def test_the_texts_are_title_and_body_with_formulas_as_latex():
    post = post_from_text("Solve $x^2 = 2$. I tried $x = 1$.", title="An equation")
    graph = GraphBuilder().build({"1": post})[0]
    assert graph.latex == ("x^2 = 2", "x = 1")
    assert graph.sentence_texts == ("An equation", "Solve FORMULA_0.", "I tried FORMULA_1.")
    assert segments_of(graph).texts == ("An equation", "Solve $x^2 = 2$.", "I tried $x = 1$.")
    empty = GraphBuilder().build({"1": post_from_text("")})[0]
    assert segments_of(empty).texts == ("",)
    assert MathAMRGraph.from_penman(empty.to_penman()) == empty


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["(a / one)", "(b / two)", "(c / three)"], ["One.", "Two.", "Three."]),
        # the second sentence became two: both have its text, and the third keeps its own
        (["(a / one)", "(m / multi-sentence :snt1 (b / two) :snt2 (d / too))", "(c / three)"],
         ["One.", "Two.", "Two.", "Three."]),
        # a sentence without a graph has no vector
        (["(a / one)", "", "(c / three)"], ["One.", "Three."]),
        # nested, and with a role that keeps it from being taken apart
        (["(a / one)", "(m / multi-sentence :mod (x / x) :snt1 (b / two) :snt2 (d / too))", "(c / three)"],
         ["One.", "Two.", "Two.", "Three."]),
    ],
)  # fmt: skip
def test_each_sentence_has_its_own_text_when_the_parser_splits_or_loses_some(answers, expected):
    graph = build("One. Two. Three.", *answers)
    assert list(graph.sentence_texts) == expected
    assert graph.n_sentences == len(expected)


def test_a_sentence_rooted_in_another_one_or_without_a_text_from_the_parser_gets_no_other_sentence_s_text():
    graph = build("A $x$. $x$. C.", "(a / a :ARG1 (f / FORMULA_0) :ARG2 (g / FORMULA_1))", "(g / FORMULA_1)", "(c / c)")
    assert list(graph.sentence_texts) == ["A FORMULA_0.", "C."]
    amr = decode_penman("(m / multi-sentence :snt1 (a / one) :snt2 (b / two))")
    assert sentence_texts(amr, (), "One. Two.") == ("One. Two.", "One. Two.")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("(m / multi-sentence :snt1 (a / one) :snt2 (b / two))", ["One.", "Two."]),
        ("(m / multi-sentence :snt1 (a / one) :snt2 (b / two) :snt3 (c / too))", ["One. Two."] * 3),
        ("(a / and :op1 (o / one) :op2 (t / two))", ["One. Two."]),
    ],
)
def test_a_passage_gives_its_sentences_in_order_or_where_the_numbers_differ_all_of_itself(answer, expected):
    assert list(build("One. Two.", answer, unit="passage").sentence_texts) == expected


def test_texts_come_back_from_penman_whatever_characters_they_have():
    graph = MathAMRGraph(
        decode_penman("(f / FORMULA_0)"), ("7",), "1", 'a ::b\n"c" ü\u2028', ("::", "\t"), ("\\frac{1}{2}",)
    )
    assert MathAMRGraph.from_penman(graph.to_penman()) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph


def test_a_record_without_texts_is_read_and_refused_only_where_texts_are_needed():
    graph = MathAMRGraph.from_penman(whole().to_penman())
    assert (graph.text, graph.sentence_texts, graph.latex) == ("", (), ())
    for record, what in ((graph, "LaTeX of FORMULA_0"), (replace(graph, latex=("x",) * 9), "text of the post")):
        with pytest.raises(GraphError, match=what) as caught:
            segments_of(record)
        assert "GraphBuilder" in str(pickle.loads(pickle.dumps(caught.value)))


@pytest.mark.parametrize("line", ["post_text 7", 'sentence_texts "x"', "formula_latex [1]", "post_text {"])
def test_damaged_texts_are_refused_by_name(line):
    with pytest.raises(GraphError, match=line.split()[0]):
        MathAMRGraph.from_penman(f"# ::{line}\n(f / FORMULA_0)")


@pytest.mark.parametrize(
    "text",
    [
        "(a / and)",
        "(m / multi-sentence)",
        "(m / multi-sentence :snt1 (a / and :op1 (b / be)) :snt2 b :snt3 (c / cat) :mod (d / dog) :snt12 (e / egg))",
        "(m / multi-sentence :snt1 (a / and :op1 b) :snt2 (b / be) :snt3 a)",
        "(m / multi-sentence :snt1 (n / multi-sentence :snt5 (a / and) :snt6 (o / multi-sentence :snt1 (b / be))))",
        "(m / multi-sentence :snt2 (n / multi-sentence :mod (a / and) :snt1 (b / be :ARG0 n)) :snt1 (c / cat :ARG0 m))",
    ],
)
def test_each_sentence_of_the_layout_has_a_number(text):
    assert len(sentence_numbers(decode_penman(text))) == len(layout_of(decode_penman(text), 0).roots)


def test_a_frame_with_graphs_as_text_is_written_to_parquet_and_read_again(tmp_path):
    pytest.importorskip("pyarrow", reason="pandas writes Parquet with pyarrow")
    frame = GraphBuilder()(pd.DataFrame({"qid": ["1", "2"], "query": ["Is $x^2 > 0$?", "Why?\n\nAnd $\\frac{a}{b}$"]}))
    written = frame.assign(query_graph=frame["query_graph"].map(MathAMRGraph.to_penman))
    written.to_parquet(tmp_path / "topics.parquet")
    again = pd.read_parquet(tmp_path / "topics.parquet")
    assert again["query_graph"].map(MathAMRGraph.from_penman).tolist() == frame["query_graph"].tolist()
