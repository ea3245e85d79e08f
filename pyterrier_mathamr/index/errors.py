"""What can go wrong with an index. Each error names the document, query, file or folder, and says what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError

_SHOWN = 5


class MathAMRIndexError(MathAMRError):
    """Something is wrong with an index, with what is put into it or with what is asked of it."""


class IndexFormatError(MathAMRIndexError):
    """The index was written in a format this release does not read."""

    def __init__(self, path: Path, found: int, readable: range) -> None:
        super().__init__(path, found, readable)
        self.path, self.found, self.readable = path, found, readable

    def __str__(self) -> str:
        return (
            f"{self.path}: index format {self.found}, but this release reads {self.readable[0]} to "
            f"{self.readable[-1]}. Build it again, or install a release that reads format {self.found}."
        )


class NotAnIndexError(MathAMRIndexError):
    """A folder is absent, is empty, or belongs to something else."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}. Build an index with .indexer().index(...), or give its folder."


class IndexExistsError(MathAMRIndexError):
    """``mode='create'`` met an index that is already built."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: the index is already built. Use mode='append' or mode='overwrite', or another place."


class IndexCorruptError(MathAMRIndexError):
    """A file of the index is missing, cut short or changed."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}. Copy the index again from where it came, or build it again."


class IndexWriteError(MathAMRIndexError):
    """The disk refused a write: it is full, read-only or gone. What counted before is unharmed, or what is new counts.

    Attributes:
        swapped: the new index had taken its place already when the disk refused to confirm it.
    """

    def __init__(self, path: Path | str, reason: str, swapped: bool = False) -> None:
        super().__init__(path, reason, swapped)
        self.path, self.reason, self.swapped = path, reason, swapped

    def __str__(self) -> str:
        if self.swapped:
            return (
                f"{self.path}: the new index is in place and whole, but the disk did not confirm that it is stored "
                f"({self.reason}). Look after the disk; what was given need not be given again."
            )
        return f"{self.path}: cannot write ({self.reason}). The index that stood before is unharmed; try again."


class IndexLockedError(MathAMRIndexError):
    """Another process is writing this index."""

    def __init__(self, path: Path | str, owner: str) -> None:
        super().__init__(path, owner)
        self.path, self.owner = path, owner

    def __str__(self) -> str:
        return f"{self.path}: being written by {self.owner}. Wait for it, or end that process."


class UnknownDocnoError(MathAMRIndexError):
    """Documents are asked for that the index does not hold."""

    def __init__(self, path: Path | str, docnos: Sequence[str]) -> None:
        super().__init__(path, docnos)
        self.path, self.docnos = path, docnos

    def __str__(self) -> str:
        return f"{self.path}: {len(self.docnos)} unknown docno: {_listed(self.docnos)}. Add with mode='append'."


class DuplicateDocnoError(MathAMRIndexError):
    """A docno comes twice, in one stream or in the stream and in the index it is appended to."""

    def __init__(self, path: Path | str, docnos: Sequence[str]) -> None:
        super().__init__(path, docnos)
        self.path, self.docnos = path, docnos

    def __str__(self) -> str:
        return f"{self.path}: docno given twice: {_listed(self.docnos)}. Drop or rename one; nothing was changed."


class EmbeddingError(MathAMRIndexError):
    """The embeddings of one document cannot be indexed."""

    def __init__(self, docno: str, reason: str) -> None:
        super().__init__(docno, reason)
        self.docno, self.reason = docno, reason

    def __str__(self) -> str:
        return f"document {_short(self.docno)}: {self.reason}. Nothing was changed; mend or drop the document."


class EmptyStreamError(MathAMRIndexError):
    """There was nothing to index."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: the stream held no documents; nothing was written. Check what comes before the indexer."


class QueryError(MathAMRIndexError):
    """The embeddings of one query cannot be used with this index."""

    def __init__(self, qid: str, reason: str) -> None:
        super().__init__(qid, reason)
        self.qid, self.reason = qid, reason

    def __str__(self) -> str:
        return f"query {_short(self.qid)}: {self.reason}."


class ModelMismatchError(MathAMRIndexError):
    """Vectors of two models meet, whose similarities mean nothing."""

    def __init__(self, path: Path | str, indexed: str, given: str) -> None:
        super().__init__(path, indexed, given)
        self.path, self.indexed, self.given = path, indexed, given

    def __str__(self) -> str:
        return f"{self.path}: made by model {self.indexed}, but given vectors of model {self.given}. Use one for both."


class DtypeMismatchError(MathAMRIndexError):
    """Rows that are stored in two ways meet in one index."""

    def __init__(self, path: Path | str, indexed: str, asked: str | None) -> None:
        super().__init__(path, indexed, asked)
        self.path, self.indexed, self.asked = path, indexed, asked

    def __str__(self) -> str:
        if self.asked is None:
            return f"{self.path}: the indexes to merge hold {self.indexed}. Say which it shall be: merge(…, dtype=…)."
        return (
            f"{self.path}: its rows are {self.indexed}, not {self.asked}. Leave dtype out to add to it; "
            f"merge(path, index, dtype={self.asked!r}) makes a copy of that kind."
        )


class ModelNeededError(MathAMRIndexError):
    """A typed query is to be encoded, and the model that made the index is not at hand."""

    def __init__(self, path: Path | str, model: str | None) -> None:
        super().__init__(path, model)
        self.path, self.model = path, model

    def __str__(self) -> str:
        made = f"was made by {self.model!r}, which is not bundled" if self.model else "does not say which model made it"
        return f"{self.path}: the index {made}. Give the model: search(query, model=…), an object, a name or a folder."


def check_model(path: Path | str, indexed: str | None, given: str | None) -> None:
    """Refuse vectors of another model than the index's; where either is not known, nothing can be said.

    Args:
        path: the index.
        indexed: who made its vectors: a name, or ``name@hash``, of which the hash alone counts.
        given: the same of the vectors that meet them.

    Raises:
        ModelMismatchError: they are two.
    """
    if indexed and given and indexed.rpartition("@")[2] != given.rpartition("@")[2]:
        raise ModelMismatchError(path, indexed, given)


def _short(name: str) -> str:
    """A docno as it is shown; one of a kilobyte is cut."""
    return repr(name if len(name) <= 80 else name[:77] + "…")


def _listed(names: Sequence[str]) -> str:
    more = ", …" if len(names) > _SHOWN else ""
    return ", ".join(map(_short, names[:_SHOWN])) + more
