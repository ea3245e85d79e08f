"""What a run is trained on beside its configuration: which pairs, which wrong answers, what is fitted afterwards."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from pyterrier_mathamr.experiments.links import LinkedQuestions
from pyterrier_mathamr.experiments.negatives import Miner

PairSources = Literal["all", "collection", "first"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The data of a training run.

    Attributes:
        pairs: ``all`` that are given; those of the ``collection`` alone; or those from outside in the ``first`` epochs
            (``first_epochs``) and those of the collection in the others.
        negatives: what mines hard negatives (``hard_negatives`` of them), or ``none``; ``model`` is the model that
            the same configuration gives without hard negatives.
        links: linked questions that are trained on as pairs, too.
        fitted: after training, the weights of the kinds of rows and of the document vector are fitted to the
            validation questions.
    """

    pairs: PairSources = "all"
    negatives: Miner | Literal["none"] = "none"
    links: LinkedQuestions = "none"
    fitted: bool = False

    def choices(self) -> dict[str, Any]:
        """Give what differs from the defaults."""
        usual = Recipe()
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != getattr(usual, field.name)
        }
