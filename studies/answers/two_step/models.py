"""The models of the study, trained once for each seed and kept in the work folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pyterrier_mathamr.experiments.sources import read_training_pairs
from pyterrier_mathamr.systems.two_step import FitOptions
from pyterrier_mathamr.systems.two_step.qasim import QASim
from pyterrier_mathamr.systems.two_step.qqsim import QQSim
from pyterrier_mathamr.systems.two_step.texts import Form, View
from studies.answers.parts import AnswerParts

from .material import (
    LinkedTexts,
    answer_texts,
    judged,
    linearised,
    linked_texts,
    question_texts,
    topic_frame,
)
from .recipes import Recipe, recipe_of

_FITS = 1.0


def recipe(parts: AnswerParts) -> Recipe:
    """Return the recipe of the study."""
    return recipe_of(parts.preset, parts.changes, max(parts.seed, 0))


def question_model(parts: AnswerParts, view: View, form: Form = "raw") -> QQSim:
    """Return the model of a part of questions, trained on all links, then on duplicates."""
    return parts.once(
        ("QQSim", view, form, parts.seed), lambda: QQSim.from_pretrained(_question_path(parts, view, form))
    )


def _question_path(parts: AnswerParts, view: View, form: Form) -> Path:
    plan = recipe(parts)
    if form == "mathamr":
        start = _question_path(parts, "title", "raw")
        return _trained(parts, "qqsim-mathamr", start, "title", "mathamr", plan.parts, duplicates=True)
    first = _trained(parts, "qqsim-links", plan.questions, "title", "raw", plan.links, duplicates=False)
    if view == "title":
        return _trained(parts, "qqsim-title", first, "title", "raw", plan.duplicates, duplicates=True)
    return _trained(parts, f"qqsim-{view}", first, view, "raw", plan.parts, duplicates=False)


def _trained(
    parts: AnswerParts, name: str, start: str | Path, view: View, form: Form, options: FitOptions, *, duplicates: bool
) -> Path:
    def build(path: Path) -> None:
        links = [link for link in linked_texts(parts) if link.kind == "duplicate" or not duplicates]
        model = QQSim.new(start, view, form, device=parts.device)
        pairs = {
            held_out: [_pair(parts, link, view, form) for link in links if link.held_out == held_out]
            for held_out in (False, True)
        }
        model.fit(pairs[False], options, validation=pairs[True], verbose=parts.shared.verbose)
        model.save(path)

    return parts.stage(name, build, trained=True, options=asdict(options))


def _pair(parts: AnswerParts, link: LinkedTexts, view: View, form: Form) -> tuple[str, str]:
    if form == "mathamr":
        texts = linearised(parts)
        left, right = (texts.get(f"title {name}", "") for name in link.names)
        return left, right
    return link.left.part(view), link.right.part(view)


def answer_model(parts: AnswerParts, form: Form = "raw", *, permuted: bool = False) -> QASim:
    """Return the model of question and answer for the topics of ``parts``, trained on the judgments of other years."""
    key = ("QASim", form, permuted, parts.of, parts.seed)
    return parts.once(key, lambda: QASim.from_pretrained(answer_model_path(parts, form, permuted=permuted)))


def answer_model_path(parts: AnswerParts, form: Form = "raw", *, permuted: bool = False) -> Path:
    """Train :func:`answer_model`, and return where it is kept."""
    plan, start = recipe(parts), _pair_model(parts)

    def build(path: Path) -> None:
        model = QASim.new(start, "cross", form, device=parts.device)
        examples = judged_examples(parts, form)
        if permuted:
            order = np.random.default_rng(parts.seed).permutation(len(examples))
            targets = [examples[i][2] for i in order.tolist()]
            examples = [
                (question, answer, target) for (question, answer, _), target in zip(examples, targets, strict=True)
            ]
        history = model.fit(examples, plan.judgments, verbose=parts.shared.verbose)
        model.save(path)
        _write_history(path, history)

    settings: dict[str, Any] = {"trained on": list(parts.other_years), "form": form, "permuted": permuted}
    return parts.stage("qasim", build, trained=True, options=asdict(plan.judgments), **settings)


def judged_examples(parts: AnswerParts, form: Form = "raw") -> list[tuple[str, str, float]]:
    """Read questions, answers and targets of the other years' judgments."""
    found: list[tuple[str, str, float]] = []
    for year in parts.other_years:
        if form == "mathamr":
            texts = linearised(parts)
            found += [
                (texts[f"body {qid}"], texts[f"body {docno}"], target) for qid, docno, target in judged(parts, year)
            ]
        else:
            asked = topic_frame(parts, year).set_index("qid")["query"]
            answers = answer_texts(parts)
            found += [(asked[qid], answers[docno], target) for qid, docno, target in judged(parts, year)]
    return found


def _pair_model(parts: AnswerParts) -> Path:
    """Train the model that judgments start from: on questions with their own answers and with random ones."""
    parts = parts.at(seed=0)
    plan = recipe(parts)

    def build(path: Path) -> None:
        questions, answers = question_texts(parts), answer_texts(parts)
        pairs = read_training_pairs(parts.shared.collection.path).train
        names = [answer for _, answer in pairs]
        drawn = np.random.default_rng(plan.pairs.seed).permutation(len(names)).tolist()
        examples = [(questions[question].whole, answers[answer], _FITS) for question, answer in pairs]
        own = set(pairs)
        examples += [
            (questions[question].whole, answers[names[i]], 0.0)
            for (question, _), i in zip(pairs, drawn, strict=True)
            if (question, names[i]) not in own
        ]
        model = QASim.new(plan.answers, seed=plan.pairs.seed, device=parts.device)
        model.fit(examples, plan.pairs, folds=None, verbose=parts.shared.verbose)
        model.save(path)

    return parts.stage("qasim-pairs", build, trained=True, options=asdict(plan.pairs), model=plan.answers)


def _write_history(path: Path, history: Sequence[Any]) -> None:
    from pyterrier_mathamr._common.records import write_json

    write_json(path / "history.json", [epoch._asdict() for epoch in history])
