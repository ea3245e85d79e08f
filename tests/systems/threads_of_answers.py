"""A small thread store, and the candidates that two similar questions give."""

from pathlib import Path

import pandas as pd

from mathamr_systems import ThreadStore

POSTS = [
    {"kind": "question", "id": "q1", "title": "Sum of x", "body": "Is the sum of x less?", "tags": ["sums", "limits"]},
    {"kind": "question", "id": "q2", "title": "Limit", "body": "Prove the limit.", "tags": ["limits"]},
    {"kind": "question", "id": "q3", "title": "No answer", "body": "?", "tags": []},
    {"kind": "answer", "id": "a1", "parent_id": "q1", "body": "the sum", "score": 7},
    {"kind": "answer", "id": "a2", "parent_id": "q1", "body": "less", "score": 3},
    {"kind": "answer", "id": "a3", "parent_id": "q1", "body": "fraction $x^2$", "score": -1},
    {"kind": "answer", "id": "b1", "parent_id": "q2", "body": "prove two", "score": 5},
]


def thread_store(folder: Path) -> ThreadStore:
    """Store the posts."""
    return ThreadStore(folder / "threads").index(POSTS)


def questions(**scores: float) -> pd.DataFrame:
    """A ranking of questions for one topic."""
    return pd.DataFrame(
        {"qid": "t", "query": "sum of x", "tags": "sums limits", "docno": list(scores), "score": list(scores.values())}
    ).assign(rank=range(len(scores)))
