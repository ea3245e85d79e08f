"""What can go wrong with Qdrant. Each error names the address and the collection; none holds an API key."""

from __future__ import annotations

from pyterrier_mathamr.index.errors import MathAMRIndexError


class QdrantError(MathAMRIndexError):
    """Qdrant does not do what it was asked for.

    Args:
        address: the server and the collection, or the folder and the collection.
        reason: what happened, and in the middle of what.
    """

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return f"{self.address}: {self.reason}."


class QdrantConnectionError(QdrantError):
    """The server cannot be reached, or the connection was lost, after all attempts."""

    def __str__(self) -> str:
        return (
            f"{self.address}: {self.reason}. See that the server runs; an upload goes on with "
            "indexer(…, resume=True) if it was started so, and what it had stored is neither lost nor stored twice."
        )


class QdrantTimeoutError(QdrantConnectionError):
    """The server did not answer in time, after all attempts."""

    def __str__(self) -> str:
        return f"{super().__str__()} A larger QdrantIndex(timeout=…) waits longer."


class QdrantKeyError(QdrantError):
    """The server refuses the API key, or wants one."""

    def __str__(self) -> str:
        return f"{self.address}: {self.reason}. Give api_key=…, or set QDRANT_API_KEY, to a key with this right."


class QdrantCollectionError(QdrantError):
    """The collection is absent, or is not what is asked for: of another kind, of another format, not ours."""

    def __str__(self) -> str:
        return f"{self.address}: {self.reason}. Build it with .indexer().index(…), or name another collection."


class QdrantRefusedError(QdrantError):
    """The server refuses a request as it stands: it would refuse it again.

    Args:
        address: the server and the collection.
        reason: what was asked, and the server's own words.
        status: the HTTP status; 0 in local mode.
    """

    def __init__(self, address: str, reason: str, status: int = 0) -> None:
        super().__init__(address, reason)
        self.args = (address, reason, status)
        self.status = status


class QdrantIncompleteError(QdrantError):
    """The collection holds fewer points than were stored in it; it is not made the one that counts."""

    def __str__(self) -> str:
        return f"{self.address}: {self.reason}. Did another process write it? Run the indexer again."
