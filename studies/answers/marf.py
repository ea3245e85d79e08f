"""The study ``answers/marf``: do the formulas explain why MaRF finds more than its context encoder?

Three tests: a model whose context attends to itself instead of formulas (as many parameters, no formulas);
the trained model with formulas of other posts; and results by the share of formula tokens in the question.
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

from mathamr_systems.experiments import formula_share
from mathamr_systems.experiments.systems import DEPTH, AnswerParts, AnswerSystem
from mathamr_systems.experiments.workdir import KNOWN_ITEM
from mathamr_systems.marf import PRESETS, MaRFConfig, MaRFTraining
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import documents
from pyterrier_mathamr.arqmath.measures import PAPER_NAMES
from pyterrier_mathamr.posts import MathPost, document_post, query_post
from studies.study import Outcome, Study
from studies.tables import KNOWN, MAIN, REFERENCE

from .pairs import right_answers
from .rows import MATHAMR_ROW, MINI_LM, SINGLE_ROW, TOKEN_ROW

if TYPE_CHECKING:
    from mathamr_systems.marf import MaRF, MaRFIndex
    from mathamr_systems.marf.network import MaRFPost, Symbols


LEAST_VOTES = 6
"""Minimum votes of a right answer: more than 5 (MaRF, section 3.4)."""

RERANKED = 200
"""Answers of the context encoder that MaRF re-ranks; the others keep their order."""

SHARES = (0.0, 0.5, 0.6, 0.7)
"""Of formula tokens in a question, as in table 3 of the paper."""


def _options(parts: AnswerParts, **own: Any) -> tuple[str, MaRFConfig, MaRFTraining]:
    """Return backbone, configuration and training of a preset, changed by hand and by a row."""
    config, training = PRESETS["mini"]
    if parts.preset != "mini":  # the paper's sizes over an unchanged encoder
        config, training = replace(PRESETS["published"][0], text="latex", formula_vocabulary="own"), MaRFTraining()
    changes = {**parts.changes, **own, "seed": max(parts.seed, 0)}
    names = {field.name for field in fields(MaRFConfig)}, {field.name for field in fields(MaRFTraining)}
    if unknown := sorted(set(changes) - names[0] - names[1] - {"backbone"}):
        raise ConfigError("set", unknown, f"options of MaRF: backbone, {', '.join(sorted(names[0] | names[1]))}")
    chosen = [{name: value for name, value in changes.items() if name in of} for of in names]
    return str(changes.get("backbone", MINI_LM)), replace(config, **chosen[0]), replace(training, **chosen[1])


class _Data(NamedTuple):
    """Training data."""

    pairs: list[tuple[str, str]]
    accepted: list[tuple[str, str]]  # whose formulas are paired (section 3.4)
    posts: dict[str, MathPost]


def _training_data(parts: AnswerParts) -> _Data:
    """Return the training pairs and their posts, read once for all models."""

    def read() -> _Data:
        source = parts.shared.collection.path
        pairs, accepted = (right_answers(source, votes) for votes in (LEAST_VOTES, sys.maxsize))
        return _Data(pairs, accepted, _posts(parts, pairs))

    return parts.once("training data of MaRF", read)


def marf_model(parts: AnswerParts, kind: type[MaRF] | None = None, *, trained: bool = True, **own: Any) -> MaRF:
    """Return the model of a seed, trained or as it begins."""
    from mathamr_systems.marf import MaRF

    kind = kind or MaRF
    backbone, config, training = _options(parts, **own)

    def build(path: Path) -> None:
        pairs, accepted, posts = _training_data(parts)
        options: dict[str, Any] = {"device": parts.device, "verbose": parts.shared.verbose}
        marf = kind.new(backbone, posts.values(), config=config, training=training, cache=_cache(parts), **options)
        if trained:
            marf.fit(pairs, posts, formula_pairs=accepted, **options)
        marf.save(path)

    made = {"backbone": backbone, "config": config.to_dict(), "training": training.to_dict() if trained else {}}
    if kind is not MaRF:
        made["kind"] = kind.__name__
    marf = kind.from_pretrained(parts.stage("marf", build, trained=trained, **made))
    marf.context.cache = _cache(parts)
    return marf


def _scorer(parts: AnswerParts, marf: MaRF, name: str) -> pt.Transformer:
    """Return the scorer of a ranking by a model: from an index of all answers, or at the paper's size from texts.

    There the views of all answers would need 2.9 TB, and the candidates of all topics are fewer than the answers.
    """
    if parts.preset != "mini":
        marf.context.cache = None
        return parts.answer_texts() >> marf.text_scorer(device=parts.device)
    return marf.query_encoder(device=parts.device) >> _index(parts, marf, name).scorer()


def _index(parts: AnswerParts, marf: MaRF, name: str) -> MaRFIndex:
    from mathamr_systems.marf import MaRFIndex

    shared = parts.shared

    def build(path: Path) -> None:
        indexer = MaRFIndex(path).indexer("overwrite", verbose=shared.verbose, total=shared.collection.count_answers())
        answers = shared.answer_documents()
        (marf.doc_encoder(device=parts.device) >> indexer).index(answers, batch_size=256)

    return MaRFIndex(parts.stage("marf-index", build, model=marf.identity, formulas=name))


def _context_only(parts: AnswerParts) -> pt.Transformer:
    """Rank by the context encoder: an untrained model in which each answer has one view."""
    marf = parts.once("context only", lambda: marf_model(parts, trained=False, formulas=1))
    if parts.preset != "mini":
        return parts.shared.tuned.retriever(DEPTH) >> _scorer(parts, marf, "none")
    return marf.query_encoder(device=parts.device) >> _index(parts, marf, "none").retriever(num_results=DEPTH)


def _fused(parts: AnswerParts) -> pt.Transformer:
    return _reranking(parts, parts.once(("MaRF", parts.seed), lambda: marf_model(parts)), "own")


def _context_as_keys(parts: AnswerParts) -> pt.Transformer:
    """Rank by a model whose context attends to itself: as many parameters, no formulas."""
    marf = parts.once(("MaRF of contexts", parts.seed), lambda: marf_model(parts, keys="context"))
    return _reranking(parts, marf, "none")


def _other_formulas(parts: AnswerParts) -> pt.Transformer:
    """Rank by MaRF with formulas of other posts, of the same lengths."""

    def make() -> MaRF:
        return with_other_formulas(marf_model(parts), list(_training_data(parts).posts.values()))

    return _reranking(parts, parts.once(("MaRF of other formulas", parts.seed), make), "others")


def _reranking(parts: AnswerParts, marf: MaRF, name: str) -> pt.Transformer:
    """Order the best answers of the context encoder by a model; those after them follow."""
    found = parts.ranking(CONTEXT)[["qid", "docno", "score", "rank"]]
    first = pt.apply.generic(lambda topics: topics.merge(found, on="qid"))
    return (first % RERANKED >> _scorer(parts, marf, name)) ^ first


def with_other_formulas(marf: MaRF, posts: Sequence[MathPost]) -> MaRF:
    """Change the input of a model: each formula becomes one of another post, of the same or the nearest length."""
    pool = sorted({formula for reading in marf.readings(posts) for formula in reading.formulas}, key=len)
    lengths, read = list(map(len, pool)), marf.readings

    def other(formula: Symbols, own: MaRFPost) -> Symbols:
        first, last = bisect.bisect_left(lengths, len(formula)), bisect.bisect_right(lengths, len(formula))
        first, last = (first, last) if last - first > 1 else (max(0, first - 5), min(len(pool), last + 5))
        start = sum(map(ord, " ".join(formula))) % max(1, last - first)
        turned = [*pool[first + start : last], *pool[first : first + start]]
        return next((one for one in turned if one not in own.formulas), formula)

    def readings(posts: Sequence[MathPost]) -> list[MaRFPost]:
        return [replace(own, formulas=tuple(sorted({other(one, own) for one in own.formulas}))) for own in read(posts)]

    marf.readings = readings  # type: ignore[method-assign]
    return marf


def _over_trees(parts: AnswerParts, others: bool) -> pt.Transformer:
    """Rank by MaRF over In+Out's vectors of symbols, with a document's own formulas or other posts' formulas."""

    def make() -> MaRF:
        from .marf_trees import SIZES, TreeMaRF

        marf = marf_model(parts, TreeMaRF, **SIZES)
        return with_other_formulas(marf, list(_training_data(parts).posts.values())) if others else marf

    marf = parts.once(("MaRF over trees", others, parts.seed), make)
    return _reranking(parts, marf, "others" if others else "own")


