"""The report of a study of models: its tables, the notes to read them with, and the paper's own tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from mathamr_systems.experiments.measuring import FLOOR, RANDOM_ANSWERS, paired_test, random_known_items
from mathamr_systems.experiments.report import Report, published
from mathamr_systems.experiments.systems import BASELINES, ONCE, TASK1, Depth, label
from mathamr_systems.experiments.workdir import KNOWN_ITEM, TANGENT
from studies.artifacts import judged_formulas
from studies.study import Outcome, Row, Setting, Study
from studies.tables import JUDGED, KNOWN, MAIN, REFERENCE, TIMES, Key, Results, formula_references

from .jobs import FORMULAS, Jobs, formula_label
from .ways import EQUAL_FUSION, WAYS

STANDARD = (*TASK1, EQUAL_FUSION)
"""The ways to search that are measured for every condition."""

NOTES = (
    "Relevant is a grade of 2 or 3; unjudged answers are removed first (the prime). A topic whose run has no judged "
    "answer scores 0. Years are pooled by topic.",
    "± is the standard deviation over the seeds.",
    "A star marks a row that differs significantly from its baseline (two-sided paired t-test over the pooled topics, "
    "p < 0.05 after Bonferroni over all tests of the study). In the table of means the values of a topic are averaged "
    "over the seeds first, so that each topic enters the test once; in the table of best seeds, as in the paper, "
    "the best seed of each row is compared, which favors both.",
    "The tables against BM25 have the better one of both, and are corrected only for their own tests: each system of "
    "each condition.",
    "The best seed has the highest nDCG' on the reported topics, as in the paper: a maximum, not an estimate.",
    "The floor is the mean of 200 random orders of the judged answers of each topic. On a part of the release few "
    "answers are judged, so nDCG' and MAP' start high. The floor ranks all of them, a system only the ones it finds, "
    "so a system can be below it.",
    "Known items: the questions of the test part, never trained on, search for their own answers among all answers. "
    "The random order of all answers is the exact expectation.",
    "The weight of the fusion was tuned on validation questions for each run; 'equal weights' is one half.",
    "Peak memory is measured in a run's own process. The share of waiting is the part of an epoch in which training "
    "waited for its batches.",
    "`tuned BM25 % n >> scorer` rescores the first n answers of the tuned BM25, and `doc-VN + MaxSim (k = n)` the "
    "first n by the document vectors; figures of different depths do not compare.",
    "Query times include encoding, on one thread; other runs may have shared the machine.",
)

ADVICE = (
    "They have learned too little, or rank too few answers to find the judged ones: train on more pairs (`--pairs`), "
    "take more topics (`--years`) or longer rankings (`--preset full`), or compare with the bundled model "
    "mathamr-plus-mini."
)

SHORT = (
    "Rankings are short here; a judged answer that is not among them is not found. Compare systems only with each "
    "other."
)

TASK2 = (
    "Task 2: each formula topic is the vector of that formula in the graph of its question; rankings are of visually "
    "distinct formulas, judged by visual id where the collection has such judgments. Tangent is a search by pairs of "
    "symbols. Nothing was fitted to these topics."
)


def systems_of(study: Study) -> tuple[str, ...]:
    """List every measured way to search: the standard ones and the rows' ways, in the order of ``WAYS``."""
    wanted = {*STANDARD, *(row.system for row in study.rows)}
    return tuple(name for name in WAYS if name in wanted)


def report(outcome: Outcome) -> Report:
    """Make the report of the finished runs."""
    setting, jobs = outcome.setting, outcome.extra
    study, shared = setting.study, setting.shared
    tables = _Tables(setting, _with_references(outcome))
    depth = next(iter(jobs.values())).depth
    measured = tables.all()
    numbers = [number for _, tables_of in study.published for number in tables_of]
    paper = published()
    return Report(
        title=f"{study.name}: {study.title}, on {shared.collection.path.name}",
        settings=_settings(setting, jobs, tables.count),
        stages=tuple(shared.stages.records),
        tables={caption: _with_depths(table, depth) for caption, table in measured.items()},
        about=_about(tables, depth, measured),
        remarks={
            caption: [_named_by_depth(text, depth) for text in found]
            for caption, found in tables.remarks(measured).items()
        },
        notes=(
            setting.preset.why,
            *_set_by_hand(setting.changes, setting.seeds, setting.preset.seeds or study.seeds),
            *([SHORT] if depth.scale < 1 else []),
            *([TASK2] if study.task2 else []),
            *NOTES,
            *dict.fromkeys(line for number in numbers for line in paper.cited(paper.tables[number])),
        ),
        published=paper.captioned(numbers),
        values={"by-topic": _with_depths(outcome.results.values, depth)},
    )


