"""Graph terms: every document has a concept of its own, one of three, and a number."""

from pathlib import Path
from typing import Any

import pandas as pd

from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.systems import GraphTermsIndex
from pyterrier_mathamr.systems.graph_terms import FIELDS

NAME = "graph-terms"
PART = 2
CONCEPTS = ("series", "matrix", "boundary")


def graph(number: int, seed: int) -> MathAMRGraph:
    """The graph of a post with a formula."""
    formula = f"(f / FORMULA_0 :opt (o / O!SUP :op0 (x / V!x) :op1 (n / N!{seed})) :slt (v / V!x))"
    return MathAMRGraph.from_penman(f"(a / own{number} :mod (b / {CONCEPTS[(number + seed) % 3]}) :ARG1 {formula})")


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    """Write documents in parts of two; those of a run that died are recognised."""
    sparse.PART_BYTES, sparse.BATCH = 1, PART
    documents = ({"docno": f"d{i}", "graph": graph(i, seed)} for i in rows)
    GraphTermsIndex(path).indexer(mode, resume=True).index(documents)  # type: ignore[arg-type]


def read(path: Path) -> object:
    """All docnos in order, all term counts, and a ranking."""
    index = GraphTermsIndex(path)
    counts = [index.postings(field) for field in FIELDS]
    found = index.retriever()(pd.DataFrame({"qid": ["1"], "query_graph": [graph(3, 0)]}))
    return [
        [row["docno"] for row in index.get_corpus_iter()],
        [
            [list(of.names), *(getattr(of, name).tolist() for name in ("offsets", "documents", "counts"))]
            for of in counts
        ],
        found[["docno", "score", "rank"]].round(5).to_numpy().tolist(),
    ]


def open(path: Path) -> Any:
    """The artifact."""
    return GraphTermsIndex(path)
