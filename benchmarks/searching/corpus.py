"""The corpora: vectors on disk, written in pieces, so that a corpus of any size needs little memory.

Synthetic vectors have no structure, which makes them the hardest case for approximation. The model's own vectors are
from the bundled sample, each repeated with noise until there are enough.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

ROWS, DIMENSIONS, QUERY_ROWS = 16, 32, 13
"""The shape of synthetic vectors, which is the paper's."""

NOISE = 0.25
"""The length of the noise that is added to a repeated unit vector."""
_PIECE = 10_000


@dataclass(frozen=True)
class Corpus:
    """Documents and queries.

    Args:
        name: its name in a table.
        rows: float32 ``[r, d]``, memory-mapped.
        offsets: int64 ``[m + 1]``; document ``i`` owns ``rows[offsets[i]:offsets[i + 1]]``.
        queries: float32 ``[q, d]`` each.
        encoding_ms: the time of a query from its text to its vectors; 0 for vectors that no model made.
    """

    name: str
    rows: np.ndarray
    offsets: np.ndarray
    queries: list[np.ndarray]
    encoding_ms: float = 0.0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def dimensions(self) -> int:
        """``d``."""
        return int(self.rows.shape[1])

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield the records of an indexer; the docno of document ``i`` is ``str(i)``."""
        for first, last in self.pieces():
            rows = np.array(self.rows[self.offsets[first] : self.offsets[last]])
            bounds = (self.offsets[first : last + 1] - self.offsets[first]).tolist()
            for i, (start, end) in enumerate(pairwise(bounds), first):
                yield {"docno": str(i), "doc_embs": rows[start:end]}

    def pieces(self, documents: int = _PIECE) -> Iterator[tuple[int, int]]:
        """Yield the first document of each piece and the one after its last."""
        for first in range(0, len(self), documents):
            yield first, min(first + documents, len(self))

    def document_vectors(self) -> np.ndarray:
        """Return the last row of each document: float32 ``[m, d]``."""
        return np.array(self.rows[self.offsets[1:] - 1])


def synthetic(m: int, queries: int, folder: Path, *, ragged: bool = False) -> Corpus:
    """Draw random unit rows: 16 a document (or 1 to 31), 13 a query."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 2 * ROWS, m) if ragged else np.full(m, ROWS)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    rows = _on_disk(folder / f"{m}.npy", int(offsets[-1]), DIMENSIONS)
    for start in range(0, len(rows), _PIECE * ROWS):
        piece = rows[start : start + _PIECE * ROWS]
        piece[:] = _unit(rng.standard_normal(piece.shape, dtype=np.float32))
    asked = np.random.default_rng(1).standard_normal((queries, QUERY_ROWS, DIMENSIONS), dtype=np.float32)
    return Corpus("synthetic vectors", rows, offsets, list(_unit(asked)))


def grown(
    m: int, queries: int, folder: Path, documents: list[np.ndarray], topics: list[np.ndarray], encoding_ms: float
) -> Corpus:
    """Repeat documents and queries: the first copy without noise, each later one with its own."""
    rng = np.random.default_rng(0)
    lengths = np.array([len(documents[i % len(documents)]) for i in range(m)])
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    rows = _on_disk(folder / f"{m}-own.npy", int(offsets[-1]), documents[0].shape[1])
    for i, (start, end) in enumerate(pairwise(offsets.tolist())):
        rows[start:end] = _near(rng, documents[i % len(documents)], i >= len(documents))
    asked = [_near(rng, topics[i % len(topics)], i >= len(topics)) for i in range(queries)]
    return Corpus("the model's own vectors", rows, offsets, asked, encoding_ms)


def sample(model: str = "mathamr-plus-mini") -> tuple[list[np.ndarray], list[np.ndarray], float]:
    """Encode the posts and topics of the bundled sample by a model, a name or a folder; the topics one at a time."""
    import pyterrier as pt

    import pyterrier_mathamr as mathamr

    dataset = pt.get_dataset("arqmath:sample/task1")
    encoder, graphs = mathamr.MathAMR.from_pretrained(model), mathamr.GraphBuilder()
    found = (graphs >> encoder.doc_encoder())(list(dataset.get_corpus_iter(verbose=False)))
    encode, topics = graphs >> encoder.query_encoder(), dataset.get_topics("text")
    encode(topics.head(1))  # reads the model
    start = time.perf_counter()
    asked = [encode(topics.iloc[[row]])["query_embs"].iloc[0] for row in range(len(topics))]
    return [row["doc_embs"] for row in found], asked, 1000 * (time.perf_counter() - start) / len(topics)


def _near(rng: np.random.Generator, rows: np.ndarray, noisy: bool) -> np.ndarray:
    noise = rng.standard_normal(rows.shape, dtype=np.float32) * (NOISE / np.sqrt(rows.shape[1]))
    return _unit(rows + noise) if noisy else rows


def _unit(rows: np.ndarray) -> np.ndarray:
    unit: np.ndarray = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return unit


def _on_disk(path: Path, rows: int, dimensions: int) -> np.ndarray:
    return np.lib.format.open_memmap(path, "w+", np.float32, (rows, dimensions))
