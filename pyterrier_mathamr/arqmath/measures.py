"""The measures of ARQMath as declarations, tables of them, the scores of Task 3, and visually distinct formulas.

A prime measure (nDCG', MAP', P') is the plain measure after the removal of unjudged documents: ``judged_only``, which
precedes the cutoff. Bpref uses judged documents only and needs no such form. ``rel=2``: grades 2 and 3 are relevant;
the judgments are not filtered, as a document of grade 0 or 1 is judged.

A topic without a judged document in the run scores 0; trec_eval without ``-c`` leaves it out of the mean. A topic
without judgments is left out. Ties in score are ordered by document id, descending, regardless of the rank, as in
trec_eval. (Judged@10 has a different order.) The columns of ``pt.Experiment`` come in the order of a set:
``markdown_table`` puts measures in the order of these lists.

Task 2 is evaluated over formulas that look different::

    formula  visual id  score         visual id  score  formula
    q7       v1         0.9           v1         0.9    q7        the best instance of each appearance
    q3       v1         0.8    ──▶    v2         0.7    q4        represents all of them
    q4       v2         0.7
    q9       (none)     0.6                                       unknown: dropped, with a warning
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

import ir_measures
import pandas as pd
import pyterrier as pt
from ir_measures import AP, Bpref, Judged, P, define, nDCG

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.frames import empty_output
from pyterrier_mathamr._common.parameters import Rule, one_of
from pyterrier_mathamr._common.transformers import Transformer
from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.posts import is_numbered

from .errors import ARQMathError

_ONE_JUDGMENT = [ir_measures.Qrel("1", "d", 1)]  # to ask whether a measure can be computed
TASK1_MEASURES: list[Any] = [
    nDCG(judged_only=True) @ 1000,
    AP(rel=2, judged_only=True) @ 1000,
    P(rel=2, judged_only=True) @ 10,
    Bpref(rel=2),
]
"""The measures of Task 1: nDCG', MAP', P'@10 and Bpref; binary measures take grades 2 and 3 as relevant."""

SHORT_NAMES: Mapping[str, str] = MappingProxyType(
    dict(zip(map(str, TASK1_MEASURES), ("nDCG'", "MAP'", "P'@10", "Bpref"), strict=True))
)
"""The names in papers by the names of ``ir_measures``."""

_PRIME = re.compile(r"(\w+)'(@\d+)?")
_OTHER_NAMES = {"MAP": "AP", "MRR": "RR"}


def parse_measure(name: str) -> Any:
    """Return a measure by name.

    Args:
        name: as in papers (``nDCG'``, ``MAP'``, ``P'@10``, ``Bpref``; any other name with a prime is the measure of
            ``ir_measures`` over judged documents, where grades 2 and 3 are relevant: ``P'@5``, ``RR'``), or as in
            ``ir_measures`` (``nDCG@10``, ``AP(rel=2)``).

    Raises:
        ARQMathError: there is no such measure.
    """
    known = dict(zip(SHORT_NAMES.values(), TASK1_MEASURES, strict=True))
    if name in known:
        return known[name]
    text = name
    if match := _PRIME.fullmatch(name):
        plain = _OTHER_NAMES.get(match[1], match[1])
        options = "judged_only=True" if plain == "nDCG" else "rel=2,judged_only=True"
        text = f"{plain}({options}){match[2] or ''}"
    try:
        measure = ir_measures.parse_measure(text)
        ir_measures.evaluator([measure], _ONE_JUDGMENT)
    except (NameError, ValueError, KeyError, TypeError, AttributeError) as error:
        examples = ", ".join([*known, "P'@5", "nDCG@10", "AP(rel=2)"])
        raise ARQMathError(f"there is no measure {name!r}; give one such as {examples}") from error
    return measure


JUDGED: Any = Judged @ 10
"""The judged fraction of the first ten: how much the prime measures removed. It is not a measure of quality, whose
differences are tested, so it is not in the lists: ``[*TASK1_MEASURES, JUDGED]``."""

TASK2_MEASURES: list[Any] = [*TASK1_MEASURES]
"""The measures of Task 2, for rankings of visually distinct formulas by ``VisualIdDeduplication``."""

NTCIR12_MEASURES: Mapping[str, Any] = MappingProxyType({"Bpref partial": Bpref(rel=1), "Bpref full": Bpref(rel=3)})
"""The measures of NTCIR-12 formula browsing, for rankings of 1,000 and grades from 0 to 4: bpref with grades of at
least 1, and of at least 3, as relevant; judged formulas with lower grades are not relevant."""


