r"""`MathPassager`: documents to passages that never cut a formula.

A text is a sequence of words between white space. Words that a formula joins are one item, and a passage is items::

    word                        0      1  2  3    4   5    6   7 8
    text                        Since  $a =  b$,  we  get  \[c < d\].
    item                        0      1          2   3    4
    length 5, stride 3, words   0 ------------------ 4                      next: word 3, in item 1, so word 1
                                       1 ---------------- 5                 next: word 4
                                                  4 -------------- 8
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.parameters import COUNT
from pyterrier_mathamr._common.transformers import Leaf, Transformer

from .html import masked_html
from .math_spans import MARK, math_spans
from .post import DocumentError
from .reading import LOOKS_LIKE_HTML, PARAGRAPH

_BLANKS = re.compile(r"\s+")


class MathPassager(Leaf, Transformer):
    r"""Cuts documents into overlapping passages as ``pt.text.sliding`` does, but never a formula.

    A passage has ``length`` words, and the next one begins ``stride`` words later; a cut that would fall into a formula
    moves to its beginning. A formula with more than ``length`` words is a passage by itself. The last passage has the
    rest of the text, which ``pt.text.sliding`` drops where it is shorter than a passage. Passage ``n`` of document
    ``d`` is ``d%pn``, so that ``pt.text.max_passage()`` and PyTerrier's other aggregations find its document.

    Formulas are those that ``GraphBuilder`` reads: between dollars, ``\(..\)`` or ``\[..\]``, environments such as
    ``align`` and, in HTML, ``math-container`` spans and MathML. Tags and code with dollars are not cut, either.

    Frames are documents or rankings; all columns are kept, except the one that is prepended.

    Example::

        passages = mathamr.MathPassager(text_attr="text", prepend_attr=None)
        chapters = mathamr.BM25Index("chapters.bm25")
        (passages >> chapters.indexer()).index(dataset.get_corpus_iter())
        pipeline = chapters.retriever() >> pt.text.max_passage()

    Args:
        text_attr: the column of the text.
        length: the number of words of a passage.
        stride: the number of words from the beginning of one passage to that of the next; at most ``length``.
        join: put between the words of a passage, and after what is prepended.
        prepend_attr: a column, such as the title, whose text each passage begins with; ``None`` for none.

    Raises:
        ConfigError: ``length`` or ``stride`` is below 1, or ``stride`` is above ``length`` and would leave text out.
        DocumentError: a document's text is not text.
    """

    label = "MathPassager"
    checks = {"length": COUNT, "stride": COUNT}  # noqa: RUF012

    def __init__(
        self,
        text_attr: str = "body",
        length: int = 150,
        stride: int = 75,
        join: str = " ",
        prepend_attr: str | None = "title",
    ) -> None:
        super().__init__()
        self.text_attr = text_attr
        self.length = length
        self.stride = stride
        self.join = join
        self.prepend_attr = prepend_attr
        if stride > length:
            raise ConfigError("stride", stride, f"an integer from 1 to length={length}")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace each document by its passages."""
        prepended = [self.prepend_attr] if self.prepend_attr else []
        with pt.validate.any(inp, context=self) as check:
            check.result_frame([self.text_attr, *prepended])
            check.document_frame([self.text_attr, *prepended])
        kept: pd.DataFrame = inp.drop(columns=prepended)
        if inp.empty:
            return kept
        rows: list[int] = []
        docnos: list[str] = []
        texts: list[str] = []
        titles = inp[self.prepend_attr] if self.prepend_attr else [None] * len(inp)
        for row, (docno, text, title) in enumerate(zip(inp["docno"], inp[self.text_attr], titles, strict=True)):
            if not (isinstance(text, str) or is_missing(text)):
                raise DocumentError(str(docno), f"its {self.text_attr} is text, not {type(text).__name__}")
            before = [] if is_missing(title) else [str(title)]
            for number, words in enumerate(_passages("" if is_missing(text) else text, self.length, self.stride)):
                rows.append(row)
                docnos.append(f"{docno}%p{number}")
                texts.append(self.join.join([*before, *words]))
        result: pd.DataFrame = kept.iloc[rows].reset_index(drop=True)
        return result.assign(**{"docno": docnos, self.text_attr: texts})


def _passages(text: str, length: int, stride: int) -> Iterator[list[str]]:
    """Yield the passages of a text, each as its words; a formula with white space is one item of several words."""
    items, words = [], [0]  # the words before each item, and in all
    whole, at, start = _whole_spans(text), 0, 0
    inner = 0
    for blank in _BLANKS.finditer(text):
        while at < len(whole) and whole[at][1] <= blank.start():
            at += 1
        inner += 1
        if at < len(whole) and whole[at][0] < blank.end():
            continue
        items.append(text[start : blank.start()])
        words.append(words[-1] + inner)
        start, inner = blank.end(), 0
    items.append(text[start:])
    words.append(words[-1] + inner + 1)
    first = end = 0
    while end < len(items):
        end = max(bisect_right(words, words[first] + length) - 1, first + 1)
        yield items[first:end]
        first = max(bisect_right(words, words[first] + stride) - 1, first + 1)


def _whole_spans(text: str) -> list[tuple[int, int]]:
    """Find what is never cut, in order and without overlap."""
    if LOOKS_LIKE_HTML.search(text):
        shadow, parts = masked_html(text.replace(MARK, " "))
    else:
        shadow, parts = PARAGRAPH.sub(lambda end: "\x00" * len(end[0]), text.replace(MARK, " ")), []
        shadow = shadow.replace("\n", " ").replace("\x00", "\n")
    spans: list[tuple[int, int]] = []
    for start, end in sorted([*parts, *((start, end) for start, end, _ in math_spans(shadow))]):
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans
