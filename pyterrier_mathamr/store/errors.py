"""What can go wrong with an artifact on disk. Every error names the path; its class says what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pyterrier_mathamr._common.errors import MathAMRError

_SHOWN = 5


class StoreError(MathAMRError):
    """An artifact cannot be read or written.

    Args:
        path: the artifact, or the file of it that is at fault; text where it is no path, as an address of a server.
        reason: what is wrong.
    """

    advice: ClassVar[str] = ""
    """What to do, appended to the message."""

    def __init__(self, path: Path | str, reason: str = "") -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}.{self.advice and ' ' + self.advice}"


class NotBuiltError(StoreError):
    """There is no finished artifact at the path."""


class ExistsError(StoreError):
    """There is an artifact already, and the mode is ``create``."""

    advice = "Use mode='overwrite' to replace it, mode='append' to add to it, or another path."


class OtherArtifactError(StoreError):
    """The path holds something other than the artifact that is asked for."""

    advice = "It is left as it is, in any mode; give another path, or remove it yourself."


class FormatError(StoreError):
    """The artifact has a format that this release does not read."""


class DamagedError(StoreError):
    """A file is missing, truncated or was changed since it was written."""

    advice = "Restore it from a copy, or build the artifact again with mode='overwrite'."


class WriteError(StoreError):
    """The operating system refused a write: the disk is full, read-only or gone, or a permission is missing."""

    advice = "What was there before is unchanged."


class LockedError(StoreError):
    """Another process, or another writer of this one, is writing the artifact."""

    advice = "Wait until it is done, or stop it; readers are not affected."


class UnfinishedJobError(StoreError):
    """The work of an unfinished job belongs to another job than the one that wants to go on with it.

    Args:
        path: the artifact.
        differences: what differs: name to what the unfinished job has and what this one has.
    """

    advice = (
        "Finish that job by running it again as it was, or discard its work: `--fresh` on the command line, "
        ".discard() in Python."
    )

    def __init__(self, path: Path | str, differences: Mapping[str, tuple[object, object]]) -> None:
        listed = "; ".join(f"{name}: {kept!s:.80}, not {wanted!s:.80}" for name, (kept, wanted) in differences.items())
        super().__init__(path, f"the unfinished work beside it was made from something else ({listed})")
        self.differences = differences

    def __reduce__(self) -> tuple[type[UnfinishedJobError], tuple[Path | str, Mapping[str, tuple[object, object]]]]:
        return type(self), (self.path, self.differences)


class IdError(StoreError):
    """Some ids are at fault.

    Args:
        path: the artifact.
        ids: the ids.
    """

    reason_of: ClassVar[str] = ""

    def __init__(self, path: Path | str, ids: Sequence[str]) -> None:
        super().__init__(path, f"{len(ids)} {self.reason_of}: {shown(ids)}")
        self.ids = list(ids)

    def __reduce__(self) -> tuple[type[IdError], tuple[Path | str, list[str]]]:
        return type(self), (self.path, self.ids)


class DuplicateIdError(IdError):
    """Some ids came twice, or are in the artifact already."""

    reason_of = "id(s) came twice or are there already"
    advice = "Each may be stored once. Nothing was changed."


class UnknownIdError(IdError, KeyError):
    """The artifact does not hold some ids."""

    reason_of = "id(s) are not in it"
    __str__ = StoreError.__str__  # KeyError would show the arguments


def unreadable(error: OSError, path: Path) -> DamagedError:
    """The error for a file of an artifact that the operating system does not give."""
    return DamagedError(Path(error.filename or path), f"it cannot be read ({error.strerror or error})")


def shown(ids: Sequence[str]) -> str:
    """Name the first few ids; a long one is cut."""
    names = ", ".join(repr(name if len(name) <= 80 else name[:77] + "…") for name in ids[:_SHOWN])
    return names + (", …" if len(ids) > _SHOWN else "")
