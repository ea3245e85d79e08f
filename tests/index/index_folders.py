"""Views into an index for tests."""

from pathlib import Path
from typing import Any


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def docnos(index: Any) -> list[str]:
    return sorted(doc["docno"] for doc in index.get_corpus_iter())


def docnos_of(posts: list[dict[str, Any]]) -> list[str]:
    return sorted(post["docno"] for post in posts)
