"""The ranking of formulas: by the pairs of symbols that they share with a query, and by their vectors.

::

    formula ──┬── Tangent ─────────────── D ──┐
              └── encode ── vectors ── cos ───┴─▶ S = (1 - w) D + w cos

D and cos are 1 for the same formula, so S is 1 at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.parameters import FRACTION, Rule
from pyterrier_mathamr._common.transformers import Retriever
from pyterrier_mathamr.systems.fusion import Fusion

from .posts import PostStore


class FormulaRetriever(Fusion):
    """Ranks formulas by the weighted sum of Tangent's score and the cosine of their vectors.

    A formula without a symbol pair of the query has D = 0; one whose vector is not among those found, the lowest cosine
    of those that are. A query that is no formula finds nothing.

    Args:
        posts: what can be found: formulas of deleted posts cannot, even while they are being removed.
        tangent: ``latex`` to formulas, by their symbol pairs.
        vectors: ``query`` to formulas, by their vectors.
        weight: w. At .2 the fusion finds more than Tangent, for both bundled models and the topics of both years; see
            ``benchmarks/engine_formulas.py``.
        num_results: formulas for each query.

    Example::

        posts = [{"id": "square", "text": "Show that $x^2 = 1$ has two solutions."}]
        engine = SearchEngine.build(posts, "my.engine", model="mathamr-plus-mini", verbose=False)
        pipeline = engine.formulas(num_results=100)
    """

    label = "Tangent + MathAMR+"
    checks: ClassVar[Mapping[str, Rule]] = {**Retriever.checks, "weight": FRACTION}

    def __init__(
        self,
        posts: PostStore,
        tangent: pt.Transformer,
        vectors: pt.Transformer,
        *,
        weight: float = 0.2,
        num_results: int = 1000,
    ) -> None:
        super().__init__((tangent, vectors), num_results)
        self.posts, self.tangent, self.vectors, self.weight = posts, tangent, vectors, weight

    @property
    def weights(self) -> tuple[float, float]:
        """Of Tangent and of the vectors."""
        return 1 - self.weight, self.weight

    def joined(self, rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """Return ``qid``, ``docno`` and ``0`` and ``1``: D and cos of every formula that can be found."""
        readable = set(rankings[0]["qid"])
        parts = []
        for system, ranking in enumerate(rankings):
            rows = self.posts.snapshot().look_up(ranking["post_id"].tolist())
            found = ranking[(rows >= 0) & ranking["qid"].isin(readable)]
            parts.append(found[["qid", "docno", "score"]].rename(columns={"score": str(system)}))
        both = parts[0].merge(parts[1], on=["qid", "docno"], how="outer")
        lowest = both.groupby("qid")["1"].transform("min").fillna(0.0)
        return both.assign(**{"0": both["0"].fillna(0.0), "1": both["1"].fillna(lowest)})
