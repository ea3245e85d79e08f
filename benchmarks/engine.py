"""The weights of a search engine's blend, measured on ARQMath.

``python benchmarks/engine.py ARQMATH_FOLDER [--model NAME] [--years 2020,2022] [--workdir FOLDER]`` builds an engine of
the folder's answers, scores the candidates of both systems for each question, and prints, by the share of BM25, nDCG′
and MAP′ of each year's topics, and how the titles of known-item questions find their answers: 1 is only BM25, 0 is
only MaxSim, over the same candidates. The engine's own score, with structures of formulas, is measured as well. Then
weights fitted on one year (listwise, only judged documents) are measured on the other, for the two parts and with a
third: Tangent's similarity of the post's best formula to the largest one of the question.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd

from mathamr_systems.experiments.measuring import KNOWN_ITEM_MEASURES
from mathamr_systems.experiments.workdir import judged_topics
from pyterrier_mathamr._common.listwise import fit_listwise
from pyterrier_mathamr.arqmath import TASK1_MEASURES, ARQMathCollection, known_item_qrels, known_item_topics
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.ranking import BlendedRetriever, Weights
from pyterrier_mathamr.formula import trees_from_latex
from pyterrier_mathamr.fusion.learned import grouped
from pyterrier_mathamr.posts import plain_text, post_from_html

PARTS = ["words", "graph", "formula"]
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


def scored(engine: SearchEngine, retriever: BlendedRetriever, topics: pd.DataFrame) -> pd.DataFrame:
    """Score the candidates of both systems: qid, docno and PARTS, each of 100 points."""
    parts = []
    for weights in (Weights(1.0, 0.0), Weights(0.0, 1.0)):
        retriever.weights = weights
        parts.append(retriever(topics[["qid", "query"]]).set_index(["qid", "docno"])["score"])
    both = pd.concat(parts, axis=1, keys=PARTS[:2], join="inner").reset_index()
    largest = [(row.qid, largest_formula(engine, row.query)) for row in topics.itertuples(index=False)]
    asked = pd.DataFrame([pair for pair in largest if pair[1]], columns=["qid", "latex"])
    found = engine.formulas(num_results=10_000)(asked).drop_duplicates(["qid", "post_id"])  # the best comes first
    formulas = found[["qid", "post_id", "score"]].rename(columns={"post_id": "docno", "score": PARTS[2]})
    merged = both.merge(formulas, on=["qid", "docno"], how="left").fillna({PARTS[2]: 0.0})
    return merged.assign(**{PARTS[2]: 100 * merged[PARTS[2]]})


def largest_formula(engine: SearchEngine, query: str) -> str:
    """Return the LaTeX of the formula whose layout tree has most nodes, the first of several; empty without one."""
    sizes = {
        formula.latex: len(tree.nodes)
        for formula in engine.read_query(query).formulas
        if (tree := trees_from_latex(formula.latex).slt) is not None
    }
    return max(sizes, key=sizes.__getitem__, default="")


def measured(found: pd.DataFrame, weights: dict[str, float], qrels: pd.DataFrame, measures: list[Any]) -> pd.Series:
    """Measure a weighted sum of the parts."""
    run = found[["qid", "docno"]].assign(score=sum(weight * found[part] for part, weight in weights.items()))
    run = run.rename(columns={"qid": "query_id", "docno": "doc_id"})
    judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    values = ir_measures.calc_aggregate(measures, judged, run)
    return pd.Series({str(measure): values[measure] for measure in measures})


def learned(found: pd.DataFrame, qrels: pd.DataFrame, parts: list[str]) -> dict[str, float]:
    """Learn weights on judged documents, grade by grade, which sum to 1."""
    judged = found.merge(qrels[["qid", "docno"]], on=["qid", "docno"])
    least = [qrels[qrels["label"] >= grade] for grade in sorted(set(qrels["label"])) if grade > 0]
    scores = judged[parts].to_numpy() / 10
    weights = fit_listwise([group for right in least for group in grouped(judged, scores, right)], ridge=0.1)
    return dict(zip(parts, (weights / np.sum(weights)).tolist(), strict=True))


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
        years = given.years.split(",")
        kept = {}
        for name, topics, qrels, measures in questions(collection, years, set(engine.docnos())):
            found = scored(engine, retriever, topics)
            kept[name] = found, qrels, measures
            rows = [measured(found, {"words": share, "graph": 1 - share}, qrels, measures) for share in SHARES]
            table = pd.DataFrame(rows).assign(questions=name, BM25=SHARES)
            print(table.round(3).to_string(index=False), flush=True)
            searched = engine.retriever(num_results=1_000_000)(topics[["qid", "query"]])
            print(
                "the engine's score", measured(searched, {"score": 1.0}, qrels, measures).round(4).to_dict(), flush=True
            )
        for year, other in (years, years[::-1]) if len(years) == 2 else ():
            for parts in (PARTS[:2], PARTS):
                weights = learned(*kept[year][:2], parts)
                shown = ", ".join(f"{part} {weight:.2f}" for part, weight in weights.items())
                for name in (other, "titles, test"):
                    found, qrels, measures = kept[name]
                    values = measured(found, weights, qrels, measures).round(4).to_dict()
                    print(f"learned on {year}, {shown}: {name} {values}", flush=True)


if __name__ == "__main__":
    main()
