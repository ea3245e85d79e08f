"""Documents, queries, judgments and training data of ARQMath as ir_datasets' handlers.

The local copy is looked up, and read, when something is iterated.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import ir_datasets
from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.arqmath.errors import MissingFileError
from pyterrier_mathamr.arqmath.files.pairs import Link, Pair
from pyterrier_mathamr.arqmath.files.posts import Post
from pyterrier_mathamr.arqmath.files.rows import read_chunks
from pyterrier_mathamr.arqmath.release.file_names import Judged, Task
from pyterrier_mathamr.posts import plain_text, post_from_html

from .home import locate
from .records import ARQMathDoc, ARQMathFormula, ARQMathQrel, Task1Query, Task2Query

if TYPE_CHECKING:
    from .docstore import DocumentStore

DocumentKind = Literal["posts", "questions", "answers", "formulas"]
"""The documents of a dataset."""

_ROW = {
    "posts": re.compile(rb'PostTypeId="[12]"'),
    "questions": re.compile(rb'PostTypeId="1"'),
    "answers": re.compile(rb'PostTypeId="2"'),
}
_GRADES = {
    3: "high: answers the question in full, or the formula is as good as an exact match",
    2: "medium: a path to a solution",
    1: "low: could help",
    0: "not relevant",
}


class ARQMathDocs(BaseDocs):  # type: ignore[misc]
    """The posts of the local copy, those of one kind, or its formulas."""

    def __init__(self, dataset: str, kind: DocumentKind) -> None:
        self._dataset, self._kind = dataset, kind

    @ir_datasets.util.use_docstore  # type: ignore[untyped-decorator]
    def docs_iter(self) -> Iterator[ARQMathDoc | ARQMathFormula]:
        """Read the documents; slices come from the random-access store, which is built for the first."""
        return self._read()

    def docs_count(self) -> int:
        """Count the documents; before the store is built this takes seconds for posts, minutes for formulas."""
        store = self.docs_store()
        return store.count() if store.built() else self._count()

    def docs_store(self) -> DocumentStore:
        """Return the store of documents by id; it is in ir_datasets' home and built when first used."""
        from .docstore import DocumentStore  # importing it first imports ir_datasets, which imports this module

        collection = locate(self._dataset)
        files = collection.need_latex_tables() if self._kind == "formulas" else (collection.posts_file,)
        name = store_name(files, self._kind)
        path = Path(ir_datasets.util.home_path()) / "arqmath-docstores" / name
        return DocumentStore(path, self._read, self.docs_cls(), self._count)

    def docs_cls(self) -> type[ARQMathDoc] | type[ARQMathFormula]:
        """Return the class of the documents."""
        return ARQMathFormula if self._kind == "formulas" else ARQMathDoc

    def docs_namespace(self) -> str:
        """Return the space of the ids, shared by all years."""
        return "arqmath/formulas" if self._kind == "formulas" else "arqmath"

    def docs_lang(self) -> str:
        """Return the language of the documents."""
        return "en"

    def _read(self) -> Iterator[ARQMathDoc | ARQMathFormula]:
        """Read the documents in the order of the release."""
        collection = locate(self._dataset)
        if self._kind == "formulas":
            for row in collection.formulas():
                yield ARQMathFormula(row.id, row.post_id, row.thread_id, row.type, row.visual_id, row.formula)
        else:
            yield from map(document, getattr(collection, self._kind)())

    def _count(self) -> int:
        collection = locate(self._dataset)
        if self._kind == "formulas":
            return sum(1 for _ in collection.formulas())
        return count_posts(collection.posts_file, self._kind)


class ARQMathQueries(BaseQueries):  # type: ignore[misc]
    """The topics of one year (or ``sample``) and task."""

    def __init__(self, dataset: str, year: str, task: Task) -> None:
        self._dataset, self._year, self._task = dataset, year, task

    def queries_iter(self) -> Iterator[Task1Query | Task2Query]:
        """Read the topics."""
        for topic in locate(self._dataset).topics(self._year, self._task):
            text = plain_text(post_from_html(topic.body, topic.title))
            query = Task1Query(topic.id, topic.title, topic.body, " ".join(topic.tags), text)
            yield Task2Query(*query, topic.formula_id, topic.latex, topic.topic_id) if self._task == 2 else query

    def queries_count(self) -> int:
        """Count the topics; fewer are judged."""
        return sum(1 for _ in locate(self._dataset).topics(self._year, self._task))

    def queries_cls(self) -> type[Task1Query] | type[Task2Query]:
        """Return the class of the queries."""
        return Task2Query if self._task == 2 else Task1Query

    def queries_namespace(self) -> str:
        """Return the space of the ids."""
        return f"arqmath/{self._year}"

    def queries_lang(self) -> str:
        """Return the language of the queries."""
        return "en"


class ARQMathQrels(BaseQrels):  # type: ignore[misc]
    """The judgments of one year (or ``sample``) and task; in Task 2 of formulas or of visual ids."""

    def __init__(self, dataset: str, year: str, task: Task, judged: Judged = "formula") -> None:
        self._dataset, self._year, self._task, self._judged = dataset, year, task, judged

    def qrels_iter(self) -> Iterator[ARQMathQrel]:
        """Read the judgments without the codes 5 and 6, which are no grades."""
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
        """Count the judgments."""
        return sum(1 for _ in self.qrels_iter())

    def qrels_defs(self) -> dict[int, str]:
        """Return the meaning of the grades."""
        return _GRADES

    def qrels_cls(self) -> type[ARQMathQrel]:
        """Return the class of the judgments."""
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


def document(post: Post) -> ARQMathDoc:
    """Return a post as a document."""
    return ARQMathDoc(
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


def count_posts(file: Path, kind: DocumentKind) -> int:
    """Count the rows of a dump (plain or gzipped) by type without parsing them, so bad rows are included."""
    row = _ROW[kind]
    count, rest = 0, b""
    for chunk in read_chunks(file):
        data = rest + chunk
        matches = list(row.finditer(data))
        count += len(matches)
        rest = data[max(len(data) - 20, matches[-1].end() if matches else 0) :]
    return count


def store_name(files: Iterable[Path], kind: DocumentKind) -> str:
    """Name the store of the documents of files by their paths, sizes and times, so that changed files get another."""
    state = ((file, file.stat()) for file in files)
    key = "".join(f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns} " for file, stat in state) + __version__
    return f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.sqlite"
