"""The declaration of a kind of artifact, and ``pt_meta.json``: the artifact's format and parts.

::

    VECTORS = Kind(
        type="multi_vector_index",
        version=3,
        fields=(
            Field("rows", "float32 float16", "r d"),              one of two dtypes; r rows of d numbers
            Field("offsets", "int64", "m+1", cuts="r"),           row i owns rows[offsets[i]:offsets[i + 1]]
            Field("order", "int32", "r", below="m"),              each value is a row of the part
        ),
        merge=merge_vectors,
        rebuild="mathamr index GRAPHS MODEL -o {path} --fresh",
    )

``m`` is the number of ids of a part; any other name is bound at its first use and must agree from then on.

The manifest is read as a whole and swapped in one step. It has PyTerrier's keys, the keys below, and a checksum of
itself; if the artifact consists of others, it names each with the checksum of its manifest. A reader compares its
bytes with the bytes that this release would have written, so every change is detected.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from .errors import DamagedError, FormatError, NotBuiltError, OtherArtifactError, unreadable
from .files import Array, FileSum, check_number, parse_object, remove, swap_file

if TYPE_CHECKING:
    from .parts import StoredPart


Mode = Literal["create", "overwrite", "append"]

PACKAGE = "pyterrier-mathamr"
META = "pt_meta.json"
ARRAYS, IDS = "arrays.safetensors", "ids.npids"
PART_BYTES = 64 << 20
"""Size of a full part: parts that are smaller are merged as they accumulate."""


@dataclass(frozen=True, slots=True)
class Field:
    """One array of a part.

    Attributes:
        name: of the array.
        dtypes: one dtype or several, separated by a space.
        shape: its extents as letters, ``m+1`` for one more, a number for a fixed extent.
        cuts: the values ascend from 0 to this extent.
        below: the values are at least 0 and below this extent.
        optional: some parts lack it, of another dtype or an earlier release.
    """

    name: str
    dtypes: str
    shape: str
    cuts: str = ""
    below: str = ""
    optional: bool = False

    def bind(self, array: Array, extents: dict[str, int]) -> None:
        """Check dtype and shape of ``array``, and add new extents, by letter, to ``extents``.

        Raises:
            ValueError: they differ from the declaration.
        """
        names = self.shape.split()
        if array.dtype.name not in self.dtypes.split() or array.ndim != len(names):
            raise ValueError(f"{self.name} is {array.dtype}{list(array.shape)}, not {self.dtypes} [{self.shape}]")
        for name, extent in zip(names, array.shape, strict=True):
            letter, _, more = name.partition("+")
            least = int(more or 0)
            known = int(letter) if letter.isdigit() else extents.setdefault(letter, extent - least)
            if extent < least or known != extent - least:
                raise ValueError(f"{self.name} has {extent} where {name} is {known} (+{least})")

    def check(self, array: Array, extents: Mapping[str, int]) -> None:
        """Check that no value of ``array`` points outside the array with its extent in ``extents``.

        Raises:
            ValueError: one does.
        """
        if self.cuts and (array[0] != 0 or array[-1] != extents[self.cuts] or bool(np.any(array[1:] < array[:-1]))):
            raise ValueError(f"{self.name} does not ascend from 0 to {extents[self.cuts]}")
        if self.below and array.size and not 0 <= int(array.min()) <= int(array.max()) < extents[self.below]:
            raise ValueError(f"{self.name} has values outside 0 … {extents[self.below] - 1}")


ODD_IDS = (
    Field("odd_ids", "uint8", "odd_bytes"),
    Field("odd_offsets", "int64", "odd+1", cuts="odd_bytes"),
    Field("odd_rows", "int64", "odd", below="m"),
)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a part.

    Attributes:
        ids: of its rows, all different.
        arrays: by the names of the kind's fields.
        details: further values of the part, kept in the manifest.
        files: further files by name; they are moved into the part.
        count: number of rows, for a kind without fields and so without ids.
    """

    ids: Collection[str] = ()
    arrays: Mapping[str, Array] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    count: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of artifact.

    Attributes:
        type: PyTerrier's type of the artifact.
        version: number of the format that is written, and the only one that is read.
        rebuild: the command or call that rebuilds such an artifact; ``{path}`` is replaced.
        fields: the arrays of a part, in addition to its ids; a kind without fields has no ids either, only files.
        files: names of further files of a part; an artifact without any has no parts but consists of other artifacts.
        merge: merges several neighboring parts, without deleted rows; ``None`` if parts are never merged.
        part_bytes: size of a full part, which is not merged again.
        format: PyTerrier's format of the artifact.
    """

    type: str
    version: int
    rebuild: str
    fields: tuple[Field, ...] = ()
    files: tuple[str, ...] = ()
    merge: Callable[[Sequence[StoredPart]], Content] | None = None
    part_bytes: int = PART_BYTES
    format: str = "mathamr"

    @property
    def name(self) -> str:
        """PyTerrier's name of it: type and format."""
        return f"{self.type}.{self.format}"

    @property
    def about(self) -> dict[str, object]:
        """PyTerrier's keys of the manifest."""
        return {"type": self.type, "format": self.format, "package_hint": PACKAGE, "format_version": self.version}

    @property
    def arrays(self) -> tuple[Field, ...]:
        return (*self.fields, *ODD_IDS) if self.fields else ()

    def fields_in(self, names: Container[str]) -> list[Field]:
        """List the arrays that a part has: all but the optional ones that are not among these names."""
        return [field for field in self.arrays if not field.optional or field.name in names]

    @property
    def file_names(self) -> frozenset[str]:
        return frozenset(self.files) | (frozenset({ARRAYS, IDS}) if self.fields else frozenset())


