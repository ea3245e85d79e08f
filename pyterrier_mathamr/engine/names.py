r"""Names: a post is found first by its printed name, its title, its label or its number.

::

    Theorem 3.2 (Fatou's lemma), \label{thm:fatou}   ──▶   fatou lemma · theorem 3 2 · thm fatou · …
    What is Fatou's Lemma?                           ──▶   fatou lemma

Names are compared without case, accents, punctuation, articles, and the endings of possessives and plurals.
"""

from __future__ import annotations

import re
import unicodedata

from pyterrier_mathamr.formula.display.typesetting import text_of
from pyterrier_mathamr.posts import Document, post_from_html

PRINTED = re.compile(r"(?P<kind>[^\W\d_]+)(?P<number> [\w.]{1,20})?(?: \((?P<name>.+)\))?")
"""The title of a statement: its kind, number and name."""
_ASKED = re.compile(r"^(?:what (?:is|are)|who is|state|recall)\s+", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_POSSESSIVE = re.compile(r"['’]s?(?!\w)")
_ARTICLES = frozenset(("the", "a", "an"))
_LONGEST = 120  # characters of a name


def normalized(name: str) -> str:
    """Write a name as it is compared; empty if it is too long for one."""
    if len(name) > _LONGEST:
        return ""
    plain = "".join(each for each in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(each))
    words = [word for word in _WORD.findall(_POSSESSIVE.sub("", plain)) if word not in _ARTICLES]
    return " ".join(word[:-1] if len(word) > 3 and word[-1] == "s" != word[-2] else word for word in words)


def asked_name(query: str) -> str:
    """Write a query as the name that it may be."""
    return normalized(_ASKED.sub("", query))


def names_of(document: Document) -> set[str]:
    """Return the names of a post, as they are compared."""
    title = " ".join(text_of(post_from_html(document.title)).split())
    label = document.docno.partition("#")[2].rpartition("/")[2]
    found = [title, label]
    if document.origin.kind and (printed := PRINTED.fullmatch(title)):
        kind, number, name = printed["kind"], printed["number"] or "", printed["name"] or ""
        found += [f"{kind}{number}" if number else "", name, f"{name} {kind}" if name else ""]
    return set(filter(None, map(normalized, found)))
