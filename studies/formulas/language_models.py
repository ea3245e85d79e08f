"""Rows of Task 2 by models of answers: ColBERT and MaRF read a formula as a text, by itself or in its post.

The models are the ones of ``answers/colbert`` and ``answers/marf``, trained on questions and answers; neither paper
trains further for formulas::

    answers/made/…       the models, the vectors of all formulas, and of candidates in their posts

With ``--model full`` they have the papers' sizes, and MaRF re-ranks the first formulas of Tangent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyterrier as pt

from mathamr_systems import ColBERT, FormulaQuery, MaRF, MaRFIndex, formula_documents
from mathamr_systems.experiments.measuring import TimedPipeline
from mathamr_systems.experiments.stages import slug
from mathamr_systems.experiments.systems import AnswerParts
from mathamr_systems.experiments.task2 import FormulaParts, FormulaSystem
from mathamr_systems.experiments.workdir import DISTINCT_FORMULAS, FORMULA_DEPTH, Artifacts, distinct
from mathamr_systems.formula_texts import FormulaContext
from mathamr_systems.marf.model import DESCRIPTION
from pyterrier_mathamr.arqmath import VisualIdDeduplication, read_documents
from pyterrier_mathamr.fusion import ConvexFusion
from pyterrier_mathamr.index import MathAMRIndex
from studies.answers.colbert import ALPHAS, train_colbert
from studies.answers.marf import marf_model

from .indexes import approach0

SEED = 42
"""The default seed of trained models."""
CANDIDATES = 50
"""Formulas of Tangent that ColBERT re-ranks in their posts: encoding every formula with its post would last hours."""

_DEPTH = 2 * DISTINCT_FORMULAS  # some have no visual id


def _collection(parts: FormulaParts) -> Artifacts:
    """Return the artifacts of a collection that has pairs to train on."""
    return cast("Artifacts", parts.shared)


class Recipe(NamedTuple):
    """How a model is trained; all seeds of a preset share some artifacts, such as states of texts."""

    seed: int = SEED
    preset: str = "mini"

    def parts(self, shared: Artifacts) -> AnswerParts:
        """Return the artifacts of the model."""
        return _first(shared, self.preset).at(seed=self.seed)


@cache
def _first(shared: Artifacts, preset: str) -> AnswerParts:
    return AnswerParts(shared, of="", years=(), seed=SEED, preset=preset)


def _formulas(shared: Artifacts, **options: Any) -> Iterator[dict[str, Any]]:
    return formula_documents(read_documents(shared.collection.path), visual_ids=shared.formulas, **options)


@cache
def _colbert(shared: Artifacts, recipe: Recipe) -> ColBERT:
    parts = recipe.parts(shared)
    return ColBERT.from_pretrained(parts.stage("colbert", partial(train_colbert, parts), trained=True))


@cache
def _marf(shared: Artifacts, kind: str, recipe: Recipe) -> MaRF:
    """Return MaRF, or only its text encoder or formula encoder."""
    parts = recipe.parts(shared)
    marf = marf_model(parts, trained=False, formulas=1) if kind == "text encoder" else marf_model(parts)
    marf.context.cache = None
    return marf.formulas_alone() if kind == "formula encoder" else marf


def _by_colbert(parts: FormulaParts, recipe: Recipe) -> TimedPipeline:
    shared = _collection(parts)
    model = _colbert(shared, recipe)

    def build(path: Path) -> None:
        indexer = MathAMRIndex(path).indexer("overwrite", dtype="float16", verbose=shared.verbose)
        (model.doc_encoder() >> indexer).index(_formulas(shared))

    index = MathAMRIndex(recipe.parts(shared).stage("colbert-formulas", build, model=model.identity))
    return _of_distinct(FormulaQuery() >> model.query_encoder(), index.colbert(num_results=_DEPTH), parts)


def _by_marf(parts: FormulaParts, recipe: Recipe, kind: str = "") -> TimedPipeline:
    """Rank all formulas, or, at the paper's size, the first of Tangent: a scan would read 200 GB for each query."""
    shared = _collection(parts)
    marf = _marf(shared, kind, recipe)
    if recipe.preset == "full":
        return _reranked(parts, recipe, marf, "marf-candidates", DISTINCT_FORMULAS)

    def build(path: Path) -> None:
        indexer = MaRFIndex(path).indexer("overwrite", verbose=shared.verbose)
        (marf.doc_encoder() >> indexer).index(_formulas(shared), batch_size=1024)

    index = MaRFIndex(recipe.parts(shared).stage("marf-formulas", build, model=marf.identity))
    return _of_distinct(FormulaQuery() >> marf.query_encoder(), index.retriever(num_results=_DEPTH), parts)


def _of_distinct(encode: pt.Transformer, search: pt.Transformer, parts: FormulaParts) -> TimedPipeline:
    ranked = search >> VisualIdDeduplication(parts.shared.formulas) >> pt.RankCutoff(DISTINCT_FORMULAS)
    return TimedPipeline(ranked, encode)


