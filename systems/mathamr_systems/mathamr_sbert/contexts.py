"""A formula in its context, as text for a sentence encoder.

::

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
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import pandas as pd
import pyterrier as pt

from mathamr_systems.two_step.texts import linearise
from pyterrier_mathamr._common.feedback import reported_once
from pyterrier_mathamr._common.frames import empty_output, join_values
from pyterrier_mathamr._common.parameters import COUNT, Rule, at_least, one_of
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr.amr import AmrGraph, AmrParser
from pyterrier_mathamr.formula import FormulaPair, FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph
from pyterrier_mathamr.graph.mathamr import attach_formulas
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
from pyterrier_mathamr.posts.topics import distinct_queries
from pyterrier_mathamr.sparse.expressions import formula_trees, query_formula

Representation = Literal["opt", "amr+opt", "amr+latex", "text+latex", "text+opt"]
"""How a formula and its context are written; in the dissertation OPTText, AMRText w. OPTText (which is MathAMR),
AMRText w. LaTeX, RawText w. LaTeX and RawText w. OPTText."""

REPRESENTATION = one_of(*get_args(Representation))
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
        representation: Representation = "amr+opt",
        window: int = 1,
        *,
        parser: str | AmrParser = "dependency",
        store: FormulaStore | None = None,
        batch_size: int = 256,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.representation: Representation = representation
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
            found = [i for test in same for i, other in enumerate(post.formulas) if test(other)]
            if not found:
                post = MathPost(placeholder(0), (formula,)) if formula.latex or formula.id else MathPost("", ())
            posts[row["qid"]] = post
            if post.formulas:
                asked.append((row["qid"], found[0] if found else 0))
        texts = self._texts(posts, asked)
        return {**dict.fromkeys(posts, ""), **{qid: text for (qid, _), text in zip(asked, texts, strict=True)}}

    def _texts(self, posts: Mapping[str, MathPost], asked: Sequence[tuple[str, int]]) -> list[str]:
        """Write formulas of posts, given by their numbers."""
        if self.representation == "opt":
            written = self._trees(posts[name].formulas[number] for name, number in asked)
            return [_plain(text) for text in written]
        places, windows = list[_Place](), dict[_Place, MathPost]()
        numbered: dict[str, tuple[MathPost, tuple[str, ...], dict[int, int]]] = {}
        for name, number in asked:
            if name not in numbered:
                post = without_stops(posts[name])
                numbered[name] = post, post.sentences, _sentence_numbers(post.sentences)
            post, sentences, sentence_of = numbered[name]
            middle, half = sentence_of[number], self.window // 2
            place = _Place(name, max(0, middle - half), min(len(sentences), middle + half + 1))
            places.append(place)
            if place not in windows:
                windows[place] = _cut(sentences[place.start : place.end], post.formulas)
        texts = dict(zip(windows, self._written(list(windows.values())), strict=True))
        return [_plain(texts[place]) for place in places]

    def _written(self, windows: Sequence[MathPost]) -> list[str]:
        """Write the sentences of each window with their formulas."""
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
        return [_linear_tree(pair) or formula.latex for formula, pair in zip(given, trees, strict=True)]


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


def _sentence_numbers(sentences: Sequence[str]) -> dict[int, int]:
    """Find the first sentence of each formula."""
    found: dict[int, int] = {}
    for number, sentence in enumerate(sentences):
        for match in PLACEHOLDER.finditer(sentence):
            found.setdefault(int(match[1]), number)
    return found


def _cut(sentences: Sequence[str], formulas: Sequence[PostFormula]) -> MathPost:
    """Make a post of some sentences, with their formulas renumbered."""
    text, own = "\n".join(sentences), dict[int, int]()
    for match in PLACEHOLDER.finditer(text):
        own.setdefault(int(match[1]), len(own))
    text = PLACEHOLDER.sub(lambda match: placeholder(own[int(match[1])]), text)
    return MathPost(text, tuple(formulas[number] for number in own))


def _linear_tree(pair: FormulaPair) -> str:
    graph = MathAMRGraph(attach_formulas(_FORMULA_ONLY, [pair], "opt"), ("",))
    return linearise(graph, math_word=False)


def _plain(text: str) -> str:
    """Write letters of mathematical alphabets as plain ones, and line ends as spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).split())
