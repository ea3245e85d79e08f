"""The files below a folder of the release, and the choice between those that could play the same role."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from .errors import MissingFileError
from .layout import Patterns, Representation

_TABLE_FOLDER = re.compile(r"(latex|slt|opt)_representation(?:_v(\d+))?", re.IGNORECASE)
_TABLE = re.compile(r"(\d+)\.tsv(\.gz)?", re.IGNORECASE)
_PASSED_OVER = {"runs", "old versions", "__macosx"}


class Release:
    """The files below a folder, listed once, when the first is asked for.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """All files below the folder in order; runs, old versions and hidden folders are passed over."""
        found = []
        for folder, folders, names in os.walk(self.path):
            folders[:] = sorted(f for f in folders if not f.startswith(".") and f.lower() not in _PASSED_OVER)
            found += [Path(folder, name) for name in sorted(names)]
        return tuple(found)

    def find(self, patterns: Patterns, *, complete: bool = False) -> Path | None:
        """Return the best file whose name one of the patterns matches, or ``None``.

        Args:
            patterns: best first. Among the files of one pattern the latest version is best.
            complete: take the complete file; otherwise its ``.mini`` form, cut down to a partial collection, is
                preferred where it lies beside it.
        """
        for pattern in patterns:
            rule = re.compile(pattern, re.IGNORECASE)
            matching = [file for file in self.files if rule.fullmatch(file.name.replace(".mini.", "."))]
            minis = [file for file in matching if ".mini." in file.name]
            chosen = [file for file in matching if file not in minis] if complete else minis or matching
            if chosen:
                return max(chosen, key=lambda file: _version(file.name))
        return None

    def need(self, what: str, patterns: Patterns, *, complete: bool = False, hint: str = "") -> Path:
        """Return what :meth:`find` finds.

        Raises:
            MissingFileError: nothing was found; says what is missing and which names were looked for.
        """
        file = self.find(patterns, complete=complete)
        if file is None:
            raise MissingFileError(self.path, what, tuple(_readable(patterns)), hint)
        return file

    def tables(self, kind: Representation) -> tuple[Path, ...]:
        """Return the numbered formula tables of one representation, of its latest version, in numeric order."""
        versions: dict[int, list[tuple[int, Path]]] = {}
        for file in self.files:
            folder, name = _TABLE_FOLDER.fullmatch(file.parent.name), _TABLE.fullmatch(file.name)
            if folder and name and folder[1].lower() == kind:
                versions.setdefault(int(folder[2] or 0), []).append((int(name[1]), file))
        return tuple(file for _, file in sorted(versions[max(versions)])) if versions else ()


def _version(name: str) -> tuple[int, ...]:
    """Return the numbers of a name such as ``Posts.V1.3.xml``, so that V1.10 comes after V1.9."""
    return tuple(int(number) for number in re.findall(r"\d+", name))


def _readable(patterns: Iterable[str]) -> Iterable[str]:
    """Turn patterns into names that a person reads: ``Posts.V*.xml``."""
    for pattern in patterns:
        name = re.sub(r"\(\[\._\]V\[\\d\.\]\+\)\?|\[\\d\.\]\+|\\d\+", "*", pattern)
        yield re.sub(r"\((?:[^()|]*)\)\?|\\", "", name)
