"""The declaration of a kind of artifact, on which the rest of this room works.

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
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .files import Array

if TYPE_CHECKING:
    from .parts.part import Part

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
    """

    name: str
    dtypes: str
    shape: str
    cuts: str = ""
    below: str = ""

    def bind(self, array: Array, extents: dict[str, int]) -> None:
        """Check dtype and shape, and bind new extents.

        Raises:
            ValueError: they are not those declared.
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
        """Check that no value points outside an array.

        Raises:
            ValueError: one does.
        """
        if self.cuts and (array[0] != 0 or array[-1] != extents[self.cuts] or bool(np.any(array[1:] < array[:-1]))):
            raise ValueError(f"{self.name} does not ascend from 0 to {extents[self.cuts]}")
        if self.below and array.size and not 0 <= int(array.min()) <= int(array.max()) < extents[self.below]:
            raise ValueError(f"{self.name} has values outside 0 … {extents[self.below] - 1}")


_ODD_IDS = (
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
        count: number of rows, where the kind has no fields and so no ids.
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
        fields: the arrays of a part, beside its ids; a kind without any has no ids either, only files.
        files: names of further files of a part.
        merge: makes one part of several neighbours, without deleted rows; ``None`` where parts are never merged.
        part_bytes: size of a full part, which is not merged any more.
        format: PyTerrier's format of the artifact.
    """

    type: str
    version: int
    rebuild: str
    fields: tuple[Field, ...] = ()
    files: tuple[str, ...] = ()
    merge: Callable[[Sequence[Part]], Content] | None = None
    part_bytes: int = PART_BYTES
    format: str = "mathamr"

    @property
    def name(self) -> str:
        """PyTerrier's name of it: type and format."""
        return f"{self.type}.{self.format}"

    @property
    def arrays(self) -> tuple[Field, ...]:
        """All arrays of a part."""
        return (*self.fields, *_ODD_IDS) if self.fields else ()

    @property
    def file_names(self) -> frozenset[str]:
        """Names of all files of a part."""
        return frozenset(self.files) | (frozenset({ARRAYS, IDS}) if self.fields else frozenset())
