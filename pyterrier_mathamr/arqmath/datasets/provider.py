"""``pt.get_dataset('arqmath:2022/task1')``: PyTerrier loads this class by its entry point."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyterrier as pt

from .definitions import DATASETS, register


class ARQMathProvider(pt.datasets.DatasetProvider):  # type: ignore[misc]
    """Provides ``arqmath:2022/task1`` as another name of ``irds:arqmath/2022/task1``.

    Example::

        pt.get_dataset("arqmath:sample/task1").get_topics("text")
    """

    def get_dataset(self, name: str) -> Any:
        """Return a dataset.

        Args:
            name: its id without the prefix, such as ``2022/task1``, or ``posts`` for ``irds:arqmath`` itself.

        Raises:
            KeyError: there is no such dataset; the message lists all names.
        """
        register()
        dataset = "arqmath" if name == "posts" else f"arqmath/{name}"
        if dataset not in DATASETS:
            known = ", ".join(dataset.partition("/")[2] or "posts" for dataset in DATASETS)
            raise KeyError(f"arqmath:{name} is unknown; there are {known}")
        return pt.get_dataset(f"irds:{dataset}")

    def list_dataset_names(self) -> Iterable[str]:
        """Return no names: ``pt.list_datasets()`` has them already as ``irds:arqmath/…``."""
        register()
        return ()
