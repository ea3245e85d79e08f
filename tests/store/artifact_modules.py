"""How each artifact is built, opened and read, for the tests that all of them must pass.

The modules in ``artifacts`` hold one class for each artifact; only the module of an artifact under test is imported.
"""

import importlib.util
import pkgutil
import sys
from pathlib import Path
from typing import Any, ClassVar

FOLDER = Path(__file__).resolve().with_name("artifacts")
MODULES = {
    "toy": ("toy",),
    "stores": ("graph_store", "tensor_store", "post_store", "training_checkpoint"),
    "databases": ("formula_store", "thread_store"),
    "vectors": ("vector_index", "formula_index", "sharded_index", "marf"),
    "inverted": ("bm25", "tangent", "patterns", "approach0", "cft", "formula_trees", "in_out"),
    "engines": ("engine", "engine_of_files"),
}
NAMES = sorted(name for names in MODULES.values() for name in names)


class Artifact:
    """An artifact of rows d0, d1, …, in parts of two rows."""

    made: ClassVar[dict[str, "Artifact"]] = {}
    """By name, those of the modules that were imported."""
    KIND: ClassVar[str]
    """Where its class is, in the form of an entry point."""
    MODES: ClassVar[tuple[str, ...]] = ("create", "append", "overwrite")
    DELETES = COMPACTS = True
    DELETED: ClassVar[list[str]] = ["d1", "d6"]
    """Two ids that are there, of the kind that the artifact deletes by."""
    REPEATS: ClassVar[tuple[str, ...]] = ()
    """Actions that succeed when run again, even if killed after the last step that counts."""

    def __init_subclass__(cls, *, name: str = "") -> None:
        if name:
            Artifact.made[name] = cls()

    def open(self, path: Path) -> Any:
        return pkgutil.resolve_name(self.KIND)(path)

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        """Write rows whose content depends on the seed, and resume what died."""
        raise NotImplementedError

    def read(self, path: Path) -> object:
        """Return everything that can be read of it."""
        raise NotImplementedError


def load(name: str) -> Any:
    """Import the module of one artifact, and return the artifact."""
    if name not in Artifact.made:
        module = next(module for module, names in MODULES.items() if name in names)
        spec = importlib.util.spec_from_file_location(f"artifacts_{module}", FOLDER / f"{module}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[spec.name])
    return Artifact.made[name]
