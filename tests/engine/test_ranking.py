"""The engine's ranking against brute force: every document scored, and the best of the candidates sorted."""

from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr.engine.ranking import BlendedRetriever, ReadQuery, Weights
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.index.search import folder
from pyterrier_mathamr.sparse import BM25Index

WORDS = [f"word{i}" for i in range(40)]
FORMULAS = ["$x^2+1$", "$t^2+1=0$", "$\\frac{a}{b}$", "$k$"]
QUERIES = [
    "word1", "word2 word3 word3", "word4 word5 word6 word7 word8", "unknown", "word9 unknown",
    "word1 $y^2+1$", "$q^2+1=0$ and $\\frac{u}{v}$",
]  # fmt: skip
WEIGHTS = Weights(words=0.3, graph=0.7, structures=0.2)
PARTS = (200, 60)


@pytest.fixture(scope="module")
def retriever(tmp_path_factory) -> BlendedRetriever:
    """A retriever over two parts with deleted and with equal documents."""
    path, rng = tmp_path_factory.mktemp("ranking"), np.random.default_rng(3)
    bm25, vectors = BM25Index(path / "bm25", preset="structures"), MathAMRIndex(path / "vectors")
    first = 0
    for mode, count in zip(("create", "append"), PARTS, strict=True):
        docnos = rng.permutation([f"d{first + i:03}" for i in range(count)]).tolist()
        texts = {docno: " ".join(rng.choice(WORDS + FORMULAS, rng.integers(3, 9))) for docno in docnos}
        rows = {docno: rng.normal(size=(rng.integers(1, 5), 8)).astype(np.float32) for docno in docnos}
        for copy in docnos[: count // 4]:  # ties, of words and of vectors
            texts[copy], rows[copy] = texts[docnos[-1]], rows[docnos[-1]]
        bm25.indexer(mode).index([{"docno": docno, "text": text} for docno, text in texts.items()])
        unit = {docno: of / np.linalg.norm(of, axis=1, keepdims=True) for docno, of in reversed(rows.items())}
        vectors.indexer(mode).index([{"docno": docno, "doc_embs": of} for docno, of in unit.items()])
        first += count
    for index in (bm25, vectors):
        index.delete(["d003", "d150", "d220"])
    return BlendedRetriever(bm25, vectors, cast("Any", None), cast("Any", None), WEIGHTS)


def row_of(query: str) -> dict[str, Any]:
    rng = np.random.default_rng(len(query))
    rows = rng.normal(size=(3, 8)).astype(np.float32)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return {
        "qid": "q", "query": query, "query_embs": unit, "query_weights": np.array([0.5, 1.0, 2.0]),
        "query_document_weight": 0.25,
    }  # fmt: skip


def everything(retriever: BlendedRetriever, query: ReadQuery, among: list[str]) -> pd.DataFrame:
    """Score documents by both systems, by the words of the blend, and by the blend."""
    ranking = pd.DataFrame([{**query.row, "docno": docno} for docno in among])
    bm25, graph = (
        scorer(ranking).set_index("docno")["score"].reindex(among)
        for scorer in (retriever.bm25.scorer(), retriever.vectors.scorer())
    )
    documents = retriever.bm25.snapshot().rows_of(among)
    tokens = query.tokens.shares(documents)
    of_words, greatest = query.tokens.of_words, 0.5 + 1.0 + 2.0 + 0.25
    most = query.tokens.greatest(structures=True)
    w, v, t = 0.3, 0.7, 0.2 * most / (most + 400)
    words = w * tokens[:, of_words].sum(axis=1) / (query.tokens.greatest(structures=False) or 1.0)
    words += t * tokens[:, ~of_words].sum(axis=1) / (most or 1.0)
    blend = 100 * (words + v * graph / greatest) / (w + v + t)
    return pd.DataFrame({"bm25": bm25, "mathamr": graph, "words": words, "blend": blend})


def best(scores: pd.Series, count: int) -> list[str]:
    return sorted(scores.index, key=lambda docno: (-scores[docno], docno))[:count]


@pytest.mark.parametrize("codes", [True, False])
@pytest.mark.parametrize("some", [None, 100, 1])
def test_the_ranking_is_that_of_all_candidates_scored_and_sorted(retriever, monkeypatch, codes, some) -> None:
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: codes)
    docnos = sorted(retriever.bm25.snapshot())
    among = docnos if some is None else docnos[::3][:some]
    documents = None if some is None else np.sort(retriever.documents(among))
    for query in map(retriever.of_row, map(row_of, QUERIES)):
        scores = everything(retriever, query, among)
        for candidates in (1, 4, 30, 1000):
            retriever.candidates = candidates
            proposed = {*best(scores["words"][scores["words"] > 0], candidates), *best(scores["mathamr"], candidates)}
            allowed = {
                "blend": scores.loc[sorted(proposed), "blend"], "mathamr": scores["mathamr"],
                "bm25": scores["bm25"][scores["bm25"] > 0].astype(np.float32),
            }  # fmt: skip
            for count in (1, 5, 50, 1000):
                for system, of in allowed.items():
                    found, values = retriever.best(query, count, system, documents)
                    assert retriever.docnos(found) == best(of, count), (system, candidates, count)
                    assert values == pytest.approx(of[best(of, count)].to_numpy(), rel=1e-6)


