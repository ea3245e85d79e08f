"""What can go wrong with an index. Each error names the document, query, file or folder, and says what to do."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError


class MathAMRIndexError(MathAMRError):
    """Something is wrong with an index, with what is put into it or with what is asked of it."""


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
