"""What can go wrong with an index in parts: each error names the parts, and none of them leaves a partial ranking."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.index.errors import MathAMRIndexError

_SHOWN = 3


class PartsError(MathAMRIndexError):
    """Some parts of an index did not answer, so there is no ranking.

    Args:
        paths: the parts.
    """

    paths: Sequence[Path]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.paths = list(self.paths)

    @property
    def shown(self) -> str:
        """The first few parts."""
        return ", ".join(map(str, self.paths[:_SHOWN])) + (", …" if len(self.paths) > _SHOWN else "")


class PartDiedError(PartsError):
    """What searches some parts ended again each time that it was started."""

    paths: Sequence[Path]
    times: int
    reason: str
    template = "{shown}: what searches this ended {times} times during one request ({reason})."
    advice = (
        "It may have run out of memory: use more parts, or fewer at once. A script needs `if __name__ == '__main__':` "
        "around its work."
    )


class PartTimeoutError(PartsError):
    """Some parts did not answer within the time limit; what searched them was ended."""

    paths: Sequence[Path]
    seconds: float
    template = "{shown}: no answer within {seconds:g} s."
    advice = "Search again, with a larger time_limit or a smaller batch_size if the parts are only slow."


class PartChangedError(PartsError):
    """A part was changed during a query, or is not the one that was indexed."""

    paths: Sequence[Path]
    template = "{shown}: it was changed since the index in parts was opened or written."
    advice = "Search again; if that does not help, restore the part, or write the manifest again by ShardedIndex.join."


class PartFailedError(PartsError):
    """A part raised an error that is none of this package's."""

    paths: Sequence[Path]
    reason: str
    template = "{shown}: {reason}."


def portable(error: Exception, paths: Sequence[Path]) -> MathAMRError:
    """Return the error that the caller sees in another process: this package's as they are, if they can go there."""
    if isinstance(error, MathAMRError):
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return PartFailedError(paths, str(error))
        return error
    return PartFailedError(paths, f"{type(error).__name__}: {error!s:.500}")
