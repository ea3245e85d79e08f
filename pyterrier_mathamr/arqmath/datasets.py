"""ARQMath in ir_datasets: ``arqmath/{2020,2021,2022,sample}/task{1,2}``.

========  =============================  ==================================  =====================
task      documents                      queries                             judged ids
========  =============================  ==================================  =====================
1         the answers                    questions                           answers (documents)
2         all posts, where the formulas  formulas, each within its question  formulas, which are no
          stand                                                              documents here
========  =============================  ==================================  =====================

Importing this module registers them, which reads nothing. The local copy is looked for when a dataset is iterated.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_datasets
from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries
from ir_datasets.indices import PickleLz4FullStore

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.posts import plain_text, post_from_html

from .documents import count_posts, document, store_name
from .errors import MissingFileError
from .home import locate
from .layout import Task
from .records import ARQMathDoc, ARQMathQrel, Task1Query, Task2Query

YEARS = ("2020", "2021", "2022", "sample")
DATASETS: tuple[str, ...] = tuple(f"arqmath/{year}/task{task}" for year in YEARS for task in (1, 2))
"""The ids of all datasets."""

_GRADES = {
    3: "high: answers the question in full, or the formula is as good as an exact match",
    2: "medium: a path to a solution",
    1: "low: could help",
    0: "not relevant",
}


class ARQMathDocs(BaseDocs):  # type: ignore[misc]
    """The posts of the local copy: the answers for Task 1, all for Task 2."""

    def __init__(self, dataset: str, task: Task) -> None:
        self._dataset, self._task = dataset, task

    @ir_datasets.util.use_docstore  # type: ignore[untyped-decorator]
    def docs_iter(self) -> Iterator[ARQMathDoc]:
        """Read the documents; slices come from the random-access store, which is built for the first."""
        return self._read()

    def docs_count(self) -> int:
        """Count the documents (seconds for the whole release)."""
        return count_posts(locate(self._dataset).posts_file, answers_only=self._task == 1)

    def docs_store(self) -> Any:
        """Return the store that looks documents up by id; it lies in ir_datasets' home and is built when first used."""
        home = Path(ir_datasets.util.home_path()) / "arqmath-docstores"
        return PickleLz4FullStore(
            path=str(home / store_name(locate(self._dataset).posts_file, self._task)),
            init_iter_fn=self._read,
            data_cls=ARQMathDoc,
            lookup_field="doc_id",
            index_fields=["doc_id"],
            count_hint=self.docs_count,
        )

    def docs_cls(self) -> type[ARQMathDoc]:
        """Return the class of the documents."""
        return ARQMathDoc

    def docs_namespace(self) -> str:
        """Return the space of the ids, shared by all years."""
        return "arqmath"

    def docs_lang(self) -> str:
        """Return the language of the documents."""
        return "en"

    def _read(self) -> Iterator[ARQMathDoc]:
        collection = locate(self._dataset)
        return map(document, collection.answers() if self._task == 1 else collection.posts())


class ARQMathQueries(BaseQueries):  # type: ignore[misc]
    """The topics of one year and task."""

    def __init__(self, dataset: str, year: str, task: Task) -> None:
        self._dataset, self._year, self._task = dataset, year, task

    def queries_iter(self) -> Iterator[Task1Query | Task2Query]:
        """Read the topics."""
        for topic in locate(self._dataset).topics(self._year, self._task):
            text = plain_text(post_from_html(topic.body, topic.title))
            query = Task1Query(topic.id, topic.title, topic.body, " ".join(topic.tags), text)
            yield query if self._task == 1 else Task2Query(*query, topic.formula_id, topic.latex, topic.topic_id)

    def queries_cls(self) -> type[Task1Query] | type[Task2Query]:
        """Return the class of the queries."""
        return Task1Query if self._task == 1 else Task2Query

    def queries_namespace(self) -> str:
        """Return the space of the ids."""
        return f"arqmath/{self._year}"

    def queries_lang(self) -> str:
        """Return the language of the queries."""
        return "en"


class ARQMathQrels(BaseQrels):  # type: ignore[misc]
    """The judgements of one year and task; of Task 2 by formula id where the copy has them, else by visual id."""

    def __init__(self, dataset: str, year: str, task: Task) -> None:
        self._dataset, self._year, self._task = dataset, year, task

    def qrels_iter(self) -> Iterator[ARQMathQrel]:
        """Read the judgements."""
        collection = locate(self._dataset)
        try:
            qrels = collection.qrels(self._year, self._task)
        except MissingFileError:
            if self._task != 2:
                raise
            qrels = collection.qrels(self._year, 2, judged="visual")
            text = f"{self._dataset}: this copy judges visual ids, not formula ids; compare them with visual_id"
            warnings.warn(MathAMRWarning(text), stacklevel=2)
        for qrel in qrels:
            yield ARQMathQrel(qrel.query_id, qrel.doc_id, qrel.relevance, qrel.iteration)

    def qrels_defs(self) -> dict[int, str]:
        """Return what the grades mean."""
        return _GRADES

    def qrels_cls(self) -> type[ARQMathQrel]:
        """Return the class of the judgements."""
        return ARQMathQrel


def register() -> None:
    """Make ``arqmath/…`` known to ir_datasets. Reads and downloads nothing; a second call changes nothing."""
    known = set(ir_datasets.registry)
    for name in DATASETS:
        if name not in known:
            year = name.split("/")[1]
            task: Task = 1 if name.endswith("1") else 2
            parts = (ARQMathDocs(name, task), ARQMathQueries(name, year, task), ARQMathQrels(name, year, task))
            ir_datasets.registry.register(name, ir_datasets.Dataset(*parts))


register()
