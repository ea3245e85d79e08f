"""What the indexes of this room share: a folder that PyTerrier loads, written whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyterrier as pt

from pyterrier_mathamr._common.artifacts import META, check_artifact, check_writable
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.paths import ByPath
from pyterrier_mathamr._version import __version__

from .errors import IndexExistsError, IndexFormatError, IndexNotBuiltError

Mode = Literal["create", "overwrite"]


class FolderArtifact(ByPath, pt.Artifact, pt.Indexer):  # type: ignore[misc]
    """An index in a folder. Making the object reads nothing; the folder need not exist yet.

    Args:
        path: the folder.
    """

    ARTIFACT_PACKAGE_HINT = "pyterrier-mathamr"
    FORMAT_VERSION: ClassVar[int]
    path: Path

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.forget()

    def forget(self) -> None:
        """Drop what was read from disk, after the index was built anew."""
        raise NotImplementedError

    @classmethod
    def kind(cls) -> str:
        """Say what the index is called in ``pt_meta.json``: its type and format."""
        return f"{cls.ARTIFACT_TYPE}.{cls.ARTIFACT_FORMAT}"

    def built(self) -> bool:
        """Tell whether a whole index is at the path."""
        return bool((self.path / META).is_file())

    def read_meta(self) -> dict[str, Any]:
        """Read what the index says of itself.

        Raises:
            IndexNotBuiltError: there is no index at the path.
            OtherArtifactError: something else is there.
            IndexFormatError: it has a format that this release does not read.
            OSError: the file cannot be read. ValueError: it is no JSON.
        """
        if not self.built():
            raise IndexNotBuiltError(self.path)
        meta: dict[str, Any] = json.loads((self.path / META).read_text(encoding="utf-8"))
        check_artifact(self.path, self.kind())
        if (version := meta.get("format_version")) != self.FORMAT_VERSION:
            raise IndexFormatError(self.path, f"format {version}, but this release reads {self.FORMAT_VERSION}")
        return meta

    def check_free(self, mode: Mode) -> None:
        """Refuse to write where something is that ``mode`` does not replace.

        Raises:
            OtherArtifactError: something else is at the path.
            NotWritableError: nothing can be written there.
            IndexExistsError: such an index is there, and the mode is ``create``.
        """
        check_artifact(self.path, self.kind())
        check_writable(self.path)
        if mode == "create" and self.built():
            raise IndexExistsError(self.path)

    @contextmanager
    def replaced(self, details: Mapping[str, Any]) -> Iterator[Path]:
        """Give an empty folder to write in; it takes the place of the index when the block ends without an error.

        Args:
            details: what ``pt_meta.json`` says besides type, format and version.
        """
        target: Path = self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.fresh")
        shutil.rmtree(fresh, ignore_errors=True)  # left by a run that was killed
        with pt.io.finalized_directory(str(fresh)) as folder:
            yield Path(folder)
            meta = {
                "type": self.ARTIFACT_TYPE,
                "format": self.ARTIFACT_FORMAT,
                "package_hint": self.ARTIFACT_PACKAGE_HINT,
                "format_version": self.FORMAT_VERSION,
                "version": __version__,
                **details,
            }
            (Path(folder) / META).write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
        if target.exists():
            old = target.with_name(f".{target.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
            fresh.rename(target)
            shutil.rmtree(old)
        else:
            fresh.rename(target)
        self.forget()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self.forget()


def check_mode(mode: str) -> None:
    """Refuse a mode that an indexer does not have.

    Raises:
        ConfigError: it is neither ``create`` nor ``overwrite``.
    """
    if mode not in ("create", "overwrite"):
        raise ConfigError("mode", mode, "'create' or 'overwrite'")
