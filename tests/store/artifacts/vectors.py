"""Indexes of vectors, in parts of two documents; the rows of a document depend on its name and a seed."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch  # noqa: F401 - once, not in each fork of the battery
from artifact_modules import Artifact

from pyterrier_mathamr import Processes
from pyterrier_mathamr.index import ShardedIndex, indexing
from pyterrier_mathamr.index.sharded import filling

WIDTH = 4


def rows(name: str, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, *name.encode()]).standard_normal((3, WIDTH)).astype(np.float32)


def queries() -> pd.DataFrame:
    """A query of three rows, and one of a single row."""
    return pd.DataFrame({"qid": ["1", "2"]}).assign(query_embs=[rows("q1", 7), rows("q2", 7)[:1]])


def shown(ranking: pd.DataFrame) -> object:
    return ranking[["qid", "docno", "rank"]].assign(score=ranking["score"].round(5)).values.tolist()


class OfDocuments(Artifact):
    """An index that is built of documents."""

    PART_BYTES = 2 * 3 * WIDTH * 4

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        corpus = ({"docno": f"d{i}", "seed": seed} for i in numbers)
        indexer = self.open(path).indexer(mode, model="a model", resume=True)
        names = (doc["docno"] for doc in indexer.pending(corpus, 2))
        with mock.patch.object(indexing, "PART_BYTES", self.PART_BYTES):
            indexer.index({"docno": name, **self.document(name, seed)} for name in names)

    def document(self, name: str, seed: int) -> dict[str, Any]:
        return {"doc_embs": rows(name, seed), "formula_ids": [f"{name}-f"]}


class Vectors(OfDocuments, name="vector_index"):
    KIND = "pyterrier_mathamr.index:MathAMRIndex"

    def read(self, path: Path) -> object:
        """All documents, and what every search finds."""
        index = self.open(path)
        documents = [
            (doc["docno"], doc["doc_embs"].round(5).tolist(), doc.get("formula_ids"), doc.get("doc_model"))
            for doc in index.get_corpus_iter()
        ]
        ranking = index.colbert()(queries())
        found = [ranking, index.single_vector()(queries()), index.doc_vn()(queries()), index.scorer()(ranking)]
        return documents, [shown(each) for each in found]


class Formulas(OfDocuments, name="formula_index"):
    """It knows documents by the ids of their formulas."""

    KIND = "pyterrier_mathamr.index:MathAMRFormulaIndex"
    PART_BYTES = 2 * WIDTH * 4

    def document(self, name: str, seed: int) -> dict[str, Any]:
        return {"doc_embs": rows(name, seed), "formula_ids": [name]}

    def read(self, path: Path) -> object:
        """All formulas, and what the search finds."""
        index = self.open(path)
        formulas = [
            (row["docno"], row["post_id"], row["visual_id"], row["formula_vec"].round(5).tolist())
            for row in index.get_corpus_iter()
        ]
        query = pd.DataFrame({"qid": ["1"], "query_formula_id": ["a"]})
        found = index.retriever()(query.assign(query_embs=[rows("q1", 7)], query_formula_ids=[["a"]]))
        return formulas, found["post_id"].tolist(), shown(found)


class Views(OfDocuments, name="marf"):
    """Documents of one to three views."""

    KIND = "mathamr_systems:MaRFIndex"
    PART_BYTES = 1

    def document(self, name: str, seed: int) -> dict[str, Any]:
        number = 1 + int(name[1:]) % 3
        views = [rows(f"{name} {k}", seed) for k in range(number)]
        return {"doc_views": views, "doc_formulas": [f"$x{k}$" for k in range(number)]}

    def read(self, path: Path) -> object:
        """All documents, and what searches find."""
        index = self.open(path)
        documents = [
            (
                doc["docno"],
                [view.round(3).tolist() for view in doc["doc_views"]],
                doc["doc_formulas"],
                doc.get("doc_model"),
            )
            for doc in index.get_corpus_iter()
        ]
        ranking = index.retriever()(queries())
        return documents, [shown(each) for each in (ranking, index.scorer()(ranking))]


class Sharded(Artifact, name="sharded_index"):
    """Three parts, searched by the process that reads them."""

    KIND = "pyterrier_mathamr.index:ShardedIndex"
    MODES = ("create", "overwrite")  # documents are added to a part and removed from it: test_sharded_folder

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        """Fill the parts that a run that died has not finished; an index that exists is replaced."""
        docnos = [f"d{i}" for i in numbers]
        with filling(path, 3, {"seed": seed, "documents": docnos}) as parts:
            for number, part in enumerate(parts):
                if not part.built():
                    part.indexer(model="a model", resume=True).index(
                        {"docno": docno, "doc_embs": rows(docno, seed), "formula_ids": [f"{docno}-f"]}
                        for docno in docnos[number::3]
                    )

    def read(self, path: Path) -> object:
        """All documents, and what every search finds."""
        index = ShardedIndex(path, Processes(1))
        documents = [(doc["docno"], doc["doc_embs"].round(5).tolist()) for doc in index.get_corpus_iter()]
        ranking = index.colbert()(queries())
        found = [ranking, index.single_vector()(queries()), index.doc_vn()(queries()), index.scorer()(ranking)]
        return documents, [shown(each) for each in found]
