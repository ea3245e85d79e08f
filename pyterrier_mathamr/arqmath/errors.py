"""What can go wrong with a local copy of the ARQMath release, each cause by name.

A bad *row* is no error: it is reported as a warning and left out (see ``rules.py``).
"""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError

DOWNLOAD_PAGE = "https://www.cs.rit.edu/~dprl/ARQMath/arqmath-resources.html"
"""The organisers' page from which the release is downloaded."""


class ARQMathError(MathAMRError):
    """Base of all errors about the ARQMath release."""


class FileFormatError(ARQMathError):
    """A file is not what its name says."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(path, line, reason)
        self.path, self.line, self.reason = path, line, reason

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


class MissingFileError(ARQMathError):
    """A folder of the release lacks a file that is needed now."""

    def __init__(self, folder: Path, what: str, names: tuple[str, ...], hint: str = "") -> None:
        super().__init__(folder, what, names, hint)
        self.folder, self.what, self.names, self.hint = folder, what, names, hint

    def __str__(self) -> str:
        tried = ", ".join(self.names)
        return f"{self.folder}: no {self.what}. Looked for {tried}. {self.hint or f'Get it from {DOWNLOAD_PAGE}'}"


class NoLocalCopyError(ARQMathError):
    """No local copy of the release is known, or the one that is named is not there."""

    def __init__(self, dataset: str, places: tuple[str, ...]) -> None:
        super().__init__(dataset, places)
        self.dataset, self.places = dataset, places

    def __str__(self) -> str:
        return (
            f"{self.dataset} needs a local copy of the ARQMath release, and there is none (looked at: "
            f"{'; '.join(self.places)}). Download Posts.V1.3, the formula tables, topics and judgements from "
            f"{DOWNLOAD_PAGE}, unpack them into one folder, then call "
            "pyterrier_mathamr.register_arqmath('<folder>'), or set ARQMATH_HOME to it."
        )


class DocumentStoreError(ARQMathError):
    """The random-access store of the documents cannot be written or read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}. Free some disk or delete this file; it is made again when it is needed."


class NothingJudgedError(ARQMathError):
    """No answer of a run is judged, so that it has no scores."""

    def __init__(self, topics: int) -> None:
        super().__init__(topics)
        self.topics = topics

    def __str__(self) -> str:
        return f"none of the run's {self.topics} topics has a judged answer; are the ids those of the judgements (d_1)?"


class RunColumnError(ARQMathError):
    """A run cannot be written, because of one of its columns."""

    def __init__(self, column: str, format: str, reason: str) -> None:
        super().__init__(column, format, reason)
        self.column, self.format, self.reason = column, format, reason

    def __str__(self) -> str:
        return f"column {self.column!r} of a run in the form {self.format}: {self.reason}"


class UnpackError(ARQMathError):
    """An archive of the release cannot be unpacked."""

    def __init__(self, archive: Path, reason: str) -> None:
        super().__init__(archive, reason)
        self.archive, self.reason = archive, reason

    def __str__(self) -> str:
        return f"{self.archive}: {self.reason}. Download it again from {DOWNLOAD_PAGE}, or unpack it by hand"