@dataclass(frozen=True, eq=False)
class _Tables:
    """The tables of one study, of the rows that have been measured, and whose baseline has."""

    setting: Setting
    results: Results

    @property
    def study(self) -> Study:
        return self.setting.study

    @property
    def years(self) -> tuple[str, ...]:
        return self.setting.years

    @property
    def rows(self) -> tuple[Row, ...]:
        return self._done(self.study.rows)

    @property
    def formula_rows(self) -> tuple[Row, ...]:
        """The rows of Task 2 if the study measures it: each condition by the vectors of its formulas."""
        return self._done(_formula_rows(self.study))

    @property
    def formula_topics(self) -> list[str]:
        return [formula_label(year) for year in self.years] if self.study.task2 else []

    @property
    def count(self) -> int:
        """The number of tests of the study, for the Bonferroni correction: each tested row and measure of each task."""
        return len(JUDGED) * sum(row.against is not None for row in (*self.study.rows, *_formula_rows(self.study)))

    def all(self) -> dict[str, pd.DataFrame]:
        """Compute the tables by their captions."""
        years, of = self.years, self.formula_topics
        pooled = " and ".join(years)
        tests = pd.concat([self._tests(self.rows, years), self._tests(self.formula_rows, of)])
        measured = {
            f"Task 1, {pooled} pooled, mean over seeds": self._tested(self.rows, years),
            f"Task 1, {pooled} pooled, best seed": self.best_seed(),
            **({f"Task 1, {year}": self._mean([year], JUDGED) for year in years} if len(years) > 1 else {}),
            "Known items, test questions": self._mean([KNOWN_ITEM], KNOWN),
            **({f"Task 2, {pooled} pooled, mean over seeds": self._tested(self.formula_rows, of)} if of else {}),
            "Tests": tests,
            "Against BM25, Task 1 pooled": self.against_bm25(years, MAIN),
            "Against BM25, known items": self.against_bm25([KNOWN_ITEM], KNOWN[0]),
            "Every system, Task 1 pooled": self._mean(years, JUDGED, self.systems()),
            "Every system, known items": self._mean([KNOWN_ITEM], KNOWN, self.systems()),
            "Training and index": self.costs(),
            "Runs": self.results.costs,
            "Single queries": self.speed(),
        }
        if self.study.published:
            measured["Order of the rows by nDCG'"] = self.order()
        return measured

    def remarks(self, measured: Mapping[str, pd.DataFrame]) -> dict[str, tuple[str, ...]]:
        """Point out below each table of measures which rows are not above the random order."""
        rows, formulas = ([row.key for row in some] for some in (self.rows, self.formula_rows))
        every = [*((REFERENCE, name) for name in BASELINES), *self.systems()]
        chosen: dict[str, tuple[Sequence[str], str, Sequence[Key]]] = {
            "Every system, Task 1 pooled": (self.years, MAIN, every),
            "Every system, known items": ([KNOWN_ITEM], KNOWN[0], every),
            "Known items, test questions": ([KNOWN_ITEM], KNOWN[0], rows),
        }
        for caption in measured:
            if caption.startswith("Task 1") and "best seed" not in caption:
                chosen[caption] = ([year for year in self.years if year in caption], MAIN, rows)
            if caption.startswith("Task 2"):
                chosen[caption] = (self.formula_topics, MAIN, formulas)
        remarks: dict[str, tuple[str, ...]] = {}
        for caption, (topics, measure, keys) in chosen.items():
            floors = [key for key in self._references(topics) if key[1] in (FLOOR, RANDOM_ANSWERS)]
            found = self.results.near_random(keys, floors[0], topics, measure, ADVICE) if floors else ()
            remarks[caption] = found
        return remarks

    def _mean(self, topics: Sequence[str], measures: Sequence[str], keys: Sequence[Key] | None = None) -> pd.DataFrame:
        """Compute means, the random order and both BM25s first."""
        chosen = [row.key for row in self.rows] if keys is None else list(keys)
        return self.results.means([*self._references(topics), *chosen], topics, measures)

    def _tested(self, rows: Sequence[Row], topics: Sequence[str]) -> pd.DataFrame:
        """Compute means, and for each tested row and measure whether it differs from its baseline."""
        table = self._mean(topics, JUDGED, [row.key for row in rows])
        outcomes = self._tests(rows, topics).set_index(["condition", "system", "measure"])["significant"].to_dict()
        for measure in JUDGED:
            keys = zip(table["condition"], table["system"], strict=True)
            table[f"{measure} reject"] = [outcomes.get((*key, measure), False) for key in keys]
        return table

    def _tests(self, rows: Sequence[Row], topics: Sequence[str]) -> pd.DataFrame:
        """Test each row against its baseline on each measure."""
        pairs = [(row.key, row.against) for row in rows if row.against is not None]
        return self.results.tests(pairs, topics, JUDGED, self.count)

    def best_seed(self) -> pd.DataFrame:
        """Show each row by its best seed, the one of the highest nDCG' on the same topics, as the paper does."""
        lines = []
        for row in self.rows:
            seed = self.results.best_seed(row.key, self.years, MAIN)
            line: dict[str, object] = {"condition": row.condition, "system": row.system, "seed": seed}
            for measure in JUDGED:
                values = self.results.by_topic(row.key, self.years, measure)[seed]
                line[measure] = float(values.mean())
                line[f"{measure} reject"] = False
                if row.against is not None:
                    other = self.results.best_seed(row.against, self.years, MAIN)
                    baseline = self.results.by_topic(row.against, self.years, measure)[other]
                    outcome = paired_test(values.to_numpy(), baseline.to_numpy(), self.count)
                    line[f"{measure} reject"] = outcome.significant
            lines.append(line)
        table: pd.DataFrame = pd.DataFrame(lines)
        return table

    def against_bm25(self, topics: Sequence[str], measure: str) -> pd.DataFrame:
        """Test every system of every condition against the better BM25, corrected for the tests of this table only."""
        pairs = [(key, (REFERENCE, self.results.better_bm25(topics, measure))) for key in self.systems()]
        number = len(self.study.conditions) * (len(systems_of(self.study)) - len(BASELINES))
        return self.results.tests(pairs, topics, [measure], number).drop(columns="against")

    def costs(self) -> pd.DataFrame:
        """Compute the mean cost of each condition over its seeds."""
        costs = self.results.costs
        if costs.empty:
            return costs
        by_condition = costs.drop(columns=["seed", "run"]).groupby("condition", sort=False)
        means = by_condition.mean(numeric_only=True)
        means.insert(0, "runs", by_condition.size())
        means["seconds per epoch std"] = by_condition["seconds per epoch"].std(ddof=1)
        for name in ("parameters", "index bytes", "vectors"):
            means[name] = means[name].round().astype("int64")
        table: pd.DataFrame = means.reset_index()
        return table

    def speed(self) -> pd.DataFrame:
        """Compute the mean times of single queries over conditions and seeds; they depend on the system only."""
        grouped = self.results.speed.groupby("system", sort=False)
        means = grouped[TIMES].mean()
        means["queries per second std"] = grouped["queries per second"].std(ddof=1)
        table: pd.DataFrame = means.reset_index()
        return table

    def order(self) -> pd.DataFrame:
        """Rank the rows by nDCG', here and in the paper; ranks, not figures, since scales differ."""
        lines = []
        for row in self.rows:
            if (cell := row.published) is not None:
                figure = published().tables[cell.table].figure(cell.row, cell.column)
                mean = float(self.results.mean_over_seeds(row.key, self.years, MAIN).mean())
                lines.append((*row.key, mean, float("nan") if figure is None else figure))
        table = pd.DataFrame(lines, columns=["condition", "system", "place here", "place in the paper"])
        for name in table.columns[2:]:
            table[name] = table[name].astype(float).rank(ascending=False, method="min").astype("Int64")
        return table

    def systems(self) -> list[Key]:
        """List every measured system of every condition."""
        keys = [(condition.name, system) for condition in self.study.conditions for system in systems_of(self.study)]
        done = self.results.measured
        return [key for key in keys if key[1] not in BASELINES and key in done]

    def _references(self, topics: Sequence[str]) -> list[Key]:
        """List the rows that depend on no condition and have been measured on these topics."""
        found = self.results.values
        known = set(found.loc[found["condition"].eq(REFERENCE) & found["topics"].isin(topics), "system"])
        return [(REFERENCE, system) for system in (FLOOR, RANDOM_ANSWERS, *BASELINES, TANGENT) if system in known]

    def _done(self, rows: Sequence[Row]) -> tuple[Row, ...]:
        """Keep the rows that have been measured, and whose baseline has."""
        done = self.results.measured
        return tuple(row for row in rows if row.key in done and (row.against is None or row.against in done))


