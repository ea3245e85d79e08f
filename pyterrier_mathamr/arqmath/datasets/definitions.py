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

Importing this module registers the datasets, which reads no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import ir_datasets
from ir_datasets.util import MetadataComponent

from pyterrier_mathamr.arqmath.release.file_names import Judged, Task
from pyterrier_mathamr.arqmath.release.published import DOCUMENT_COUNTS, JUDGMENT_COUNTS, TOPIC_COUNTS

from .handlers import ARQMathDocs, ARQMathQrels, ARQMathQueries, ARQMathTraining, DocumentKind

YEARS = ("2020", "2021", "2022", "sample")


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
"""BibTeX of the paper that the organisers ask users to cite."""


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


class _Definition(NamedTuple):
    """The parts of a dataset; ``task`` is 0 for documents only."""

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
    """Register ``arqmath/…`` with ir_datasets; idempotent, without reading or downloading anything."""
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
