"""The formula topics of a year, and their judgements by visually distinct formula."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pandas as pd

from pyterrier_mathamr.arqmath import ARQMathCollection, MissingFileError, Qrel, visual_qrels
from pyterrier_mathamr.formula import FormulaStore

from .arqmath_topics import RELEVANT
from .errors import NoRelevantTopicError

DEPTH = 10_000
"""Formulas that are ranked before those that look alike are made one; half of a collection's repeat another."""

LENGTH = 1000
"""Visually distinct formulas of a ranking, as the task allows."""


def formula_topics(collection: ARQMathCollection, year: int | str) -> pd.DataFrame:
    """Read the topics of Task 2: ``qid, title, body, formula_id, latex``, each formula within its question.

    Args:
        collection: a local ARQMath folder.
        year: 2020, 2021 or 2022, or another by which the files are named.
    """
    rows = [(topic.id, topic.title, topic.body, topic.formula_id, topic.latex) for topic in collection.topics(year, 2)]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "title", "body", "formula_id", "latex"], dtype=str)
    return frame


def visual_judgements(
    collection: ARQMathCollection, year: int | str, visual_ids: FormulaStore, found: Collection[str]
) -> dict[str, pd.DataFrame]:
    """Read the judgements of Task 2, those of formula ids and those of visual ids, both by visual id.

    A formula's grade counts for all formulas that look the same, as the organisers define it. Topics without a formula
    of grade 2 or better are left out.

    Args:
        collection: a local ARQMath folder.
        year: 2020, 2021 or 2022, or another by which the files are named.
        visual_ids: of the collection's formulas.
        found: the visual ids that can be found; judgements of others are left out, which in a part of the release
            changes the ideal ranking and in the whole release nothing.

    Returns:
        What was judged, ``formula ids`` or ``visual ids``, to ``qid, docno, label``; the kinds that the folder has.

    Raises:
        MissingFileError: it has neither.
        NoRelevantTopicError: there is no topic with a relevant formula.
    """
    by_kind: dict[str, pd.DataFrame] = {}
    missing: MissingFileError | None = None
    try:
        by_kind["formula ids"] = visual_qrels(_frame(collection.qrels(year, 2)), visual_ids)
    except MissingFileError as error:
        missing = error
    try:
        by_kind["visual ids"] = _frame(collection.qrels(year, 2, judged="visual"))
    except MissingFileError:
        if missing is not None:
            raise missing from None
    kept = {}
    for kind, qrels in by_kind.items():
        there = qrels[qrels["docno"].isin(found)]
        relevant = there["qid"].isin(there.loc[there["label"] >= RELEVANT, "qid"])
        if relevant.any():
            kept[kind] = there[relevant].reset_index(drop=True)
    if not kept:
        raise NoRelevantTopicError(collection.path, year, RELEVANT)
    return kept


def _frame(qrels: Iterable[Qrel]) -> pd.DataFrame:
    rows = [(row.query_id, row.doc_id, row.relevance) for row in qrels]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=["qid", "docno", "label"])
    return frame
