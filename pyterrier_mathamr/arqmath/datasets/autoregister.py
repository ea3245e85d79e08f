"""Register the datasets once ir_datasets is imported, so that importing this package need not import it.

Importing ir_datasets costs 0.4 s, and ``arqmath/…`` is only needed with it. So a finder waits for that import,
removes itself, and imports the module that registers the datasets after ir_datasets.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _AfterIrDatasets:
    """A finder on ``sys.meta_path`` that finds ``ir_datasets`` only, once."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find ir_datasets as Python does, and add the registration to its loader."""
        if name != "ir_datasets":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenRegister(spec.loader)  # type: ignore[assignment]
        return spec


class _ThenRegister:
    """The module's own loader, with a step after the module has run."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module as its own loader does."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then register the datasets."""
        self._loader.exec_module(module)
        importlib.import_module(".definitions", __package__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # package data is read through the loader


def register_when_needed() -> None:
    """Register now if ir_datasets is imported already, else once it is."""
    if "ir_datasets" in sys.modules:
        importlib.import_module(".definitions", __package__)
    elif not any(isinstance(finder, _AfterIrDatasets) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterIrDatasets())
