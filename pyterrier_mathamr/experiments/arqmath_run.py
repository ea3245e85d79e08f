"""The whole way on a local ARQMath folder: graphs, training, index, search, tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.arqmath import ARQMathCollection, known_item_qrels, known_item_topics
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR, MathAMRConfig
from pyterrier_mathamr.systems import BM25Index

from .arqmath_stages import ARQMathStages, refuse_both
from .arqmath_topics import judged_topics
from .compare import BASELINE, measure, measure_by_topic, run_systems, search_systems
from .fusion_weight import fitted_weight, fusion_weights
from .known_item import KNOWN_ITEM_MEASURES, Split
from .report import Report
from .stages import Stages, to_stderr

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
