"""An index of expressions on disk, and what a reader of it has opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Generic

import numpy as np

from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.sparse.index import BuiltOnce
from pyterrier_mathamr.sparse.ranking import Remembered
from pyterrier_mathamr.sparse.texts import read_texts
from pyterrier_mathamr.store import Kind, Rows, Snapshot

from .content import KEY_BYTES, Expressions, P, digests, expression_key, keys_of

_AT_ONCE = 4096


class ExpressionIndex(BuiltOnce):
    """An index of the formulas of posts, stored once for each expression."""

    KEEPS_FIRST = True
    HOLDS = "formula"

    def more_counts(self) -> list[str]:
        """List the number of distinct expressions, those of each part."""
        return [counted(sum(len(part["keys"]) for part in self.snapshot().parts), "expression")]

    def get_corpus_iter(self) -> Iterator[dict[str, str]]:
        """Yield ``docno`` (the formula's id), ``post_id`` and ``visual_id`` of each formula."""
        for part in self.snapshot().parts:
            rows = np.flatnonzero(part.alive)
            for some in np.split(rows, range(_AT_ONCE, len(rows), _AT_ONCE)):
                texts = part.ids.texts(some), read_texts(part, "post_ids", some), read_texts(part, "visual_ids", some)
                for docno, post_id, visual_id in zip(*texts, strict=True):
                    yield {"docno": docno, "post_id": post_id, "visual_id": visual_id}


class ExpressionSnapshot(Snapshot, Generic[P]):
    """An index of expressions as it was when it was opened; formulas are numbered as in :class:`Expressions`."""

    KIND: ClassVar[Kind]
    payload: type[P]

    def __init__(self, path: Path) -> None:
        super().__init__(path, self.KIND)
        self.formula_ids = Remembered(self, lambda snapshot, numbers: snapshot.ids(snapshot.live[numbers]))
        self.post_ids = Remembered(self, lambda snapshot, numbers: snapshot.texts("post_ids", numbers))
        self.visual_ids = Remembered(self, lambda snapshot, numbers: snapshot.texts("visual_ids", numbers))

    @cached_property
    def expressions(self) -> Expressions[P]:
        """The expressions and their formulas."""
        return Expressions.of_parts(self.parts, self.payload)

    def holds(self, pair: FormulaPair) -> bool:
        """Whether a formula with these trees is among them, or was before it was deleted."""
        key = np.frombuffer(expression_key(digests(pair)), dtype=f"S{KEY_BYTES}")[0]
        places = ((keys, int(np.searchsorted(keys, key))) for keys in map(keys_of, self.parts))
        return any(place < len(keys) and keys[place] == key for keys, place in places)

    def expressions_of(self, formula_ids: Sequence[str]) -> Rows:
        """Look up the expression of each formula: int64 ``[ids]``."""
        numbers = np.searchsorted(self.live, self.find(formula_ids))
        runs = np.searchsorted(self.expressions.owned, numbers, side="right") - 1
        found: Rows = self.expressions.numbers[runs]
        return found

    def texts(self, name: str, numbers: Rows) -> list[str]:
        """Return one text of each of some formulas."""
        found = np.empty(len(numbers), dtype=object)
        for part, places, rows in self.by_part(self.live[numbers]):
            found[places] = read_texts(part, name, rows)
        return list(found)
