"""The tables of words that the conversion of dependencies to AMR uses, and lemmas by rule.

The rules know the plurals of mathematics (``axes``, ``matrices``) and irregular forms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_FILE = Path(__file__).resolve().parents[2] / "data" / "amr" / "words.txt"
_SECTION = re.compile(r"^\[(\w+)\]\n([^\[]*)", re.MULTILINE)

TABLES: dict[str, str] = dict(_SECTION.findall(_FILE.read_text(encoding="utf-8")))
"""The words of each longer table, by its name in the file."""


def _table(text: str) -> dict[str, str]:
    return dict(pair.split(":", 1) for pair in text.split())


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


SENSES = _table(TABLES["SENSES"])
"""PropBank's sense of a frame where it is not 01, in the meaning usual in posts (to own, to give birth, to suppose, to
think about, to be unlike, to result in); for adjectives AMR's."""

NOMINAL_FRAMES = _table(TABLES["NOMINAL_FRAMES"])
"""Nouns that AMR writes as the verb's frame."""

ADJECTIVE_FRAMES = _set(TABLES["ADJECTIVE_FRAMES"])
"""Adjectives that are frames as predicates; their subject is :ARG1."""

ADJECTIVE_NAMES = _table(TABLES["ADJECTIVE_NAMES"])
"""The frame of an adjective where it is not the adjective itself."""

UNACCUSATIVE = _set(TABLES["UNACCUSATIVE"])
"""Verbs whose subject is :ARG1 if they have no object (see `SUBJECT_IS_THING` for verbs with one)."""

SUBJECT_IS_THING = _set(TABLES["SUBJECT_IS_THING"])
"""Verbs whose subject is :ARG1 and whose object is :ARG2."""

AGENTS = _table(TABLES["AGENTS"])
"""Persons named by what they do, (p / person :ARG0-of (a / author-01)), as in AMR's guidelines."""

LIMIT_VERBS = _set("go tend approach converge increase decrease grow vary move run")
"""Verbs of a temporal clause with "as": as x tends to 0."""

CONCLUSIONS = _set("thus hence therefore consequently so accordingly")
"""Adverbs that mark the effect of a cause before it."""

SIGNS = {"=": "equal-01", "<": "less-than", ">": "more-than", "≤": "at-most", "≥": "at-least"}
"""Relation signs typed as text."""

COMMANDS = _set(TABLES["COMMANDS"])
"""First words of a command, even if they could be nouns."""

QUANTIFIERS = _set("all every each any some")

MODALS = _table(
    "can:possible could:possible may:possible might:possible must:obligate should:recommend ought:recommend ca:possible"
)

PREPOSITIONS = _table(TABLES["PREPOSITIONS"])
"""Roles of obliques by preposition; ``:prep-X`` for any other."""

MARKS = _table(TABLES["MARKS"])
"""Roles of adverbial clauses by their first word."""

ADVERBS = _table(TABLES["ADVERBS"])
"""Roles of adverbs; any other is :manner under a verb, :degree or :mod elsewhere."""

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_ONES.split())}
NUMBER_WORDS |= _table("thirty:30 forty:40 fifty:50 hundred:100 thousand:1000 million:1000000")

_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
ORDINALS = {word: str(value) for value, word in enumerate(_ORDINALS.split(), 1)}

COUNTRIES = _set(TABLES["COUNTRIES"])
CITIES = _set(TABLES["CITIES"])
"""The larger cities of the world, and university cities that occur in posts."""

MONTHS = _set("january february march april may june july august september october november december")

COMMON_NOUNS = _set(TABLES["COMMON_NOUNS"])
"""Words that are not names even if capitalised."""

PRONOUNS = _table(TABLES["PRONOUNS"])
DETERMINERS = _set("a an the")
QUESTION_WORDS = _set("what which who whom whose how why where when what's")
HAVE_ROLE = _set(TABLES["HAVE_ROLE"])
HAVE_RELATION = _set(TABLES["HAVE_RELATION"])


_NOUNS = _table(TABLES["IRREGULAR_NOUNS"])
_VERBS = _table(TABLES["IRREGULAR_VERBS"])
_E_LOST = re.compile(
    r"(?:[^aeiou]at|[aeou]at(?<!eat)|iz|[uio]s(?<!ous)|ys|[aeiou]v|lv|rv|[aeinor]c|[^aeiou][lr](?<!rl)(?<!ll)(?<!rr)|rg|dg|[au]g(?<!ag)"
    r"|[aeiou]ng(?<!ing)(?<!ong)|u|[^aeiou][aiu]r|[^aeiou]ut|ot(?<!oot)|[^aeiou]in(?<!ain)|[^aeiou]id|lud|od|[^aeiou]et"
    r"|[iou]m(?<!oom)|iq|scrib|ak|uk|ap(?<!eap)|ip|yp|op(?<!oop)|[^aeiou]il|ul)$"
)
_E_LOST_IN_COMPARING = re.compile(r"(?:[^aeioul]l|rg|ns|rs|[^aeiou][ai][dnrt]|[aou]s|[^aeiou]ic|av|iv|uc|ut|ur|af|ak)$")
_DOUBLED = re.compile(r"([bdgklmnprt])\1$")


def lemma(word: str, tag: str, known: Mapping[str, str]) -> str:
    kind = "v" if tag[0] == "V" or tag == "MD" else "n" if tag[0] == "N" else "a" if tag[0] in "JR" else ""
    if not kind:
        return word
    irregular = (_VERBS if kind == "v" else _NOUNS if kind == "n" else {}).get(word)
    return irregular or known.get(f"{kind}:{word}") or by_rule(word, tag)


def by_rule(word: str, tag: str) -> str:
    """Return the lemma by spelling only."""
    if tag in ("NNS", "NNPS", "VBZ"):
        return _singular(word)
    if tag in ("VBD", "VBN") and word.endswith("ed") and len(word) > 4:
        return word[:-3] + "y" if word.endswith("ied") else _restored(word[:-2])
    if tag == "VBG" and word.endswith("ing") and len(word) > 4:
        return _restored(word[:-3])
    if tag in ("JJR", "RBR") and word.endswith("er") and len(word) > 4:
        return word[:-3] + "y" if word.endswith("ier") else _positive(word[:-2])
    if tag in ("JJS", "RBS") and word.endswith("est") and len(word) > 5:
        return word[:-4] + "y" if word.endswith("iest") else _positive(word[:-3])
    return word


def _positive(stem: str) -> str:
    """Return the adjective of a comparative's stem: big, simple and fine for bigg, simpl and fin."""
    if _DOUBLED.search(stem) and not stem.endswith("ll"):
        return stem[:-1]
    return stem + "e" if _E_LOST_IN_COMPARING.search(stem) else stem


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


def _restored(stem: str) -> str:
    """Undo a doubled consonant or restore a final e."""
    if _DOUBLED.search(stem) and len(stem) > 3 and not stem.endswith("ll"):
        return stem[:-1]
    return stem + "e" if _E_LOST.search(stem) else stem
