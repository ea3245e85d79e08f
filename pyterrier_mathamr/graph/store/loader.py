"""`GraphLoader`: stored graphs joined to a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import empty_output, join_values
from pyterrier_mathamr._common.transformers import Transformer
from pyterrier_mathamr.graph.building.columns import Side

if TYPE_CHECKING:
    from .graph_store import GraphStore


class GraphLoader(Transformer):
    """Adds ``graph`` by docno or ``query_graph`` by qid; see :meth:`GraphStore.loader`.

    Example::

        bm25 >> document_graphs.loader() >> topic_graphs.loader(side="query") >> model.text_scorer()

    Args:
        store: where the graphs are.
        side: by docno (``document``), by qid (``query``), ``both``; ``auto``: by docno where there is one, else by qid.

    Raises:
        ConfigError: ``side`` is none of these.
    """

    label = "GraphStore loader"

    def __init__(self, store: GraphStore, *, side: Side = "auto") -> None:
        super().__init__()
        if side not in get_args(Side):
            raise ConfigError("side", side, "one of " + ", ".join(map(repr, get_args(Side))))
        self.store = store
        self.side: Side = side

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the graphs; each id is read once.

        Args:
            inp: documents, queries or a ranking.

        Returns:
            The frame with ``graph``, ``query_graph`` or both.

        Raises:
            UnknownIdError: the store does not have some of the ids; they are named.
        """
        with pt.validate.any(inp, context=self) as check:
            if self.side in ("auto", "document"):
                check.columns(includes=["docno"])
            if self.side in ("auto", "query"):
                check.columns(includes=["qid"])
            if self.side == "both":
                check.columns(includes=["qid", "docno"])
        names = {"docno": "graph", "qid": "query_graph"}
        if self.side == "auto":
            keys = ["docno" if "docno" in inp.columns else "qid"]
        else:
            keys = {"document": ["docno"], "query": ["qid"], "both": ["docno", "qid"]}[self.side]
        if inp.empty:
            return empty_output(inp, [names[key] for key in keys])
        for key in keys:
            ids = list(dict.fromkeys(inp[key]))
            inp = join_values(inp, names[key], dict(zip(ids, self.store.get_many(ids), strict=True)), key)
        return inp

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Cut the ranking before its graphs are read rather than after."""
        return pt.RankCutoff(k) >> self
