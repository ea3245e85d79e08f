"""The edges of a sentence's graph: from dependency relations to AMR roles.

    nsubj       :ARG0; :ARG1 in the passive, of verbs such as "converge" and of adjectives; :domain of nouns
    obj, iobj   :ARG1, :ARG2
    xcomp ...   :ARG1, :ARG2 after an object; the subject that an infinitive shares is a second edge
    obl, nmod   by preposition          advcl   by conjunction          advmod   by adverb
    acl, relcl  :ARG0-of, :ARG1-of      amod, det, compound, appos and all others   :mod

A clause is classified by its ``mark``, the conjunction that depends on its verb:

    we want to prove it     :ARG0 we of both verbs        the map that we use    (m / map :ARG1-of (u / use-01 ...))
    it is zero if x is      :condition                    because it is odd      :ARG1-of (c / cause-01 :ARG0 ...)
    x such that it is odd   :condition                    unless it is odd       :condition (o / odd :polarity -)
    as x tends to 0         :time                         to prove it            :purpose
"""

from __future__ import annotations

from .conversion import Conversion
from .lexicon import (
    ADVERBS,
    CITIES,
    CONCLUSIONS,
    COUNTRIES,
    LIMIT_VERBS,
    MARKS,
    MONTHS,
    PREPOSITIONS,
    QUANTIFIERS,
    SUBJECT_IS_THING,
    UNACCUSATIVE,
)

_SETS = frozenset(
    {"set", "sequence", "sum", "product", "family", "collection", "list", "pair", "union", "series", "tuple"}
)
_PLACE_OR_TIME = ("in", "on", "at")
_QUESTION_ROLES = {"how": ":manner", "where": ":location", "when": ":time", "why": ":ARG1-of"}


def attach(c: Conversion, token: int, head: int) -> None:
    """Add the edge or edges between a token and the nearest token with a node above it."""
    relation = c.relations[token].partition(":")[0]
    if c.formula[token] and token < head and c.subject(head) < 0 and c.child(head, "cop") >= 0:
        relation = "nsubj" if relation in ("advmod", "obl", "expl", "dep", "nmod", "compound") else relation
    source, target = c.inner[head], c.outer[token]
    mark = c.marker(token, "mark")
    behind_such = "such" in c.present and any(c.lower[i] == "such" and head < i < token for i in c.children[head])
    if mark == "such" or behind_such or declares(c, token):
        c.edge(source, ":condition", target)
    elif mark == "iff" and target != c.outer[head]:  # each is the condition of the other
        c.edge(source, ":condition", target)
        c.edge(c.inner[token], ":condition", c.outer[head])
    elif relation in ("nsubj", "csubj"):
        if c.predicate[head] >= 0:
            c.edge(c.predicate[head], ":ARG1", target)
        else:
            c.edge(source, subject_role(c, head, passive=c.relations[token].endswith("pass")), target)
    elif relation in ("ccomp", "xcomp"):
        attach_complement(c, token, head)
    elif _tells_cause(c, token, relation):
        cause = c.part.add("cause-01")
        c.edge(c.outer[head] if c.outer[head] != source else source, ":ARG1-of", cause)
        c.edge(cause, ":ARG0", target)
    elif concludes(c, token):
        c.edge(c.outer[head], ":ARG1-of", target)
    elif (
        relation in ("nmod", "compound", "obl")
        and c.role_frame(head) >= 0
        and _preposition(c, token) in ("", "of", "'s")
    ):
        c.edge(c.role_frame(head), ":ARG1", target)
    elif relation == "acl":
        c.edge(source, describing_role(c, token), target)
    elif relation == "obl" and _preposition(c, token) == "than" and c.predicate[head] >= 0:
        c.edge(c.predicate[head], ":ARG4", target)
    elif relation == "amod" and c.predicate[token] >= 0:
        c.edge(source, ":ARG1-of", target)
    else:
        c.edge(source, _plain_role(c, token, head, relation), target)


def _tells_cause(c: Conversion, token: int, relation: str) -> bool:
    if relation in ("obl", "nmod"):
        return _preposition(c, token) in ("because", "due")
    if relation not in ("advcl", "advmod"):
        return False
    word = c.marker(token, "mark") if relation == "advcl" else c.lower[token]
    return word == "why" or (relation == "advcl" and MARKS.get(word) == ":cause" and word != "as")


def _preposition(c: Conversion, token: int) -> str:
    word = c.marker(token, "case")
    return "'s" if word == "'" else word


def _plain_role(c: Conversion, token: int, head: int, relation: str) -> str:
    """Return the role of a dependent that is one edge."""
    if relation != "advcl" and c.marker(token, "mark") == "if":
        return ":condition"
    if relation == "obj":
        second = c.has_frame(head) and c.label(head)[:-3] in SUBJECT_IS_THING and c.subject(head) >= 0
        return ":ARG2" if second else ":ARG1"
    if relation == "iobj":
        return ":ARG2"
    if relation == "obl":
        return _oblique_role(c, token, head)
    if relation == "nmod":
        return _nominal_role(c, token, head)
    if relation == "nummod":
        return ":quant"
    if relation == "advmod":
        return _adverb_role(c, token, head)
    if relation == "advcl":
        return adverbial_role(c, token)
    if relation == "amod" and c.tags[token] in ("VBN", "VBD"):
        return ":ARG1-of"
    if relation == "amod" and c.tags[token] == "VBG":
        return ":ARG0-of"
    if relation == "amod" and c.label(token) == "ordinal-entity":
        return ":ord"
    if relation == "amod" and c.lower[token] in ("many", "much", "few", "several"):
        return ":quant"
    if relation == "compound" and c.has_frame(head) and not c.formula[token]:
        return ":ARG1"
    return ":mod"


