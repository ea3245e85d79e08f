"""The contents of a folder, to the byte."""

from pathlib import Path


def folder_bytes(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, by its path there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
