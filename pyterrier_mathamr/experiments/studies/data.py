"""The pairs and wrong answers of a job, by its recipe."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pyterrier_mathamr.experiments.links import known_answers, linked_pairs
from pyterrier_mathamr.experiments.negatives import mine_negatives
from pyterrier_mathamr.experiments.sources import TrainingPairs, read_training_pairs
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.model import MathAMR

from .job import Job
from .recipe import Recipe


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
