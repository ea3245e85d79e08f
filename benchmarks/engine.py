"""The weights of a search engine's blend, measured on the topics of ARQMath.

``python benchmarks/engine.py ARQMATH_FOLDER [--model NAME] [--years 2020,2022] [--workdir FOLDER]`` builds an engine of
the folder's answers, scores the candidates of both systems for each topic, and prints nDCG′ and MAP′ by the share of
BM25: 1 is BM25 alone, 0 is MaxSim alone, over the same candidates.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import ir_measures
import pandas as pd

from pyterrier_mathamr.arqmath import TASK1_MEASURES, ARQMathCollection
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.ranking import Weights
from pyterrier_mathamr.experiments.topics import judged_topics

SHARES = [step / 10 for step in range(11)]


def table(engine: SearchEngine, collection: ARQMathCollection, years: list[str]) -> pd.DataFrame:
    """Measure each share of BM25 on the judged topics of each year."""
    answers, rows = set(engine.docnos()), []
    retriever = engine.retriever(num_results=1_000_000)  # all candidates, for either weight
    for year in years:
        topics, qrels = judged_topics(collection, year, answers)
        parts = []
        for weights in (Weights(1.0, 0.0), Weights(0.0, 1.0)):
            retriever.weights = weights
            parts.append(retriever(topics[["qid", "query"]]).set_index(["qid", "docno"])["score"])
        words, graph = parts[0].align(parts[1], join="inner")
        for share in SHARES:
            run = (share * words + (1 - share) * graph).rename("score").reset_index()
            run = run.rename(columns={"qid": "query_id", "docno": "doc_id"})
            judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
            found = ir_measures.calc_aggregate(TASK1_MEASURES[:2], judged, run)
            rows.append({"year": year, "BM25": share, **{str(measure): value for measure, value in found.items()}})
    return pd.DataFrame(rows)


def main() -> None:
    """Build the engine and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="mathamr-plus-mini")
    parser.add_argument("--years", default="2020,2022")
    parser.add_argument("--workdir", type=Path)
    given = parser.parse_args()
    collection = ARQMathCollection(given.folder)
    with tempfile.TemporaryDirectory() as folder:
        path = (given.workdir or Path(folder)) / f"{given.model}.engine"
        if not SearchEngine(path).built():
            posts = ({"docno": post.id, "html": post.body} for post in collection.answers())
            SearchEngine.build(posts, path, model=given.model, bare_formulas=False)
        frame = table(SearchEngine(path), collection, given.years.split(","))
    print(frame.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
