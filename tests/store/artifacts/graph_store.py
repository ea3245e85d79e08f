"""A store of graphs."""

from pathlib import Path

import pandas as pd

from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.graph import GraphStore, MathAMRGraph

open = GraphStore
PART = 2


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    graphs = (
        {"docno": f"d{i}", "graph": MathAMRGraph(decode_penman(f"(a / thing-{seed} :quant {i})"), (), f"d{i}")}
        for i in rows
    )
    GraphStore(path).indexer(mode, shard_size=PART).index(graphs)  # type: ignore[arg-type]


def read(path: Path) -> object:
    store = GraphStore(path)
    ids = store.ids()
    joined = store.loader()(pd.DataFrame({"docno": ids}))
    return {
        "graphs": [(row["docno"], row["graph"].to_penman()) for row in store.get_corpus_iter()],
        "found": [graph.to_penman() for graph in store.get_many(ids)],
        "joined": [graph.to_penman() for graph in joined["graph"]] if ids else [],
        "absent": "absent" in store,
    }
