"""The report of an answer study: the table of the judged topics, that of known items, and all tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from pyterrier_mathamr.experiments.measuring import (
    FLOOR,
    RANDOM_ANSWERS,
    SHORT_NAMES,
    PairedTest,
    near_random,
    near_random_remark,
    paired_test,
    with_missing,
)
from pyterrier_mathamr.experiments.reporting.published import published_answers
from pyterrier_mathamr.experiments.reporting.report import Report
from pyterrier_mathamr.experiments.search import BM25
from studies.trained.job import KNOWN_ITEM
from studies.trained.results import ONCE, Key
from studies.trained.tables import KNOWN, MAIN, REFERENCE, TASK1

if TYPE_CHECKING:
    from .definition import Outcome

FEW_JUDGED = "So few answers are judged here that a difference of less than .02 nDCG' means nothing."
JUDGED, KNOWN_ITEMS, TESTS = "Judged topics", "Known items", "Tests"
NOTES = (
    FEW_JUDGED,
    "Relevant is a grade of 2 or 3; unjudged answers are removed first (the prime). A topic whose run has no judged "
    "answer scores 0. Years are pooled by topic. Rankings have at most 1000 answers.",
    "Known items: the questions of the test part, never trained on, look for their own answers among all answers. A "
    "two-step search has no such figure, nor has one whose documents have their question in front: a question would "
    "find itself.",
    "± is the standard deviation over the seeds of what is trained; the values of a topic are averaged over the seeds "
    "before a test, so that each topic enters it once.",
    "The random order ranks all judged answers of a topic, a system only those that it finds, so a system can be below "
    "it. For known items it is the exact expectation over all answers.",
)
PUBLISHED: Mapping[str, Sequence[tuple[str, Sequence[str]]]] = {
    "answers/colbert": [("zhong", ["3", "5"])],
    "answers/hybrid": [("zhong", ["2", "3", "5"])],
    "answers/marf": [("wang", ["1", "3", "4", "5"])],
    "answers/two-step": [("mansouri", ["5.2", "5.3", "5.5", "5.6"])],
    "answers/extract": [("zhong", ["7"])],
}
"""By study, the published tables of its systems; see :func:`published_answers`."""
ADVICE = "They have learned too little, or find too few of the judged answers."


def answer_report(outcome: Outcome) -> Report:
    """Make the report of a study."""
    study, shared, years = outcome.study, outcome.parts.shared, outcome.years
    tests = tests_table(outcome)
    judged, more = f"{JUDGED} of {' and '.join(years)}", study.more(outcome) if study.more else {}
    star = f"A star: differs from {BM25} (two-sided paired t-test, p < 0.05 after Bonferroni over {len(tests)} tests)."
    return Report(
        title=f"{study.name}: {study.title}, on {shared.collection.path.name}",
        settings={
            "study": study.name,
            "collection": str(shared.collection.path),
            "pairs": [file.name for file in shared.pairs],
            "years": list(years),
            "seeds": list(outcome.seeds),
            "preset": outcome.parts.preset,
            **outcome.parts.changes,
        },
        stages=tuple({record.name: record for record in reversed(shared.stages.records)}.values())[::-1],
        tables={
            judged: means_table(outcome, years, TASK1, tests),
            KNOWN_ITEMS: means_table(outcome, [KNOWN_ITEM], KNOWN, tests),
            TESTS: tests,
            **more,
        },
        about={
            caption: " ".join(filter(None, (text, FEW_JUDGED, star if caption in (judged, KNOWN_ITEMS) else "")))
            for caption, text in {**_about(outcome, judged), **dict.fromkeys(more, ""), **study.about}.items()
        },
        remarks={
            judged: [
                *_near_random(outcome, years, MAIN, FLOOR),
                *(f"**Not measured**: {row}. {error}" for row, error in outcome.missing.items()),
            ],
            KNOWN_ITEMS: _near_random(outcome, [KNOWN_ITEM], KNOWN[0], RANDOM_ANSWERS),
        },
        notes=(*study.notes, *NOTES),
        published=published_of(study.name),
        values={"by-topic": outcome.results.values.drop(columns="condition")},
    )


def published_of(study: str) -> dict[str, pd.DataFrame]:
    """Return the published tables of a study's systems by their captions."""
    found = [published_answers()[paper].captioned(numbers) for paper, numbers in PUBLISHED.get(study, ())]
    return {caption: table for tables in found for caption, table in tables.items()}


