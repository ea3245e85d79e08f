"""fast-plaid's tests, over `MathAMRIndex` behind fast-plaid's interface.

``python benchmarks/peers/fast_plaid_suite.py CLONE`` needs a clone of https://github.com/lightonai/fast-plaid, and not
fast-plaid itself. Its documents are numbered, and numbered again after each deletion. Filters by metadata are its own
module, read from the clone, beside our index. Vectors are scaled to unit length, as all of ours are; options that tune
PLAID's approximation (`nbits`, `n_ivf_probe`, …) change nothing, since the search is exact.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Sequence
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


class FastPlaid:
    """The interface of ``fast_plaid.search.FastPlaid``."""

    def __init__(self, index: str, device: str = "cpu", **_: object) -> None:
        self.index = index
        self.vectors = mathamr.MathAMRIndex(Path(index) / "vectors")
        self.made = 0  # documents so far

    def create(
        self, documents_embeddings: Sequence[torch.Tensor], metadata: list[Any] | None = None, **options: object
    ) -> None:
        shutil.rmtree(self.vectors.path, ignore_errors=True)
        self.vectors = mathamr.MathAMRIndex(self.vectors.path)
        self._add(documents_embeddings, "create", options)
        if metadata is not None:
            filtering.create(index=self.index, metadata=metadata)

    def update(
        self, documents_embeddings: Sequence[torch.Tensor], metadata: list[Any] | None = None, **options: object
    ) -> None:
        self._add(documents_embeddings, "append", options)
        if metadata is not None:
            filtering.update(index=self.index, metadata=metadata)

    def _add(self, documents: Sequence[torch.Tensor], mode: Any, options: dict[str, object]) -> None:
        if unknown := set(options) - TUNING:
            raise TypeError(f"our index has no option {sorted(unknown)}")
        names = [f"{self.made + i:06}" for i in range(len(documents))]
        rows = ({"docno": name, "doc_embs": _unit(each)} for name, each in zip(names, documents, strict=True))
        self.vectors.indexer(mode, dtype="float32").index(rows)
        self.made += len(documents)
        self._count()

    def delete(self, subset: list[int]) -> None:
        names = self._names()
        self.vectors.delete([names[number] for number in subset])
        if (Path(self.index) / "metadata.db").exists():
            filtering.delete(index=self.index, subset=subset)
        self._count()

    def _count(self) -> None:
        (Path(self.index) / "metadata.json").write_text(json.dumps({"num_documents": len(self.vectors)}))

    def _names(self) -> list[str]:
        """The documents by number."""
        return sorted(row["docno"] for row in self.vectors.get_corpus_iter())

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
        found = self.vectors.retriever(num_results=top_k, subset=only)(queries)
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
        loaded = self.vectors.vec_loader()(pd.DataFrame({"docno": [names[number] for number in subset]}, dtype=object))
        return list(loaded["doc_embs"])

    def get_embeddings(self, subset: list[int]) -> list[torch.Tensor]:
        return [torch.from_numpy(np.array(rows)) for rows in self._rows(subset)]

    def close(self) -> None:
        pass


def _unit(rows: torch.Tensor) -> np.ndarray[Any, Any]:
    return normalize(torch.as_tensor(rows).float(), dim=-1).numpy()


if __name__ == "__main__":
    clone = Path(sys.argv[1])
    spec = importlib.util.spec_from_file_location(
        "fast_plaid.filtering", clone / "python" / "fast_plaid" / "filtering" / "filtering.py"
    )
    assert spec is not None
    assert spec.loader is not None
    filtering = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(filtering)
    module("fast_plaid", filtering=filtering)
    module("fast_plaid.search", FastPlaid=FastPlaid)
    run(clone, ["tests/test.py"])
