"""QASim as a transformer, and the product of both similarities (eq. 5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import distinct_queries, empty_output, first_values, ordered_by_score
from pyterrier_mathamr._common.parameters import COUNT, Rule
from pyterrier_mathamr._common.transformers import Transformer
from pyterrier_mathamr.explain import AskedError, Explanation, Part, QueryRow, read_asked

if TYPE_CHECKING:
    from .model import QASim

_QUESTION = {"raw": (("query",), ("title", "body")), "mathamr": (("query_graph",),)}
_ANSWER = {"raw": ("html", "text"), "mathamr": ("graph",)}


class QASimScorer(Transformer):
    """Scores each answer of a ranking by :class:`QASim`; ``qasim.scorer()`` makes one.

    The rows come back by query (as they come), descending score, ascending docno, with all their columns. Each pair of
    a query and a document is scored once.

    Args:
        qasim: the model.
        batch_size: rows that a pipeline passes on at once.
        verbose: show progress.
    """

    label = "QASim"
    checks: ClassVar[Mapping[str, Rule]] = {"batch_size": COUNT}

    def __init__(self, qasim: QASim, *, batch_size: int = 256, verbose: bool = False) -> None:
        super().__init__()
        self.qasim, self.batch_size, self.verbose = qasim, batch_size, verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and order a ranking.

        Args:
            inp: ``qid``, ``docno``; ``title`` and ``body``, or ``query``, of the topic; ``html`` or ``text`` of the
                answer. Of a model of linearised graphs ``query_graph`` and ``graph``.

        Returns:
            The same rows, ordered, with ``score``, 0 to 1, and ``rank``.
        """
        form = self.qasim.form
        with pt.validate.any(inp, context=self) as validation:
            for question in _QUESTION[form]:
                for answer in _ANSWER[form]:
                    validation.result_frame(extra_columns=[*question, answer])
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        questions = {row["qid"]: self.qasim.question(row) for row in distinct_queries(inp).to_dict("records")}
        columns = [name for name in _ANSWER[form] if name in inp.columns]
        found = {name: first_values(inp, name, "docno") for name in columns}
        answers = {
            docno: self.qasim.answer({name: values.get(docno) for name, values in found.items()})
            for docno in inp["docno"].unique()
        }
        keys = list(zip(inp["qid"], inp["docno"], strict=True))
        distinct = list(dict.fromkeys(keys))
        scores = self.qasim.scores([(questions[qid], answers[docno]) for qid, docno in distinct], verbose=self.verbose)
        by_key = dict(zip(distinct, scores.tolist(), strict=True))
        return ordered_by_score(inp, np.array([by_key[key] for key in keys]))

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Return the score as one part: the model reads both texts at once.

        Args:
            query: a row of a ranking with the texts.
            docno: by default that of the row.

        Raises:
            AskedError: a text is missing.
        """
        asked = read_asked(query, docno, self.label)
        row = asked.row
        form = self.qasim.form
        if not any(row.get(name) is not None for name in _ANSWER[form]):
            raise AskedError(
                self.label, f"the row has no {' or '.join(_ANSWER[form])}", "Load the answer's text first."
            )
        score = float(self.qasim.scores([(self.qasim.question(asked.query_row()), self.qasim.answer(row))])[0])
        part = Part(self.label, "score", contribution=score)
        return asked.explained([part])


class TimesQQ(Transformer):
    """Multiplies each score by that of the answer's question: QQSim(Q_T, Q_A) · QASim(Q_T, A) (eq. 5.3).

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1.

    Example::

        scored = threads.text_loader() >> QASim.new("all-MiniLM-L6-v2").scorer()
        pipeline = questions >> threads.answers() >> scored >> TimesQQ()
    """

    explains_incoming: ClassVar[bool] = True
    """:meth:`explain` takes the explanation of the stages before it."""
    label = "times QQSim"

    def __init__(self) -> None:
        super().__init__()

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Multiply and order.

        Args:
            inp: ``qid``, ``docno``, ``score`` and ``qq_score``, which ``threads.answers()`` adds.

        Returns:
            The same rows, ordered, with ``score`` and ``rank``.
        """
        pt.validate.result_frame(inp, extra_columns=["score", "qq_score"], context=self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        return ordered_by_score(inp, (inp["score"] * inp["qq_score"]).to_numpy(np.float64))

    def explain(self, query: QueryRow, docno: str | None = None, *, incoming: Explanation | None = None) -> Explanation:
        """Multiply what contributes to the incoming score.

        Args:
            query: a row of a ranking with ``score`` and ``qq_score``.
            docno: by default that of the row.
            incoming: the explanation of the incoming score, which is one part without it.

        Raises:
            AskedError: the row lacks a score.
        """
        asked = read_asked(query, docno, self.label, ["score", "qq_score"])
        whole = Part(self.label, "score", contribution=float(asked.row["score"]))
        first = incoming or asked.explained([whole])
        return first.scaled(float(asked.row["qq_score"]))
