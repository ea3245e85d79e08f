"""The study ``answers/two-step``: questions first, then their answers.

::

    Recipe ──▶ QQSim and QASim, trained once for each seed ◀── texts, links, judgments
                 ├──▶ similar questions, and their answers
                 └──▶ systems: rankings of answers        of judged candidates, as the measures see them

No training data of the models has a question of the test part, nor a topic except from other years.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

from mathamr_systems import FormulaAnswers, MathSEScore, RankingSVM, TimesQQ, TwoStepFeatures
from mathamr_systems.experiments.systems import DEPTH, AnswerParts, AnswerSystem
from mathamr_systems.two_step import FitOptions, linearise
from mathamr_systems.two_step.similarity import TARGETS, Excerpt, QASim, QQSim, TextForm
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import with_objects
from pyterrier_mathamr.arqmath import Link, known_item_split, read_training_pairs
from pyterrier_mathamr.fusion import ConvexFusion, ModifiedRRF
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.posts import MathPost, plain_text, post_from_any, post_from_html
from pyterrier_mathamr.sparse import BM25Index, TokenOptions
from pyterrier_mathamr.store import replace_file
from studies.answers.rows import SINGLE_ROW, TUNED_ROW


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the models of the study are trained."""

    questions: str  # what QQSim starts from
    answers: str  # what QASim starts from
    links: FitOptions  # of QQSim on duplicate and related questions
    duplicates: FitOptions  # of QQSim, next on only duplicates
    parts: FitOptions  # of the models of bodies, and of linearized titles, after that
    pairs: FitOptions | None  # of QASim on questions and their own answers, before judgments; None: it is left out
    judgments: FitOptions  # of QASim on judgments
    first: Excerpt  # the input of the first model of questions
    related: bool  # the models of bodies train on related questions, too
    c: tuple[float, ...] = (0.01, 1.0, 100.0)  # of the ranking SVM; chosen on the topics that it is fitted to
    depth: int | None = None  # candidates of a topic to rank, by their questions; None: only the judged ones


_MINI = FitOptions(epochs=1, batch_size=32, learning_rate=5e-5, layers=2)
_FULL = FitOptions(epochs=20)

RECIPES: Mapping[str, Recipe] = {
    "mini": Recipe(
        questions="all-MiniLM-L6-v2",
        answers="all-MiniLM-L6-v2",
        links=_MINI,
        duplicates=_MINI,
        parts=_MINI,
        pairs=_MINI,
        judgments=replace(_MINI, epochs=4),
        first="title",  # few linked questions of arqmath-mini have a body
        related=True,
    ),
    "full": Recipe(
        questions="hf:sentence-transformers/distilbert-base-nli-stsb-quora-ranking",
        answers="hf:cross-encoder/ms-marco-TinyBERT-L-6",
        links=_FULL,
        duplicates=_FULL,
        parts=_FULL,
        pairs=None,
        judgments=replace(_FULL, epochs=50),
        first="whole",
        related=False,
        depth=10_000,  # all answers to a thousand questions
    ),
}

_OPTIONS = {"epochs", "batch_size", "learning_rate", "layers"}
_TRAININGS = ("links", "duplicates", "parts", "pairs", "judgments")


def recipe_of(preset: str, changes: Mapping[str, Any], seed: int) -> Recipe:
    """Return the recipe of a preset with the options set by hand: ``c``, ``depth``, or options for all trainings."""
    if unknown := [name for name in changes if name not in _OPTIONS | {"c", "depth"}]:
        raise ConfigError("set", unknown[0], " or ".join(sorted(_OPTIONS | {"c", "depth"})))
    recipe = RECIPES[preset]
    own = {name: value for name, value in changes.items() if name in _OPTIONS}
    for name in _TRAININGS:
        if (options := getattr(recipe, name)) is not None:
            recipe = replace(recipe, **{name: replace(options, **own, seed=seed)})
    recipe = replace(recipe, c=(changes["c"],)) if "c" in changes else recipe
    return replace(recipe, depth=changes["depth"]) if "depth" in changes else recipe


_BATCH = 64


class QuestionTexts(NamedTuple):
    """The texts of a question, empty if the collection lacks them; formulas as LaTeX between dollars."""

    title: str
    body: str

    @property
    def whole(self) -> str:
        """Title and body."""
        return "\n".join(filter(None, self))

    def part(self, view: Excerpt) -> str:
        """Return the input of a model of a view; the model cuts bodies."""
        return self.title if view == "title" else self.whole if view == "whole" else self.body