@pytest.mark.parametrize(("long", "by_codes"), [(1 << 19, [False, True, True]), (100, [True, True, True])])
def test_the_first_scan_of_an_index_is_in_float32_unless_it_is_long(retriever, monkeypatch, long, by_codes) -> None:
    snapshot = MathAMRIndex(retriever.vectors.path).snapshot()
    query, scanned = retriever.of_row(row_of(QUERIES[1])), []
    scan_codes = folder.scan_codes
    monkeypatch.setattr(folder, "scan_codes", lambda *of: scanned.append(True) or scan_codes(*of))
    monkeypatch.setattr(folder, "_codes_pay", lambda *of: True)
    monkeypatch.setattr(folder, "_LONG", long)
    found = []
    for _ in by_codes:
        before = len(scanned)
        least, most = snapshot.bounds(query.vectors, 5)
        found.append(len(scanned) > before)
        exact = snapshot.score(query.vectors, [snapshot.live])[0]
        assert ((least <= exact) & (exact <= most)).all()
    assert found == by_codes


def test_any_document_has_the_score_that_the_ranking_gives_it_and_a_blank_query_finds_nothing(retriever) -> None:
    query = retriever.of_row(row_of(QUERIES[1]))
    retriever.candidates = 1000
    found, scores = retriever.best(query, 1000)
    assert retriever.score(query, found).tolist() == scores.tolist()
    explained = [retriever.explain(row_of(QUERIES[1]), docno).score for docno in retriever.docnos(found[:5])]
    assert explained == pytest.approx(scores[:5].tolist())
    blank = retriever.of_row({"qid": "q", "query": "", "query_embs": np.empty((0, 8), np.float32)})
    for system in ("blend", "bm25", "mathamr"):
        assert len(retriever.best(blank, 10, system)[0]) == 0
    assert retriever.score(blank, found[:2]).tolist() == [0.0, 0.0]


def test_a_query_without_vectors_is_ranked_by_words(retriever) -> None:
    query = retriever.of_row({"qid": "q", "query": QUERIES[2], "query_embs": np.empty((0, 8), np.float32)})
    by_words, blended = (retriever.best(query, 7, system) for system in ("bm25", "blend"))
    assert by_words[0].tolist() == blended[0].tolist()
    assert blended[1] == pytest.approx(100 * 0.3 * by_words[1] / query.tokens.greatest())
    assert len(retriever.best(query, 7, "mathamr")[0]) == 0
