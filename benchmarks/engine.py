"""The weights of a search engine's blend, measured on ARQMath.

``python benchmarks/engine.py ARQMATH_FOLDER [--model NAME] [--years 2020,2022] [--workdir FOLDER]`` builds an engine of
the folder's answers, scores the candidates of both systems for each question, and prints, by the share of BM25, nDCG′
and MAP′ of each year's topics, and how the titles of known-item questions find their answers: 1 is BM25 alone, 0 is
MaxSim alone, over the same candidates.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd

from pyterrier_mathamr.arqmath import TASK1_MEASURES, ARQMathCollection, known_item_qrels, known_item_topics
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.ranking import BlendedRetriever, Weights
from pyterrier_mathamr.experiments import KNOWN_ITEM_MEASURES
from pyterrier_mathamr.experiments.topics import judged_topics
from pyterrier_mathamr.posts import plain_text, post_from_html

SHARES = [step / 10 for step in range(11)]


def questions(
    collection: ARQMathCollection, years: list[str], answers: set[str]
) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame, list[Any]]]:
    """Yield the topics of each year, then the titles of the known-item questions: name, queries, qrels, measures."""
    for year in years:
        yield year, *judged_topics(collection, year, answers), TASK1_MEASURES[:2]
    titles = {post.id: plain_text(post_from_html(post.title)) for post in collection.questions()}
    for split in ("validation", "test"):
        qrels = known_item_qrels(collection.pairs(), split)
        topics = known_item_topics(collection.questions(), split)
        topics = topics[topics["qid"].isin(qrels["qid"])].assign(query=lambda frame: frame["qid"].map(titles))
        yield f"titles, {split}", topics, qrels, KNOWN_ITEM_MEASURES


def table(
    retriever: BlendedRetriever, name: str, topics: pd.DataFrame, qrels: pd.DataFrame, measures: list[Any]
) -> pd.DataFrame:
    """Measure each share of BM25 on some questions."""
    parts, rows = [], []
    for weights in (Weights(1.0, 0.0), Weights(0.0, 1.0)):
        retriever.weights = weights
        parts.append(retriever(topics[["qid", "query"]]).set_index(["qid", "docno"])["score"])
    words, graph = parts[0].align(parts[1], join="inner")
    judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    for share in SHARES:
        run = (share * words + (1 - share) * graph).rename("score").reset_index()
        run = run.rename(columns={"qid": "query_id", "docno": "doc_id"})
        found = ir_measures.calc_aggregate(measures, judged, run)
        rows.append({"questions": name, "BM25": share, **{str(measure): value for measure, value in found.items()}})
    return pd.DataFrame(rows)


def main() -> None:
    """Build the engine and print the tables."""
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
        engine = SearchEngine(path)
        retriever = engine.retriever(num_results=1_000_000)  # all candidates, for either weight
        for some in questions(collection, given.years.split(","), set(engine.docnos())):
            print(table(retriever, *some).round(3).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
