"""PyLate's tests of its indexes and retrievers, over `MathAMRIndex` as its index.

``python benchmarks/peers/pylate_suite.py CLONE`` needs a clone of https://github.com/lightonai/pylate, not PyLate
itself. PyLate's retriever, re-ranking and scores are read from the clone. The tests download two models; an encoder
that gives each word a fixed random vector stands in for them, since the index is what is tested.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tally import module, run
from torch.nn.functional import normalize

import pyterrier_mathamr as mathamr

FILES = ("plaid", "fast_plaid", "retriever")


class Index:
    """The interface of PyLate's indexes that score documents; ``override`` removes an existing one."""

    is_end_to_end_index = True

    def __init__(self, index_folder: str, index_name: str, override: bool = False, **_: object) -> None:
        path = Path(index_folder) / index_name
        if override:
            shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(exist_ok=True)
        self.vectors = mathamr.MathAMRIndex(path)

    def add_documents(self, documents_ids: Sequence[str], documents_embeddings: Any, **_: object) -> Index:
        rows = zip(documents_ids, _matrices(documents_embeddings), strict=True)
        indexer = self.vectors.indexer("append" if self.vectors.built() else "create", dtype="float32")
        indexer.index({"docno": docno, "doc_embs": embeddings} for docno, embeddings in rows)
        return self

    def remove_documents(self, documents_ids: Sequence[str]) -> None:
        self.vectors.delete(documents_ids)

    def __call__(self, queries_embeddings: Any, k: int = 10, subset: Any = None) -> list[list[dict[str, Any]]]:
        matrices = _matrices(queries_embeddings)
        queries = pd.DataFrame({"qid": [str(i) for i in range(len(matrices))]})
        queries["query_embs"] = pd.Series(matrices, dtype=object)
        hits = self.vectors.retriever(num_results=k)(queries)
        return [
            [{"id": hit.docno, "score": hit.score} for hit in hits[hits["qid"] == qid].itertuples()]
            for qid in queries["qid"]
        ]

    def get_documents_embeddings(self, documents_ids: list[list[str]]) -> list[list[np.ndarray[Any, Any]]]:
        load = self.vectors.vec_loader()
        return [list(load(pd.DataFrame({"docno": some}))["doc_embs"]) for some in documents_ids]


class TokenIndex(Index):
    """The interface of PyLate's indexes that find documents for each row of a query, which PyLate then re-ranks."""

    is_end_to_end_index = False

    def __call__(self, queries_embeddings: Any, k: int = 10, subset: Any = None) -> Any:
        of_rows = [Index.__call__(self, [row[None] for row in rows], k) for rows in _matrices(queries_embeddings)]
        return {
            kind: [[[hit[key] for hit in hits] for hits in query] for query in of_rows]
            for kind, key in (("documents_ids", "id"), ("distances", "score"))
        }


def _matrices(embeddings: Any) -> list[np.ndarray[Any, Any]]:
    """Return the rows of each text, of unit length, also where one text is given by itself."""
    several = [embeddings] if getattr(embeddings, "ndim", 0) == 2 else embeddings
    return [normalize(torch.as_tensor(each).float(), dim=-1).numpy() for each in several]


class ColBERT:
    """The interface of ``pylate.models.ColBERT``: one vector for each word."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def encode(self, sentences: str | list[str], convert_to_tensor: bool = False, **_: object) -> Any:
        if isinstance(sentences, list):
            return [self.encode(text, convert_to_tensor) for text in sentences]
        rows = np.array([self._vector(word) for word in re.findall(r"\w+", sentences.lower())], dtype=np.float32)
        return torch.from_numpy(rows) if convert_to_tensor else rows

    def _vector(self, word: str) -> list[float]:
        draw = random.Random(word)
        return [draw.gauss(0, 1) for _ in range(128)]


if __name__ == "__main__":
    clone = Path(sys.argv[1]).absolute()
    sys.path.insert(0, str(clone))
    import_module("pylate")
    for package in (
        module("pylate.indexes", PLAID=Index, Voyager=TokenIndex),
        module("pylate.models", ColBERT=ColBERT),
        module("pylate.utils"),
    ):  # other modules of the clone import these without the libraries that they need
        package.__path__ = [str(clone / package.__name__.replace(".", "/"))]
    for source, function in (("iter_batch", "iter_batch"), ("tensor", "convert_to_tensor")):
        found = getattr(import_module(f"pylate.utils.{source}"), function)
        setattr(sys.modules["pylate.utils"], function, found)
    run(clone, [f"tests/test_{name}.py" for name in FILES])
