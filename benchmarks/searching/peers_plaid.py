"""fast-plaid: rows as the nearest of some centroids and a residual of four bits a number, found through inverted lists.

It is measured if it is installed, which requires a separate environment, since each release is built for one release
of torch: ``pip install fast-plaid``, then this package. Its indexes have at least a thousand documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .corpus import Corpus
from .measure import FEW, Found, K, Search, System

try:
    from fast_plaid.search import FastPlaid
except ImportError:
    FastPlaid = None

_PROBES = 8, 64
"""Inverted lists that are read for each row of a query: its default, and more of them for a higher recall."""


def systems(corpus: Corpus, folder: Path) -> Iterator[System]:
    """Build one index, and search it with two efforts."""
    if FastPlaid is None:
        return
    index = None

    def made() -> Any:
        nonlocal index
        index = index or _build(corpus, folder / f"plaid-{len(corpus)}")
        return index

    for probes in _PROBES:
        yield System(f"fast-plaid, {probes} probes", partial(_search, made, probes), FEW, at_once=False)


def _build(corpus: Corpus, path: Path) -> Any:
    import torch

    bounds = zip(corpus.offsets[:-1].tolist(), corpus.offsets[1:].tolist(), strict=True)
    documents = [torch.from_numpy(np.array(corpus.rows[start:end])) for start, end in bounds]
    index = FastPlaid(str(path), device="cpu").create(documents)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    print(f"fast-plaid: {size / len(corpus):,.0f} bytes a document on disk", flush=True)
    return index


def _search(made: Any, probes: int) -> Search:
    import torch

    index = made()

    def search(queries: list[np.ndarray]) -> Found:
        asked = [torch.from_numpy(query) for query in queries]
        found = index.search(asked, top_k=K, n_ivf_probe=probes, show_progress=False)
        return [np.array([number for number, _ in of], dtype=np.int64) for of in found]

    return search
