"""A folder of the ARQMath release: posts, formula tables, topics, judgments, pairs; where it is, and its known items.

Known-item search: the query is a question, and its own answers are relevant. The split depends on the question's id
only. So it is the same on every machine and for every part of the collection, and no question of validation or test is
used for training.

The local copy of ``irds:arqmath/…`` is the one set in the process, by ``ARQMATH_HOME``, or in ir_datasets' home.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import pandas as pd

from pyterrier_mathamr._common.parameters import ByPath, one_of
from pyterrier_mathamr._common.types import DocNo, FormulaId
from pyterrier_mathamr.formula import FormulaRow, read_formula_table
from pyterrier_mathamr.posts import plain_text, post_from_html

from .dump import Link, Pair, Post, SeenIds, count_rows, read_dump, read_links, read_pairs
from .errors import DOWNLOAD_PAGE, ARQMathError, MissingFileError
from .release_files import (
    LINKS,
    PACKED_POSTS,
    PAIRS,
    POSTS,
    Judged,
    Patterns,
    Release,
    Task,
    packed_table_patterns,
    qrels_patterns,
    topic_patterns,
    topic_table_patterns,
)
from .topics import Failures, Qrel, Topic, read_qrels, read_topics


class TopicTables(NamedTuple):
    """The tables of the formulas of one year's topics, each of one file or none, for a formula store."""

    latex: tuple[Path, ...]
    slt: tuple[Path, ...]
    opt: tuple[Path, ...]


