"""Mining of hard negatives: answers that BM25, a model or the tags rank high and that are not known to be right.

Candidates are only the answers of a source's training pairs, so that no answer of the validation or test part is
used in training, not even as a negative. Documents that :func:`known_answers` returns are never mined.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.ids import pseudo_random
from pyterrier_mathamr.arqmath import ARQMathCollection, read_documents
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.index import MathAMRIndex, index_documents
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.sparse import BM25Index

Miner = Literal["bm25", "model", "tags"]
MINERS: tuple[Miner, ...] = ("bm25", "model", "tags")

DEPTH = 30
"""Hard negatives kept for each question."""

Pairs = Sequence[tuple[str, str]]
Known = Mapping[str, Iterable[str]]


def mine_negatives(
    miner: Miner,
    source: str | Path,
    pairs: Pairs,
    known: Known,
    *,
    graphs: GraphStore | None = None,
    model: MathAMR | None = None,
    depth: int = DEPTH,
    verbose: bool = False,
) -> dict[str, tuple[str, ...]]:
    """Find hard negatives for the questions of a source.

    Args:
        miner: ``bm25``, ``model`` (needs ``graphs`` and ``model``) or ``tags`` (needs an ARQMath folder).
        source: an ARQMath folder or a pair file.
        pairs: its training pairs.
        known: documents that are or may be right, by question id, in addition to the answers in ``pairs``.
        graphs: the graphs of its posts.
        model: the model to search with.
        depth: documents kept for each question.
        verbose: show progress.

    Returns:
        Question id to docnos, the hardest first; the result is deterministic.

    Raises:
        ConfigError: there is no such miner, it lacks graphs or a model, or the source has no tags.
    """
    answers: defaultdict[str, set[str]] = defaultdict(set)
    for question, answer in pairs:
        answers[question].add(answer)
    forbidden = {question: answers[question].union(known.get(question, ()), {question}) for question in answers}
    candidates = {answer for _, answer in pairs}
    # enough results to remain after the forbidden ones are removed
    room = depth + max(map(len, forbidden.values()), default=0)
    if miner == "bm25":
        ranking = _search_bm25(source, forbidden, candidates, room, verbose)
    elif miner == "model":
        if graphs is None or model is None:
            raise ConfigError("model", model, "a model, with graphs=, to mine with it")
        ranking = _search_model(graphs, model, forbidden, candidates, room, verbose)
    elif miner == "tags":
        ranking = _search_tags(source, pairs, forbidden, room)
    else:
        raise ConfigError("miner", miner, f"one of {', '.join(map(repr, MINERS))}")
    found: defaultdict[str, list[str]] = defaultdict(list)
    for question, docno in ranking:
        if docno not in forbidden[question] and len(found[question]) < depth:
            found[question].append(docno)
    return {question: tuple(found[question]) for question in forbidden}


def _search_bm25(
    source: str | Path, questions: Iterable[str], candidates: set[str], room: int, verbose: bool
) -> Iterator[tuple[str, str]]:
    wanted = set(questions)
    topics: dict[str, dict[str, Any]] = {}

    def documents() -> Iterator[dict[str, Any]]:
        for document in read_documents(source):
            if document["docno"] in wanted:
                topics[document["docno"]] = _topic(document)
            if document["docno"] in candidates:
                yield document

    with tempfile.TemporaryDirectory(prefix="mathamr-") as folder:
        indexer = BM25Index(Path(folder) / "answers.bm25", preset="math").indexer(verbose=verbose)
        index = indexer.index(pt.utils.GeneratorLen(documents(), len(candidates)))
        frame = pd.DataFrame([topics[name] for name in questions if name in topics])
        yield from _rows(index.retriever(room, verbose=verbose)(frame))


def _topic(document: dict[str, Any]) -> dict[str, Any]:
    """Make a query of a whole post."""
    if "html" in document:
        return {"qid": document["docno"], "title": document["title"], "body": document["html"]}
    return {"qid": document["docno"], "query": document["text"]}


def _search_model(
    graphs: GraphStore, model: MathAMR, questions: Iterable[str], candidates: set[str], room: int, verbose: bool
) -> Iterator[tuple[str, str]]:
    names = [name for name in questions if name in graphs]
    answers = [name for name in graphs.ids() if name in candidates]
    with tempfile.TemporaryDirectory(prefix="mathamr-") as folder:
        index = index_documents(answers, graphs, model, MathAMRIndex(Path(folder) / "answers"), verbose=verbose)
        search = graphs.loader() >> model.query_encoder() >> index.doc_vn(candidates=10 * room, num_results=room)
        for start in progress(range(0, len(names), 256), "mining", "batches", verbose=verbose):
            yield from _rows(search(pd.DataFrame({"qid": names[start : start + 256]})))


def _search_tags(source: str | Path, pairs: Pairs, questions: Iterable[str], room: int) -> Iterator[tuple[str, str]]:
    """List answers of questions with the same tags, rarest tag first; each question starts at its own place."""
    if not Path(source).is_dir():
        raise ConfigError("miner", "tags", f"'bm25' or 'model' for {source}, a file of pairs, which has no tags")
    wanted = set(questions)
    tags = {post.id: post.tags for post in ARQMathCollection(source).questions() if post.id in wanted}
    below: defaultdict[str, list[str]] = defaultdict(list)
    for question, answer in pairs:
        for tag in tags.get(question, ()):
            below[tag].append(answer)
    for found in below.values():
        found.sort(key=pseudo_random)
    for question in questions:
        given: dict[str, None] = {}
        for tag in sorted(tags.get(question, ()), key=lambda tag: (len(below[tag]), tag)):
            found = below[tag]
            start = pseudo_random(question) % len(found)
            given.update(dict.fromkeys([*found[start : start + room], *found[: min(start, room)]][:room]))
            if len(given) >= room:
                break
        yield from ((question, docno) for docno in given)


def _rows(ranking: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield query and document of each row, best first within a query."""
    ordered = ranking.sort_values(["qid", "rank"], kind="stable")
    yield from zip(ordered["qid"], ordered["docno"], strict=True)
