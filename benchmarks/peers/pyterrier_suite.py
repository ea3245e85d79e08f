"""PyTerrier's tests of experiments, equality, inspection, pickling and indexing, over our BM25 instead of Terrier's.

``python benchmarks/peers/pyterrier_suite.py CLONE`` needs a clone of https://github.com/terrier-org/pyterrier, whose
test data it reads, and neither Java nor a network. Terrier's retriever, its indexer and its index become a `BM25Index`;
each of Terrier's weighting models becomes one of our weightings, so that different models are different systems.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyterrier as pt
from tally import run

import pyterrier_mathamr as mathamr

FILES = (
    *("experiment_linear", "experiment_tree", "experiment_other", "equality", "inspect", "pickle"),
    *("index_op", "indexpipelines", "indexer", "pipelines"),
)
WEIGHTINGS: dict[str, dict[str, Any]] = {
    "BM25": {},
    "TF_IDF": {"weighting": "tf-idf"},
    "DPH": {"k1": 1.2, "b": 0.5},
    "PL2": {"k1": 0.5, "b": 0.2},
}


class Index(mathamr.BM25Index):
    """Our index with the two methods of Terrier's that the tests call."""

    def getCollectionStatistics(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(getNumberOfDocuments=lambda: len(self))

    def close(self) -> None:
        pass


class Vaswani:
    """The collection in the test data of PyTerrier, read without Java."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index: Index | None = None

    def get_corpus_iter(self, count: int | None = None, **_: object) -> list[dict[str, str]]:
        text = (self.folder / "corpus" / "doc-text.trec").read_text("utf-8")
        found = re.findall(r"<DOCNO>(\d+)</DOCNO>\s*(.*?)\s*</DOC>", text, re.DOTALL)
        return [{"docno": docno, "text": text} for docno, text in found[:count]]

    def get_topics(self, variant: str | None = None) -> pd.DataFrame:
        text = (self.folder / "query_light.trec").read_text("utf-8").lower()
        found = re.findall(r"<num>\s*(\d+)\s*</num>\s*<title>\s*(.*?)\s*</title>", text, re.DOTALL)
        return pd.DataFrame(found, columns=["qid", "query"])

    def get_qrels(self, variant: str | None = None) -> pd.DataFrame:
        names = ["qid", "iteration", "docno", "label"]
        read = pd.read_csv(self.folder / "qrels", sep=r"\s+", names=names, dtype={"qid": str, "docno": str})
        return read.drop(columns="iteration")

    def get_index(self, *_: object, **__: object) -> Index:
        if self.index is None:
            self.index = Index(Path(tempfile.mkdtemp()) / "vaswani").index(self.get_corpus_iter())
        return self.index

    def text_loader(self, *_: object, **__: object) -> pt.Transformer:
        texts = {document["docno"]: document["text"] for document in self.get_corpus_iter()}
        return pt.apply.text(lambda row: texts[row["docno"]])


def main(clone: Path) -> None:
    vaswani = Vaswani(clone / "tests" / "fixtures" / "vaswani_npl")

    def opened(index: object) -> Index:
        if isinstance(index, Index):
            return index
        return vaswani.get_index() if str(index).endswith("data.properties") else Index(str(index))

    def retriever(index: object, wmodel: object = "BM25", num_results: int = 1000, **_: object) -> pt.Transformer:
        return opened(index).retriever(num_results=num_results, **WEIGHTINGS[str(wmodel)])

    def get_dataset(name: str, **options: object) -> Any:
        return vaswani if name in ("vaswani", "irds:vaswani") else known(name, **options)

    known = pt.get_dataset
    pt.get_dataset = pt.datasets.get_dataset = get_dataset
    pt.terrier.Retriever = retriever
    pt.terrier.TerrierIndex = Index
    pt.IndexFactory = SimpleNamespace(of=opened)
    pt.IterDictIndexer = lambda path, **_: Index(path).indexer()
    pt.java.autoclass = lambda name: SimpleNamespace(of=opened)
    pt.java.init = pt.java.set_log_level = lambda *_: None
    run(clone, [f"tests/test_{name}.py" for name in FILES])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
