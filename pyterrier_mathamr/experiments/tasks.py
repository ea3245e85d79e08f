"""The whole way on a local ARQMath folder: graphs, training, index, search, tables.

Task 2, contextual formula retrieval, on a local ARQMath folder: MathAMR+ and a search by symbol pairs, side by side.

The folder of a run is that of ``run_arqmath``, which it can share, with further artifacts::

    formulas.mathamr                        the vector of each formula virtual node
    formulas.tangent                        the symbol pairs of each formula
    topics/<year>/topics.formulas           official trees of a year's topics
    task-2/report.md, report.json, *.csv    what was found


The table of the README: the bundled sample, searched with the bundled model.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.arqmath import (
    TASK2_MEASURES,
    ARQMathCollection,
    VisualIdDeduplication,
    known_item_qrels,
    known_item_topics,
)
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR, MathAMRConfig
from pyterrier_mathamr.systems import BM25Index, fuse_rankings

from .artifacts import ARQMathStages, refuse_both
from .measuring import (
    BASELINE,
    KNOWN_ITEM_MEASURES,
    Split,
    fitted_weight,
    fusion_weights,
    measure,
    measure_by_topic,
    random_floor,
    run_systems,
    search_systems,
)
from .published import published
from .report import Report
from .stages import Stages, to_stderr
from .topics import DEPTH, LENGTH, formula_topics, judged_topics, visual_judgements

NOTES = (
    "Relevant is a grade of 2 or 3; unjudged answers are removed first (the prime). A topic whose run has no judged "
    "answer counts 0.",
    "A star marks a measure that differs from BM25's in a two-sided paired t-test, p < 0.05 after Bonferroni over the "
    "systems.",
    "BM25 was chosen on validation questions and the fusion's weight fitted to them, by softmax over all that both "
    "found; test questions were never trained on.",
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
    """Go the whole way on a local ARQMath folder, and compare MathAMR+ with BM25.

    What a stage made is kept in ``workdir`` and not made again, so that a run which was stopped goes on where it was.

    Args:
        path: the folder of the release, or of a part of it.
        year: 2020, 2021 or 2022 (or another by which the files are named), whose topics and judgements make the table.
        workdir: where artifacts, tables and ``report.md`` are kept.
        config: of the model to train; the defaults where not given.
        model: name or folder of a trained model, to be used without training.
        verbose: say on stderr what is done, with progress bars.

    Returns:
        The report; it is written to ``workdir`` as ``report.json``, ``report.md`` and CSV files.

    Raises:
        SettingsChangedError: ``workdir`` holds a finished stage that was made with other settings.
        ConfigError: ``config`` and ``model`` are both given.
        ARQMathError: a file of the release is missing or damaged; the message says which.
        NoRelevantTopicError: no topic of the year can be measured on this collection.
    """
    refuse_both(config, model)
    folder = Path(workdir)
    stages = Stages(folder, to_stderr if verbose else None)
    run = ARQMathStages(ARQMathCollection(path), year, folder, stages, verbose=verbose)
    builder = GraphBuilder(store=run.formulas(), verbose=verbose)
    graphs = run.graphs(builder)
    encoder = run.model(graphs, config, model)
    search = _Search(run, graphs, encoder, run.answers(graphs, encoder), run.bm25())
    report, by_topic = _measured(run, search)
    by_topic.to_csv(folder / f"task-1-{year}-by-topic.csv", index=False)
    report.write(folder)
    return report


def _measured(run: ARQMathStages, search: _Search) -> tuple[Report, pd.DataFrame]:
    """Search with all systems, and give the report and the values by topic."""
    with run.stages.timed("fusion weight"):
        weight, weights = search.weights()
    with run.stages.timed("known items"):
        known_item = search.known_item(weight)
    with run.stages.timed(f"task 1, {run.year}"):
        table, by_topic, speed = search.task1(weight)
    report = Report(
        title=f"MathAMR+ on ARQMath {run.year}, {run.collection.path.name}",
        settings={
            "collection": str(run.collection.path),
            "year": run.year,
            "answers": len(search.bm25),
            "topics": int(by_topic["qid"].nunique()),
            "model": search.model.identity,
            "fusion weight": weight,
            **search.model.config.to_dict(),
        },
        stages=tuple(run.stages.records),
        tables={
            f"Task 1, {run.year}": table,
            "Known items, test questions": known_item,
            "Time of a query": speed,
            "Fusion weight, validation questions": weights,
        },
        notes=NOTES,
    )
    return report, by_topic


class _Search:
    """Searches with all systems of a run."""

    def __init__(
        self, run: ARQMathStages, graphs: GraphStore, model: MathAMR, answers: MathAMRIndex, bm25: BM25Index
    ) -> None:
        self.run, self.graphs, self.model, self.answers, self.bm25 = run, graphs, model, answers, bm25

    def systems(self, weight: float = 0.5) -> dict[str, pt.Transformer]:
        """Make the systems for topics that are encoded already: each query is encoded once for all of them."""
        return search_systems(self.bm25.retriever(), pt.Transformer.identity(), self.answers, weight=weight)

    def weights(self) -> tuple[float, pd.DataFrame]:
        """Fit the weight of the fusion to the validation questions, and measure each weight on them."""
        topics, qrels = self._questions("validation")
        systems = self.systems()
        rankings, _ = run_systems({name: systems[name] for name in (BASELINE, "ColBERT-style")}, topics)
        both = rankings[BASELINE], rankings["ColBERT-style"]
        return fitted_weight(*both, qrels), fusion_weights(*both, qrels)

    def known_item(self, weight: float) -> pd.DataFrame:
        """Measure all systems on the test questions."""
        topics, qrels = self._questions("test")
        rankings, _ = run_systems(self.systems(weight), topics)
        return measure(rankings, topics, qrels, KNOWN_ITEM_MEASURES)

    def task1(self, weight: float) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Measure all systems on the topics of the year: the table, the values by topic, the times."""
        answers = {document["docno"] for document in self.bm25.get_corpus_iter()}
        topics, qrels = judged_topics(self.run.collection, self.run.year, answers)
        builder = GraphBuilder(store=self.run.topic_formulas())
        topics = (builder >> self.model.query_encoder())(topics)
        rankings, speed = run_systems(self.systems(weight), topics)
        return measure(rankings, topics, qrels), measure_by_topic(rankings, topics, qrels), speed

    def _questions(self, split: Split) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Give the questions of one part, encoded from their stored graphs, and their own answers."""
        topics = known_item_topics(self.run.collection.questions(), split)
        topics = (self.graphs.loader() >> self.model.query_encoder())(topics)
        return topics, known_item_qrels(self.run.collection.pairs(), split)


TANGENT, MATHAMR = "Tangent", "MathAMR+"
FORMULA_FLOOR = "judged formulas in random order"

TASK2_NOTES = (
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
        notes=TASK2_NOTES,
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
            for name, system in {TANGENT: tangent, MATHAMR: within, "MathAMR+, formula alone": alone}.items()
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
            rankings[f"{TANGENT} + {MATHAMR}"] = fuse_rankings(rankings[TANGENT], rankings[MATHAMR], 0.5, LENGTH)
            rows: list[pd.DataFrame] = []
            values: list[pd.DataFrame] = []
            for kind, qrels in judged.items():
                own = topics[topics["qid"].isin(qrels["qid"])]
                chance = random_floor(qrels)
                floor = pd.DataFrame([{"name": FORMULA_FLOOR, **chance.groupby("measure")["value"].mean()}])
                table = pd.concat([measure(rankings, own, qrels, TASK2_MEASURES), floor], ignore_index=True)
                by_topic = measure_by_topic(rankings, own, qrels, TASK2_MEASURES)
                for frame, kept in ((table, rows), (by_topic, values)):
                    frame.insert(0, "judged", kind)
                    frame.insert(0, "year", year)
                    kept.append(frame)
                table.insert(3, "topics", len(own))
        speed.insert(0, "year", year)
        return pd.concat(rows, ignore_index=True), speed, pd.concat(values, ignore_index=True)


MODEL = "mathamr-plus-mini"
DATASET = "arqmath:sample/task1"
CANDIDATES = 50


def run_demo(*, verbose: bool = False) -> pd.DataFrame:
    """Build, index and search the bundled sample, and compare the systems.

    Everything is made in a temporary folder; nothing is downloaded.

    Args:
        verbose: show progress bars.

    Returns:
        The table of :func:`~pyterrier_mathamr.experiments.measure` over the measures of Task 1.
    """
    dataset = pt.get_dataset(DATASET)
    model = MathAMR.from_pretrained(MODEL)
    graphs = GraphBuilder()  # silent: the documents' own bar counts what comes out of it
    with tempfile.TemporaryDirectory(prefix="mathamr-demo-") as folder:
        index = MathAMRIndex(Path(folder) / "sample.mathamr")
        (graphs >> model.doc_encoder() >> index.indexer()).index(dataset.get_corpus_iter(verbose=verbose))
        bm25 = BM25Index(Path(folder) / "sample.bm25").index(dataset.get_corpus_iter(verbose=verbose))
        topics = (graphs >> model.query_encoder())(dataset.get_topics("text"))
        systems = search_systems(bm25.retriever(), pt.Transformer.identity(), index, candidates=CANDIDATES)
        rankings, _ = run_systems(systems, topics)
    return measure(rankings, topics, dataset.get_qrels())
