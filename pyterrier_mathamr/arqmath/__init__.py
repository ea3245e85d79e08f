"""ARQMath: the release, its datasets, measures and the known items.

    files/            each official file to records: posts, topics, judgments, pairs and links, runs, answers
      │
    collection        a folder of the release: each file found by its name, and read when asked for
      │
      ├── release/    the folder as a whole: inventory, unpacking, checks, statistics
      ├── datasets/   ``irds:arqmath/…`` for ir_datasets and PyTerrier
      ├── known_items questions as topics, their own answers as judgments
      └── task2       rankings of formulas to rankings of visually distinct formulas
    measures          nDCG', MAP', P'@10, Bpref; AR' and P'@1 of Task 3

Names are imported when they are first used. Importing the room itself only installs a finder that registers the
datasets once ir_datasets is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyterrier_mathamr._common.lazy import lazy_names

from .datasets.autoregister import register_when_needed

if TYPE_CHECKING:
    from .collection import ARQMathCollection as ARQMathCollection
    from .collection import TopicTables as TopicTables
    from .datasets.beir import BeirDataset as BeirDataset
    from .datasets.beir import BeirProvider as BeirProvider
    from .datasets.definitions import DATASETS as DATASETS
    from .datasets.definitions import register as register
    from .datasets.home import locate as locate
    from .datasets.home import register_arqmath as register_arqmath
    from .datasets.provider import ARQMathProvider as ARQMathProvider
    from .datasets.records import ARQMathDoc as ARQMathDoc
    from .datasets.records import ARQMathFormula as ARQMathFormula
    from .datasets.records import ARQMathQrel as ARQMathQrel
    from .datasets.records import Task1Query as Task1Query
    from .datasets.records import Task2Query as Task2Query
    from .errors import ARQMathError as ARQMathError
    from .errors import FileFormatError as FileFormatError
    from .errors import MissingFileError as MissingFileError
    from .errors import NoLocalCopyError as NoLocalCopyError
    from .files.answers import ANSWER_LIMIT as ANSWER_LIMIT
    from .files.answers import read_answer_ids as read_answer_ids
    from .files.answers import read_answers as read_answers
    from .files.answers import write_answers as write_answers
    from .files.pairs import Link as Link
    from .files.pairs import Pair as Pair
    from .files.pairs import read_links as read_links
    from .files.pairs import read_pairs as read_pairs
    from .files.posts import Post as Post
    from .files.posts import read_posts as read_posts
    from .files.qrels import Qrel as Qrel
    from .files.qrels import read_qrels as read_qrels
    from .files.rules import RULES as RULES
    from .files.rules import BadRowWarning as BadRowWarning
    from .files.rules import strictly as strictly
    from .files.runs import read_run as read_run
    from .files.runs import write_run as write_run
    from .files.topics import Topic as Topic
    from .files.topics import read_topics as read_topics
    from .known_items import known_item_qrels as known_item_qrels
    from .known_items import known_item_split as known_item_split
    from .known_items import known_item_topics as known_item_topics
    from .known_items import split_pairs as split_pairs
    from .measures import AVERAGE_RELEVANCE as AVERAGE_RELEVANCE
    from .measures import JUDGED as JUDGED
    from .measures import SHORT_NAMES as SHORT_NAMES
    from .measures import TASK1_MEASURES as TASK1_MEASURES
    from .measures import TASK2_MEASURES as TASK2_MEASURES
    from .measures import TASK3_MEASURES as TASK3_MEASURES
    from .measures import Task3Scores as Task3Scores
    from .measures import parse_measure as parse_measure
    from .measures import task3_scores as task3_scores
    from .release.checks import Finding as Finding
    from .release.checks import verify as verify
    from .release.inventory import Item as Item
    from .release.inventory import inventory as inventory
    from .release.statistics import Statistic as Statistic
    from .release.statistics import release_statistics as release_statistics
    from .release.unpack import packed_files as packed_files
    from .release.unpack import unpack_release as unpack_release
    from .task2 import VisualIdDeduplication as VisualIdDeduplication
    from .task2 import visual_qrels as visual_qrels

__getattr__, __dir__, __all__ = lazy_names(__name__)

register_when_needed()
