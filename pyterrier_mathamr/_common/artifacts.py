"""Where an artifact may be: not in place of something else, and not where nothing can be written.

What a folder holds is known by its ``pt_meta.json``; anything else than what is asked for is neither read nor replaced.
"""

from __future__ import annotations

import os
from pathlib import Path

from .errors import MathAMRError
from .json_text import parse_json

META = "pt_meta.json"


class OtherArtifactError(MathAMRError):
    """A path holds something else than the artifact that is asked for."""

    def __init__(self, path: Path, found: str, wanted: str) -> None:
        super().__init__(path, found, wanted)
        self.path, self.found, self.wanted = path, found, wanted

    def __str__(self) -> str:
        return (
            f"{self.path} holds {self.found}, not a {self.wanted}. It is left as it is, in any mode; "
            "give another path, or remove it yourself."
        )


def check_artifact(path: Path, wanted: str) -> None:
    """Refuse a path that holds something else; one where nothing is, or an empty folder, holds nothing.

    Args:
        path: where an artifact is read or written.
        wanted: its type and format, such as ``graph_store.mathamr``.

    Raises:
        OtherArtifactError: a file is there, a folder of other things, or another artifact.
    """
    found = _content(path)
    if found not in ("nothing", f"a {wanted}"):
        raise OtherArtifactError(path, found, wanted)


def _content(path: Path) -> str:
    """Say in a few words what is at a path."""
    if not path.is_dir():
        return "a file" if path.exists() else "nothing"
    try:
        meta = parse_json((path / META).read_bytes())
        return f"a {meta['type']}.{meta['format']}"
    except FileNotFoundError:
        return f"files but no {META}" if any(path.iterdir()) else "nothing"
    except (OSError, ValueError, KeyError, TypeError):
        return f"a {META} that cannot be read"


class NotWritableError(MathAMRError):
    """Nothing can be written where a folder or file is to be made."""

    def __init__(self, path: Path, parent: Path) -> None:
        super().__init__(path, parent)
        self.path, self.parent = path, parent

    def __str__(self) -> str:
        return (
            f"{self.path} cannot be made: you may not write in {self.parent}. "
            "Give a path in a folder of yours, or change its permissions. Nothing was written."
        )


def check_writable(path: Path) -> None:
    """Refuse a path in a folder that cannot be written, before any work is done for it.

    Args:
        path: what is to be made; folders above it that are missing are made with it.

    Raises:
        NotWritableError: the nearest folder above it that exists is read-only, or is no folder.
    """
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)):
        raise NotWritableError(path, parent)
