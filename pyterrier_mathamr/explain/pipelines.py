"""The explanation of a pipeline, which is that of its last stage that scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import is_missing, with_objects

from .asking import Asked, QueryRow, read_asked
from .asking_errors import AskedError
from .explanation import Explanation, Part

_ERROR = 1e-4


class Ranked(NamedTuple):
    """What a system says of a query and of one document.

    Attributes:
        ranking: all that it found.
        explanation: of the document's score; ``None`` where it has none.
    """

    ranking: pd.DataFrame
    explanation: Explanation | None


def explain_score(system: pt.Transformer, query: str | QueryRow, docno: str | None = None) -> Explanation:
    """Say what contributes to the score that a system, such as a pipeline, gives a document.

    The stages run as in a search. The last one that has a method ``explain`` explains; if the score is another in the
    end, or no stage has one, the explanation is a single part.

    Args:
        system: queries to a ranking.
        query: as typed, or a row of a query, or a frame of one.
        docno: the document; by default that of the row.

    Raises:
        AskedError: the document has no score, or the query is not one.

    Example::

        pipeline = bm25 % 100 >> encode >> index.scorer()
        print(explain.explain_score(pipeline, "Why is $x^2 + 1 > 0$?", pipeline.search("a square")["docno"].iloc[0]))
    """
    name = name_of(system)
    asked = read_asked({"qid": "1", "query": query} if isinstance(query, str) else query, docno, name)
    found = explained(system, asked.query_frame(), asked.docno, asked.texts(), beyond=True).explanation
    if found is None:
        raise AskedError(name, f"it does not find {asked.docno!r}", "Explain a document of its ranking.")
    return found


def explained(
    system: pt.Transformer,
    frame: pd.DataFrame,
    docno: str,
    texts: Mapping[str, Any] | None = None,
    *,
    beyond: bool = False,
) -> Ranked:
    """Run a system and explain the score of one document.

    Args:
        system: a transformer or a pipeline.
        frame: its input, of one query.
        docno: the document.
        texts: columns that are the document's text; a stage may load them, too.
        beyond: also explain the score that a document outside the ranking would have, where the last stage can.
    """
    stages = list(system) if isinstance(system, pt.Compose) else [system]
    frames = [frame]
    for stage in stages:
        frames.append(stage(frames[-1]))
    own = _row_of(frames[-1], docno)
    texts = {**(texts or {}), **Asked(own, docno).texts()}
    return Ranked(frames[-1], _of_stages(stages, frames, docno, texts) if own or beyond else None)


def name_of(system: pt.Transformer) -> str:
    """Name a system by its last stage."""
    last = list(system)[-1] if isinstance(system, pt.Compose) else system
    return str(getattr(last, "label", "") or type(last).__name__)


def _of_stages(
    stages: Sequence[Any], frames: Sequence[pd.DataFrame], docno: str, texts: Mapping[str, Any]
) -> Explanation | None:
    """Explain the score that some stages give a document; ``None`` where they give none and no stage can explain."""
    found, own = None, _row_of(frames[-1], docno)
    places = [place for place, stage in enumerate(stages) if hasattr(_explainer(stage), "explain")]
    if places:
        place = places[-1]
        stage, frame = _explainer(stages[place]), _with_texts(frames[place], docno, texts)
        options = {}
        if getattr(stage, "explains_incoming", False):
            options["incoming"] = _of_stages(stages[:place], frames[: place + 1], docno, texts)
        found = stage.explain(frame, docno, **options)
    if "score" not in own or (found and math.isclose(found.score, own["score"], rel_tol=_ERROR, abs_tol=_ERROR)):
        return found
    name = name_of(stages[-1]) if stages else "first stage"
    return Explanation.of(docno, [Part(name, "score", contribution=float(own["score"]))])


def _explainer(stage: Any) -> Any:
    """Return what explains a stage: itself, or the learner of ``pt.ltr.apply_learned_model``."""
    return stage if hasattr(stage, "explain") else getattr(stage, "learner", stage)


def _row_of(ranking: pd.DataFrame, docno: str) -> dict[str, Any]:
    """Return what a ranking says of a document; nothing where it is not there."""
    rows = ranking[ranking["docno"].astype(str) == docno] if "docno" in ranking.columns else ranking[:0]
    first = rows.iloc[0].to_dict() if len(rows) else {}
    return {str(name): value for name, value in first.items() if not is_missing(value)}


def _with_texts(frame: pd.DataFrame, docno: str, texts: Mapping[str, Any]) -> pd.DataFrame:
    """Add the texts of a document to the input of a stage: its rows of a ranking, or queries."""
    if "docno" not in frame.columns:
        frame = with_objects(frame, docno=[docno] * len(frame))
    here = frame["docno"].astype(str) == docno
    return with_objects(frame, **{name: [of if own else None for own in here] for name, of in texts.items()})