class LinkedTexts(NamedTuple):
    """Two linked questions."""

    kind: str  # duplicate or related
    held_out: bool  # a question of the validation part is among them: to choose by, not to train on
    names: tuple[str, str]
    left: QuestionTexts
    right: QuestionTexts


class Judged(NamedTuple):
    """A topic, an answer, and the training target of its grade."""

    topic: str
    answer: str
    target: float


def question_texts(parts: AnswerParts) -> dict[str, QuestionTexts]:
    """Read the questions of the collection."""

    def read() -> dict[str, QuestionTexts]:
        return {
            post.id: QuestionTexts(plain_text(post_from_html(post.title)), plain_text(post_from_html(post.body)))
            for post in parts.shared.collection.questions()
        }

    return parts.once("question texts", read)


def topic_frame(parts: AnswerParts, year: str) -> pd.DataFrame:
    """Read all topics of a year: ``qid``, ``query``, ``title``, ``body`` and ``tags``."""
    topics = list(parts.shared.collection.topics(year))
    columns = {
        "qid": [topic.id for topic in topics],
        "query": [plain_text(post_from_any(topic.body, topic.title)) for topic in topics],
        "title": [topic.title for topic in topics],
        "body": [topic.body for topic in topics],
        "tags": [" ".join(topic.tags) for topic in topics],
    }
    return pd.DataFrame(columns)


def link_name(number: int) -> str:
    """Name a linked question; the collection has only its title."""
    return f"link {number}"


def linked_texts(parts: AnswerParts) -> list[LinkedTexts]:
    """Read the links between questions, except of questions of the test part."""

    def read() -> list[LinkedTexts]:
        known, found = question_texts(parts), []
        for number, link in enumerate(parts.shared.collection.links()):
            splits = {known_item_split(link.question_id), known_item_split(link.related_id)}
            if link.question_id in known and link.question_id != link.related_id and "test" not in splits:
                name, right = _target(number, link, known)
                left = known[link.question_id]
                held_out = "validation" in splits
                found.append(LinkedTexts(link.kind, held_out, (link.question_id, name), left, right))
        return found

    return parts.once("linked texts", read)


def _target(number: int, link: Link, known: dict[str, QuestionTexts]) -> tuple[str, QuestionTexts]:
    if link.related_id in known:
        return link.related_id, known[link.related_id]
    return link_name(number), QuestionTexts(link.title, "")


def judged(parts: AnswerParts, year: str) -> list[Judged]:
    """Read the judgments of a year whose answers are in the collection."""
    answers = parts.shared.bm25
    return [
        Judged(row.query_id, row.doc_id, TARGETS[min(row.relevance, 3)])
        for row in parts.shared.collection.qrels(year)
        if row.doc_id in answers
    ]


def answer_texts(parts: AnswerParts) -> dict[str, str]:
    """Read the answers of the collection."""
    return parts.once(
        "answer texts, plain",
        lambda: {post.id: plain_text(post_from_html(post.body)) for post in parts.shared.collection.answers()},
    )


def linearized(parts: AnswerParts) -> dict[str, str]:
    """Return linearized graphs: of titles as ``title ID``, of bodies as ``body ID``, ID of a post, topic or link."""

    def build(path: Path) -> None:
        found: dict[str, str] = {}
        waiting: list[tuple[str, MathPost]] = []
        for named in _posts(parts):
            waiting.append(named)
            if len(waiting) == _BATCH:
                found |= _linearized(waiting, parts)
                waiting = []
        found |= _linearized(waiting, parts)
        replace_file(path, gzip.compress(json.dumps(found).encode(), compresslevel=1, mtime=0))

    path = parts.stage("linearised", build, parser="dependency", years=list(parts.years))
    read: dict[str, str] = parts.once("linearised", lambda: json.loads(gzip.decompress(path.read_bytes())))
    return read


def _linearized(named: list[tuple[str, MathPost]], parts: AnswerParts) -> dict[str, str]:
    graphs = GraphBuilder(formulas="opt", store=parts.shared.formulas, batch_size=_BATCH).build(dict(named))
    return {graph.id: "" if graph.is_empty else linearise(graph) for graph in graphs}


def _posts(parts: AnswerParts) -> Iterator[tuple[str, MathPost]]:
    collection = parts.shared.collection
    known = set()
    for question in collection.questions():
        known.add(question.id)
        yield f"title {question.id}", post_from_html(question.title)
        yield f"body {question.id}", post_from_html(question.body)
    for answer in collection.answers():
        yield f"body {answer.id}", post_from_html(answer.body)
    for number, link in enumerate(collection.links()):
        if link.related_id not in known and known_item_split(link.related_id) != "test":
            yield f"title {link_name(number)}", post_from_any(link.title)
    for year in parts.years:
        for topic in collection.topics(year):
            yield f"title {topic.id}", post_from_any(topic.title)
            yield f"body {topic.id}", post_from_any(topic.body)


