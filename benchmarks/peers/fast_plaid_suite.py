"""fast-plaid's tests, over `MathAMRIndex` behind fast-plaid's interface.

``python benchmarks/peers/fast_plaid_suite.py CLONE`` needs a clone of https://github.com/lightonai/fast-plaid, and not
fast-plaid itself. Its documents are numbered, and numbered again after each deletion. Its metadata are kept columns of
our index, and its conditions in SQL become `where=`. Vectors are scaled to unit length, as all of ours are; options
that tune PLAID's approximation (`nbits`, `n_ivf_probe`, …) change nothing, since the search is exact.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tally import module, run
from torch.nn.functional import normalize

import pyterrier_mathamr as mathamr

TUNING = {
    "kmeans_niters",
    "nbits",
    "n_ivf_probe",
    "n_full_scores",
    "batch_size",
    "show_progress",
    "seed",
    "max_points_per_centroid",
}


Metadata = list[dict[str, Any]]


def vectors_of(index: str) -> mathamr.MathAMRIndex:
    return mathamr.MathAMRIndex(Path(index) / "vectors")


def entries(index: str) -> list[dict[str, Any]]:
    """The documents by number."""
    return sorted(vectors_of(index).get_corpus_iter(), key=lambda row: row["docno"])


def add(index: str, documents: Sequence[Any], metadata: Metadata | None) -> None:
    """Append documents; for columns that are new, build the index again."""
    vectors, old = vectors_of(index), []
    if vectors.built():
        old = entries(index)
    kept = list(vectors.snapshot().meta.keep) if old else []
    keep = list(dict.fromkeys([*kept, *(name for of in metadata or [] for name in of)]))
    first = int(old[-1]["docno"]) + 1 if old else 0
    rows = [{**dict.fromkeys(keep), "docno": f"{first + i:06}", "doc_embs": of} for i, of in enumerate(documents)]
    for row, of in zip(rows, metadata or [], strict=False):
        row |= {name: str(value) if isinstance(value, date) else value for name, value in of.items()}
    again = keep != kept
    old = [{**dict.fromkeys(keep), **row} for row in old]
    mode: Any = "overwrite" if again else "append"
    vectors.indexer(mode, dtype="float32", keep=keep or None).index([*old, *rows] if again else rows)


class Filtering:
    """The functions of ``fast_plaid.filtering``."""

    @staticmethod
    def create(index: str, metadata: Metadata) -> None:
        shutil.rmtree(vectors_of(index).path, ignore_errors=True)
        Filtering.update(index, metadata)

    @staticmethod
    def update(index: str, metadata: Metadata) -> None:
        add(index, [np.ones((1, 1), dtype=np.float32)] * len(metadata), metadata)

    @staticmethod
    def delete(index: str, subset: list[int]) -> None:
        rows = entries(index)
        vectors_of(index).delete([rows[number]["docno"] for number in subset])

    @staticmethod
    def where(index: str, condition: str, parameters: Sequence[Any] = ()) -> list[int]:
        vectors, values = vectors_of(index), iter(parameters)
        condition = re.sub(r"(?<![<>])=", "==", condition).replace(" AND ", " & ").replace(" OR ", " | ")
        condition = re.sub(r"\?", lambda _: repr(next(values)), condition)
        queries = pd.DataFrame({"qid": ["1"]}).assign(query_embs=[vectors.snapshot().rows(np.array([0]))[0]])
        found = set(vectors.retriever(where=condition, num_results=len(vectors))(queries)["docno"])
        return [number for number, row in enumerate(entries(index)) if row["docno"] in found]

    @staticmethod
    def get(
        index: str, condition: str | None = None, parameters: Sequence[Any] = (), subset: list[int] | None = None
    ) -> Metadata:
        rows, keep = entries(index), vectors_of(index).snapshot().meta.keep
        numbers = range(len(rows)) if subset is None else subset
        numbers = numbers if condition is None else Filtering.where(index, condition, parameters)
        return [{"_subset_": number, **{name: rows[number].get(name) for name in keep}} for number in numbers]


class FastPlaid:
    """The interface of ``fast_plaid.search.FastPlaid``."""

    def __init__(self, index: str, device: str = "cpu", **_: object) -> None:
        self.index = index

    def create(
        self, documents_embeddings: Sequence[torch.Tensor], metadata: Metadata | None = None, **options: object
    ) -> None:
        shutil.rmtree(vectors_of(self.index).path, ignore_errors=True)
        self.update(documents_embeddings, metadata, **options)

    def update(
        self, documents_embeddings: Sequence[torch.Tensor], metadata: Metadata | None = None, **options: object
    ) -> None:
        if unknown := set(options) - TUNING:
            raise TypeError(f"our index has no option {sorted(unknown)}")
        add(self.index, list(map(_unit, documents_embeddings)), metadata)
        self._count()

    def delete(self, subset: list[int]) -> None:
        Filtering.delete(self.index, subset)
        self._count()

    def _count(self) -> None:
        (Path(self.index) / "metadata.json").write_text(json.dumps({"num_documents": len(vectors_of(self.index))}))

    def _names(self) -> list[str]:
        return [row["docno"] for row in entries(self.index)]

    def search(
        self, queries_embeddings: Any, top_k: int = 10, subset: Any = None, **_: object
    ) -> list[list[tuple[int, float]]]:
        queries = pd.DataFrame({"qid": [str(i) for i in range(len(queries_embeddings))]})
        queries["query_embs"] = pd.Series([_unit(query) for query in queries_embeddings], dtype=object)
        names = self._names()
        only = None
        if subset is not None:
            of_each = subset if subset and isinstance(subset[0], list) else [subset] * len(queries)
            pairs = [(str(i), names[number]) for i, some in enumerate(of_each) for number in some]
            only = pd.DataFrame(pairs, columns=["qid", "docno"])
        found = vectors_of(self.index).retriever(num_results=top_k, subset=only)(queries)
        numbers = {name: number for number, name in enumerate(names)}
        best = dict(iter(found.groupby("qid")))
        return [
            [(numbers[row.docno], row.score) for row in best[qid].itertuples()] if qid in best else []
            for qid in queries["qid"]
        ]

    def search_token_scores(
        self, queries_embeddings: Any, **options: Any
    ) -> list[list[tuple[int, float, torch.Tensor]]]:
        return [
            [(number, score, torch.from_numpy(_unit(query) @ self._rows([number])[0].T)) for number, score in hits]
            for query, hits in zip(queries_embeddings, self.search(queries_embeddings, **options), strict=True)
        ]

    def _rows(self, subset: list[int]) -> list[np.ndarray[Any, Any]]:
        names = self._names()
        loaded = vectors_of(self.index).vec_loader()(
            pd.DataFrame({"docno": [names[number] for number in subset]}, dtype=object)
        )
        return list(loaded["doc_embs"])

    def get_embeddings(self, subset: list[int]) -> list[torch.Tensor]:
        return [torch.from_numpy(np.array(rows)) for rows in self._rows(subset)]

    def close(self) -> None:
        pass


def _unit(rows: torch.Tensor) -> np.ndarray[Any, Any]:
    return normalize(torch.as_tensor(rows).float(), dim=-1).numpy()


if __name__ == "__main__":
    clone = Path(sys.argv[1])
    module("fast_plaid", filtering=Filtering)
    module("fast_plaid.search", FastPlaid=FastPlaid)
    run(clone, ["tests/test.py"])
