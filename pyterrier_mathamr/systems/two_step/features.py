"""The six features of the ranking SVM of the two-step search."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import empty_output, with_objects
from pyterrier_mathamr._common.transformers import Transformer, inputs_of_all
from pyterrier_mathamr.systems.threads import ThreadStore

_COLUMNS = ("comments", "votes", "accepted", "tag_overlap")


class TwoStepFeatures(Transformer):
    """Computes six features of each answer of a ranking, as a column ``features``, for ``pt.ltr``.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1, in the
    order printed there: QQSim, QASim, the number of comments, votes, whether the asker accepted the answer (0 or 1),
    and the share of the topic's tags that the answer's question has. Nothing is normalised. ("Percentage" of the tags
    may be 0 to 1 or 0 to 100; the weights that are printed fit both, and here it is a fraction.) What a collection does
    not say is 0, with one warning.

    Args:
        threads: votes, comments, accepted answers and tags.
        qasim: scores a ranking by QASim, such as ``threads.text_loader() >> qasim.scorer()``.

    Example::

        qasim = QASim.new("all-MiniLM-L6-v2")
        features = TwoStepFeatures(threads, threads.text_loader() >> qasim.scorer())
        learned = pt.ltr.apply_learned_model(RankingSVM(C=.01, names=features.names), form="ltr")
        pipeline = questions >> threads.answers() >> features >> learned
    """

    label = "two-step features"
    names: ClassVar[tuple[str, ...]] = ("QQSim", "QASim", "comments", "votes", "accepted", "tag overlap")
    """Of the features, in the order of the column."""

    def __init__(self, threads: ThreadStore, qasim: pt.Transformer) -> None:
        super().__init__()
        self.threads, self.qasim = threads, qasim

    def subtransformers(self) -> dict[str, pt.Transformer]:
        """Return the scorer; the threads are a store, not a stage."""
        return {"qasim": self.qasim}

    def transform_inputs(self) -> list[list[str]]:
        """Return the columns of a ranking that QASim takes, with ``qq_score``."""
        return inputs_of_all([self.qasim], "qid", "docno", "qq_score")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``features`` to a ranking of answers.

        Args:
            inp: ``qid``, ``docno``, ``qq_score``, what ``qasim`` takes, and ``tags`` of the topic where it has some.

        Returns:
            The same rows with ``features``, float64 ``[6]``.

        Raises:
            UnknownIdError: some answers are not in the store; it names them.
        """
        pt.validate.result_frame(inp, extra_columns=["qq_score"], context=self)
        if inp.empty:
            return empty_output(inp, ["features"])
        scored = self.qasim(inp).drop_duplicates(["qid", "docno"]).set_index(["qid", "docno"])["score"]
        qasim = scored.reindex(pd.MultiIndex.from_frame(inp[["qid", "docno"]])).fillna(0.0).to_numpy(np.float64)
        told = self.threads.metadata()(inp)
        columns = [inp["qq_score"].to_numpy(np.float64), qasim, *(told[name].to_numpy(np.float64) for name in _COLUMNS)]
        return with_objects(inp, features=list(np.stack(columns, axis=1)))
