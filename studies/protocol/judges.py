"""Outside judges: BM25, models and the engine's score on folders in BEIR's layout. Nothing is chosen by them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from ir_measures import RR, nDCG

from mathamr_systems.experiments.beir import TextArtifacts, TextCollection, others, read_collection
from mathamr_systems.experiments.measuring import best_of, means_table, measure_by_topic, paired_tests, rounded
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import Stages, to_stderr
from mathamr_systems.experiments.systems import BASELINES, BM25, STRUCTURED, TUNED
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.ids import pseudo_random
from pyterrier_mathamr.arqmath import BeirDataset
from pyterrier_mathamr.engine.ranking import fitted_weights
from pyterrier_mathamr.fusion import ranked, standard_scores
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.store import file_fingerprint

from .parts import Parts, parts_of

MANY, QUERIES = 1000, 300
"""The size of a collection above which queries are sampled, and the size of the sample."""
MODELS = ("mathamr-plus-mini", "mathamr-plus-text")
MEASURES = [nDCG @ 10, RR @ 10]
FOUND, TESTS = "nDCG@10", "Tests"
NOTES = (
    f"For a collection with more than {MANY:,} queries, the {QUERIES} with the smallest SHA-256 of their id are used.",
    "Systems are tested against the better BM25 of a collection. The engine's score has the one tuned for mathematics.",
    "A query does not find the document with its own id, unless that is judged for it. Nothing is trained or tuned.",
)


def run_judges(
    folders: Sequence[str | Path],
    workdir: str | Path,
    *,
    models: Sequence[str] = MODELS,
    questions: str | Path | None = None,
    verbose: bool = True,
) -> Report:
    """Measure both BM25s, models, and the engine's score of each model: nDCG@10 and RR@10.

    Args:
        folders: each a collection in BEIR's layout.
        workdir: where indexes, scores, tables and ``report.md`` are kept; finished stages are not repeated.
        models: names or folders of trained models; a folder has the last part of its path as its name.
        questions: a file with a docno, a tab and a question for it in each line, in place of a folder's own queries.
        verbose: report each stage on stderr, with progress bars.
    """
    named, of = ({Path(one).name: one for one in given} for given in (models, folders))
    for name, given, found in (("models", models, named), ("folders", folders, of)):
        if not given or len(found) < len(given):
            raise ConfigError(name, list(map(str, given)), "at least one, each with its own name")
    work = Path(workdir)
    stages = Stages(work, to_stderr if verbose else None)
    encoders = {name: MathAMR.from_pretrained(model) for name, model in named.items()}
    values, sizes = {}, {}
    for name, folder in of.items():
        collection = read_judge(BeirDataset(folder))
        collection = asked(collection, Path(questions)) if questions else collection
        own = Stages(work / "judges" / name, to_stderr if verbose else None)
        own.records = stages.records
        rankings: dict[str, pd.DataFrame] = {}
        for model, encoder in encoders.items():
            artifacts = TextArtifacts(collection, encoder, own, verbose, suffix=f"-{model}")
            sizes[name] = len(collection.topics), len(artifacts.bm25)
            rankings[BM25] = others(artifacts.bm25.retriever()(collection.topics), collection.qrels)
            rankings |= searched(parts_of(artifacts), model)
        values[name] = measure_by_topic(rankings, collection.topics, collection.qrels, MEASURES).fillna({"value": 0.0})
    return _report(values, sizes, list(named), stages).write(work)


def read_judge(dataset: BeirDataset) -> TextCollection:
    """Read a collection, and some of its queries if it has many."""
    collection, folds = read_collection(dataset, None)
    measured = {qid for fold in folds for qid in fold.test}  # without a split to choose on
    first = sorted(measured, key=pseudo_random)
    first = first[:QUERIES] if len(first) > MANY else first
    topics = collection.topics[collection.topics["qid"].isin(first)].reset_index(drop=True)
    qrels = collection.qrels[collection.qrels["qid"].isin(first)].reset_index(drop=True)
    return replace(collection, topics=topics, qrels=qrels)


def asked(collection: TextCollection, file: Path) -> TextCollection:
    """Return a collection with the questions of a file of docnos and questions."""
    table = pd.read_csv(file, sep="\t", names=["docno", "query"], dtype=str, quoting=csv.QUOTE_NONE)
    table["qid"] = [f"{file.stem}-{number}" for number in range(1, len(table) + 1)]
    origin = {**collection.origin, file.name: file_fingerprint(file)}
    return replace(
        collection, topics=table[["qid", "query"]], qrels=table[["qid", "docno"]].assign(label=1), origin=origin
    )


def names_of(model: str) -> tuple[str, str, str]:
    """Name the rows of a model: its own, the engine's score, and both rankings' standard scores."""
    return model, f"the engine's score, {model}", f"equal standard scores, {model}"


def searched(parts: Parts, model: str) -> dict[str, pd.DataFrame]:
    """Rank by BM25 tuned for mathematics, by BM25 with structures, by vectors, and by both."""

    def found(*names: str) -> pd.DataFrame:
        ranking = parts.ranking(parts.scores[[*names]].sum(axis=1).to_numpy())
        return ranking[ranking["score"] > 0]

    words, structured = found("bm25"), found("words", "structures")
    graph = parts.ranking(parts.scores["graph"].to_numpy())
    engine = parts.ranking(parts.engine(fitted_weights(model)))
    standard = ranked(standard_scores([words, graph]), (0.5, 0.5), 1000)
    return {TUNED: words, STRUCTURED: structured, **dict(zip(names_of(model), (graph, engine, standard), strict=True))}


def _report(
    values: dict[str, pd.DataFrame], sizes: dict[str, tuple[int, int]], models: list[str], stages: Stages
) -> Report:
    rows = [*BASELINES, STRUCTURED, *(name for model in models for name in names_of(model))]
    tables = {}
    for measure in map(str, MEASURES):
        table = pd.DataFrame({"name": rows})
        for name, own in values.items():
            means = means_table(own, rows, [measure])
            table[name], table[f"{name} error"] = means[measure], means[f"{measure} error"]
        tables[measure] = table.assign(mean=table[list(values)].mean(axis=1))
    tests = []
    for name, own in values.items():
        words = best_of(own, BASELINES, FOUND)
        pairs = [(row, words) for row in rows if row != words]
        pairs += [(engine, model) for model, engine, _ in map(names_of, models)]
        tests.append(rounded(paired_tests(own, pairs, FOUND)).assign(collection=name))
    asked = "; ".join(f"{name} {count} queries, {size:,} documents" for name, (count, size) in sizes.items())
    return Report(
        title="Outside judges: collections that nothing was tuned on",
        settings={"collections": list(values), "models": models},
        stages=stages.records,
        tables={**tables, TESTS: pd.concat(tests, ignore_index=True)},
        about={
            FOUND: f"{asked}. ± is the standard error of the mean over the queries; the last column is the mean of "
            "the collections."
        },
        notes=NOTES,
        values={f"{name}-by-query": own for name, own in values.items()},
    )