def _formula_rows(study: Study) -> tuple[Row, ...]:
    """Derive the rows of Task 2 from the rows of Task 1: a condition has the baseline of its first row."""
    if not study.task2:
        return ()
    first = {row.condition: row for row in reversed(study.rows)}
    against = {name: row.against and (row.against[0], FORMULAS) for name, row in first.items()}
    return tuple(Row(condition.name, FORMULAS, against.get(condition.name)) for condition in study.conditions)


def _with_references(outcome: Outcome) -> Results:
    """Add the floor and Tangent, and list them and BM25 under no condition."""
    setting, values = outcome.setting, outcome.results.values
    shared = setting.shared
    marks: dict[str, Any] = {"condition": REFERENCE, "seed": ONCE}
    questions = shared.questions("test").qrels
    known = random_known_items(questions, len(shared.bm25)).assign(topics=KNOWN_ITEM, system=RANDOM_ANSWERS, **marks)
    floors = [known, *(shared.floor(year).assign(topics=year, system=FLOOR, **marks) for year in setting.years)]
    if setting.study.task2:
        floors += [
            formula_references(shared, year).assign(topics=formula_label(year), **marks) for year in setting.years
        ]
    bm25 = values["system"].isin(BASELINES)
    first = values[bm25].drop_duplicates(["topics", "system", "qid", "measure"]).assign(**marks)
    whole = pd.concat([*floors, first, values[~bm25]], ignore_index=True)
    return Results(whole, outcome.results.speed, outcome.results.costs)


