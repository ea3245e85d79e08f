"""What can go wrong with an index; each error names the document, query, file or folder and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError


class MathAMRIndexError(MathAMRError):
    """The base of the errors of indexes, of indexing and of queries."""


class EmbeddingError(MathAMRIndexError):
    """The embeddings of one document cannot be indexed."""

    docno: str
    reason: str
    template = "document {shown}: {reason}. The index is unchanged; fix or drop the document."

    @property
    def shown(self) -> str:
        """The docno, shortened."""
        return _shown(self.docno)


class QueryError(MathAMRIndexError):
    """The embeddings of one query cannot be used with this index."""

    qid: str
    reason: str
    template = "query {shown}: {reason}."

    @property
    def shown(self) -> str:
        """The qid, shortened."""
        return _shown(self.qid)


class ModelMismatchError(MathAMRIndexError):
    """Vectors of two models meet; their similarities mean nothing."""

    path: Path | str
    indexed: str
    given: str
    template = "{path}: its vectors are from model {indexed}, the given ones from {given}. Use one model for both."


def check_model(path: Path | str, indexed: str | None, given: str | None) -> None:
    """Refuse vectors of another model than the index's; an unknown model passes."""
    if indexed and given and indexed.rpartition("@")[2] != given.rpartition("@")[2]:
        raise ModelMismatchError(path, indexed, given)


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:77] + "…")


class PartsError(MathAMRIndexError):
    """Some parts of an index did not answer, so there is no ranking.

    Args:
        paths: the parts.
        reason: what happened, and what to do.
    """

    paths: Sequence[Path]
    reason: str
    template = "{shown}: {reason}."

    def __post_init__(self) -> None:
        super().__post_init__()
        self.paths = list(self.paths)

    @property
    def shown(self) -> str:
        """The first few parts."""
        return ", ".join(map(str, self.paths[:3])) + (", …" if len(self.paths) > 3 else "")


class QdrantError(MathAMRIndexError):
    """Qdrant does not answer, refuses a request or has lost points.

    Args:
        address: the server and the collection, or the folder and the collection.
        reason: what happened during which request, and what to do.
        status: the HTTP status of a refusal, 404 where there is no such collection of this package; 0 for others.
    """

    address: str
    reason: str
    status: int = 0
    template = "{address}: {reason}."
