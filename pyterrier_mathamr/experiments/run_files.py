"""Measure run files against judgments: each measure of each run, and its difference from that of a baseline."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.arqmath import JUDGED, SHORT_NAMES, TASK1_MEASURES, ARQMathError, read_qrels, read_run, strictly

from .measuring import Rankings, measure_by_topic, paired_test

DEFAULT_MEASURES: Mapping[str, Any] = {
    **dict(zip(SHORT_NAMES.values(), TASK1_MEASURES, strict=True)),
    "Judged@10": JUDGED,
}
"""The measures of Task 1 by their names in papers, and how many of the first ten are judged."""


class Evaluation(NamedTuple):
    """The measures of several runs over the topics that are judged.

    Attributes:
        means: a row for each run: ``name`` and a column for each measure.
        tests: a row for each run but the baseline and each measure: ``name``, ``measure``, the numbers of topics that
            are ``better`` and ``worse``, and the columns of :class:`PairedTest`; empty without a baseline.
        by_topic: ``name``, ``qid``, ``measure``, ``value``.
        topics: the number of topics that are judged.
        missing: by run, those of them that it does not have; each counts 0.
    """

    means: pd.DataFrame
    tests: pd.DataFrame
    by_topic: pd.DataFrame
    topics: int
    missing: dict[str, list[str]]


def read_rankings(files: Mapping[str, Path]) -> dict[str, pd.DataFrame]:
    """Read run files.

    Args:
        files: by name.

    Raises:
        ARQMathError: a line cannot be read, or a file has no ranking.
    """
    rankings = {name: strictly(lambda path=path: read_run(path)) for name, path in files.items()}  # type: ignore[misc]
    for name, ranking in rankings.items():
        if ranking.empty:
            raise ARQMathError(f"{files[name]}: it holds no ranking")
    return rankings


def read_judgements(path: Path) -> pd.DataFrame:
    """Read a file of judgments: ``qid``, ``docno``, ``label``.

    Raises:
        ARQMathError: a line cannot be read, or the file has no judgment.
    """
    rows = strictly(lambda: [(found.query_id, found.doc_id, found.relevance) for found in read_qrels(path)])
    if not rows:
        raise ARQMathError(f"{path}: it holds no judgment")
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def evaluate_runs(
    rankings: Rankings,
    qrels: pd.DataFrame,
    measures: Mapping[str, Any] = DEFAULT_MEASURES,
    *,
    baseline: str | None = None,
) -> Evaluation:
    """Measure rankings over all topics that are judged, also those that a ranking does not have.

    Args:
        rankings: name to ``qid``, ``docno``, ``score``, ``rank``.
        qrels: ``qid``, ``docno``, ``label``.
        measures: of ``ir_measures``, by the names that they are shown by.
        baseline: the ranking that each other is tested against.

    Raises:
        ARQMathError: a ranking has no topic that is judged.
    """
    judged = qrels["qid"].drop_duplicates()
    missing = {name: judged[~judged.isin(ranking["qid"])].tolist() for name, ranking in rankings.items()}
    for name, ranking in rankings.items():
        if len(missing[name]) == len(judged):
            found, asked = ranking["qid"].iloc[0], judged.iloc[0]
            raise ARQMathError(f"{name}: none of its topics is judged; it has {found!r}, the judgments have {asked!r}")
    _warn_of_documents(rankings, qrels)
    _warn_of_grades(qrels, measures)
    chosen = list(measures.values())
    by_topic = measure_by_topic(rankings, pd.DataFrame({"qid": judged}), qrels, chosen)
    by_topic["measure"] = by_topic["measure"].map(dict(zip(map(str, chosen), measures, strict=True)))
    values = {
        each: rows.pivot(index="qid", columns="name", values="value").fillna(0.0)
        for each, rows in by_topic.groupby("measure")
    }
    names = list(dict.fromkeys([*([baseline] if baseline else []), *rankings]))
    means = pd.DataFrame(
        [{"name": name, **{each: float(values[each][name].mean()) for each in measures}} for name in names]
    )
    tested = [name for name, each in measures.items() if str(each) != str(JUDGED)]
    tests = _tests(values, names, tested) if baseline else pd.DataFrame()
    return Evaluation(means, tests, by_topic, len(judged), missing)


def _tests(values: Mapping[Any, pd.DataFrame], names: Sequence[str], measures: Sequence[str]) -> pd.DataFrame:
    """Test each ranking against the first on each measure, corrected for the number of rankings."""
    first, *others = names
    rows = []
    for name in others:
        for each in measures:
            ours, theirs = (values[each][system].to_numpy() for system in (name, first))
            counts = {"better": int((ours > theirs).sum()), "worse": int((ours < theirs).sum())}
            with warnings.catch_warnings():  # of scipy, where all topics differ by the same
                warnings.simplefilter("ignore", RuntimeWarning)
                outcome = paired_test(ours, theirs, len(others))
            rows.append({"name": name, "measure": each, **counts, **outcome.columns()})
    return pd.DataFrame(rows)


def _warn_of_documents(rankings: Rankings, qrels: pd.DataFrame) -> None:
    """Warn of rankings without any document that is judged, which are likely of another collection."""
    for name, ranking in rankings.items():
        if not ranking["docno"].isin(qrels["docno"]).any():
            found, judged = ranking["docno"].iloc[0], qrels["docno"].iloc[0]
            text = f"{name}: none of its documents is judged; it has {found!r}, the judgments have {judged!r}"
            warnings.warn(MathAMRWarning(text), stacklevel=3)


def _warn_of_grades(qrels: pd.DataFrame, measures: Mapping[str, Any]) -> None:
    """Warn where a measure takes grades as relevant that no document has."""
    best = int(qrels["label"].max())
    if zero := [name for name, measure in measures.items() if measure.params.get("rel", 1) > best]:
        text = (
            f"{', '.join(zero)} can only be 0: the best grade of these judgments is {best}, and grades of 2 or more "
            "are relevant. For judgments without grades choose measures such as AP and P@10"
        )
        warnings.warn(MathAMRWarning(text), stacklevel=3)
