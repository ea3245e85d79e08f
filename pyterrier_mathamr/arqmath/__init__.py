"""ARQMath: readers and checks of the release, datasets for ir_datasets and PyTerrier, measures, runs, known items.

The names resolve when they are first used; importing the room costs nothing but a finder that registers the datasets
once ir_datasets is imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .datasets.autoregister import register_when_needed

if TYPE_CHECKING:
    from .collection import ARQMathCollection, TopicTables
    from .datasets.definitions import DATASETS, register
    from .datasets.home import locate, register_arqmath
    from .datasets.provider import ARQMathProvider
    from .datasets.records import ARQMathDoc, ARQMathFormula, ARQMathQrel, Task1Query, Task2Query
    from .errors import (
        ARQMathError,
        FileFormatError,
        MissingFileError,
        NoLocalCopyError,
    )
    from .files.answers import ANSWER_LIMIT, read_answer_ids, read_answers, write_answers
    from .files.pairs import Link, Pair, read_links, read_pairs
    from .files.posts import Post, read_posts
    from .files.qrels import Qrel, read_qrels
    from .files.rules import RULES, BadRowWarning
    from .files.runs import read_run, write_run
    from .files.topics import Topic, read_topics
    from .known_items import known_item_qrels, known_item_split, known_item_topics, split_pairs
    from .measures import (
        AVERAGE_RELEVANCE,
        JUDGED,
        SHORT_NAMES,
        TASK1_MEASURES,
        TASK2_MEASURES,
        TASK3_MEASURES,
        Task3Scores,
        task3_scores,
    )
    from .release.checks import Finding, verify
    from .release.inventory import Item, inventory
    from .release.statistics import Statistic, release_statistics
    from .release.unpack import packed_files, unpack_release
    from .task2 import VisualIdDeduplication, visual_qrels

_NAMES_OF = {
    "files.answers": ("ANSWER_LIMIT", "read_answer_ids", "read_answers", "write_answers"),
    "collection": ("ARQMathCollection", "TopicTables"),
    "datasets.definitions": ("DATASETS", "register"),
    "errors": (
        "ARQMathError",
        "FileFormatError",
        "MissingFileError",
        "NoLocalCopyError",
    ),
    "datasets.home": ("locate", "register_arqmath"),
    "release.inventory": ("Item", "inventory"),
    "measures": (
        "AVERAGE_RELEVANCE",
        "JUDGED",
        "SHORT_NAMES",
        "TASK1_MEASURES",
        "TASK2_MEASURES",
        "TASK3_MEASURES",
        "Task3Scores",
        "task3_scores",
    ),
    "files.pairs": ("Link", "Pair", "read_links", "read_pairs"),
    "files.posts": ("Post", "read_posts"),
    "datasets.provider": ("ARQMathProvider",),
    "files.qrels": ("Qrel", "read_qrels"),
    "datasets.records": ("ARQMathDoc", "ARQMathFormula", "ARQMathQrel", "Task1Query", "Task2Query"),
    "release.statistics": ("Statistic", "release_statistics"),
    "files.rules": ("RULES", "BadRowWarning"),
    "files.runs": ("read_run", "write_run"),
    "known_items": ("known_item_qrels", "known_item_split", "known_item_topics", "split_pairs"),
    "task2": ("VisualIdDeduplication", "visual_qrels"),
    "files.topics": ("Topic", "read_topics"),
    "release.unpack": ("packed_files", "unpack_release"),
    "release.checks": ("Finding", "verify"),
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
    "FileFormatError",
    "Finding",
    "Item",
    "Link",
    "MissingFileError",
    "NoLocalCopyError",
    "Pair",
    "Post",
    "Qrel",
    "Statistic",
    "Task1Query",
    "Task2Query",
    "Task3Scores",
    "Topic",
    "TopicTables",
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
