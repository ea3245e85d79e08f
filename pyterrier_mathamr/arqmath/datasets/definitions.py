"""The datasets of ARQMath in ir_datasets.

=========================  =============================  ==========================  ==================================
dataset                    documents                      queries                     judged ids
=========================  =============================  ==========================  ==================================
``arqmath``                all posts
``arqmath/questions``      the questions
``arqmath/answers``        the answers
``arqmath/formulas``       the formulas
``arqmath/2022/task1``     the answers                    questions                   answers (documents)
``arqmath/2022/task2``     all posts, which have the      formulas, each within its   formulas (documents of
                           formulas                       question                    ``arqmath/formulas``)
``…/task2/visual``         the same                       the same                    visual ids
``arqmath/2022/task3``     the answers                    questions, as in Task 1     submitted answers, no documents
=========================  =============================  ==========================  ==================================

2020, 2021 and 2022 are the years of the lab; ``arqmath/sample/…`` is bundled. ``arqmath`` also has training pairs and
links: ``ir_datasets.load("arqmath").pairs_iter()`` and ``links_iter()``.

Importing this module registers the datasets, which reads no file. It has no ``from __future__ import annotations``:
PyTerrier's text loader offers the fields of a record whose annotation *is* ``str``, which a postponed one is not.
"""

import contextlib
import hashlib
import itertools
import json
import os
import sqlite3
import threading
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import ir_datasets
from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries
from ir_datasets.indices.base import Docstore
from ir_datasets.util import MetadataComponent

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.records import decompressed, parse_json
from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.arqmath.collection import locate
from pyterrier_mathamr.arqmath.dump import Link, Pair, count_rows
from pyterrier_mathamr.arqmath.errors import ARQMathError, MissingFileError
from pyterrier_mathamr.arqmath.release_files import DOCUMENT_COUNTS, JUDGMENT_COUNTS, TOPIC_COUNTS, YEARS, Judged, Task
from pyterrier_mathamr.posts import plain_text, post_from_html
from pyterrier_mathamr.store.sqlite import in_batches


class ARQMathDoc(NamedTuple):
    """A post: an answer in Task 1, an answer or a question in Task 2."""

    doc_id: str
    kind: str  # "question" or "answer"
    parent_id: str  # the question of an answer; "" for a question
    title: str  # HTML; "" for an answer
    body: str  # HTML with the formula ids
    text: str  # title and body as plain text, formulas as $latex$
    tags: str  # separated by spaces; "" for an answer
    accepted_answer_id: str  # "" if the question has none
    score: int | None  # votes
    date: str | None

    def default_text(self) -> str:
        return self.text


class ARQMathFormula(NamedTuple):
    """A formula of a post, from the table of LaTeX."""

    doc_id: str  # the formula's id
    post_id: str
    thread_id: str  # the question of that post
    type: str  # "title", "question", "answer" or "comment"
    visual_id: str  # shared by visually identical formulas; "" if the table has none
    latex: str

    def default_text(self) -> str:
        return self.latex


class Task1Query(NamedTuple):
    """A topic of tasks 1 and 3: a question whose answers are searched for."""

    query_id: str
    title: str  # HTML with the formula ids
    body: str  # HTML with the formula ids
    tags: str  # separated by spaces
    text: str  # title and body as plain text, formulas as $latex$

    def default_text(self) -> str:
        return self.text


class Task2Query(NamedTuple):
    """A topic of Task 2: a formula within its question."""

    query_id: str
    title: str
    body: str
    tags: str
    text: str
    formula_id: str  # of the formula that is searched for, in title or body: q_6
    latex: str  # of that formula, without dollars
    topic_id: str  # query_id of the topic of Task 1 with the same question

    def default_text(self) -> str:
        return self.latex


class ARQMathQrel(NamedTuple):
    """A judgment: of a post in Task 1, a formula or visual id in Task 2, an answer of the pool in Task 3."""

    query_id: str
    doc_id: str
    relevance: int
    iteration: str


