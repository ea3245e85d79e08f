"""MathAMR with Sentence-BERT: formulas ranked by the text around them (Mansouri, dissertation, 2022, section 4.4).

::

    posts, topics ──FormulaContexts──▶ a text for each formula ──MathAMRSentenceBERT──▶ one vector ──▶ index.scorer()

    "Find $x^n.$ Let $n=2,$ and $m!$ be."    the sentences of x^n and of n=2:  Find FORMULA_0.
                                                                               Let FORMULA_0, and FORMULA_1 be.

    text+latex    Let $n=2$, and $m!$ be.
    text+opt      Let eq 2 n, and factorial m be.
    amr+latex     and let-01 you math n=2 imperative be-01 math m!
    amr+opt       and let-01 you math eq 2 n imperative be-01 math factorial m
    opt           eq 2 n

All formulas of a sentence have the same text, except with ``opt``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import pandas as pd
import pyterrier as pt
import torch
from torch import Tensor

from mathamr_systems.two_step.networks import BiEncoder, Epoch, FitOptions, InMixedPrecision, load_network
from mathamr_systems.two_step.similarity import TARGETS, Example, batches, examples_of, linearise
from pyterrier_mathamr.amr import AmrGraph, AmrParser
from pyterrier_mathamr.extending import (
    COUNT,
    Leaf,
    Rule,
    Side,
    Transformer,
    at_least,
    attach_formulas,
    distinct_queries,
    empty_output,
    formula_trees,
    ignored_warnings,
    join_values,
    one_of,
    query_formula,
    reported_once,
    require,
)
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph
from pyterrier_mathamr.posts import (
    DOCUMENT_COLUMNS,
    PLACEHOLDER,
    MathPost,
    PostFormula,
    document_post,
    placeholder,
    plain_text,
    query_post,
    strip_delimiters,
)

TextInput = Literal["opt", "amr+opt", "amr+latex", "text+latex", "text+opt"]
"""How a formula and its context are written; in the dissertation OPTText, AMRText w. OPTText (which is MathAMR),
AMRText w. LaTeX, RawText w. LaTeX and RawText w. OPTText."""

REPRESENTATION = one_of(*get_args(TextInput))
WINDOW = Rule("an odd integer from 1", lambda value: at_least(1).holds(value) and value % 2 == 1)

_STOP = re.compile(r"(?<![.,?\\])[.,?]\s*$")
_FORMULA_ONLY = AmrGraph(labels=(placeholder(0),), variables=("f",), edges=())


class _Place(NamedTuple):
    """The sentences around a formula: ``start`` to ``end`` of a post."""

    post: str
    start: int
    end: int


class FormulaContexts(Leaf, Transformer):
    """Writes each formula with the sentences around it as text, for :class:`MathAMRSentenceBERT`.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), section 4.4.2. Documents
    (no ``qid``) give one row for each of their formulas: ``docno``, the formula's id, ``post_id`` and ``formula_text``.
    Queries and rankings keep their rows and get ``query_formula_text``, of the formula with the id ``formula_id`` in
    ``title`` and ``body``, else of the first one with the same ``latex``; a formula that is in neither has no context.

    A full stop, comma or question mark at the end of a formula is first moved behind it. (The dissertation also moves
    an exclamation mark, which would make ``n`` of ``n!``.) Letters of mathematical alphabets become plain ones, which
    pretrained tokenizers know.

    Args:
        representation: how formula and context are written: ``opt``, only the linearized operator tree; ``amr+opt``,
            the linearized MathAMR graph; ``amr+latex``, the same with LaTeX instead of operator trees; ``text+latex``
            and ``text+opt``, the sentences themselves.
        window: the number of sentences, odd: the formula's, and equally many before and after it.
        parser: the name of an AMR parser, or a parser.
        store: official formula trees by id; other formulas get their trees from LaTeX.
        batch_size: posts that an indexing pipeline reads together.
        verbose: show progress.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        contexts = FormulaContexts("amr+opt", window=1)
        contexts([{"docno": "p", "text": "Find $x^n$. Let $n=2$."}])    # formula_text: find-01 … math SUP x n …
    """

    label = "formula contexts"
    checks: ClassVar[Mapping[str, Rule]] = {"representation": REPRESENTATION, "window": WINDOW, "batch_size": COUNT}

    def __init__(
        self,
        representation: TextInput = "amr+opt",
        window: int = 1,
        *,
        parser: str | AmrParser = "dependency",
        store: FormulaStore | None = None,
        batch_size: int = 256,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.representation: TextInput = representation
        self.window, self.parser, self.store = window, parser, store
        self.batch_size, self.verbose = batch_size, verbose

    @reported_once()
    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Write the formulas of documents, or the formula of each query.

        Args:
            inp: documents with ``docno`` and ``html``, ``body``, ``text`` or ``markdown``; or queries, or a ranking,
                with ``latex`` or ``query``, and ``title`` and ``body`` where there is a context.
        """
        with pt.validate.any(inp, context=self) as validation:
            for name in ("latex", "query"):
                validation.columns(includes=["qid", name])
            for name in DOCUMENT_COLUMNS:
                validation.columns(includes=["docno", name], excludes=["qid"])
        if "qid" in inp.columns:
            if inp.empty:
                return empty_output(inp, ["query_formula_text"])
            return join_values(inp, "query_formula_text", self._of_queries(distinct_queries(inp)))
        if inp.empty:
            return empty_output(inp[["docno"]], ["post_id", "formula_text"])
        rows: list[dict[str, Any]] = inp.to_dict("records")  # type: ignore[assignment]
        posts = {str(row["docno"]): document_post(row) for row in rows}
        return pd.DataFrame(self.of_posts(posts), columns=["docno", "post_id", "formula_text"], dtype=str)

    def of_posts(
        self, posts: Mapping[str, MathPost], formula_ids: Collection[str] | None = None
    ) -> list[tuple[str, str, str]]:
        """Write the formulas of posts.

        Args:
            posts: docno to post.
            formula_ids: only these formulas; ``None`` for all.

        Returns:
            The id, post and text of each formula that has an id, in order.
        """
        asked = [
            (name, number)
            for name, post in posts.items()
            for number, formula in enumerate(post.formulas)
            if formula.id and (formula_ids is None or formula.id in formula_ids)
        ]
        texts = self._texts(posts, asked)
        return [(posts[name].formulas[i].id, name, text) for (name, i), text in zip(asked, texts, strict=True)]

    def _of_queries(self, topics: pd.DataFrame) -> dict[str, str]:
        posts: dict[str, MathPost] = {}
        asked: list[tuple[str, int]] = []
        rows: list[dict[str, Any]] = topics.to_dict("records")  # type: ignore[assignment]
        for row in rows:
            formula, post = query_formula(row), query_post({**row, "query": None})
            same: list[Callable[[PostFormula], bool]] = [
                lambda other, of=formula: bool(of.id) and other.id == of.id,  # type: ignore[misc]
                lambda other, of=formula: strip_delimiters(other.latex) == of.latex,  # type: ignore[misc]
            ]
            matches = [i for test in same for i, other in enumerate(post.formulas) if test(other)]
            if not matches:
                post = MathPost(placeholder(0), (formula,)) if formula.latex or formula.id else MathPost("", ())
            posts[row["qid"]] = post
            if post.formulas:
                asked.append((row["qid"], matches[0] if matches else 0))
        texts = self._texts(posts, asked)
        return {**dict.fromkeys(posts, ""), **{qid: text for (qid, _), text in zip(asked, texts, strict=True)}}

    def _texts(self, posts: Mapping[str, MathPost], asked: Sequence[tuple[str, int]]) -> list[str]:
        if self.representation == "opt":
            written = self._trees(posts[name].formulas[number] for name, number in asked)
            return [_plain(text) for text in written]
        places, windows = list[_Place](), dict[_Place, MathPost]()
        numbered: dict[str, tuple[MathPost, tuple[str, ...], dict[int, int]]] = {}
        for name, number in asked:
            if name not in numbered:
                post = without_stops(posts[name])
                first: dict[int, int] = {}  # the first sentence of each formula
                for at, sentence in enumerate(post.sentences):
                    for match in PLACEHOLDER.finditer(sentence):
                        first.setdefault(int(match[1]), at)
                numbered[name] = post, post.sentences, first
            post, sentences, sentence_of = numbered[name]
            middle, half = sentence_of[number], self.window // 2
            place = _Place(name, max(0, middle - half), min(len(sentences), middle + half + 1))
            places.append(place)
            if place not in windows:
                windows[place] = _cut(sentences[place.start : place.end], post.formulas)
        texts = dict(zip(windows, self._written(list(windows.values())), strict=True))
        return [_plain(texts[place]) for place in places]

    def _written(self, windows: Sequence[MathPost]) -> list[str]:
        if self.representation == "text+latex":
            return [plain_text(post) for post in windows]
        if self.representation == "text+opt":
            trees = iter(self._trees(formula for post in windows for formula in post.formulas))
            of_post = [[next(trees) for _ in post.formulas] for post in windows]
            return [
                PLACEHOLDER.sub(lambda match, own=own: own[int(match[1])], post.text)  # type: ignore[misc]
                for post, own in zip(windows, of_post, strict=True)
            ]
        latex = self.representation == "amr+latex"
        builder = GraphBuilder(self.parser, "none" if latex else "opt", self.store, verbose=self.verbose)
        graphs = builder.build({str(number): post for number, post in enumerate(windows)})
        return [linearise(graph, latex=latex) for graph in graphs]

    def _trees(self, formulas: Iterable[PostFormula]) -> list[str]:
        """Linearize the operator tree of each formula; one without a tree is its LaTeX."""
        given = list(formulas)
        trees = formula_trees(given, self.store)
        graphs = [MathAMRGraph(attach_formulas(_FORMULA_ONLY, [pair], "opt"), ("",)) for pair in trees]
        written = [linearise(graph, math_word=False) for graph in graphs]
        return [text or formula.latex for formula, text in zip(given, written, strict=True)]


