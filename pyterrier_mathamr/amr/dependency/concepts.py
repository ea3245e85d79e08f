"""The nodes of a sentence: a concept for each content word, and wrappers around them.

    matrices  matrix            converges  converge-01           the proof  prove-01        two  2
    it, its   (i / it) once     Gauss      (p / person :name (n / name :op1 "Gauss"))       x, x  (x / x) once
    author    (p / person :ARG0-of (a / author-01))              which      amr-unknown

Function words have no node; their meaning is in the roles and in wrappers: modals, comparisons, equations, bounds and
coordinations, put around the node of a token.

    can be larger    (p / possible-01 :ARG1 (h / have-degree-91 :ARG2 (l / large-01) :ARG3 (m / more)))
    x and y          (a / and :op1 (x / x) :op2 (y / y))
    at least two     (a / at-least :op1 2)
    x is y           (e / equal-01 :ARG1 (x / x) :ARG2 (y / y))     where both are formulas
"""

from __future__ import annotations

from .conversion import Conversion, frame
from .lexicon import (
    ADJECTIVE_FRAMES,
    ADJECTIVE_NAMES,
    AGENTS,
    CITIES,
    COMMON_NOUNS,
    COUNTRIES,
    DETERMINERS,
    HAVE_RELATION,
    HAVE_ROLE,
    MODALS,
    NOMINAL_FRAMES,
    NUMBER_WORDS,
    ORDINALS,
    PRONOUNS,
    QUESTION_WORDS,
    SIGNS,
)
from .roles import concludes

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
