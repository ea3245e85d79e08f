"""Formulas as texts, so that any model of posts ranks formulas (Task 2): each by itself, or with the words around it.

::

    posts ──formula_documents──▶ {docno: id of a formula, post_id, html} ──doc_encoder──▶ index
    topics ───FormulaQuery─────▶ {qid, query}                            ──query_encoder──▶ search
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, get_args

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.extending import (
    COUNT,
    Leaf,
    Rule,
    SeenIds,
    Transformer,
    VisualIds,
    document_or_empty,
    empty_output,
    lookup,
    one_of,
    reported_once,
    text_of,
)
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, PostFormula, placeholder, query_post, strip_delimiters

FormulaContext = Literal["formula", "post"]
"""The text of a formula: itself, or its post with every other formula masked."""

INSTANCES: Mapping[FormulaContext, int] = {"formula": 1, "post": 5}
"""Maximum indexed formulas of one appearance: by themselves their texts are equal; in posts, 5 (Zhong et al., 4.4)."""

SHORT = 2
"""Characters of formulas that are indexed in one post only (the same section)."""

MASK = "[MASK]"
"""The replacement of other formulas: a token of BERT without any particular meaning."""

WORDS = 100
"""Words kept on each side of a formula, so that a model that cuts off long texts reads the formula itself."""

_CONTEXT = one_of(*get_args(FormulaContext))


def formula_documents(
    posts: Iterable[Mapping[str, Any]],
    context: FormulaContext = "formula",
    *,
    visual_ids: VisualIds | None = None,
    instances: int | None = None,
    words: int = WORDS,
) -> Iterator[dict[str, Any]]:
    """Yield a document for each formula of posts, to index with the document encoder of any model of texts.

    As in Zhong, Xie and Lin, "Applying structural and dense semantic matching for the ARQMath Lab 2022" (CLEF 2022),
    section 4.4: only the formula (their ``colbert``), or its post in which every other formula is a mask
    (``colbert_ctx``).

    Args:
        posts: dictionaries with ``docno`` and the columns of a document.
        context: ``formula``, only the formula; or ``post``, with up to ``words`` words on each side of it.
        visual_ids: formula id to visual id; formulas without one, and all by default, look alike if their LaTeX is the
            same up to spaces.
        instances: the maximum number of formulas that look alike; by default 1, or 5 in posts if they have more than
            two characters.
        words: of the context.

    Yields:
        ``docno``, the id of the formula; ``post_id``; ``html``. If several formulas have one id, as some in a release
        do, only the first.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        formulas = formula_documents(dataset.get_corpus_iter())
        (colbert.doc_encoder() >> index.indexer(dtype="float16")).index(formulas)
        pipeline = FormulaQuery() >> colbert.query_encoder() >> index.colbert(num_results=1000)
    """
    _CONTEXT.check("context", context)
    COUNT.check("words", words)
    most = INSTANCES[context] if instances is None else instances
    COUNT.check("instances", most)
    most_of_short = 1 if instances is None else most

    def documents() -> Iterator[dict[str, Any]]:  # so that options are checked by the call, not by the first document
        seen, ids = Counter[str](), SeenIds()
        for row in posts:
            post = document_or_empty(row)
            known = {} if visual_ids is None else lookup(visual_ids, [formula.id for formula in post.formulas])
            for number, formula in enumerate(post.formulas):
                appearance = known.get(formula.id) or f"${' '.join(formula.latex.split())}"
                if ids.add(formula.id) and seen[appearance] < (most if len(formula.latex) > SHORT else most_of_short):
                    seen[appearance] += 1
                    text = _text(post, number, context, words)
                    yield {"docno": formula.id, "post_id": str(row["docno"]), "html": text}

    return documents()


class FormulaQuery(Leaf, Transformer):
    """Rewrites each topic of Task 2 to a query for its formula, in the form of :func:`formula_documents`.

    ``query`` becomes only the formula, or, with ``context="post"``, its question in which every other formula is
    masked; ``title`` and ``body`` are left out. If the question lacks the formula, the query is only the formula.

    Args:
        context: the text of a formula, as for the documents.
        words: of the context, on each side of the formula.

    Raises:
        ConfigError: an option is out of its range.

    Example::

        pipeline = FormulaQuery() >> colbert.query_encoder() >> index.colbert(num_results=1000)
    """

    label = "formula query"
    checks: ClassVar[Mapping[str, Rule]] = {"context": _CONTEXT, "words": COUNT}

    def __init__(self, context: FormulaContext = "formula", *, words: int = WORDS) -> None:
        super().__init__()
        self.context, self.words = context, words

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rewrite topics, or the topics of a ranking.

        Args:
            inp: ``qid`` and ``latex``, or ``query`` that is one formula; for ``context="post"`` also ``title`` and
                ``body``, and the ``formula_id`` of one of their formulas.
        """
        with pt.validate.any(inp, context=self) as validation:
            for name in ("latex", "query"):
                validation.columns(includes=["qid", name])
        left = inp.drop(columns=["title", "body"], errors="ignore")
        if inp.empty:
            return empty_output(left, ["query"])
        with reported_once():
            read = {row["qid"]: self._query(row) for row in inp.drop_duplicates("qid").to_dict("records")}
        return left.assign(query=inp["qid"].map(read))

    def _query(self, row: Mapping[Any, Any]) -> str:
        name, post = text_of(row, "formula_id"), query_post(row)
        place = next((number for number, formula in enumerate(post.formulas) if name and formula.id == name), None)
        if post.text == placeholder(0):
            place = 0
        latex = strip_delimiters(text_of(row, "latex"))
        if not latex:
            latex = strip_delimiters(text_of(row, "query")) if place is None else post.formulas[place].latex
        formula = PostFormula(latex, name)
        if self.context == "formula" or place is None:
            return formula.html if latex else ""
        whole = (*post.formulas[:place], formula, *post.formulas[place + 1 :])  # the question may cut a formula off
        return _text(MathPost(post.text, whole), place, "post", self.words)


def _text(post: MathPost, number: int, context: FormulaContext, words: int) -> str:
    """Write a formula as HTML, by itself or in its post."""
    formula = post.formulas[number].html
    if context == "formula":
        return formula
    tokens = post.text.split()
    numbers = [{int(match[1]) for match in PLACEHOLDER.finditer(token)} for token in tokens]
    place = next((place for place, found in enumerate(numbers) if number in found), None)
    if place is None:
        return formula
    text = html.escape(" ".join(tokens[max(0, place - words) : place + words + 1]))
    return PLACEHOLDER.sub(lambda match: formula if int(match[1]) == number else MASK, text)
