"""BM25 of Terrier, PISA and Anserini beside ``BM25Index``, and MathAMR+ over each, on English and on mathematics.

    export JAVA_HOME=FOLDER_OF_JDK_21_OR_LATER OPENAI_API_KEY=unused      # pyserini cannot be imported without a key
    build/baselines/bin/python -m benchmarks.baselines FOLDER [--workdir baselines] [--model NAME]

``make test-baselines`` makes the environment. FOLDER is a clone of PyTerrier, whose Vaswani collection is measured
(11,429 abstracts, 93 queries); a folder in the layout of ARQMath, of which the topics of 2022 are; or a folder in
BEIR's layout. Nothing is fetched. Indexes stay in the work folder: delete it to build them again. All systems read the
same text with their default parameters, and nothing is chosen here. A query does not find the document with its own
id, unless that is judged for it.

Differences are from the strongest BM25 by the first measure: two-sided paired t-tests over topics, with Bonferroni
correction for the rows of the table.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyterrier as pt
from ir_measures import AP, RR, nDCG
from pyterrier_anserini import AnseriniIndex
from pyterrier_pisa import PisaIndex

import pyterrier_mathamr as mathamr
from mathamr_systems.experiments.beir import others
from mathamr_systems.experiments.measuring import means_table, measure_by_topic, paired_tests
from pyterrier_mathamr.arqmath import BeirDataset, markdown_table
from studies.protocol.judges import read_judge

TERRIER, PISA, ANSERINI = "Terrier BM25", "PISA BM25", "Anserini BM25"
STANDARD, TUNED, MATHAMR = "BM25", "BM25, tuned for mathematics", "MathAMR+"
LEXICAL = (TERRIER, PISA, ANSERINI, STANDARD, TUNED)
DEPTH = 100
VASWANI = Path("tests", "fixtures", "vaswani_npl")


class Collection(NamedTuple):
    """Documents with the ``text`` that all systems read, topics with their ``query``, judgments and measures."""

    name: str
    documents: Callable[[], Iterable[dict[str, str]]]
    topics: pd.DataFrame
    qrels: pd.DataFrame
    measures: list[Any]


def read(folder: Path) -> Collection:
    """Read a collection of one of the three layouts."""
    if (folder / VASWANI).is_dir():
        return vaswani(folder / VASWANI)
    if (folder / "corpus.jsonl").is_file():
        judge = read_judge(BeirDataset(folder))
        return Collection(judge.name, lambda: texts(judge.documents()), judge.topics, judge.qrels, [nDCG @ 10, RR @ 10])
    mathamr.register_arqmath(folder)
    dataset = pt.get_dataset("irds:arqmath/2022/task1")
    return Collection(
        "arqmath-2022",
        lambda: texts(dataset.get_corpus_iter(verbose=False)),
        dataset.get_topics("text"),
        dataset.get_qrels(),
        mathamr.TASK1_MEASURES[:2],
    )


def texts(documents: Iterable[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Join the title to the text, where there is one."""
    for document in documents:
        yield {"docno": document["docno"], "text": f"{document.get('title', '')}\n{document['text']}".strip()}


def vaswani(folder: Path) -> Collection:
    """Read the files of PyTerrier's copy."""
    corpus = (folder / "corpus" / "doc-text.trec").read_text("utf-8")
    documents = [{"docno": n, "text": text} for n, text in re.findall(r"<DOCNO>(\d+)</DOCNO>(.*?)</DOC>", corpus, re.S)]
    queries = (folder / "query-text.trec").read_text("utf-8")
    topics = re.findall(r"<num>(\d+)</num><title>\s*(.*?)\s*</title>", queries, re.S)
    columns = ["qid", "iteration", "docno", "label"]
    qrels = pd.read_csv(folder / "qrels", sep=r"\s+", names=columns, dtype=str).drop(columns="iteration")
    return Collection(
        "vaswani",
        lambda: documents,
        pd.DataFrame(topics, columns=["qid", "query"]),
        qrels.astype({"label": int}),
        [AP, nDCG @ 10],
    )


def built(index: Any, make: Callable[[], object]) -> Any:
    """Build an index that a former call has not left."""
    if not index.built():
        make()
    return index


def systems(collection: Collection, model: mathamr.MathAMR, folder: Path) -> dict[str, pt.Transformer]:
    """Build the indexes, and make a pipeline from encoded topics for each row of the table."""
    documents = collection.documents
    terrier = pt.terrier.TerrierIndex(folder / "terrier")
    built(terrier, lambda: terrier.index(documents()))
    pisa = PisaIndex(str(folder / "pisa"), text_field="text")
    built(pisa, lambda: pisa.index(documents()))
    anserini = AnseriniIndex(str(folder / "anserini"))
    built(anserini, lambda: anserini.indexer().index(documents()))
    bm25, tuned = mathamr.BM25Index(folder / "bm25"), mathamr.BM25Index(folder / "bm25-math", preset="math")
    for index in (bm25, tuned):
        built(index, lambda index=index: index.index(documents()))  # type: ignore[misc]
    graphs, vectors = mathamr.GraphBuilder(), mathamr.MathAMRIndex(folder / "vectors")
    built(vectors, lambda: (graphs >> model.doc_encoder() >> vectors.indexer()).index(documents()))

    tokenise, reset = pt.rewrite.tokenise(), pt.rewrite.reset()  # Terrier's query language has no LaTeX
    first = dict(
        zip(
            LEXICAL,
            (tokenise >> terrier.bm25() >> reset, pisa.bm25(), anserini.bm25(), bm25.retriever(), tuned.retriever()),
            strict=True,
        )
    )
    return {
        **first,
        f"{TERRIER}, RM3": tokenise >> terrier.bm25() >> pt.rewrite.RM3(terrier.index_ref()) >> terrier.bm25(),
        MATHAMR: vectors.colbert(),
        **{f"{name} % {DEPTH} >> MaxSim": way % DEPTH >> vectors.scorer() for name, way in first.items()},
    }


def table(collection: Collection, rankings: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Make the rows of a collection: means, and the test of each against the strongest BM25."""
    measures = list(map(str, collection.measures))
    values = measure_by_topic(rankings, collection.topics, collection.qrels, collection.measures).fillna({"value": 0.0})
    means = means_table(values, list(rankings), measures)[["name", *measures]]
    best = str(means[means["name"].isin(LEXICAL)].sort_values(measures[0])["name"].iloc[-1])
    for measure in measures:
        tests = paired_tests(values, [(name, best) for name in rankings if name != best], measure).set_index("system")
        means[f"{measure} - {best}"] = [
            "" if name == best else f"{tests.difference[name]:+.3f} (p = {tests['p corrected'][name]:.3f})"
            for name in means["name"]
        ]
    return means


def main() -> None:
    """Print the table of a collection."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workdir", type=Path, default=Path("baselines"))
    parser.add_argument("--model", help="a bundled name or a folder; by default the bundled default")
    arguments = parser.parse_args()
    model = mathamr.MathAMR.from_pretrained(*filter(None, [arguments.model]))
    collection = read(arguments.folder)
    workdir = arguments.workdir / collection.name
    workdir.mkdir(parents=True, exist_ok=True)
    topics = (mathamr.GraphBuilder() >> model.query_encoder())(collection.topics)  # every retriever keeps the vectors
    ways = systems(collection, model, workdir)
    rankings = {name: others(way(topics), collection.qrels) for name, way in ways.items()}
    print(f"\n## {collection.name}: {collection.topics['qid'].isin(collection.qrels['qid']).sum()} topics\n")
    print(markdown_table(table(collection, rankings)))


if __name__ == "__main__":
    main()
