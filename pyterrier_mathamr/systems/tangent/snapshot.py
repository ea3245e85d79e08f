"""A Tangent index, opened."""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path

import numpy as np

from pyterrier_mathamr.store import Rows, Snapshot
from pyterrier_mathamr.systems.sparse.index import read_options
from pyterrier_mathamr.systems.sparse.ranking import Remembered
from pyterrier_mathamr.systems.sparse.texts import read_texts

from .content import TANGENT, TangentContent
from .pairs import PairOptions


class TangentSnapshot(Snapshot):
    """A Tangent index as it was when it was opened; formulas are numbered as in :class:`TangentContent`.

    Args:
        path: the index's folder.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, TANGENT)
        self.formula_ids = Remembered(lambda numbers: self.ids(self.live[numbers]))
        self.post_ids = Remembered(partial(self._texts, "post_ids"))
        self.visual_ids = Remembered(partial(self._texts, "visual_ids"))

    @cached_property
    def pairs(self) -> PairOptions:
        """How the formulas were taken apart."""
        return read_options(self, "pairs", PairOptions.from_dict)

    @cached_property
    def content(self) -> TangentContent:
        """The pairs and the formulas."""
        return TangentContent.of_parts(self.parts)

    def _texts(self, name: str, numbers: Rows) -> list[str]:
        found = np.empty(len(numbers), dtype=object)
        for part, places, rows in self.by_part(self.live[numbers]):
            found[places] = read_texts(part, name, rows)
        return list(found)
