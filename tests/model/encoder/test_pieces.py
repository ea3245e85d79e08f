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
    whole, short = (graph_tensors(graph, model.vocabulary) for graph in graphs)
    pieces, places = zip(*pieces_of(whole, 200), strict=True)
    assert len(pieces) > 3
    assert all(len(piece.nodes) <= 200 + 60 for piece in pieces)  # connected parts are not cut
    assert sorted(np.concatenate([rows[:-1] for rows in places]).tolist()) == list(range(len(whole.virtual) - 1))
    assert {int(rows[-1]) for rows in places} == {len(whole.virtual) - 1}
    trunk = 2  # of the root and the document's node
    assert sum(len(piece.nodes) - trunk for piece in pieces) + trunk == len(whole.nodes)
    assert sum(piece.edges.shape[1] - trunk for piece in pieces) + trunk == whole.edges.shape[1]
    for piece, rows in zip(pieces, places, strict=True):
        assert (piece.nodes[piece.virtual] == whole.nodes[whole.virtual[rows]]).all()
        assert (piece.kinds == whole.kinds[rows]).all()
    [(piece, _)] = pieces_of(short, len(short.nodes))
    assert piece is short


def test_vectors_of_pieces_equal_vectors_of_the_whole(model, graphs, monkeypatch) -> None:
    whole = model.encode(graphs)
    monkeypatch.setattr(encoding, "_MOST_NODES", 200)
    cut = model.encode(graphs)
    assert np.allclose(whole[1], cut[1], atol=1e-5)
    assert np.allclose(np.linalg.norm(cut[0], axis=1), 1, atol=1e-5)
    likeness = (whole[0] * cut[0]).sum(axis=1)
    assert likeness.min() > 0.95
    assert likeness.mean() > 0.99
