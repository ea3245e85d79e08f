"""Objects that are a file or folder: equal where they name the same place."""

from __future__ import annotations

from pathlib import Path


class ByPath:
    """Gives a class equality, hash and a `repr` that rebuilds, by its ``path``.

    PyTerrier recognises equal stages of two pipelines by ``==``. A relative and an absolute path of one place are
    equal.
    """

    path: Path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, ByPath) and self._place() == other._place()

    def __hash__(self) -> int:
        return hash((type(self), self._place()))

    def _place(self) -> Path:
        return self.path.absolute()