def _posts(parts: AnswerParts, pairs: Sequence[tuple[str, str]]) -> dict[str, MathPost]:
    names = {name for pair in pairs for name in pair}
    posts = (post for post in parts.shared.collection.posts() if post.id in names)
    return {post.id: document_post({"docno": post.id, "title": post.title, "html": post.body}) for post in posts}


def _cache(parts: AnswerParts) -> Path:
    return parts.shared.workdir / "marf-context.sqlite"


def by_formula_share(outcome: Outcome) -> Mapping[str, pd.DataFrame]:
    """Make the table of results by the share of formula tokens in the question, averaged over seeds."""
    return {
        f"{PAPER_NAMES[measure]} by share of formula tokens": _share_table(outcome, topics, measure)
        for topics, measure in ((list(outcome.setting.years), MAIN), ([KNOWN_ITEM], KNOWN[0]))
    }


def _share_table(outcome: Outcome, topics: Sequence[str], measure: str) -> pd.DataFrame:
    shares = {
        (of, str(row["qid"])): formula_share(query_post(row))
        for of in topics
        for row in documents(outcome.parts.at(of=of).found.topics)
    }
    names = [row.name for row in outcome.measured(known=topics == [KNOWN_ITEM])]
    means = {
        name: outcome.results.by_topic((REFERENCE, name), topics, measure).mean(axis=1).to_dict() for name in names
    }
    lines = []
    for share in SHARES:
        chosen = [topic for topic, found in shares.items() if found > share or not share]
        values = {
            name: float(np.mean([of.get(topic, 0.0) for topic in chosen])) for name, of in means.items() if chosen
        }
        lines.append({"formula tokens": f"> {share:.0%}", "questions": len(chosen), **values})
    return pd.DataFrame(lines)


