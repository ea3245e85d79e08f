"""Rows of Task 2 by models of answers: ColBERT and MaRF read a formula as a text, by itself or in its post.

The models are the ones of ``answers/colbert`` and ``answers/marf``, trained on questions and answers; neither paper
trains further for formulas::

    answers/made/…       the models, the vectors of all formulas, and of candidates in their posts
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import pyterrier as pt

from pyterrier_mathamr.arqmath import VisualIdDeduplication, read_documents
from pyterrier_mathamr.experiments.measuring import TimedPipeline
from pyterrier_mathamr.experiments.systems import AnswerParts
from pyterrier_mathamr.experiments.task2 import FormulaParts, FormulaSystem
from pyterrier_mathamr.experiments.workdir import DISTINCT_FORMULAS, FORMULA_DEPTH, Artifacts, distinct
from pyterrier_mathamr.fusion import ConvexFusion
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.systems import ColBERT, FormulaQuery, MaRF, MaRFIndex, formula_documents
from studies.answers.colbert import ALPHAS, train_colbert
from studies.answers.marf import marf_model

from .indexes import approach0

SEED = 42
"""The default seed of trained models."""
CANDIDATES = 50
"""Formulas of Tangent that ColBERT re-ranks in their posts: encoding every formula with its post takes hours."""

_DEPTH = 2 * DISTINCT_FORMULAS  # some have no visual id


def _collection(parts: FormulaParts) -> Artifacts:
    """Return the artifacts of a collection that has pairs to train on."""
    return cast("Artifacts", parts.shared)


@cache
def _first(shared: Artifacts) -> AnswerParts:
    return AnswerParts(shared, of="", years=(), seed=SEED)


def _answers(shared: Artifacts, seed: int) -> AnswerParts:
    """Return the artifacts of models of a seed; all seeds share some, such as states of texts."""
    return _first(shared).at(seed=seed)


def _formulas(shared: Artifacts, **options: Any) -> Iterator[dict[str, Any]]:
    return formula_documents(read_documents(shared.collection.path), visual_ids=shared.formulas, **options)


@cache
def _colbert(shared: Artifacts, seed: int) -> tuple[ColBERT, MathAMRIndex]:
    """Return ColBERT, and the index of formulas without their posts."""
    parts = _answers(shared, seed)
    model = ColBERT.from_pretrained(parts.stage("colbert", partial(train_colbert, parts), trained=True))

    def build(path: Path) -> None:
        indexer = MathAMRIndex(path).indexer("overwrite", dtype="float16", verbose=shared.verbose)
        (model.doc_encoder() >> indexer).index(_formulas(shared))

    return model, MathAMRIndex(parts.stage("colbert-formulas", build, model=model.identity))


@cache
def _marf(shared: Artifacts, kind: str, seed: int) -> tuple[MaRF, MaRFIndex]:
    """Return MaRF, or only its text encoder or formula encoder, and the index of formulas without their posts."""
    parts = _answers(shared, seed)
    marf = marf_model(parts, trained=False, formulas=1) if kind == "text encoder" else marf_model(parts)
    marf.context.cache = None
    if kind == "formula encoder":
        marf = marf.formulas_alone()

    def build(path: Path) -> None:
        indexer = MaRFIndex(path).indexer("overwrite", verbose=shared.verbose)
        (marf.doc_encoder() >> indexer).index(_formulas(shared), batch_size=1024)

    return marf, MaRFIndex(parts.stage("marf-formulas", build, model=marf.identity))


def _by_colbert(parts: FormulaParts, seed: int) -> TimedPipeline:
    model, index = _colbert(_collection(parts), seed)
    return _of_distinct(FormulaQuery() >> model.query_encoder(), index.colbert(num_results=_DEPTH), parts)


def _by_marf(parts: FormulaParts, seed: int, kind: str = "") -> TimedPipeline:
    model, index = _marf(_collection(parts), kind, seed)
    return _of_distinct(FormulaQuery() >> model.query_encoder(), index.retriever(num_results=_DEPTH), parts)


def _of_distinct(encode: pt.Transformer, search: pt.Transformer, parts: FormulaParts) -> TimedPipeline:
    ranked = search >> VisualIdDeduplication(parts.shared.formulas) >> pt.RankCutoff(DISTINCT_FORMULAS)
    return TimedPipeline(ranked, encode)


def _fused(parts: FormulaParts, seed: int, alpha: float) -> TimedPipeline:
    other = distinct(approach0(parts.shared).retriever(FORMULA_DEPTH, store=parts.trees))
    fusion = ConvexFusion(_by_colbert(parts, seed).whole, other, alpha=alpha, num_results=DISTINCT_FORMULAS)
    return TimedPipeline(fusion)


def _in_posts(parts: FormulaParts, seed: int) -> TimedPipeline:
    """Order the best formulas of Tangent by ColBERT, each in its post; the others follow."""
    shared = _collection(parts)
    model, _ = _colbert(shared, seed)
    formulas = VisualIdDeduplication(keep="formula") >> pt.RankCutoff(DISTINCT_FORMULAS)
    first = shared.tangent.retriever(FORMULA_DEPTH, store=parts.trees) >> formulas

    def build(path: Path) -> None:
        wanted = set((first % CANDIDATES)(parts.topics)["docno"])
        posts = _formulas(shared, context="post", instances=FORMULA_DEPTH)
        indexer = MathAMRIndex(path).indexer("overwrite", dtype="float16", verbose=shared.verbose)
        (model.doc_encoder() >> indexer).index(of for of in posts if of["docno"] in wanted)

    made: dict[str, Any] = {"model": model.identity, "year": parts.year, "candidates": CANDIDATES}
    index = MathAMRIndex(_answers(shared, seed).stage("colbert-contexts", build, **made))
    scored = first % CANDIDATES >> FormulaQuery("post") >> model.query_encoder() >> index.scorer()
    return TimedPipeline((scored ^ first) >> VisualIdDeduplication(keep="visual"))


COLBERT, MARF = "ColBERT", "MaRF"
IN_POSTS = f"Tangent % {CANDIDATES} >> ColBERT in posts"


def language_models(seed: int = SEED) -> dict[str, FormulaSystem]:
    """Make the systems that need a language model, and so the extras ``colbert`` and ``answers``, with a seed."""
    trained = partial(FormulaSystem, trained=True)
    systems = (
        trained(COLBERT, partial(_by_colbert, seed=seed)),
        *(
            trained(f"{COLBERT} + Approach Zero, α {alpha}", partial(_fused, seed=seed, alpha=alpha))
            for alpha in ALPHAS
        ),
        trained(IN_POSTS, partial(_in_posts, seed=seed), known=False),
        trained(MARF, partial(_by_marf, seed=seed)),
        FormulaSystem("MaRF, text encoder alone", partial(_by_marf, seed=SEED, kind="text encoder")),
        trained("MaRF, formula encoder alone", partial(_by_marf, seed=seed, kind="formula encoder")),
    )
    return {system.name: system for system in systems}