def without_stops(post: MathPost) -> MathPost:
    """Move a full stop, comma or question mark at the end of a formula behind it."""
    stops = [_STOP.search(formula.latex) for formula in post.formulas]
    if not any(stops):
        return post
    cut = [
        replace(formula, latex=formula.latex[: stop.start()].rstrip()) if stop else formula
        for formula, stop in zip(post.formulas, stops, strict=True)
    ]

    def moved(match: re.Match[str]) -> str:
        stop = stops[int(match[1])]
        return match[0] + (stop[0].strip() if stop else "")

    return replace(post, text=PLACEHOLDER.sub(moved, post.text), formulas=tuple(cut))


def _cut(sentences: Sequence[str], formulas: Sequence[PostFormula]) -> MathPost:
    """Make a post of some sentences, with their formulas renumbered."""
    text, numbers = "\n".join(sentences), dict[int, int]()
    for match in PLACEHOLDER.finditer(text):
        numbers.setdefault(int(match[1]), len(numbers))
    text = PLACEHOLDER.sub(lambda match: placeholder(numbers[int(match[1])]), text)
    return MathPost(text, tuple(formulas[number] for number in numbers))


def _plain(text: str) -> str:
    """Write letters of mathematical alphabets as plain ones, and line ends as spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


_LOSSES = "sentence_transformers.sentence_transformer.losses"
_MARGIN, _SCALE = 0.5, 20.0
_PIECE = 8  # texts of similar lengths that are encoded together
_COLUMNS: Mapping[str, str] = {"queries": "query_formula_text", "documents": "formula_text"}


class TripleLosses:
    """The sum of two losses: contrastive on all triples of a batch, ranking on those with the score 1."""

    def __init__(self, network: Any) -> None:
        library: Any = require(_LOSSES, "answers")
        self.model = InMixedPrecision(network)
        self._contrastive = library.ContrastiveLoss(self.model, margin=_MARGIN)
        self._ranking = library.MultipleNegativesRankingLoss(self.model, scale=_SCALE)

    def of_batch(self, batch: Sequence[Example], step: int) -> Tensor:
        """Compute the loss of a batch; each query contributes to the ranking loss once."""
        texts = sorted({text for triple in batch for text in triple[:2]}, key=lambda text: (len(text), text))
        pieces = [self.model.vectors(texts[start : start + _PIECE]) for start in range(0, len(texts), _PIECE)]
        vectors, place = torch.cat(pieces), {text: number for number, text in enumerate(texts)}
        left = vectors[[place[triple.question] for triple in batch]]
        right = vectors[[place[triple.answer] for triple in batch]]
        scores = torch.tensor([triple.target for triple in batch], device=left.device)
        with ignored_warnings(Warning, "ContrastiveLoss expects binary labels"):  # .5 weights both terms
            loss: Tensor = self._contrastive.compute_loss_from_embeddings([left, right], scores)
        first: dict[str, int] = {}
        for number, triple in enumerate(batch):
            if triple.target == 1:
                first.setdefault(triple.question, number)
        if len(first) > 1:
            rows = list(first.values())
            loss = loss + self._ranking.compute_loss_from_embeddings([left[rows], right[rows]], None)
        return loss


def judged_triples(queries: pd.DataFrame, formulas: pd.DataFrame, qrels: pd.DataFrame) -> list[tuple[str, str, float]]:
    """Make the triples that :meth:`MathAMRSentenceBERT.fit` learns from: query, candidate and score.

    Args:
        queries: ``qid``, ``query_formula_text``.
        formulas: ``docno``, ``formula_text``; judged formulas that are not among them are left out.
        qrels: ``qid``, ``docno`` (the id of a formula), ``label``: 2 and 3 become 1, 1 becomes .5, 0 stays.

    Returns:
        The triples, in the order of the judgments.
    """
    of_query = dict(zip(queries["qid"], queries["query_formula_text"], strict=True))
    of_formula = dict(zip(formulas["docno"], formulas["formula_text"], strict=True))
    rows = zip(qrels["qid"], qrels["docno"], qrels["label"], strict=True)
    return [
        (of_query[qid], of_formula[docno], TARGETS[min(max(int(label), 0), 3)])
        for qid, docno, label in rows
        if of_query.get(qid) and of_formula.get(docno)
    ]


class MathAMRSentenceBERT(BiEncoder):
    """Sentence-BERT of formulas in context: one vector for a formula and the sentences around it.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval" (dissertation, 2022), sections 4.4.3 and 4.4.4.
    The score of a candidate is the cosine of its vector and the query's. :meth:`contexts` writes the texts, an index
    keeps the vectors of the collection's formulas, and its ``scorer()`` re-ranks the results of another system;
    :class:`~pyterrier_mathamr.fusion.ModifiedRRF` then combines both rankings.

    Args:
        network: a ``SentenceTransformer``; :meth:`new` and :meth:`from_pretrained` load one.
        representation: how formula and context are written: ``opt``, ``amr+opt``, ``amr+latex``, ``text+latex`` or
            ``text+opt``; see :class:`FormulaContexts`.
        window: the number of sentences, odd: the formula's, and equally many before and after it.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        sbert = MathAMRSentenceBERT.new("all-MiniLM-L6-v2", "amr+opt")
        index, posts = MathAMRIndex("formulas.sbert"), [{"docno": "p", "text": "Find $x^n$."}]
        (sbert.contexts() >> sbert.doc_encoder() >> index.indexer()).index(posts)
        rerank = sbert.contexts() >> sbert.query_encoder() >> index.scorer()
        first = TangentIndex("formulas.tangent").retriever(1000)
        pipeline = ModifiedRRF([first, first >> rerank])
    """

    label = "Sentence-BERT"
    OPTIONS = {"representation": REPRESENTATION, "window": WINDOW}  # noqa: RUF012
    representation: TextInput
    window: int

    def __init__(self, network: Any, representation: TextInput = "amr+opt", window: int = 1) -> None:
        super().__init__(network, representation=representation, window=window)

    @classmethod
    def new(
        cls,
        backbone: str | Path = "all-MiniLM-L6-v2",
        representation: TextInput = "amr+opt",
        window: int = 1,
        *,
        max_length: int | None = None,
        device: str | None = None,
    ) -> MathAMRSentenceBERT:
        """Begin with a pretrained language model.

        Args:
            backbone: a folder or a name; the dissertation's is ``hf:sentence-transformers/all-distilroberta-v1``.
            representation: how formula and context are written: ``opt``, ``amr+opt``, ``amr+latex``, ``text+latex`` or
                ``text+opt``; see :class:`FormulaContexts`.
            window: the number of sentences, odd: the formula's, and equally many before and after it.
            max_length: tokens; ``None`` for 128, or 256 with ``text+opt``.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.

        Raises:
            ModelNotFoundError: there is no such model.
        """
        REPRESENTATION.check("representation", representation)
        length = max_length or (256 if representation == "text+opt" else 128)
        return cls(load_network(backbone, "bi", length, device), representation, window)

    def contexts(
        self, *, parser: str | AmrParser = "dependency", store: FormulaStore | None = None, verbose: bool = False
    ) -> FormulaContexts:
        """Return the transformer that writes the texts that this model reads.

        Args:
            parser: the name of an AMR parser, or a parser.
            store: official formula trees by id; other formulas get their trees from LaTeX.
            verbose: show progress.
        """
        return FormulaContexts(self.representation, self.window, parser=parser, store=store, verbose=verbose)

    def text_columns(self, side: Side) -> Sequence[str]:
        """Name the column that :meth:`contexts` adds."""
        return (_COLUMNS[side],)

    def row_text(self, row: Mapping[Any, Any], side: Side) -> str:
        """Return the text of the ``side`` of a ``row`` that :meth:`contexts` wrote."""
        return str(row[_COLUMNS[side]])

    def fit(
        self,
        triples: Sequence[tuple[str, str, float]],
        options: FitOptions | None = None,
        *,
        folds: int | None = 10,
        fold: int = 0,
        checkpoint: str | Path | None = None,
        fresh: bool = False,
        save_every: float = 600.0,
        verbose: bool = False,
    ) -> list[Epoch]:
        """Train on judged formulas.

        The loss of a batch is the sum of ``ContrastiveLoss(margin=0.5)``, which accepts scores between 0 and 1, and
        ``MultipleNegativesRankingLoss(scale=20)`` on the triples with the score 1. The dissertation does not specify
        how it combines them.

        Args:
            triples: texts of a query and a candidate, and a score 0 to 1; :func:`judged_triples` makes them.
            options: of the training; by default 50 epochs in batches of 16, as published.
            folds: the number of folds of the queries; ``None`` holds none out, and the last epoch is kept.
            fold: the held-out fold, the same in each epoch. The epoch with the highest Spearman correlation of
                cosines and scores is kept.
            checkpoint: a folder for the state of training, from which the same call resumes after an interruption.
            fresh: discard a run that was interrupted at ``checkpoint``.
            save_every: seconds after which the state is also saved within an epoch.
            verbose: show progress.

        Returns:
            The loss of each epoch, and as ``validation`` the negative correlation.

        Raises:
            TrainingError: there is nothing to train on.
            ConfigError: an option is out of its range, or a score is not between 0 and 1.
            UnfinishedJobError: ``checkpoint`` has the state of another run.
        """
        options = options or FitOptions(epochs=50, batch_size=16)
        training, held_out = examples_of(triples, "triples", folds, fold)
        return self._train(
            partial(batches, training, options.batch_size),
            TripleLosses(self.network).of_batch,
            (lambda: -self.correlation(held_out)) if held_out else None,
            options,
            (training, held_out),
            checkpoint=checkpoint,
            fresh=fresh,
            save_every=save_every,
            verbose=verbose,
        )

    def correlation(self, triples: Sequence[tuple[str, str, float]]) -> float:
        """Compute the Spearman correlation of cosines and scores; 0 if either are all equal."""
        left, right = (self.encode([str(triple[side]) for triple in triples]) for side in (0, 1))
        ranks = pd.DataFrame({"cosine": (left * right).sum(axis=1), "score": [triple[2] for triple in triples]}).rank()
        if ranks.nunique().min() < 2:
            return 0.0
        return float(ranks["cosine"].corr(ranks["score"]))
