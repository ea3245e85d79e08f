"""Collections of ragged unit vectors, and MaxSim by the plainest loop, in double precision, as judge."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr import Processes
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex, QdrantIndex, ShardedIndex, indexing


def unit_rows(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    rows = rng.standard_normal((n, d))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="session")
def documents() -> Callable[..., list[dict[str, Any]]]:
    """Makes documents ``d0``, ``d1``, … with as many rows as given."""

    def make(lengths: Sequence[int], d: int = 8, seed: int = 0, name: str = "d") -> list[dict[str, Any]]:
        rng = np.random.default_rng(seed)
        return [{"docno": f"{name}{i}", "doc_embs": unit_rows(rng, n, d)} for i, n in enumerate(lengths)]

    return make


@pytest.fixture(scope="session")
def topics() -> Callable[..., pd.DataFrame]:
    """Makes queries ``q0``, ``q1``, … with as many rows as given."""

    def make(lengths: Sequence[int], d: int = 8, seed: int = 1) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        qids = [f"q{i}" for i in range(len(lengths))]
        frame = pd.DataFrame({"qid": qids, "query": [f"text of {qid}" for qid in qids]})
        return frame.assign(query_embs=pd.Series([unit_rows(rng, n, d) for n in lengths], dtype=object))

    return make


def ranked(
    query: np.ndarray, docs: Sequence[dict[str, Any]], weights: Any = None, blend: float = 0.0
) -> list[tuple[str, float]]:
    """Rank documents by S(Q, D) = Σᵢ wᵢ maxⱼ qᵢ · dⱼ + a q_doc · d_doc, one product at a time; ties by docno."""
    scores = []
    for doc in docs:
        products = [[float(np.dot(q.astype(float), row.astype(float))) for row in doc["doc_embs"]] for q in query]
        best = [weight * max(of_row) for weight, of_row in zip(weights or [1.0] * len(query), products, strict=True)]
        scores.append((doc["docno"], float(np.float32(sum(best) + blend * products[-1][-1]))))
    return sorted(scores, key=lambda found: (-found[1], found[0]))


@pytest.fixture(scope="session")
def judge() -> Callable[..., list[tuple[str, float]]]:
    """Ranks documents by the plainest loop."""
    return ranked


@pytest.fixture(scope="session")
def assert_ranked() -> Callable[..., None]:
    """Compares rankings of queries, weighted or not, with the plainest loop over documents."""

    def compare(found: pd.DataFrame, frame: pd.DataFrame, docs: Sequence[dict[str, Any]], k: int) -> None:
        for asked in frame.to_dict("records"):
            weights = asked.get("query_weights")
            own = None if weights is None else list(weights)
            true = ranked(asked["query_embs"], docs, own, asked.get("query_document_weight", 0.0))[:k]
            rows = found[found["qid"] == asked["qid"]]
            assert rows["docno"].tolist() == [docno for docno, _ in true]
            assert rows["score"].tolist() == pytest.approx([score for _, score in true], abs=2e-6)

    return compare


@pytest.fixture(scope="session")
def weigh() -> Callable[..., pd.DataFrame]:
    """Gives queries a random weight for each row, and the given weights of the documents' product."""

    def make(frame: pd.DataFrame, blends: Sequence[float], seed: int = 3) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        weights = pd.Series([rng.uniform(-1, 3, len(rows)) for rows in frame["query_embs"]], dtype=object)
        return frame.assign(query_weights=weights, query_document_weight=blends)

    return make


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory, documents: Callable[..., Any]) -> MathAMRIndex:
    """Twelve documents of one to five rows in eight dimensions, which no test changes."""
    path = tmp_path_factory.mktemp("session") / "some.mathamr"
    return MathAMRIndex(path).index(documents([1, 3, 2, 5, 1, 4, 3, 2, 2, 5, 1, 4]))


@pytest.fixture
def part_rows(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Closes the parts of both indexes after so many rows of ``d`` dimensions; none of that size is merged."""

    def cut(rows: int, d: int = 8) -> None:
        monkeypatch.setattr(indexing, "PART_BYTES", 4 * rows * d)
        for kind in (MathAMRIndex, MathAMRFormulaIndex):
            monkeypatch.setattr(kind, "KIND", replace(kind.KIND, part_bytes=4 * rows * d))

    return cut


@pytest.fixture
def elsewhere(tmp_path: Path) -> Callable[..., ShardedIndex | QdrantIndex]:
    """Stores documents in two ``parts``, or in ``qdrant``."""

    def store(where: str, docs: Sequence[dict[str, Any]]) -> ShardedIndex | QdrantIndex:
        if where == "qdrant":
            pytest.importorskip("qdrant_client", reason="needs the extra qdrant")
            return QdrantIndex(tmp_path / "qdrant", "some").index(docs)
        half = len(docs) // 2
        for part, some in enumerate((docs[:half], docs[half:])):
            MathAMRIndex(tmp_path / f"{part}").index(some)
        return ShardedIndex([tmp_path / "0", tmp_path / "1"], Processes(1))

    return store
