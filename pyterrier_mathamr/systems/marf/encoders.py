"""How the transformers encode the posts of a frame with `MaRF`, and explain a score view by view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyterrier_mathamr.explain import Part
from pyterrier_mathamr.model import exact_maxsim
from pyterrier_mathamr.model.transformers import Columns
from pyterrier_mathamr.posts import MathPost
from pyterrier_mathamr.systems.language_models import Precision, TokenPosts

from .network import View

if TYPE_CHECKING:
    from .model import MaRF


class MaRFPosts(TokenPosts):
    """Reads the posts of a frame, and encodes each distinct one to its views."""

    label = "MaRF"
    help_url = "https://github.com/MLPgroup/MaRF"
    doc_columns = ("doc_views", "doc_formulas", "doc_model")

    def __init__(self, model: MaRF, device: str | None, precision: Precision, verbose: bool) -> None:
        super().__init__(device, precision, verbose)
        self.model, self._weighted = model, model.config.query_formulas == "all"
        self.query_columns = ("query_embs", "query_model", *(("query_weights",) if self._weighted else ()))

    def queries(self, frame: pd.DataFrame) -> Columns:
        """Encode queries; one without text has no rows."""
        posts = {qid: post for qid, post in self.query_posts(frame).items() if post.text.strip()}
        views = dict(zip(posts, self._encode(list(posts.values()), list(map(str, posts)), query=True), strict=True))
        none = np.empty((0, self.model.dimensions), np.float32)
        rows = {qid: np.concatenate(own) for qid, own in views.items()}
        found: Columns = {"query_embs": [rows.get(qid, none) for qid in frame["qid"]], "query_model": self.model.name}
        if self._weighted:
            weights = {qid: np.full(len(rows[qid]), 1 / len(own)) for qid, own in views.items()}
            found["query_weights"] = [weights.get(qid, np.empty(0)) for qid in frame["qid"]]
        return found

    def documents(self, frame: pd.DataFrame, *, of_ranking: bool = False) -> Columns:
        """Encode documents, with the math tokens of the formula of each view."""
        names, posts = self.document_posts(frame, of_ranking)
        seeds = [str(name) if "docno" in frame.columns else "" for name in posts]
        views = dict(zip(posts, self._encode(list(posts.values()), seeds, query=False), strict=True))
        read = zip(posts, self.model.readings(list(posts.values())), seeds, strict=True)
        formulas = {
            name: [" ".join(one) for one in self.model.chosen(of, seed, False)] or [""] for name, of, seed in read
        }
        columns = {"doc_views": [views[name] for name in names], "doc_formulas": [formulas[name] for name in names]}
        return {**columns, "doc_model": self.model.name}

    def score(self, query: Mapping[str, Any], documents: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Score documents by the mean over their views, rounded to float32 precision: float64 ``[m]``."""
        means = [np.float32(view_scores(query, views).mean()) for views in documents["doc_views"]]
        return np.array(means, np.float64)

    def parts(self, label: str, frame: pd.DataFrame) -> list[Part]:
        """Make a part of each view."""
        query = {name: values[0] for name, values in self.queries(frame).items() if not isinstance(values, str | float)}
        document: Any = self.documents(frame, of_ranking=True)
        (views,), (formulas,) = document["doc_views"], document["doc_formulas"]
        return view_parts(label, view_scores(query, views), formulas)

    def _encode(self, posts: Sequence[MathPost], names: Sequence[str], *, query: bool) -> list[list[View]]:
        return self.model.encode(self.model.readings(posts), names, query=query, **self.options)


def view_scores(query: Mapping[str, Any], views: Sequence[View]) -> npt.NDArray[np.float64]:
    """Score each view of a document against the columns of a query: float64 ``[views]``, of float32 precision."""
    offsets = np.cumsum([0, *map(len, views)], dtype=np.int64)
    return exact_maxsim(query["query_embs"], np.concatenate(views), offsets, query.get("query_weights"))


def view_parts(system: str, scores: Sequence[float] | npt.NDArray[np.float64], formulas: Sequence[str]) -> list[Part]:
    """Make a part of each view, its formula and its share of the score."""
    share = 1 / len(formulas)
    return [
        Part(system, "view", "", "formula" if formula else "document", formula, contribution=float(score) * share)
        for score, formula in zip(scores, formulas, strict=True)
    ]
