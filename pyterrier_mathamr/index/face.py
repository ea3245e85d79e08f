"""What every index of vectors says of itself, wherever its vectors lie: in a folder or in Qdrant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import pyterrier as pt

from pyterrier_mathamr._common.transformers import HELP_URL

Index = TypeVar("Index", bound="IndexFace")


class IndexFace(pt.Indexer):  # type: ignore[misc]
    """An index with :meth:`indexer` and :meth:`snapshot`, which subclasses give; making the object reads nothing."""

    transform_iter = pt.Transformer.transform_iter  # stated, or pt.Indexer plants a bound method that cannot be pickled

    def __len__(self) -> int:
        return len(self.snapshot())

    def __bool__(self) -> bool:
        return True  # an index is there even when it is empty or not yet built: it has no length then

    def indexer(self) -> Any:
        """The transformer that fills this index; subclasses say with which options."""
        raise NotImplementedError

    def snapshot(self) -> Any:
        """The index as it is now; subclasses say what is wrong where there is none."""
        raise NotImplementedError

    def index(self: Index, iter: Iterable[Mapping[str, Any]], **kwargs: object) -> Index:
        """The same as ``indexer().index(iter)``."""
        self.indexer().index(iter)
        return self

    def index_inputs(self) -> list[list[str]]:
        """The fields that each record of :meth:`index` must have."""
        fields: list[list[str]] = self.indexer().index_inputs()
        return fields

    @property
    def model(self) -> str | None:
        """The identity of the model that made the vectors, where it was given."""
        found: str | None = self.snapshot().meta.model
        return found

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """What ``pt.schematic`` draws, without asking the network."""
        return {"label": type(self).__name__, "help_url": HELP_URL}
