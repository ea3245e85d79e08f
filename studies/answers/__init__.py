"""Studies of answer retrieval (Task 1): systems made from a collection, in one table with the common ones.

::

    rows           shared by several studies: the common systems, structural search, systems that read the question
    colbert, marf, two_step, extract      one file for each study
    catalogue      all of them, for Task 1 and the protocol

How a study is added
--------------------

Each study has a file here with a constant ``STUDY``; ``studies/registry.py`` lists them. A system defines how it is
made from :class:`~mathamr_systems.experiments.AnswerParts`::

    def _index(parts: AnswerParts) -> tuple[Model, MathAMRIndex]:
        def train(path: Path) -> None:
            Model.new(…).fit(read_training_pairs(parts.shared.collection.path).train, seed=parts.seed).save(path)

        model = Model.from_pretrained(parts.stage("model", train, trained=True, epochs=2))
        …                                               # the same for the index, which is made with the model

    def _system(parts: AnswerParts) -> pt.Transformer:
        model, index = parts.once(("model", parts.seed), lambda: _index(parts))   # loaded once for all topics
        return model.query_encoder() >> index.colbert(num_results=DEPTH)

    TRAINED = System("Model", _system, against=(TOKEN_ROW.name, SINGLE_ROW.name), trained=True)
    FUSED = System("Model + BM25", _fused, against=(TRAINED.name,), trained=True)
    STUDY = Study("answers/model", "Answers by the model", "answers", systems=(TRAINED, FUSED))

* ``make`` is called for each set of topics (``parts.of``: each year, and ``known item``) and each seed (``parts.seed``;
  -1 unless ``trained=True``). It returns a transformer from ``qid``, ``query``, ``title``, ``body`` to a ranking.
* ``parts.stage(name, build, trained=True, **settings)`` makes an artifact once for its settings (with
  ``trained``, also for seed, preset and options of ``--set``) and returns its path; a second call, row, study or
  process finds it. ``build`` is called with the path; work of a run that was killed is still there.
* ``parts.ranking(row)`` is the ranking of another row for the same topics and seed, without searching again; a fusion
  uses it like a system: ``ConvexFusion(parts.ranking(A), parts.ranking(B))``.
* ``parts.threads`` is the ``ThreadStore`` of all posts; ``parts.answer_texts()`` adds ``html`` to a ranking, for text
  scorers. ``parts.found`` has topics and judgments,
  ``parts.at(of=year).found`` has another year's, ``parts.other_years`` the years that a row with ``fitted=True`` may
  be fitted on, ``parts.shared`` everything else in a collection: ``collection``, ``bm25``, ``graphs``,
  ``approach0``, ``pairs`` (files of ``--pairs``), ``questions("validation")`` …
* ``parts.preset`` (``mini`` or ``full``) and ``parts.changes`` choose and change the recipe.
* Rankings are stored under the row's name and ``settings``: while writing a system, change ``settings`` (or delete
  ``answers/rankings`` of the work folder) to rank again.
* ``known=False``: no known items; ``linked=False``: no answers of linked questions, either. ``more=``: a function
  from the :class:`Outcome` to further tables.
* A row with the name of a common row replaces it; other studies and ``run_arqmath`` import the parts of a study that
  they use from its file.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mathamr_systems.experiments.measuring import (
    FEW_JUDGED,
    FLOOR,
    KNOWN_ITEM_MEASURES,
    RANDOM_ANSWERS,
    Missing,
    measure_by_topic,
    not_measured,
    random_known_items,
    rounded,
    stars,
    with_missing,
)
from mathamr_systems.experiments.report import Report, published
from mathamr_systems.experiments.systems import ONCE, AnswerParts, AnswerSystem
from mathamr_systems.experiments.workdir import KNOWN_ITEM
from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr.arqmath import TASK1_MEASURES
from studies.artifacts import prepare
from studies.study import Outcome, Setting, Study, all_systems, baselines, reference
from studies.tables import JUDGED, KNOWN, MAIN, REFERENCE, VALUES, Key, Results

from .rows import COMMON_ROWS, TOKEN_ROW

JUDGED_TOPICS, KNOWN_ITEMS, TESTS = "Judged topics", "Known items", "Tests"
NOTES = (
    FEW_JUDGED,
    "Relevant is a grade of 2 or 3; unjudged answers are removed first (the prime). A topic whose run has no judged "
    "answer scores 0. Years are pooled by topic. Rankings have at most 1000 answers.",
    "Known items: the questions of the test part, never trained on, search for their own answers among all answers. A "
    "two-step search has no such figure, nor has a system whose documents begin with their question: each question "
    "would find itself.",
    "± is the standard deviation over the seeds of trained systems; the values of a topic are averaged over the seeds "
    "before a test, so that each topic enters it once.",
    "The random order ranks all judged answers of a topic, a system only the ones that it finds, so a system can be "
    "below it. For known items it is the exact expectation over all answers.",
)
ADVICE = "They have learned too little, or find too few of the judged answers."


def measure(setting: Setting) -> Outcome:
    """Train and measure each system on Task 1 and on known items; finished work is not repeated."""
    years, shared = setting.years, setting.shared
    systems = all_systems(setting.study, COMMON_ROWS)
    if setting.preset.name == "full":  # of a release, untrained tokens would need 289 GB, and nine minutes a query
        systems = tuple(system for system in systems if system.name != TOKEN_ROW.name)
    if len(years) == 1 and (fitted := [system.name for system in systems if system.fitted]):
        raise ConfigError("years", years, f"several, since rows are fitted on the others: {'; '.join(fitted)}")
    prepare(shared, years)
    preset = setting.preset.name
    parts = AnswerParts(shared, years[0], years, preset=preset, changes=setting.changes, device=setting.device)
    missing: Missing = {}
    values = _references(parts)
    for system in systems:
        try:
            values += _values(system, parts, setting.seeds)
        except MissingExtraError as error:
            missing[system.name] = error
    return Outcome(setting, Results(pd.concat(values, ignore_index=True)), systems, missing, extra=parts)


def _values(system: AnswerSystem, parts: AnswerParts, seeds: Sequence[int]) -> list[pd.DataFrame]:
    """Measure the rankings of a system, with each seed if it is trained."""
    values = []
    for seed in seeds if system.trained else (ONCE,):
        for of in (*([KNOWN_ITEM] if system.known else []), *parts.years):
            own = parts.at(of=of, seed=seed)
            topics, qrels, _ = own.found
            measures = KNOWN_ITEM_MEASURES if own.known else TASK1_MEASURES
            found = measure_by_topic({system.name: own.ranking(system)}, topics, qrels, measures)
            values.append(_marked(found.rename(columns={"name": "system"}), of, seed))
    return values


def _references(parts: AnswerParts) -> list[pd.DataFrame]:
    shared = parts.shared
    known = random_known_items(shared.questions("test").qrels, len(shared.bm25))
    floors = [_marked(known.assign(system=RANDOM_ANSWERS), KNOWN_ITEM, ONCE)]
    return floors + [_marked(shared.floor(year).assign(system=FLOOR), year, ONCE) for year in parts.years]


def _marked(values: pd.DataFrame, of: str, seed: int) -> pd.DataFrame:
    """Add the columns that identify results; a topic without a judged result has 0."""
    return values.assign(condition=REFERENCE, seed=seed, topics=of).fillna({"value": 0.0})[VALUES]


def report(outcome: Outcome) -> Report:
    """Make the report: the table of the judged topics, that of known items, and all tests."""
    setting = outcome.setting
    study, shared, years = setting.study, setting.shared, setting.years
    tests = tests_table(outcome)
    judged, more = f"{JUDGED_TOPICS} of {' and '.join(years)}", study.more(outcome) if study.more else {}
    star = stars("the better BM25", f"{len(tests)} tests")
    return Report(
        title=f"{study.name}: {study.title}, on {shared.collection.path.name}",
        settings={
            "study": study.name,
            "collection": str(shared.collection.path),
            "pairs": [file.name for file in shared.pairs],
            "years": list(years),
            "seeds": list(setting.seeds),
            "preset": setting.preset.name,
            **setting.changes,
        },
        stages=shared.stages.last(),
        tables={
            judged: means_table(outcome, years, JUDGED, tests),
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
                *not_measured(outcome.missing),
            ],
            KNOWN_ITEMS: _near_random(outcome, [KNOWN_ITEM], KNOWN[0], RANDOM_ANSWERS),
        },
        notes=(*study.notes, *NOTES),
        published=published_of(study),
        values={"by-topic": outcome.results.values.drop(columns="condition")},
    )


def published_of(study: Study) -> dict[str, pd.DataFrame]:
    """Return the published tables of a study's systems by their captions."""
    found = [published(paper).captioned(numbers) for paper, numbers in study.published]
    return {caption: table for tables in found for caption, table in tables.items()}


