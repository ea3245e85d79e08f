"""A learned linear sum of the score of a first stage and the scores of others, for the documents it found.

::

    bm25 ──▶ ranking ──┬── its own score ──▶ z ── w₀ ─┐
                       ├── index.scorer() ─▶ z ── w₁ ─┼─▶ Σ ──▶ ranking
                       └── …                          ┘

z is the standard score among the query's documents. The weights are those under which the right documents of the
training questions are most likely among all that were found (softmax); a weight is never below 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import empty_output, ordered_by_score
from pyterrier_mathamr._common.listwise import Group, fit_listwise
from pyterrier_mathamr._common.parameters import Rule, between, list_of
from pyterrier_mathamr._common.transformers import Transformer, inputs_of_all, outputs_of_all
from pyterrier_mathamr.explain import AskedError, Explanation, Part, QueryRow, Ranked, explained, read_asked
from pyterrier_mathamr.fusion.errors import BlendFileError, BlendNotFittedError
from pyterrier_mathamr.store.saved import UNREADABLE, field, finite, read_saved, reason_of, write_saved

from .explaining import distinct_names, explain_standard

_FIRST = "first stage"


class LinearBlend(Transformer, pt.Estimator):  # type: ignore[misc]
    """Ranks by a learned linear sum of the incoming score and those of some scorers.

    The rows are ordered by query (as they come), score descending, docno ascending, and keep all their columns. A
    document that a scorer leaves out gets the lowest score of this scorer for the query.

    Args:
        scorers: each takes a ranking and scores its documents.
        weights: of the incoming score, then of each scorer; ``None`` until :meth:`fit` finds them.

    Raises:
        ConfigError: a weight is no number of at least 0, or there is not one for the incoming score and each scorer.

    Example::

        blend = LinearBlend((index.scorer(), index.scorer(vectors="document")))
        pipeline = bm25 >> encode >> blend
        pipeline.fit(topics, qrels)
        blend.save("blend.json")
    """

    explains_incoming: ClassVar[bool] = True
    """:meth:`explain` takes the explanation of the stages before it."""
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

    def transform_inputs(self) -> list[list[str]]:
        """Return the columns of a ranking that all scorers take."""
        return inputs_of_all(self.scorers, "qid", "docno", "score")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking.

        Args:
            inp: ``qid``, ``docno``, ``score`` and what the scorers need.

        Returns:
            The same rows, ordered, with ``score`` and ``rank``.

        Raises:
            BlendNotFittedError: there are no weights yet.
        """
        pt.validate.result_frame(inp, extra_columns=["score"], context=self)
        outputs_of_all(self.scorers, list(inp.columns))
        self._check_count()
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        if self.weights is None:
            raise BlendNotFittedError()
        return ordered_by_score(inp, self.features(inp) @ np.array(self.weights))

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
            topics_or_res_tr: a ranking of the training questions, as :meth:`transform` takes it.
            qrels_tr: ``qid``, ``docno``, ``label``; right is what has a label above 0.
            topics_or_res_va: not used.
            qrels_va: not used.

        Raises:
            NothingToFitError: no question has both a right and a wrong document.
        """
        pt.validate.result_frame(topics_or_res_tr, extra_columns=["score"], context=self)
        features = self.features(topics_or_res_tr)
        self.weights = tuple(fit_listwise(grouped(topics_or_res_tr, features, qrels_tr)).tolist())

    def features(self, ranking: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Standardise the incoming score and those of the scorers within each query.

        Args:
            ranking: at least one row.

        Returns:
            float64 ``[rows, 1 + scorers]``.
        """
        raw = pd.DataFrame(filled_scores(ranking, [scorer(ranking) for scorer in self.scorers]))
        by_query = raw.groupby(ranking["qid"].to_numpy())
        spread = by_query.transform("std", ddof=0).replace(0.0, 1.0)
        standard: npt.NDArray[np.float64] = ((raw - by_query.transform("mean")) / spread).to_numpy()
        return standard

    def explain(self, query: QueryRow, docno: str | None = None, *, incoming: Explanation | None = None) -> Explanation:
        """Say what the incoming score and each scorer contribute to the score of a document.

        Args:
            query: the ranking of one query, as :meth:`transform` takes it: scores are standardised among its documents.
            docno: one of its documents.
            incoming: the explanation of the document's incoming score, which is one part without it.

        Raises:
            AskedError: it is no ranking, or the document is not in it.
            BlendNotFittedError: there are no weights yet.
        """
        asked = read_asked(query, docno, self.label)
        frame = query if isinstance(query, pd.DataFrame) else pd.DataFrame(columns=["docno", "score"])
        rows = frame[frame["docno"].astype(str) == asked.docno]
        if rows.empty:
            reason = f"{asked.docno!r} is not in a ranking of the query, among whose scores its own is standardised"
            raise AskedError(self.label, reason, "Give the frame that the blend ranks, or use explain.explain_score.")
        if self.weights is None:
            raise BlendNotFittedError()
        whole = Part(_FIRST, "score", contribution=float(rows["score"].iloc[0]))
        first = Ranked(frame, incoming or Explanation.of(asked.docno, [whole]))
        parts = [first, *(explained(scorer, frame, asked.docno) for scorer in self.scorers)]
        names = [_FIRST, *distinct_names(self.scorers)]
        result = asked.explained([])
        columns = filled_scores(frame, [ranking for ranking, _ in parts[1:]]).T
        for name, ranked, scores, weight in zip(names, parts, columns, self.weights, strict=True):
            result += explain_standard(asked.docno, name, scores, ranked.explanation, weight)
        return result

    def save(self, path: str | Path) -> None:
        """Write the weights as JSON with a checksum, replacing the file at once.

        Args:
            path: of the file.

        Raises:
            BlendNotFittedError: there are no weights yet. WriteError: the file cannot be written.
        """
        if self.weights is None:
            raise BlendNotFittedError()
        scorers = [repr(scorer) for scorer in self.scorers]
        write_saved(path, type(self).__name__, {"weights": list(self.weights), "scorers": scorers})

    @classmethod
    def load(cls, path: str | Path, scorers: Sequence[pt.Transformer]) -> LinearBlend:
        """Read the weights that :meth:`save` wrote.

        Args:
            path: of the file.
            scorers: as many as when it was written, in the same order; the file names them for people.

        Raises:
            BlendFileError: the file is no blend, was changed, or is one of another number of scorers.
        """
        try:
            content = read_saved(path, cls.__name__)
            weights = [finite(weight, "weight") for weight in field(content, "weights", list)]
            return cls(scorers, weights=weights)
        except UNREADABLE as error:
            reason = f"no blend of {len(scorers)} scorer(s) ({reason_of(error)})"
            raise BlendFileError(Path(path), reason) from error


def filled_scores(ranking: pd.DataFrame, scored: Sequence[pd.DataFrame]) -> npt.NDArray[np.float64]:
    """Collect the scores of the rows of a ranking; a document that a scorer leaves out has its lowest of the query."""
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
    """Split the features of a ranking by query, and tell which rows are right."""
    relevant = set(qrels.loc[qrels["label"] > 0, ["qid", "docno"]].itertuples(index=False, name=None))
    right = np.array([pair in relevant for pair in zip(ranking["qid"], ranking["docno"], strict=True)], dtype=bool)
    codes, _ = pd.factorize(ranking["qid"])
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    return [(features[rows], right[rows]) for rows in parts]
