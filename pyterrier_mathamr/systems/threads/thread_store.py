"""`ThreadStore`: which answers a question has, and what their readers said of them, an artifact of one SQLite file."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr._common.transformers import HELP_URL
from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.store import Mode, SqliteArtifact, UnknownIdError, detail

from .indexer import ThreadStoreIndexer
from .records import ThreadPost
from .sqlite_file import KIND, ThreadFile
from .texts import ThreadTextLoader, WithQuestion
from .transformers import BestAnswer, ThreadAnswers, ThreadMetadata, ThreadQuestions

T = TypeVar("T")

_ABSENT = {"votes": "votes", "comments": "comments", "accepted": "accepted answers"}


class ThreadStore(SqliteArtifact, pt.Indexer):  # type: ignore[misc]
    """The threads of a collection: question and answers, votes, comments, the accepted answer, tags, texts.

    What the collection does not say stays unknown: a feature of it is 0, and one warning names what is unknown of all
    posts. A store opens its file on first use and can be pickled. An interrupted indexing job resumes when it is run
    again.

    Example::

        threads = ThreadStore("threads.mathamr").indexer().index(collection.posts())
        candidates = questions >> threads.answers() >> threads.metadata()

    Args:
        path: the folder of the store, built or not.
    """

    ARTIFACT_TYPE, ARTIFACT_FORMAT = KIND.type, KIND.format
    KIND, FILE = KIND, ThreadFile
    HOLDS = "post"

    schematic = {"label": "ThreadStore", "help_url": HELP_URL}  # noqa: RUF012

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._told: set[str] = set()

    @staticmethod
    def example() -> ThreadStore:
        """Return a store that is not built."""
        return ThreadStore("threads.mathamr")

    def indexer(self, mode: Mode = "create", *, verbose: bool = False, total: int | None = None) -> ThreadStoreIndexer:
        """Return the indexer of posts.

        Args:
            mode: ``create`` a new store, ``overwrite`` an existing one when the new one is complete, or ``append``.
            verbose: show progress.
            total: the number of posts, for the progress bar.
        """
        return ThreadStoreIndexer(self, mode, verbose=verbose, total=total)

    def index(self, iter: pd.DataFrame | Iterable[Any]) -> ThreadStore:
        """Store posts; the same as ``indexer().index(iter)``."""
        return self.indexer().index(iter)

    def index_inputs(self) -> list[list[str]]:
        """List the keys of the dictionaries that :meth:`index` takes."""
        return self.indexer().index_inputs()

    def more_counts(self) -> list[str]:
        """List the questions and answers, and what is known of them."""
        number = self._counts()
        known = [f"{number[name]:,} {'with ' * (name != 'accepted')}{text}" for name, text in _ABSENT.items()]
        return [counted(number["questions"], "question"), counted(number["answers"], "answer"), *known]

    def answers(self) -> ThreadAnswers:
        """Return the transformer of a ranking of questions to their answers; see :class:`ThreadAnswers`."""
        return ThreadAnswers(self)

    def questions(self) -> ThreadQuestions:
        """Return the transformer that adds the question of each answer; see :class:`ThreadQuestions`."""
        return ThreadQuestions(self)

    def metadata(self) -> ThreadMetadata:
        """Return the transformer that adds votes, comments and tags; see :class:`ThreadMetadata`."""
        return ThreadMetadata(self)

    def best_answer(self) -> BestAnswer:
        """Return the transformer of a ranking to the best answers of its threads; see :class:`BestAnswer`."""
        return BestAnswer(self)

    def with_question(self, body: bool = True) -> WithQuestion:
        """Return the transformer that puts its question before each answer; see :class:`WithQuestion`.

        Args:
            body: the body of the question, too; else its title alone.
        """
        return WithQuestion(self, body)

    def text_loader(self) -> ThreadTextLoader:
        """Return the transformer that adds the text of posts; see :class:`ThreadTextLoader`."""
        return ThreadTextLoader(self)

    def posts(self, ids: Sequence[DocNo]) -> list[ThreadPost]:
        """Look up posts, in the order of ``ids``.

        Raises:
            UnknownIdError: some are not in the store; it names them.
        """
        return self._all(ids, self._file().posts(ids))

    def known_posts(self, ids: Iterable[DocNo]) -> list[ThreadPost]:
        """Look up posts, each once, in the order of ``ids``; unknown ids are left out."""
        return list(self._file().posts(ids).values())

    def answers_of(self, questions: Iterable[DocNo]) -> dict[DocNo, list[ThreadPost]]:
        """Look up the answers of questions, by docno; a question without answers is left out."""
        return self._file().answers(questions)

    def best_answers(self, questions: Iterable[DocNo]) -> dict[DocNo, DocNo]:
        """Look up the best answer of each thread: the accepted one, else the one with most votes.

        The paper is silent on ties and on threads without votes: unknown votes are 0, and equal answers are taken by
        docno, so that each thread with an answer has a best one.

        Args:
            questions: the threads; one without an answer in the store is left out of the result.
        """
        asked = list(dict.fromkeys(questions))
        accepted = {name: post.accepted_id for name, post in self._file().posts(asked).items()}
        return {
            question: max(answers, key=lambda post: (post.id == accepted.get(question), post.votes or 0)).id
            for question, answers in self.answers_of(asked).items()
        }

    def texts(self, ids: Sequence[DocNo]) -> list[tuple[str, str]]:
        """Look up title and body of posts as HTML, in the order of ``ids``; the title of an answer is empty.

        Raises:
            UnknownIdError: some are not in the store; it names them.
        """
        return self._all(ids, self._file().texts(ids))

    def _all(self, ids: Sequence[DocNo], found: Mapping[DocNo, T]) -> list[T]:
        """Return what was found of each post; unknown posts are an error that names them."""
        if unknown := [name for name in dict.fromkeys(ids) if name not in found]:
            raise UnknownIdError(self.path, unknown)
        return [found[name] for name in ids]

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and bool(self._file().posts([id]))

    def __iter__(self) -> Iterator[ThreadPost]:
        return self._file().all_posts()

    def unknown(self) -> list[str]:
        """List those of ``votes``, ``comments`` and ``accepted`` that are unknown of all posts."""
        number = self._counts()
        return [name for name in _ABSENT if not number[name]]

    def tell_unknown(self, *columns: str) -> None:
        """Warn, once for this object, of columns of 0 because they are unknown of all posts.

        Args:
            columns: the features that are used: ``votes``, ``comments``, ``accepted``.
        """
        if told := [name for name in columns if name in self.unknown() and name not in self._told]:
            self._told.update(told)
            text = f"{self.path}: no post has {' or '.join(_ABSENT[name] for name in told)}"
            warnings.warn(MathAMRWarning(f"{text}, so these columns are 0: {', '.join(told)}"), stacklevel=3)

    def _counts(self) -> dict[str, int]:
        details = self.snapshot().manifest.details
        return {name: detail(details, name, int, self.path) for name in ("questions", "answers", *_ABSENT)}

    def _file(self) -> ThreadFile:
        file: ThreadFile = self.snapshot().caches["file"]
        return file
