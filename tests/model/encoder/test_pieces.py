"""A graph that is too large for memory is cut between sentences: the same rows, and almost the same vectors."""

import numpy as np
import pytest

from pyterrier_mathamr.graph import GraphBuilder, graph_tensors
from pyterrier_mathamr.model import MathAMR, encoding
from pyterrier_mathamr.model.encoding import pieces_of

TEXT = " ".join(f"The number $x_{i}$ is the square of {i} words, and we show that $x_{i}^2 > {i}$." for i in range(30))


@pytest.fixture(scope="module")
def model():
    return MathAMR.from_pretrained("mathamr-plus-mini")


@pytest.fixture(scope="module")
def graphs():
    built = GraphBuilder()
    return [next(iter(built.transform_iter([{"docno": "d", "text": text}])))["graph"] for text in (TEXT, "A $x$.")]


def test_pieces_have_every_row_once_but_the_document_and_every_edge_within_them(model, graphs) -> None:
    whole = graph_tensors(graphs[0], model.vocabulary)
    pieces = pieces_of(whole, 200)
    assert len(pieces) > 3
    assert all(len(piece.graph.nodes) <= 200 + 60 for piece in pieces)  # connected parts are not cut
    rows = np.concatenate([piece.rows[:-1] for piece in pieces])
    assert sorted(rows.tolist()) == list(range(len(whole.virtual) - 1))
    assert {int(piece.rows[-1]) for piece in pieces} == {len(whole.virtual) - 1}
    trunk = 2  # of the root and the document's node
    assert sum(len(piece.graph.nodes) - trunk for piece in pieces) + trunk == len(whole.nodes)
    assert sum(piece.graph.edges.shape[1] - trunk for piece in pieces) + trunk == whole.edges.shape[1]
    for piece in pieces:
        assert (piece.graph.nodes[piece.graph.virtual] == whole.nodes[whole.virtual[piece.rows]]).all()
        assert (piece.graph.kinds == whole.kinds[piece.rows]).all()


def test_a_graph_that_fits_is_its_only_piece(model, graphs) -> None:
    whole = graph_tensors(graphs[1], model.vocabulary)
    [piece] = pieces_of(whole, len(whole.nodes))
    assert piece.graph is whole


def test_vectors_of_pieces_equal_vectors_of_the_whole(model, graphs, monkeypatch) -> None:
    whole = model.encode(graphs)
    monkeypatch.setattr(encoding, "_MOST_NODES", 200)
    cut = model.encode(graphs)
    assert np.allclose(whole[1], cut[1], atol=1e-5)
    assert np.allclose(np.linalg.norm(cut[0], axis=1), 1, atol=1e-5)
    likeness = (whole[0] * cut[0]).sum(axis=1)
    assert likeness.min() > 0.95
    assert likeness.mean() > 0.99
