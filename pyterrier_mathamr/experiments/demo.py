"""The table of the README: the bundled sample, searched with the bundled model."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.systems import BM25Index

from .compare import measure, run_systems, search_systems

MODEL = "mathamr-plus-mini"
DATASET = "arqmath:sample/task1"
CANDIDATES = 50


def run_demo(*, verbose: bool = False) -> pd.DataFrame:
    """Build, index and search the bundled sample, and compare the systems.

    Everything is made in a temporary folder; nothing is downloaded.

    Args:
        verbose: show progress bars.

    Returns:
        The table of :func:`~pyterrier_mathamr.experiments.measure` over the measures of Task 1.
    """
    dataset = pt.get_dataset(DATASET)
    model = MathAMR.from_pretrained(MODEL)
    graphs = GraphBuilder()  # silent: the documents' own bar counts what comes out of it
    with tempfile.TemporaryDirectory(prefix="mathamr-demo-") as folder:
        index = MathAMRIndex(Path(folder) / "sample.mathamr")
        (graphs >> model.doc_encoder() >> index.indexer()).index(dataset.get_corpus_iter(verbose=verbose))
        bm25 = BM25Index(Path(folder) / "sample.bm25").index(dataset.get_corpus_iter(verbose=verbose))
        topics = (graphs >> model.query_encoder())(dataset.get_topics("text"))
        systems = search_systems(bm25.retriever(), pt.Transformer.identity(), index, candidates=CANDIDATES)
        rankings, _ = run_systems(systems, topics)
    return measure(rankings, topics, dataset.get_qrels())
