"""Exact search over parts: several indexes that are searched as one, each where it is.

::

    ShardedIndex ── snapshot ──ask──▶ places ──▶ processes, actors ──▶ reader    one MathAMRIndex, opened where it is
         │              │               all parts at once; a place that dies is started again
         │              └── merges the best of each part: score descending, docno ascending
         ├── transformers    the exact strategies
         └── manifest        the folder of the parts; joining writes it, building fills it
    errors
"""

from .building import filling
from .errors import PartChangedError, PartDiedError, PartFailedError, PartsError, PartTimeoutError
from .index import ShardedIndex
from .transformers import (
    ShardedColBERTRetriever,
    ShardedDocVNRetriever,
    ShardedMaxSimScorer,
    ShardedRetriever,
    ShardedSingleVectorRetriever,
)

__all__ = [
    "PartChangedError",
    "PartDiedError",
    "PartFailedError",
    "PartTimeoutError",
    "PartsError",
    "ShardedColBERTRetriever",
    "ShardedDocVNRetriever",
    "ShardedIndex",
    "ShardedMaxSimScorer",
    "ShardedRetriever",
    "ShardedSingleVectorRetriever",
    "filling",
]
