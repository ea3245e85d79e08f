"""ARQMath in ir_datasets: which datasets there are, and what each is made of.

=========================  =============================  ==========================  ==================================
dataset                    documents                      queries                     judged ids
=========================  =============================  ==========================  ==================================
``arqmath``                all posts
``arqmath/questions``      the questions
``arqmath/answers``        the answers
``arqmath/formulas``       the formulas
``arqmath/2022/task1``     the answers                    questions                   answers (documents)
``arqmath/2022/task2``     all posts, where the formulas  formulas, each within its   formulas (documents of
                           stand                          question                    ``arqmath/formulas``)
``…/task2/visual``         the same                       the same                    visual ids
``arqmath/2022/task3``     the answers                    questions, as in Task 1     submitted answers, no documents
=========================  =============================  ==========================  ==================================

2020, 2021 and 2022 are the years of the lab; ``arqmath/sample/…`` comes with the package. ``arqmath`` also gives out
training pairs and links: ``ir_datasets.load("arqmath").pairs_iter()`` and ``links_iter()``.

Importing this module registers them, which reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import ir_datasets
from ir_datasets.util import MetadataComponent

from pyterrier_mathamr.arqmath.release.file_names import Judged, Task
from pyterrier_mathamr.arqmath.release.published import Documentation, PublishedMetadata

from .handlers import ARQMathDocs, ARQMathQrels, ARQMathQueries, ARQMathTraining, DocumentKind

YEARS = ("2020", "2021", "2022", "sample")


class _Definition(NamedTuple):
    """What one dataset is made of; ``task`` is 0 for documents alone."""

    kind: DocumentKind
    about: str
    year: str = ""
    task: Task | Literal[0] = 0
    judged: Judged = "formula"


def _define() -> dict[str, _Definition]:
    defined: dict[str, _Definition] = {}
    for top in ("arqmath", "arqmath/sample"):
        defined[top] = _Definition("posts", "All questions and answers of Math Stack Exchange, 2010 to 2018.")
        defined[f"{top}/questions"] = _Definition("questions", "The questions.")
        defined[f"{top}/answers"] = _Definition("answers", "The answers.")
        defined[f"{top}/formulas"] = _Definition("formulas", "The formulas of the posts, as LaTeX with visual ids.")
    for year in YEARS:
        top = f"arqmath/{year}"
        defined[f"{top}/task1"] = _Definition("answers", f"Answer retrieval, {year}.", year, 1)
        defined[f"{top}/task2"] = _Definition("posts", f"Formula search, {year}; formulas are judged.", year, 2)
        about = f"Formula search, {year}; visually distinct formulas are judged, as in the official results."
        defined[f"{top}/task2/visual"] = _Definition("posts", about, year, 2, "visual")
    defined["arqmath/2022/task3"] = _Definition("answers", "Open domain question answering, 2022.", "2022", 3)
    del defined["arqmath/sample/task2/visual"]  # the sample's formulas are judged one by one
    return defined


_DEFINITIONS: Mapping[str, _Definition] = _define()

DATASETS: tuple[str, ...] = tuple(_DEFINITIONS)
"""The ids of all datasets."""


def register() -> None:
    """Make ``arqmath/…`` known to ir_datasets. Reads and downloads nothing; a second call changes nothing."""
    known = set(ir_datasets.registry)
    for name, definition in _DEFINITIONS.items():
        if name not in known:
            ir_datasets.registry.register(name, _dataset(name, definition))


def _dataset(name: str, definition: _Definition) -> ir_datasets.Dataset:
    kind, about, year, task, judged = definition
    parts = [ARQMathDocs(name, kind), Documentation(about)]
    if task:
        parts += [ARQMathQueries(name, year, task), ARQMathQrels(name, year, task, judged)]
    elif kind == "posts":
        parts.append(ARQMathTraining(name))
    dataset = ir_datasets.Dataset(*parts)
    return ir_datasets.Dataset(MetadataComponent(name, dataset, PublishedMetadata(kind)), dataset)


register()
