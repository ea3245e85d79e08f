"""Errors of an index; each names the document, query, file or folder and the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.store import UnfinishedJobError


class MathAMRIndexError(MathAMRError):
    """Something is wrong with an index, a query or a part that is searched; the base of the layer's errors."""


class EmbeddingError(MathAMRIndexError):
    """The embeddings of one document cannot be indexed."""

    docno: str
    reason: str
    template = "document {shown}: {reason}. The index is unchanged; fix or drop the document."

    @property
    def shown(self) -> str:
        return _shown(self.docno)


class ModelMismatchError(MathAMRIndexError):
    """Vectors of two models were combined; their similarities are meaningless."""

    path: Path | str
    indexed: str
    given: str
    template = "{path}: its vectors are from model {indexed}, the given ones from {given}. Use one model for both."


class QdrantError(MathAMRIndexError):
    """Qdrant does not answer, refuses a request or has lost points.

    Args:
        address: the server and the collection, or the folder and the collection.
        reason: the failure, the request, and the remedy.
        status: the HTTP status of a refusal, 404 if there is no such collection of this package; 0 for others.
    """

    address: str
    reason: str
    status: int = 0
    template = "{address}: {reason}."


def check_model(path: Path | str, indexed: str | None, given: str | None) -> None:
    """Raise an error for vectors of a model other than the index's; an unknown model passes."""
    if indexed and given and indexed.rpartition("@")[2] != given.rpartition("@")[2]:
        raise ModelMismatchError(path, indexed, given)


def resumed_model(path: Path | str, kept: str | None, given: str | None) -> str | None:
    """Return the model of unfinished work that is resumed with vectors of ``given``; refuse another one."""
    try:
        check_model(path, kept, given)
    except ModelMismatchError as error:
        raise UnfinishedJobError(path, {"model": (kept, given)}) from error
    return kept or given


def query_error(qid: str, reason: str) -> MathAMRIndexError:
    return MathAMRIndexError(f"query {_shown(qid)}: {reason}.")


def parts_error(paths: Iterable[Path], reason: str) -> MathAMRIndexError:
    """Return the error for parts of an index that did not answer, without which there is no ranking."""
    shown = list(map(str, paths))
    return MathAMRIndexError(f"{', '.join(shown[:3])}{', …' if len(shown) > 3 else ''}: {reason}.")


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:77] + "…")
