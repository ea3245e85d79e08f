"""What stands round a word's node: modals, comparisons, equations and coordinations.

can be larger    (p / possible-01 :ARG1 (h / have-degree-91 :ARG2 (l / large-01) :ARG3 (m / more)))
x and y          (a / and :op1 (x / x) :op2 (y / y))
at least two     (a / at-least :op1 2)
x is y           (e / equal-01 :ARG1 (x / x) :ARG2 (y / y))     where both are formulas
"""

from __future__ import annotations

from .conversion import Conversion, frame
from .lexicon import MODALS


def make_wrappers(c: Conversion) -> None:
    """Put modals, comparisons, equations and coordinations round their tokens."""
    conjuncts: dict[int, list[int]] = {}
    for token in range(len(c.words)):
        if c.inner[token] < 0:
            continue
        if c.relations[token] == "conj":
            head = c.anchor(token)
            if head >= 0:
                conjuncts.setdefault(head, []).append(token)
        _wrap(c, token)
    for head in sorted(conjuncts, key=lambda token: _depth(c, token), reverse=True):  # inner coordinations first
        _coordinate(c, head, conjuncts[head])


def _depth(c: Conversion, token: int) -> int:
    depth = 0
    while c.heads[token] >= 0:
        token = c.heads[token]
        depth += 1
    return depth


def _wrap(c: Conversion, token: int) -> None:
    negated = any(c.lower[child] in ("not", "n't", "never") for child in c.children[token])
    tag = c.tags[token]
    if tag in ("JJR", "JJS", "RBR", "RBS") or (tag == "JJ" and _grade(c, token) in ("more", "most", "less", "least")):
        _compare(c, token)
    if token in c.bounds:
        bound = c.part.add(c.bounds[token])
        c.edge(bound, ":op1", c.outer[token])
        c.outer[token] = bound
    if c.formula[token] and c.child(token, "cop") >= 0 and c.subject(token) >= 0:
        equal = c.part.add("equal-01")
        c.edge(equal, ":ARG2", c.outer[token])
        c.outer[token] = c.predicate[token] = equal
    for child in c.children[token]:
        if c.relations[child] == "aux" and c.lower[child] in MODALS:
            modal = c.part.add(frame(MODALS[c.lower[child]]))
            c.edge(modal, ":ARG2" if c.part.labels[modal] == "obligate-01" else ":ARG1", c.outer[token])
            c.outer[token] = modal
            if negated and c.lower[child] in ("can", "ca", "could"):  # "may not" is possible that not
                c.edge(modal, ":polarity", c.part.constant("-"))
                negated = False
    if negated or any(c.lower[child] == "no" and c.relations[child] == "det" for child in c.children[token]):
        c.edge(c.inner[token], ":polarity", c.part.constant("-"))


def _grade(c: Conversion, token: int) -> str:
    adverb = c.child(token, "advmod")
    return c.lower[adverb] if adverb >= 0 else ""


def _compare(c: Conversion, token: int) -> None:
    """(have-degree-91 :ARG2 adjective :ARG3 more|most) round a compared adjective."""
    word, tag = c.lower[token], c.tags[token]
    grade = _grade(c, token) or ("most" if tag[-1] == "S" else "more")
    if word in ("more", "most", "less", "least", "fewer") or tag[:2] == "RB":
        return
    degree = c.part.add("have-degree-91")
    c.edge(degree, ":ARG2", c.outer[token])
    adverb = c.child(token, "advmod")
    if adverb >= 0 and c.lower[adverb] == grade and c.inner[adverb] >= 0 and not c.children[adverb]:
        c.edge(degree, ":ARG3", c.inner[adverb])
        c.relations[adverb] = "done"
    else:
        c.edge(degree, ":ARG3", c.part.add(grade))
    c.outer[token] = c.predicate[token] = degree


def _coordinate(c: Conversion, head: int, conjuncts: list[int]) -> None:
    marks = (child for token in conjuncts for child in c.children[token] if c.relations[child] == "cc")
    word = next((c.lower[mark] for mark in marks), "and")
    word = {"&": "and", "nor": "or", "/": "or"}.get(word, word)
    role = ":op"
    if word in ("but", "yet"):
        word, role = "contrast-01", ":ARG"
    elif word not in ("and", "or"):
        word = "and"
    node = c.part.add(word)
    for i, token in enumerate([head, *conjuncts], 1):
        c.edge(node, f"{role}{i}", c.outer[token])
    c.outer[head] = node
