"""Tasks 1 and 3, answers to questions: the ways to search with MathAMR+, BM25 and other systems; Task 1 in parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from mathamr_systems import ExtractAnswer
from mathamr_systems.math_tokens import math_tokens
from pyterrier_mathamr.arqmath import (
    TASK3_MEASURES,
    TOPIC_CATEGORIES,
    ARQMathCollection,
    parse_measure,
    read_topic_categories,
    write_answers,
)
from pyterrier_mathamr.extending import ConfigError, MissingExtraError
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.model import MathAMRConfig
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, post_from_html
from pyterrier_mathamr.store import row_fingerprint

from .measuring import (
    FEW_JUDGED,
    KNOWN_ITEM_MEASURES,
    RANDOM_ANSWERS,
    Comparison,
    FoundTopics,
    Missing,
    Rankings,
    compare,
    joined,
    measure_by_topic,
    not_measured,
    paired_test,
    pooled,
    random_floor,
    random_known_items,
    stars,
    time_queries,
    with_missing,
)
from .preparing import Prepared, prepare, years_of
from .report import Report
from .stages import slug
from .systems import ALL, BASELINES, COLBERT, FUSION, TASK1, AnswerParts, AnswerSystem, SystemSearch
from .task2 import OTHER_SYSTEMS, TIME, FormulaSystem, about_times, run_task2
from .workdir import KNOWN_ITEM, RELEVANT, require_years

PRECISION: Any = parse_measure("P'@10")
SHARES = (0.0, 0.5, 0.6, 0.7)
_WORD = re.compile(r"\w+|[^\w\s]")


def measure_by_category(rankings: Rankings, qrels: pd.DataFrame, categories: pd.DataFrame) -> pd.DataFrame:
    """Measure the P'@10 of rankings on the topics of each category, and test each against the first.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval", 2022, tables 5.3 and 5.6.

    Args:
        rankings: name to ranking (``qid``, ``docno``, ``score``); the first is the baseline.
        qrels: ``qid``, ``docno``, ``label``.
        categories: ``qid``, and a column for each kind of category; see
            :func:`~pyterrier_mathamr.arqmath.read_topic_categories`. Topics without judgments are left out.

    Returns:
        A row for each category that has topics: ``kind``, ``category``, ``topics``, then a column for each ranking, and
        for each but the first ``<name> reject`` (two-sided paired t-test, p < .05 after Bonferroni over the rankings).
    """
    judged = categories[categories["qid"].isin(qrels["qid"])]
    by_topic = measure_by_topic(rankings, judged, qrels, [PRECISION]).astype({"value": float}).fillna({"value": 0.0})
    wide = by_topic.pivot(index="qid", columns="name", values="value")
    rows: list[dict[str, object]] = []
    for kind, values in TOPIC_CATEGORIES.items():
        for value in values:
            of_category = wide[wide.index.isin(judged.loc[judged[kind] == value, "qid"])]
            if len(of_category):
                row: dict[str, object] = {"kind": kind, "category": value, "topics": len(of_category)}
                rows.append(row | _means({name: of_category[name].to_numpy(np.float64) for name in rankings}))
    return pd.DataFrame(rows)


def _means(values: Mapping[str, npt.NDArray[np.float64]]) -> dict[str, object]:
    """Average each system's values of the same topics, and test all systems against the first."""
    baseline = next(iter(values.values()))
    row: dict[str, object] = {}
    for place, (name, of_system) in enumerate(values.items()):
        row[name] = float(of_system.mean())
        if place:
            row[f"{name} reject"] = paired_test(of_system, baseline, len(values) - 1).significant
    return row


