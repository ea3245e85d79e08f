"""Where posts were read: a search can be restricted to a place, a type or a time, and results link to their sources.

::

    within   analysis/  analysis/limits.md  analysis/limits     a folder or a file, with or without its ending
             Mathlib.Order  Mathlib.Order.Basic                 modules of Lean
             of posts without a folder: the prefix of their docnos
    kind     theorem, proof, section, …, from the posts' origins
    since    2026, 2026-03 or 2026-03-01: the first day, month or year; until the last one

    link     vscode://file/{path}:{line}      obsidian://open?path={path}      https://wiki.example.org/{file}#L{line}
             https://leanprover-community.github.io/mathlib4_docs/find/?pattern={name}#doc

A filtered search ranks all posts that pass, however low they are among all posts. The origins of all posts are
read at the first filter of an opened engine, in a second for 50,000 posts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.posts import Document, Origin

SCHEMES = (
    "file", "http", "https", "vscode", "vscode-insiders", "vscodium", "cursor", "zed", "obsidian", "logseq", "joplin",
    "emacs", "org-protocol", "editor", "subl", "txmt", "mvim", "nvim", "idea", "pycharm", "texstudio",
)  # fmt: skip
"""The allowed beginnings of a link; a browser runs some others, such as ``javascript:``."""
_FIELDS = ("path", "file", "line", "name", "docno")
_FIELD = re.compile(r"\{([^{}]*)\}")
_DATE = re.compile(r"[0-9]{4}(-[0-9]{2}){0,2}")
_LISTED = 12  # folders or types in a message


class Filter(NamedTuple):
    """Conditions on posts; empty ones are ignored."""

    within: str = ""  # a folder, file or module of Lean; `in` on the command line and the page
    kind: str = ""  # the type of unit, in any case
    since: str = ""  # the first day, month or year
    until: str = ""  # the last one

    def chosen(self, origins: Mapping[str, Origin]) -> list[str]:
        """Return the docnos that pass, in order; a ``ConfigError`` lists the known folders and types."""
        for name, given in (("since", self.since), ("until", self.until)):
            try:
                is_valid = not given or bool(_DATE.fullmatch(given) and date.fromisoformat(f"{given}-01-01"[:10]))
            except ValueError:
                is_valid = False
            if not is_valid:
                raise ConfigError(name, given, "a day, month or year such as 2026-03-01, 2026-03 or 2026")
        inside = [docno for docno, origin in origins.items() if self._is_within(docno, origin)]
        if self.within and not inside:
            places = folders_of(origins) or list(origins)
            raise ConfigError("in", self.within, f"a folder or the beginning of an id: {_listed(self.within, places)}")
        kind, kinds = self.kind.casefold(), kinds_of(origins)
        if kind and kind not in map(str.casefold, kinds):
            near = get_close_matches(self.kind, kinds, 1)
            others = _listed(self.kind, [name for name in kinds if name not in near])
            another = f", or another of the types: {others}" if len(kinds) > 1 else ""
            raise ConfigError("kind", self.kind, near[0] + another if near else f"one of the types: {others}")

        def passes(origin: Origin) -> bool:
            since, until = origin.date[: len(self.since)], origin.date[: len(self.until)]
            in_time = bool(origin.date) and since >= self.since and until <= self.until
            return (not kind or origin.kind.casefold() == kind) and (in_time or not (self.since or self.until))

        return [docno for docno in inside if passes(origins[docno])]

    def _is_within(self, docno: str, origin: Origin) -> bool:
        if not self.within:
            return True
        if not origin.kind:
            return docno.startswith(self.within)
        place, file = self.within.removeprefix("./").rstrip("/"), file_of(docno)
        if file == place or file.startswith((f"{place}/", f"{place}.")) or docno == place:
            return True
        return file.endswith(".lean") and file.replace("/", ".").startswith(f"{place}.")


EVERYTHING = Filter()
"""The filter that all posts pass."""


def folders_of(origins: Mapping[str, Origin]) -> list[str]:
    folders: set[str] = set()
    for docno, origin in origins.items():
        parts = file_of(docno).split("/")[:-1] if origin.kind else []
        folders.update("/".join(parts[: i + 1]) + "/" for i in range(len(parts)))
    return sorted(folders)


def kinds_of(origins: Mapping[str, Origin]) -> list[str]:
    return sorted({origin.kind for origin in origins.values() if origin.kind})


def file_of(docno: str) -> str:
    """Return the file that a docno names; of several sources it begins with the name of the folder."""
    return docno.partition("#")[0]


def place_of(document: Document) -> dict[str, Any]:
    """Return the file, line, section and type of a post; blank for a record. The line is 0 for a whole file."""
    origin = document.origin if document.origin.kind else Origin()
    file = file_of(document.docno) if origin.kind else ""
    return {"file": file, "line": origin.line, "section": origin.section, "kind": origin.kind}


def _listed(given: str, known: Iterable[str]) -> str:
    """List the known values, the most similar first."""
    names = list(known)
    if not names:
        return "there are none"
    near = get_close_matches(given, names, _LISTED, cutoff=0.5)
    shown = [*near, *(name for name in names if name not in near)]
    return ", ".join(shown[:_LISTED]) + (f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else "")


class LinkTemplate:
    """A template of links, with fields whose values are percent-encoded.

    They are ``{path}`` (absolute), ``{file}`` (in the folder that was indexed), ``{line}``, ``{name}`` (the part of the
    docno after ``#``, such as the name of a declaration) and ``{docno}``.
    """

    def __init__(self, template: str) -> None:
        scheme, colon, _ = template.partition(":")
        names = _FIELD.findall(template)
        bare = _FIELD.sub("", template)
        if not colon or scheme.lower() not in SCHEMES:
            raise ConfigError("link", template, f"an address that begins with {', '.join(SCHEMES)} and a colon")
        if set(names) - set(_FIELDS) or "{" in bare or "}" in bare or not names:
            raise ConfigError("link", template, f"one with the fields {', '.join(f'{{{name}}}' for name in _FIELDS)}")
        if any(ord(character) <= 32 for character in template):
            raise ConfigError("link", template, "one without blanks; write %20")
        self._template, self._names = template, names

    def link(self, document: Document) -> str:
        """Return the link to a post; empty for one without a file or name, if the template needs it."""
        origin = document.origin
        name = document.docno.partition("#")[2] if origin.kind else ""
        if (not origin.kind and set(self._names) != {"docno"}) or ("name" in self._names and not name):
            return ""
        values = {
            "path": source_path(origin),
            "file": origin.file,
            "line": str(max(origin.line, 1)),
            "name": name,
            "docno": document.docno,
        }

        def value(field: re.Match[str]) -> str:
            before = self._template[: field.start()]
            text = values[field[1]]
            if before.endswith("/") and (not before.endswith("://") or before.endswith(":///")):
                text = text.removeprefix("/")  # file:///{path} is file://{path}
            return quote(text, safe="" if "?" in before or "#" in before else "/:")

        return _FIELD.sub(value, self._template)


def source_path(origin: Origin) -> str:
    """Return the absolute path of the file in which a post was read; empty for a record."""
    return (source_folder(origin) / origin.file).as_posix() if origin.kind else ""


def source_folder(origin: Origin) -> Path:
    """Return the folder of a source: the source itself, or the folder of a single file."""
    root = Path(origin.root)
    return root.parent if root.is_file() else root
