"""What the two indexes share: an artifact of the store that is opened as vectors, and merging."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import ClassVar

from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr.store import OtherArtifactError, StoredArtifact

from .build import Build
from .errors import DtypeMismatchError, check_model
from .face import IndexFace
from .records import DType, Entry, Layout, Post
from .resume import Corpus
from .snapshot import Snapshot


class IndexArtifact(StoredArtifact, IndexFace):
    """An index in a folder. Making the object reads nothing; the folder need not exist yet.

    Args:
        path: the folder.
    """

    LAYOUT: ClassVar[Layout]

    def open_snapshot(self) -> Snapshot:
        """Open the index."""
        return Snapshot(self.path, self.KIND)

    def snapshot(self) -> Snapshot:
        """The index as it is now; see :meth:`StoredArtifact.snapshot`."""
        found: Snapshot = super().snapshot()  # type: ignore[assignment]
        return found

    def entries(self, *, verbose: bool = False) -> Iterator[Entry]:
        """Every entry of the index, in the order in which they came, read a little at a time."""
        snapshot = self.snapshot()
        return iter(progress(snapshot.entries(), "reading", "doc", verbose=verbose, total=len(snapshot)))

    def _merge(self, indexes: Iterable[IndexArtifact], dtype: DType | None) -> None:
        """Build this index from others; see the public ``merge``."""
        sources = list(indexes)
        model = merged_model(str(self.path), sources)
        for source in sources:
            if type(source) is not type(self):
                raise OtherArtifactError(source.path, f"only a {type(self).__name__} can be merged here")
        kinds: dict[DType, None] = dict.fromkeys(source.snapshot().meta.dtype for source in sources)
        if dtype is None and len(kinds) > 1:
            raise DtypeMismatchError(self.path, " and ".join(sorted(kinds)), None)
        entries = chain.from_iterable(source.entries() for source in sources)
        posts = (Post(entry.docno, [entry]) for entry in entries)
        with self.job("create", {}, resume=False) as job:
            Build(job, self.LAYOUT, Corpus(self.path, ()), model, dtype or next(iter(kinds), None)).run(posts)


def merged_model(path: str, indexes: Iterable[IndexFace]) -> str | None:
    """The model of several indexes that become one.

    Raises:
        ModelMismatchError: they have two.
    """
    models = [index.model for index in indexes if index.model is not None]
    for other in models[1:]:
        check_model(path, models[0], other)
    return next(iter(models), None)


def example_folder() -> Path:
    """A temporary folder that is removed when Python ends."""
    folder = Path(tempfile.mkdtemp(prefix="mathamr-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