def _about(outcome: Outcome, judged: str) -> dict[str, str]:
    shared = outcome.setting.shared
    name, answers = shared.collection.path.name, len(shared.bm25)
    found = [shared.topics(year) for year in outcome.setting.years]
    topics, judgments = sum(len(one.topics) for one in found), sum(len(one.qrels) for one in found)
    questions = len(shared.questions("test").topics)
    return {
        judged: f"{topics} topics with {judgments:,} judgments of {name}, {answers:,} answers.",
        KNOWN_ITEMS: f"{questions} test questions of {name} look for their own answers among {answers:,}.",
        TESTS: "Mean differences over topics, p before and after Bonferroni over all tests.",
    }


def means_table(outcome: Outcome, topics: Sequence[str], measures: Sequence[str], tests: pd.DataFrame) -> pd.DataFrame:
    """Average each measure over topics, the random order first; a star where a system differs from the better BM25."""
    known = list(topics) == [KNOWN_ITEM]
    measured = {system.name: system for system in outcome.measured(known=known)}
    names = [RANDOM_ANSWERS if known else FLOOR, *measured]
    table = outcome.results.means(list(map(reference, names)), topics, measures, years=True).drop(columns="condition")
    seeds = len(outcome.setting.seeds)
    table.insert(1, "seeds", [str(seeds) if name in measured and measured[name].trained else "" for name in names])
    words = outcome.results.better_bm25(topics, measures[0])
    starred = tests[tests["significant"] & tests["against"].eq(words) & tests["measure"].eq(measures[0])]["system"]
    table[f"{measures[0]} reject"] = table["system"].isin(starred)
    able = {system.name for system in outcome.systems if system.known or not known}
    missing = {name: error for name, error in outcome.missing.items() if name in able}
    return with_missing(table, [names[0], *(system.name for system in outcome.systems)], missing, "system")


