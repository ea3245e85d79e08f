"""Learned sums: `LinearBlend` of the scores of a first stage and of others, `Ensemble` of any number of rankings.

::

    bm25 ──▶ ranking ──┬── its own score ──▶ z ── w₀ ─┐
                       ├── index.scorer() ─▶ z ── w₁ ─┼─▶ Σ ──▶ ranking
                       └── …                          ┘

z is the standard score among the query's documents. The weights, none below 0, maximize the likelihood of the right
documents among all documents that were found for the training questions (softmax).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError, MathAMRError
from pyterrier_mathamr._common.frames import empty_output, ordered_by_score
from pyterrier_mathamr._common.listwise import Group, fit_listwise
from pyterrier_mathamr._common.parameters import Rule, between, list_of
from pyterrier_mathamr._common.transformers import Retriever, Transformer, inputs_of_all, outputs_of_all
from pyterrier_mathamr.explain import Asked, AskedError, Explanation, Part, QueryRow, Ranked, explained, read_asked
from pyterrier_mathamr.posts.topics import distinct_queries, with_query
from pyterrier_mathamr.store.saved import UNREADABLE, field, finite, read_saved, reason_of, write_saved

from .fusions import Fusion, System, distinct_names, explain_standard, standard_scores, standardized

_FIRST = "first stage"


class WeightsError(MathAMRError):
    """A learned combination or ranker has no weights: it was not fitted, or a file holds weights of other parts."""

    @classmethod
    def not_fitted(cls, what: str, reader: str) -> WeightsError:
        return cls(f"{what} has no weights. Call .fit(), give weights, or read them with {reader}.")

    @classmethod
    def of_file(cls, path: str | Path, reason: str) -> WeightsError:
        return cls(f"{path}: {reason}. Give the file that .save() of the same class wrote, and the same parts.")


class LinearBlend(Transformer, pt.Estimator):  # type: ignore[misc]
    """Ranks by a learned linear sum of the incoming score and the scores of some scorers.

    The rows are ordered by query (in order of appearance), score descending, docno ascending, and keep all their
    columns. A document that a scorer leaves out gets the lowest score of this scorer for the query.

    Args:
        scorers: each scores the documents of a ranking.
        weights: of the incoming score, then of each scorer; ``None`` until :meth:`fit` sets them.

    Raises:
        ConfigError: a weight is not a number of at least 0, or the number of weights is not 1 + the number of scorers.

    Example::

        blend = LinearBlend((index.scorer(), index.scorer(vectors="document")))
        pipeline = bm25 >> encode >> blend
        pipeline.fit(topics, qrels)
        blend.save("blend.json")
    """

    explains_incoming: ClassVar[bool] = True
    """:meth:`explain` accepts the explanation of the stages before it."""
    label, help_url = "linear blend", "https://pyterrier.readthedocs.io/en/latest/operators.html"
    checks: ClassVar[Mapping[str, Rule]] = {"weights": list_of(between(0)).or_none()}

    def __init__(self, scorers: Sequence[pt.Transformer], *, weights: Sequence[float] | None = None) -> None:
        super().__init__()
        self.scorers = tuple(scorers)
        self.weights = tuple(weights) if isinstance(weights, (list, np.ndarray)) else weights
        self._check_count()

    def _check_count(self) -> None:
        if self.weights is not None and len(self.weights) != len(self.scorers) + 1:
            allowed = f"{len(self.scorers) + 1} numbers: of the incoming score, then of each scorer"
            raise ConfigError("weights", self.weights, allowed)

    def _fitted(self) -> tuple[float, ...]:
        if self.weights is None:
            raise WeightsError.not_fitted("the blend", "LinearBlend.load()")
        return tuple(self.weights)

    def __str__(self) -> str:
        return _weighted_name(self.label, [_FIRST, *distinct_names(self.scorers)], self.weights)

    def transform_inputs(self) -> list[list[str]]:
        return inputs_of_all(self.scorers, "qid", "docno", "score")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking.

        Args:
            inp: ``qid``, ``docno``, ``score`` and the columns that the scorers need.

        Returns:
            The same rows, ordered, with ``score`` and ``rank``.

        Raises:
            WeightsError: there are no weights yet.
        """
        pt.validate.result_frame(inp, extra_columns=["score"], context=self)
        outputs_of_all(self.scorers, list(inp.columns))
        self._check_count()
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        return ordered_by_score(inp, self.features(inp) @ np.array(self._fitted()))

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
    ) -> None:
        """Find the weights, as in ``(bm25 >> encode >> blend).fit(topics, qrels)``.

        Questions without a right document among their rows are not used. The scorers should not have been trained on
        these questions, or their weights become too large.

        Args:
            topics_or_res_tr: a ranking of the training questions, as for :meth:`transform`.
            qrels_tr: ``qid``, ``docno``, ``label``; a label above 0 is right.
            topics_or_res_va: not used; PyTerrier gives validation data.
            qrels_va: not used; PyTerrier gives validation data.

        Raises:
            NothingToFitError: no question has both a right and a wrong document.
        """
        pt.validate.result_frame(topics_or_res_tr, extra_columns=["score"], context=self)
        features = self.features(topics_or_res_tr)
        self.weights = tuple(fit_listwise(grouped(topics_or_res_tr, features, qrels_tr)).tolist())

    def features(self, ranking: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Standardize the incoming score and the scorers' scores within each query.

        Args:
            ranking: at least one row.

        Returns:
            float64 ``[rows, 1 + scorers]``.
        """
        raw = filled_scores(ranking, [scorer(ranking) for scorer in self.scorers])
        query = pd.factorize(ranking["qid"])[0]
        return np.stack([standardized(query, scores) for scores in raw.T], axis=1)

    def explain(self, query: QueryRow, docno: str | None = None, *, incoming: Explanation | None = None) -> Explanation:
        """Explain the contributions of the incoming score and each scorer to the score of a document.

        Args:
            query: the ranking of one query, as for :meth:`transform`: scores are standardized among its documents.
            docno: one of its documents.
            incoming: the explanation of the document's incoming score; by default that score is a single part.

        Raises:
            AskedError: ``query`` is not a ranking, or the document is not in it. WeightsError: there are no weights.
        """
        asked = read_asked(query, docno, self.label)
        frame = query if isinstance(query, pd.DataFrame) else pd.DataFrame(columns=["docno", "score"])
        rows = frame[frame["docno"].astype(str) == asked.docno]
        if rows.empty:
            reason = f"{asked.docno!r} is not in the ranking of the query, over which its score is standardized"
            raise AskedError(self.label, reason, "Give the frame that the blend ranks, or use explain.explain_score.")
        weights = self._fitted()
        whole = Part(_FIRST, "score", contribution=float(rows["score"].iloc[0]))
        first = Ranked(frame, incoming or Explanation.of(asked.docno, [whole]))
        parts = [first, *(explained(scorer, frame, asked.docno) for scorer in self.scorers)]
        names = [_FIRST, *distinct_names(self.scorers)]
        result = asked.explained([])
        columns = filled_scores(frame, [ranking for ranking, _ in parts[1:]]).T
        for name, ranked, scores, weight in zip(names, parts, columns, weights, strict=True):
            result += explain_standard(asked.docno, name, scores, ranked.explanation, weight)
        return result

    def save(self, path: str | Path) -> None:
        """Write the weights as JSON with a checksum, replacing the file at once.

        Raises:
            WeightsError: there are no weights yet. WriteError: the file cannot be written.
        """
        scorers = [repr(scorer) for scorer in self.scorers]
        write_saved(path, type(self).__name__, {"weights": list(self._fitted()), "scorers": scorers})

    @classmethod
    def load(cls, path: str | Path, scorers: Sequence[pt.Transformer]) -> LinearBlend:
        """Read the weights that :meth:`save` wrote.

        Args:
            path: of the file.
            scorers: the scorers of the saved blend, in the same order; their names are not compared.

        Raises:
            WeightsError: the file is not a blend, was changed, or has weights for another number of scorers.
        """
        try:
            content = read_saved(path, cls.__name__)
            weights = [finite(weight, "weight") for weight in field(content, "weights", list)]
            return cls(scorers, weights=weights)
        except UNREADABLE as error:
            reason = f"no blend of {len(scorers)} scorer(s) ({reason_of(error)})"
            raise WeightsError.of_file(path, reason) from error


def _weighted_name(label: str, parts: Sequence[str], weights: Sequence[float] | None) -> str:
    """Name a combination by its parts, each after its weight if it is fitted."""
    shown = parts if weights is None else [f"{weight:.2g} {part}" for weight, part in zip(weights, parts, strict=True)]
    return f"{label}({', '.join(shown)})"


def filled_scores(ranking: pd.DataFrame, scored: Sequence[pd.DataFrame]) -> npt.NDArray[np.float64]:
    """Score each row; a document that a scorer omits gets that scorer's lowest score for the query."""
    keys = pd.MultiIndex.from_frame(ranking[["qid", "docno"]])
    columns = [ranking["score"].to_numpy(np.float64)]
    for frame in scored:
        by_key = frame.drop_duplicates(subset=["qid", "docno"]).set_index(["qid", "docno"])["score"]
        columns.append(by_key.reindex(keys).to_numpy(np.float64))
    raw = pd.DataFrame(np.column_stack(columns))
    lowest = raw.groupby(ranking["qid"].to_numpy()).transform("min")
    filled: npt.NDArray[np.float64] = raw.fillna(lowest).fillna(0.0).to_numpy()
    return filled


def grouped(ranking: pd.DataFrame, features: npt.NDArray[np.float64], qrels: pd.DataFrame) -> list[Group]:
    """Split the features of a ranking by query, with a mark for the rows that are right."""
    relevant = set(qrels.loc[qrels["label"] > 0, ["qid", "docno"]].itertuples(index=False, name=None))
    right = np.array([pair in relevant for pair in zip(ranking["qid"], ranking["docno"], strict=True)], dtype=bool)
    codes, _ = pd.factorize(ranking["qid"])
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    return [(features[rows], right[rows]) for rows in parts]


def fit_fusion_weight(left: pd.DataFrame, right: pd.DataFrame, qrels: pd.DataFrame) -> float:
    """Find the fusion weight that maximizes the likelihood of right documents among all that either system found.

    All questions with a right document in one of the rankings are used, not only those whose first ten change, so a
    system that helps some questions does not get the weight 0 because a coarse measure did not see it.

    Args:
        left: the ranking of one system: ``qid``, ``docno``, ``score``.
        right: the ranking of the other system, which should not have been trained on these questions.
        qrels: ``qid``, ``docno``, ``label``; a label above 0 is right.

    Returns:
        0 to 1, the weight of ``right`` in :class:`ZScoreFusion`; 0 if neither system helps.

    Raises:
        NothingToFitError: no question has both a right and a wrong document.

    Example::

        colbert = encode >> index.colbert()
        pipeline = ZScoreFusion(bm25, colbert, weight=fit_fusion_weight(bm25(topics), colbert(topics), qrels))
    """
    of_left, of_right = fit_listwise(_examples(standard_scores([left, right]), 2, qrels)).tolist()
    return of_right / (of_left + of_right) if of_right else 0.0


def fit_fusion_weights(
    rankings: Sequence[pd.DataFrame], qrels: pd.DataFrame, *, ridge: float = 10.0, judged_only: bool = False
) -> tuple[float, ...]:
    """Find the weights of a fusion of several systems on graded judgments of a few queries.

    For each grade above 0, documents of at least this grade should be likely among all documents found; see
    :func:`fit_fusion_weight`. The weights of similar systems are hardly determined, so large weights are
    penalized; the better a system by itself separates right from wrong, the larger its penalty.

    Args:
        rankings: ``qid``, ``docno``, ``score`` of each system, which should not have been trained on these queries.
        qrels: ``qid``, ``docno``, ``label``.
        ridge: the factor of half the squared length of the weights.
        judged_only: learn only from judged documents, as nDCG' does; otherwise unjudged documents count as wrong.

    Returns:
        A weight for each system, 0 or more, for :class:`ZScoreFusion`.

    Raises:
        NothingToFitError: no query has both a document of a grade above 0 and another one.
    """
    scores, grades = standard_scores(rankings), sorted(set(qrels.loc[qrels["label"] > 0, "label"]))
    if judged_only:
        scores = scores.merge(qrels[["qid", "docno"]].drop_duplicates(), on=["qid", "docno"])
    least = [qrels[qrels["label"] >= grade] for grade in grades] or [qrels]
    groups = [group for right in least for group in _examples(scores, len(rankings), right)]
    return tuple(fit_listwise(groups, ridge=ridge).tolist())


def _examples(scores: pd.DataFrame, systems: int, qrels: pd.DataFrame) -> list[Group]:
    """Split the standard scores of systems by query, with a mark for the documents that are right."""
    return grouped(scores, scores[list(map(str, range(systems)))].to_numpy(), qrels)


class Ensemble(Fusion, pt.Estimator):  # type: ignore[misc]
    """Ranks by a learned sum of the scores of several systems and features, standardized for each query.

    The candidates are all documents that one of the systems finds; the features score these. A document without a score
    from a part gets that part's lowest score for the query: :attr:`coverage` is the fraction with one. The weights,
    none below 0, maximize the likelihood of judged documents of a higher grade among the judged ones (listwise).

    Args:
        systems: each maps queries to a ranking, or is a ranking.
        features: each scores the documents of a ranking, with the columns of its queries.
        names: of the systems, then of the features; by default their labels.
        weight: of each, in this order, 0 or more; ``None`` until :meth:`fit` sets them.
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
            WeightsError: there are none yet.
        """
        if self.weight is None:
            raise WeightsError.not_fitted("the ensemble", "Ensemble.load()")
        return self.weight

    def __str__(self) -> str:
        return _weighted_name(self.label, self.part_names, self.weight)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search with all systems, score their results with all features, and rank.

        Args:
            inp: ``qid`` and what all systems and features need.

        Returns:
            The columns of ``inp``, ``docno``, the columns that all systems add, ``score`` and ``rank``.

        Raises:
            WeightsError: there are no weights yet.
        """
        if len(inp):
            len(self.weights)  # refuses to search before it is fitted
        return super().transform(inp)

    def rankings(self, queries: pd.DataFrame) -> list[pd.DataFrame]:
        """Run each system, and score their results with each feature."""
        rankings = super().rankings(queries)
        candidates = _candidates(queries, rankings)
        return rankings + [feature(candidates) for feature in self.features]

    def answers(self, asked: Asked) -> list[Ranked]:
        """Run each system and feature, and explain its score of a document."""
        answers = super().answers(asked)
        candidates = _candidates(asked.query_frame(), [answer.ranking for answer in answers])
        return answers + [explained(feature, candidates, asked.docno, asked.texts()) for feature in self.features]

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
    ) -> None:
        """Find the weights on judged queries, on which no system or feature should have been trained.

        Args:
            topics_or_res_tr: queries, as for :meth:`transform`.
            qrels_tr: ``qid``, ``docno``, ``label``.
            topics_or_res_va: not used; PyTerrier gives validation data.
            qrels_va: not used; PyTerrier gives validation data.

        Raises:
            NothingToFitError: no query has judged candidates of different grades.
        """
        pt.validate.query_frame(topics_or_res_tr, context=self)
        rankings = self.rankings(distinct_queries(topics_or_res_tr))
        self.weight = fit_fusion_weights(rankings, qrels_tr, ridge=self.ridge, judged_only=True)
        judged = set(qrels_tr[["qid", "docno"]].itertuples(index=False, name=None))
        scored = [judged.intersection(zip(ranking["qid"], ranking["docno"], strict=True)) for ranking in rankings]
        every = set().union(*scored)
        self.coverage = {name: len(some) / len(every) for name, some in zip(self.part_names, scored, strict=True)}

    def save(self, path: str | Path) -> None:
        """Write names, weights and coverage as JSON with a checksum, replacing the file at once.

        Raises:
            WeightsError: there are no weights yet. WriteError: the file cannot be written.
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
            systems: the systems, by name.
            features: the features, by name.
            num_results: the number of documents for each query.

        Raises:
            WeightsError: the file is not an ensemble, was changed, or has other parts; the message names them.
        """
        features = features or {}
        try:
            content = read_saved(path, cls.__name__)
            weights, coverage = (
                {part: finite(value, f"{name} of {part}") for part, value in field(content, name, dict).items()}
                for name in ("weights", "coverage")
            )
        except UNREADABLE as error:
            raise WeightsError.of_file(path, f"no ensemble ({reason_of(error)})") from error
        names = [*systems, *features]
        if set(names) != set(weights) or len(names) != len(weights):
            raise WeightsError.of_file(path, f"an ensemble of {', '.join(weights)}, not of {', '.join(names)}")
        made = cls(
            *systems.values(),
            features=tuple(features.values()),
            names=names,
            weight=[weights[name] for name in names],
            num_results=num_results,
        )
        made.coverage = coverage
        return made


def _candidates(queries: pd.DataFrame, rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """List all documents that were found, with the columns of their queries and without any system's score."""
    pairs = pd.concat([ranking[["qid", "docno"]] for ranking in rankings]).drop_duplicates()
    candidates = with_query(queries).merge(pairs, on="qid")
    return candidates.assign(score=0.0, rank=candidates.groupby("qid").cumcount())