BATCH = 5000
"""Documents of one commit."""

_WHOLE = 1  # the file's user_version when it is complete


class DocumentStore(Docstore):  # type: ignore[misc]
    """Looks documents up by id or position: one SQLite file, built when first used."""

    def __init__(
        self,
        path: Path,
        read: Callable[[], Iterable[Any]],
        record: type[Any],
        count_hint: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(record, "doc_id")
        self.path, self._read, self._record, self._count_hint = path, read, record, count_hint
        self._connections: dict[tuple[int, int], sqlite3.Connection] = {}

    def built(self) -> bool:
        """Return whether the store is complete."""
        if _here() in self._connections:
            return True
        if not self.path.is_file():
            return False
        with self._open() as connection:
            return bool(connection.execute("PRAGMA user_version").fetchone()[0] == _WHOLE)

    def build(self) -> None:
        """Fill the store, or the rest of it after an interrupted build; a complete one is left unchanged."""
        if self.built():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS doc (number INTEGER PRIMARY KEY, id TEXT NOT NULL, record BLOB NOT NULL)"
            )
            done = _count(connection)
            total = self._count_hint() if self._count_hint else None
            documents = ir_datasets.log.easy().pbar(self._read(), self.path.stem, unit="doc", total=total)
            rows = enumerate(itertools.islice(documents, done, None), done)
            packed = ((number, document.doc_id, _packed(document)) for number, document in rows)
            while batch := list(itertools.islice(packed, BATCH)):
                with connection:  # concurrent builds write the same rows
                    connection.executemany("INSERT OR IGNORE INTO doc VALUES (?, ?, ?)", batch)
            with connection:
                connection.execute("CREATE UNIQUE INDEX IF NOT EXISTS doc_by_id ON doc (id)")
                connection.execute(f"PRAGMA user_version = {_WHOLE}")

    def get_many_iter(self, doc_ids: Iterable[str]) -> Iterator[Any]:
        """Read the documents of some ids; unknown ids are skipped."""
        for some in in_batches(dict.fromkeys(doc_ids)):
            marks = ",".join("?" * len(some))
            yield from self._select(f"SELECT record FROM doc WHERE id IN ({marks}) ORDER BY number", some)

    def read_range(self, numbers: range) -> Iterator[Any]:
        """Read the documents at some positions, in that order."""
        if not numbers:
            return
        order = "DESC" if numbers.step < 0 else "ASC"
        query = f"SELECT record FROM doc WHERE number BETWEEN ? AND ? AND (number - ?) % ? = 0 ORDER BY number {order}"
        first, last = numbers[0], numbers[-1]
        yield from self._select(query, (min(first, last), max(first, last), first, abs(numbers.step)))

    def __iter__(self) -> "StoredDocuments":
        return StoredDocuments(self, range(self.count()))

    def count(self) -> int:
        return _count(self._reading())

    def clear_cache(self) -> None:
        """Delete the file; it is built again when needed."""
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        connection = self._connections.pop(_here(), None)
        if connection is not None:
            connection.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connections": {}}

    def _select(self, query: str, values: Sequence[Any]) -> Iterator[Any]:
        try:
            for (record,) in self._reading().execute(query, values):
                yield self._record(*parse_json(decompressed(record)))
        except (sqlite3.Error, zlib.error, ValueError, TypeError) as error:
            raise self._broken(error) from error

    def _reading(self) -> sqlite3.Connection:
        """Return this thread's connection to the complete store; it is kept, as opening costs more than a look-up."""
        if _here() not in self._connections:
            self.build()
            address = f"{self.path.resolve().as_uri()}?mode=ro"
            # another thread may go on with documents that this one began to read, as Terrier's indexer does
            self._connections[_here()] = sqlite3.connect(address, uri=True, check_same_thread=False)
        return self._connections[_here()]

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file to read its state or to fill it."""
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=600)) as connection:
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:  # UnicodeDecodeError if the message quotes damaged bytes
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> ARQMathError:
        advice = "Free some disk space or delete this file; it is built again when needed"
        return ARQMathError(f"{self.path}: {error}. {advice}")


class StoredDocuments:
    """The documents of a store in order, sliced like a list, or by fractions such as ``[:1/3]`` as in ir_datasets."""

    def __init__(self, store: DocumentStore, numbers: range) -> None:
        self._store, self._numbers = store, numbers
        self._documents: Iterator[Any] | None = None

    def __iter__(self) -> "StoredDocuments":
        return self

    def __next__(self) -> Any:
        if self._documents is None:
            self._documents = self._store.read_range(self._numbers)
        return next(self._documents)

    def __getitem__(self, key: slice | int) -> Any:
        if isinstance(key, slice):
            start, stop = (int(x * len(self._numbers)) if isinstance(x, float) else x for x in (key.start, key.stop))
            return StoredDocuments(self._store, self._numbers[start : stop : key.step])
        number = self._numbers[key]
        return next(self._store.read_range(range(number, number + 1)))


def _here() -> tuple[int, int]:
    """Return process and thread; connections cannot be shared between either."""
    return os.getpid(), threading.get_ident()


def _packed(document: Any) -> bytes:
    return zlib.compress(json.dumps(list(document), ensure_ascii=False).encode("utf-8", "surrogatepass"), 1)


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(number) + 1, 0) FROM doc").fetchone()[0])


DocumentKind = Literal["posts", "questions", "answers", "formulas"]
"""The documents of a dataset."""

_MARKS = {
    "posts": (b'PostTypeId="1"', b'PostTypeId="2"'),
    "questions": (b'PostTypeId="1"',),
    "answers": (b'PostTypeId="2"',),
}
_GRADES = {
    3: "high: answers the question in full, or the formula is as good as an exact match",
    2: "medium: a path to a solution",
    1: "low: could help",
    0: "not relevant",
}


class ARQMathDocs(BaseDocs):  # type: ignore[misc]
    """All posts of the local copy, its questions or answers, or its formulas."""

    def __init__(self, dataset: str, kind: DocumentKind) -> None:
        self._dataset, self._kind = dataset, kind

    @ir_datasets.util.use_docstore  # type: ignore[untyped-decorator]
    def docs_iter(self) -> Iterator[ARQMathDoc | ARQMathFormula]:
        """Read the documents; slices come from the random-access store, which the first slice builds."""
        return self._read()

    def docs_count(self) -> int:
        """Count the documents; before the store is built this needs seconds for posts, minutes for formulas."""
        store = self.docs_store()
        return store.count() if store.built() else self._count()

    def docs_store(self) -> DocumentStore:
        """Return the store of documents by id; it is in ir_datasets' home and built when first used."""
        collection = locate(self._dataset)
        files = collection.need_latex_tables() if self._kind == "formulas" else (collection.posts_file,)
        # named by the paths, sizes and times of the files, so that changed files get another store
        state = ((file, file.stat()) for file in files)
        key = "".join(f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns} " for file, stat in state) + __version__
        name = f"{self._kind}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.sqlite"
        path = Path(ir_datasets.util.home_path()) / "arqmath-docstores" / name
        return DocumentStore(path, self._read, self.docs_cls(), self._count)

    def docs_cls(self) -> type[ARQMathDoc] | type[ARQMathFormula]:
        return ARQMathFormula if self._kind == "formulas" else ARQMathDoc

    def docs_namespace(self) -> str:
        """Return the space of the ids, shared by all years."""
        return "arqmath/formulas" if self._kind == "formulas" else "arqmath"

    def docs_lang(self) -> str:
        return "en"

    def _read(self) -> Iterator[ARQMathDoc | ARQMathFormula]:
        """Read the documents in the order of the release."""
        collection = locate(self._dataset)
        if self._kind == "formulas":
            for row in collection.formulas():
                yield ARQMathFormula(row.id, row.post_id, row.thread_id, row.type, row.visual_id, row.formula)
            return
        for post in getattr(collection, self._kind)():
            yield ARQMathDoc(
                doc_id=post.id,
                kind=post.kind,
                parent_id=post.parent_id,
                title=post.title,
                body=post.body,
                text=plain_text(post_from_html(post.body, post.title)),
                tags=" ".join(post.tags),
                accepted_answer_id=post.accepted_answer_id,
                score=post.score,
                date=post.date,
            )

    def _count(self) -> int:
        collection = locate(self._dataset)
        if self._kind == "formulas":
            return sum(1 for _ in collection.formulas())
        return count_rows(collection.posts_file, *_MARKS[self._kind])


