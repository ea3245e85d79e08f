"""The state of all parts as they were opened: documents are numbered from 0 through all of them.

Each part finds its best ``k``; the best ``k`` of these are the best of all. The score of a document is computed from
its own rows only, so it is the score that one index of all documents gives. Approximate search finds other documents in
parts than in one index, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pyterrier_mathamr._common.frames import best_places
from pyterrier_mathamr.index.backend import Backend, ExactScores, Field, Hits, How, Numbers, QueryBatch, Rows, evenly
from pyterrier_mathamr.index.errors import EmbeddingError, check_model
from pyterrier_mathamr.index.parts import Entry, IndexMeta, read_entries
from pyterrier_mathamr.store import DuplicateIdError, ranges

from .places import PartState, Places


class ShardedSnapshot(Backend):
    """A :class:`~..backend.Backend` whose parts are elsewhere."""

    def __init__(self, path: Path, paths: Sequence[Path], places: Places) -> None:
        self.path, self._places = path, places
        states = places.ask("state", dict.fromkeys(range(len(paths)), ()))
        self.states: list[PartState] = [states[number] for number in range(len(paths))]
        self.bases: Numbers = np.cumsum([0, *(state.numbers for state in self.states)], dtype=np.int64)
        self.meta = joint_meta(paths, [state.meta for state in self.states])
        self._docnos: dict[int, str] = {}  # of the documents that were found

    @property
    def identity(self) -> str:
        """The identities of all parts."""
        return " ".join(state.identity for state in self.states)

    def __len__(self) -> int:
        return sum(state.documents for state in self.states)

    def select(self, queries: QueryBatch, k: int, field: Field, how: How) -> list[Hits]:
        """Find the best ``k`` documents of each query: the best of each part, merged."""
        among = [self._by_part(of) for of in queries.among or ()]
        of_part = [
            replace(queries, among=tuple(of[part][1] for of in among)) if among else queries
            for part in range(len(self.states))
        ]
        found = self._places.ask(
            "best", {part: (of.identity, of_part[part], k, field, how) for part, of in enumerate(self.states)}
        )
        of_queries = zip(*found.values(), strict=True)
        return [self._merged(dict(zip(found, of_query, strict=True)), k) for of_query in of_queries]

    def _merged(self, found: dict[int, tuple[Hits, list[str]]], k: int) -> Hits:
        """Merge the best of each part into the best of all, ties by docno."""
        numbers = np.concatenate([hits.numbers + self.bases[part] for part, (hits, _) in found.items()])
        scores = np.concatenate([hits.scores for hits, _ in found.values()])
        docnos = [docno for _, of_part in found.values() for docno in of_part]
        places = best_places(scores, k, lambda places: [docnos[place] for place in places.tolist()])
        best = dict(zip(numbers[places].tolist(), [docnos[place] for place in places.tolist()], strict=True))
        if len(set(best.values())) < len(best):
            names = sorted(best.values())
            raise DuplicateIdError(self.path, [one for one, other in pairwise(names) if one == other])
        self._docnos |= best
        return Hits(numbers[places], scores[places])

    def score(self, queries: QueryBatch, numbers: Sequence[Numbers], field: Field) -> list[ExactScores]:
        """Score some documents of each query, in any order: float64 for each."""
        found = [np.empty(len(of)) for of in numbers]
        split = [self._by_part(of) for of in numbers]
        arguments = {}
        for part, state in enumerate(self.states):
            own = [of[part][1] for of in split]
            if any(map(len, own)):
                arguments[part] = (state.identity, queries, own, field)
        for part, of_queries in self._places.ask("score", arguments).items():
            for scores, of, own in zip(found, split, of_queries, strict=True):
                scores[of[part][0]] = own
        return found

    def sample(self, count: int) -> Numbers:
        """Return so many documents, evenly spread in the order of indexing, part after part."""
        orders = self._ask_all("in_order")
        return evenly(
            np.concatenate([orders[part] + base for part, base in enumerate(self.bases[:-1].tolist())]), count
        )

    def look_up(self, docnos: Sequence[str]) -> Numbers:
        """Look up the number of each document: -1 for one that is in no part."""
        numbers = np.full(len(docnos), -1, dtype=np.int64)
        for part, local in self._ask_all("look_up", list(docnos)).items():
            there = local >= 0
            if (twice := np.flatnonzero(there & (numbers >= 0))).size:
                raise DuplicateIdError(self.path, [docnos[place] for place in twice.tolist()])
            numbers[there] = local[there] + self.bases[part]
        return numbers

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        """Return one text (``docno``, ``formula_ids`` or ``kept``) of each document."""
        wanted = numbers.tolist()
        if name == "docno" and all(number in self._docnos for number in wanted):
            return [self._docnos[number] for number in wanted]
        found = np.empty(len(numbers), dtype=object)
        for places, texts in self._of_parts("texts", numbers, lambda local: (name, local)):
            found[places] = texts
        return list(found)

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        """Return the vectors of some documents end to end, and their offsets."""
        parts = list(self._of_parts("rows", numbers, lambda local: (local, field)))
        lengths = np.zeros(len(numbers), dtype=np.int64)
        for places, (_, offsets) in parts:
            lengths[places] = np.diff(offsets)
        ends = np.cumsum([0, *lengths.tolist()], dtype=np.int64)
        gathered = np.empty((int(ends[-1]), self.meta.dimensions), dtype=np.float32)
        for places, (rows, _) in parts:
            gathered[ranges(ends[places], lengths[places])] = rows
        return gathered, ends

    def entries(self) -> Iterator[Entry]:
        """Yield every document in the order of indexing, part after part."""
        orders = self._ask_all("in_order")
        for part, base in enumerate(self.bases[:-1].tolist()):
            yield from read_entries(self, "documents", orders[part] + base)

    def _ask_all(self, method: str, *arguments: Any) -> dict[int, Any]:
        """Ask every part the same."""
        return self._places.ask(method, {part: (of.identity, *arguments) for part, of in enumerate(self.states)})

    def _by_part(self, numbers: Numbers) -> list[tuple[Numbers, Numbers]]:
        """Return for each part the places in ``numbers`` of its documents, and their numbers in it, ascending."""
        order = np.argsort(numbers, kind="stable")
        cuts = np.searchsorted(numbers[order], self.bases).tolist()
        places = [order[first:last] for first, last in pairwise(cuts)]
        return [(of, numbers[of] - base) for of, base in zip(places, self.bases[:-1], strict=True)]

    def _of_parts(
        self, method: str, numbers: Numbers, arguments: Callable[[Numbers], tuple[Any, ...]]
    ) -> Iterator[tuple[Numbers, Any]]:
        """Ask the parts of some documents about these; yield the places in ``numbers`` with each answer."""
        split = self._by_part(numbers)
        wanted = {
            part: (self.states[part].identity, *arguments(local)) for part, (_, local) in enumerate(split) if len(local)
        }
        for part, answer in self._places.ask(method, wanted).items():
            yield split[part][0], answer


def joint_meta(paths: Sequence[Path], metas: Sequence[IndexMeta]) -> IndexMeta:
    """Combine the descriptions of some parts; an empty part has none."""
    filled = [(path, meta) for path, meta in zip(paths, metas, strict=True) if meta.dimensions]
    for path, meta in filled[1:]:
        if meta.dimensions != filled[0][1].dimensions:
            there = f"but {filled[0][0]} has {filled[0][1].dimensions}"
            raise EmbeddingError(str(path), f"its rows have {meta.dimensions} dimensions, {there}")
    known = [(path, meta.model) for path, meta in zip(paths, metas, strict=True) if meta.model]
    for path, model in known[1:]:
        check_model(path, model, known[0][1])
    width, dtype = (filled[0][1].dimensions, filled[0][1].dtype) if filled else (0, "float32")
    keep = dict.fromkeys(name for meta in metas for name in meta.keep)
    return IndexMeta(width, known[0][1] if known else None, dtype, tuple(keep))
