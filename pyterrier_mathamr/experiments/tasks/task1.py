"""Task 1: answers to questions, by the ways to search and by the fusion with BM25."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr.experiments.measuring import KNOWN_ITEM_MEASURES, fusion_weights, measure, measure_by_topic
from pyterrier_mathamr.experiments.report import Report
from pyterrier_mathamr.experiments.search import TASK1, Search
from pyterrier_mathamr.model import MathAMRConfig

from .preparing import described, prepared

NOTES = (
    "Relevant is a grade of 2 or 3; unjudged answers are removed first (the prime). A topic whose run has no judged "
    "answer scores 0.",
    "A star marks a measure that differs significantly from BM25's (two-sided paired t-test, p < 0.05 after Bonferroni "
    "over the systems).",
    "BM25 was chosen on validation questions, and the weight of the fusion was fitted to them, by softmax over all "
    "documents that either side found; test questions were never trained on.",
    "Peak memory is that of the process up to the end of the stage.",
)


def run_arqmath(
    path: str | Path,
    year: int | str,
    workdir: str | Path,
    *,
    config: MathAMRConfig | None = None,
    model: str | None = None,
    verbose: bool = True,
) -> Report:
    """Build everything from a local ARQMath folder, and compare MathAMR+ with BM25 on Task 1.

    Finished stages are kept in ``workdir`` and not repeated, so a run that was stopped continues.

    Args:
        path: the folder of the release, or of a part of it.
        year: 2020, 2021 or 2022 (or another year in the file names) of the topics and judgements.
        workdir: where artifacts, tables and ``report.md`` are kept.
        config: of the model to train; by default that of the paper's experiments.
        model: name or folder of a trained model, to use it instead of training one.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written to ``workdir`` as ``report.json``, ``report.md`` and CSV files.

    Raises:
        SettingsChangedError: ``workdir`` has a finished stage with other settings.
        ConfigError: ``config`` and ``model`` are both given.
        ARQMathError: a file of the release is missing or damaged; the message says which.
        NoRelevantTopicError: no topic of the year can be measured on this collection.
    """
    own, encoder = prepared(path, workdir, config, model, verbose)
    shared, timed = own.shared, own.stages.timed
    search = Search(encoder, own.answers(encoder), shared.bm25, TASK1)
    with timed("fusion weight"):
        questions = shared.questions("validation")
        weights = fusion_weights(*search.fit(questions), questions.qrels)
    with timed("known items"):
        found = shared.questions("test")
        known_item = measure(search.rankings(search.encode(found))[0], found.topics, found.qrels, KNOWN_ITEM_MEASURES)
    with timed(f"task 1, {year}"):
        found = shared.topics(year)
        rankings, speed = search.rankings(search.encode(found))
        table = measure(rankings, found.topics, found.qrels)
        by_topic = measure_by_topic(rankings, found.topics, found.qrels)
    return Report(
        title=f"MathAMR+ on ARQMath {year}, {shared.collection.path.name}",
        settings=described(shared, encoder, {"year": year, "answers": len(shared.bm25), "topics": len(found.topics)})
        | {"fusion weight": search.weight},
        stages=tuple(shared.stages.records),
        tables={
            f"Task 1, {year}": table,
            "Known items, test questions": known_item,
            "Time of a query": speed,
            "Fusion weight, validation questions": weights,
        },
        notes=NOTES,
        values={f"task-1-{year}-by-topic": by_topic},
    ).write(shared.workdir)
