"""The explanation of a score."""

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRIndex, QueryError
from pyterrier_mathamr.store import UnknownIdError


def test_an_explanation_names_the_nodes_that_met_and_sums_to_the_score(tmp_path):
    index = MathAMRIndex(tmp_path / "x")
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])  # a formula, a sentence, the document
    index.index([{"docno": "p1", "doc_embs": rows, "formula_ids": ["f1"]}, {"docno": "p2", "doc_embs": rows[:2]}])
    query = np.array([[0.0, 1.0], [0.8, 0.6], [1.0, 0.0]])
    found = index.explain(
        query, "p1", query_formula_ids=["q_1"], document_texts=["$x$", "A sentence.", "All."], query_texts=list("abc")
    )
    assert found["query_row"].tolist() == [0, 2, 1]
    assert found["similarity"].tolist() == pytest.approx([1.0, 1.0, 0.96])
    assert found["query_kind"].tolist() == ["formula", "document", "sentence"]
    assert found["document_kind"].tolist() == ["sentence", "formula", "document"]
    assert found["query_formula_id"].tolist() == ["q_1", "", ""]
    assert found["document_formula_id"].tolist() == ["", "f1", ""]
    assert found["document_text"].tolist() == ["A sentence.", "$x$", "All."]
    assert found["query_text"].tolist() == ["a", "c", "b"]
    frame = pd.DataFrame({"qid": ["1"]}).assign(query_embs=[query], query_weights=[[1.0, 0.5, 2.0]])
    weighted = index.explain(query, "p2", query_weights=[1.0, 0.5, 2.0])
    score = index.colbert()(frame).set_index("docno")["score"]["p2"]
    assert weighted["contribution"].sum() == pytest.approx(score)
    assert set(weighted["document_kind"]) == {"formula or sentence", "document"}


def test_an_explanation_of_what_does_not_fit_is_refused(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2]))
    with pytest.raises(UnknownIdError, match="'no'"):
        index.explain(np.ones((1, 8)), "no")
    with pytest.raises(QueryError, match="3 dimensions"):
        index.explain(np.ones((1, 3)), "d0")
    with pytest.raises(QueryError, match="query_weights"):
        index.explain(np.ones((1, 8)), "d0", query_weights=[1.0, 2.0])


def test_an_explanation_takes_the_names_of_nodes_from_their_graphs(tmp_path):
    """``x^2 = 2`` and two sentences: the graph says that the first row is the formula, and what each row reads."""
    graph = GraphBuilder()(pd.DataFrame({"qid": ["1"], "query": ["Solve $x^2 = 2$. I am lost."]}))
    graph = graph["query_graph"][0]
    rows = np.eye(4)
    index = MathAMRIndex(tmp_path / "x").index([{"docno": "p", "doc_embs": rows}])
    found = index.explain(rows, "p", query_graph=graph, document_graph=graph)
    texts = ["x^2 = 2", "Solve $x^2 = 2$.", "I am lost.", "Solve $x^2 = 2$. I am lost."]
    for side in ("query", "document"):
        assert found[f"{side}_kind"].tolist() == ["formula", "sentence", "sentence", "document"]
        assert found[f"{side}_text"].tolist() == texts
    without = index.explain(rows, "p")
    assert set(without["query_text"]) == set(without["document_text"]) == {""}
    assert list(without.columns) == list(found.columns)
    with pytest.raises(QueryError, match=r"document_graph has 1 formulas, 2 sentences .* has 1 rows"):
        index.indexer("append").index([{"docno": "one", "doc_embs": rows[:1]}]).explain(
            rows, "one", document_graph=graph
        )
