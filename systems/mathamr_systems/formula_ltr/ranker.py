"""Linear rankers of any features, learned by pairs or by lists.

For each pair of a query's candidates where i has a higher grade than j, the margin is w · (x_i - x_j). Pairs are
never listed: losses and gradients are sums over a matrix of margins, some rows at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from mathamr_systems.errors import nothing_judged
from pyterrier_mathamr.explain import AskedError, Explanation, Part, QueryRow, read_asked
from pyterrier_mathamr.extending import (
    FORMAT,
    POSITIVE,
    UNREADABLE,
    ByParameters,
    ConfigError,
    NothingToFitError,
    Rule,
    field,
    finite,
    fit_listwise,
    list_of,
    one_of,
    read_saved,
    reason_of,
    write_saved,
)
from pyterrier_mathamr.fusion import WeightsError

_Floats = npt.NDArray[np.float64]
SVMLoss = Literal["squared-hinge", "logistic"]
Graded = tuple[_Floats, _Floats]
"""Features of a query's candidates, float64 ``[y, f]``, and their grades, float64 ``[y]``."""

_CELLS = 1 << 21  # margins that are held at once
_FOLDS = 5


def fit_pairwise(groups: Sequence[Graded], c: float, loss: SVMLoss) -> _Floats:
    """Find the weights that minimize ½ w · w + C · Σ over queries of the mean loss of their pairs."""
    useful = [(features, grades) for features, grades in groups if len(np.unique(grades)) > 1]
    if not useful:
        raise NothingToFitError(len(groups))
    from scipy.optimize import minimize

    objective, start = partial(_objective, useful, c, _LOSSES[loss]), np.zeros(useful[0][0].shape[1])
    weights: _Floats = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return weights


def choose_c(
    c: float | Sequence[float], groups: Sequence[Graded], fit: Callable[[list[Graded], float], _Floats]
) -> float:
    """Choose, of several C, the one whose weights order most pairs of held-out queries, in five folds."""
    if isinstance(c, (int, float)):
        return float(c)
    useful = [(features, grades) for features, grades in groups if len(np.unique(grades)) > 1]
    folds = [useful[fold::_FOLDS] for fold in range(min(_FOLDS, len(useful)))]
    shares = dict.fromkeys(c, 0.0)
    if len(folds) > 1:
        for fold, held_out in enumerate(folds):
            others = [group for other, groups in enumerate(folds) if other != fold for group in groups]
            for value in shares:
                shares[value] += ordered_share(held_out, fit(others, value)) * len(held_out)
    return float(max(shares, key=lambda value: shares[value]))


def ordered_share(groups: Sequence[Graded], weights: _Floats) -> float:
    """Compute the share of pairs in their right order, a tie as half, as a mean over queries that have pairs."""
    shares = []
    for features, grades in groups:
        pairs = [
            (margins[higher] > 0).sum() + (margins[higher] == 0).sum() / 2
            for _, margins, higher in _margins(features @ weights, grades)
        ]
        count = _pairs(grades)
        shares += [float(sum(pairs)) / count] if count else []
    return float(np.mean(shares)) if shares else float("nan")


def _objective(groups: Sequence[Graded], c: float, loss: _Loss, weights: _Floats) -> tuple[float, _Floats]:
    total, slope = float(weights @ weights) / 2, weights.copy()
    for features, grades in groups:
        factor = c / _pairs(grades)
        for rows, margins, higher in _margins(features @ weights, grades):
            value, change = (np.where(higher, part, 0.0) for part in loss(margins))
            total += factor * float(value.sum())
            slope += factor * (features[rows].T @ change.sum(axis=1) - features.T @ change.sum(axis=0))
    return total, slope


def _pairs(grades: _Floats) -> int:
    _, counts = np.unique(grades, return_counts=True)
    return int(len(grades) ** 2 - (counts**2).sum()) // 2


