"""``pt_meta.json``, which has the format and the parts of an artifact, and the snapshot that a reader opened.

The manifest is read as a whole and swapped in one step. It has PyTerrier's keys, the keys below, and a checksum of
itself; if the artifact consists of others, it names each with the checksum of its manifest. A reader compares its
bytes with the bytes that this release would have written, so every change is detected.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from .errors import DamagedError, FormatError, NotBuiltError, OtherArtifactError, UnknownIdError, unreadable
from .files import FileSum, check_number, parse_object, remove, swap_file
from .ids import Rows
from .parts import Kind, Marks, PartMeta, Parts, StoredPart

Mode = Literal["create", "overwrite", "append"]
Value = TypeVar("Value")

META = "pt_meta.json"
_PART = re.compile(r"part-[0-9]{6,12}")
_MARKS = re.compile(r"deleted-[0-9]{6,12}\.bin")
_NUMBER = re.compile(r"[0-9]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state of an artifact: options, dimensions or the model of its kind, and its parts in the order of their rows.

    ``next`` numbers the next part or file of marks; no number is reused, so a name never changes its meaning.
    """

    details: Mapping[str, Any]
    parts: tuple[PartMeta, ...] = ()
    next: int = 0

    @property
    def count(self) -> int:
        """Rows that are not deleted."""
        return sum(part.live for part in self.parts)

    def to_bytes(self, kind: Kind) -> bytes:
        return signed({**kind.about, "count": self.count, **asdict(self)})

    def checksum(self, kind: Kind) -> str:
        """The identity of this state of the artifact."""
        return hashlib.sha256(self.to_bytes(kind)).hexdigest()


def signed(content: Mapping[str, Any]) -> bytes:
    """Write a JSON object with a checksum of itself."""
    text = json.dumps(content, indent=1)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return (json.dumps({**content, "checksum": digest}, indent=1) + "\n").encode()


def read_signed(path: Path) -> dict[str, Any]:
    """Read what :func:`signed` wrote; ``DamagedError`` where it was changed, ``OSError`` where it cannot be read."""
    data = path.read_bytes()
    content = parse_object(data, path)
    _check(content, data, path)
    return content


def _check(content: dict[str, Any], data: bytes, path: Path) -> None:
    """Compare what was parsed with all bytes of its file, and remove the checksum."""
    content.pop("checksum", None)
    if signed(content) != data:
        raise DamagedError(path, "its checksum is wrong")


def read_manifest(path: Path, kind: Kind) -> Manifest:
    """Read the manifest of the artifact of a ``kind`` at ``path``.

    Raises:
        NotBuiltError: there is no finished artifact.
        OtherArtifactError: something else is there.
        FormatError: it has a format that this release does not read.
        DamagedError: it was changed since it was written.
    """
    content = _content(path, kind)
    try:
        parts, following = read_parts(content["parts"], kind), check_number(content["next"])
        names = [*(part.name for part in parts), *(part.deleted.name for part in parts if part.deleted)]
        if any(int(_NUMBER.findall(name)[0]) >= following for name in names):
            raise ValueError(f"next is {following}, which is the number of a part")  # a writer would remove that part
        return Manifest(content["details"], parts, following)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(path / META, f"a key is missing or wrong ({error!r:.200})") from error


def read_details(path: Path, kind: Kind) -> dict[str, Any]:
    """Read the details of the artifact of a ``kind`` at ``path`` that consists of others, as :func:`read_manifest`."""
    details: dict[str, Any] = _content(path, kind)["details"]
    return details


def write_details(path: Path, kind: Kind, count: int, details: Mapping[str, Any]) -> None:
    """Write the manifest of an artifact that consists of others, durably and in one step.

    Args:
        path: of the artifact.
        kind: its kind.
        count: its rows.
        details: what its kind stores, as plain JSON values, such as the identity of each member.
    """
    swap_file(path / META, signed({**kind.about, "count": count, "details": details}))


def _content(path: Path, kind: Kind) -> dict[str, Any]:
    if kind.file_names and path.exists() and not path.is_dir():
        raise OtherArtifactError(path, f"it is a file, not a {kind.name}")
    try:
        data = (path / META).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        # an empty folder lacks the manifest, and a folder of members whose build is not complete
        if kind.file_names and path.is_dir() and any(path.iterdir()):
            raise OtherArtifactError(path, f"it holds files but no {META}, so it is not a {kind.name}") from None
        raise NotBuiltError(path, f"there is no finished {kind.name} here; build it, or check the path") from error
    except OSError as error:
        raise unreadable(error, path / META) from error
    content = parse_object(data, path / META)
    if (held := f"{content.get('type')!s:.80}.{content.get('format')!s:.80}") != kind.name:
        raise OtherArtifactError(path, f"it holds a {held}, not a {kind.name}")
    if (version := content.get("format_version", content.get("version"))) != kind.version:
        rebuild = f"Rebuild it: {kind.rebuild.format(path=path)}"
        raise FormatError(path, f"it has format {version!r:.40}, this release reads {kind.version}. {rebuild}")
    _check(content, data, path / META)
    detail(content, "details", dict, path)
    return content


