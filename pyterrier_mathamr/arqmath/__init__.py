"""ARQMath: readers and checks of the release, datasets for ir_datasets and PyTerrier, measures, runs, known items.

The names resolve when they are first used; importing the room costs nothing but a finder that registers the datasets
once ir_datasets is imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._autoregister import register_when_needed

if TYPE_CHECKING:
    from .answers import ANSWER_LIMIT, read_answer_ids, read_answers, write_answers
    from .checks import Finding, verify
    from .collection import ARQMathCollection, TopicTables
    from .datasets import DATASETS, register
    from .errors import (
        ARQMathError,
        DocumentStoreError,
        FileFormatError,
        MissingFileError,
        NoLocalCopyError,
        NothingJudgedError,
        RunColumnError,
        UnpackError,
    )
    from .home import locate, register_arqmath
    from .measures import AVERAGE_RELEVANCE, JUDGED, SHORT_NAMES, TASK1_MEASURES, TASK2_MEASURES, TASK3_MEASURES
    from .pairs import Link, Pair, read_links, read_pairs
    from .posts import Post, read_posts
    from .provider import ARQMathProvider
    from .qrels import Qrel, read_qrels
    from .records import ARQMathDoc, ARQMathFormula, ARQMathQrel, Task1Query, Task2Query
    from .release_items import Item, inventory
    from .rules import RULES, BadRowWarning
    from .runs import read_run, write_run
    from .split import known_item_qrels, known_item_split, known_item_topics, split_pairs
    from .statistics import Statistic, release_statistics
    from .task2 import VisualIdDeduplication, visual_qrels
    from .task3 import Task3Scores, task3_scores
    from .topics import Topic, read_topics
    from .unpack import packed_files, unpack_release

_NAMES_OF = {
    "answers": ("ANSWER_LIMIT", "read_answer_ids", "read_answers", "write_answers"),
    "collection": ("ARQMathCollection", "TopicTables"),
    "datasets": ("DATASETS", "register"),
    "errors": (
        "ARQMathError",
        "DocumentStoreError",
        "FileFormatError",
        "MissingFileError",
        "NoLocalCopyError",
        "NothingJudgedError",
        "RunColumnError",
        "UnpackError",
    ),
    "home": ("locate", "register_arqmath"),
    "release_items": ("Item", "inventory"),
    "measures": ("AVERAGE_RELEVANCE", "JUDGED", "SHORT_NAMES", "TASK1_MEASURES", "TASK2_MEASURES", "TASK3_MEASURES"),
    "pairs": ("Link", "Pair", "read_links", "read_pairs"),
    "posts": ("Post", "read_posts"),
    "provider": ("ARQMathProvider",),
    "qrels": ("Qrel", "read_qrels"),
    "records": ("ARQMathDoc", "ARQMathFormula", "ARQMathQrel", "Task1Query", "Task2Query"),
    "statistics": ("Statistic", "release_statistics"),
    "rules": ("RULES", "BadRowWarning"),
    "runs": ("read_run", "write_run"),
    "split": ("known_item_qrels", "known_item_split", "known_item_topics", "split_pairs"),
    "task2": ("VisualIdDeduplication", "visual_qrels"),
    "task3": ("Task3Scores", "task3_scores"),
    "topics": ("Topic", "read_topics"),
    "unpack": ("packed_files", "unpack_release"),
    "checks": ("Finding", "verify"),
}
_FILE_OF = {name: file for file, names in _NAMES_OF.items() for name in names}

__all__ = [
    "ANSWER_LIMIT",
    "AVERAGE_RELEVANCE",
    "DATASETS",
    "JUDGED",
    "RULES",
    "SHORT_NAMES",
    "TASK1_MEASURES",
    "TASK2_MEASURES",
    "TASK3_MEASURES",
    "ARQMathCollection",
    "ARQMathDoc",
    "ARQMathError",
    "ARQMathFormula",
    "ARQMathProvider",
    "ARQMathQrel",
    "BadRowWarning",
    "DocumentStoreError",
    "FileFormatError",
    "Finding",
    "Item",
    "Link",
    "MissingFileError",
    "NoLocalCopyError",
    "NothingJudgedError",
    "Pair",
    "Post",
    "Qrel",
    "RunColumnError",
    "Statistic",
    "Task1Query",
    "Task2Query",
    "Task3Scores",
    "Topic",
    "TopicTables",
    "UnpackError",
    "VisualIdDeduplication",
    "inventory",
    "known_item_qrels",
    "known_item_split",
    "known_item_topics",
    "locate",
    "packed_files",
    "read_answer_ids",
    "read_answers",
    "read_links",
    "read_pairs",
    "read_posts",
    "read_qrels",
    "read_run",
    "read_topics",
    "register",
    "register_arqmath",
    "release_statistics",
    "split_pairs",
    "task3_scores",
    "unpack_release",
    "verify",
    "visual_qrels",
    "write_answers",
    "write_run",
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
