"""The studies ``answers/colbert`` and ``answers/hybrid``: ColBERT on math text, trained on the pairs of the collection.

The hybrids are fusions with the tuned BM25 and with structural search, as in the published runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyterrier as pt

from mathamr_systems import ColBERT, ColBERTOptions, ColBERTTraining
from mathamr_systems.colbert import PRESETS
from mathamr_systems.colbert.training import States
from mathamr_systems.experiments.systems import DEPTH, AnswerParts, AnswerSystem
from pyterrier_mathamr.arqmath import known_answers, read_documents, read_training_pairs
from pyterrier_mathamr.arqmath.from_sources import mine_negatives
from pyterrier_mathamr.fusion import ConvexFusion
from pyterrier_mathamr.index import MathAMRIndex
from studies.study import Study

from .pairs import right_answers
from .rows import SINGLE_ROW, STRUCTURAL_ROW, TOKEN_ROW, TUNED_ROW

BACKBONES = {"mini": "all-MiniLM-L6-v2", "full": "hf:bert-base-uncased"}
"""The paper pretrains BERT further on math text; its checkpoint is ``ColBERT.from_pretrained`` of whoever has it."""

LEAST_VOTES = 8
"""Minimum votes of a right answer: more than 7 (Zhong et al. 2022, section 4.2)."""


def new_colbert(parts: AnswerParts) -> ColBERT:
    """Begin the model of a preset, with the options that were set by hand."""
    options, training = (of.to_dict() for of in PRESETS["published" if parts.preset == "full" else "mini"])
    for name, value in parts.changes.items():
        (options if name in options else training)[name] = value
    training |= {"seed": max(parts.seed, 0)}
    backbone = BACKBONES.get(parts.preset, BACKBONES["mini"])
    made = ColBERTOptions.from_dict(options), ColBERTTraining.from_dict(training)
    return ColBERT.new(backbone, options=made[0], training=made[1])


def train_colbert(parts: AnswerParts, path: Path) -> None:
    """Train the model of a seed and save it."""
    shared = parts.shared
    source = shared.collection.path
    own = right_answers(source, LEAST_VOTES, of_duplicates=True)
    pairs = [*own, *(pair for file in shared.pairs for pair in read_training_pairs(file).train)]
    known = known_answers(source, {question for question, _ in own})
    negatives = mine_negatives("tags", source, own, known)
    states: States = parts.once(("states of ColBERT", *_set(parts)), dict)
    model = new_colbert(parts)
    model.fit(
        pairs,
        _documents([source, *shared.pairs]),
        negatives=negatives,
        never=known,
        states=states,
        device=parts.device,
        verbose=shared.verbose,
    )
    (shared.say or str)(f"mean loss of each epoch: {', '.join(f'{loss:.3f}' for loss in model.history)}")
    model.save(path)


def colbert_index(parts: AnswerParts) -> tuple[ColBERT, MathAMRIndex]:
    """Return the model of a seed and the index of all answers."""
    path = parts.stage("colbert", lambda folder: train_colbert(parts, folder), trained=True)
    model = parts.once(("ColBERT", parts.seed, *_set(parts)), lambda: ColBERT.from_pretrained(path))
    shared = parts.shared

    def build(folder: Path) -> None:
        answers = shared.answer_documents()
        indexer = MathAMRIndex(folder).indexer(
            "overwrite", dtype="float16", resume=True, verbose=shared.verbose, total=shared.collection.count_answers()
        )
        indexer.index_encoded(answers, model.doc_encoder(device=parts.device))

    return model, MathAMRIndex(parts.stage("colbert-index", build, trained=True))


def loaded_colbert(parts: AnswerParts) -> tuple[ColBERT, MathAMRIndex]:
    """Return the same, loaded once for all topics."""
    return parts.once(("ColBERT and index", parts.seed, *_set(parts)), lambda: colbert_index(parts))


def _set(parts: AnswerParts) -> tuple[tuple[str, Any], ...]:
    """Name the options that were set by hand, for :meth:`AnswerParts.once`."""
    return tuple(sorted(parts.changes.items()))


def _trained(parts: AnswerParts) -> pt.Transformer:
    model, index = loaded_colbert(parts)
    return model.query_encoder(device=parts.device) >> index.colbert(num_results=DEPTH)


def _with_math_tokens(parts: AnswerParts) -> pt.Transformer:
    """Search with a model that reads formulas as separate tokens."""
    return _trained(replace(parts, changes={**parts.changes, "math": True}))


def _reranked(parts: AnswerParts) -> pt.Transformer:
    model, index = loaded_colbert(parts)
    return parts.shared.tuned.retriever(DEPTH) >> model.query_encoder(device=parts.device) >> index.scorer()


def _documents(sources: Iterable[Path]) -> Iterable[dict[str, Any]]:
    for source in sources:
        yield from read_documents(source)


COLBERT_ROW = AnswerSystem("ColBERT", _trained, against=(TOKEN_ROW.name, SINGLE_ROW.name), trained=True)
RERANKED_ROW = replace(COLBERT_ROW, name="tuned BM25, then ColBERT", make=_reranked, against=(COLBERT_ROW.name,))
MATH_ROW = replace(COLBERT_ROW, name="ColBERT, math tokens", make=_with_math_tokens, against=(COLBERT_ROW.name,))

COLBERT_STUDY = Study(
    "answers/colbert",
    "ColBERT on math text",
    "answers",
    systems=(COLBERT_ROW, RERANKED_ROW, MATH_ROW),
    published=(("zhong", ("3", "5")),),
)


ALPHAS = (0.2, 0.3, 0.5)
"""The weight of ColBERT, as published."""


def _fused(other: AnswerSystem, alpha: float) -> Callable[[AnswerParts], pt.Transformer]:
    def make(parts: AnswerParts) -> pt.Transformer:
        return ConvexFusion(parts.ranking(COLBERT_ROW), parts.ranking(other), alpha=alpha, num_results=DEPTH)

    return make


def _structural_then_colbert(parts: AnswerParts) -> pt.Transformer:
    model, index = loaded_colbert(parts)
    return STRUCTURAL_ROW.make(parts) >> model.query_encoder(device=parts.device) >> index.scorer()


def hybrid_row(other: AnswerSystem, name: str, alpha: float) -> AnswerSystem:
    """Make the row of ColBERT fused with another row."""
    return AnswerSystem(
        f"ColBERT + {name}, α {alpha}",
        _fused(other, alpha),
        against=(COLBERT_ROW.name, other.name),
        trained=True,
        known=other.known,
        settings={"alpha": alpha},
    )


HYBRID_STUDY = Study(
    "answers/hybrid",
    "ColBERT and structural search, fused",
    "answers",
    published=(("zhong", ("2", "3", "5")),),
    systems=(
        COLBERT_ROW,
        STRUCTURAL_ROW,
        AnswerSystem(
            "Structural search, then ColBERT",
            _structural_then_colbert,
            against=(COLBERT_ROW.name, STRUCTURAL_ROW.name),
            trained=True,
            known=False,
        ),
        *(hybrid_row(STRUCTURAL_ROW, "structural", alpha) for alpha in ALPHAS),
        *(hybrid_row(TUNED_ROW, "tuned BM25", alpha) for alpha in ALPHAS),
    ),
    notes=(
        "The published runs have Approach Zero with keywords picked by hand; here its queries are the whole question.",
    ),
)