class ARQMathQueries(BaseQueries):  # type: ignore[misc]
    """The topics of one year (or ``sample``) and task."""

    def __init__(self, dataset: str, year: str, task: Task) -> None:
        self._dataset, self._year, self._task = dataset, year, task

    def queries_iter(self) -> Iterator[Task1Query | Task2Query]:
        for topic in locate(self._dataset).topics(self._year, self._task):
            text = plain_text(post_from_html(topic.body, topic.title))
            query = Task1Query(topic.id, topic.title, topic.body, " ".join(topic.tags), text)
            yield Task2Query(*query, topic.formula_id, topic.latex, topic.topic_id) if self._task == 2 else query

    def queries_count(self) -> int:
        """Count the topics; fewer are judged."""
        return sum(1 for _ in locate(self._dataset).topics(self._year, self._task))

    def queries_cls(self) -> type[Task1Query] | type[Task2Query]:
        return Task2Query if self._task == 2 else Task1Query

    def queries_namespace(self) -> str:
        return f"arqmath/{self._year}"

    def queries_lang(self) -> str:
        return "en"


class ARQMathQrels(BaseQrels):  # type: ignore[misc]
    """The judgments of one year (or ``sample``) and task; in Task 2 of formulas or of visual ids."""

    def __init__(self, dataset: str, year: str, task: Task, judged: Judged = "formula") -> None:
        self._dataset, self._year, self._task, self._judged = dataset, year, task, judged

    def qrels_iter(self) -> Iterator[ARQMathQrel]:
        """Read the judgments without the codes 5 and 6, which are not grades."""
        collection = locate(self._dataset)
        try:
            qrels = collection.qrels(self._year, self._task, judged=self._judged)
        except MissingFileError:
            if self._task != 2 or self._judged == "visual":
                raise
            qrels = collection.qrels(self._year, 2, judged="visual")
            text = (
                f"{self._dataset}: this copy judges visual ids, not formula ids; "
                "rank visual ids with VisualIdDeduplication before the comparison"
            )
            warnings.warn(MathAMRWarning(text), stacklevel=2)
        for qrel in qrels:
            yield ARQMathQrel(qrel.query_id, qrel.doc_id, qrel.relevance, qrel.iteration)

    def qrels_count(self) -> int:
        return sum(1 for _ in self.qrels_iter())

    def qrels_defs(self) -> dict[int, str]:
        return _GRADES

    def qrels_cls(self) -> type[ARQMathQrel]:
        return ARQMathQrel