def _first_grades(qrels: pd.DataFrame, run: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """Yield the grade of the first judged answer of each judged topic, or 0."""
    judged = run.merge(qrels, on=["query_id", "doc_id"])
    first = judged.sort_values(["score", "doc_id"], ascending=False).drop_duplicates("query_id")
    grades = dict(zip(first["query_id"], first["relevance"], strict=True))
    for topic in qrels["query_id"].unique():
        yield topic, float(grades.get(topic, 0))


AVERAGE_RELEVANCE: Any = define(_first_grades, name="AR'", support_cutoff=False)
"""AR', the mean grade (0 to 3) of each topic's first judged answer (DCG'@1)."""

TASK3_MEASURES: list[Any] = [AVERAGE_RELEVANCE, P(rel=2, judged_only=True) @ 1]
"""The measures of Task 3: AR' and P'@1. A topic without a judged answer scores 0 here; ``task3_scores`` and the
organizers' program leave it out."""


class Task3Scores(NamedTuple):
    """The scores of a run of Task 3."""

    average_relevance: float  # AR', 0 to 3
    precision_at_1: float  # P'@1, the fraction with grade 2 or 3
    judged: int  # topics with a judged answer, the basis of both means
    topics: int  # topics of the run


def task3_scores(run: pd.DataFrame, qrels: pd.DataFrame) -> Task3Scores:
    """Compute AR' and P'@1 as the organizers' program does: over the topics that have a judged answer.

    Their program reads the codes 5 and 6 as grade 0; read the judgments with ``failures="zero"`` to reproduce it. By
    default such answers are unjudged, and their topics are left out.

    Args:
        run: ``qid``, ``docno`` and ``score``; of several answers to a topic the first judged one is used, with ties in
            trec_eval's order.
        qrels: ``qid``, ``docno`` and ``label``.

    Raises:
        ARQMathError: no answer of the run is judged.
    """
    judged = run[["qid", "docno", "score"]].merge(qrels[["qid", "docno", "label"]], on=["qid", "docno"])
    first = judged.sort_values(["score", "docno"], ascending=False).drop_duplicates("qid")["label"]
    topics = int(run["qid"].nunique())
    if first.empty:
        raise ARQMathError(f"none of {topics} topics has a judged answer. Use the ids of the qrels, such as d_1")
    if len(first) < topics:
        text = f"{topics - len(first)} of {topics} topics have no judged answer; the means are over the others"
        warnings.warn(MathAMRWarning(text), stacklevel=2)
    return Task3Scores(float(first.mean()), float((first >= 2).mean()), len(first), topics)


PAPER_NAMES = {**SHORT_NAMES, "RR@10": "MRR@10", str(TASK3_MEASURES[1]): "P'@1"}
"""The names in papers of the measures of all tasks."""

_MARK = re.compile(r"(.+) (?:std|error|reject)")
_SMALLEST = 0.00005  # a smaller number, such as a p-value, would be rounded to 0.0000 without being 0
_GROUPED = 10_000  # whole numbers from here on have commas; years and seeds have none


def markdown_table(table: pd.DataFrame) -> str:
    """Write a table as Markdown: measures under the names that papers use, a star where a row differs significantly.

    Numbers below 2, as measures are, have four decimals, others fewer; a standard deviation has as many as its mean.
    The measures of ARQMath come in the order of ``TASK1_MEASURES``, whatever order ``pt.Experiment`` gave them.

    Args:
        table: any frame; its index is left out.
    """
    # measures are sorted among themselves; other columns stay where they are
    measures = [name for name in table.columns if name in PAPER_NAMES]
    ordered = iter(sorted(measures, key=list(PAPER_NAMES).index))
    table = _with_stars(table[[next(ordered) if name in PAPER_NAMES else name for name in table.columns]])
    columns = [_short(str(name)) for name in table.columns]
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False, name=None)]
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = [columns, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def _with_stars(table: pd.DataFrame) -> pd.DataFrame:
    """Merge standard deviations or errors and significance tests into the value: ``0.5123 ± 0.0012*``."""
    marked = list(dict.fromkeys(match[1] for name in table.columns if (match := _MARK.fullmatch(str(name)))))
    others = [name for name in table.columns if not any(str(name).startswith(f"{measure} ") for measure in marked)]
    nothing: list[object] = [None] * len(table)
    result: pd.DataFrame = table[others]
    for measure in marked:
        spreads = table.get(f"{measure} error", table.get(f"{measure} std", nothing))
        rejects = table.get(f"{measure} reject", nothing)
        cells = []
        for value, spread, reject in zip(table[measure], spreads, rejects, strict=True):
            known = spread is not None and spread == spread
            shown = f" ± {spread:,.{_decimals(value)}f}" if known else ""
            cells.append(_cell(value) + shown + "*" * (reject in (True, 1)))
        result = result.assign(**{measure: cells})
    return result


def _short(name: str) -> str:
    """Shorten a measure, with or without a suffix: ``Bpref(rel=2) p-value`` to ``Bpref p-value``."""
    for measure, short in PAPER_NAMES.items():
        if name == measure or name.startswith(f"{measure} "):
            return short + name.removeprefix(measure)
    return name


def _cell(value: object) -> str:
    if isinstance(value, float):
        if 0 < value < _SMALLEST:
            return f"< {2 * _SMALLEST:.4f}"
        return "" if value != value else f"{value:,.{_decimals(value)}f}"
    if isinstance(value, int) and value >= _GROUPED:
        return f"{value:,}"
    return _short(str(value)).replace("|", "\\|")


def _decimals(value: float) -> int:
    return 4 if abs(value) < 2 else 2 if abs(value) < 10 else 1


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
            ``rank``. Formulas without a visual id are dropped, as by the organizers, with a warning unless the
            collection itself gives them no id.
        """
        needed = ["score"] if self.visual_ids is not None else ["score", "visual_id"]
        pt.validate.result_frame(inp, extra_columns=needed, context=self)
        if inp.empty:
            return empty_output(inp, ["visual_id", "formula_id", "rank"])
        visual = inp["visual_id"] if self.visual_ids is None else _looked_up(self.visual_ids, inp["docno"])
        known = visual.notna() & (visual != "")
        lost = inp["docno"][~known & ~inp["docno"].map(is_numbered).astype(bool)]
        if len(lost):
            text = f"{len(lost)} of {len(inp)} formulas have no visual id and are dropped, such as {lost.iloc[0]}"
            warnings.warn(MathAMRWarning(text), stacklevel=2)
        formulas = inp.assign(visual_id=visual, formula_id=inp["docno"])[known]
        formulas = formulas.assign(_query=pd.factorize(formulas["qid"])[0])
        formulas = formulas.sort_values(["_query", "score"], ascending=[True, False], kind="stable")
        best = formulas.drop_duplicates(subset=["qid", "visual_id"]).drop(columns="_query").reset_index(drop=True)
        if self.keep == "visual":
            best = best.assign(docno=best["visual_id"])
        result: pd.DataFrame = best.assign(rank=best.groupby("qid", sort=False).cumcount())
        return result

    def __repr__(self) -> str:
        known = self.visual_ids
        shown = [] if known is None else [f"<{len(known)} visual ids>" if isinstance(known, Mapping) else repr(known)]
        return f"VisualIdDeduplication({', '.join([*shown, f'keep={self.keep!r}'])})"


def lookup(visual_ids: VisualIds, ids: Iterable[FormulaId]) -> Mapping[FormulaId, str]:
    """Look up the visual ids of formulas; formulas without one are not in the result."""
    if isinstance(visual_ids, FormulaStore):
        return visual_ids.visual_ids(ids)
    return {formula: visual_ids[formula] for formula in ids if visual_ids.get(formula)}


def _looked_up(visual_ids: VisualIds, docnos: pd.Series[str]) -> pd.Series[str]:
    return docnos.map(dict(lookup(visual_ids, dict.fromkeys(docnos))))


def visual_qrels(qrels: pd.DataFrame, visual_ids: VisualIds) -> pd.DataFrame:
    """Convert judgments of formula ids to judgments of visual ids: the best grade of any judged instance.

    This is the organizers' definition. Prefer their own files by visual id, which cover all instances.

    Args:
        qrels: ``qid``, ``docno`` (formula id) and ``label``.
        visual_ids: formula id to visual id; formulas without one are dropped.

    Returns:
        ``qid``, ``docno`` (visual id) and ``label``, sorted by the first two.
    """
    visual = _looked_up(visual_ids, qrels["docno"])
    known = qrels.assign(docno=visual)[visual.notna()]
    return known.groupby(["qid", "docno"])["label"].max().reset_index()
