"""ARQMath: readers of the official release, datasets for ir_datasets and PyTerrier, measures, the known-item split.

The names resolve when they are first used; importing the room costs nothing but a finder that registers the datasets
once ir_datasets is imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._autoregister import register_when_needed

if TYPE_CHECKING:
    from .collection import ARQMathCollection, TopicTables
    from .datasets import DATASETS, register
    from .errors import ARQMathError, DocumentStoreError, FileFormatError, MissingFileError, NoLocalCopyError
    from .home import register_arqmath
    from .measures import TASK1_MEASURES
    from .pairs import Link, Pair, read_links, read_pairs
    from .posts import Post, read_posts
    from .provider import ARQMathProvider
    from .qrels import Qrel, read_qrels
    from .records import ARQMathDoc, ARQMathFormula, ARQMathQrel, Task1Query, Task2Query
    from .rules import RULES, BadRowWarning
    from .split import known_item_qrels, known_item_split, known_item_topics, split_pairs
    from .topics import Topic, read_topics

_NAMES_OF = {
    "collection": ("ARQMathCollection", "TopicTables"),
    "datasets": ("DATASETS", "register"),
    "errors": ("ARQMathError", "DocumentStoreError", "FileFormatError", "MissingFileError", "NoLocalCopyError"),
    "home": ("register_arqmath",),
    "measures": ("TASK1_MEASURES",),
    "pairs": ("Link", "Pair", "read_links", "read_pairs"),
    "posts": ("Post", "read_posts"),
    "provider": ("ARQMathProvider",),
    "qrels": ("Qrel", "read_qrels"),
    "records": ("ARQMathDoc", "ARQMathFormula", "ARQMathQrel", "Task1Query", "Task2Query"),
    "rules": ("RULES", "BadRowWarning"),
    "split": ("known_item_qrels", "known_item_split", "known_item_topics", "split_pairs"),
    "topics": ("Topic", "read_topics"),
}
_FILE_OF = {name: file for file, names in _NAMES_OF.items() for name in names}

__all__ = [
    "DATASETS",
    "RULES",
    "TASK1_MEASURES",
    "ARQMathCollection",
    "ARQMathDoc",
    "ARQMathError",
    "ARQMathFormula",
    "ARQMathProvider",
    "ARQMathQrel",
    "BadRowWarning",
    "DocumentStoreError",
    "FileFormatError",
    "Link",
    "MissingFileError",
    "NoLocalCopyError",
    "Pair",
    "Post",
    "Qrel",
    "Task1Query",
    "Task2Query",
    "Topic",
    "TopicTables",
    "known_item_qrels",
    "known_item_split",
    "known_item_topics",
    "read_links",
    "read_pairs",
    "read_posts",
    "read_qrels",
    "read_topics",
    "register",
    "register_arqmath",
    "split_pairs",
]


def __getattr__(name: str) -> Any:
    if name not in _FILE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_FILE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_when_needed()