class ARQMathTraining:
    """Training pairs and links between questions, for which ir_datasets has no names."""

    def __init__(self, dataset: str) -> None:
        self._dataset = dataset

    def pairs_iter(self) -> Iterator[Pair]:
        """Read the training pairs; see ``ARQMathCollection.pairs``."""
        return locate(self._dataset).pairs()

    def links_iter(self) -> Iterator[Link]:
        """Read the duplicate and related links between questions."""
        return locate(self._dataset).links()


CITATION = """@inproceedings{Mansouri2022ARQMath3,
  author    = {Behrooz Mansouri and V{\\'i}t Novotn{\\'y} and Anurag Agarwal and Douglas W. Oard and Richard Zanibbi},
  title     = {Overview of {ARQMath-3} (2022): Third {CLEF} Lab on Answer Retrieval for Questions on Math
               (Working Notes Version)},
  booktitle = {Working Notes of CLEF 2022},
  series    = {CEUR Workshop Proceedings},
  volume    = {3180},
  pages     = {1--27},
  year      = {2022},
  url       = {https://ceur-ws.org/Vol-3180/paper-01.pdf}
}"""
"""BibTeX of the paper that the organizers ask users to cite."""


class PublishedMetadata:
    """The counts of the complete release for ir_datasets; the datasets count a local copy themselves."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def get_metadata(self, dataset: str, entity: Any) -> dict[str, Any]:
        """Return ``{"count": …}`` for ``docs``, ``queries`` or ``qrels`` of a dataset, where a count is published."""
        if dataset.startswith("arqmath/sample"):
            return {}
        name = dataset.removeprefix("arqmath/")
        counts: Mapping[str, Mapping[str, int]] = {
            "docs": {name: DOCUMENT_COUNTS.get(self._kind, 0)},
            "queries": {**TOPIC_COUNTS, "2022/task2/visual": TOPIC_COUNTS["2022/task2"]},
            "qrels": JUDGMENT_COUNTS,
        }
        count = counts.get(getattr(entity, "value", entity), {}).get(name)
        return {"count": count} if count else {}


class Documentation:
    """``dataset.documentation()`` and ``dataset.citation()`` of a dataset described in one sentence."""

    def __init__(self, description: str) -> None:
        self._description = description

    def documentation(self) -> dict[str, Any]:
        """Return name, description and citation, with ir_datasets' keys."""
        return {
            "pretty_name": "ARQMath",
            "desc": self._description,
            "bibtex_ids": ["Mansouri2022ARQMath3"],
            "bibtex": CITATION,
        }

    def citation(self) -> str:
        """Return BibTeX of the paper to cite."""
        return CITATION


