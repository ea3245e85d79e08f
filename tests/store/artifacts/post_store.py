"""The posts of an engine."""

from pathlib import Path

from pyterrier_mathamr.engine import posts
from pyterrier_mathamr.engine.posts import PostStore
from pyterrier_mathamr.posts import Document

open = PostStore


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    posts._PART = 2
    PostStore(path).write((Document(f"d{i}", f"Title {i}", f"text {seed}") for i in rows), mode, {"seed": seed})  # type: ignore[arg-type]


def read(path: Path) -> object:
    return list(PostStore(path))
