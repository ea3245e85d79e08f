"""Texts: the plain texts of a post's virtual nodes, for a text encoder.

One sentence carries little ("This follows."), so a post is given as segments, its sentences with the places of their
formulas, and an encoder reads as many segments as fit at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyterrier_mathamr.amr import AmrGraph
from pyterrier_mathamr.posts import PLACEHOLDER

from .errors import GraphError
from .mathamr import MathAMRGraph
from .structure import sentence_numbers


def sentence_texts(amr: AmrGraph, texts: Sequence[str], whole: str) -> tuple[str, ...]:
    """Find the text of each sentence of a graph.

    Args:
        amr: the graph of a post in writing order, with or without trees.
        texts: the parser's texts, one for each ``:snt1``, ``:snt2``, … of the root, or one text for all.
        whole: the text of the post.

    Returns:
        One text for each sentence of :func:`layout_of`; nested ones have the text of the ``:snt`` above them. Without
        a text from the parser, it is the text of the whole post: too much, but never another sentence's.
    """
    numbers = sentence_numbers(amr)
    if len(texts) == 1:
        return (texts[0],) * len(numbers)
    return tuple(texts[number - 1] if 0 < number <= len(texts) else whole for number in numbers)


class TextPlace(NamedTuple):
    """The place of a formula: characters ``start`` to ``end`` of segment ``segment``, without its dollars."""

    segment: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Segments:
    """A post as consecutive texts.

    Attributes:
        texts: the distinct texts of its sentences, in order, with formulas as ``$latex$``; then the formulas that are
            in no sentence.
        of_sentence: the number of each sentence's text.
        of_formula: the first place of each formula.
    """

    texts: tuple[str, ...]
    of_sentence: tuple[int, ...]
    of_formula: tuple[TextPlace, ...]


def segments_of(graph: MathAMRGraph) -> Segments:
    """Give the sentences of a post, each once, and the places of its formulas in them.

    Args:
        graph: a graph that was built from text.

    Raises:
        GraphError: the graph has no texts, or a formula no LaTeX; names the graph and the remedy.
    """
    if len(graph.latex) < graph.n_formulas:
        raise _missing(graph, f"LaTeX of FORMULA_{len(graph.latex)}")
    if not graph.sentence_texts:  # an empty post has one empty sentence
        raise _missing(graph, "text of the post")
    plain = list(dict.fromkeys(graph.sentence_texts))
    number = {text: i for i, text in enumerate(plain)}
    texts, places = [], dict[int, TextPlace]()
    for segment, text in enumerate(plain):
        pieces, length, last = list[str](), 0, 0
        for match in PLACEHOLDER.finditer(text):
            formula = int(match[1])
            if formula < len(graph.latex):  # a placeholder without LaTeX stays
                pieces += [text[last : match.start()], f"${graph.latex[formula]}$"]
                length += len(pieces[-2]) + len(pieces[-1])
                places.setdefault(formula, TextPlace(segment, length - 1 - len(graph.latex[formula]), length - 1))
                last = match.end()
        texts.append("".join([*pieces, text[last:]]))
    for formula in range(graph.n_formulas):
        if formula not in places:
            places[formula] = TextPlace(len(texts), 1, 1 + len(graph.latex[formula]))
            texts.append(f"${graph.latex[formula]}$")
    of_sentence = tuple(number[text] for text in graph.sentence_texts)
    return Segments(tuple(texts), of_sentence, tuple(places[i] for i in range(graph.n_formulas)))


def _missing(graph: MathAMRGraph, what: str) -> GraphError:
    """Make the error of a graph without a text that a model with text features reads."""
    return GraphError(
        f"graph {graph.id!r}",
        f"no {what}, which a model with text features reads; build the graph from its post with GraphBuilder (a graph "
        "from Penman text has texts only where to_penman wrote them)",
    )
