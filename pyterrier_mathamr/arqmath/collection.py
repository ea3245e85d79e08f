"""A folder of the ARQMath release: posts, formula tables, topics, judgments, and pairs of question and answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr._common.parameters import ByPath
from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.formula import FormulaRow, read_formula_table

from .errors import ARQMathError, MissingFileError
from .files.pairs import Link, Pair, read_links, read_pairs
from .files.posts import Post, read_posts
from .files.qrels import Failures, Qrel, read_qrels
from .files.rows import SeenIds, count_rows
from .files.topics import Topic, read_topics
from .release import file_names
from .release.file_names import Judged, Task
from .release.inventory import Release


class TopicTables(NamedTuple):
    """The tables of the formulas of one year's topics, each of one file or none, for a formula store.

    Formula ids of topics (``q_1`` and so on) restart each year, so each year needs its own store.
    """

    latex: tuple[Path, ...]
    slt: tuple[Path, ...]
    opt: tuple[Path, ...]


class ARQMathCollection(ByPath):
    """A local copy of the release, or of a part of it in the same file_names.

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
            raise ARQMathError(f"{self.path} is no folder; pass the folder into which the ARQMath release was unpacked")
        self._release = Release(self.path)

    @property
    def posts_file(self) -> Path:
        """Return the latest version of the dump of the posts.

        Raises:
            MissingFileError: there is none; the message names an archive that has it.
        """
        return self._release.need("posts", file_names.POSTS, hint=self._unpack(file_names.PACKED_POSTS))

    def posts(self) -> Iterator[Post]:
        """Read all posts; see :func:`read_posts`."""
        return read_posts(self.posts_file)

    def documents(self) -> Iterator[dict[str, str]]:
        """Read all posts as input of ``GraphBuilder`` and of indexers: ``docno``, ``title`` and ``html``."""
        return ({"docno": post.id, "title": post.title, "html": post.body} for post in self.posts())

    def count_posts(self) -> int:
        """Count the rows of the dump without reading them; bad ones are among them."""
        return count_rows(self.posts_file)

    def count_answers(self) -> int:
        """Count the answers likewise."""
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
            hint = self._unpack(file_names.packed_table_patterns("latex"))
            raise MissingFileError("tables of the formulas as LaTeX", self.path, names, hint)
        return self.latex_tables

    def formulas(self) -> Iterator[FormulaRow]:
        """Read the formulas of the posts as LaTeX, each id once; see :func:`read_formula_table`.

        Raises:
            MissingFileError: the folder has no tables of the formulas as LaTeX.
        """
        return _each_once(row for table in self.need_latex_tables() for row in read_formula_table(table))

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
        patterns = file_names.topic_patterns(str(year), task)
        return read_topics(self._release.need(f"topics of {year}, task {task}", patterns))

    def topic_tables(self, year: int | str) -> TopicTables:
        """Return the tables of the formulas in the topics of a year; a missing one is an empty tuple."""
        found = (
            self._release.find(file_names.topic_table_patterns(str(year), kind)) for kind in ("latex", "slt", "opt")
        )
        return TopicTables(*((file,) if file else () for file in found))

    def qrels_file(
        self, year: int | str, task: Task = 1, *, judged: Judged = "formula", complete: bool = False
    ) -> Path:
        """Return the file that :meth:`qrels` reads."""
        patterns = file_names.qrels_patterns(str(year), task, judged)
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
            judged: in Task 2, whether formula ids or visual ids are judged. The organisers publish formula ids for
                2020 only.
            complete: read the complete judgments even if there are ones restricted to a partial collection.
            failures: how to read the codes 5 and 6, which are no grades.

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
        file = self._release.find(file_names.PAIRS)
        return read_pairs(file) if file else self._pairs_of_posts()

    def links(self) -> Iterator[Link]:
        """Read the duplicate and related links between questions; see :func:`read_links`.

        Raises:
            MissingFileError: the folder has neither ``links.tsv`` nor ``PostLinks``.
        """
        return read_links(self._release.need("links", file_names.LINKS))

    def _unpack(self, patterns: file_names.Patterns) -> str:
        """Return the hint to unpack an archive, if there is one."""
        packed = self._release.find(patterns)
        return f"Unpack {packed}: mathamr arqmath convert {self.path}" if packed else ""

    def _pairs_of_posts(self) -> Iterator[Pair]:
        accepted = SeenIds()
        for question in self.questions():
            if question.accepted_answer_id:
                accepted.add(question.accepted_answer_id)
        for answer in self.answers():
            if answer.parent_id and (not accepted or answer.id in accepted):
                yield Pair(answer.parent_id, answer.id)


def _each_once(rows: Iterator[FormulaRow]) -> Iterator[FormulaRow]:
    seen = SeenIds()
    return (row for row in rows if seen.add(row.id))
