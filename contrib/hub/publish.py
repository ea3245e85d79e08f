"""Build what we publish on the Hugging Face hub: an engine and an index of vectors, each with a card.

python contrib/hub/publish.py OUTPUT                                # of the bundled sample
python contrib/hub/publish.py OUTPUT --arqmath FOLDER               # of the posts of an ARQMath folder
python contrib/hub/publish.py OUTPUT --upload ORGANIZATION          # and upload both, after `hf auth login`
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyterrier as pt

import pyterrier_mathamr as mathamr
from pyterrier_mathamr.arqmath import SHORT_NAMES, ARQMathCollection, MissingFileError
from pyterrier_mathamr.store import SharedArtifact
from pyterrier_mathamr.store.hub import upload, write_package

SAMPLE = Path(mathamr.__file__).parent / "data" / "sample"
DEPTH = 1000


class Collection(NamedTuple):
    """An artifact to build: its name, folder, license, and attribution; ``tasks`` are its datasets with judgments."""

    name: str
    folder: Path
    documents: str
    tasks: tuple[str, ...]
    license: str
    origin: str


OF_SAMPLE = Collection(
    "arqmath-sample",
    SAMPLE,
    "irds:arqmath/sample/answers",
    ("irds:arqmath/sample/task1",),
    "cc0-1.0",
    "The sample of questions and answers that comes with pyterrier-mathamr, in the public domain (CC0).",
)
ATTRIBUTION = """\
Questions and answers of [Math Stack Exchange](https://math.stackexchange.com), by its users, licensed under CC BY-SA
(2.5, 3.0 or 4.0 by the date of the post). The docno of a post is its id there:
`https://math.stackexchange.com/q/DOCNO` shows a question with its authors, `https://math.stackexchange.com/a/DOCNO` an
answer. They were collected by the ARQMath lab at CLEF (Zanibbi, Mansouri, Agarwal, Oard). Changes: posts were converted
to graphs, vectors and inverted lists. Share what you derive from it under the same license. Topics and judgments of
ARQMath are not contained."""


def of_arqmath(folder: Path, name: str) -> Collection:
    """Describe the posts of a folder in the layout of the release."""
    mathamr.register_arqmath(folder)
    tasks = tuple(f"irds:arqmath/{year}/task1" for year in (2020, 2021, 2022))
    return Collection(name, folder, "irds:arqmath/answers", tasks, "cc-by-sa-4.0", ATTRIBUTION)


def build_engine(collection: Collection, output: Path, model: str) -> mathamr.SearchEngine:
    """Build an engine of all posts; a build that was stopped goes on."""
    engine = mathamr.SearchEngine(output / f"{collection.name}.engine")
    if not engine.built():
        posts = ARQMathCollection(collection.folder).documents()
        engine = mathamr.SearchEngine.build(posts, engine.path, model=model)
    return engine


def build_index(collection: Collection, output: Path, model: str) -> mathamr.MathAMRIndex:
    """Build an index of the answers' vectors."""
    index = mathamr.MathAMRIndex(output / f"{collection.name}.mathamr")
    if not index.built():
        encode = mathamr.GraphBuilder() >> mathamr.MathAMR.from_pretrained(model).doc_encoder()
        (encode >> index.indexer()).index(pt.get_dataset(collection.documents).get_corpus_iter())
    return index


def measured(systems: dict[str, pt.Transformer], collection: Collection) -> pd.DataFrame:
    """Measure systems on each task whose topics and judgments are there."""
    tables = []
    for task in collection.tasks:
        dataset = pt.get_dataset(task)
        try:
            topics, qrels = dataset.get_topics("text"), dataset.get_qrels()
        except MissingFileError:
            continue
        given = [list(systems.values()), topics, qrels, mathamr.TASK1_MEASURES]
        table = pt.Experiment(*given, names=list(systems), filter_by_qrels=True)
        columns = {str(measure): SHORT_NAMES[str(measure)] for measure in mathamr.TASK1_MEASURES}
        short = table[["name", *columns]].rename(columns=columns)
        tables.append(short.assign(task=task.removeprefix("irds:")))
    return pd.concat(tables, ignore_index=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build, measure, describe, and perhaps upload."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="a folder for the artifacts and their packages")
    parser.add_argument("--arqmath", type=Path, help="a folder of ARQMath's release, or of a part of it")
    parser.add_argument("--name", default="arqmath", help="name of the artifacts built from --arqmath")
    parser.add_argument("--model", default=mathamr.model.DEFAULT_MODEL, help="the model of both")
    parser.add_argument("--upload", metavar="ORGANIZATION", help="upload both to this organization of the hub")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    collection = of_arqmath(options.arqmath, options.name) if options.arqmath else OF_SAMPLE

    engine = build_engine(collection, options.output, options.model)
    index = build_index(collection, options.output, options.model)
    encode = mathamr.GraphBuilder() >> mathamr.MathAMR.from_pretrained(options.model).query_encoder()
    bm25 = engine.bm25(num_results=DEPTH)
    source = f" --arqmath ARQMATH_FOLDER --name {options.name}" if options.arqmath else ""
    command = f"python contrib/hub/publish.py OUTPUT{source} --model {options.model}"
    parts: list[tuple[SharedArtifact, str, str, dict[str, pt.Transformer]]] = [
        (engine, "engine", "A search engine of questions and answers, by words and formulas.",
         {"BM25, tuned for mathematics": bm25, "engine": engine.retriever(num_results=DEPTH)}),
        (index, "index", "An index of answers: a vector for each formula, each sentence and the whole text.",
         {"BM25, tuned for mathematics": bm25, "MaxSim": encode >> index.colbert(num_results=DEPTH)}),
    ]  # fmt: skip
    for artifact, kind, about, systems in parts:
        repo = f"{options.upload or 'ORGANIZATION'}/{collection.name}-{kind}"
        folder = options.output / repo.partition("/")[2]
        folder.mkdir(exist_ok=True)
        write_package(
            artifact,
            folder,
            repo,
            title=f"{collection.name}: {kind}",
            license=collection.license,
            description=f"{about}\n\n{collection.origin}",
            reproduction=command,
            measures=measured(systems, collection),
        )
        print(f"{folder}: {sum(file.stat().st_size for file in folder.iterdir()) / 1e6:,.1f} MB")
        if options.upload:
            print(upload(folder, repo, "dataset"))


if __name__ == "__main__":
    main()
