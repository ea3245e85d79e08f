"""``pt_meta.json``: what the index is and which shards count. Read once, swapped in one step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from .disk import write_text
from .errors import IndexCorruptError, IndexFormatError, NotAnIndexError
from .files import FORMAT_VERSIONS, META_NAME, READABLE_VERSIONS, DType, Layout

PACKAGE = "pyterrier-mathamr"
ARTIFACT_FORMAT = "mathamr"
ARTIFACT_TYPES: dict[Layout, str] = {"documents": "multi_vector_index", "formulas": "formula_index"}


@dataclass(frozen=True, slots=True)
class ShardMeta:
    """One shard: its folder, how much it holds, the longest row's length, and size and SHA-256 of each file."""

    name: str
    documents: int
    rows: int
    max_norm: float
    files: Mapping[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class IndexMeta:
    """What the index is: layout, dimensions (0 while empty), the model of its vectors, shards, how rows are stored."""

    layout: Layout
    dimensions: int
    model: str | None
    shards: tuple[ShardMeta, ...]
    dtype: DType = "float32"

    @property
    def documents(self) -> int:
        """The number of documents (or formulas)."""
        return sum(shard.documents for shard in self.shards)

    @property
    def rows(self) -> int:
        """The number of vectors."""
        return sum(shard.rows for shard in self.shards)

    def with_shards(self, shards: tuple[ShardMeta, ...]) -> IndexMeta:
        """The same index with other shards."""
        return replace(self, shards=shards)

    def to_dict(self) -> dict[str, Any]:
        """The content of ``pt_meta.json``: PyTerrier's keys, then ours."""
        return {
            "type": ARTIFACT_TYPES[self.layout],
            "format": ARTIFACT_FORMAT,
            "package_hint": PACKAGE,
            "format_version": FORMAT_VERSIONS[self.dtype],
            "dimensions": self.dimensions,
            "dtype": self.dtype,
            "documents": self.documents,
            "rows": self.rows,
            "model": self.model,
            "shards": [asdict(shard) for shard in self.shards],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], path: Path) -> IndexMeta:
        """Read what :meth:`to_dict` wrote.

        Args:
            data: the decoded JSON.
            path: where it was read, for the errors.

        Raises:
            NotAnIndexError: it describes another kind of artifact.
            IndexFormatError: the format is older or newer than this release reads.
            IndexCorruptError: a key is missing or of the wrong type.
        """
        layout = next((name for name, kind in ARTIFACT_TYPES.items() if kind == data.get("type")), None)
        if layout is None or data.get("format") != ARTIFACT_FORMAT:
            raise NotAnIndexError(path, f"it is a {data.get('type')}.{data.get('format')}, not an index of MathAMR+")
        version = data.get("format_version")
        if not isinstance(version, int):
            raise IndexCorruptError(path / META_NAME, "it has no format_version")
        if version not in READABLE_VERSIONS:
            raise IndexFormatError(path, version, READABLE_VERSIONS)
        try:
            shards = tuple(_shard(entry) for entry in data["shards"])
            return cls(layout, int(data["dimensions"]), data["model"], shards, _dtype(version, data.get("dtype")))
        except (KeyError, TypeError, ValueError) as error:
            raise IndexCorruptError(path / META_NAME, f"a key is missing or wrong ({error!r})") from error


def _dtype(version: int, found: object) -> DType:
    """How the rows are stored; the first releases did not say, and stored float32."""
    for dtype, written in FORMAT_VERSIONS.items():
        if found == dtype and version == written:
            return dtype
    if found is None and version == FORMAT_VERSIONS["float32"]:
        return "float32"
    raise ValueError(f"dtype {found!r} in format {version}")


def _shard(entry: Mapping[str, Any]) -> ShardMeta:
    known = {field.name for field in fields(ShardMeta)}
    if unknown := set(entry) - known:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    files = {name: (int(size), str(digest)) for name, (size, digest) in entry["files"].items()}
    name = str(entry["name"])
    if Path(name).name != name:  # a meta file from elsewhere must not make us read outside the index
        raise ValueError(f"shard name {name!r} is a path")
    return ShardMeta(name, int(entry["documents"]), int(entry["rows"]), float(entry["max_norm"]), files)


def read_json(path: Path) -> dict[str, Any]:
    """Read one JSON object.

    Raises:
        FileNotFoundError: there is no such file.
        IndexCorruptError: it is not a JSON object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise IndexCorruptError(path, f"it is not JSON ({error})") from error
    if not isinstance(data, dict):
        raise IndexCorruptError(path, "it is not a JSON object")
    return cast(dict[str, Any], data)


def read_meta(path: Path) -> IndexMeta:
    """Read ``pt_meta.json`` of the index at ``path``.

    Raises:
        NotAnIndexError: the folder is absent, or not a built index.
        IndexFormatError: the format is older or newer than this release reads.
        IndexCorruptError: the file is damaged.
    """
    try:
        data = read_json(path / META_NAME)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotAnIndexError(path, "there is no built index here") from error
    return IndexMeta.from_dict(data, path)


def write_meta(path: Path, meta: IndexMeta) -> None:
    """Write ``pt_meta.json`` durably and in one step: a reader sees the old one or the new one."""
    write_text(path / META_NAME, json.dumps(meta.to_dict(), indent=1) + "\n")