CONTEXT = AnswerSystem("context encoder of MaRF", _context_only, sized=True)
OTHERS = "MaRF, formulas of other posts"
KEYS = AnswerSystem("MaRF, context in place of formulas", _context_as_keys, against=(CONTEXT.name,), trained=True)
MARF = AnswerSystem(
    "MaRF",
    _fused,
    against=(CONTEXT.name, KEYS.name, OTHERS, TOKEN_ROW.name, SINGLE_ROW.name, MATHAMR_ROW.name),
    trained=True,
)
OTHER_FORMULAS = AnswerSystem(OTHERS, _other_formulas, against=(CONTEXT.name,), trained=True)
TREES = AnswerSystem(
    "MaRF over trees", partial(_over_trees, others=False), against=(CONTEXT.name, MARF.name), trained=True
)
TREES_OF_OTHERS = AnswerSystem(
    "MaRF over trees, formulas of other posts", partial(_over_trees, others=True), against=(TREES.name,), trained=True
)
STUDY = Study(
    "answers/marf",
    "MaRF: formulas fused into the tokens of the text",
    "answers",
    published=(("wang", ("1", "3", "4", "5")),),
    systems=(CONTEXT, KEYS, OTHER_FORMULAS, MARF, TREES, TREES_OF_OTHERS),
    notes=(
        f"MaRF and its controls re-rank the best {RERANKED} answers of the context encoder; the others follow in "
        "its order. The context encoder is the published MiniLM, its rows mapped to the principal directions of "
        "the training posts' rows.",
        "Control (a) gives the trained model formulas of other posts, of the same lengths; control (b) is trained with "
        "the context itself instead of formulas. Formulas explain MaRF's gain only if it is above both.",
    ),
    more=by_formula_share,
)