def recall_by_share(
    rankings: Rankings, qrels: pd.DataFrame, shares: Mapping[str, float], least: Sequence[float] = SHARES
) -> pd.DataFrame:
    """Measure the recall of relevant answers in which more than a share of the tokens are formula tokens.

    Wang, Zheng and Kani, "MaRF", table 4. The recall of a topic is the fraction of such relevant answers (grade 2 or 3)
    that is ranked; the mean is over the topics that have any.

    Args:
        rankings: name to ranking (``qid``, ``docno``), cut where recall is measured; the first is the baseline.
        qrels: ``qid``, ``docno``, ``label``.
        shares: docno to the share of formula tokens, 0 to 1; see :func:`formula_share`. Missing answers have share 0.
        least: shares; answers must have more.

    Returns:
        A row for each share: ``share``, ``topics``, ``answers``, then a column for each ranking, and for each except
        the first ``<name> reject``, as in :func:`measure_by_category`.
    """
    relevant = qrels[qrels["label"] >= RELEVANT]
    relevant = relevant.assign(share=relevant["docno"].map(shares).fillna(0.0).astype(float))
    ranked = {name: pd.MultiIndex.from_frame(ranking[["qid", "docno"]]) for name, ranking in rankings.items()}
    rows: list[dict[str, object]] = []
    for share in least:
        some = relevant[relevant["share"] > share]
        if some.empty:
            continue
        pairs = pd.MultiIndex.from_frame(some[["qid", "docno"]])
        values = {
            name: pd.Series(pairs.isin(found)).groupby(some["qid"].to_numpy()).mean().to_numpy(dtype=np.float64)
            for name, found in ranked.items()
        }
        row: dict[str, object] = {"share": f"> {share:g}", "topics": some["qid"].nunique(), "answers": len(some)}
        rows.append(row | _means(values))
    return pd.DataFrame(rows)


def formula_share(post: MathPost) -> float:
    """Compute the share of formula tokens among all tokens of a post; 0 of an empty one.

    Tokens are the words and signs of the text, and the math tokens of formulas; the papers count the tokens of their
    language models.
    """
    formulas = sum(len(math_tokens(formula.latex)) for formula in post.formulas)
    words = len(_WORD.findall(PLACEHOLDER.sub(" ", post.text)))
    return formulas / max(1, formulas + words)


def formula_shares(collection: ARQMathCollection, docnos: Iterable[str]) -> dict[str, float]:
    """Compute the share of formula tokens of some answers of a collection, by docno."""
    wanted = set(docnos)
    return {post.id: formula_share(post_from_html(post.body)) for post in collection.answers() if post.id in wanted}


SEED = 42
"""Of the other systems that are trained, as of the model."""
NOTES = (
    "Relevant is a grade of 2 or 3; unjudged answers are removed first (the prime). A topic whose run has no judged "
    "answer scores 0. Judgments of answers that are not in this collection are left out, and so are topics without a "
    "relevant answer in it.",
    "`tuned BM25 % n >> scorer` rescores by MaxSim the first n answers of the BM25 tuned for mathematics, and "
    "`doc-VN + MaxSim (k = n)` the first n by the document vectors; the other systems rank all answers. Judged answers "
    "beyond n are not found, so figures of different depths do not compare.",
    "The random order is the mean of 200 shuffles of the judged answers of each topic, with a fixed seed. It ranks all "
    "of them, a system only those it finds. For known items it is the expectation over all answers.",
    "BM25 is a standard one (k1 .9, b .4). The one tuned for mathematics was chosen on validation questions, and the "
    "weight of the fusion was fitted to them, by softmax over all documents that either side found; test questions "
    "were never trained on. Systems are tested against the better of the two, by the first measure of a table.",
    "Peak memory is that of the process up to the end of the stage.",
)
OTHERS = (
    "The other systems are trained once, with seed 42; their studies (`python -m studies answers/…`) have several "
    "seeds. Systems that rank by the text of questions have no row among known items: a question would find itself.",
    "The stage of each other system is its search with all topics, the encoding of the topics included.",
)

KNOWN_ITEMS = "Known items, test questions"
BY_CATEGORY = "P'@10 by category of topic"
BY_SHARE = "Recall by the share of formulas in an answer"


