"""QQSim, how similar two questions are, and QASim, how well an answer fits a question, by language models.

::

    raw        title, body       formulas as $latex$
    mathamr    graph             its labels, linearized
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt
import torch
from torch import Tensor

from mathamr_systems.language_models import mixed
from pyterrier_mathamr.explain import AskedError, Explanation, Part, QueryRow, read_asked
from pyterrier_mathamr.extending import (
    TOPIC_FORMS,
    ConfigError,
    Pair,
    Side,
    Transformer,
    at_least,
    batches_by_size,
    check_topic,
    distinct_queries,
    empty_output,
    first_values,
    is_blank,
    is_missing,
    method,
    one_of,
    ordered_by_score,
    placeholder_number,
    progress,
    require,
    seeded,
    text_of,
)
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.model import TrainingError
from pyterrier_mathamr.posts import MathPost, plain_text, post_from_any, post_from_html

from .networks import (
    BiEncoder,
    EncoderKind,
    Epoch,
    FitOptions,
    InMixedPrecision,
    PairLosses,
    QuestionBatch,
    TwoStepModel,
    load_network,
    random_batches,
)

Order = Literal["role", "written"]

_MATH = "math"
_TREE, _OTHER_TREE = ":opt", ":slt"


def linearise(graph: MathAMRGraph, *, order: Order = "role", math_word: bool = True, latex: bool = False) -> str:
    """Write the labels of a graph depth first, without its edges.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), sections 4.4 and 5.3.2. A
    node that is reached twice is written once; constants are written; the labels of operator trees lose their type
    (``U!plus`` becomes ``plus``). Layout trees are left out.

    Args:
        graph: a graph built with ``formulas="opt"``.
        order: of the children of a node. ``"role"``: by the name of their role without case, so that ``:op10`` comes
            before ``:op2``, and equal roles in reverse writing order, as in the published strings; ``"written"``:
            in writing order.
        math_word: write the word ``math`` for each placeholder, before its tree, as the dissertation's example
            does; the published strings do not.
        latex: write the LaTeX of each formula instead of its operator tree.

    Returns:
        The labels, separated by spaces.

    Raises:
        ConfigError: the order is unknown.
    """
    one_of(*get_args(Order)).check("order", order)
    amr, words = graph.amr, list[str]()
    children: list[list[tuple[str, int]]] = [[] for _ in amr.labels]
    for source, role, target in amr.edges:
        children[source].append((role, target))
    if order == "role":
        for edges in children:
            edges.reverse()
            edges.sort(key=lambda edge: edge[0].lower())  # stable: of equal roles the last written stays first
    seen, waiting = bytearray(len(amr.labels)), [(0, False)]
    while waiting:  # no recursion: formulas may be thousands of symbols deep
        node, in_tree = waiting.pop()
        if seen[node]:
            continue
        seen[node] = True
        label = amr.labels[node]
        number = -1 if in_tree else placeholder_number(label)
        is_formula = 0 <= number < graph.n_formulas
        if is_formula:
            words += [_MATH] * math_word
            words += list(graph.latex[number : number + 1]) * latex
        else:
            words.append(label.partition("!")[2] or label if in_tree else label)
        for role, child in reversed(children[node]):
            if not (is_formula and (role == _OTHER_TREE or (latex and role == _TREE))):
                waiting.append((child, in_tree or (is_formula and role == _TREE)))
    return " ".join(word for word in words if word)


TextForm = Literal["raw", "mathamr"]
"""Texts with LaTeX between dollars, or linearized MathAMR graphs."""

Excerpt = Literal["title", "head", "tail", "whole"]
"""The part of a question to read: its title, the beginning or the end of its body, or title and body."""

TopicRow = Mapping[Any, Any]


def question_text(row: TopicRow, view: Excerpt, form: TextForm) -> str:
    if form == "mathamr":
        return _graph_text(row, "query_graph", "graph")
    check_topic(row)
    title, body = text_of(row, "title"), text_of(row, "html") or text_of(row, "body")
    if not title.strip() and not body.strip():
        return plain_text(post_from_any(text_of(row, "query")))
    if view == "title":
        return plain_text(post_from_any(title))
    return plain_text(post_from_any(body, title if view == "whole" else ""))


def answer_text(row: TopicRow, form: TextForm) -> str:
    if form == "mathamr":
        return _graph_text(row, "graph")
    post = MathPost("", ())
    if not is_blank(row.get("html")):
        post = post_from_html(text_of(row, "html"))
    elif not is_blank(row.get("text")):
        post = post_from_any(text_of(row, "text"))
    return plain_text(post)


def _graph_text(row: TopicRow, *columns: str) -> str:
    graph = next((row[name] for name in columns if not is_missing(row.get(name))), None)
    return "" if graph is None or graph.is_empty else linearise(graph)


_TEXTS = {"raw": ("title", "body", "html", "query"), "mathamr": ("query_graph", "graph")}


_LENGTHS: dict[Excerpt, int] = {"title": 128, "head": 128, "tail": 128, "whole": 256}


class QQSim(BiEncoder):
    """A bi-encoder of questions: one vector of unit length for the title, or the head or tail of the body.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1. The
    figure there shows a cross-encoder; but a million questions are ranked, and the losses are for bi-encoders, so this
    is a bi-encoder, and the similarity is the cosine. Title, head and tail are three models, each initialized from the
    model of :meth:`fit` on whole questions, and :class:`~pyterrier_mathamr.fusion.ModifiedRRF` fuses their rankings.

    Args:
        network: a ``SentenceTransformer``; :meth:`new` and :meth:`from_pretrained` load one.
        view: the part of a question that it reads: ``title``, ``head`` or ``tail`` of the body, or ``whole``: both.
        form: ``raw`` text with LaTeX, or linearized ``mathamr`` graphs.

    Raises:
        ConfigError: the view or the form is unknown.

    Example::

        titles = QQSim.new("all-MiniLM-L6-v2", view="title")
        (titles.doc_encoder() >> index.indexer()).index([{"docno": "q1", "title": "Roots of $x^2$", "body": "How?"}])
        pipeline = titles.query_encoder() >> index.single_vector()
    """

    label = "QQSim"
    OPTIONS = {"view": one_of(*get_args(Excerpt)), "form": one_of(*get_args(TextForm))}  # noqa: RUF012
    view: Excerpt
    form: TextForm

    def __init__(self, network: Any, view: Excerpt = "title", form: TextForm = "raw") -> None:
        super().__init__(network, view=view, form=form)
        network.tokenizer.truncation_side = "left" if view == "tail" else "right"

    @classmethod
    def new(
        cls,
        backbone: str | Path = "all-MiniLM-L6-v2",
        view: Excerpt = "title",
        form: TextForm = "raw",
        *,
        max_length: int | None = None,
        device: str | None = None,
    ) -> QQSim:
        """Begin with a pretrained language model.

        Args:
            backbone: a folder, such as another model of questions, or a name. The paper's is the Sentence-BERT
                ``hf:sentence-transformers/distilbert-base-nli-stsb-quora-ranking``.
            view: the part of a question that it reads: ``title``, ``head`` or ``tail`` of the body, or ``whole``: both.
            form: ``raw`` text with LaTeX, or linearized ``mathamr`` graphs.
            max_length: tokens; ``None`` for 128, or 256 for whole questions (265 is printed).
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.

        Raises:
            ModelNotFoundError: there is no such model.
        """
        cls.OPTIONS["view"].check("view", view)
        return cls(load_network(backbone, "bi", max_length or _LENGTHS[view], device), view, form)

    def text_columns(self, side: Side) -> Sequence[str]:
        """List the columns that the form is read from."""
        return _TEXTS[self.form]

    def row_text(self, row: TopicRow, side: Side) -> str:
        """Return the text of a ``row``, which is a question on either ``side``; see :meth:`text`."""
        return self.text(row)

    def text(self, row: TopicRow) -> str:
        """Write the input of the model for a question; see :func:`~.texts.question_text`."""
        return question_text(row, self.view, self.form)

    def fit(
        self,
        pairs: Sequence[Pair],
        options: FitOptions | None = None,
        *,
        known: Collection[Pair] = (),
        validation: Sequence[Pair] = (),
        checkpoint: str | Path | None = None,
        fresh: bool = False,
        save_every: float = 600.0,
        verbose: bool = False,
    ) -> list[Epoch]:
        """Train on pairs of similar questions, with as many random pairs as negatives.

        The two losses alternate, a batch each: ``OnlineContrastiveLoss(margin=0.5)`` on the batch's pairs and its
        negatives, and ``MultipleNegativesRankingLoss(scale=20)`` on the pairs. (The published formulas lack a
        logarithm and the positive pair of the denominator, and have a_i for a_j.)

        Args:
            pairs: texts, as :meth:`text` writes them; pairs with an empty text are left out.
            options: of the training; by default 20 epochs in batches of 64, as published.
            known: further similar pairs, which are never negatives.
            validation: held-out pairs; the best epoch by their ranking loss is kept.
            checkpoint: a folder for the state of training, from which the same call resumes after an interruption.
            fresh: discard a run that was interrupted at ``checkpoint``.
            save_every: seconds after which the state is also saved within an epoch.
            verbose: show progress.

        Returns:
            The losses of each epoch.

        Raises:
            TrainingError: there is no pair.
            UnfinishedJobError: ``checkpoint`` has the state of another run.
        """
        options = options or FitOptions(epochs=20)
        useful = [pair for pair in pairs if all(map(str.strip, pair))]
        if not useful:
            raise TrainingError("no pair of questions has two texts to train on")
        losses = PairLosses(self.network)
        batches = partial(random_batches, useful, {*pairs, *known}, options.batch_size)
        held_out = [pair for pair in validation if all(map(str.strip, pair))]
        validate = partial(losses.held_out, held_out, options.batch_size) if held_out else None
        return self._train(
            batches,
            losses.of_batch,
            validate,
            options,
            (useful, sorted({*pairs, *known}), held_out),
            checkpoint=checkpoint,
            fresh=fresh,
            save_every=save_every,
            verbose=verbose,
        )


QASimLoss = Literal["bce", "bce+mnrl"]

_LOSSES = "sentence_transformers.cross_encoder.losses"
_FITS = 1.0
_NEGATIVES = 4  # of the ranking loss, as the library has it


class Example(NamedTuple):
    """A question, an answer, and how well it fits: 0 to 1."""

    question: str
    answer: str
    target: float


def examples_of(
    given: Sequence[tuple[str, str, float]], what: str, folds: int | None, fold: int
) -> tuple[list[Example], list[Example]]:
    """Read the arguments of ``fit``: examples to train on, and held-out ones."""
    examples = [Example(*one) for one in given]
    if any(not 0 <= example.target <= 1 for example in examples):
        raise ConfigError(what, "a target", "targets between 0 and 1, such as TARGETS[grade]")
    training, held_out = split_folds(examples, folds, fold)
    if not training:
        raise TrainingError(f"{len(examples)} {what} leave nothing to train on")
    return training, held_out


def split_folds(examples: Sequence[Example], folds: int | None, fold: int = 0) -> tuple[list[Example], list[Example]]:
    """Divide examples into those to train on and those held out; each question is on one side."""
    if folds is None:
        return list(examples), []
    at_least(2).check("folds", folds)
    one_of(*range(folds)).check("fold", fold)
    by_hash = sorted(
        {example.question for example in examples}, key=lambda text: hashlib.sha256(text.encode()).digest()
    )
    held_out = set(by_hash[fold::folds]) if len(by_hash) > 1 else set()
    parts: tuple[list[Example], list[Example]] = ([], [])
    for example in examples:
        parts[example.question in held_out].append(example)
    return parts


def cross_logits(network: Any, pairs: Sequence[tuple[str, str]]) -> Tensor:
    """Compute the scores of pairs before the sigmoid: float32 ``[n]``, with gradient."""
    features = {
        name: value.to(network.device) if isinstance(value, Tensor) else value
        for name, value in network.preprocess(list(pairs)).items()
    }
    with mixed(network.device):
        logits: Tensor = network(features)["scores"]
    return logits.float().view(-1)


class CrossLosses:
    """Binary cross-entropy on targets and, in turn, a ranking loss on pairs that fit."""

    def __init__(self, network: Any, loss: QASimLoss) -> None:
        library: Any = require(_LOSSES, "answers")
        self.network, self.loss = network, loss
        self._graded = library.BinaryCrossEntropyLoss(network)
        self._ranking = library.MultipleNegativesRankingLoss(network)

    def of_batch(self, batch: Sequence[Example], step: int) -> Tensor:
        fitting = [example for example in batch if example.target >= _FITS]
        with mixed(self.network.device):
            if self.loss == "bce+mnrl" and step % 2 and len(fitting) > 1:
                self._ranking.num_negatives = min(_NEGATIVES, len(fitting) - 1)  # as many as the batch has
                loss: Tensor = self._ranking(_columns(fitting), None)
            else:
                targets = torch.tensor([example.target for example in batch], device=self.network.device)
                loss = self._graded(_columns(batch), targets)
        return loss.float()

    def held_out(self, examples: Sequence[Example], batch_size: int) -> float:
        """Compute the mean cross-entropy of held-out examples."""
        total = 0.0
        with torch.no_grad():
            for start in range(0, len(examples), batch_size):
                batch = examples[start : start + batch_size]
                logits = cross_logits(self.network, [(example.question, example.answer) for example in batch])
                targets = torch.tensor([example.target for example in batch], device=logits.device)
                total += float(torch.nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum"))
        return total / len(examples)


class BiLosses:
    """The losses of QQSim on examples."""

    def __init__(self, network: Any) -> None:
        self._losses = PairLosses(network)

    def of_batch(self, batch: Sequence[Example], step: int) -> Tensor:
        return self._losses.of_batch(_pairs(batch), step)

    def held_out(self, examples: Sequence[Example], batch_size: int) -> float:
        """Compute the mean contrastive loss of held-out batches."""
        starts = range(0, len(examples), batch_size)
        with torch.no_grad():
            losses = [self._losses.contrastive(_pairs(examples[start : start + batch_size])) for start in starts]
        return float(np.mean([float(loss) for loss in losses]))


def batches(examples: Sequence[Example], batch_size: int, random: np.random.Generator) -> list[list[Example]]:
    order = random.permutation(len(examples)).tolist()
    return [[examples[i] for i in order[start : start + batch_size]] for start in range(0, len(order), batch_size)]


def _columns(batch: Sequence[Example]) -> list[list[str]]:
    return [[example.question for example in batch], [example.answer for example in batch]]


def _pairs(batch: Sequence[Example]) -> QuestionBatch:
    of_target = {
        target: [(example.question, example.answer) for example in batch if example.target == target]
        for target in (0.0, _FITS)
    }
    return QuestionBatch(of_target[_FITS], of_target[0.0])


_QUESTION = {"raw": TOPIC_FORMS, "mathamr": (("query_graph",),)}
_ANSWER = {"raw": ("html", "text"), "mathamr": ("graph",)}


class QASimScorer(Transformer):
    """Scores each answer of a ranking by :class:`QASim`; ``qasim.scorer()`` makes one.

    The rows come back by query (in order of appearance), descending score, ascending docno, with all their columns.
    Each pair of a query and a document is scored once.

    Args:
        qasim: the model.
        verbose: show progress.
    """

    label = "QASim"

    def __init__(self, qasim: QASim, *, verbose: bool = False) -> None:
        super().__init__()
        self.qasim, self.verbose = qasim, verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score, 0 to 1, and order a ranking.

        It has ``title`` and ``body``, or ``query``, of the topic, and ``html`` or ``text`` of the answer; for a model
        of linearized graphs ``query_graph`` and ``graph``.
        """
        form = self.qasim.form
        with pt.validate.any(inp, context=self) as validation:
            for question in _QUESTION[form]:
                for answer in _ANSWER[form]:
                    validation.result_frame(extra_columns=[*question, answer])
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        questions = {row["qid"]: self.qasim.question(row) for row in distinct_queries(inp).to_dict("records")}
        columns = [name for name in _ANSWER[form] if name in inp.columns]
        found = {name: first_values(inp, name, "docno") for name in columns}
        answers = {
            docno: self.qasim.answer({name: values.get(docno) for name, values in found.items()})
            for docno in inp["docno"].unique()
        }
        keys = list(zip(inp["qid"], inp["docno"], strict=True))
        distinct = list(dict.fromkeys(keys))
        scores = self.qasim.scores([(questions[qid], answers[docno]) for qid, docno in distinct], verbose=self.verbose)
        by_key = dict(zip(distinct, scores.tolist(), strict=True))
        return ordered_by_score(inp, np.array([by_key[key] for key in keys]))

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Return the score as one part: the model reads both texts at once."""
        asked = read_asked(query, docno, self.label)
        needed = _ANSWER[self.qasim.form]
        if not any(asked.row.get(name) is not None for name in needed):
            raise AskedError(self.label, f"the row has no {' or '.join(needed)}", "Load the answer's text first.")
        texts = self.qasim.question(asked.query_row()), self.qasim.answer(asked.row)
        return asked.explained([Part(self.label, "score", contribution=float(self.qasim.scores([texts])[0]))])


TARGETS = (0.0, 0.5, 1.0, 1.0)
"""The training targets of the grades 0 to 3, as published, where a grid search chose them."""

_BUDGET = 8_192  # tokens of a batch


class QASim(TwoStepModel):
    """A model of question and answer whose score, 0 to 1, measures how well the answer fits.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 5.3.1 and eq.
    5.3. Title and body of the question and the answer are read together, 128 tokens in all.

    Args:
        network: a ``CrossEncoder`` with one label or, for ``kind="bi"``, a ``SentenceTransformer``; :meth:`new` and
            :meth:`from_pretrained` load one.
        kind: ``cross``, or ``bi``, to which both losses of the paper's text apply; its score is (1 + cosine) / 2.
        form: ``raw`` text with LaTeX, or linearized ``mathamr`` graphs of only the bodies.

    Raises:
        ConfigError: the kind or the form is unknown.

    Example::

        qasim = QASim.new("all-MiniLM-L6-v2")
        pipeline = questions >> threads.answers() >> threads.text_loader() >> qasim.scorer() >> TimesQQ()
    """

    OPTIONS = {"kind": one_of(*get_args(EncoderKind)), "form": one_of(*get_args(TextForm))}  # noqa: RUF012
    form: TextForm

    def __init__(self, network: Any, kind: EncoderKind = "cross", form: TextForm = "raw") -> None:
        super().__init__(network, kind=kind, form=form)

    @classmethod
    def new(
        cls,
        backbone: str | Path = "all-MiniLM-L6-v2",
        kind: EncoderKind = "cross",
        form: TextForm = "raw",
        *,
        max_length: int = 128,
        device: str | None = None,
        seed: int = 0,
    ) -> QASim:
        """Begin with a pretrained language model.

        Args:
            backbone: a folder or a name; the paper's is ``hf:cross-encoder/ms-marco-TinyBERT-L-6``. If the encoder
                is not a cross-encoder, the last layer starts at random.
            kind: ``cross``, which reads question and answer together, or ``bi``, which compares their vectors.
            form: ``raw`` text with LaTeX, or linearized ``mathamr`` graphs of only the bodies.
            max_length: tokens of question and answer together, or of each for ``kind="bi"``.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            seed: of a last layer that starts at random.

        Raises:
            ModelNotFoundError: there is no such model.
        """
        cls.OPTIONS["kind"].check("kind", kind)
        with seeded(seed):
            return cls(load_network(backbone, kind, max_length, device), kind, form)

    def question(self, row: TopicRow) -> str:
        """Write the input of the model for a question: title and body, or its linearized graph."""
        return question_text(row, "whole", self.form)

    def answer(self, row: TopicRow) -> str:
        """Write the input of the model for an answer."""
        return answer_text(row, self.form)

    def fit(
        self,
        examples: Sequence[tuple[str, str, float]],
        options: FitOptions | None = None,
        *,
        loss: QASimLoss = "bce",
        folds: int | None = 10,
        fold: int = 0,
        checkpoint: str | Path | None = None,
        fresh: bool = False,
        save_every: float = 600.0,
        verbose: bool = False,
    ) -> list[Epoch]:
        """Train on questions, answers and targets.

        The paper names a contrastive and a ranking loss, which cannot handle a target of .5: by default the loss is
        ``BinaryCrossEntropyLoss`` on the targets, and ``"bce+mnrl"`` alternates with ``MultipleNegativesRankingLoss``
        on examples with the target 1. A bi-encoder has the two losses of :class:`QQSim`; targets of .5 are left out.

        Args:
            examples: question, answer, target 0 to 1; for a grade ``TARGETS[grade]``.
            options: of the training; by default 50 epochs in batches of 64, as published.
            loss: ``bce``, on the targets, or ``bce+mnrl``, which alternates with a ranking loss on the right answers.
            folds: the number of folds of the questions; ``None`` holds none out, and the last epoch is kept. A
                question is in one fold with all of its answers.
            fold: the held-out fold, the same in each epoch; the best epoch by its loss is kept.
            checkpoint: a folder for the state of training, from which the same call resumes after an interruption.
            fresh: discard a run that was interrupted at ``checkpoint``.
            save_every: seconds after which the state is also saved within an epoch.
            verbose: show progress.

        Returns:
            The losses of each epoch.

        Raises:
            TrainingError: there is nothing to train on.
            ConfigError: an option is out of its range, or a target is not between 0 and 1.
            UnfinishedJobError: ``checkpoint`` has the state of another run.
        """
        one_of(*get_args(QASimLoss)).check("loss", loss)
        options = options or FitOptions(epochs=50)
        training, held_out = examples_of(examples, "examples", folds, fold)
        losses = BiLosses(self.network) if self.kind == "bi" else CrossLosses(self.network, loss)
        validate = partial(losses.held_out, held_out, options.batch_size) if held_out else None
        return self._train(
            partial(batches, training, options.batch_size),
            losses.of_batch,
            validate,
            options,
            (loss, training, held_out),
            checkpoint=checkpoint,
            fresh=fresh,
            save_every=save_every,
            verbose=verbose,
        )

    def scores(self, pairs: Sequence[tuple[str, str]], *, verbose: bool = False) -> npt.NDArray[np.float64]:
        """Score pairs of question and answer, in batches of similar lengths.

        Args:
            pairs: the texts, as :meth:`question` and :meth:`answer` write them.
            verbose: show progress.

        Returns:
            float64 ``[n]``, 0 to 1.
        """
        network, found = self.network.eval(), np.zeros(len(pairs))
        sizes = [min(self.max_length, 2 + sum(map(len, pair)) // 3) for pair in pairs]  # about three letters a token
        for members in progress(batches_by_size(sizes, _BUDGET), "QASim", "batches", verbose=verbose):
            with torch.inference_mode():
                found[members] = self._score(network, [pairs[i] for i in members])
        return found

    scorer = method(QASimScorer)

    def _score(self, network: Any, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float64]:
        if self.kind == "cross":
            scores = torch.sigmoid(cross_logits(network, pairs))
        else:
            left, right = (InMixedPrecision(network).vectors([pair[side] for pair in pairs]) for side in (0, 1))
            scores = (1 + torch.nn.functional.cosine_similarity(left, right)) / 2
        scores_of_pairs: npt.NDArray[np.float64] = scores.double().cpu().numpy()
        return scores_of_pairs
