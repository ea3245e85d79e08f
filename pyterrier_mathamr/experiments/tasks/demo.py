"""The demo: the systems of Task 1 on the bundled sample."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.experiments.measuring import compare, random_floor, run_systems
from pyterrier_mathamr.experiments.search import search_systems
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.sparse import BM25Index

DEMO_DATASET = "arqmath:sample/task1"
DEMO_CANDIDATES = 100
"""As in the README and the examples; of 222 answers."""


def run_demo(model: str = "mathamr-plus-mini", *, verbose: bool = False) -> pd.DataFrame:
    """Build, index and search the bundled sample with a bundled model, and compare the systems.

    Everything is built in a temporary folder; nothing is downloaded.

    Args:
        model: name or folder of the model.
        verbose: show progress bars.

    Returns:
        The table of :func:`~pyterrier_mathamr.experiments.measure` over the measures of Task 1, and a random
        order of the judged answers in the last row.
    """
    dataset = pt.get_dataset(DEMO_DATASET)
    encoder = MathAMR.from_pretrained(model)
    graphs = GraphBuilder()  # without a bar: that of the corpus shows the progress
    with tempfile.TemporaryDirectory(prefix="mathamr-demo-") as folder:
        index = MathAMRIndex(Path(folder) / "sample.mathamr")
        (graphs >> encoder.doc_encoder() >> index.indexer()).index(dataset.get_corpus_iter(verbose=verbose))
        bm25 = BM25Index(Path(folder) / "sample.bm25").index(dataset.get_corpus_iter(verbose=verbose))
        topics = (graphs >> encoder.query_encoder())(dataset.get_topics("text"))
        systems = search_systems(bm25.retriever(), pt.Transformer.identity(), index, candidates=DEMO_CANDIDATES)
        rankings, _ = run_systems(systems, topics)
    qrels = dataset.get_qrels()
    return compare(rankings, topics, qrels, random_floor(qrels)).table