_FITS = 1.0


def recipe(parts: AnswerParts) -> Recipe:
    """Return the recipe of the study."""
    return recipe_of(parts.preset, parts.changes, max(parts.seed, 0))


def _of_models(parts: AnswerParts) -> AnswerParts:
    """Return the same without the options that change no model, so that one training serves all of them."""
    return replace(parts, changes={name: value for name, value in parts.changes.items() if name in _OPTIONS})


def question_model(parts: AnswerParts, view: Excerpt, form: TextForm = "raw") -> QQSim:
    """Return the model that reads one view of questions; :class:`Recipe` defines its training data."""
    return parts.once(
        ("QQSim", view, form, parts.seed), lambda: QQSim.from_pretrained(_question_path(parts, view, form))
    )


def _question_path(parts: AnswerParts, view: Excerpt, form: TextForm) -> Path:
    plan = recipe(parts)
    if form == "mathamr":
        start = _question_path(parts, "title", "raw")
        return _trained(parts, "qqsim-mathamr", start, "title", "mathamr", plan.parts, duplicates=True)
    first = _trained(parts, "qqsim-links", plan.questions, plan.first, "raw", plan.links, duplicates=False)
    if view == "title":
        return _trained(parts, "qqsim-title", first, "title", "raw", plan.duplicates, duplicates=True)
    return _trained(parts, f"qqsim-{view}", first, view, "raw", plan.parts, duplicates=not plan.related)


