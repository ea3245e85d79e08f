"""Errors of artifacts on disk. Each names the path, the fault and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import ClassVar

from pyterrier_mathamr._common.errors import MathAMRError, is_refusal, listed
from pyterrier_mathamr._common.ids import InvalidIdError as InvalidIdError


class StoreError(MathAMRError):
    """An artifact cannot be read or written.

    Args:
        path: the artifact, or its faulty file; text if it is not a path, such as the address of a server.
        reason: the fault.
    """

    path: Path | str
    reason: str = ""
    template = "{path}: {reason}."


class NotBuiltError(StoreError):
    """There is no finished artifact at the path."""


class OtherArtifactError(StoreError):
    """The path holds something other than the artifact."""

    advice = "No mode replaces it: give another path, or remove it yourself."


class FormatError(StoreError):
    """The artifact has a format that this release does not read."""


class DamagedError(StoreError):
    """A file is missing, truncated or was changed since it was written."""

    advice = "Restore it from a copy, or build the artifact again with mode='overwrite'."


class WriteError(StoreError):
    """Nothing can be written: there is an artifact already, another process is writing it, or the system refuses."""

    advice = "Nothing was changed."


class UnfinishedJobError(StoreError):
    """The unfinished work at a path belongs to another job.

    Args:
        path: the artifact.
        differences: by name, the values of the unfinished job and of this one.
    """

    reason: str = field(init=False)
    differences: Mapping[str, tuple[object, object]]
    advice = (
        "Finish that job by running it again with its own options, or discard its work: `--fresh` on the command line, "
        ".discard() in Python."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        listed = (f"{name}: {kept!s:.80}, not {wanted!s:.80}" for name, (kept, wanted) in self.differences.items())
        self.reason = f"its unfinished work was made from something else ({'; '.join(listed)})"


class IdError(StoreError):
    """Some ids are at fault."""

    wrong: ClassVar[tuple[str, str]]  # of one id, of several
    reason: str = field(init=False)
    ids: Sequence[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ids = list(self.ids)
        one, several = self.wrong
        wrong = f"1 id {one}" if len(self.ids) == 1 else f"{len(self.ids):,} ids {several}"
        self.reason = f"{wrong}: {listed(self.ids)}"


class DuplicateIdError(IdError):
    """Some ids come twice, or are in the artifact already."""

    wrong = "comes twice or is in it already", "come twice or are in it already"
    advice = "Each id can be stored only once. Nothing was changed."


class UnknownIdError(IdError, KeyError):
    """The artifact does not hold some ids."""

    wrong = "is not in it", "are not in it"


class UnavailableError(StoreError):
    """The operating system does not let a file be opened, such as for a missing permission; it may be whole."""

    advice = "It need not be damaged: remove the cause, such as a low `ulimit -n`, and try again."


def unreadable(error: OSError, path: Path) -> StoreError:
    """Return the named error for an ``error`` of reading the artifact at ``path``: damage, or the system's refusal."""
    file, what = Path(error.filename or path), error.strerror or str(error)
    if not is_refusal(error):
        return DamagedError(file, f"it cannot be read ({what})")
    return UnavailableError(file, f"it cannot be opened ({what})")