def _about(outcome: Outcome, judged: str) -> dict[str, str]:
    """Say what each table is of."""
    shared = outcome.parts.shared
    name, answers = shared.collection.path.name, len(shared.bm25)
    found = [shared.topics(year) for year in outcome.years]
    topics, judgments = sum(len(one.topics) for one in found), sum(len(one.qrels) for one in found)
    questions = len(shared.questions("test").topics)
    return {
        judged: f"{topics} topics with {judgments:,} judgments of {name}, {answers:,} answers.",
        KNOWN_ITEMS: f"{questions} test questions of {name} look for their own answers among {answers:,}.",
        TESTS: "Mean differences over topics, p as it is and after Bonferroni over all tests.",
    }


def means_table(outcome: Outcome, topics: Sequence[str], measures: Sequence[str], tests: pd.DataFrame) -> pd.DataFrame:
    """Compute the mean of each measure over the topics, and its standard deviation over the seeds."""
    known = list(topics) == [KNOWN_ITEM]
    starred = tests[tests["significant"] & tests["against"].eq(BM25) & tests["measure"].eq(measures[0])]["system"]
    lines = []
    for name in (RANDOM_ANSWERS if known else FLOOR, *(row.name for row in outcome.measured(known=known))):
        values = {measure: outcome.results.by_topic(_key(name), topics, measure) for measure in measures}
        main = values[measures[0]]
        line: dict[str, object] = {"system": name, "seeds": "" if ONCE in main or main.empty else str(main.shape[1])}
        if len(topics) > 1:
            by_year = main.groupby(level="topics").mean().mean(axis=1)
            line |= {f"{SHORT_NAMES[measures[0]]} {year}": float(by_year[year]) for year in topics}
        for measure, own in values.items():
            by_seed = own.mean(axis=0)
            line[measure] = float(by_seed.mean())
            line[f"{measure} std"] = float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None
        lines.append({**line, f"{measures[0]} reject": name in set(starred)})
    missing = {name: error for name, error in outcome.missing.items() if not known or _row_known(outcome, name)}
    return with_missing(
        pd.DataFrame(lines), [str(lines[0]["system"]), *(row.name for row in outcome.rows)], missing, "system"
    )


def tests_table(outcome: Outcome) -> pd.DataFrame:
    """Test each row against BM25 and its other baselines, by the first measure of each task."""
    asked: list[tuple[str, str, Sequence[str], str]] = []
    tasks: tuple[tuple[Sequence[str], str], ...] = ((outcome.years, MAIN), ([KNOWN_ITEM], KNOWN[0]))
    for topics, measure in tasks:
        known = measure == KNOWN[0]
        if known and outcome.parts.at(of=KNOWN_ITEM).found.topics.empty:
            continue
        rows = outcome.measured(known=known)
        names = {row.name for row in rows}
        asked += [(row.name, other, topics, measure) for row in rows for other in row.baselines if other in names]
    lines = []
    for name, other, topics, measure in asked:
        ours, theirs = (outcome.results.mean_over_seeds(_key(each), topics, measure) for each in (name, other))
        test = paired_test(ours, theirs, len(asked)).columns()
        test["difference"] = round(test["difference"], 4)  # the smallest numbers are written as those of p are
        lines.append({"system": name, "against": other, "topics": " and ".join(topics), "measure": measure, **test})
    columns = ["system", "against", "topics", "measure", *PairedTest.NAMES]
    return pd.DataFrame(lines, columns=columns)


def _near_random(outcome: Outcome, topics: Sequence[str], measure: str, floor: str) -> tuple[str, ...]:
    """Point out the rows that are not significantly above a random order."""
    chance = _by_topic(outcome, floor, topics, measure)
    rows = outcome.measured(known=floor == RANDOM_ANSWERS)
    values = [_by_topic(outcome, row.name, topics, measure).assign(name=row.name) for row in rows]
    if chance.empty or not values:
        return ()
    near = near_random(pd.concat(values), chance)
    return near_random_remark(near, float(chance["value"].mean()), measure, len(chance), ADVICE)


def _by_topic(outcome: Outcome, name: str, topics: Sequence[str], measure: str) -> pd.DataFrame:
    """Return a row's values averaged over its seeds: ``qid`` (with the year) and ``value``."""
    mean = outcome.results.by_topic(_key(name), topics, measure).mean(axis=1)
    return pd.DataFrame({"qid": [" ".join(index) for index in mean.index], "value": mean.to_numpy()})


def _row_known(outcome: Outcome, name: str) -> bool:
    return any(row.known for row in outcome.rows if row.name == name)


def _key(name: str) -> Key:
    """Return by what :class:`Results` finds a row."""
    return REFERENCE, name
