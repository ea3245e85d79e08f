"""Rows of vectors that depend on a name and a seed."""

import numpy as np
import pandas as pd
import torch  # noqa: F401 - once, not in each fork of the battery

WIDTH = 4


def rows(name: str, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, *name.encode()]).standard_normal((3, WIDTH)).astype(np.float32)


def queries() -> pd.DataFrame:
    """A query of three rows, and one of a single row."""
    return pd.DataFrame({"qid": ["1", "2"]}).assign(query_embs=[rows("q1", 7), rows("q2", 7)[:1]])


def shown(ranking: pd.DataFrame) -> object:
    return ranking[["qid", "docno", "rank"]].assign(score=ranking["score"].round(5)).values.tolist()
