"""How the transformers encode the texts of a frame with `ColBERT`, and explain a score token by token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pyterrier_mathamr.explain import Part
from pyterrier_mathamr.model.transformers import Columns
from pyterrier_mathamr.systems.language_models import Precision, TokenPosts

from .network import TextRows

if TYPE_CHECKING:
    from .model import ColBERT


class ColBERTPosts(TokenPosts):
    """Reads the posts of a frame, and encodes each distinct text once."""

    label = "ColBERT"
    help_url = "https://ceur-ws.org/Vol-3180/paper-09.pdf"
    batch_size = 256

    def __init__(self, model: ColBERT, device: str | None, precision: Precision, verbose: bool) -> None:
        super().__init__(device, precision, verbose)
        self.model = model

    def queries(self, frame: pd.DataFrame) -> Columns:
        """Encode queries; one without text has no rows, float32 ``[0, d]``."""
        found = self._queries(frame)
        return {"query_embs": [found[qid].rows for qid in frame["qid"]], "query_model": self.model.name}

    def documents(self, frame: pd.DataFrame, *, of_ranking: bool = False) -> Columns:
        """Encode documents."""
        names, found = self._documents(frame, of_ranking)
        return {"doc_embs": [found[name].rows for name in names], "doc_model": self.model.name}

    def parts(self, label: str, frame: pd.DataFrame) -> list[Part]:
        """Make a part of each token of the query, and the one of the document that it matches best."""
        (query,), (document,) = self._queries(frame).values(), self._documents(frame, True)[1].values()
        if not len(query.rows):
            return []
        similarities = query.rows.astype(np.float64) @ document.rows.astype(np.float64).T
        names = self.model.encoder.tokenizer.convert_ids_to_tokens
        best = similarities.argmax(axis=1)
        tokens, matches = names(query.ids.tolist()), names(document.ids[best].tolist())
        return [
            Part(label, "word", token, "word", match, value, 1.0, value)
            for token, match, value in zip(tokens, matches, similarities.max(axis=1).tolist(), strict=True)
        ]

    def _queries(self, frame: pd.DataFrame) -> dict[object, TextRows]:
        texts = {qid: self.model.texts.text(post).strip() for qid, post in self.query_posts(frame).items()}
        asked = {qid: text for qid, text in texts.items() if text}
        encoded = dict(zip(asked, self.model.encode(list(asked.values()), "query", **self.options), strict=True))
        none = TextRows(np.empty((0, self.model.dimensions), np.float32), np.empty(0, np.int64))
        return {qid: encoded.get(qid, none) for qid in texts}

    def _documents(self, frame: pd.DataFrame, of_ranking: bool) -> tuple[list[object], dict[object, TextRows]]:
        names, posts = self.document_posts(frame, of_ranking)
        self.model.warn_lacking(posts.values())
        texts = [self.model.texts.text(post) for post in posts.values()]
        return names, dict(zip(posts, self.model.encode(texts, "document", **self.options), strict=True))
