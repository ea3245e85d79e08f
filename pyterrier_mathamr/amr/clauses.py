"""The roles of clauses: subjects, complements, relative clauses, adverbial clauses.

    we want to prove it     :ARG0 we of both verbs        the map that we use    (m / map :ARG1-of (u / use-01 ...))
    it is zero if x is      :condition                    because it is odd      :ARG1-of (c / cause-01 :ARG0 ...)
    x such that it is odd   :condition                    unless it is odd       :condition (o / odd :polarity -)
    as x tends to 0         :time                         to prove it            :purpose

A clause is known by its ``mark``, the conjunction that depends on its verb.
"""

from __future__ import annotations

from .conversion import Conversion
from .lexicon import CONCLUSIONS, LIMIT_VERBS, MARKS, SUBJECT_IS_THING, UNACCUSATIVE

_USING = ("use-01", "apply-02")  # in "we use x to prove y" it is we who prove


def subject_role(c: Conversion, head: int, *, passive: bool = False) -> str:
    """Give :ARG0 to an agent, :ARG1 to what something is done to or a frame is said of, :domain to all others."""
    if not c.is_verb(head) or c.formula[head]:
        return ":ARG1" if c.has_frame(head) else ":domain"
    name = c.label(head)[:-3]
    if passive or name in SUBJECT_IS_THING or name == "be" or c.label(head) == "exist-01":
        return ":ARG1"
    return ":ARG1" if name in UNACCUSATIVE and c.child(head, "obj") < 0 else ":ARG0"


def complement_role(c: Conversion, head: int) -> str:
    """Give the role of a complement: the first that is free after the object and, for some verbs, the subject."""
    if c.has_frame(head):
        taken = c.child(head, "obj", "nsubj:pass") >= 0 or c.label(head)[:-3] in SUBJECT_IS_THING
        return ":ARG2" if taken else ":ARG1"
    return ":ARG1" if c.is_verb(head) else ":mod"


def attach_complement(c: Conversion, token: int, head: int) -> None:
    """Attach a complement; an infinitive shares a subject with the verb above it, "whether" asks."""
    c.edge(c.inner[head], complement_role(c, head), c.outer[token])
    if c.relations[token] == "xcomp" and c.subject(token) < 0:
        controller = -1 if c.label(head) in _USING else c.child(head, "obj")
        controller = controller if controller >= 0 else c.subject(head)
        if controller >= 0 and c.inner[controller] >= 0 and c.inner[controller] != c.inner[token]:
            c.edge(c.inner[token], subject_role(c, token), c.inner[controller])
    elif c.marker(token, "mark") in ("whether", "if") and c.label(token) != "amr-unknown":
        c.edge(c.outer[token], ":mode", c.part.constant("interrogative"))


def share_subject(c: Conversion, token: int, head: int) -> None:
    """Give a second verb the subject of the first."""
    subject = c.subject(head)
    if c.subject(token) < 0 and subject >= 0 and c.inner[subject] >= 0 and c.is_verb(head):
        passive = c.child(token, "aux:pass") >= 0
        c.edge(c.inner[token], subject_role(c, token, passive=passive), c.inner[subject])


def is_cause(c: Conversion, token: int, relation: str) -> bool:
    """Whether a clause or adverb is the cause of what it depends on."""
    word = c.marker(token, "mark") if relation == "advcl" else c.lower[token]
    return word == "why" or (relation == "advcl" and MARKS.get(word) == ":cause" and word != "as")


def concludes(c: Conversion, token: int) -> bool:
    """Whether an adverb says that a cause was told before, as "thus" does and "so" at the start."""
    word = c.lower[token]
    return (
        c.relations[token] == "advmod"
        and word in CONCLUSIONS
        and (word != "so" or token == 0 or c.lower[token - 1] == ",")
    )


def declares(c: Conversion, token: int) -> bool:
    """Whether a clause says what symbols stand for, as in "x + c, where c is a constant"."""
    return "where" in c.present and any(
        c.lower[child] == "where" and child > 0 and c.lower[child - 1] == "," for child in c.children[token]
    )


def describing_role(c: Conversion, token: int) -> str:
    """Give the role of a clause that describes a noun: what the noun is in the clause, inverted."""
    if c.relations[token] == "acl:relcl":
        for child in c.children[token]:
            if c.inner[child] < 0 and c.lower[child] in ("which", "that", "who", "whom"):
                what = c.relations[child]
                if what in ("nsubj", "nsubj:pass"):
                    role = subject_role(c, token, passive=what == "nsubj:pass")
                    return ":mod" if role == ":domain" else f"{role}-of"
                if what == "obj":
                    return ":ARG1-of"
            elif c.inner[child] < 0 and c.lower[child] == "where":
                return ":location-of"
            elif c.inner[child] < 0 and c.lower[child] == "when":
                return ":time" if c.is_verb(c.heads[token]) else ":time-of"
        return ":mod" if not c.is_verb(token) else ":ARG0-of" if c.subject(token) < 0 else ":ARG1-of"
    if _conjunction(c, token) in ("as", "when"):
        return adverbial_role(c, token)
    if not c.is_verb(token):
        return ":mod"
    if c.tags[token] == "VBN" or c.tags[token] == "VBD":
        return ":ARG1-of"
    if c.tags[token] == "VBG":
        return f"{subject_role(c, token)}-of"
    return ":purpose" if c.marker(token, "mark") == "to" else ":mod"


def adverbial_role(c: Conversion, token: int) -> str:
    """Give the role of an adverbial clause by the word that introduces it."""
    word = _conjunction(c, token)
    if not word:
        return ":manner" if c.tags[token] == "VBG" else ":purpose" if c.tags[token] == "VB" else ":mod"
    if word == "as":
        return ":time" if c.lemma(token) in LIMIT_VERBS else ":prep-as"
    if word == "unless":
        c.edge(c.outer[token], ":polarity", c.part.constant("-"))
    role = MARKS.get(word, f":prep-{word}" if word.isalpha() else ":mod")
    return ":prep-as" if role == ":cause" else role


def _conjunction(c: Conversion, token: int) -> str:
    """The word that introduces a clause: its ``mark``, or a first word such as "when" that is none by its relation."""
    mark = c.marker(token, "mark")
    first = min([token, *(child for child in c.children[token] if c.relations[child] != "punct")])
    return mark or (c.lower[first] if first != token and c.lower[first] in MARKS else "")
