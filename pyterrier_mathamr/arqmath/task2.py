"""Visually distinct formulas: Task 2 is evaluated over formulas that look different.

::

    formula  visual id  score         visual id  score  formula
    q7       v1         0.9           v1         0.9    q7        the best instance of each appearance
    q3       v1         0.8    ──▶    v2         0.7    q4        represents all of them
    q4       v2         0.7
    q9       (none)     0.6                                       unknown: dropped, with a warning
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.frames import empty_output
from pyterrier_mathamr._common.parameters import Rule, one_of
from pyterrier_mathamr._common.transformers import Transformer
from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.posts import is_numbered

VisualIds = Mapping[FormulaId, str] | FormulaStore
"""Formula id to visual id."""


class VisualIdDeduplication(Transformer):
    """Keeps the best formula of each appearance, as the evaluation of Task 2 does.

    Formulas are ordered by score, ties by the order of the frame. The result ranks visual ids, for the judgments of
    ``irds:arqmath/2022/task2/visual``; with ``keep="formula"`` it ranks formula ids, for judgments of these.

    Args:
        visual_ids: formula id to visual id, such as a ``FormulaStore``; the column ``visual_id`` if None.
        keep: the ``docno`` of the result: the ``visual`` id, or the id of the best ``formula``.

    Raises:
        ConfigError: ``keep`` has another value.

    Example::

        pipeline = encode >> formula_index.retriever() >> VisualIdDeduplication()
    """

    label = "visual ids"
    checks: ClassVar[Mapping[str, Rule]] = {"keep": one_of("visual", "formula")}

    def __init__(self, visual_ids: VisualIds | None = None, *, keep: Literal["visual", "formula"] = "visual") -> None:
        super().__init__()
        self.visual_ids, self.keep = visual_ids, keep

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Keep the best formula of each appearance.

        Args:
            inp: a ranking of formulas: ``qid``, ``docno`` (formula id), ``score``, and ``visual_id`` unless the
                transformer has ``visual_ids``.

        Returns:
            The best row of each visual id, ordered by query and score, with ``visual_id``, ``formula_id`` and a new
            ``rank``. Formulas without a visual id are dropped, as by the organisers: with a warning, but for formulas
            that the collection gives no id.
        """
        needed = ["score"] if self.visual_ids is not None else ["score", "visual_id"]
        pt.validate.result_frame(inp, extra_columns=needed, context=self)
        if inp.empty:
            return empty_output(inp, ["visual_id", "formula_id", "rank"])
        visual = self._visual_ids_of(inp)
        known = visual.notna() & (visual != "")
        lost = inp["docno"][~known & ~inp["docno"].map(is_numbered).astype(bool)]
        if len(lost):
            text = f"{len(lost)} of {len(inp)} formulas have no visual id and are dropped, such as {lost.iloc[0]}"
            warnings.warn(MathAMRWarning(text), stacklevel=2)
        found = inp.assign(visual_id=visual, formula_id=inp["docno"])[known]
        found = found.assign(_query=pd.factorize(found["qid"])[0])
        found = found.sort_values(["_query", "score"], ascending=[True, False], kind="stable")
        found = found.drop_duplicates(subset=["qid", "visual_id"]).drop(columns="_query").reset_index(drop=True)
        if self.keep == "visual":
            found = found.assign(docno=found["visual_id"])
        result: pd.DataFrame = found.assign(rank=found.groupby("qid", sort=False).cumcount())
        return result

    def _visual_ids_of(self, inp: pd.DataFrame) -> pd.Series[str]:
        if self.visual_ids is None:
            return inp["visual_id"]
        ids = list(dict.fromkeys(inp["docno"]))
        return inp["docno"].map(dict(lookup(self.visual_ids, ids)))

    def __repr__(self) -> str:
        known = self.visual_ids
        shown = [] if known is None else [f"<{len(known)} visual ids>" if isinstance(known, Mapping) else repr(known)]
        return f"VisualIdDeduplication({', '.join([*shown, f'keep={self.keep!r}'])})"


def lookup(visual_ids: VisualIds, ids: Iterable[FormulaId]) -> Mapping[FormulaId, str]:
    """Look up the visual ids of formulas; formulas without one are not in the result."""
    if isinstance(visual_ids, FormulaStore):
        return visual_ids.visual_ids(ids)
    return {formula: visual_ids[formula] for formula in ids if visual_ids.get(formula)}


def visual_qrels(qrels: pd.DataFrame, visual_ids: VisualIds) -> pd.DataFrame:
    """Convert judgments of formula ids to judgments of visual ids: the best grade of any judged instance.

    This is the organisers' definition. Prefer their own files by visual id, which cover all instances.

    Args:
        qrels: ``qid``, ``docno`` (formula id) and ``label``.
        visual_ids: formula id to visual id; formulas without one are dropped.

    Returns:
        ``qid``, ``docno`` (visual id) and ``label``, sorted by the first two.
    """
    visual = qrels["docno"].map(dict(lookup(visual_ids, dict.fromkeys(qrels["docno"]))))
    known = qrels.assign(docno=visual)[visual.notna()]
    return known.groupby(["qid", "docno"])["label"].max().reset_index()