def run_arqmath(
    path: str | Path,
    year: int | str | Sequence[int | str],
    workdir: str | Path,
    *,
    task: Literal[1, 2, 3] = 1,
    model: str | MathAMRConfig | None = None,
    changes: Mapping[str, Any] | None = None,
    systems: Sequence[str | AnswerSystem | FormulaSystem] | None = None,
    categories: str | Path | None = None,
    verbose: bool = True,
) -> Report:
    """Build everything from a local ARQMath folder, and compare MathAMR+ with a baseline and any other systems.

    Finished stages are kept in ``workdir`` and not repeated, so a run that was stopped continues.

    Args:
        path: the folder of the release, or of a part of it.
        year: 2020, 2021 or 2022 (or another year in the file names) of the topics and judgments; or several, as a list
            or joined by commas, which are also pooled.
        workdir: where artifacts, tables and ``report.md`` are kept.
        task: 1, answers, with two baselines, BM25 and BM25 tuned for mathematics; 2, formulas, with a search by symbol
            pairs as the baseline; or 3, one answer to each topic, cut from the answer that a system of Task 1 ranks
            first. The report of Task 2 is in
            ``workdir/task-2``, that of Task 3 in ``workdir/task-3``, with a file of answers for each system and year
            that can be submitted.
        model: name or folder of a trained model; or how to train one: a configuration, or a preset (``full``,
            ``mini``, ``labels`` or ``bundled``, see :mod:`.preparing`). By default the
            bundled model, or with ``changes`` the preset for this number of training pairs.
        changes: options of the configuration that override the preset.
        systems: names as in the tables, ``all`` for all of them, and your own :class:`System` objects; by default
            all names. The baselines, both BM25s or Tangent, are always included.
        categories: for Task 1, a table of the categories of topics, to measure each separately; see
            :func:`~pyterrier_mathamr.arqmath.read_topic_categories`.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written as ``report.json``, ``report.md`` and CSV files.

    Raises:
        ExperimentError: ``workdir`` has a finished stage with other settings, or no topic of a year can be measured on
            this collection.
        ConfigError: ``model`` trains nothing and ``changes`` are given, no year is given, or there is no such
            system.
        ARQMathError: a file of the release is missing or damaged; the message names it.
    """
    made_by: dict[str, Any] = {"model": model, "changes": changes, "verbose": verbose}
    if categories is not None and task != 1:
        raise ConfigError("categories", categories, "none: they are of Task 1")
    by_category = read_topic_categories(categories) if categories is not None else None
    if task == 2:
        of_formulas: Any = systems
        return run_task2(path, year, workdir, systems=of_formulas, **made_by)
    years, (ways, others) = years_of(year), _chosen(systems)
    require_years(ARQMathCollection(path), years)
    made = prepare(path, workdir, **made_by)
    found, timed = AnswerSearch(made, ways, others, tuple(years)), made.own.stages.timed
    if FUSION in found.names:
        with timed("fusion weight"):
            found.search.fit(made.shared.questions("validation"))
    if task == 3:
        return task3_report(found).write(made.shared.workdir / "task-3")
    with timed("known items"):
        known_items = found.known_items()
    with timed(f"task 1, {', '.join(years)}"):
        compared = compared_years("Task 1", found.by_year)
    with timed("time of a query"):
        pipelines = found.search.pipelines(made.shared.topic_formulas(years[0]))
        speed = time_queries(pipelines, made.shared.topics(years[0]).topics)
    with timed("parts of task 1"):
        parts = found.in_parts(by_category, _baseline(compared))
    return _report(found, compared, known_items, speed, parts).write(made.shared.workdir)


def _chosen(systems: Sequence[Any] | None) -> tuple[list[str], list[AnswerSystem]]:
    """Choose the ways to search with MathAMR+, both BM25s first, and the other systems."""
    chosen, others = set(BASELINES) if systems is not None else set(TASK1), []
    for asked in systems or ():
        if not isinstance(asked, str):
            others.append(asked)
        elif found := [name for name in TASK1 if asked.lower() in (ALL, name.lower())]:
            chosen.update(found)
        else:
            raise ConfigError(
                "systems", asked, f"{ALL}, or some of: {'; '.join(TASK1)}; {OTHER_SYSTEMS.format(task='task-1')}"
            )
    if FUSION in chosen:
        chosen.add(COLBERT)
    return [name for name in TASK1 if name in chosen], others


