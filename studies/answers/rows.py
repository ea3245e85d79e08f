"""Systems shared by several studies: the common ones, structural search, and systems that read an answer's question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from mathamr_systems import FormulaAnswers, StructuralSearch
from mathamr_systems.experiments.stages import Stages
from mathamr_systems.experiments.systems import BM25, DEPTH, TUNED, AnswerParts, AnswerSystem
from mathamr_systems.experiments.workdir import ModelArtifacts
from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr._common.frames import with_objects
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.index import MathAMRIndex, index_documents
from pyterrier_mathamr.model import MathAMR, TextEncoder
from pyterrier_mathamr.model.batching import choose_device, has_bfloat16
from pyterrier_mathamr.model.text_encoder import local_model, unit_rows
from pyterrier_mathamr.posts import document_post, plain_text
from pyterrier_mathamr.sparse import BM25Index, TokenOptions
from studies.artifacts import text_encoder
from studies.formulas.indexes import approach0, in_out

MINI_LM = "all-MiniLM-L6-v2"
QUERY_TOKENS, DOCUMENT_TOKENS = 128, 256
_AT_ONCE = 256  # texts; the encoder sorts them by their length

Rows = Callable[[Sequence[str]], Sequence[npt.NDArray[np.float32]]]
"""From texts to the rows of each, float32 ``[n, d]``."""


def single_vectors(parts: AnswerParts) -> pt.Transformer:
    """Rank by the cosine of the vector that MiniLM gives a question and an answer."""
    cache = None if parts.live else parts.shared.workdir / "texts.sqlite"
    encoder = TextEncoder(MINI_LM, cache=cache, device=parts.device)

    def rows(texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
        return [vector[None].astype(np.float32) for vector in encoder.encode(texts)]

    return _queries(rows) >> _index(parts, "minilm-vectors", rows).single_vector(num_results=DEPTH)


def token_vectors(parts: AnswerParts) -> pt.Transformer:
    """Rank by MaxSim of MiniLM's last states of the tokens, untrained, of unit length, ``[CLS]`` last."""
    encoder = parts.once("MiniLM tokens", lambda: _token_encoder(parts.device))

    def rows(most: int) -> Rows:
        return lambda texts: _token_rows(encoder, texts, most)

    index = _index(parts, "minilm-tokens", rows(DOCUMENT_TOKENS), tokens=DOCUMENT_TOKENS)
    return _queries(rows(QUERY_TOKENS)) >> index.colbert(num_results=DEPTH)


def _queries(rows: Rows) -> pt.Transformer:
    def add(topics: pd.DataFrame) -> pd.DataFrame:
        return with_objects(topics, query_embs=rows(topics["query"].tolist()))

    return pt.apply.generic(add)


def _index(parts: AnswerParts, name: str, rows: Rows, **settings: Any) -> MathAMRIndex:
    shared = parts.shared

    def build(path: Path) -> None:
        answers = shared.answer_documents()
        indexer = MathAMRIndex(path).indexer(
            "overwrite", dtype="float16", resume=True, verbose=shared.verbose, total=shared.collection.count_answers()
        )
        indexer.index(_encoded(indexer.pending(answers, _AT_ONCE), rows))

    return MathAMRIndex(parts.stage(name, build, model=MINI_LM, **settings))


def _encoded(answers: Iterator[Mapping[str, Any]], rows: Rows) -> Iterator[dict[str, object]]:
    while block := list(islice(answers, _AT_ONCE)):
        encoded = rows([plain_text(document_post(answer)) for answer in block])
        yield from ({"docno": answer["docno"], "doc_embs": found} for answer, found in zip(block, encoded, strict=True))


def _token_encoder(device: str | None) -> Any:
    load = require("sentence_transformers", "text").SentenceTransformer
    chosen = choose_device(device)
    loaded = load(local_model(MINI_LM), device=str(chosen), model_kwargs={"use_safetensors": True})
    return loaded.bfloat16() if has_bfloat16(chosen) else loaded


def _token_rows(encoder: Any, texts: Sequence[str], most: int) -> list[npt.NDArray[np.float32]]:
    encoder.max_seq_length = most
    states = encoder.encode(list(texts), output_value="token_embeddings", show_progress_bar=False)
    return [unit_rows(np.roll(found.float().cpu().numpy(), -1, axis=0)) for found in states]


TEXT_MODEL = "mathamr-plus-text"


def _bm25(parts: AnswerParts) -> pt.Transformer:
    return parts.shared.bm25.retriever(DEPTH)


def _tuned(parts: AnswerParts) -> pt.Transformer:
    return parts.shared.tuned.retriever(DEPTH)


def text_model(parts: AnswerParts) -> MathAMR:
    """Open the bundled model with a text encoder, its vectors of texts shared by all runs of the work folder."""

    def load() -> MathAMR:
        model = MathAMR.from_pretrained(TEXT_MODEL)
        return MathAMR.from_pretrained(TEXT_MODEL, text=text_encoder(parts.shared, model.config, cached=not parts.live))

    return parts.once((TEXT_MODEL, parts.live), load)