def _margins(
    scores: _Floats, grades: _Floats
) -> Iterator[tuple[npt.NDArray[np.int64], _Floats, npt.NDArray[np.bool_]]]:
    """Yield some candidates, their margins to all of the query, and which of these are of a lower grade."""
    above = np.flatnonzero(grades > grades.min(initial=np.inf))
    step = max(1, _CELLS // max(len(scores), 1))
    for start in range(0, len(above), step):
        rows = above[start : start + step]
        yield rows, scores[rows, None] - scores, grades[rows, None] > grades


_Loss = Callable[[_Floats], tuple[_Floats, _Floats]]


def _squared_hinge(margins: _Floats) -> tuple[_Floats, _Floats]:
    gaps: _Floats = np.maximum(0.0, 1 - margins)
    return gaps**2, -2 * gaps


def _logistic(margins: _Floats) -> tuple[_Floats, _Floats]:
    return np.logaddexp(0, -margins), -1 / (1 + np.exp(np.clip(margins, -700, 700)))


_LOSSES: dict[SVMLoss, _Loss] = {"squared-hinge": _squared_hinge, "logistic": _logistic}


_ANY = Rule("a list of numbers", lambda value: bool(np.isfinite(np.asarray(value, dtype=np.float64)).all()))
ONE_OR_SEVERAL = Rule(
    "a number above 0, or several", lambda c: POSITIVE.holds(c) or bool(c and list_of(POSITIVE).holds(c))
)
"""Values of C; :func:`choose_c` chooses among several."""


class LinearRanker(ByParameters):
    """A learner whose score is the weighted sum of features; subclasses find the weights.

    Attributes:
        weights: of each feature; ``None`` before they are found.
        names: of the features.
    """

    label: ClassVar[str] = "learned ranking"
    checks: ClassVar[Mapping[str, Rule]] = {"weights": _ANY.or_none()}
    weights: tuple[float, ...] | None
    names: tuple[str, ...] | None

    def _set(self, names: Sequence[str] | None, weights: Sequence[float] | None) -> None:
        self.names = None if names is None else tuple(names)
        self.weights = None if weights is None else tuple(map(float, weights))
        if self.names is not None and self.weights is not None:
            self._check_count(len(self.weights))

    @abstractmethod
    def find(self, groups: Sequence[Graded]) -> _Floats:
        """Find the weights from the features and grades of the candidates of each query."""

    def fit(
        self,
        X: npt.ArrayLike,  # noqa: N803  (as learners of scikit-learn have it)
        y: npt.ArrayLike,
        *,
        group: Sequence[int] | npt.NDArray[np.integer],
        eval_set: object = None,
        eval_group: object = None,
    ) -> Self:
        """Find the weights, as ``pt.ltr.apply_learned_model(ranker, form="ltr")`` does.

        Args:
            X: features of all candidates, a query's together, ``[n, f]``.
            y: grades of the candidates, ``[n]``.
            group: how many candidates each query has; they sum to ``n``.
            eval_set: no effect; PyTerrier gives the validation data.
            eval_group: no effect; PyTerrier gives the groups of the validation data.
        """
        features, grades = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        ends = np.cumsum(np.asarray(group, dtype=np.int64))
        if not len(ends) or ends[-1] != len(features) or len(grades) != len(features):
            raise ConfigError("group", list(group), f"numbers that sum to the {len(features)} rows")
        self._check_count(features.shape[1])
        pieces = zip(np.split(features, ends[:-1]), np.split(grades, ends[:-1]), strict=True)
        self.weights = tuple(self.find(list(pieces)).tolist())
        return self

    def fit_judged(self, ranking: pd.DataFrame, qrels: pd.DataFrame) -> Self:
        """Fit the weights to the rows of a ``ranking`` that are judged in ``qrels``, by ``docno`` or ``visual_id``."""
        grades = qrels.drop_duplicates(["qid", "docno"]).set_index(["qid", "docno"])["label"]
        judged = []
        for column in (name for name in ("docno", "visual_id") if name in ranking.columns):
            keys = pd.MultiIndex.from_frame(ranking[["qid", column]])
            judged.append(ranking.assign(label=grades.reindex(keys).to_numpy(), judged=ranking[column]))
        rows = pd.concat(judged).dropna(subset="label").drop_duplicates(["qid", "judged"])
        rows = rows.sort_values("qid", kind="stable")
        if rows.empty:
            raise nothing_judged(ranking["qid"].nunique())
        sizes = rows.groupby("qid", sort=False).size()
        return self.fit(np.stack(rows["features"].tolist()), rows["label"], group=sizes.to_numpy())

    def predict(self, X: npt.ArrayLike) -> _Floats:  # noqa: N803
        """Score candidates."""
        features = np.asarray(X, dtype=np.float64)
        scores: _Floats = features @ self._found(features.shape[1])
        return scores

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Explain the contribution of each feature to the score of ``docno``; ``query`` is a row of the ranking."""
        asked = read_asked(query, docno, self.label)
        features = asked.row.get("features")
        if features is None:
            raise AskedError(self.label, "the row has no features", "Give a row that FormulaFeatures has made.")
        weights = self._found(len(features))
        names = self.names or [f"feature {number}" for number in range(1, len(weights) + 1)]
        parts = [
            Part(self.label, name, similarity=value, weight=weight, contribution=weight * value)
            for name, value, weight in zip(names, np.asarray(features).tolist(), weights.tolist(), strict=True)
        ]
        return asked.explained(parts)

    def save(self, path: str | Path) -> None:
        """Write the ranker as JSON with a checksum, replacing the file at once."""
        if self.weights is None:
            raise WeightsError.not_fitted("the ranker", ".load()")
        write_saved(path, type(self).__name__, self.parameters())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the ranker that :meth:`save` wrote."""
        try:
            content = read_saved(path, cls.__name__)
            if content.pop("format") != FORMAT and content.pop("ranker") != cls.__name__:  # format 1 has this key
                raise ValueError("it is another ranker")
            content["weights"] = [finite(weight, "weight") for weight in field(content, "weights", list)]
            names = None if content["names"] is None else field(content, "names", list)
            if names and not all(isinstance(name, str) for name in names):
                raise ValueError(f"its names are {names!r:.80}")
            return cls(**content)
        except UNREADABLE as error:
            raise WeightsError.of_file(path, f"no {cls.__name__} ({reason_of(error)})") from error

    def _found(self, features: int) -> _Floats:
        if self.weights is None:
            raise WeightsError.not_fitted("the ranker", ".load()")
        if len(self.weights) != features:
            raise ConfigError("features", features, f"{len(self.weights)} features, as the ranker has weights")
        return np.array(self.weights)

    def _check_count(self, features: int) -> None:
        if self.names is not None and len(self.names) != features:
            raise ConfigError("features", features, f"{len(self.names)} features, as the ranker has names")


class PairwiseRanker(LinearRanker):
    r"""Learns to order pairs of candidates: a linear ranking SVM with squared losses.

    Joachims, "Optimizing search engines using clickthrough data", KDD 2002. The weights minimize
    ½ w · w + C · Σ over queries of the mean loss of their pairs; a pair is two candidates of a query with different
    grades, and its loss max(0, 1 - w · (x_i - x_j))². There is no intercept.

    The program SVM-rank multiplies C / queries by the sum of all pairs' losses, not squared: 0.01, the published value
    for formula rankers, is a different C there.

    Args:
        c: C; from several values, :meth:`fit` uses the one that orders most pairs of held-out queries, in five folds.
        loss: ``"squared-hinge"``, or ``"logistic"``, log(1 + exp(-m)) of a margin m.
        names: of the features, for explanations; a ranker with names requires that many features.
        weights: of the features; ``None`` until :meth:`fit` sets them.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        features = FormulaFeatures(FormulaTrees("formulas.trees"))
        ranker = PairwiseRanker(c=(0.1, 1.0, 10.0), names=features.names)
        learned = pt.ltr.apply_learned_model(ranker, form="ltr")
        pipeline = TangentIndex("formulas.tangent").retriever() >> features >> learned
    """

    checks: ClassVar[Mapping[str, Rule]] = {
        **LinearRanker.checks,
        "c": ONE_OR_SEVERAL,
        "loss": one_of(*get_args(SVMLoss)),
    }

    def __init__(
        self,
        c: float | Sequence[float] = 0.01,
        loss: SVMLoss = "squared-hinge",
        *,
        names: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        self.c, self.loss = c, loss
        self._set(names, weights)

    def find(self, groups: Sequence[Graded]) -> _Floats:
        c = choose_c(self.c, groups, lambda useful, c: fit_pairwise(useful, c, self.loss))
        return fit_pairwise(groups, c, self.loss)


class ListwiseRanker(LinearRanker):
    """Learns weights, none below 0, under which the relevant candidates of a query are most likely (softmax).

    Args:
        ridge: the factor of half the squared length of the weights.
        relevant: the lowest grade that is relevant.
        names: of the features, for explanations; a ranker with names requires that many features.
        weights: of the features; ``None`` until :meth:`fit` sets them.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        features = FormulaFeatures(FormulaTrees("formulas.trees"))
        ranker = pt.ltr.apply_learned_model(ListwiseRanker(names=features.names), form="ltr")
        pipeline = TangentIndex("formulas.tangent").retriever() >> features >> ranker
    """

    checks: ClassVar[Mapping[str, Rule]] = {**LinearRanker.checks, "ridge": POSITIVE, "relevant": POSITIVE}

    def __init__(
        self,
        ridge: float = 1e-4,
        relevant: float = 1,
        *,
        names: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        self.ridge, self.relevant = ridge, relevant
        self._set(names, weights)

    def find(self, groups: Sequence[Graded]) -> _Floats:
        return fit_listwise([(features, grades >= self.relevant) for features, grades in groups], ridge=self.ridge)
