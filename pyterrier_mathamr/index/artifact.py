"""What the two indexes share: a folder that PyTerrier loads, packages and inspects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyterrier as pt

from pyterrier_mathamr._common.paths import ByPath
from pyterrier_mathamr._common.progress import progress

from .errors import DtypeMismatchError, NotAnIndexError, check_model
from .face import IndexFace
from .files import META_NAME, DType, Layout
from .meta import ARTIFACT_FORMAT, PACKAGE
from .records import Entry
from .snapshot import Snapshot, entries, signature
from .write import rewrite_index, write_index


class IndexArtifact(ByPath, pt.Artifact, IndexFace):  # type: ignore[misc]
    """An index in a folder. Making the object reads nothing; the folder need not exist yet.

    Args:
        path: the folder.
    """

    ARTIFACT_FORMAT = ARTIFACT_FORMAT
    ARTIFACT_PACKAGE_HINT = PACKAGE
    LAYOUT: ClassVar[Layout]
    path: Path

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._snapshot: Snapshot | None = None

    def __reduce__(self) -> tuple[type[IndexArtifact], tuple[str]]:
        return type(self), (str(self.path),)

    def built(self) -> bool:
        """Whether there is a whole index at the path; a build that is under way or died does not count."""
        return (self.path / META_NAME).is_file()

    def snapshot(self) -> Snapshot:
        """The index as it is now, opened on first use and again when it was changed.

        Raises:
            NotAnIndexError: it is not built.
            IndexFormatError: it has a format this release does not read.
            IndexCorruptError: a file is missing, cut short or changed.
        """
        if self._snapshot is None or self._snapshot.signature != signature(self.path):
            self._snapshot = Snapshot(self.path)
            if self._snapshot.meta.layout != self.LAYOUT:
                found, self._snapshot = self._snapshot.meta.layout, None
                raise NotAnIndexError(self.path, f"it is an index of {found}, not of {self.LAYOUT}")
        return self._snapshot

    def verify(self) -> None:
        """Read the whole index and compare every checksum.

        Raises:
            IndexCorruptError: a file was changed since it was written; it is named.
        """
        self.snapshot().verify()

    def entries(self, *, verbose: bool = False) -> Iterator[Entry]:
        """Every entry of the index, in the order of its shards, read a little at a time."""
        snapshot = self.snapshot()
        numbers = np.arange(len(snapshot), dtype=np.int64)
        return iter(progress(entries(snapshot, numbers), "reading", "doc", verbose=verbose, total=len(snapshot)))

    def delete(self, docnos: Iterable[str]) -> None:
        """Remove documents (or formulas, by their ids), in one step; the shards that held them are written anew.

        Args:
            docnos: what goes; one that comes twice counts once.

        Raises:
            UnknownDocnoError: the index does not hold some of them; it names them, and nothing is removed.
        """
        rewrite_index(self.path, self.LAYOUT, drop=list(dict.fromkeys(docnos)))

    def compact(self) -> None:
        """Write all shards anew as full ones, in one step: after many small appends it is searched faster."""
        rewrite_index(self.path, self.LAYOUT, drop=[], everything=True)

    def _merge(self, indexes: Iterable[IndexArtifact], dtype: DType | None) -> None:
        """Build this index from others; see the public ``merge``."""
        sources = list(indexes)
        models = [source.model for source in sources if source.model is not None]
        for other in models[1:]:
            check_model(self.path, models[0], other)
        for source in sources:
            if type(source) is not type(self):
                raise NotAnIndexError(source.path, f"only a {type(self).__name__} can be merged here")
        kinds: dict[DType, None] = dict.fromkeys(source.snapshot().meta.dtype for source in sources)
        if dtype is None and len(kinds) > 1:
            raise DtypeMismatchError(self.path, " and ".join(sorted(kinds)), None)
        stream = chain.from_iterable(source.entries() for source in sources)
        made_by, dtype = next(iter(models), None), dtype or next(iter(kinds), None)
        write_index(self.path, self.LAYOUT, "create", stream, model=made_by, dtype=dtype)
