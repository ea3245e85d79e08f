"""The last step of a job: its parts are moved to the artifact, whose manifest is swapped."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.store.files import move, remove
from pyterrier_mathamr.store.kind import META, Kind
from pyterrier_mathamr.store.manifest import Manifest, clean, is_published, write_manifest
from pyterrier_mathamr.store.parts.part import Part

from .unfinished import job_folder


def put_in_place(path: Path, parts: Sequence[Part], manifest: Manifest, kind: Kind, *, new: bool) -> None:
    """Make parts of a job the artifact, and remove what its manifest does not name."""
    place = job_folder(path) / "parts"
    try:
        if new and not (path / META).exists():
            _move_whole(place, path, manifest, kind)
        else:
            _move_parts(place, path, parts, manifest, kind)
    except OSError as error:
        if not is_published(path, manifest, kind):
            raise
        text = f"{path}: the new artifact is in place, but a power cut may undo it ({error.strerror or error})"
        warnings.warn(MathAMRWarning(text), stacklevel=3)


def _move_whole(place: Path, path: Path, manifest: Manifest, kind: Kind) -> None:
    """Turn the folder of the parts into the artifact, which did not exist, by one renaming."""
    write_manifest(place, manifest, kind)
    named = {part.name for part in manifest.parts}
    for stray in place.glob("part-*"):
        if stray.name not in named:
            remove(stray)
    if path.exists():
        path.rmdir()
    move(place, path)


def _move_parts(place: Path, path: Path, parts: Sequence[Part], manifest: Manifest, kind: Kind) -> None:
    """Move parts beside those of the artifact, where no manifest names them until it is swapped."""
    for part in parts:
        if part.path.parent == place:
            remove(path / part.meta.name)  # moved by a job that was killed, and named by no manifest
            move(part.path, path / part.meta.name)
    write_manifest(path, manifest, kind)
    clean(path, manifest)
