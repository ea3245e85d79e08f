from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import ir_datasets
import pyterrier as pt
from ir_datasets.formats import BaseQrels, JsonlDocs, JsonlQueries, TrecQrel
from ir_datasets.indices import DEFAULT_DOCSTORE_OPTIONS
from ir_datasets.util import home_path
from ir_datasets.util.download import LocalDownload
from ir_measures import RR, nDCG
from pyterrier import Transformer
from suiteeval.context import DatasetContext
from suiteeval.suite.base import Suite

datasets = [
    "math/planetmath-defines",
    "math/statement-to-proof",
    "math/mathlibqr-styles",
    "math/formula-concepts",
]

measures = [nDCG @ 10, RR @ 10]


class MathDoc(NamedTuple):
    doc_id: str
    title: str
    text: str

    def default_text(self):
        """
        title text
        """
        return f"{self.title} {self.text}".strip()


class _File:
    """A file of a collection: in the folder that was given for it, or below the home of ir_datasets."""

    folders: dict = {}

    def __init__(self, collection: str, name: str):
        self._collection = collection
        self._name = name

    def path(self, force: bool = True) -> Path:
        folder = self.folders.get(self._collection, home_path() / self._collection)
        message = f"{self._collection} is not downloaded by programs. Place or link its files here: {folder}"
        return Path(LocalDownload(folder / self._name, message, mkdir=False).path(force))

    def stream(self):
        return self.path().open("rb")


class _Docs(JsonlDocs):
    def docs_store(self, field="doc_id", options=DEFAULT_DOCSTORE_OPTIONS):
        source = self.docs_path(force=False)
        name = sha256(str(source.resolve()).encode()).hexdigest()[:16]  # the folder itself may not be writable
        self._docstore_path = str(home_path() / "math" / f"{name}.pklz4")
        return super().docs_store(field, options)


class _TsvQrels(BaseQrels):
    """The qrels of BEIR's layout: a header, then query, document and grade, separated by tabs."""

    def __init__(self, file: _File):
        self._file = file

    def qrels_iter(self):
        with self._file.path().open(encoding="utf-8") as lines:
            next(lines, None)
            for line in lines:
                query_id, doc_id, relevance = line.rstrip("\n").split("\t")
                yield TrecQrel(query_id, doc_id, int(relevance), "0")

    def qrels_defs(self):
        return {1: "relevant"}

    def qrels_cls(self):
        return TrecQrel


def _register(name: str) -> None:
    corpus, queries, qrels = (_File(name, file) for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"))
    dataset = ir_datasets.Dataset(
        _Docs(corpus, MathDoc, {"doc_id": "_id", "title": "title", "text": "text"}, lang="en"),
        JsonlQueries(queries, mapping={"query_id": "_id", "text": "text"}, lang="en"),
        _TsvQrels(qrels),
    )
    ir_datasets.registry.register(name, dataset)


for _name in datasets:
    if _name not in ir_datasets.registry:
        _register(_name)


def use_folder(name: str, folder: str | Path) -> None:
    """
    Read a collection of the suite from a folder in BEIR's layout.

    Args:
        name: Dataset identifier, such as ``"math/planetmath-defines"``.
        folder: A folder with ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv``.

    Raises:
        ValueError: The suite has no such collection.
    """
    if name not in datasets:
        raise ValueError(f"{name!r} is none of the collections of this suite: {', '.join(datasets)}")
    _File.folders[name] = Path(folder)


def _drop_own_document(results):
    """Drop documents that are the query itself."""
    return results[results["qid"] != results["docno"]]


class _MATH(Suite):
    """
    MATH suite for evaluating retrieval of mathematical text and formulas.

    A term finds the entry that defines it, a statement its proof, a description a formal statement, and a formula
    the same equation in other notation. Place the collections below ``~/.ir_datasets/math``, or name a folder with
    :func:`use_folder`.

    Example:
        from suiteeval.suite import MATH
        results = MATH(pipeline)
    """

    _datasets = datasets
    _measures = measures
    _metadata = {
        "official_measures": measures,
        "description": "MATH is a suite of four collections of mathematical text and formulas.",
    }
    _query_field = "text"

    def wrap_pipeline(self, pipeline: Transformer, context: DatasetContext) -> Transformer:
        """Drop a query's own document where queries are documents, and no query's own document is relevant."""
        qrels = context.dataset.get_qrels()
        if (qrels["qid"] == qrels["docno"]).any():
            return pipeline
        return pipeline >> pt.apply.generic(_drop_own_document)


MATH = _MATH()

__all__ = ["MATH", "use_folder"]
