"""What can go wrong with Qdrant; each error names the address and the collection, none contains an API key."""

from __future__ import annotations

from pyterrier_mathamr.index.errors import MathAMRIndexError


class QdrantError(MathAMRIndexError):
    """Qdrant does not answer, refuses a request or has lost points.

    Args:
        address: the server and the collection, or the folder and the collection.
        reason: what happened during which request, and what to do.
        status: the HTTP status of a refusal; 0 where there is none.
    """

    address: str
    reason: str
    status: int = 0
    template = "{address}: {reason}."


class QdrantCollectionError(QdrantError):
    """The collection is absent, of another kind or format, or was not made by this package."""
