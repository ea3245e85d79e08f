"""Visually distinct formulas: how the organisers of Task 2 count formulas that look alike.

::

    formula  visual id  score         visual id  score  formula
    q7       v1         0.9           v1         0.9    q7        the first instance of each appearance
    q3       v1         0.8    ──▶    v2         0.7    q4        stands for all of them
    q4       v2         0.7
    q9       (none)     0.6                                       unknown: left out, with a warning
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.frames import empty_output
from pyterrier_mathamr._common.parameters import ByParameters
from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.formula import FormulaStore

VisualIds = Mapping[FormulaId, str] | FormulaStore
"""Formula id to visual id."""


class VisualIdDeduplication(ByParameters, pt.Transformer):  # type: ignore[misc]
    """Keeps the first formula of each appearance, as the evaluation of Task 2 does before anything is counted.

    Formulas stand by score, the higher first; those of equal score keep the order of the frame. The result is ranked
    by visual id, to be compared with the judgements of ``irds:arqmath/2022/task2/visual``; with ``keep="formula"`` the
    formula's own id stays, to be compared with judgements by formula id.

    Args:
        visual_ids: formula id to visual id, such as a ``FormulaStore``; the column ``visual_id`` where not given.
        keep: what ``docno`` is in the result: the ``visual`` id, or the id of the first ``formula``.

    Raises:
        ConfigError: ``keep`` is neither.

    Example::

        pipeline = encode >> formula_index.retriever() >> VisualIdDeduplication()
    """

    schematic: ClassVar[dict[str, str]] = {
        "label": "visual ids",
        "help_url": "https://pyterrier.readthedocs.io/en/latest/transformer.html",
    }

    def __init__(self, visual_ids: VisualIds | None = None, *, keep: Literal["visual", "formula"] = "visual") -> None:
        if keep not in ("visual", "formula"):
            raise ConfigError("keep", keep, "'visual' or 'formula'")
        super().__init__()
        self.visual_ids, self.keep = visual_ids, keep

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Keep the first of each appearance.

        Args:
            inp: a ranking of formulas: ``qid``, ``docno`` (formula id), ``score``, and ``visual_id`` where the
                transformer was given none.

        Returns:
            The rows that are kept, best first, queries in their order, with ``visual_id``, ``formula_id`` and a new
            ``rank``. Formulas without a visual id are left out with a warning, as the organisers leave them out.
        """
        needed = ["score"] if self.visual_ids is not None else ["score", "visual_id"]
        pt.validate.result_frame(inp, extra_columns=needed, context=self)
        if inp.empty:
            return empty_output(inp, ["visual_id", "formula_id", "rank"])
        visual = self._visual_ids_of(inp)
        known = visual.notna() & (visual != "")
        if not known.all():
            lost = inp["docno"][~known]
            text = f"{len(lost)} of {len(inp)} formulas have no visual id and are left out, such as {lost.iloc[0]}"
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
    """Look up the visual ids of some formulas; one that has none is left out of the answer."""
    if isinstance(visual_ids, FormulaStore):
        return visual_ids.visual_ids(ids)
    return {formula: visual_ids[formula] for formula in ids if visual_ids.get(formula)}


def visual_qrels(qrels: pd.DataFrame, visual_ids: VisualIds) -> pd.DataFrame:
    """Make judgements by visual id of judgements by formula id: the best grade of any judged instance.

    So the organisers define the relevance of a visually distinct formula. Their own files are better where they are
    there: they know all instances.

    Args:
        qrels: ``qid``, ``docno`` (formula id) and ``label``.
        visual_ids: formula id to visual id; a formula that has none is left out.

    Returns:
        ``qid``, ``docno`` (visual id) and ``label``, sorted by the first two.
    """
    visual = qrels["docno"].map(dict(lookup(visual_ids, dict.fromkeys(qrels["docno"]))))
    known = qrels.assign(docno=visual)[visual.notna()]
    return known.groupby(["qid", "docno"])["label"].max().reset_index()
