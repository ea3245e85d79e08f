"""Pseudo-relevance feedback: BM25 with RM3, and MaxSim with feedback over rows, compared with each without it.

    python benchmarks/feedback.py FOLDER --workdir WORK [--model NAME]

FOLDER is in the layout of ARQMath, whose topics of 2020 and 2022 are measured, or in BEIR's layout. Of more than 300
queries in BEIR's layout, the 300 whose ids have the lowest SHA-256 are used. Indexes and encoded queries stay in the
work folder: delete it to make them again. CPU milliseconds are of both searches and the feedback, without encoding.
Nothing is chosen here. Differences are tested by two-sided paired t-tests against the first row of each block, with
Bonferroni correction for its rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyterrier as pt
from ir_measures import RR, nDCG

import pyterrier_mathamr as mathamr
from mathamr_systems.experiments.beir import others
from mathamr_systems.experiments.measuring import means_table, measure_by_topic, paired_tests
from pyterrier_mathamr._common.ids import pseudo_random
from pyterrier_mathamr.arqmath import BeirDataset, markdown_table

QUERIES = 300
YEARS = 2020, 2022
RM3 = {"RM3": {}, "RM3, λ = .9": {"fb_lambda": 0.9}}
PRF = {"feedback, β = .05": {}, "feedback, β = 1, as published": {"fb_beta": 1.0}, "10 documents": {"fb_docs": 10}}


class Asked(NamedTuple):
    """A set of topics with its judgments and measures."""

    name: str
    topics: pd.DataFrame
    qrels: pd.DataFrame
    measures: list[Any]


def read(folder: Path) -> tuple[Callable[[], Iterable[dict[str, Any]]], list[Asked]]:
    """Read the documents and the sets of topics of a collection."""
    if (folder / "corpus.jsonl").is_file():
        judge = BeirDataset(folder)
        topics = judge.get_topics()
        first = sorted(topics["qid"], key=pseudo_random)[:QUERIES]
        asked = Asked(folder.name, topics[topics["qid"].isin(first)], judge.get_qrels(), [nDCG @ 10, RR @ 10])
        return lambda: judge.get_corpus_iter(verbose=False), [asked]
    mathamr.register_arqmath(folder)
    years = {year: pt.get_dataset(f"irds:arqmath/{year}/task1") for year in YEARS}
    sets = []
    for year, dataset in years.items():
        topics, qrels = dataset.get_topics("text"), dataset.get_qrels()
        judged = topics[topics["qid"].isin(qrels["qid"])]
        sets.append(Asked(f"ARQMath {year}", judged, qrels, mathamr.TASK1_MEASURES[:3]))
    return lambda: years[YEARS[0]].get_corpus_iter(verbose=False), sets


def encoded(asked: Asked, encode: pt.Transformer, file: Path) -> pd.DataFrame:
    """Encode the topics, or read what an earlier call encoded."""
    if not file.exists():
        encode(asked.topics).drop(columns="query_graph", errors="ignore").to_pickle(file)
    topics: pd.DataFrame = pd.read_pickle(file)
    return topics


def blocks(
    documents: Callable[[], Iterable[dict[str, Any]]], model: mathamr.MathAMR, folder: Path
) -> Iterator[dict[str, pt.Transformer]]:
    """Build the indexes, and make the pipelines of each block of rows: without feedback, and with it."""
    for name, preset in (("BM25", "standard"), ("BM25, tuned for mathematics", "math")):
        words = mathamr.BM25Index(folder / f"{preset}.bm25", preset=preset)  # type: ignore[arg-type]
        if not words.built():
            words.index(documents())
        bm25 = words.retriever()
        yield {name: bm25, **{f"{name}, {row}": bm25 >> words.rm3(**of) >> bm25 for row, of in RM3.items()}}
    vectors = mathamr.MathAMRIndex(folder / "vectors.mathamr")
    if not vectors.built():
        graphs = mathamr.GraphBuilder(reads=model.reads)
        (graphs >> model.doc_encoder() >> vectors.indexer()).index(documents())
    maxsim = vectors.colbert()
    yield {"MaxSim": maxsim, **{f"MaxSim, {row}": maxsim >> vectors.prf(**of) >> maxsim for row, of in PRF.items()}}


def main() -> None:
    """Print a table for each set of topics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--model", default="mathamr-plus-text", help="a bundled name or a folder")
    given = parser.parse_args()
    given.workdir.mkdir(parents=True, exist_ok=True)
    model = mathamr.MathAMR.from_pretrained(given.model)
    documents, sets = read(given.folder)
    encode = mathamr.GraphBuilder(reads=model.reads) >> model.query_encoder()
    for asked in sets:
        topics, tables = encoded(asked, encode, given.workdir / f"{asked.name}.pkl"), []
        measures = list(map(str, asked.measures))
        for ways in blocks(documents, model, given.workdir):
            rankings, spent = {}, {}
            for name, way in ways.items():
                start = time.process_time()
                found = way.compile()(topics)
                spent[name] = 1000 * (time.process_time() - start) / len(topics)
                rankings[name] = others(found, asked.qrels)
            values = measure_by_topic(rankings, topics, asked.qrels, asked.measures).fillna({"value": 0.0})
            first, *rest = rankings
            tests = paired_tests(values, [(name, first) for name in rest], measures[0]).set_index("system")
            means = means_table(values, list(rankings), measures)[["name", *measures]]
            p = ["", *(f"{tests['p corrected'][name]:.3f}" for name in rest)]
            tables.append(means.assign(p=p, ms=[f"{spent[name]:.0f}" for name in rankings]))
        print(f"\n## {asked.name}: {len(topics)} topics\n")
        print(markdown_table(pd.concat(tables, ignore_index=True)), flush=True)


if __name__ == "__main__":
    main()
