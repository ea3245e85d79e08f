"""QQSim as transformers: questions in, one vector each out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import (
    distinct_queries,
    empty_output,
    join_values,
    with_objects,
    without_query_rows,
)
from pyterrier_mathamr._common.parameters import COUNT, Rule
from pyterrier_mathamr._common.transformers import ColumnAdder, Transformer

if TYPE_CHECKING:
    from .model import QQSim

_TEXTS = {"raw": ("title", "body", "html", "query"), "mathamr": ("query_graph", "graph")}


class _QuestionEncoder(ColumnAdder, Transformer):
    """What both share: the model and the columns that it reads."""

    checks: ClassVar[Mapping[str, Rule]] = {"batch_size": COUNT}

    def __init__(self, qqsim: QQSim, *, batch_size: int = 256, verbose: bool = False) -> None:
        super().__init__()
        self.qqsim, self.batch_size, self.verbose = qqsim, batch_size, verbose

    def _check(self, frame: pd.DataFrame, key: str) -> None:
        with pt.validate.any(frame, context=self) as validation:
            for name in _TEXTS[self.qqsim.form]:
                validation.columns(includes=[key, name])

    def _texts(self, frame: pd.DataFrame) -> list[str]:
        return [self.qqsim.text(row) for row in frame.to_dict("records")]


class QuestionDocEncoder(_QuestionEncoder):
    """Adds ``doc_embs``, float32 ``[1, d]``, and ``doc_model`` to questions; ``qqsim.doc_encoder()`` makes one."""

    label = "QQSim questions"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``doc_embs`` and ``doc_model`` to rows with ``docno``, ``title`` and ``body``, or ``graph``."""
        self._check(inp, "docno")
        if inp.empty:
            return empty_output(inp, ["doc_embs", "doc_model"])
        rows = self.qqsim.encode(self._texts(inp), verbose=self.verbose)
        encoded: pd.DataFrame = with_objects(inp, doc_embs=list(rows[:, None])).assign(doc_model=self.qqsim.identity())
        return encoded


class QuestionQueryEncoder(_QuestionEncoder):
    """Adds ``query_embs``, float32 ``[1, d]``, and ``query_model`` to topics; ``qqsim.query_encoder()`` makes one."""

    label = "QQSim topics"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``query_embs`` and ``query_model`` to queries or a ranking with ``title`` and ``body``, or ``query``."""
        self._check(inp, "qid")
        inp = without_query_rows(inp)
        if inp.empty:
            return empty_output(inp, ["query_embs", "query_model"])
        queries = distinct_queries(inp)
        rows = self.qqsim.encode(self._texts(queries), verbose=self.verbose)
        found = {qid: row[None][: int(np.any(row))] for qid, row in zip(queries["qid"], rows, strict=True)}
        encoded: pd.DataFrame = join_values(inp, "query_embs", found).assign(query_model=self.qqsim.identity())
        return encoded