def _datasets() -> Iterator[tuple[str, ir_datasets.Dataset]]:
    """Define each dataset: its id and its parts."""

    def dataset(name: str, kind: DocumentKind, about: str, *parts: Any) -> tuple[str, ir_datasets.Dataset]:
        plain = ir_datasets.Dataset(ARQMathDocs(name, kind), Documentation(about), *parts)
        return name, ir_datasets.Dataset(MetadataComponent(name, plain, PublishedMetadata(kind)), plain)

    def task(
        year: str, number: Task, kind: DocumentKind, about: str, judged: Judged = "formula"
    ) -> tuple[str, ir_datasets.Dataset]:
        name = f"arqmath/{year}/task{number}" + ("/visual" if judged == "visual" else "")
        return dataset(name, kind, about, ARQMathQueries(name, year, number), ARQMathQrels(name, year, number, judged))

    for top in ("arqmath", "arqmath/sample"):
        about = "All questions and answers of Math Stack Exchange, 2010 to 2018."
        yield dataset(top, "posts", about, ARQMathTraining(top))
        yield dataset(f"{top}/questions", "questions", "The questions.")
        yield dataset(f"{top}/answers", "answers", "The answers.")
        yield dataset(f"{top}/formulas", "formulas", "The formulas of the posts, as LaTeX with visual ids.")
    for year in (*YEARS, "sample"):
        yield task(year, 1, "answers", f"Answer retrieval, {year}.")
        yield task(year, 2, "posts", f"Formula search, {year}; formulas are judged.")
        if year != "sample":  # whose formulas are judged one by one
            about = f"Formula search, {year}; visually distinct formulas are judged, as in the official results."
            yield task(year, 2, "posts", about, "visual")
    yield task("2022", 3, "answers", "Open domain question answering, 2022.")


_DATASETS: Mapping[str, ir_datasets.Dataset] = dict(_datasets())

DATASETS: tuple[str, ...] = tuple(_DATASETS)
"""The ids of all datasets."""

for _name, _dataset in _DATASETS.items():
    if _name not in ir_datasets.registry:
        ir_datasets.registry.register(_name, _dataset)
