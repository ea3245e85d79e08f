"""What the organisers and the MathAMR+ paper publish about the complete release: counts and the paper to cite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DOCUMENT_COUNTS: Mapping[str, int] = {
    "posts": 2_466_080,
    "questions": 1_020_585,
    "answers": 1_445_495,
    "formulas": 28_320_920,
}
"""Documents of the release, version 1.3 of the posts and version 3 of the formula tables (MathAMR+, Table 4.3)."""

TOPIC_COUNTS: Mapping[str, int] = {
    "2020/task1": 98,
    "2022/task1": 100,
    "2022/task2": 100,
    "2022/task3": 100,
}
"""Topics in the official files; fewer are judged."""

JUDGEMENT_COUNTS: Mapping[str, int] = {
    "2020/task1": 39_124,
    "2020/task2": 12_115,
    "2020/task2/visual": 6_074,
    "2022/task1": 34_847,
    "2022/task2": 16_189,
    "2022/task2/visual": 11_538,
    "2022/task3": 722,
}
"""Graded lines of the official judgements of the test topics; the 70 lines of Task 3 with code 5 or 6 are no grades."""

TABLE_4_3: Mapping[str, int] = {
    "Total posts": DOCUMENT_COUNTS["posts"],
    "Question posts": DOCUMENT_COUNTS["questions"],
    "Answer posts": DOCUMENT_COUNTS["answers"],
    "Mathematical formulas": DOCUMENT_COUNTS["formulas"],
    "Task 1 topics": 78,
    "Task 2 topics": 76,
    "Task 1 total judgments": 34_847,
    "Task 1 unique judged answer posts": 33_383,
    "Task 2 total judgments": 11_538,
    "Task 2 unique judged formulas": 9_975,
    "Training pairs (question + accepted answer)": 545_638,
    "Task 1 retrieval index (answer posts)": 1_365_254,
    "Task 2 retrieval index (question+answer posts)": 2_058_341,
}
"""MathAMR+, Table 4.3: ARQMath-3 benchmark and MathAMR+ corpus statistics, as printed."""

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
"""BibTeX of the paper that the organisers ask users of the collection to cite."""


class PublishedMetadata:
    """Gives ir_datasets the counts of the complete release; of a local copy the datasets count themselves.

    Args:
        kind: what the documents are.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def get_metadata(self, dataset: str, entity: Any) -> dict[str, Any]:
        """Return ``{"count": …}`` where a count is published.

        Args:
            dataset: the dataset's id.
            entity: ``docs``, ``queries`` or ``qrels``, as text or as ir_datasets' enumeration.
        """
        if dataset.startswith("arqmath/sample"):
            return {}
        name = dataset.removeprefix("arqmath/")
        counts: Mapping[str, Mapping[str, int]] = {
            "docs": {name: DOCUMENT_COUNTS.get(self._kind, 0)},
            "queries": {**TOPIC_COUNTS, "2022/task2/visual": TOPIC_COUNTS["2022/task2"]},
            "qrels": JUDGEMENT_COUNTS,
        }
        count = counts.get(getattr(entity, "value", entity), {}).get(name)
        return {"count": count} if count else {}


class Documentation:
    """What ``dataset.documentation()`` and ``dataset.citation()`` say.

    Args:
        description: one sentence about the dataset.
    """

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
