"""A thread store: one part, filled in transactions of ``PART`` posts; d1 answers the question d0, d3 d2, …."""

from pathlib import Path
from typing import Any

from mathamr_systems import ThreadStore
from mathamr_systems.threads import thread_store

open = ThreadStore
PART = 2
DELETES = False  # as its rows have no ids of the store's


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    thread_store.STEP = PART
    ThreadStore(path).indexer(mode).index(_post(i, seed) for i in rows)  # type: ignore[arg-type]


def read(path: Path) -> object:
    with ThreadStore(path) as store:
        ids = [post.id for post in store]
        questions = [post.id for post in store if post.kind == "question"]
        return {
            "counts": [len(store), store.more_counts()],
            "posts": store.posts(ids),
            "texts": store.texts(ids),
            "answers": store.answers_of(questions),
            "best": store.best_answers(questions),
            "absent": "absent" in store,
        }


def _post(i: int, seed: int) -> dict[str, Any]:
    answer = i % 2 == 1
    return {
        "docno": f"d{i}",
        "kind": "answer" if answer else "question",
        "parent_id": f"d{i - 1}" if answer else "",
        "accepted_answer_id": "" if answer else f"d{i + 1}",
        "title": "" if answer else f"Title {i} {seed}",
        "body": f"<p>text {i} {seed}</p>",
        "tags": "" if answer else "calculus limits",
        "score": i + seed,
        "comment_count": None if i % 3 else i,
    }
