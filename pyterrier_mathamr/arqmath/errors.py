"""What can go wrong with a local copy of the ARQMath release.

A bad *row* is no error: it is reported as a warning and left out (see ``files/rules.py``).
"""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError

DOWNLOAD_PAGE = "https://www.cs.rit.edu/~dprl/ARQMath/arqmath-resources.html"
"""The organisers' page from which the release is downloaded."""


class ARQMathError(MathAMRError):
    """The release, a run or a submission cannot be used; the base of all errors about ARQMath."""

    reason: str
    template = "{reason}"


class FileFormatError(ARQMathError):
    """A file is not what its name says."""

    path: Path
    line: int
    template = "{path}:{line}: {reason}"


class MissingFileError(ARQMathError):
    """A folder of the release lacks a file.

    Attributes:
        reason: what is missing.
        folder: where it was looked for.
        names: the file names that were looked for.
        hint: what to do; download the file where empty.
    """

    folder: Path
    names: tuple[str, ...]
    hint: str = ""
    template = "{folder}: no {reason}. Looked for {tried}. {remedy}"

    @property
    def tried(self) -> str:
        """The names in a row."""
        return ", ".join(self.names)

    @property
    def remedy(self) -> str:
        """Where to get the file."""
        return self.hint or f"Download it from {DOWNLOAD_PAGE}"


class NoLocalCopyError(ARQMathError):
    """No local copy of the release is known, or the folder that is set does not exist."""

    advice = (
        f"Download Posts.V1.3, the formula tables, topics and judgments from {DOWNLOAD_PAGE}, unpack them into one "
        "folder, then call pyterrier_mathamr.register_arqmath('<folder>') or set ARQMATH_HOME to it."
    )
