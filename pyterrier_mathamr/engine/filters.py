"""Filters: restrict a search to posts by folder, type and date.

::

    within   analysis/  analysis/limits.md  analysis/limits     a folder or a file, with or without its ending
             Mathlib.Order  Mathlib.Order.Basic                 modules of Lean
             of posts without a folder: the prefix of their docnos
    kind     theorem, proof, section, …, from the posts' origins
    since    2026, 2026-03 or 2026-03-01: the first day, month or year; until the last one

A filtered search ranks all posts that pass, however low they are among all posts. The origins of all posts are
read at the first filter of an opened engine, in a second for 50,000 posts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from typing import NamedTuple

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.posts import Origin

_DATE = re.compile(r"[0-9]{4}(-[0-9]{2}){0,2}")
_LISTED = 12  # folders or types in a message


class Filter(NamedTuple):
    """Conditions on posts; empty ones are ignored.

    Attributes:
        within: a folder, file or module of Lean; ``in`` on the command line and the page.
        kind: the type of unit, in any case.
        since: the first day, month or year.
        until: the last one.
    """

    within: str = ""
    kind: str = ""
    since: str = ""
    until: str = ""

    def chosen(self, origins: Mapping[str, Origin]) -> list[str]:
        """Return the docnos that pass, in order.

        Raises:
            ConfigError: no post is in the folder or of the type, or a date is invalid; it lists the known values.
        """
        for name in ("since", "until"):
            _check_date(name, getattr(self, name))
        inside = [docno for docno, origin in origins.items() if self._is_within(docno, origin)]
        if self.within and not inside:
            places = folders_of(origins) or list(origins)
            raise ConfigError("in", self.within, f"a folder or the beginning of an id: {_listed(self.within, places)}")
        kind = self.kind.casefold()
        if kind and not any(origin.kind.casefold() == kind for origin in origins.values()):
            raise ConfigError("kind", self.kind, _suggested(self.kind, kinds_of(origins)))
        return [
            docno
            for docno in inside
            if (not kind or origins[docno].kind.casefold() == kind) and self._in_time(origins[docno].date)
        ]

    def _is_within(self, docno: str, origin: Origin) -> bool:
        if not self.within:
            return True
        if not _has_file(origin):
            return docno.startswith(self.within)
        place, file = self.within.removeprefix("./").rstrip("/"), file_of(docno)
        if file == place or file.startswith((f"{place}/", f"{place}.")) or docno == place:
            return True
        return file.endswith(".lean") and file.replace("/", ".").startswith(f"{place}.")

    def _in_time(self, changed: str) -> bool:
        if not (self.since or self.until):
            return True
        since, until = changed[: len(self.since)], changed[: len(self.until)]
        return bool(changed) and since >= self.since and until <= self.until


EVERYTHING = Filter()
"""The filter that all posts pass."""


def folders_of(origins: Mapping[str, Origin]) -> list[str]:
    """List the folders of posts, nested folders included."""
    found: set[str] = set()
    for docno, origin in origins.items():
        parts = file_of(docno).split("/")[:-1] if _has_file(origin) else []
        found.update("/".join(parts[: i + 1]) + "/" for i in range(len(parts)))
    return sorted(found)


def kinds_of(origins: Mapping[str, Origin]) -> list[str]:
    """List the types of the posts."""
    return sorted({origin.kind for origin in origins.values() if origin.kind})


def _has_file(origin: Origin) -> bool:
    """Return whether a post came from a file; records have no type."""
    return bool(origin.kind)


def file_of(docno: str) -> str:
    """Return the file that a docno names; of several sources it begins with the name of the folder."""
    return docno.partition("#")[0]


def _check_date(name: str, given: str) -> None:
    if not given:
        return
    try:
        if not _DATE.fullmatch(given):
            raise ValueError
        date.fromisoformat(f"{given}-01-01"[:10])
    except ValueError:
        raise ConfigError(name, given, "a day, month or year such as 2026-03-01, 2026-03 or 2026") from None


def _suggested(given: str, known: Sequence[str]) -> str:
    """Name the type that may be meant, and the others."""
    if not (near := get_close_matches(given, known, 1)):
        return f"one of the types: {_listed(given, known)}"
    others = [name for name in known if name not in near]
    return near[0] + (f", or another of the types: {_listed(given, others)}" if others else "")


def _listed(given: str, known: Iterable[str]) -> str:
    """List the known values, the most similar first."""
    names = list(known)
    if not names:
        return "there are none"
    near = get_close_matches(given, names, _LISTED, cutoff=0.5)
    shown = [*near, *(name for name in names if name not in near)]
    return ", ".join(shown[:_LISTED]) + (f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else "")
