"""An index of MaRF: documents of one to three views."""

from pathlib import Path
from unittest import mock

from _vectors import queries, rows, shown

from mathamr_systems import MaRFIndex
from pyterrier_mathamr.index import indexing

open = MaRFIndex


def build(path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
    corpus = ({"docno": f"d{i}", "seed": seed} for i in numbers)
    indexer = MaRFIndex(path).indexer(mode, model="a model", resume=True)
    documents = ({"docno": doc["docno"], **_views(doc["docno"], seed)} for doc in indexer.pending(corpus, 2))
    with mock.patch.object(indexing, "PART_BYTES", 1):
        indexer.index(documents)


def read(path: Path) -> object:
    """All documents, and what searches find."""
    index = MaRFIndex(path)
    documents = [
        (doc["docno"], [view.round(3).tolist() for view in doc["doc_views"]], doc["doc_formulas"], doc.get("doc_model"))
        for doc in index.get_corpus_iter()
    ]
    ranking = index.retriever()(queries())
    return documents, [shown(of) for of in (ranking, index.scorer()(ranking))]


def _views(docno: str, seed: int) -> dict[str, object]:
    number = 1 + int(docno[1:]) % 3
    return {
        "doc_views": [rows(f"{docno} {k}", seed) for k in range(number)],
        "doc_formulas": [f"$x{k}$" for k in range(number)],
    }
