"""The explanation of a score."""

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr.explain import AskedError, ExplainError
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRIndex, MathAMRIndexError
from pyterrier_mathamr.store import UnknownIdError


def test_an_explanation_names_the_matched_nodes_and_sums_to_the_score(tmp_path):
    index = MathAMRIndex(tmp_path / "x")
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])  # a formula, a sentence, the document
    index.index([{"docno": "p1", "doc_embs": rows, "formula_ids": ["f1"]}, {"docno": "p2", "doc_embs": rows[:2]}])
    query = np.array([[0.0, 1.0], [0.8, 0.6], [1.0, 0.0]])
    found = index.explain({"query_embs": query, "query_formula_ids": ["q_1"]}, "p1").parts
    assert found["query_row"].tolist() == [0, 2, 1]
    assert found["similarity"].tolist() == pytest.approx([1.0, 1.0, 0.96])
    assert found["part"].tolist() == ["formula", "document", "sentence"]
    assert found["document_part"].tolist() == ["sentence", "formula", "document"]
    assert found["query_formula_id"].tolist() == ["q_1", "", ""]
    assert found["document_formula_id"].tolist() == ["", "f1", ""]
    frame = pd.DataFrame({"qid": ["1"]}).assign(query_embs=[query], query_weights=[[1.0, 0.5, 2.0]])
    weighted = index.explain(frame, "p2")
    score = index.colbert()(frame).set_index("docno")["score"]["p2"]
    assert weighted.score == pytest.approx(score)
    assert set(weighted.parts["document_part"]) == {"formula or sentence", "document"}


def test_an_explanation_of_what_does_not_fit_is_refused(tmp_path, documents):
    index = MathAMRIndex(tmp_path / "x").index(documents([2]))
    for query, docno, error, message in (
        ({"query_embs": np.ones((1, 8))}, "no", UnknownIdError, "'no'"),
        ({"query_embs": np.ones((1, 3))}, "d0", MathAMRIndexError, "3 dimensions"),
        ({"query_embs": np.ones((1, 8)), "query_weights": [1.0, 2.0]}, "d0", MathAMRIndexError, "query_weights"),
        ({"query": "x"}, "d0", AskedError, r"the row has no query_embs. .*encode\(topics\)"),
        (np.ones((1, 8)), "d0", AskedError, "ndarray is not a row"),
    ):
        with pytest.raises(error, match=message):
            index.explain(query, docno)


def test_an_explanation_gets_the_names_of_nodes_from_their_graphs(tmp_path):
    """``x^2 = 2`` and two sentences: the graph knows that the first row is the formula, and the text of each row."""
    graph = GraphBuilder()(pd.DataFrame({"qid": ["1"], "query": ["Solve $x^2 = 2$. I am lost."]}))
    graph = graph["query_graph"][0]
    rows = np.eye(4)
    index = MathAMRIndex(tmp_path / "x").index([{"docno": "p", "doc_embs": rows}])
    found = index.explain({"query_embs": rows, "query_graph": graph, "docno": "p", "graph": graph}).parts
    texts = ["x^2 = 2", "Solve $x^2 = 2$.", "I am lost.", "Solve $x^2 = 2$. I am lost."]
    for kind, text in (("part", "query"), ("document_part", "document")):
        assert found[kind].tolist() == ["formula", "sentence", "sentence", "document"]
        assert found[text].tolist() == texts
    without = index.explain({"query_embs": rows}, "p").parts
    assert set(without["query"]) == set(without["document"]) == {""}
    index.indexer("append").index([{"docno": "one", "doc_embs": rows[:1]}])
    with pytest.raises(ExplainError, match=r"1 vectors for 1 formulas, 2 sentences"):
        index.explain({"query_embs": rows, "docno": "one", "graph": graph})
