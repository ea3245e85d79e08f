"""The folder of an index in parts: three parts of neighbors, searched by the process that reads them."""

from pathlib import Path

from _vectors import queries, rows, shown

from pyterrier_mathamr import Processes
from pyterrier_mathamr.index import ShardedIndex
from pyterrier_mathamr.index.sharded import filling

open = ShardedIndex
MODES = ("create", "overwrite")  # documents are added to a part and removed from it, which test_sharded_folder tries
_PARTS = 3


def build(path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
    """Fill the parts that a run that died has not finished; an index that exists is replaced."""
    docnos = [f"d{i}" for i in numbers]
    with filling(path, _PARTS, {"seed": seed, "documents": docnos}) as parts:
        for number, part in enumerate(parts):
            if not part.built():
                part.indexer(model="a model", resume=True).index(
                    {"docno": docno, "doc_embs": rows(docno, seed), "formula_ids": [f"{docno}-f"]}
                    for docno in docnos[number::_PARTS]
                )


def read(path: Path) -> object:
    """All documents, and what every search finds."""
    index = ShardedIndex(path, Processes(1))
    documents = [(doc["docno"], doc["doc_embs"].round(5).tolist()) for doc in index.get_corpus_iter()]
    ranking = index.colbert()(queries())
    found = [ranking, index.single_vector()(queries()), index.doc_vn()(queries()), index.scorer()(ranking)]
    return documents, [shown(of) for of in found]
