"""Our pipelines as search models of MTEB, so that they can be measured on its tasks and put on its leaderboards.

MTEB asks a search model to index a corpus and then to search it. A function from documents and a folder to a
transformer decides what is indexed and by which pipeline it is searched::

    corpus ──▶ build(documents, folder) ──▶ pipeline ──▶ search(queries) ──▶ {query: {document: score}}
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.extending import ConfigError, require
from pyterrier_mathamr.fusion import ZScoreFusion
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import DEFAULT_MODEL, MathAMR
from pyterrier_mathamr.sparse import BM25Index

BuildIndex = Callable[[Iterable[dict[str, str]], Path], pt.Transformer]
"""From documents (``docno``, ``text``, and ``title`` where there is one) and an empty folder to a pipeline."""

SearchWay = Literal["bm25", "single", "colbert", "fused"]
DEPTH = 1000


class MTEBSearch:
    """A pipeline as a search model of MTEB (``mteb.models.SearchProtocol``).

    Args:
        build: indexes documents and returns the pipeline, from ``qid`` and ``query`` to a ranking.
        name: the name under which results are kept, such as ``mathamr/my-pipeline``.
        workdir: where indexes are made, each in a separate folder; by default temporary folders, which are removed
            with this object.
        meta: further fields of ``mteb.ModelMeta``, such as ``training_datasets``.

    Raises:
        MissingExtraError: mteb is not installed.

    To evaluate a model::

        model = MTEBSearch.of_model("mathamr-plus-text", way="fused")
        mteb.evaluate(model, mteb.get_tasks(tasks=["ARCChallenge"]))
    """

    def __init__(
        self, build: BuildIndex, name: str, *, workdir: str | Path | None = None, meta: Mapping[str, Any] | None = None
    ) -> None:
        self._build, self.name = build, name
        self._temporary = tempfile.TemporaryDirectory() if workdir is None else None
        self._workdir = Path(self._temporary.name if self._temporary else workdir or "")
        self._pipeline: pt.Transformer | None = None
        described = require("mteb.models.model_meta", "mteb").ModelMeta
        self._meta = described.create_empty({"name": name, "framework": ["PyTorch"], **(meta or {})})

    @classmethod
    def of_model(
        cls, model: str = DEFAULT_MODEL, way: SearchWay = "colbert", *, weight: float = 0.5, **options: Any
    ) -> MTEBSearch:
        """Search with a trained model, with BM25, or with both.

        Args:
            model: name or folder.
            way: ``colbert``, ``single``, ``bm25``, or ``fused`` for BM25 and ``colbert``.
            weight: of the model in a fusion.
            options: ``workdir`` and ``meta``.

        Raises:
            ConfigError: there is no such way. MissingExtraError: mteb is not installed.
        """
        types = {"bm25": "sparse", "single": "dense", "colbert": "late-interaction", "fused": "hybrid"}
        if way not in types:
            raise ConfigError("way", way, f"one of {', '.join(types)}")

        def build(documents: Iterable[dict[str, str]], folder: Path) -> pt.Transformer:
            return pipeline(documents, folder, model, way, weight)

        meta = {"model_type": [types[way]], **(options.pop("meta", None) or {})}
        return cls(build, f"mathamr/{Path(model).name}-{way}", meta=meta, **options)

    @property
    def mteb_model_meta(self) -> Any:
        """The ``mteb.ModelMeta``."""
        return self._meta

    def index(self, corpus: Iterable[Mapping[str, Any]], **_: Any) -> None:
        """Index a corpus.

        Args:
            corpus: rows with ``id``, ``text``, and ``title`` where there is one.
        """
        self._workdir.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="corpus-", dir=self._workdir))
        self._pipeline = self._build(map(_document, corpus), folder)

    def search(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """Search the corpus that was indexed last.

        Args:
            queries: rows with ``id`` and ``text``.
            top_k: documents for each query.
            top_ranked: the documents to rank for each query, in reranking tasks; documents that the pipeline does not
                find come last, in their order.

        Returns:
            Query id to document id to score.

        Raises:
            ConfigError: no corpus was indexed.
        """
        if self._pipeline is None:
            raise ConfigError("corpus", None, "a corpus to index() first")
        topics = pd.DataFrame([(str(row["id"]), str(row["text"])) for row in queries], columns=["qid", "query"])
        found: dict[str, dict[str, float]] = {qid: {} for qid in topics["qid"]}
        ranking = self._pipeline(topics).sort_values(["qid", "rank"])
        for qid, docno, score in zip(ranking["qid"], ranking["docno"], ranking["score"], strict=True):
            found[qid][docno] = float(score)
        if top_ranked is not None:
            found = {qid: _among(scores, top_ranked.get(qid, ())) for qid, scores in found.items()}
        return {qid: dict(list(scores.items())[:top_k]) for qid, scores in found.items()}


def pipeline(
    documents: Iterable[dict[str, str]], folder: Path, model: str, way: SearchWay, weight: float = 0.5
) -> pt.Transformer:
    """Index documents in a folder and return the pipeline that searches them."""
    texts = list(documents)
    bm25 = BM25Index(folder / "documents.bm25", preset="math")
    if way in ("bm25", "fused"):
        bm25.index(texts)
        if way == "bm25":
            return bm25.retriever(DEPTH)
    encoder, index = MathAMR.from_pretrained(model), MathAMRIndex(folder / "documents.mathamr")
    graphs = GraphBuilder(reads=encoder.reads)
    (graphs >> encoder.doc_encoder() >> index.indexer()).index(texts)
    encode = graphs >> encoder.query_encoder()
    if way == "single":
        return encode >> index.single_vector(num_results=DEPTH)
    colbert = encode >> index.colbert(num_results=DEPTH)
    return colbert if way == "colbert" else ZScoreFusion(bm25.retriever(DEPTH), colbert, weight=weight)


def _document(row: Mapping[str, Any]) -> dict[str, str]:
    title = {"title": str(row["title"])} if row.get("title") else {}
    return {"docno": str(row["id"]), **title, "text": str(row["text"])}


def _among(scores: Mapping[str, float], asked: Sequence[str]) -> dict[str, float]:
    """Keep the requested documents, best first; documents without a score are last."""
    wanted = set(asked)
    kept = {docno: score for docno, score in scores.items() if docno in wanted}
    lowest = min(scores.values(), default=0.0)
    others = (docno for docno in asked if docno not in kept)
    return {**kept, **{docno: lowest - place for place, docno in enumerate(others, start=1)}}