def _trained(
    parts: AnswerParts,
    name: str,
    start: str | Path,
    view: Excerpt,
    form: TextForm,
    options: FitOptions,
    *,
    duplicates: bool,
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

    return _of_models(parts).stage(name, build, trained=True, options=asdict(options))


def _pair(parts: AnswerParts, link: LinkedTexts, view: Excerpt, form: TextForm) -> tuple[str, str]:
    if form == "mathamr":
        texts = linearized(parts)
        left, right = (texts.get(f"title {name}", "") for name in link.names)
        return left, right
    return link.left.part(view), link.right.part(view)


def answer_model(parts: AnswerParts, form: TextForm = "raw", *, permuted: bool = False) -> QASim:
    """Return the model of question and answer for the topics of ``parts``, trained on the judgments of other years."""
    key = ("QASim", form, permuted, parts.of, parts.seed)
    return parts.once(key, lambda: QASim.from_pretrained(answer_model_path(parts, form, permuted=permuted)))


def answer_model_path(parts: AnswerParts, form: TextForm = "raw", *, permuted: bool = False) -> Path:
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
    return _of_models(parts).stage("qasim", build, trained=True, options=asdict(plan.judgments), **settings)


def judged_examples(parts: AnswerParts, form: TextForm = "raw") -> list[tuple[str, str, float]]:
    """Read questions, answers and targets of the other years' judgments."""
    found: list[tuple[str, str, float]] = []
    for year in parts.other_years:
        if form == "mathamr":
            texts = linearized(parts)
            found += [
                (texts[f"body {qid}"], texts[f"body {docno}"], target) for qid, docno, target in judged(parts, year)
            ]
        else:
            asked = topic_frame(parts, year).set_index("qid")["query"]
            answers = answer_texts(parts)
            found += [(asked[qid], answers[docno], target) for qid, docno, target in judged(parts, year)]
    return found


def _pair_model(parts: AnswerParts) -> str | Path:
    """If requested, train the model from which judgments start on questions with their own and with random answers."""
    parts = parts.at(seed=0)
    start, options = recipe(parts).answers, recipe(parts).pairs
    if options is None:
        return start

    def build(path: Path) -> None:
        questions, answers = question_texts(parts), answer_texts(parts)
        pairs = read_training_pairs(parts.shared.collection.path).train
        names = [answer for _, answer in pairs]
        drawn = np.random.default_rng(options.seed).permutation(len(names)).tolist()
        examples = [(questions[question].whole, answers[answer], _FITS) for question, answer in pairs]
        own = set(pairs)
        examples += [
            (questions[question].whole, answers[names[i]], 0.0)
            for (question, _), i in zip(pairs, drawn, strict=True)
            if (question, names[i]) not in own
        ]
        model = QASim.new(start, seed=options.seed, device=parts.device)
        model.fit(examples, options, folds=None, verbose=parts.shared.verbose)
        model.save(path)

    return _of_models(parts).stage("qasim-pairs", build, trained=True, options=asdict(options), model=start)


def _write_history(path: Path, history: Sequence[Any]) -> None:
    rows = json.dumps([epoch._asdict() for epoch in history], indent=2)
    replace_file(path / "history.json", f"{rows}\n".encode())


RAW: tuple[Excerpt, ...] = ("title", "head", "tail")


def candidates(parts: AnswerParts, form: TextForm = "raw") -> pt.Transformer:
    """Return the answers of similar questions, with ``qq_score``; topics get their tags."""
    views: tuple[Excerpt, ...] = RAW if form == "raw" else ("title",)
    systems = [question_search(parts, question_model(parts, view, form)) for view in views]
    questions = ModifiedRRF(systems, num_results=DEPTH) if len(systems) > 1 else systems[0]
    return _with_tags(parts) >> questions >> parts.threads.answers()


def judged_candidates(parts: AnswerParts, form: TextForm = "raw") -> pt.Transformer:
    """Return the candidates that are judged for their topic."""
    year = parts.of
    judged = {(row.query_id, row.doc_id) for row in parts.shared.collection.qrels(year)}

    def keep(ranking: pd.DataFrame) -> pd.DataFrame:
        kept = [pair in judged for pair in zip(ranking["qid"], ranking["docno"], strict=True)]
        rows: pd.DataFrame = ranking[kept].reset_index(drop=True)
        return rows.assign(rank=rows.groupby("qid").cumcount())

    return candidates(parts, form) >> pt.apply.generic(keep)


def ranked_candidates(parts: AnswerParts, form: TextForm = "raw") -> pt.Transformer:
    """Return the candidates that are ranked: the judged ones, which is all that primed measures see, or the first."""
    depth = recipe(parts).depth
    return judged_candidates(parts, form) if depth is None else candidates(parts, form) % depth


def question_search(parts: AnswerParts, model: QQSim) -> pt.Transformer:
    """Return a search for questions by one vector each."""
    graphs = linearized(parts) if model.form == "mathamr" else {}

    def add(topics: pd.DataFrame) -> pd.DataFrame:
        texts = [
            graphs.get(f"title {row['qid']}", "") if graphs else model.text(row) for row in topics.to_dict("records")
        ]
        rows = model.encode(texts)
        return with_objects(topics, query_embs=[row[None][: int(np.any(row))] for row in rows])

    return pt.apply.generic(add) >> question_index(parts, model, graphs).single_vector(num_results=DEPTH)


def question_index(parts: AnswerParts, model: QQSim, graphs: Mapping[str, str]) -> MathAMRIndex:
    """Index the questions of the collection by the vector of a model."""

    def build(path: Path) -> None:
        questions = question_texts(parts)
        names = list(questions)
        rows = model.encode(
            [graphs.get(f"title {name}", "") if graphs else questions[name].part(model.view) for name in names]
        )
        documents = ({"docno": name, "doc_embs": row[None]} for name, row in zip(names, rows, strict=True))
        MathAMRIndex(path).indexer("overwrite").index(documents)

    return MathAMRIndex(parts.stage("qqsim-index", build, model=model.identity()))


def _with_tags(parts: AnswerParts) -> pt.Transformer:
    tags: dict[str, str]
    if parts.known:
        tags = {post.id: " ".join(post.tags) for post in parts.shared.collection.questions()}
    else:
        topics = topic_frame(parts, parts.of)
        tags = dict(zip(topics["qid"], topics["tags"], strict=True))
    return pt.apply.tags(lambda row: tags.get(row["qid"], ""))


def _qqsim(parts: AnswerParts) -> pt.Transformer:
    return candidates(parts)


def _math_se(parts: AnswerParts) -> pt.Transformer:
    return ranked_candidates(parts) >> MathSEScore(parts.threads) % DEPTH


def _qasim(form: TextForm) -> Callable[[AnswerParts], pt.Transformer]:
    def make(parts: AnswerParts) -> pt.Transformer:
        return ranked_candidates(parts, form) >> qasim_scorer(parts, form) >> TimesQQ() % DEPTH

    return make


def qasim_scorer(parts: AnswerParts, form: TextForm, model_of: AnswerParts | None = None) -> pt.Transformer:
    """Return the scorer by QASim, whose texts are read from the collection."""
    model = answer_model(model_of or parts, form)
    topics = topic_frame(parts, parts.of)
    if form == "mathamr":
        graphs = linearized(parts)
        questions = {qid: graphs[f"body {qid}"] for qid in topics["qid"]}
        texts = {docno: graphs[f"body {docno}"] for docno in answer_texts(parts)}
    else:
        questions, texts = dict(zip(topics["qid"], topics["query"], strict=True)), answer_texts(parts)

    def score(ranking: pd.DataFrame) -> pd.DataFrame:
        pairs = [(questions[qid], texts[docno]) for qid, docno in zip(ranking["qid"], ranking["docno"], strict=True)]
        return ranking.assign(score=model.scores(pairs))

    return pt.apply.generic(score)


def ranking_svm(parts: AnswerParts) -> RankingSVM:
    """Fit the ranking SVM on the judged candidates of the other years, by the QASim that was trained on them, too."""

    def fit() -> RankingSVM:
        rankings, qrels = [], []
        for year in parts.other_years:
            own = parts.at(of=year)
            topics = topic_frame(own, year).drop(columns="tags")
            rankings.append((judged_candidates(own) >> _features(own, parts))(topics))
            rows = [(row.query_id, row.doc_id, row.relevance) for row in parts.shared.collection.qrels(year)]
            qrels.append(pd.DataFrame(rows, columns=["qid", "docno", "label"]))
        svm = RankingSVM(C=recipe(parts).c, names=TwoStepFeatures.names)
        return svm.fit_judged(pd.concat(rankings), pd.concat(qrels))

    return parts.once(("SVM-rank", parts.of, parts.seed), fit)


def _features(parts: AnswerParts, model_of: AnswerParts) -> TwoStepFeatures:
    return TwoStepFeatures(parts.threads, qasim_scorer(parts, "raw", model_of))


def _svm(parts: AnswerParts) -> pt.Transformer:
    learned = pt.ltr.apply_learned_model(ranking_svm(parts), form="ltr")
    return ranked_candidates(parts) >> _features(parts, parts) >> learned % DEPTH


def _rrf(parts: AnswerParts) -> pt.Transformer:
    return ModifiedRRF([parts.ranking(MATH_SE), parts.ranking(QASIM)])


def _classic_rrf(parts: AnswerParts) -> pt.Transformer:
    return ModifiedRRF([parts.ranking(MATH_SE), parts.ranking(QASIM)], classic=True)


def _amr_svm(parts: AnswerParts) -> pt.Transformer:
    return ModifiedRRF([parts.ranking(SVM), parts.ranking(AMR)], normalise="min-max")


def _tf_idf(parts: AnswerParts) -> pt.Transformer:
    def build(path: Path) -> None:
        answers = parts.shared.answer_documents()
        tokens = TokenOptions(stop_words=False, stem=False)
        BM25Index(path).indexer("overwrite", tokens=tokens).index(answers)

    return BM25Index(parts.stage("plain-tokens", build)).retriever(DEPTH, weighting="tf-idf")


def _tangent(parts: AnswerParts) -> pt.Transformer:
    return FormulaAnswers(parts.shared.tangent, parts.threads, DEPTH, store=parts.topic_trees())


def _tf_idf_tangent(parts: AnswerParts) -> pt.Transformer:
    return ConvexFusion(parts.ranking(TF_IDF), parts.ranking(TANGENT), alpha=0.5, num_results=DEPTH)


QQSIM = AnswerSystem("QQSim", _qqsim, (SINGLE_ROW.name,), trained=True, known=False)
_OF_JUDGED = partial(AnswerSystem, trained=True, known=False, linked=False)
MATH_SE = _OF_JUDGED("MathSE", _math_se)
QASIM = _OF_JUDGED("QASim · QQSim", _qasim("raw"), ("MathSE", "QQSim"), fitted=True)
RRF = _OF_JUDGED("RRF of MathSE and QASim", _rrf, (MATH_SE.name, QASIM.name), fitted=True)
CLASSIC = _OF_JUDGED("the same, classic RRF", _classic_rrf, (RRF.name,), fitted=True)
SVM = _OF_JUDGED("SVM-rank", _svm, (QASIM.name,), fitted=True)
AMR = _OF_JUDGED("QASim · QQSim of MathAMR", _qasim("mathamr"), (QASIM.name,), fitted=True)
AMR_SVM = _OF_JUDGED("RRF of MathAMR and SVM-rank", _amr_svm, (SVM.name,), fitted=True)
TF_IDF = AnswerSystem("TF-IDF", _tf_idf, (TUNED_ROW.name,))
TANGENT = AnswerSystem("Tangent", _tangent)
TF_IDF_TANGENT = AnswerSystem("TF-IDF and Tangent", _tf_idf_tangent, (TF_IDF.name,))

ROWS = (TF_IDF, TANGENT, TF_IDF_TANGENT, QQSIM, MATH_SE, QASIM, RRF, CLASSIC, SVM, AMR, AMR_SVM)
