"""Task 2, contextual formula retrieval, on a local ARQMath folder: MathAMR+ and a search by symbol pairs, side by side.

The folder of a run is that of ``run_arqmath``, which it can share, with further artifacts::

    formulas.mathamr                        the vector of each formula virtual node
    formulas.tangent                        the symbol pairs of each formula
    topics/<year>/topics.formulas           official trees of a year's topics
    task-2/report.md, report.json, *.csv    what was found
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.arqmath import TASK2_MEASURES, ARQMathCollection, VisualIdDeduplication
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.model import MathAMRConfig
from pyterrier_mathamr.systems import fuse_rankings

from .arqmath_stages import ARQMathStages, refuse_both
from .compare import measure, measure_by_topic, run_systems
from .report import Report
from .stages import Stages, to_stderr
from .studies.floor import random_floor
from .studies.published import published
from .task2_topics import DEPTH, LENGTH, formula_topics, visual_judgements

BASELINE, MATHAMR = "Tangent", "MathAMR+"
FLOOR = "judged formulas in random order"

NOTES = (
    "Rankings are of visually distinct formulas: the first instance of each counts, as in the official evaluation. "
    "`formula ids` are judgements of instances, the best grade of those that look the same; `visual ids` are the "
    "organisers' own.",
    "Relevant is a grade of 2 or 3; unjudged formulas are removed first (the prime). Judgements of formulas that this "
    "collection does not have are left out, and topics without a relevant one that it has.",
    "A star marks a measure that differs from Tangent's in a two-sided paired t-test, p < 0.05 after Bonferroni over "
    "the systems of the same year and judgements.",
    "`MathAMR+` encodes the formula within its question; `MathAMR+, formula alone` has the same formula without it. "
    "The fusion has equal weights, fixed beforehand. Nothing was fitted to topics of Task 2.",
    "The random order has every judged formula, a system those among its first 1000: on a part of the release, where "
    "few are judged, a system can be below it.",
)


def run_task2(
    path: str | Path,
    years: int | str | Sequence[int | str],
    workdir: str | Path,
    *,
    config: MathAMRConfig | None = None,
    model: str | None = None,
    verbose: bool = True,
) -> Report:
    """Index the formulas of a local ARQMath folder, and compare MathAMR+ with a search by symbol pairs.

    What a stage made is kept in ``workdir`` and not made again, so that a run which was stopped goes on where it was.

    Args:
        path: the folder of the release, or of a part of it.
        years: 2020, 2021 or 2022 (or another by which the files are named), or several of them, as a list or
            joined by commas.
        workdir: where artifacts and the report are kept; that of ``run_arqmath`` saves making graphs and model again.
        config: of the model to train; the defaults where not given.
        model: name or folder of a trained model, to be used without training.
        verbose: say on stderr what is done, with progress bars.

    Returns:
        The report; it is written to ``workdir/task-2`` as ``report.json``, ``report.md`` and CSV files.

    Raises:
        SettingsChangedError: ``workdir`` holds a finished stage that was made with other settings.
        ConfigError: ``config`` and ``model`` are both given.
        ARQMathError: a file of the release is missing or damaged; the message says which.
        NoRelevantTopicError: no topic of a year can be measured on this collection.
    """
    refuse_both(config, model)
    when = str(years).split(",") if isinstance(years, (int, str)) else [str(year) for year in years]
    run = _FormulaRun(ARQMathCollection(path), Path(workdir), config, model, verbose)
    tables, speeds, by_topic = zip(*(run.measured(year) for year in when), strict=True)
    paper = published()
    report = Report(
        title=f"Task 2 of ARQMath, {', '.join(when)}, {run.collection.path.name}",
        settings={
            "collection": str(run.collection.path),
            "formulas": len(run.formulas),
            "ranked before de-duplication": DEPTH,
            "pairs of symbols": run.tangent.pair_options().to_dict(),
            "model": run.model.identity,
            **run.model.config.to_dict(),
        },
        stages=tuple(run.stages.records),
        tables={
            "Task 2": pd.concat(tables, ignore_index=True),
            "Time of a query": pd.concat(speeds, ignore_index=True),
        },
        notes=NOTES,
        published={f"Table 4.21 of {paper.source} {paper.tables['4.21'].caption}": paper.tables["4.21"].frame()},
    )
    folder = run.workdir / "task-2"
    folder.mkdir(exist_ok=True)
    pd.concat(by_topic, ignore_index=True).to_csv(folder / "task-2-by-topic.csv", index=False)
    report.write(folder)
    return report


class _FormulaRun:
    """The artifacts of a run, made or found when it begins, and what is measured with them."""

    def __init__(
        self,
        collection: ARQMathCollection,
        workdir: Path,
        config: MathAMRConfig | None,
        model: str | None,
        verbose: bool,
    ) -> None:
        self.collection, self.workdir, self._verbose = collection, workdir, verbose
        self.stages = Stages(workdir, to_stderr if verbose else None)
        arqmath = ARQMathStages(collection, "", workdir, self.stages, verbose=verbose)
        self.store = arqmath.formulas()
        graphs = arqmath.graphs(GraphBuilder(store=self.store, verbose=verbose))
        self.model = arqmath.model(graphs, config, model)
        self.formulas, self.tangent = arqmath.formula_index(graphs, self.model, self.store), arqmath.tangent(self.store)
        self._visual_ids = frozenset(entry["visual_id"] for entry in self.tangent.get_corpus_iter())

    def systems(self, trees: FormulaStore) -> dict[str, pt.Transformer]:
        """Make the systems, from topics to rankings of visually distinct formulas; the first is the baseline.

        Args:
            trees: official trees of the topics' formulas.
        """
        found = self.formulas.retriever(num_results=DEPTH)
        tangent = self.tangent.retriever(DEPTH, store=trees)
        within = GraphBuilder(store=trees) >> self.model.query_encoder() >> found
        alone = GraphBuilder(store=trees, queries="formula") >> self.model.query_encoder() >> found
        return {
            name: system >> VisualIdDeduplication() >> pt.RankCutoff(LENGTH)
            for name, system in {BASELINE: tangent, MATHAMR: within, "MathAMR+, formula alone": alone}.items()
        }

    def measured(self, year: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Search with the topics of a year: the rows of the table, the times, the values by topic."""
        topics = formula_topics(self.collection, year)
        judged = visual_judgements(self.collection, year, self.store, self._visual_ids)
        topics = topics[topics["qid"].isin(pd.concat(judged.values())["qid"])].reset_index(drop=True)
        folder = self.workdir / "topics" / year
        trees = ARQMathStages(self.collection, year, folder, Stages(folder), verbose=self._verbose).topic_formulas()
        with self.stages.timed(f"task 2, {year}"):
            rankings, speed = run_systems(self.systems(trees), topics)
            rankings[f"{BASELINE} + {MATHAMR}"] = fuse_rankings(rankings[BASELINE], rankings[MATHAMR], 0.5, LENGTH)
            rows: list[pd.DataFrame] = []
            values: list[pd.DataFrame] = []
            for kind, qrels in judged.items():
                own = topics[topics["qid"].isin(qrels["qid"])]
                chance = random_floor(qrels)
                floor = pd.DataFrame([{"name": FLOOR, **chance.groupby("measure")["value"].mean()}])
                table = pd.concat([measure(rankings, own, qrels, TASK2_MEASURES), floor], ignore_index=True)
                by_topic = measure_by_topic(rankings, own, qrels, TASK2_MEASURES)
                for frame, kept in ((table, rows), (by_topic, values)):
                    frame.insert(0, "judged", kind)
                    frame.insert(0, "year", year)
                    kept.append(frame)
                table.insert(3, "topics", len(own))
        speed.insert(0, "year", year)
        return pd.concat(rows, ignore_index=True), speed, pd.concat(values, ignore_index=True)