class AnswerSearch:
    """Searches with the topics of Task 1 and with known items: the ways of MathAMR+, then the other systems."""

    def __init__(
        self, made: Prepared, ways: Sequence[str], others: Sequence[AnswerSystem], years: tuple[str, ...]
    ) -> None:
        self.made, self.others, self.years = made, others, years
        self.names = [*ways, *(system.name for system in others)]
        self.search = SystemSearch(
            made.model,
            made.own.answers(made.model),
            made.shared.bm25,
            made.shared.tuned,
            {name: TASK1[name] for name in ways},
        )
        self.missing: Missing = {}
        self.unfitted = [system.name for system in others if system.fitted and len(years) == 1]
        preset = "full" if made.choices.get("preset") == "full" else "mini"
        self.parts = AnswerParts(made.shared, years[0], years, SEED, preset)

    @cached_property
    def by_year(self) -> dict[str, FoundTopics]:
        shared, topics_by_year = self.made.shared, dict[str, FoundTopics]()
        for year in self.years:
            topics, qrels, _ = shared.topics(year)
            topics_by_year[year] = FoundTopics(self.rankings(year), topics[["qid"]], qrels, shared.floor(year))
        return topics_by_year

    def in_parts(self, categories: pd.DataFrame | None, baseline: str) -> dict[str, pd.DataFrame]:
        """Measure the topics of all years by their category, and recall by the share of formulas in an answer."""
        found, collection = pooled(self.by_year), self.made.shared.collection
        found = found._replace(rankings={baseline: found.rankings[baseline], **found.rankings})
        tables = dict[str, pd.DataFrame]()
        if categories is not None:
            years = {year: categories[categories["qid"].isin(one.topics["qid"])] for year, one in self.by_year.items()}
            tables[BY_CATEGORY] = measure_by_category(found.rankings, found.qrels, joined(years))
        docnos = sorted(set(found.qrels.loc[found.qrels["label"] >= RELEVANT, "docno"]))
        name = f"formula-shares-{row_fingerprint({'docnos': docnos}):x}.csv"
        shares = self.made.shared.table(
            self.years[0],
            name,
            lambda: pd.DataFrame(formula_shares(collection, docnos).items(), columns=["docno", "share"]),
        )
        by_docno = dict(zip(shares["docno"].astype(str), shares["share"], strict=True))
        tables[BY_SHARE] = recall_by_share(found.rankings, found.qrels, by_docno)
        return {caption: table for caption, table in tables.items() if len(table)}

    def known_items(self) -> Comparison:
        """Search with the test questions for their own answers."""
        topics, qrels, _ = self.made.shared.questions("test")
        floor = random_known_items(qrels, len(self.made.shared.bm25))
        rankings = self.rankings(KNOWN_ITEM)
        return compare(
            rankings, topics, qrels, floor, KNOWN_ITEM_MEASURES, floor_name=RANDOM_ANSWERS, baselines=BASELINES
        )

    def not_measured(self) -> list[str]:
        """List the systems that are not measured, with the reason."""
        said = not_measured(self.missing)
        if self.unfitted:
            said.append(f"**Not measured**: {', '.join(self.unfitted)}. They are fitted on other years: give several.")
        return said

    def rankings(self, topics: str) -> dict[str, pd.DataFrame]:
        """Rank with each system; for known items, with each system that can."""
        parts = self.parts.at(of=topics)
        rankings = self.search.rankings(self.search.encode(parts.found))
        for system in self.others:
            left_out = system.name in self.missing or system.name in self.unfitted
            if not left_out and (system.known or not parts.known):
                try:
                    rankings[system.name] = parts.ranking(system)
                except MissingExtraError as error:
                    self.missing[system.name] = error
        return rankings


def compared_years(
    task: str, found: Mapping[str, FoundTopics], measures: list[Any] | None = None
) -> dict[str, Comparison]:
    """Compare systems on the topics of all years together, if there are several, and of each, by caption."""
    chosen = {f"{task}, {year}": one for year, one in found.items()}
    if len(found) > 1:
        chosen = {f"{task}, {' and '.join(found)} pooled": pooled(found), **chosen}
    return {caption: compare(*one, measures, baselines=BASELINES) for caption, one in chosen.items()}


def _report(
    found: AnswerSearch,
    compared: Mapping[str, Comparison],
    known_items: Comparison,
    speed: pd.DataFrame,
    parts: Mapping[str, pd.DataFrame],
) -> Report:
    made, years, names = found.made, found.years, found.names
    shared, asked = made.shared, sum(len(made.shared.topics(year).topics) for year in years)
    starred = stars(_baseline(compared), "the systems of a row")
    return Report(
        title=f"Task 1 of ARQMath {', '.join(years)} on {shared.collection.path.name}",
        settings=made.settings(years=list(years), answers=len(shared.bm25), topics=asked)
        | ({"fusion weight": found.search.weight} if FUSION in names else {}),
        stages=shared.stages.last(),
        tables={
            **{caption: with_missing(one.table, names, found.missing) for caption, one in compared.items()},
            KNOWN_ITEMS: with_missing(known_items.table, names, found.missing),
            **parts,
            TIME: speed,
        },
        about={
            **{caption: _about(made, one) for caption, one in compared.items()},
            KNOWN_ITEMS: _about_known_items(made, known_items),
            BY_CATEGORY: f"Topics of {', '.join(years)}. {starred}",
            BY_SHARE: f"Topics of {', '.join(years)}: the part of their relevant answers with such a share of formula "
            f"tokens that is among the first 1000, the mean over the topics that have one. {starred}",
            TIME: about_times(speed, years[0]),
        },
        remarks={
            **{caption: [*one.remark(made.advice), *found.not_measured()] for caption, one in compared.items()},
            KNOWN_ITEMS: known_items.remark(made.advice),
        },
        notes=(made.note, *NOTES, *(OTHERS if found.others else ())),
        values={f"task-1-{one}-by-topic": compared[f"Task 1, {one}"].by_topic for one in years},
    )