Value = TypeVar("Value")

_PART = re.compile(r"part-[0-9]{6,12}")
_MARKS = re.compile(r"deleted-[0-9]{6,12}\.bin")
_NUMBER = re.compile(r"[0-9]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Marks:
    """The file of the rows of a part that were deleted: int64, ascending."""

    name: str
    count: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PartMeta:
    """One part in a manifest.

    Attributes:
        name: of its folder.
        count: its rows, deleted ones included.
        files: size and SHA-256 of each file.
        details: of the artifact's kind.
        deleted: the file that lists deleted rows; ``None`` where there is none.
    """

    name: str
    count: int
    files: Mapping[str, FileSum]
    details: Mapping[str, Any]
    deleted: Marks | None = None

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())

    @property
    def live(self) -> int:
        """Rows that are not deleted."""
        return self.count - (self.deleted.count if self.deleted else 0)


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
        """Return the identity of this state of the artifact."""
        return hashlib.sha256(self.to_bytes(kind)).hexdigest()


def signed(content: Mapping[str, Any]) -> bytes:
    """Write a JSON object with a checksum of itself."""
    text = json.dumps(content, indent=1)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return (json.dumps({**content, "checksum": digest}, indent=1) + "\n").encode()


def read_signed(path: Path) -> dict[str, Any]:
    """Read what :func:`signed` wrote.

    Raises:
        DamagedError: it was changed.
        OSError: it cannot be read.
    """
    return _checked(path.read_bytes(), path)


def _checked(data: bytes, path: Path) -> dict[str, Any]:
    content = parse_object(data, path)
    content.pop("checksum", None)
    if signed(content) != data:
        raise DamagedError(path, "its checksum is wrong")
    return content


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
    if (found := content.get("format_version", content.get("version"))) != kind.version:
        command = kind.rebuild.format(path=path)
        raise FormatError(
            path, f"it has format {found!r:.40}, this release reads {kind.version}. Rebuild it: {command}"
        )
    content = _checked(data, path / META)
    detail(content, "details", dict, path)
    return content


def read_parts(entries: Sequence[Mapping[str, Any]], kind: Kind) -> tuple[PartMeta, ...]:
    parts = tuple(_part(entry, kind) for entry in entries)
    if len({part.name for part in parts}) < len(parts):
        raise ValueError("a part comes twice")
    return parts


def _part(entry: Mapping[str, Any], kind: Kind) -> PartMeta:
    """Read the entry of a part; no name in it can point out of the artifact's folder."""
    if unknown := set(entry["files"]) - kind.file_names:
        raise ValueError(f"a file named {min(unknown)!r:.80}")
    files = {
        name: FileSum(check_number(size), _matched(_SHA256, digest)) for name, (size, digest) in entry["files"].items()
    }
    marks = entry["deleted"]
    deleted = None
    if marks is not None:
        name, count, digest = _matched(_MARKS, marks["name"]), check_number(marks["count"]), marks["sha256"]
        deleted = Marks(name, count, _matched(_SHA256, digest))
    if not isinstance(entry["details"], dict):
        raise TypeError("details of a part")
    return PartMeta(_matched(_PART, entry["name"]), check_number(entry["count"]), files, entry["details"], deleted)


def _matched(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"the name or digest {text!r:.80}")
    return text


def write_manifest(path: Path, manifest: Manifest, kind: Kind) -> None:
    swap_file(path / META, manifest.to_bytes(kind))


def has_manifest(path: Path) -> bool:
    """Whether there is a finished artifact at ``path``.

    Raises:
        UnavailableError: the operating system does not let it be seen.
    """
    try:
        return (path / META).is_file()
    except OSError as error:
        raise unreadable(error, path / META) from error


def detail(details: Mapping[str, Any], name: str, kind: type[Value], path: Path) -> Value:
    """Return one of the details of a kind.

    Args:
        details: of an artifact or a part.
        name: of one of them.
        kind: the type that it must have.
        path: the artifact that an error names.

    Raises:
        DamagedError: it is missing, or of another type.
    """
    value = details.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DamagedError(path / META, f"its {name} is {value!r:.80}, not a {kind.__name__}")
    return value


def is_published(path: Path, manifest: Manifest, kind: Kind) -> bool:
    """Whether a reader finds this manifest."""
    try:
        return (path / META).read_bytes() == manifest.to_bytes(kind)
    except OSError:
        return False


def clean(path: Path, manifest: Manifest) -> None:
    """Remove everything that the manifest does not name: replaced parts, and parts of an older format."""
    named = {META} | {part.name for part in manifest.parts}
    named |= {part.deleted.name for part in manifest.parts if part.deleted}
    for entry in path.iterdir():
        if entry.name not in named:
            remove(entry)
