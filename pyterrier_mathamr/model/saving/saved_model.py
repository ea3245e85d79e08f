"""What models have in common: they are equal by identity, and are written to new folders alone."""

from __future__ import annotations

from pathlib import Path

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model.saving.places import short_name


class SavedModel:
    """A model that can be saved: equality and hash by its identity, and a `repr` that opens it again where it can."""

    _folder: Path | None
    """Where it was opened; ``None`` if it was made or trained since."""

    @property
    def identity(self) -> str:
        """Digest of all that determines what the model computes."""
        raise NotImplementedError

    def _opened_by(self) -> str | None:
        """Return the arguments of ``from_pretrained`` that open the model; ``None`` if it is not saved."""
        return None if self._folder is None else repr(short_name(self._folder))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SavedModel) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        name, arguments = type(self).__name__, self._opened_by()
        return f"<{name} {self.identity[:12]}>" if arguments is None else f"{name}.from_pretrained({arguments})"


def check_new_folder(path: str | Path, option: str = "path") -> Path:
    """Return a path that a model is to be written to."""
    if Path(path).exists():
        raise ConfigError(option, str(path), "a folder that does not exist yet")
    return Path(path)
