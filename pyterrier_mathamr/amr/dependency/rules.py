"""From a dependency tree to the graph of a sentence: nodes, wrappers around them, and edges.

    matrices  matrix            converges  converge-01           the proof  prove-01        two  2
    it, its   (i / it) once     Gauss      (p / person :name (n / name :op1 "Gauss"))       x, x  (x / x) once
    author    (p / person :ARG0-of (a / author-01))              which      amr-unknown

Function words have no node; their meaning is in the roles and in wrappers: modals, comparisons, equations, bounds and
coordinations, put around the node of a token.

    can be larger    (p / possible-01 :ARG1 (h / have-degree-91 :ARG2 (l / large-01) :ARG3 (m / more)))
    x and y          (a / and :op1 (x / x) :op2 (y / y))
    at least two     (a / at-least :op1 2)
    x is y           (e / equal-01 :ARG1 (x / x) :ARG2 (y / y))     where both are formulas

An edge is made of each dependency:

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

from .conversion import Conversion, frame
from .lexicon import (
    ADJECTIVE_FRAMES,
    ADJECTIVE_NAMES,
    ADVERBS,
    AGENTS,
    CITIES,
    COMMON_NOUNS,
    CONCLUSIONS,
    COUNTRIES,
    DETERMINERS,
    HAVE_RELATION,
    HAVE_ROLE,
    LIMIT_VERBS,
    MARKS,
    MODALS,
    MONTHS,
    NOMINAL_FRAMES,
    NUMBER_WORDS,
    ORDINALS,
    PREPOSITIONS,
    PRONOUNS,
    QUANTIFIERS,
    QUESTION_WORDS,
    SIGNS,
    SUBJECT_IS_THING,
    UNACCUSATIVE,
)

_SILENT = frozenset({"punct", "case", "mark", "cc", "aux", "aux:pass", "cop", "expl", "goeswith", "fixed",
                     "compound:prt", "cc:preconj", "reparandum"})  # fmt: skip
_NAME_PARTS = frozenset({"flat", "compound", "flat:name"})
_NEGATIONS = frozenset({"not", "n't", "never"})
_PLACES = ("nsubj", "obj", "nsubj:pass", "advmod", "obl")  # of a relative pronoun in its clause
_LONGEST_LABEL = 40


def make_nodes(c: Conversion) -> None:
    """Add a node for each content word."""
    for token in range(len(c.words)):
        if c.inner[token] < 0 and not _is_silent(c, token):
            c.inner[token] = c.outer[token] = _node(c, token)
    if "how" in c.present:
        for token in range(len(c.words)):
            if c.inner[token] < 0 and _counts_unknown(c, token) and c.anchor(token) >= 0:
                c.edge(c.inner[c.anchor(token)], ":quant", c.part.add("amr-unknown"))


def _is_silent(c: Conversion, token: int) -> bool:
    """Return whether a token has no node."""
    if c.formula[token]:
        return False
    relation, word, tag, head = c.relations[token], c.lower[token], c.tags[token], c.heads[token]
    if word in SIGNS:
        return relation == "punct" and head >= 0
    if relation in _SILENT:
        return not (relation == "expl" and word not in ("there", "it") and head < 0)
    if head < 0:
        return word == "please" or (relation == "advmod" and word in _NEGATIONS)
    if relation in ("det", "det:predet") and (word in DETERMINERS or word in ("no", "such", "what")):
        return word not in ("such", "what") or relation == "det:predet"
    if relation == "advmod" and (word in _NEGATIONS or _leads(c, token)):
        return True
    if word == "please" or tag == "TO" or _counts_unknown(c, token) or (word == "how" and _is_many(c, head)):
        return True
    if relation in _NAME_PARTS:
        return _names(c, head, token)
    if relation in _PLACES and word in ("which", "that", "who", "whom", "where"):
        return c.relations[head] == "acl:relcl"
    return not any(map(str.isalnum, word)) and tag not in ("SYM", "NN", "CD")


def _leads(c: Conversion, token: int) -> bool:
    """Return whether an adverb is a mere connective: relative *where* or *when*, or the *then* of an *if*."""
    if c.lower[token] == "then":
        return any(c.marker(child, "mark") == "if" for child in c.children[c.heads[token]])
    return c.joins_clauses(token) and c.heads[c.heads[token]] >= 0


def _is_many(c: Conversion, token: int) -> bool:
    return c.lower[token] in ("many", "much") and c.relations[token] in ("amod", "det")


def _counts_unknown(c: Conversion, token: int) -> bool:
    return _is_many(c, token) and any(c.lower[child] == "how" for child in c.children[token])


def _node(c: Conversion, token: int) -> int:
    word, tag = c.lower[token], c.tags[token]
    if c.formula[token]:
        return c.part.add(c.words[token])
    if word in SIGNS:
        return c.part.add(SIGNS[word])
    if word in PRONOUNS and tag[:3] in ("PRP", "NN", "FW", "LS"):
        return c.shared(PRONOUNS[word])
    if word in QUESTION_WORDS and tag[0] == "W" and not c.joins_clauses(token):
        return c.part.add("amr-unknown")
    if tag == "CD" or word in NUMBER_WORDS:
        number = NUMBER_WORDS.get(word, word)
        isolated = all(_is_silent(c, child) for child in c.children[token]) and c.heads[token] >= 0
        return c.part.constant(number) if isolated else c.part.add(number)
    if len(word) == 1 and word.isalpha() and tag[0] == "N":
        return c.shared(c.words[token])  # a symbol typed as text
    if _is_name(c, token):
        return _name(c, token)
    if tag[0] == "V":
        return c.part.add(_verb(c, token))
    if tag[0] == "N":
        return _noun(c, token)
    if tag[0] == "J" or tag[:2] == "RB":
        return _modifier(c, token)
    return c.part.add(c.lemma(token)[:_LONGEST_LABEL])


def _verb(c: Conversion, token: int) -> str:
    name = c.lemma(token)
    if name == "be":
        return "exist-01" if c.child(token, "expl") >= 0 else "be-01"
    infinitive = c.child(token, "xcomp")
    to = infinitive >= 0 and c.marker(infinitive, "mark") == "to"
    if name == "have" and to and c.child(token, "obj") < 0:
        return "obligate-01"
    if (name == "like" and any(c.lower[child] in ("would", "'d") for child in c.children[token])) or (
        name == "appear" and to
    ):
        return f"{name}-02"  # to wish, to seem
    particle = c.child(token, "compound:prt")
    if particle >= 0 and c.lower[particle].isalpha():
        name = f"{name}-{c.lower[particle]}"
    return frame(name[:_LONGEST_LABEL])


def _noun(c: Conversion, token: int) -> int:
    name = c.lemma(token)[:_LONGEST_LABEL]
    if name in HAVE_ROLE or name in HAVE_RELATION:  # a president or wife is a person with the role, see `role_frame`
        node = _person(c, "have-rel-role-91" if name in HAVE_RELATION else "have-org-role-91")
        c.edge(c.frames[node], ":ARG2", c.part.add(name))
        return node
    if name in AGENTS:
        return _person(c, frame(AGENTS[name]))
    return c.part.add(frame(NOMINAL_FRAMES[name]) if name in NOMINAL_FRAMES else name)


def _person(c: Conversion, does: str) -> int:
    node = c.part.add("person")
    c.frames[node] = c.part.add(does)
    c.edge(node, ":ARG0-of", c.frames[node])
    return node


def _modifier(c: Conversion, token: int) -> int:
    name = c.lemma(token)[:_LONGEST_LABEL]
    if concludes(c, token):
        return c.part.add("cause-01")
    if name in ADJECTIVE_FRAMES and c.tags[token][0] == "J":
        return c.part.add(frame(ADJECTIVE_NAMES.get(name, name)))
    if name in ORDINALS and c.relations[token] == "amod":
        node = c.part.add("ordinal-entity")
        c.edge(node, ":value", c.part.constant(ORDINALS[name]))
        return node
    if name.endswith("ically"):
        name = name[:-4]
    elif name.endswith("ly") and len(name) > 5:
        name = name[:-2] if not name.endswith("ily") else name[:-3] + "y"
    return c.part.add(name)


def _names(c: Conversion, head: int, token: int) -> bool:
    return (
        c.tags[head] in ("NNP", "NNPS") and c.tags[token] in ("NNP", "NNPS", "CD", ",", "HYPH")
        and _is_name(c, head) and not c.formula[token]
    )  # fmt: skip


def _is_name(c: Conversion, token: int) -> bool:
    word = c.lower[token]
    common = (f"c:{word}" in c.lemmas and token not in c.in_names) or word in COMMON_NOUNS
    return c.tags[token] in ("NNP", "NNPS") and len(word) > 1 and not common and not c.formula[token]


def _name(c: Conversion, token: int) -> int:
    parts = [child for child in c.children[token] if c.relations[child] in _NAME_PARTS and _names(c, token, child)]
    words = [c.words[part] for part in sorted([*parts, token]) if c.words[part][0].isalnum()]
    key = words[-1].lower()
    kind = "country" if key in COUNTRIES else "city" if key in CITIES else "person"
    node = c.part.add(kind)
    name = c.part.add("name")
    c.edge(node, ":name", name)
    for i, word in enumerate(words[:8], 1):
        quoted = '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
        c.edge(name, f":op{i}", c.part.constant(word, quoted))
    return node


def make_wrappers(c: Conversion) -> None:
    """Put modals, comparisons, equations, bounds and coordinations around the nodes of their tokens."""
    conjuncts: dict[int, list[int]] = {}
    negated = {c.heads[token] for token, word in enumerate(c.lower) if word in _NEGATIONS}
    denied = {c.heads[token] for token, word in enumerate(c.lower) if word == "no" and c.relations[token] == "det"}
    for token in range(len(c.words)):
        if c.inner[token] < 0:
            continue
        if c.relations[token] == "conj":
            head = c.anchor(token)
            if head >= 0:
                conjuncts.setdefault(head, []).append(token)
        _wrap(c, token, negated=token in negated, denied=token in denied)

    def depth(token: int) -> int:
        above = c.heads[token]
        steps = 0
        while above >= 0:
            above = c.heads[above]
            steps += 1
        return steps

    for head in sorted(conjuncts, key=depth, reverse=True):  # inner coordinations first
        _coordinate(c, head, conjuncts[head])


def _wrap(c: Conversion, token: int, *, negated: bool, denied: bool) -> None:
    """Wrap one token, which has a "not", or a "no" before it, where it is negated or denied."""
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
    if negated or denied:
        c.edge(c.inner[token], ":polarity", c.part.constant("-"))


def _grade(c: Conversion, token: int) -> str:
    adverb = c.child(token, "advmod")
    return c.lower[adverb] if adverb >= 0 else ""


def _compare(c: Conversion, token: int) -> None:
    """(have-degree-91 :ARG2 adjective :ARG3 more|most) around a compared adjective."""
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
