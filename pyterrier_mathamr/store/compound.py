"""Artifacts that consist of others, such as a search engine or an index in parts.

::

    my.engine/
      pt_meta.json          names each member with the checksum of its manifest; swapped in one step
      generation-1/posts/   a member: an artifact of its own

A member that is missing, was changed, or is another artifact of the same kind is a named error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .artifact import StoredArtifact, faults
from .errors import DamagedError, NotBuiltError, StoreError
from .files import parse_json, replace_file
from .kind import META, PACKAGE
from .manifest import check_kind, read_signed, signed

_IDENTITY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Compound:
    """The declaration of an artifact that consists of others.

    Attributes:
        type: PyTerrier's type of the artifact.
        version: of the format that is written, and the only one that is read.
        rebuild: the command that builds it again; ``{path}`` is replaced.
        format: PyTerrier's format.
    """

    type: str
    version: int
    rebuild: str
    format: str = "mathamr"

    def read(self, path: Path) -> dict[str, Any]:
        """Read the details in the manifest.

        Raises:
            NotBuiltError: there is none. OtherArtifactError: the folder holds something else.
            FormatError: it has a format that this release does not read. DamagedError: it was changed.
        """
        file = path / META
        try:
            data = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotBuiltError(path, f"there is no finished {self.type}.{self.format} here") from error
        except OSError as error:
            raise DamagedError(file, f"it cannot be read ({error.strerror or error})") from error
        check_kind(parse_json(data, file), path, f"{self.type}.{self.format}", self.version, self.rebuild)
        details = read_signed(file).get("details")
        if not isinstance(details, dict):
            raise DamagedError(file, f"its details are {details!r:.80}, not an object")
        return details

    def write(self, path: Path, count: int, details: Mapping[str, Any]) -> None:
        """Write the manifest, durably and in one step."""
        about = {"type": self.type, "format": self.format, "package_hint": PACKAGE, "format_version": self.version}
        replace_file(path / META, signed({**about, "count": count, "details": details}))


def is_identity(value: object) -> bool:
    """Whether a value of a manifest can be the identity of a member."""
    return isinstance(value, str) and _IDENTITY.fullmatch(value) is not None


def check_member(artifact: StoredArtifact, identity: str, whole: Path) -> None:
    """Check that a member is the one that the manifest of the whole names.

    Raises:
        DamagedError: it is missing, or another one. StoreError: another of its kinds; it cannot be opened.
    """
    try:
        found = artifact.snapshot().identity
    except NotBuiltError as error:
        raise DamagedError(artifact.path, f"{whole / META} names it, and it is missing") from error
    if found != identity:
        raise DamagedError(artifact.path, f"it is not the part that {whole / META} names")


def member_faults(
    artifact: StoredArtifact, identity: str, whole: Path, *, verbose: bool = False
) -> Iterator[StoreError]:
    """Read a whole member, compare every checksum, and yield the faults."""
    found = list(faults(artifact.path, artifact.KIND, verbose=verbose))
    yield from found
    if not found:
        try:
            check_member(artifact, identity, whole)
        except StoreError as error:
            yield error