class ARQMathCollection(ByPath):
    """A local copy of the release, or of a part of it with the same file names.

    Files are found by their official names anywhere below the folder, and read when needed.

    Args:
        path: the folder.

    Raises:
        ARQMathError: there is no such folder.

    Example::

        collection = ARQMathCollection("ARQMath")
        store = FormulaStore.build("official.formulas", collection.slt_tables, collection.opt_tables)
        topics = list(collection.topics(2022, task=1))
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise ARQMathError(f"{self.path} is not a folder. Pass the folder of the unpacked ARQMath release")
        self._release = Release(self.path)

    @property
    def posts_file(self) -> Path:
        """Return the latest version of the dump of the posts.

        Raises:
            MissingFileError: there is none; the message names an archive that has it.
        """
        return self._release.need("posts", POSTS, hint=self._unpack(PACKED_POSTS))

    def posts(self) -> Iterator[Post]:
        """Read all posts; see :func:`read_dump`."""
        return read_dump(self.posts_file)

    def documents(self) -> Iterator[dict[str, str]]:
        """Read all posts as input of ``GraphBuilder`` and of indexers: ``docno``, ``title`` and ``html``.

        An answer also has ``parent``, the id of its question, whose title a ``SearchEngine`` reads before the answer.
        """
        return (
            {"docno": post.id, "title": post.title, "html": post.body}
            | ({"parent": post.parent_id} if post.parent_id else {})
            for post in self.posts()
        )

    def count_posts(self) -> int:
        """Count the rows of the dump without reading them, bad rows included."""
        return count_rows(self.posts_file)

    def count_answers(self) -> int:
        """Count the rows of answers in the dump without reading them."""
        return count_rows(self.posts_file, b' PostTypeId="2"')

    def questions(self) -> Iterator[Post]:
        """Read the questions."""
        return (post for post in self.posts() if post.kind == "question")

    def answers(self) -> Iterator[Post]:
        """Read the answers."""
        return (post for post in self.posts() if post.kind == "answer")

    @property
    def latex_tables(self) -> tuple[Path, ...]:
        """Return the tables of the formulas as LaTeX, in numeric order; none if they are missing."""
        return self._release.tables("latex")

    def need_latex_tables(self) -> tuple[Path, ...]:
        """Return the tables of the formulas as LaTeX.

        Raises:
            MissingFileError: there are none; the message names an archive that has them.
        """
        if not self.latex_tables:
            names = ("latex_representation_v3/1.tsv, 2.tsv, …",)
            hint = self._unpack(packed_table_patterns("latex"))
            raise MissingFileError("tables of the formulas as LaTeX", self.path, names, hint)
        return self.latex_tables

    def formulas(self) -> Iterator[FormulaRow]:
        """Read the formulas of the posts as LaTeX, each id once; see :func:`read_formula_table`.

        Raises:
            MissingFileError: the folder has no tables of the formulas as LaTeX.
        """
        seen = SeenIds()
        rows = (row for table in self.need_latex_tables() for row in read_formula_table(table))
        return (row for row in rows if seen.add(row.id))

    def visual_ids(self) -> dict[FormulaId, str]:
        """Read the visual id of each formula that has one (5 GB of memory for the whole release).

        ``FormulaStore.visual_ids`` needs much less time and memory.
        """
        return {row.id: row.visual_id for row in self.formulas() if row.visual_id}

    @property
    def slt_tables(self) -> tuple[Path, ...]:
        """Return the tables of the formulas as Presentation MathML; none if they are missing."""
        return self._release.tables("slt")

    @property
    def opt_tables(self) -> tuple[Path, ...]:
        """Return the tables of the formulas as Content MathML; none if they are missing."""
        return self._release.tables("opt")

    def topics(self, year: int | str, task: Task = 1) -> Iterator[Topic]:
        """Read the topics of a year; see :func:`read_topics`.

        Args:
            year: 2020, 2021, 2022 or ``"sample"``.
            task: 1, 2 or 3; Task 3 uses the topics of Task 1.

        Raises:
            MissingFileError: the folder has no such topics.
        """
        patterns = topic_patterns(str(year), task)
        return read_topics(self._release.need(f"topics of {year}, task {task}", patterns))

    def topic_tables(self, year: int | str) -> TopicTables:
        """Return the tables of the formulas in the topics of a year; a missing one is an empty tuple."""
        files = (self._release.find(topic_table_patterns(str(year), kind)) for kind in ("latex", "slt", "opt"))
        return TopicTables(*((file,) if file else () for file in files))

    def qrels_file(
        self, year: int | str, task: Task = 1, *, judged: Judged = "formula", complete: bool = False
    ) -> Path:
        """Return the file that :meth:`qrels` reads.

        Args:
            year: 2020, 2021, 2022 or ``"sample"``.
            task: 1, 2 or 3.
            judged: in Task 2, whether formula ids or visual ids are judged.
            complete: prefer the complete judgments to ones restricted to a partial collection.
        """
        patterns = qrels_patterns(str(year), task, judged)
        what = f"judgments of {year}, task {task}" + (f", by {judged} id" if task == 2 else "")
        return self._release.need(what, patterns, complete=complete)

    def qrels(
        self,
        year: int | str,
        task: Task = 1,
        *,
        judged: Judged = "formula",
        complete: bool = False,
        failures: Failures = "drop",
    ) -> Iterator[Qrel]:
        """Read the judgments of a year; see :func:`read_qrels`.

        Args:
            year: 2020, 2021, 2022 or ``"sample"``.
            task: 1, 2 or 3.
            judged: in Task 2, whether formula ids or visual ids are judged. The organizers publish formula ids for
                2020 only.
            complete: read the complete judgments even if there are ones restricted to a partial collection.
            failures: how to read the codes 5 and 6, which are not grades.

        Raises:
            MissingFileError: the folder has no such judgments.
        """
        return read_qrels(self.qrels_file(year, task, judged=judged, complete=complete), failures=failures)

    def pairs(self) -> Iterator[Pair]:
        """Read the pairs of question and answer for training.

        These are the pairs in ``pairs.tsv``, if there is one; otherwise each question with its accepted answer, in the
        order of the answers (MathAMR+, section 3.4); or each answer with its question, if the dump has no accepted
        answers. The dump is read twice, in constant memory.
        """
        if file := self._release.find(PAIRS):
            yield from read_pairs(file)
            return
        accepted = SeenIds()
        for question in self.questions():
            if question.accepted_answer_id:
                accepted.add(question.accepted_answer_id)
        for answer in self.answers():
            if answer.parent_id and (not accepted or answer.id in accepted):
                yield Pair(answer.parent_id, answer.id)

    def links(self) -> Iterator[Link]:
        """Read the duplicate and related links between questions; see :func:`read_links`.

        Raises:
            MissingFileError: the folder has neither ``links.tsv`` nor ``PostLinks``.
        """
        return read_links(self._release.need("links", LINKS))

    def _unpack(self, patterns: Patterns) -> str:
        """Return the hint to unpack an archive, if there is one."""
        packed = self._release.find(patterns)
        return f"Unpack {packed}: mathamr arqmath convert {self.path}" if packed else ""


Split = Literal["train", "validation", "test"]
_SPLIT = one_of(*get_args(Split))


def known_item_split(question_id: DocNo) -> Split:
    """Return the part of a question, by its post id: a tenth each for validation and test, the rest for training."""
    part = int(hashlib.sha256(question_id.encode()).hexdigest(), 16) % 10
    return "validation" if part == 0 else "test" if part == 1 else "train"


def split_pairs(pairs: Iterable[Pair], split: Split) -> list[Pair]:
    """Return the ``pairs`` whose question belongs to the part ``split``.

    Raises:
        ConfigError: there is no such part.
    """
    _SPLIT.check("split", split)
    return [pair for pair in pairs if known_item_split(pair.question_id) == split]


def known_item_qrels(pairs: Iterable[Pair], split: Split = "test") -> pd.DataFrame:
    """Return the judgments of the questions of one part: grade 1 for each of their own answers.

    Args:
        pairs: pairs of question and answer, such as ``ARQMathCollection.pairs()``.
        split: the part.

    Returns:
        Columns ``qid`` (the question's post id), ``docno`` (the answer's) and ``label`` (int, 1), in the order of the
        pairs.

    Raises:
        ConfigError: there is no such part.
    """
    rows = [(pair.question_id, pair.answer_id) for pair in split_pairs(pairs, split)]
    return pd.DataFrame(rows, columns=["qid", "docno"], dtype=str).assign(label=1)


def known_item_topics(questions: Iterable[Post], split: Split = "test") -> pd.DataFrame:
    """Return the questions of one part as topics.

    Args:
        questions: the questions, such as ``ARQMathCollection.questions()``.
        split: the part.

    Returns:
        Columns ``qid`` (the question's post id), ``query`` (title and body as plain text, formulas as ``$latex$``),
        ``title`` and ``body`` (HTML with the formula ids), in the order of the questions.

    Raises:
        ConfigError: there is no such part.
    """
    _SPLIT.check("split", split)
    rows = [
        (post.id, plain_text(post_from_html(post.body, post.title)), post.title, post.body)
        for post in questions
        if known_item_split(post.id) == split
    ]
    return pd.DataFrame(rows, columns=["qid", "query", "title", "body"], dtype=str)


SAMPLE = Path(__file__).resolve().parents[1] / "data" / "sample"
"""The bundled sample collection, in the layout of the release."""

_named: list[Path] = []  # the folder of register_arqmath, if it was called


def register_arqmath(path: str | Path) -> ARQMathCollection:
    """Use a local copy of the release for ``irds:arqmath/…`` in this process; a later call replaces it.

    Its files are read when a dataset is iterated.

    Args:
        path: the folder into which the release, or a part in its layout, was unpacked.

    Returns:
        The collection, for data that is not in the datasets (formula tables, pairs, links).

    Raises:
        ARQMathError: there is no such folder; an earlier copy stays in use.
    """
    collection = ARQMathCollection(Path(path).expanduser().resolve())
    _named[:] = [collection.path]
    return collection


def locate(dataset: str) -> ARQMathCollection:
    """Return the collection that a dataset reads.

    Args:
        dataset: its id, such as ``arqmath/2022/task1``.

    Raises:
        ARQMathError: no copy is known, or the folder in ``ARQMATH_HOME`` does not exist.
    """
    if dataset.split("/")[1:2] == ["sample"]:
        return ARQMathCollection(SAMPLE)
    from ir_datasets.util import home_path

    variable = os.environ.get("ARQMATH_HOME")
    default = Path(home_path()) / "arqmath"
    folder = _named[0] if _named else Path(variable).expanduser() if variable else default
    if not folder.is_dir():
        named = f"register_arqmath was given {_named[0]}" if _named else "register_arqmath was not called"
        raise ARQMathError(
            f"{dataset} needs a local copy of the ARQMath release, and there is none ({named}, ARQMATH_HOME is "
            f"{variable or 'not set'}, and {default} was looked for). Download Posts.V1.3, the formula tables, topics "
            f"and judgments from {DOWNLOAD_PAGE} into one folder. Then set ARQMATH_HOME to it, or call "
            "pyterrier_mathamr.register_arqmath(folder)."
        )
    return ARQMathCollection(folder)