def _oblique_role(c: Conversion, token: int, head: int) -> str:
    word = _preposition(c, token)
    if c.lower[token] in ("example", "instance", "fact", "general", "particular"):
        return ":mod"
    if not word:
        return ":time" if c.relations[token] in ("obl:tmod", "obl:unmarked") else ":mod"
    if word == "by" and (c.child(head, "aux:pass", "nsubj:pass") >= 0 or c.tags[head] == "VBN"):
        return ":ARG0"
    if word in ("to", "of", "on", "into") and c.has_frame(head):
        if word in ("to", "into"):
            return ":ARG2"
        return ":ARG1" if word == "of" or c.label(head) == "depend-01" else ":location"
    return _prepositional(c, token, word)


def _prepositional(c: Conversion, token: int, word: str) -> str:
    if word in _PLACE_OR_TIME and (c.lower[token] in MONTHS or (len(c.lower[token]) == 4 and c.lower[token].isdigit())):
        return ":time"
    if word == "for" and (c.formula[token] or any(c.lower[child] in QUANTIFIERS for child in c.children[token])):
        return ":prep-for"
    role = PREPOSITIONS.get(word)
    return role or (f":prep-{word}" if word.isalpha() else ":mod")


def _nominal_role(c: Conversion, token: int, head: int) -> str:
    word = _preposition(c, token)
    if c.relations[token] == "nmod:poss":
        if not c.has_frame(head):
            return ":poss"
        return ":ARG0" if c.tags[token][:3] == "PRP" else ":ARG1"
    if word == "of":
        if c.has_frame(head):
            return ":ARG1"
        return ":consist-of" if c.label(head) in _SETS else ":poss"
    if not word:
        return ":mod"
    if word == "by":
        return ":ARG0" if c.has_frame(head) else ":prep-by"
    if word == "to" and c.has_frame(head):
        return ":ARG2"
    if word == "in" and c.lower[token] not in COUNTRIES | CITIES and c.formula[token]:
        return ":location"
    return _prepositional(c, token, word)


def _adverb_role(c: Conversion, token: int, head: int) -> str:
    word = c.lower[token]
    if word in _QUESTION_ROLES and c.label(token) == "amr-unknown":
        return ":degree" if word == "how" and c.tags[head][0] in "JR" else _QUESTION_ROLES[word]
    role = ADVERBS.get(word)
    return role or (":manner" if c.is_verb(head) else ":degree" if c.tags[head][0] in "JR" else ":mod")


_USING = ("use-01", "apply-02")  # in "we use x to prove y" the subject of both verbs is "we"


def subject_role(c: Conversion, head: int, *, passive: bool = False) -> str:
    """Return :ARG0 for an agent, :ARG1 for a patient or the subject of a frame, :domain for all others."""
    if not c.is_verb(head) or c.formula[head]:
        return ":ARG1" if c.has_frame(head) else ":domain"
    name = c.label(head)[:-3]
    if passive or name in SUBJECT_IS_THING or name == "be" or c.label(head) == "exist-01":
        return ":ARG1"
    return ":ARG1" if name in UNACCUSATIVE and c.child(head, "obj") < 0 else ":ARG0"


def attach_complement(c: Conversion, token: int, head: int) -> None:
    """Attach a complement; an infinitive shares a subject with its head, "whether" is a question."""
    role = ":ARG1" if c.is_verb(head) or c.has_frame(head) else ":mod"
    if c.has_frame(head) and (c.child(head, "obj", "nsubj:pass") >= 0 or c.label(head)[:-3] in SUBJECT_IS_THING):
        role = ":ARG2"  # the first is the object's or, for some verbs, the subject's
    c.edge(c.inner[head], role, c.outer[token])
    if c.relations[token] == "xcomp" and c.subject(token) < 0:
        controller = -1 if c.label(head) in _USING else c.child(head, "obj")
        controller = controller if controller >= 0 else c.subject(head)
        if controller >= 0 and c.inner[controller] >= 0 and c.inner[controller] != c.inner[token]:
            c.edge(c.inner[token], subject_role(c, token), c.inner[controller])
    elif c.marker(token, "mark") in ("whether", "if") and c.label(token) != "amr-unknown":
        c.edge(c.outer[token], ":mode", c.part.constant("interrogative"))


def share_subject(c: Conversion, token: int, head: int) -> None:
    """Attach the subject of the first verb to the second."""
    subject = c.subject(head)
    if c.subject(token) < 0 and subject >= 0 and c.inner[subject] >= 0 and c.is_verb(head):
        passive = c.child(token, "aux:pass") >= 0
        c.edge(c.inner[token], subject_role(c, token, passive=passive), c.inner[subject])


def concludes(c: Conversion, token: int) -> bool:
    """Return whether an adverb refers to a cause before it, as "thus" does, and "so" at the start."""
    word = c.lower[token]
    begins = word != "so" or token == 0 or c.lower[token - 1] == ","
    return begins and word in CONCLUSIONS and c.relations[token] == "advmod"


def declares(c: Conversion, token: int) -> bool:
    """Return whether a clause defines symbols, as in "x + c, where c is a constant"."""
    return "where" in c.present and any(
        c.lower[child] == "where" and child > 0 and c.lower[child - 1] == "," for child in c.children[token]
    )


def describing_role(c: Conversion, token: int) -> str:
    """Return the role of a clause that describes a noun: the noun's role in the clause, inverted."""
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
    """Return the role of an adverbial clause by the word that introduces it."""
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
    """Return the word that introduces a clause: its ``mark``, or a first word such as "when" with another relation."""
    mark = c.marker(token, "mark")
    first = min([token, *(child for child in c.children[token] if c.relations[child] != "punct")])
    return mark or (c.lower[first] if first != token and c.lower[first] in MARKS else "")