def read_parts(entries: Sequence[Mapping[str, Any]], kind: Kind) -> tuple[PartMeta, ...]:
    """Read the entries of parts; no name in them can point out of the artifact's folder."""
    parts = []
    for entry in entries:
        if unknown := set(entry["files"]) - kind.file_names:
            raise ValueError(f"a file named {min(unknown)!r:.80}")
        if not isinstance(entry["details"], dict):
            raise TypeError("details of a part")
        sums = entry["files"].items()
        files = {name: FileSum(check_number(size), _matched(_SHA256, digest)) for name, (size, digest) in sums}
        deleted = None
        if (marks := entry["deleted"]) is not None:
            count, digest = check_number(marks["count"]), _matched(_SHA256, marks["sha256"])
            deleted = Marks(_matched(_MARKS, marks["name"]), count, digest)
        name, count = _matched(_PART, entry["name"]), check_number(entry["count"])
        parts.append(PartMeta(name, count, files, entry["details"], deleted))
    if len({part.name for part in parts}) < len(parts):
        raise ValueError("a part comes twice")
    return tuple(parts)


def _matched(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"the name or digest {text!r:.80}")
    return text


def write_manifest(path: Path, manifest: Manifest, kind: Kind) -> None:
    swap_file(path / META, manifest.to_bytes(kind))


def has_manifest(path: Path) -> bool:
    """Whether there is a finished artifact at ``path``; ``UnavailableError`` where the system hides it."""
    try:
        return (path / META).is_file()
    except OSError as error:
        raise unreadable(error, path / META) from error


def detail(details: Mapping[str, Any], name: str, kind: type[Value], path: Path) -> Value:
    """Return one of the details of a kind; ``DamagedError`` where it is missing or of another type.

    Args:
        details: of an artifact or a part.
        name: of one of them.
        kind: the type that it must have.
        path: the artifact that an error names.
    """
    value = details.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DamagedError(path / META, f"its {name} is {value!r:.80}, not a {kind.__name__}")
    return value


def clean(path: Path, manifest: Manifest) -> None:
    """Remove everything that the manifest does not name: replaced parts, and parts of an older format."""
    named = {META} | {part.name for part in manifest.parts}
    named |= {part.deleted.name for part in manifest.parts if part.deleted}
    for entry in path.iterdir():
        if entry.name not in named:
            remove(entry)


class Snapshot(Parts):
    """The artifact of a ``kind`` at ``path`` as it was when it was opened; see :func:`read_manifest` for its errors."""

    def __init__(self, path: Path, kind: Kind) -> None:
        self.path, self.kind = path, kind
        self.signature = signature(path)
        self.manifest = read_manifest(path, kind)
        while True:
            try:
                super().__init__([StoredPart(path, meta, kind, path) for meta in self.manifest.parts])
                break
            except OSError as error:  # perhaps since a writer has swapped the manifest meanwhile
                now = read_manifest(path, kind)
                if now == self.manifest:
                    raise unreadable(error, path) from error
                self.manifest = now
        self.caches: dict[str, Any] = {}
        """Values computed from this snapshot on first use, such as graphs of an approximate search, by name."""

    @cached_property
    def identity(self) -> str:
        """The identity of this state of the artifact: the checksum of its manifest."""
        return self.manifest.checksum(self.kind)

    def find(self, ids: Sequence[str]) -> Rows:
        """Look up the row of each id: int64 ``[len(ids)]``; ``UnknownIdError`` names those that are not in it."""
        rows = self.look_up(ids)
        if (rows < 0).any():
            raise UnknownIdError(self.path, [ids[i] for i in np.flatnonzero(rows < 0).tolist()])
        return rows


def signature(path: Path) -> tuple[int, int, int]:
    """Return inode, time and size of the manifest, which change when it is swapped; zeros where there is none."""
    try:
        status = os.stat(path / META)
    except OSError:
        return (0, 0, 0)
    return (status.st_ino, status.st_mtime_ns, status.st_size)
