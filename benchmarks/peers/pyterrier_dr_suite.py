"""pyterrier_dr's tests of its FlexIndex, over `MathAMRIndex` with one vector a document.

``python benchmarks/peers/pyterrier_dr_suite.py CLONE`` needs a clone of https://github.com/terrierteam/pyterrier_dr,
not pyterrier_dr itself. Tests for other libraries (faiss, Voyager, …) are skipped, as where those are not installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt
from tally import module, run

import pyterrier_mathamr as mathamr


class Adapted(pt.Transformer):  # type: ignore[misc]
    """A transformer of vectors as one of matrices with one row."""

    def __init__(self, inner: pt.Transformer, drop_query_vec: bool = False) -> None:
        self.inner = inner
        self.drop_query_vec = drop_query_vec

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        rows = inp.assign(query_embs=[vector[None] for vector in inp["query_vec"]]) if "query_vec" in inp else inp
        found: pd.DataFrame = self.inner(rows).drop(columns="query_embs", errors="ignore")
        if "doc_embs" in found:
            found = found.assign(doc_vec=[rows[0] for rows in found["doc_embs"]]).drop(columns="doc_embs")
        return found.drop(columns="query_vec") if self.drop_query_vec else found


class FlexIndex:
    """The interface of FlexIndex."""

    def __init__(self, path: str) -> None:
        self.vectors = mathamr.MathAMRIndex(path)

    def built(self) -> bool:
        return self.vectors.built()

    def __len__(self) -> int:
        return len(self.vectors)

    def index(self, documents: Iterable[Mapping[str, Any]]) -> None:
        self.vectors.index({"docno": row["docno"], "doc_embs": row["doc_vec"][None]} for row in documents)

    def get_corpus_iter(self) -> Iterator[dict[str, Any]]:
        for row in self.vectors.get_corpus_iter():
            yield {"docno": row["docno"], "doc_vec": row["doc_embs"][0]}

    def np_retriever(self, drop_query_vec: bool = False, **options: Any) -> Adapted:
        return Adapted(self.vectors.retriever(**options), drop_query_vec)

    def np_scorer(self, **options: Any) -> Adapted:
        return Adapted(self.vectors.scorer(**options))

    def np_vec_loader(self) -> Adapted:
        return Adapted(self.vectors.vec_loader())

    torch_retriever, torch_scorer = np_retriever, np_scorer

    def __getattr__(self, name: str) -> Any:
        """Find what the index has under the same name, such as a corpus graph."""
        return getattr(self.vectors, name)


def _by_graph(method: str) -> Callable[[FlexIndex], Adapted]:
    return lambda index: Adapted(getattr(index.vectors, method)())


for name, method in {"pre_ladr": "ladr", "ada_ladr": "ladr", "gar": "gar"}.items():
    setattr(FlexIndex, name, _by_graph(method))

if __name__ == "__main__":
    module("pyterrier_dr", FlexIndex=FlexIndex)
    libraries = ("faiss", "kannolo", "scann", "flatnav", "voyager")
    module("pyterrier_dr.util", **{f"{library}_available": lambda: False for library in libraries})
    run(Path(sys.argv[1]), ["tests/test_flexindex.py"])
