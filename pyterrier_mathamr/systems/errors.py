"""What can go wrong in a system that is compared with MathAMR+."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.types import DocNo


class SystemsError(MathAMRError):
    """The base of the errors of this room (the plain name is one of Python's own)."""


class IndexNotBuiltError(SystemsError):
    """An index is searched or counted before it was built."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: there is no index here yet; build it with .index(documents)."


class IndexExistsError(SystemsError):
    """An index is there already, and the mode forbids to replace it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} exists already; use .indexer(mode='overwrite') to replace it, or another path."


class IndexFormatError(SystemsError):
    """The index cannot be read, or has a format that this release does not read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}. Build the index again with .indexer(mode='overwrite')."


class DuplicateDocnoError(SystemsError):
    """Two documents have the same number."""

    def __init__(self, docno: DocNo) -> None:
        super().__init__(docno)
        self.docno = docno

    def __str__(self) -> str:
        return f"docno {self.docno!r} occurs twice in the documents; each may be indexed once. Nothing was written."


class BlendNotFittedError(SystemsError):
    """A blend has no weights yet."""

    def __str__(self) -> str:
        return "the blend has no weights; call .fit(ranking, qrels), give weights=, or LinearBlend.load() them."


class BlendFileError(SystemsError):
    """A file holds no blend of these scorers."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}. Give the file that LinearBlend.save() wrote, and the same scorers."