def _about(tables: _Tables, depth: Depth, measured: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Describe each table: collection, topics, depth, seeds, test."""
    setting = tables.setting
    shared, years, seeds = setting.shared, setting.years, sorted(setting.seeds)
    of = (
        f"{shared.collection.path.name}, {len(shared.bm25):,} answers; rankings of {depth.results}, or the number "
        f"in the name; seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}."
    )
    judged = {year: shared.topics(year) for year in years}
    known = f"{len(shared.questions('test').topics)} test questions of {of}"
    about = {
        "Known items, test questions": known,
        "Every system, known items": known,
        "Against BM25, known items": known,
        "Single queries": f"Topics of {years[0]}, one at a time on one thread: `encoding ms` from the text to the "
        "vectors, `search ms` from these to the ranking; queries per second, p50 and p95 are of their sum.",
    }
    for caption in measured:
        if "Task 1" in caption:
            chosen = [judged[year] for year in years if year in caption] or list(judged.values())
            topics, judgments = (
                sum(len(part) for part in parts) for parts in zip(*((c.topics, c.qrels) for c in chosen), strict=True)
            )
            about[caption] = f"{topics} topics with {judgments:,} judgments of {of}"
        if caption.startswith("Task 2"):
            found = [judged_formulas(shared, year) for year in years]
            about[caption] = f"{sum(len(one.topics) for one in found)} formula topics of {of}"
    if tables.count and (tested := f"Task 1, {' and '.join(years)} pooled, mean over seeds") in about:
        about[tested] += f" A star: differs from the row's baseline, after Bonferroni over {tables.count} tests."
    return about


def _with_depths(table: pd.DataFrame, depth: Depth) -> pd.DataFrame:
    """Name the systems of a table by their numbers of candidates at a depth."""
    texts = [name for name in ("system", "against") if name in table.columns]
    return table.assign(**{name: [_named_by_depth(str(text), depth) for text in table[name]] for name in texts})


def _named_by_depth(text: str, depth: Depth) -> str:
    """Add the number of candidates at a depth to the names of systems in a text."""
    for way in WAYS.values():
        text = text.replace(way.name, label(way, depth))
    return text


def _settings(setting: Setting, jobs: Jobs, tests: int) -> dict[str, Any]:
    one, shared = next(iter(jobs.values())), setting.shared
    common, different = _configurations(jobs)
    return {
        "study": setting.study.name,
        "collection": str(shared.collection.path),
        "pairs": [file.name for file in shared.pairs],
        "years": list(setting.years),
        "seeds": sorted(setting.seeds),
        "preset": setting.preset.name,
        "tests": tests,
        "results for each query": one.depth.results,
        "scale of candidates": one.depth.scale,
        "conditions": {name: _text(options) for name, options in different.items()},
        **common,
    }


def _set_by_hand(changes: Mapping[str, Any], seeds: Sequence[int], usual: Sequence[int]) -> list[str]:
    """Name the options and seeds that differ from the preset."""
    lines = [f"{name} = {value}" for name, value in changes.items()]
    lines += [f"seeds {', '.join(map(str, seeds))}"] if sorted(seeds) != sorted(usual) else []
    return [f"Set for this run, overriding the above: {'; '.join(lines)}."] if lines else []


def _configurations(jobs: Jobs) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Separate the options shared by all conditions from each condition's own; seeds are left out."""
    configs = {
        name: {**job.config.to_dict(), **asdict(job.recipe), "pairs": [file.name for file in job.pairs]}
        for (name, _), job in jobs.items()
    }
    first = next(iter(configs.values()))
    common = {option for option in first if all(config[option] == first[option] for config in configs.values())}
    different = {
        name: {option: value for option, value in config.items() if option not in {*common, "seed"}}
        for name, config in configs.items()
    }
    return {option: value for option, value in first.items() if option in common - {"seed"}}, different


def _text(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items()) or "all as below"
