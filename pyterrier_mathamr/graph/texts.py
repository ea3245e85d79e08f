"""The texts behind a graph: what each retrieval vector stands for, as a text encoder reads it.

formula    its LaTeX                           x^2 = 2
sentence   the sentence it was parsed from     Solve $x^2 = 2$.
document   title and body                      An equation⏎Solve $x^2 = 2$. I tried $x = 1$.

A sentence alone says little ("This follows."), and a text encoder reads only the beginning of a long post.
So there is a second text of each: a sentence's is its passage, the consecutive sentences around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyterrier_mathamr.amr import AmrGraph
from pyterrier_mathamr.posts import PLACEHOLDER

from .errors import MissingTextsError
from .layout import layout_of
from .mathamr import MathAMRGraph
from .virtual import VirtualKind

PASSAGE = 900
"""Most characters of a passage of several sentences: as much mathematics as common text encoders read at once."""


def sentence_texts(amr: AmrGraph, texts: Sequence[str], whole: str) -> tuple[str, ...]:
    """Find the text behind each sentence of a graph.

    Args:
        amr: the graph of a post, with or without trees.
        texts: what the parser says: the text of each ``:snt1``, ``:snt2``, … of the root, or one text for all.
        whole: the text of the post.

    Returns:
        One text for each sentence of :func:`layout_of`, nested ones each with the text of the ``:snt`` they are below.
        Where the parser does not say, it is the text of the whole post: too much, but never another sentence's.
    """
    numbers = layout_of(amr, 0).numbers
    if len(texts) == 1:
        return (texts[0],) * len(numbers)
    return tuple(texts[number - 1] if 0 < number <= len(texts) else whole for number in numbers)


def row_texts(graph: MathAMRGraph, kinds: Iterable[int]) -> list[str]:
    """List the text behind each retrieval vector, formulas as ``$latex$`` in sentences and documents.

    Args:
        graph: a graph that was built from text.
        kinds: the :class:`VirtualKind` of each vector: formulas in order, sentences in order, document.

    Returns:
        One text for each of ``kinds``.

    Raises:
        MissingTextsError: the graph has fewer texts than that; it names the graph and says how to get one that has.
    """
    counts = [0, 0, 0]
    found = []
    for kind in kinds:
        found.append(_text(graph, VirtualKind(kind), counts[kind]))
        counts[kind] += 1
    return found


def row_contexts(graph: MathAMRGraph, kinds: Iterable[int]) -> list[str]:
    """List the text that each retrieval vector stands in: a sentence's passage, and of all else its own text.

    Passages follow each other and do not overlap; where a post is one passage, that is the text of the post.

    Args:
        graph: a graph that was built from text.
        kinds: the :class:`VirtualKind` of each vector, as for :func:`row_texts`.

    Returns:
        One text for each of ``kinds``.

    Raises:
        MissingTextsError: as :func:`row_texts`.
    """
    chosen = list(kinds)
    found = row_texts(graph, chosen)
    sentences = [row for row, kind in enumerate(chosen) if kind == VirtualKind.SENTENCE]
    groups = _passages([found[row] for row in sentences])
    for group in groups:
        rows = [sentences[i] for i in group]
        whole = _text(graph, VirtualKind.DOCUMENT, 0) if len(groups) == 1 else None
        passage = whole or " ".join(dict.fromkeys(found[row] for row in rows))  # nested sentences share one text
        for row in rows:
            found[row] = passage
    return found


def _passages(texts: Sequence[str]) -> list[list[int]]:
    """Group consecutive texts, as many as :data:`PASSAGE` allows, one at the least."""
    groups: list[list[int]] = []
    room = 0
    for i, text in enumerate(texts):
        if not groups or len(text) > room:
            groups.append([])
            room = PASSAGE
        groups[-1].append(i)
        room -= len(text)
    return groups


def _text(graph: MathAMRGraph, kind: VirtualKind, number: int) -> str:
    """Give the text of the vector of one kind with a number."""
    if kind is VirtualKind.FORMULA:
        if number >= len(graph.latex):
            raise MissingTextsError(graph.id, f"no LaTeX of FORMULA_{number}")
        return graph.latex[number]
    if kind is VirtualKind.DOCUMENT:
        if not graph.sentence_texts:  # a post may be empty, but then its one sentence is, too
            raise MissingTextsError(graph.id, "no text of the post")
        return with_latex(graph.text, graph.latex)
    if number >= len(graph.sentence_texts):
        raise MissingTextsError(graph.id, f"no text of sentence {number}")
    return with_latex(graph.sentence_texts[number], graph.latex)


def with_latex(text: str, latex: Sequence[str]) -> str:
    """Write ``$latex$`` for each placeholder; one without LaTeX stays as it is."""
    return PLACEHOLDER.sub(lambda match: f"${latex[int(match[1])]}$" if int(match[1]) < len(latex) else match[0], text)
