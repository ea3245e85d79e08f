"""An index of all documents, and the same documents cut into parts in any way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from pyterrier_mathamr import Processes
from pyterrier_mathamr.index import MathAMRIndex, ShardedIndex

D = 8
LIMIT = 120.0  # seconds where one would do: a busy machine starts a process in ten


def drawn(seed, documents, copies):
    """Draw documents of one to five rows; the last ones have the rows of earlier ones under docnos before theirs."""
    rng = np.random.default_rng(seed)
    drawn = [{"docno": f"m{i:04d}", "doc_embs": unit(rng, 1 + i % 5)} for i in range(documents)]
    chosen = rng.choice(documents, copies)
    return drawn + [{**drawn[of], "docno": f"{'az'[i % 2]}{i:04d}"} for i, of in enumerate(chosen)]


def unit(rng, rows):
    """Draw unit rows."""
    found = rng.standard_normal((rows, D))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def asked(seed, queries):
    """Draw queries of one to six rows, with weights."""
    rng = np.random.default_rng(seed)
    rows = [unit(rng, 1 + i % 6) for i in range(queries)]
    frame = pd.DataFrame({"qid": [f"q{i}" for i in range(queries)], "query": "text"})
    weights = [rng.uniform(-0.5, 2, len(of)) for of in rows]
    objects = {"query_embs": rows, "query_weights": weights}
    columns = {name: pd.Series(of, dtype=object) for name, of in objects.items()}
    return frame.assign(**columns, query_document_weight=rng.uniform(0, 1, queries))


def cut(folder, documents, cuts, seed=0):
    """Index documents in parts, shuffled and cut at some places; two equal places make an empty part."""
    order = np.random.default_rng(seed).permutation(len(documents))
    paths = []
    for part, places in enumerate(np.split(order, cuts)):
        paths.append(folder / f"part-{part:06d}")
        MathAMRIndex(paths[-1]).index([documents[place] for place in places])
    return paths


STRATEGIES: dict[str, Callable[[Any], Any]] = {
    "ColBERT": lambda index: index.colbert(num_results=40),
    "all documents": lambda index: index.colbert(num_results=10_000, batch_size=7),
    "normalized": lambda index: index.retriever(num_results=25, normalise=True),
    "single vector": lambda index: index.single_vector(num_results=40),
    "doc-VN": lambda index: index.doc_vn(candidates=60, num_results=20),
    "doc-VN, one candidate": lambda index: index.doc_vn(candidates=1),
    "cut": lambda index: index.colbert() % 5,
}


def of_parts(folder, documents, cuts, **options):
    """Index documents in parts and open them as one."""
    return ShardedIndex(cut(folder, documents, cuts), time_limit=LIMIT, **options)


def index_here(paths):
    """Open parts that this process searches."""
    return ShardedIndex(paths, Processes(1))
