from pathlib import Path

import pandas as pd
import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.formula import FormulaStore, opt_from_latex, slt_from_latex
from pyterrier_mathamr.graph import GraphBuilder

LATEX = r"\int_0^\infty e^{-x^2}\,dx"
graphs = GraphBuilder(queries="formula")


@pytest.mark.parametrize("column", ["query", "latex"])
@pytest.mark.parametrize("typed", [LATEX, f"${LATEX}$", f"$${LATEX}$$", rf"\[{LATEX}\]"])
def test_a_query_of_latex_is_the_graph_of_that_formula_and_nothing_else(column: str, typed: str) -> None:
    found = graphs(pd.DataFrame({"qid": ["1"], column: [typed]}))
    graph = found.query_graph[0]
    assert (graph.latex, graph.formula_ids, graph.text) == ((LATEX,), ("",), "FORMULA_0")
    assert found.query_formula_id.tolist() == [""]
    trees = len(slt_from_latex(LATEX).nodes) + len(opt_from_latex(LATEX).nodes)
    assert len(graph.amr.labels) == 1 + trees
    assert (graph.n_formulas, graph.n_sentences) == (1, 1)
    assert graph == GraphBuilder()(pd.DataFrame({"qid": ["1"], "query": [f"${LATEX}$"]})).query_graph[0]


def test_topics_keep_the_id_of_their_formula_and_lose_their_question_and_a_ranking_has_its_query() -> None:
    topic = {"qid": "B.1", "title": "Roots", "body": "<p>Solve $y$.</p>", "formula_id": "q_6", "latex": "x^2"}
    found = graphs(pd.DataFrame([topic]))
    assert found.query_formula_id.tolist() == ["q_6"]
    assert found.query_graph[0].formula_ids == ("q_6",)
    assert found.query_graph[0].text == "FORMULA_0"
    found = graphs(pd.DataFrame({"qid": ["1", "1"], "query": ["x", "x"], "docno": ["a", "b"], "score": [2.0, 1.0]}))
    assert [graph.latex for graph in found.query_graph] == [("x",), ("x",)]
    assert found.query_formula_id.tolist() == ["", ""]


def test_empty_formulas_are_named_in_one_warning() -> None:
    blank = ["", "  ", "$$", "$ $", "x"]
    with pytest.warns(MathAMRWarning, match=r"^queries without a readable formula .*: '0', '1', '2', '3'\.") as caught:
        found = graphs(pd.DataFrame({"qid": list("01234"), "query": blank}))
    assert len(caught) == 1
    assert [graph.is_empty for graph in found.query_graph] == [True] * 4 + [False]


@pytest.mark.parametrize("typed", [r"\frac{a", r"\sqrt", "integral of a function", "Pythagoras", "$what is a group?$"])
def test_a_query_that_is_not_a_formula_has_an_empty_graph_and_is_named(typed: str) -> None:
    with pytest.warns(MathAMRWarning, match=r"^queries without a readable formula find nothing: 'q'\."):
        [graph] = graphs(pd.DataFrame({"qid": ["q"], "query": [typed]})).query_graph
    assert graph.is_empty


@pytest.mark.parametrize(
    "typed",
    ["ABC", "abc", "sin x", "x, y", "f", "GL_n", "xyz = 1", r"\text{mean}", "5 and 10", "a < b",
     r"x \text{ if $x$ is irrational}"],
)  # fmt: skip
def test_letters_and_what_would_be_cut_as_prose_are_a_formula(typed: str) -> None:
    [graph] = graphs(pd.DataFrame({"qid": ["q"], "query": [typed]})).query_graph
    assert graph.latex == (typed,)


def test_a_formula_without_latex_is_not_empty_where_the_store_has_its_trees(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    table = tmp_path / "slt.tsv"
    head = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
    table.write_text(f"{head}q_1\t1\t1\tanswer\t\t9\t5\t\t<math><mi>x</mi></math>\n")
    store = FormulaStore.build(tmp_path / "store", [table], [], verbose=False)
    topics = pd.DataFrame({"qid": ["B.1"], "latex": [""], "formula_id": ["q_1"]})
    GraphBuilder(queries="formula", store=store)(topics)
    assert not recwarn.list
    with pytest.warns(MathAMRWarning, match=r"'B\.1'"):
        graphs(topics)
