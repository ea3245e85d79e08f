"""An experiment on a folder in BEIR's layout: settings are chosen on another split, or in folds of the queries."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from ir_measures import AP, RR, R, nDCG

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import BeirDataset
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.store import file_fingerprint
from studies.protocol.systems.catalogue import chosen_systems
from studies.protocol.tables import chosen_table, means_table, tests_of

from .choosing.folds import Fold, pooled_folds
from .choosing.nested import Nested
from .choosing.strategies import SHIPPED
from .measuring import measure_by_topic
from .reporting.report import Report
from .search import BM25, TASK1
from .stages import Stages, to_stderr
from .texts import TextArtifacts, TextCollection

MEASURES = [nDCG @ 10, RR @ 10, AP, R @ 100]
CHOSEN_ON = ("dev", "validation", "train")
"""The splits that everything is chosen on, if there are any; the first of them is taken."""
MOST = 500
"""Queries of such a split."""
MEASURED, TESTS, CHOSEN = "Measured", "Tests", "What was chosen"
NOTES = (
    "Everything is chosen by the mean nDCG@10: k1 and b of BM25, the candidates that a first stage hands on, the "
    "weight of a fusion. Each query is measured by a system that was chosen without it. As shipped has nothing chosen.",
    "± is the standard error of the mean over the queries. Rankings have at most 1000 documents; a query does not find "
    "a document with its own id, as in BEIR.",
)


def run_beir(
    path: str | Path,
    workdir: str | Path,
    *,
    split: str | None = None,
    systems: Sequence[str] | None = None,
    model: str = "mathamr-plus-mini",
    verbose: bool = True,
) -> Report:
    """Search a collection in BEIR's layout by words, by a model, and by both.

    Args:
        path: the folder, with ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/*.tsv``.
        workdir: where indexes, tables and ``report.md`` are kept; finished stages are not repeated.
        split: the judgments to measure by; by default ``test``, or the only ones. With ``dev``, ``validation`` or
            ``train`` beside them, settings are chosen on these, otherwise in ten folds of the queries.
        systems: names of the ways to search with MathAMR+, or several joined by ``+``; by default all.
        model: name or folder of a trained model.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written to ``workdir``.

    Raises:
        DocumentError: a file is missing, or a line of judgments cannot be read.
        ConfigError: there is no such split, or a name is that of no system.
        SettingsChangedError: ``workdir`` belongs to another collection or model.
    """
    chosen = chosen_systems(systems)
    for name in chosen:
        if name not in (SHIPPED, *TASK1) and not chosen[name]:
            raise ConfigError("systems", name, f"some of: {'; '.join(TASK1)}, which need no collection of questions")
    dataset, encoder = BeirDataset(path), MathAMR.from_pretrained(model)
    collection, folds = read_collection(dataset, split)
    stages = Stages(Path(workdir), to_stderr if verbose else None)
    artifacts = TextArtifacts(collection, encoder, stages, verbose)
    with stages.timed("search"):
        report = beir_report(artifacts, chosen, folds, model)
    return report.write(stages.workdir)


def read_collection(dataset: BeirDataset, split: str | None) -> tuple[TextCollection, list[Fold]]:
    """Read queries and judgments of the measured split and of that which is chosen on."""
    folder = dataset.folder
    measured = folder.split(split)
    topics, qrels = dataset.get_topicsqrels(measured)
    others = [name for name in CHOSEN_ON if name in folder.splits and name != measured]
    if others:
        test = frozenset(topics["qid"])
        more = _some(dataset.get_topics(others[0]), test)
        others_qrels = dataset.get_qrels(others[0])
        topics = pd.concat([topics, more], ignore_index=True)
        qrels = pd.concat([qrels, others_qrels[others_qrels["qid"].isin(more["qid"])]], ignore_index=True)
        folds = [Fold(f"{others[0]} → {measured}", frozenset(topics["qid"]) - test, test)]
    else:
        folds = pooled_folds(topics["qid"].tolist())
    origin = {file.name: file_fingerprint(file) for file in folder.files()}
    return TextCollection(folder.path.name, folder.documents, topics, qrels, origin), folds


def _some(topics: pd.DataFrame, measured: frozenset[str]) -> pd.DataFrame:
    """Keep at most :data:`MOST` queries that are not measured, by a hash of their ids."""
    free = [qid for qid in topics["qid"] if qid not in measured]
    kept: pd.DataFrame = topics[topics["qid"].isin(sorted(free, key=_hash)[:MOST])]
    return kept


def _hash(qid: str) -> str:
    return hashlib.sha256(qid.encode()).hexdigest()


def beir_report(
    artifacts: TextArtifacts, chosen: dict[str, tuple[str, ...]], folds: Sequence[Fold], model: str
) -> Report:
    """Measure systems, and make the report."""
    collection, systems = artifacts.collection, artifacts.systems(chosen)
    nested = Nested(systems, collection.questions, collection.qrels, MEASURES[0])
    rankings, settings = nested.run(folds)
    measured = frozenset[str]().union(*(fold.test for fold in folds))
    asked = collection.questions.only(measured)
    values = measure_by_topic(rankings, asked.topics, asked.kept(collection.qrels), MEASURES).fillna({"value": 0.0})
    names = [system.name for system in systems]
    tests = tests_of(values, systems, str(MEASURES[0]), BM25)
    table = means_table(values, MEASURES, names)
    differ = tests[(tests["against"] == BM25) & tests["significant"].astype(bool)]["system"]
    return Report(
        title=f"Experiment on {collection.name}, a folder in BEIR's layout",
        settings={"collection": collection.name, "queries": len(measured), "model": model},
        stages=artifacts.stages.records,
        tables={
            MEASURED: table.assign(**{f"{MEASURES[0]} reject": table["name"].isin(differ)}),
            TESTS: tests,
            CHOSEN: chosen_table([settings]),
        },
        about={
            MEASURED: f"{len(measured)} queries, {len(artifacts.bm25):,} documents; model {model}, nothing was trained "
            f"here. Chosen on: {folds[0].name if len(folds) == 1 else f'{len(folds)} folds of the queries'}. A star: "
            f"differs from {BM25} (two-sided paired t-test, p < 0.05 after Bonferroni over the tests).",
        },
        notes=NOTES,
        values={"by-query": values},
    )