def _fused(parts: FormulaParts, recipe: Recipe, alpha: float) -> TimedPipeline:
    other = distinct(approach0(parts.shared).retriever(FORMULA_DEPTH, store=parts.trees))
    fusion = ConvexFusion(_by_colbert(parts, recipe).whole, other, alpha=alpha, num_results=DISTINCT_FORMULAS)
    return TimedPipeline(fusion)


def _in_posts(parts: FormulaParts, recipe: Recipe) -> TimedPipeline:
    """Order the best formulas of Tangent by ColBERT, each in its post."""
    model = _colbert(_collection(parts), recipe)
    return _reranked(parts, recipe, model, "colbert-contexts", CANDIDATES, "post")


def _reranked(
    parts: FormulaParts,
    recipe: Recipe,
    model: ColBERT | MaRF,
    name: str,
    candidates: int,
    context: FormulaContext = "formula",
) -> TimedPipeline:
    """Order the best formulas of Tangent by a model; the others follow."""
    shared = _collection(parts)
    formulas = VisualIdDeduplication(keep="formula") >> pt.RankCutoff(DISTINCT_FORMULAS)
    first = shared.tangent.retriever(FORMULA_DEPTH, store=parts.trees) >> formulas
    made = MathAMRIndex if isinstance(model, ColBERT) else MaRFIndex

    def build(path: Path) -> None:
        wanted = set((first % candidates)(parts.topics)["docno"])
        documents = _formulas(shared, context=context, instances=FORMULA_DEPTH)
        indexer = made(path).indexer("overwrite", dtype="float16", verbose=shared.verbose)
        (model.doc_encoder() >> indexer).index(of for of in documents if of["docno"] in wanted)

    settings: dict[str, Any] = {"model": model.identity, "year": parts.year, "candidates": candidates}
    index = made(recipe.parts(shared).stage(name, build, **settings))
    scored = first % candidates >> FormulaQuery(context) >> model.query_encoder() >> index.scorer()
    return TimedPipeline((scored ^ first) >> VisualIdDeduplication(keep="visual"))


COLBERT, MARF, FORMULAS = "ColBERT", "MaRF", "MaRF, formula encoder only"
IN_POSTS = f"Tangent % {CANDIDATES} >> ColBERT in posts"


def language_models(seed: int = SEED, preset: str = "mini") -> dict[str, FormulaSystem]:
    """Make the systems that need a language model, and so the extras ``colbert`` and ``answers``, with a seed."""
    own, first = Recipe(seed, preset), Recipe(SEED, preset)
    trained, known = partial(FormulaSystem, trained=True), preset == "mini"
    systems = (
        trained(COLBERT, partial(_by_colbert, recipe=own)),
        *(
            trained(f"{COLBERT} + Approach Zero, α {alpha}", partial(_fused, recipe=own, alpha=alpha))
            for alpha in ALPHAS
        ),
        trained(IN_POSTS, partial(_in_posts, recipe=own), known=False),
        trained(MARF, partial(_by_marf, recipe=own), known=known),
        FormulaSystem("MaRF, text encoder only", partial(_by_marf, recipe=first, kind="text encoder"), known=known),
        trained(FORMULAS, partial(_by_marf, recipe=own, kind="formula encoder"), known=known),
    )
    return {system.name: system for system in systems}


def browsing_models(folders: Sequence[Path]) -> dict[str, FormulaSystem]:
    """Make systems for a collection without pairs to train on, from folders of trained models.

    Args:
        folders: as ``ColBERT.save`` and ``MaRF.save`` wrote them, such as ``answers/made/marf-…`` of a work folder.
    """
    systems: dict[str, FormulaSystem] = {}
    for folder in folders:
        if (folder / DESCRIPTION).is_file():
            marf = MaRF.from_pretrained(folder)
            systems |= {MARF: _of_model(MARF, marf), FORMULAS: _of_model(FORMULAS, marf.formulas_alone())}
        else:
            systems[COLBERT] = _of_model(COLBERT, ColBERT.from_pretrained(folder))
    return systems


def _of_model(name: str, model: ColBERT | MaRF) -> FormulaSystem:
    def make(parts: FormulaParts) -> TimedPipeline:
        shared, path = parts.shared, parts.shared.workdir / f"{slug(name)}.vectors"
        index: Any = (MathAMRIndex if isinstance(model, ColBERT) else MaRFIndex)(path)

        def build() -> None:
            indexer = index.indexer("overwrite", dtype="float16", verbose=shared.verbose)
            (model.doc_encoder() >> indexer).index(of for of in shared.documents() if of["html"])

        shared.stages.run(f"vectors of {name}", path, {**shared.origin, "model": model.identity}, build)
        search = index.colbert if isinstance(model, ColBERT) else index.retriever
        return TimedPipeline(search(num_results=DISTINCT_FORMULAS), FormulaQuery() >> model.query_encoder())

    return FormulaSystem(name, make)
