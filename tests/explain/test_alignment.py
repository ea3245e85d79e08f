import pickle

import numpy as np
import pytest

from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.explain import AlignmentError, alignment, virtual_nodes
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.posts import post_from_text

QUERY = MathAMRGraph(decode_penman("(f / find-01 :ARG1 (m / FORMULA_0))"), ("q_1",), "A.301")
DOCUMENT = MathAMRGraph(
    decode_penman("(m / multi-sentence :snt1 (s / see-01 :ARG1 (f / FORMULA_0)) :snt2 (h / hold-01))"), ("",), "154"
)
QUERY_EMBS = np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)  # formula, sentence, document
DOC_EMBS = np.array([[0, 1], [1, 0], [0.8, 0.6], [-1, 0]], dtype=np.float32)  # formula, two sentences, document


def test_each_node_of_the_query_is_aligned_with_the_most_similar_one() -> None:
    table = alignment(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS)
    assert table.query_kind.tolist() == ["formula", "sentence", "document"]
    assert table.doc_row.tolist() == [1, 0, 2]
    assert table.doc_kind.tolist() == ["sentence", "formula", "sentence"]
    assert table.similarity.tolist() == pytest.approx([1.0, 1.0, 0.96])
    assert table.contribution.tolist() == pytest.approx([1 / 2.96, 1 / 2.96, 0.96 / 2.96])


def test_weights_and_the_blend_of_the_documents_have_their_shares() -> None:
    weighted = {"query_weights": [0.5, 2.0, 1.0], "query_document_weight": -0.5}
    table = alignment(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS, **weighted)
    assert table.query_kind.tolist() == ["formula", "sentence", "document", "document"]
    assert table.doc_row.tolist() == [1, 0, 2, 3]
    assert table.similarity.tolist() == pytest.approx([1.0, 1.0, 0.96, -0.6])
    assert table.contribution.tolist() == pytest.approx([x / 3.76 for x in (0.5, 2.0, 0.96, 0.3)])
    with pytest.raises(AlignmentError, match="weights"):
        alignment(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS, query_weights=[1.0])


def test_nodes_are_named_by_placeholder_and_number_or_by_text_and_latex() -> None:
    assert virtual_nodes(QUERY, 3).label.tolist() == ["FORMULA_0 (q_1)", "sentence 1", "A.301"]
    assert virtual_nodes(DOCUMENT, 3).label.tolist() == ["FORMULA_0", "sentence 1", "sentence 2"]
    post = post_from_text("Find $x^2$.")
    assert virtual_nodes(QUERY, 3, post).label.tolist() == ["x^2", "Find FORMULA_0.", "A.301"]


def test_a_score_of_nothing_has_no_shares() -> None:
    table = alignment(QUERY, np.zeros((3, 2), dtype=np.float32), DOCUMENT, DOC_EMBS)
    assert table.contribution.tolist() == [0.0, 0.0, 0.0]


def test_vectors_of_another_graph_are_refused() -> None:
    with pytest.raises(AlignmentError, match="2 vectors for 1 formulas, 2 sentences") as caught:
        alignment(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS[:2])
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(AlignmentError, match="do not fit"):
        alignment(QUERY, QUERY_EMBS, DOCUMENT, np.zeros((4, 3), dtype=np.float32))
