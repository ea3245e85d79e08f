"""The weight of formula vectors in a search engine's formula search, measured on ARQMath's Task 2.

``python benchmarks/engine_formulas.py ARQMATH_FOLDER [--model NAME] [--years 2020,2022] [--workdir FOLDER]`` builds an
engine of the folder's answers (or takes the one of ``benchmarks/engine.py``), asks it for each topic's formula without
the question around it, and prints nDCG′ and MAP′ by the weight of the vectors: 0 is Tangent alone.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import ir_measures
import pandas as pd

from pyterrier_mathamr.arqmath import TASK2_MEASURES, ARQMathCollection
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.experiments.topics import formula_topics, visual_judgements
from pyterrier_mathamr.formula import FormulaStore

WEIGHTS = [0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0]


def table(engine: SearchEngine, collection: ARQMathCollection, visual_ids: FormulaStore, year: str) -> pd.DataFrame:
    """Measure each weight on the judged formula topics of a year, by both kinds of judgements."""
    corpus = engine.formulas().tangent.tangent_index.get_corpus_iter()
    visual = visual_ids.visual_ids(entry["docno"] for entry in corpus)
    topics = formula_topics(collection, year)
    topics = topics[["qid", "latex"]].assign(query=topics["latex"])
    judged = visual_judgements(collection, year, visual_ids, set(visual.values()))
    rows = []
    for weight in WEIGHTS:
        retriever = engine.formulas(num_results=2_000)
        retriever.weight = weight
        run = retriever(topics)
        seen = run["docno"].map(visual).fillna(run["docno"])
        run = pd.DataFrame({"query_id": run["qid"], "doc_id": seen, "score": run["score"]})
        run = run.drop_duplicates(["query_id", "doc_id"])
        for kind, qrels in judged.items():
            qrels = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
            found = ir_measures.calc_aggregate(TASK2_MEASURES[:2], qrels, run)
            rows.append((year, kind, qrels["query_id"].nunique(), weight, *found.values()))
    columns = ["year", "judged by", "topics", "vectors", *map(str, TASK2_MEASURES[:2])]
    return pd.DataFrame(rows, columns=columns).sort_values(["judged by", "vectors"], kind="stable")


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
        store = FormulaStore.build(Path(folder) / "store", collection.slt_tables, collection.opt_tables, reuse=True)
        for year in given.years.split(","):
            print(table(SearchEngine(path), collection, store, year).round(3).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