def _virtual_nodes(parts: AnswerParts) -> pt.Transformer:
    """Rank by MaxSim of virtual nodes, the graphs of topics taken from the work folder."""
    shared, model = parts.shared, text_model(parts)
    own = ModelArtifacts(shared, Stages(parts.folder / TEXT_MODEL, shared.say), shared.origin, shared.verbose)
    index = parts.once(f"{TEXT_MODEL} index", lambda: own.answers(model))
    encode = parts.topic_graphs() >> model.query_encoder(device=parts.device)
    return encode >> index.colbert(num_results=DEPTH)


BM25_ROW = AnswerSystem(BM25, _bm25)
TUNED_ROW = AnswerSystem(TUNED, _tuned)
SINGLE_ROW = AnswerSystem("MiniLM single vector", single_vectors, settings={"model": MINI_LM})
TOKEN_ROW = AnswerSystem("MiniLM token MaxSim, untrained", token_vectors, settings={"model": MINI_LM})
MATHAMR_ROW = AnswerSystem(TEXT_MODEL, _virtual_nodes)

COMMON_ROWS = (BM25_ROW, TUNED_ROW, SINGLE_ROW, TOKEN_ROW, MATHAMR_ROW)
"""The systems of every study; the random order is added when the tables are made."""


def _in_out(parts: AnswerParts) -> pt.Transformer:
    """Compare the largest formula of a topic by In+Out with the formulas of all answers."""
    return FormulaAnswers(in_out(parts.shared), parts.threads, DEPTH, store=parts.topic_trees())


IN_OUT_ROW = AnswerSystem("In+Out by best formula", _in_out)


STRUCTURAL = "Structural search"
WORDS = TokenOptions(stop_words=True, stem="porter", bigrams=False, formulas=False)
"""Only words, with Porter's stemmer, as in the runs ``a0porter``; formulas are left to Approach Zero."""


def _structural(parts: AnswerParts) -> pt.Transformer:
    """Rank answers with their question's text in front, by all words and formulas of the topic."""
    shared = parts.shared

    def build(path: Path) -> None:
        answers = shared.answer_documents()
        indexer = BM25Index(path).indexer("overwrite", tokens=WORDS)
        (parts.threads.with_question() >> indexer).index(answers)

    def questions() -> dict[str, str]:
        return {post.id: post.parent_id for post in shared.collection.answers()}

    return StructuralSearch(
        approach0(shared),
        BM25Index(parts.stage("threads-words", build, tokens=WORDS.to_dict())),
        DEPTH,
        questions=parts.once("question of an answer", questions),
        store=parts.topic_trees(),
    )


STRUCTURAL_ROW = AnswerSystem(STRUCTURAL, _structural, known=False, settings={"tokens": WORDS.to_dict()})
"""Not a common row: the formulas of all posts are indexed first. Without known items, since their text is in front of
their own answers."""


def _words(parts: AnswerParts) -> pt.Transformer:
    """Rank by the tuned BM25 over the question's title and body and the answer."""

    def build(path: Path) -> None:
        indexer = BM25Index(path, preset="math").indexer("overwrite")
        (parts.threads.with_question() >> indexer).index(parts.shared.answer_documents())

    return BM25Index(parts.stage("threads-bm25", build, preset="math")).retriever(DEPTH)


def _titles(parts: AnswerParts) -> pt.Transformer:
    """Rank by MaxSim over answers that begin with the title of their question."""
    shared, model = parts.shared, text_model(parts)

    def graphs(path: Path) -> None:
        builder = GraphBuilder(store=shared.formulas, verbose=shared.verbose)
        (parts.threads.parent_titles() >> builder >> GraphStore(path).indexer("overwrite")).index(
            shared.answer_documents()
        )

    def build(path: Path) -> None:
        store = GraphStore(parts.stage("answers-with-titles-graphs", graphs))
        docnos = [post.id for post in shared.collection.answers()]
        index_documents(docnos, store, model, MathAMRIndex(path), verbose=shared.verbose)

    def made() -> MathAMRIndex:
        return MathAMRIndex(parts.stage("answers-with-titles", build, model=model.identity))

    index = parts.once("answers with titles", made)
    encode = parts.topic_graphs() >> model.query_encoder(device=parts.device)
    return encode >> index.colbert(num_results=DEPTH)


def _similar_questions(parts: AnswerParts) -> pt.Transformer:
    """Rank answers by the cosine of their question and the topic."""
    shared, model = parts.shared, text_model(parts)

    def build(path: Path) -> None:
        docnos = [post.id for post in shared.collection.questions()]
        index_documents(docnos, shared.graphs, model, MathAMRIndex(path), verbose=shared.verbose)

    def made() -> MathAMRIndex:
        return MathAMRIndex(parts.stage("questions-of-text", build, model=model.identity))

    index = parts.once("questions of text", made)
    encode = parts.topic_graphs() >> model.query_encoder(device=parts.device)
    return encode >> index.colbert(num_results=DEPTH) >> parts.threads.answers() % DEPTH


WORDS_ROW = AnswerSystem("tuned BM25 with questions", _words, known=False)
TITLES_ROW = AnswerSystem("mathamr-plus-text with titles", _titles, known=False)
SIMILAR_ROW = AnswerSystem("Similar questions", _similar_questions, known=False)

QUESTION_ROWS = (WORDS_ROW, TITLES_ROW, SIMILAR_ROW)
"""None can search for known items: the text of a test question precedes its own answers."""
