"""What a folder holds, by its ``pt_meta.json``; anything else than what is asked for is neither read nor replaced."""

from __future__ import annotations

import json
from pathlib import Path

from .errors import MathAMRError

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
        meta = json.loads((path / META).read_text(encoding="utf-8"))
        return f"a {meta['type']}.{meta['format']}"
    except FileNotFoundError:
        return f"files but no {META}" if any(path.iterdir()) else "nothing"
    except (OSError, ValueError, KeyError, TypeError):
        return f"a {META} that cannot be read"
