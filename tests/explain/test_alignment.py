import pickle

import numpy as np
import pytest

from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.explain import ExplainError, explain_maxsim, virtual_nodes
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.posts import post_from_text

QUERY = MathAMRGraph(decode_penman("(f / find-01 :ARG1 (m / FORMULA_0))"), ("q_1",), "A.301")
DOCUMENT = MathAMRGraph(
    decode_penman("(m / multi-sentence :snt1 (s / see-01 :ARG1 (f / FORMULA_0)) :snt2 (h / hold-01))"), ("",), "154"
)
QUERY_EMBS = np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)  # formula, sentence, document
DOC_EMBS = np.array([[0, 1], [1, 0], [0.8, 0.6], [-1, 0]], dtype=np.float32)  # formula, two sentences, document


def test_each_node_of_the_query_is_aligned_with_the_most_similar_one() -> None:
    found = explain_maxsim(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS)
    parts = found.parts.sort_values("query_row")
    assert parts.part.tolist() == ["formula", "sentence", "document"]
    assert parts.document_row.tolist() == [1, 0, 2]
    assert parts.document_part.tolist() == ["sentence", "formula", "sentence"]
    assert parts.contribution.tolist() == pytest.approx([1.0, 1.0, 0.96])
    assert (found.score, found.docno) == (pytest.approx(2.96), "154")


def test_weights_and_the_product_of_the_documents_count_which_may_be_one_part() -> None:
    weighted = {"query_weights": [0.5, 2.0, 1.0], "query_document_weight": -0.5}
    found = explain_maxsim(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS, **weighted)
    parts = found.parts.sort_values(["query_row", "document_row"])
    assert parts.part.tolist() == ["formula", "sentence", "document", "document"]
    assert parts.document_row.tolist() == [1, 0, 2, 3]
    assert parts.similarity.tolist() == pytest.approx([1.0, 1.0, 0.96, -0.6])
    assert parts.contribution.tolist() == pytest.approx([0.5, 2.0, 0.96, 0.3])
    found = explain_maxsim(QUERY, QUERY_EMBS, QUERY, QUERY_EMBS, query_document_weight=0.5)
    assert found.parts["weight"].tolist() == [1.5, 1.0, 1.0]
    assert found.score == pytest.approx(3.5)


def test_nodes_are_named_by_placeholder_and_number_or_by_text_and_latex() -> None:
    assert virtual_nodes(QUERY, 3).label.tolist() == ["FORMULA_0 (q_1)", "sentence 1", "A.301"]
    assert virtual_nodes(DOCUMENT, 3).label.tolist() == ["FORMULA_0", "sentence 1", "sentence 2"]
    post = post_from_text("Find $x^2$.")
    assert virtual_nodes(QUERY, 3, post).label.tolist() == ["x^2", "Find FORMULA_0.", "A.301"]


def test_a_query_without_vectors_has_no_parts_and_a_model_without_formulas_has_sentences_first() -> None:
    assert explain_maxsim(QUERY, np.zeros((0, 2), dtype=np.float32), DOCUMENT, DOC_EMBS).score == 0.0
    parts = explain_maxsim(QUERY, QUERY_EMBS[1:], DOCUMENT, DOC_EMBS, query_formula_ids=[]).parts
    assert set(parts["part"]) == {"sentence", "document"}


def test_vectors_of_another_graph_are_refused() -> None:
    with pytest.raises(ExplainError, match="2 vectors for 1 formulas, 2 sentences") as caught:
        explain_maxsim(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS[:2])
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(ExplainError, match="weights"):
        explain_maxsim(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS, query_weights=[1.0])
    with pytest.raises(ExplainError, match="do not fit"):
        explain_maxsim(QUERY, QUERY_EMBS, DOCUMENT, np.zeros((4, 3), dtype=np.float32))