def tests_table(outcome: Outcome) -> pd.DataFrame:
    """Test each system against the better BM25 and its other baselines, by the first measure of each task."""
    asked: list[tuple[Sequence[str], str, list[tuple[Key, Key]]]] = []
    tasks: tuple[tuple[Sequence[str], str], ...] = ((outcome.setting.years, MAIN), ([KNOWN_ITEM], KNOWN[0]))
    for topics, measure in tasks:
        known = measure == KNOWN[0]
        if known and outcome.parts.at(of=KNOWN_ITEM).found.topics.empty:
            continue
        names = {system.name: system for system in outcome.measured(known=known)}
        words = outcome.results.better_bm25(topics, measure)
        pairs = [
            (reference(name), reference(other))
            for name, one in names.items()
            for other in baselines(one, words)
            if other in names
        ]
        asked.append((topics, measure, pairs))
    number = sum(len(pairs) for _, _, pairs in asked)
    tables = []
    for topics, measure, own in asked:
        table = rounded(outcome.results.tests(own, topics, [measure], number)).drop(columns="condition")
        table.insert(2, "topics", " and ".join(topics))
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _near_random(outcome: Outcome, topics: Sequence[str], measure: str, floor: str) -> tuple[str, ...]:
    names = [reference(system.name) for system in outcome.measured(known=floor == RANDOM_ANSWERS)]
    return outcome.results.near_random(names, reference(floor), topics, measure, ADVICE)
