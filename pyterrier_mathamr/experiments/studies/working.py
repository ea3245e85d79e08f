"""Doing a job: train, encode, index, measure; what is finished is not done again.

The pairs and wrong answers of a job, by its recipe.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from pyterrier_mathamr.experiments.jobs import index_documents, train_on_pairs
from pyterrier_mathamr.experiments.negatives import mine_negatives
from pyterrier_mathamr.experiments.report import environment
from pyterrier_mathamr.experiments.sources import TrainingPairs, known_answers, linked_pairs, read_training_pairs
from pyterrier_mathamr.experiments.stages import Stages, peak_memory, write_whole
from pyterrier_mathamr.graph import GraphStore, MathAMRGraph
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR, fit_score_weights
from pyterrier_mathamr.store import writer_lock

from .definition import Recipe
from .job import Job
from .materials import Materials
from .measuring import measure_formulas, measure_job


class JoinedGraphs:
    """The graphs of several stores as of one.

    Args:
        stores: looked through in order.
    """

    def __init__(self, stores: Sequence[GraphStore]) -> None:
        self._stores = tuple(stores)

    def __getitem__(self, key: str) -> MathAMRGraph:
        for store in self._stores[:-1]:
            if key in store:
                return store[key]
        return self._stores[-1][key]

    def __contains__(self, key: object) -> bool:
        return any(key in store for store in self._stores)


def run_job(job: Job, *, say: Callable[[str], None] | None = None, verbose: bool = False) -> None:
    """Do a job, or what is left of it.

    A job that was killed goes on: training from its last whole epoch, indexing from its last whole shard. A second
    process that is given the same job waits for the first and then finds it done.

    Args:
        job: what to do; what it shares with others is made before (:meth:`Materials.prepare`).
        say: is told of each stage before it begins, or ``None``.
        verbose: show progress bars.

    Raises:
        SettingsChangedError: the folder holds something that was made with other settings.
        ModelError: training failed; the message says where.
    """
    with writer_lock(job.folder, wait=True):
        materials = Materials(job.collection, job.pairs, job.workdir)
        stages = Stages(job.folder, say)
        path = job.folder / "model"
        stages.run("train", path, {**job.settings, **_origin(materials)}, lambda: _train(job, materials, verbose))
        model = MathAMR.from_pretrained(path, text=materials.text_encoder(job.config))
        index = MathAMRIndex(job.folder / "answers.mathamr")
        stages.run(
            "index",
            index.path,
            {"model": model.identity},
            lambda: index_documents(materials.answers(), materials.graphs, model, index, verbose=verbose),
        )
        stages.run(
            job.measured.stem,
            job.measured,
            {"model": model.identity, **job.measurement},
            lambda: measure_job(job, materials, model, index),
        )
        if job.task2:
            stages.run(
                job.formulas.stem,
                job.formulas,
                {"model": model.identity, "years": list(job.years)},
                lambda: measure_formulas(job, materials, model, stages),
            )


def _origin(materials: Materials) -> dict[str, str]:
    return {"collection": str(materials.collection.path.resolve())}


def _train(job: Job, materials: Materials, verbose: bool) -> None:
    """Train, write down what it cost, and save the model last, so that a model is never without its cost."""
    path, checkpoint = job.folder / "model", job.folder / "training"
    shutil.rmtree(path, ignore_errors=True)  # of a run that lost its record
    graphs = JoinedGraphs([materials.graphs, *materials.pair_graphs()])
    data = training_data(job, materials.graphs, lambda base: _base_model(base, materials, verbose))
    model = train_on_pairs(
        data.sources,
        graphs,
        job.config,
        checkpoint,
        first=data.first,
        negatives=data.negatives,
        never=data.never,
        device=job.device,
        text=materials.text_encoder(job.config),
        verbose=verbose,
    )
    write_whole(job.cost, json.dumps(_cost(model, checkpoint), indent=1) + "\n")
    if job.recipe.fitted:
        model = fit_score_weights(model, data.validation, graphs, device=job.device, verbose=verbose)
    model.save(path)
    shutil.rmtree(checkpoint)


def _base_model(base: Job, materials: Materials, verbose: bool) -> MathAMR:
    """Give the model that mines for another, which may be a run of the same study."""
    with writer_lock(base.folder, wait=True):
        path = base.folder / "model"
        settings = {**base.settings, **_origin(materials)}
        Stages(base.folder).run("train", path, settings, lambda: _train(base, materials, verbose))
        return MathAMR.from_pretrained(path, text=materials.text_encoder(base.config))


def _cost(model: MathAMR, checkpoint: Path) -> dict[str, object]:
    """Say what training cost, from its history and from this process."""
    history = json.loads((checkpoint / "history.json").read_text(encoding="utf-8"))
    losses = [record["validation_loss"] for record in history]
    gpu = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else None
    return {
        "epochs": len(history),
        "best epoch": 1 + losses.index(min(losses)),
        "seconds per epoch": sum(record["seconds"] for record in history) / len(history),
        "share of waiting": sum(record["waiting"] * record["seconds"] for record in history)
        / sum(record["seconds"] for record in history),
        "parameters": sum(tensor.numel() for tensor in model.encoder("cpu").parameters()) + 1,  # and the temperature
        "peak MiB": round(peak_memory(), 1),
        "peak GPU MiB": gpu,
        "history": history,
        "environment": environment(),
    }


class TrainingData(NamedTuple):
    """What a job is trained on.

    Attributes:
        sources: pairs to train on and to stop by.
        first: pairs of the first epochs.
        negatives: hard negatives by question id, or nothing.
        never: by question id, what is never a negative, or nothing.
    """

    sources: list[TrainingPairs]
    first: list[TrainingPairs]
    negatives: Mapping[str, Sequence[str]] | None
    never: Mapping[str, Iterable[str]] | None

    @property
    def validation(self) -> list[tuple[str, str]]:
        """All pairs to stop by."""
        return [pair for source in self.sources for pair in source.validation]


def training_data(job: Job, graphs: GraphStore, base_model: Callable[[Job], MathAMR]) -> TrainingData:
    """Read the pairs of a job and find its hard negatives.

    Args:
        job: says which.
        graphs: of the collection's posts.
        base_model: trains or finds the model of the job that it is given, which mines.
    """
    recipe = job.recipe
    own, *others = [read_training_pairs(source) for source in (job.collection, *job.pairs)]
    linked = linked_pairs(job.collection, recipe.links)
    collection = TrainingPairs([*own.train, *linked], own.validation)
    first = others if recipe.pairs == "first" else []
    sources = [collection] if recipe.pairs == "first" else [collection, *others]
    if recipe.negatives == "none" and recipe.links == "none":
        return TrainingData(sources, first, None, None)
    never = known_answers(job.collection, dict.fromkeys(question for question, _ in collection.train))
    if recipe.negatives == "none":
        return TrainingData(sources, first, None, never)
    model = base_model(_without_negatives(job)) if recipe.negatives == "model" else None
    negatives = mine_negatives(recipe.negatives, job.collection, own.train, never, graphs=graphs, model=model)
    return TrainingData(sources, first, negatives, never)


def _without_negatives(job: Job) -> Job:
    """Give the same job without hard negatives and without what is fitted afterwards."""
    recipe = Recipe(pairs=job.recipe.pairs, links=job.recipe.links)
    return dataclasses.replace(job, config=job.config.replace(hard_negatives=0), recipe=recipe)