def _baseline(compared: Mapping[str, Comparison]) -> str:
    """Return the baseline of all years together."""
    return next(iter(compared.values())).baseline


def _about(made: Prepared, one: Comparison) -> str:
    return (
        f"{one.topics} topics with a relevant answer among the {len(made.shared.bm25):,} answers of "
        f"{made.shared.collection.path.name}, {one.judgments:,} judgments of these ("
        f"{one.judgments / max(1, one.topics):.1f} a topic). Rankings of 1000 answers, or the number in "
        f"the name. {made.who} {FEW_JUDGED} {_star(one)}"
    )


def _about_known_items(made: Prepared, one: Comparison) -> str:
    if not one.topics:
        return "This collection has no test questions with answers."
    return (
        f"{one.topics} questions of {made.shared.collection.path.name}, never trained on, look for their own answers "
        f"among all {len(made.shared.bm25):,}. {made.who} {_star(one)}"
    )


def _star(one: Comparison) -> str:
    return stars(one.baseline, f"{len(one.table) - 2} systems")  # without the baseline and the random order


TASK3_NOTES = (
    "The judgments of Task 3 are of the submitted answers, so new ones cannot be measured. AR' and P'@1 measure "
    "the answers of Task 1 from which they are cut, by the judgments of Task 1: the mean grade (0 to 3), and "
    "the share of grade 2 or 3. A topic whose source is not judged scores 0.",
    "An answer is the beginning of the first answer of a ranking, in whole sentences and formulas, at most 1,200 "
    "characters, that the model scores highest against the question.",
    "The random order picks a judged answer at random, the mean of 200 draws: it chooses only among judged answers.",
)
EXTRACTED = "Extracted answers"


def task3_report(found: AnswerSearch) -> Report:
    """Cut an answer to each topic from the first answer of each system, write them, and measure their sources."""
    made, shared = found.made, found.made.shared
    folder = shared.workdir / "task-3"
    folder.mkdir(parents=True, exist_ok=True)
    scorer = GraphBuilder(side="both", reads=made.model.reads) >> made.model.text_scorer()
    extract = found.parts.answer_texts() >> ExtractAnswer(scorer, verbose=shared.verbose)
    sources, rows = dict[str, FoundTopics](), []
    for year in found.years:
        topics, qrels, _ = shared.topics(year)
        of_year: dict[str, pd.DataFrame] = {}
        with shared.stages.timed(f"task 3, {year}"):
            for name, ranking in found.rankings(year).items():
                answers = extract(ranking[ranking["rank"] == 0].merge(topics, on="qid"))
                write_answers(answers, folder / f"{year}-{slug(name)}.tsv", name=slug(name))
                of_year[name] = answers[["qid", "docno", "score"]].assign(rank=0)
                judged = answers.merge(qrels, on=["qid", "docno"])
                length = answers["qanswer"].str.len()
                rows.append((year, name, len(answers), len(judged), float(length.mean()), int(length.max())))
        sources[year] = FoundTopics(of_year, topics[["qid"]], qrels, random_floor(qrels, TASK3_MEASURES))
    compared = compared_years("Task 3", sources, TASK3_MEASURES)
    return Report(
        title=f"Task 3 of ARQMath {', '.join(found.years)} on {shared.collection.path.name}",
        settings=made.settings(years=list(found.years), answers=len(shared.bm25)),
        stages=shared.stages.last(),
        tables={
            **{caption: with_missing(one.table, found.names, found.missing) for caption, one in compared.items()},
            EXTRACTED: pd.DataFrame(rows, columns=["year", "name", "answers", "judged", "characters", "longest"]),
        },
        about={caption: _about(made, one) for caption, one in compared.items()},
        remarks={caption: [*one.remark(made.advice), *found.not_measured()] for caption, one in compared.items()},
        notes=(made.note, *TASK3_NOTES, *(OTHERS if found.others else ())),
        values={f"task-3-{one}-by-topic": compared[f"Task 3, {one}"].by_topic for one in found.years},
    )
