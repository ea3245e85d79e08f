"""ARQMath as datasets of ir_datasets (``arqmath/2022/task1``) and PyTerrier (``irds:…``, ``arqmath:…``).

::

    definitions    the datasets and their parts, their records, and the store of documents by id
    providers      ``pt.get_dataset('arqmath:2022/task1')``; folders in BEIR's layout, ``mathamr-beir:FOLDER``

``irds:…`` reads the registry of ir_datasets, which has no entry points. Importing ir_datasets costs 0.4 s, which
importing PyTerrier with this package must not. So a finder waits for that import, removes itself, and imports the
module that registers the datasets.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType


class _AfterIrDatasets:
    """A finder on ``sys.meta_path`` that finds ``ir_datasets`` only, once."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find ir_datasets as Python does, with the registration after its module has run."""
        if name != "ir_datasets":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                importlib.import_module(".definitions", __name__)

            spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec


def register_when_needed() -> None:
    """Register now if ir_datasets is imported already, else once it is."""
    if "ir_datasets" in sys.modules:
        importlib.import_module(".definitions", __name__)
    elif not any(isinstance(finder, _AfterIrDatasets) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterIrDatasets())
