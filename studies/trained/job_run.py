"""Do one training run of a study: train, index, search and measure. Finished stages are not repeated."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch

from pyterrier_mathamr.arqmath import TASK1_MEASURES, TrainingPairs, known_answers, linked_pairs, read_training_pairs
from pyterrier_mathamr.experiments.artifacts import Artifacts, ModelArtifacts
from pyterrier_mathamr.experiments.measuring import (
    KNOWN_ITEM_MEASURES,
    measure_by_topic,
    measured_formulas,
    time_queries,
)
from pyterrier_mathamr.experiments.reporting.report import environment
from pyterrier_mathamr.experiments.search import FORMULA_DEPTH, FUSION, STRATEGIES, Search, distinct
from pyterrier_mathamr.experiments.stages import Stages, peak_memory, write_atomically
from pyterrier_mathamr.experiments.training.negatives import mine_negatives
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import JoinedGraphs, MathAMR, fit_score_weights, train_on_pairs
from pyterrier_mathamr.store import writer_lock

from .definition import Recipe
from .job import FORMULAS, KNOWN_ITEM, Job, formula_label


def run_job(job: Job, *, say: Callable[[str], None] | None = None, verbose: bool = False) -> None:
    """Do a job, or what is left of it."""
    with writer_lock(job.folder, wait=True):
        shared, stages = Artifacts(job.collection, job.workdir, pairs=job.pairs), Stages(job.folder, say)
        own = ModelArtifacts(shared, stages, verbose=verbose)
        model = _model(job, own)
        index, identity = own.answers(model), {"model": model.identity}
        measured, formulas = job.measured, job.formulas
        stages.run(
            measured.stem, measured, {**identity, **job.measurement}, lambda: measure_job(job, shared, model, index)
        )
        if job.task2:
            settings = {**identity, "years": list(job.years)}
            stages.run(formulas.stem, formulas, settings, lambda: measure_formulas(job, own, model))


def _model(job: Job, own: ModelArtifacts) -> MathAMR:
    """Train or open the model of a job."""
    settings = {**job.settings, "collection": str(own.shared.collection.path.resolve())}
    text = own.shared.text_encoder(job.config)
    return own.model(settings, lambda checkpoint: _train(job, own, checkpoint), text)


def _train(job: Job, own: ModelArtifacts, checkpoint: Path) -> MathAMR:
    """Train, and record the cost before the model is saved, so that no model lacks its cost."""
    shared, verbose = own.shared, own.verbose
    graphs = JoinedGraphs([shared.graphs, *shared.pair_graphs()])
    data = training_data(job, own)
    model = train_on_pairs(
        data.sources,
        graphs,
        job.config,
        checkpoint,
        first=data.first,
        negatives=data.negatives,
        never=data.never,
        device=job.device,
        text=shared.text_encoder(job.config),
        verbose=verbose,
    )
    write_atomically(job.cost, json.dumps(_cost(model, checkpoint), indent=1) + "\n")
    if job.recipe.fitted:
        validation = [pair for source in data.sources for pair in source.validation]
        model = fit_score_weights(model, validation, graphs, device=job.device, verbose=verbose)
    return model


class TrainingData(NamedTuple):
    """What a job is trained on.

    Attributes:
        sources: pairs for training and early stopping.
        first: pairs of the first epochs.
        negatives: hard negatives by question id, or ``None``.
        never: documents by question id that are never its negatives, or ``None``.
    """

    sources: list[TrainingPairs]
    first: list[TrainingPairs]
    negatives: Mapping[str, Sequence[str]] | None = None
    never: Mapping[str, Iterable[str]] | None = None


def training_data(job: Job, own: ModelArtifacts) -> TrainingData:
    """Read the pairs of a job and mine its hard negatives, with the model of another job if its recipe says so."""
    recipe, graphs = job.recipe, own.shared.graphs
    collection, *others = [read_training_pairs(source) for source in (job.collection, *job.pairs)]
    mined = collection.train
    collection = collection._replace(train=[*mined, *linked_pairs(job.collection, recipe.links)])
    data = TrainingData([collection], others) if recipe.pairs == "first" else TrainingData([collection, *others], [])
    if recipe.negatives == "none" and recipe.links == "none":
        return data
    data = data._replace(never=known_answers(job.collection, (question for question, _ in collection.train)))
    if recipe.negatives == "none" or data.never is None:
        return data
    model = None
    if recipe.negatives == "model":
        config, without = job.config.replace(hard_negatives=0), Recipe(pairs=recipe.pairs, links=recipe.links)
        base = dataclasses.replace(job, config=config, recipe=without)  # may be a run of the same study
        with writer_lock(base.folder, wait=True):
            model = _model(base, dataclasses.replace(own, stages=Stages(base.folder)))
    return data._replace(
        negatives=mine_negatives(recipe.negatives, job.collection, mined, data.never, graphs=graphs, model=model)
    )


def _cost(model: MathAMR, checkpoint: Path) -> dict[str, object]:
    """Compute what training cost, from its history and this process."""
    history = json.loads((checkpoint / "history.json").read_text(encoding="utf-8"))
    losses, seconds = ([record[name] for record in history] for name in ("validation_loss", "seconds"))
    gpu = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else None
    return {
        "epochs": len(history),
        "best epoch": 1 + losses.index(min(losses)),
        "seconds per epoch": sum(seconds) / len(history),
        "share of waiting": sum(record["waiting"] * record["seconds"] for record in history) / sum(seconds),
        "parameters": sum(tensor.numel() for tensor in model.encoder("cpu").parameters()) + 1,  # and the temperature
        "peak MiB": round(peak_memory(), 1),
        "peak GPU MiB": gpu,
        "history": history,
        "environment": environment(),
    }


def measure_job(job: Job, shared: Artifacts, model: MathAMR, index: MathAMRIndex) -> None:
    """Search with each strategy, and write the values by topic and the times of single queries."""
    strategies = {name: STRATEGIES[name] for name in job.measured_strategies}
    search = Search(model, index, shared.bm25, strategies, job.depth, job.device)
    if FUSION in strategies:
        search.fit(shared.questions("validation"))
    parts = []
    for name in (KNOWN_ITEM, *job.years):
        known = name == KNOWN_ITEM
        found = shared.questions("test") if known else shared.topics(name)
        topics = search.encode(found)
        rankings = search.rankings(topics)
        measures = KNOWN_ITEM_MEASURES if known else TASK1_MEASURES
        parts.append(measure_by_topic(rankings, topics, found.qrels, measures).assign(topics=name))
    write_atomically(job.speed, _speed(job, shared, search).to_csv(index=False))
    table = pd.concat(parts, ignore_index=True).rename(columns={"name": "system"}).fillna({"value": 0.0})
    write_atomically(job.measured, table[["topics", "system", "qid", "measure", "value"]].to_csv(index=False))


def _speed(job: Job, shared: Artifacts, search: Search) -> pd.DataFrame:
    """Time single queries from their text to their ranking; a text encoder computes every vector, without a cache."""
    text = shared.text_encoder(job.config, cached=False)
    plain = dataclasses.replace(search, model=MathAMR.from_pretrained(job.folder / "model", text=text))
    table = time_queries(plain.ways(shared.topic_formulas(job.years[0])), shared.topics(job.years[0]).topics)
    table.insert(2, "queries per second", 1000 / table.pop("ms per query"))
    return table.rename(columns={"name": "system"})


def measure_formulas(job: Job, own: ModelArtifacts, model: MathAMR) -> None:
    """Index the vectors of all formulas, search for those of the formula topics, and write the values by topic."""
    index, parts = own.formulas(model), []
    for year in job.years:
        found = own.shared.formula_topics(year)
        encode = found.graphs.loader(side="query") >> model.query_encoder(device=job.device)
        ranking = distinct(encode >> index.retriever(num_results=FORMULA_DEPTH))(found.topics)
        parts.append(measured_formulas({FORMULAS: ranking}, found).assign(topics=formula_label(year)))
    write_atomically(job.formulas, pd.concat(parts, ignore_index=True).to_csv(index=False))
