"""Writes folders in BEIR's layout: of a few texts, and of the bundled sample."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyterrier_mathamr
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.posts import plain_text, post_from_html

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"


def write_lines(file: Path, records: Iterable[Mapping[str, object]]) -> None:
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def write_beir(
    folder: Path,
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    splits: Mapping[str, Iterable[tuple[str, str, int]]],
) -> Path:
    """Write a collection; the judgments of a split are query, document and grade."""
    (folder / "qrels").mkdir(parents=True)
    write_lines(folder / "corpus.jsonl", ({"_id": name, "title": "", "text": text} for name, text in documents.items()))
    write_lines(folder / "queries.jsonl", ({"_id": name, "text": text} for name, text in queries.items()))
    for split, rows in splits.items():
        lines = ["query-id\tcorpus-id\tscore", *(f"{qid}\t{docno}\t{grade}" for qid, docno, grade in rows)]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def sample_in_beir(folder: Path) -> Path:
    """Write the answers, topics and judgments of the bundled sample."""
    collection = ARQMathCollection(SAMPLE)
    answers = {post.id: plain_text(post_from_html(post.body)) for post in collection.answers()}
    topics = {topic.id: plain_text(post_from_html(topic.body, topic.title)) for topic in collection.topics("sample")}
    rows = [(row.query_id, row.doc_id, row.relevance) for row in collection.qrels("sample")]
    return write_beir(folder, answers, topics, {"test": rows})
