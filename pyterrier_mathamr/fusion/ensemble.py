"""A learned sum of any number of rankings, and of features of what they found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import distinct_queries
from pyterrier_mathamr._common.parameters import Rule, between, list_of
from pyterrier_mathamr._common.transformers import Retriever
from pyterrier_mathamr.explain import Asked, Ranked, explained
from pyterrier_mathamr.fusion.errors import RankerFileError, RankerNotFittedError
from pyterrier_mathamr.store.saved import UNREADABLE, field, finite, read_saved, reason_of, write_saved

from .base import System
from .explaining import distinct_names
from .z_score import StandardFusion, fit_fusion_weights


class Ensemble(StandardFusion, pt.Estimator):  # type: ignore[misc]
    """Ranks by a learned sum of the scores of several systems and features, standardised for each query.

    The candidates are all documents that one of the systems finds; a feature scores these. A document to which a part
    gives no score has the lowest of that part for the query: :attr:`coverage` says how many have one. The weights, none
    below 0, are those under which judged documents of a higher grade are likeliest among the judged ones (listwise).

    Args:
        systems: each takes queries and returns a ranking, or is a ranking.
        features: each takes a ranking, with the columns of its queries, and scores its documents.
        names: of the systems, then of the features; by default what they call themselves.
        weight: of each, in this order, 0 or more; ``None`` until :meth:`fit` finds them.
        ridge: the factor of half the squared length of the weights.
        num_results: the number of documents for each query.

    Raises:
        ConfigError: an option is out of its range, or there are not as many names or weights as parts.

    With a feature, fitted on the topics of a year::

        ensemble = Ensemble(bm25, encode >> index.colbert(), features=[marf >> marf_index.scorer()])
        ensemble.fit(topics_2020, qrels_2020)
        ensemble.save("ensemble.json")
    """

    label = "ensemble"
    checks: ClassVar[Mapping[str, Rule]] = {
        **Retriever.checks,
        "weight": list_of(between(0)).or_none(),
        "ridge": between(0),
    }

    def __init__(
        self,
        *systems: System,
        features: Sequence[pt.Transformer] = (),
        names: Sequence[str] | None = None,
        weight: Sequence[float] | None = None,
        ridge: float = 0.1,
        num_results: int = 1000,
    ) -> None:
        super().__init__(systems, num_results)
        self.features, self.ridge = tuple(features), ridge
        self.names = None if names is None else tuple(names)
        self.weight = None if weight is None else tuple(map(float, weight))
        self.coverage: dict[str, float] = {}
        """Of each part, the share of judged training candidates that it scored; empty before :meth:`fit`."""
        parts = len(self.systems) + len(self.features)
        for name in ("names", "weight"):
            given = getattr(self, name)
            if given is not None and len(given) != parts:
                raise ConfigError(name, given, f"a list of {parts}, one for each system and feature")
        if self.names is not None and len(set(self.names)) < parts:
            raise ConfigError("names", self.names, "different names")

    @property
    def part_names(self) -> list[str]:
        """The name of each system and feature."""
        return distinct_names([*self.systems, *self.features]) if self.names is None else list(self.names)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each system and feature.

        Raises:
            RankerNotFittedError: there are none yet.
        """
        if self.weight is None:
            raise RankerNotFittedError()
        return self.weight

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search with all systems, score what they found with all features, and rank.

        Args:
            inp: ``qid`` and what all systems and features need.

        Returns:
            The columns of ``inp``, ``docno``, the columns that all systems add, ``score`` and ``rank``.

        Raises:
            RankerNotFittedError: there are no weights yet.
        """
        len(self.weights)  # refuses to search before it is fitted
        return super().transform(inp)

    def rankings(self, queries: pd.DataFrame) -> list[pd.DataFrame]:
        """Ask each system, and let each feature score what they found."""
        found = super().rankings(queries)
        candidates = _candidates(queries, found)
        return found + [feature(candidates) for feature in self.features]

    def answers(self, asked: Asked) -> list[Ranked]:
        """Ask each system and feature what it says of a document, and why."""
        found = super().answers(asked)
        candidates = _candidates(asked.query_frame(), [answer.ranking for answer in found])
        return found + [explained(feature, candidates, asked.docno, asked.texts()) for feature in self.features]

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
    ) -> None:
        """Find the weights on judged queries, on which no system or feature should have been trained.

        Args:
            topics_or_res_tr: queries, as :meth:`transform` takes them.
            qrels_tr: ``qid``, ``docno``, ``label``.
            topics_or_res_va: not used.
            qrels_va: not used.

        Raises:
            NothingToFitError: no query has judged candidates of different grades.
        """
        pt.validate.query_frame(topics_or_res_tr, context=self)
        rankings = self.rankings(distinct_queries(topics_or_res_tr))
        self.weight = fit_fusion_weights(rankings, qrels_tr, ridge=self.ridge, judged_only=True)
        self.coverage = dict(zip(self.part_names, _coverage(rankings, qrels_tr), strict=True))

    def save(self, path: str | Path) -> None:
        """Write names, weights and coverage as JSON with a checksum, replacing the file at once.

        Args:
            path: of the file.

        Raises:
            RankerNotFittedError: there are no weights yet. WriteError: the file cannot be written.
        """
        parts = dict(zip(self.part_names, self.weights, strict=True))
        write_saved(path, type(self).__name__, {"weights": parts, "coverage": self.coverage})

    @classmethod
    def load(
        cls,
        path: str | Path,
        systems: Mapping[str, System],
        features: Mapping[str, pt.Transformer] | None = None,
        *,
        num_results: int = 1000,
    ) -> Ensemble:
        """Read the weights that :meth:`save` wrote.

        Args:
            path: of the file.
            systems: by the names that they had.
            features: by the names that they had.
            num_results: the number of documents for each query.

        Raises:
            RankerFileError: the file is no ensemble, was changed, or is one of other parts; it names them.
        """
        features = features or {}
        try:
            content = read_saved(path, cls.__name__)
            weights, coverage = (
                {part: finite(value, f"{name} of {part}") for part, value in field(content, name, dict).items()}
                for name in ("weights", "coverage")
            )
        except UNREADABLE as error:
            raise RankerFileError(Path(path), f"no ensemble ({reason_of(error)})") from error
        names = [*systems, *features]
        if set(names) != set(weights) or len(names) != len(weights):
            raise RankerFileError(Path(path), f"an ensemble of {', '.join(weights)}, not of {', '.join(names)}")
        given: dict[str, Any] = {"names": names, "weight": [weights[name] for name in names]}
        made = cls(*systems.values(), features=tuple(features.values()), num_results=num_results, **given)
        made.coverage = coverage
        return made


def _candidates(queries: pd.DataFrame, rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All documents that were found, with the columns of their queries; no system's score is among them."""
    found = pd.concat([ranking[["qid", "docno"]] for ranking in rankings]).drop_duplicates()
    candidates = queries.merge(found, on="qid")
    return candidates.assign(score=0.0, rank=candidates.groupby("qid").cumcount())


def _coverage(rankings: Sequence[pd.DataFrame], qrels: pd.DataFrame) -> list[float]:
    """For each ranking, the share of the judged documents found by any that it has."""
    judged = pd.MultiIndex.from_frame(qrels[["qid", "docno"]]).unique()
    own = [pd.MultiIndex.from_frame(ranking[["qid", "docno"]]).intersection(judged) for ranking in rankings]
    every = own[0]
    for one in own[1:]:
        every = every.union(one)
    return [len(one) / len(every) for one in own]
