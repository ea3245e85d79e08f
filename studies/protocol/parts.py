"""The parts of the engine's score for the candidates of many queries, kept in a work folder.

::

    TextArtifacts ── parts_of ──▶ Parts ── ranking(score) ──▶ ranking
    words, vectors, queries       BM25 and MaxSim of each     by any function of these
                                  candidate, once             and of the query

So forms and weights of a score are compared in seconds, and another model costs one pass over the documents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from mathamr_systems.experiments.beir import TextArtifacts, others
from mathamr_systems.experiments.systems import DEPTH
from pyterrier_mathamr._common.frames import ordered_by_score
from pyterrier_mathamr.engine.ranking import BlendedRetriever, Weights
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.posts.topics import distinct_queries

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Parts:
    """Scores of the first 1000 documents by BM25 and the first 1000 by MaxSim of each query.

    Attributes:
        scores: ``qid``, ``docno``, and of each candidate ``bm25`` (tuned for mathematics), ``words`` and
            ``structures`` (both parts of the engine's BM25) and ``graph`` (MaxSim).
        queries: by ``qid`` the bounds of the last three, ``B``, ``T`` and ``V``, the number of ``tokens`` that the
            index has without structures, and ``rarest``, the greatest idf of these.
        qrels: ``qid``, ``docno``, ``label``.
    """

    scores: pd.DataFrame
    queries: pd.DataFrame
    qrels: pd.DataFrame

    def of_query(self, name: str) -> Floats:
        """Return a column of ``queries`` for each candidate: float64 ``[candidates]``."""
        return self.queries[name].reindex(self.scores["qid"]).to_numpy(np.float64)

    def ranking(self, score: Floats) -> pd.DataFrame:
        """Rank the candidates of each query by a score."""
        return ordered_by_score(self.scores[["qid", "docno"]], score)

    def engine(self, weights: Weights) -> Floats:
        """Compute the engine's score: float64 ``[candidates]``."""
        parts, total = (("words", "B"), ("graph", "V"), ("structures", "T")), np.zeros(len(self.scores))
        for weight, (name, bound) in zip(weights.of_query(self.of_query("T")), parts, strict=True):
            most = self.of_query(bound)
            total += weight * self.scores[name].to_numpy() / np.where(most > 0, most, 1.0)
        return total

    def only(self, qids: frozenset[str]) -> Parts:
        """Return the parts of some queries."""
        return Parts(
            self.scores[self.scores["qid"].isin(qids)].reset_index(drop=True),
            self.queries[self.queries.index.isin(qids)],
            self.qrels[self.qrels["qid"].isin(qids)].reset_index(drop=True),
        )


def parts_of(artifacts: TextArtifacts) -> Parts:
    """Score the candidates of all queries, or read what an earlier run kept."""
    collection, stages = artifacts.collection, artifacts.stages
    folder = stages.workdir / f"parts{artifacts.suffix}"
    files = {name: folder / f"{name}.csv.gz" for name in ("scores", "queries")}
    settings = {**collection.origin, "model": artifacts.model.identity, "queries": len(collection.topics)}

    def build() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, frame in zip(files, _scored(artifacts), strict=True):
            frame.to_csv(files[name], index=False, compression={"method": "gzip", "compresslevel": 1})

    stages.run(f"parts{artifacts.suffix}", folder, settings, build)
    scores, queries = (pd.read_csv(file, dtype={"qid": str, "docno": str}) for file in files.values())
    return Parts(scores, queries.set_index("qid"), collection.qrels)


def _scored(artifacts: TextArtifacts) -> tuple[pd.DataFrame, pd.DataFrame]:
    tuned, structured, index, found = artifacts.tuned, artifacts.structured, artifacts.index, artifacts.topics
    encode = found.graphs.loader(side="query") >> artifacts.model.query_encoder()
    encoded = encode(found.topics)
    keys = ["qid", "docno"]
    proposed = (
        tuned.retriever(DEPTH)(found.topics),
        structured.retriever(DEPTH)(found.topics),
        index.colbert(num_results=DEPTH)(encoded),
    )
    candidates = others(pd.concat([each[keys] for each in proposed]).drop_duplicates(), found.qrels)
    candidates = candidates.merge(encoded.drop_duplicates("qid"), on="qid")
    bm25, graph = (one.scorer()(candidates)[[*keys, "score"]] for one in (tuned, index))
    both = bm25.rename(columns={"score": "bm25"}).merge(graph.rename(columns={"score": "graph"}), on=keys)
    engine = BlendedRetriever(structured, index, GraphBuilder(), artifacts.model, Weights(1.0, 1.0, 1.0))
    snapshot, rows, parts = structured.snapshot(), [], []
    of_query = dict(list(both.groupby("qid", sort=False)["docno"]))
    for row in distinct_queries(candidates).to_dict("records"):
        read, docnos = engine.of_row(row), of_query[row["qid"]]
        documents = snapshot.rows_of(docnos.tolist())
        words, structures = (
            read.tokens.scaled(*only).shares(documents).sum(axis=1) for only in ((1.0, 0.0), (0.0, 1.0))
        )
        parts.append(pd.DataFrame({"qid": row["qid"], "docno": docnos, "words": words, "structures": structures}))
        own = read.tokens.of_words
        bounds = (read.tokens.greatest(structures=False), read.tokens.greatest(structures=True), read.bound)
        rows.append((row["qid"], *bounds, int(own.sum()), read.tokens.rarity[own].max(initial=0.0)))
    scores = both.merge(pd.concat(parts, ignore_index=True), on=keys)
    return scores, pd.DataFrame(rows, columns=["qid", "B", "T", "V", "tokens", "rarest"])
