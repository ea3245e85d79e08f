"""The systems of Task 1 by their names, as the protocol measures them: each with what there is to choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.experiments.answer_studies import AnswerParts, AnswerRow
from pyterrier_mathamr.experiments.answer_studies.common_rows import MATHAMR_ROW
from pyterrier_mathamr.experiments.search import BM25, DOC_VN, FUSION, SCORER, SINGLE, TASK1, Search, Strategy
from pyterrier_mathamr.experiments.tasks.answer_systems import ALL, ANSWER_SYSTEMS
from pyterrier_mathamr.experiments.tasks.preparing import Prepared

from .definition import Choice, Fitted, Learned, ProtocolSystem
from .fused import DEPTH, Fused
from .material import Material

K1 = (0.6, 0.9, 1.2, 1.6, 2.0, 2.5, 3.0)
B = (0.0, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
DEPTHS = (50, 100, 200, 500, 1000)
"""Candidates of a first stage."""
PLUS = " + "
SHIPPED = "BM25 as shipped"
"""With the defaults of the package, which were chosen on validation questions that look for their own answers."""

ROWS: Mapping[str, AnswerRow] = {**ANSWER_SYSTEMS, MATHAMR_ROW.name: MATHAMR_ROW}
LEARNED: dict[str, Learned] = {}
"""Systems that are fitted on the training topics, beside fusions, by their names."""


def chosen_systems(names: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Choose systems, their parts included, each after its parts.

    Args:
        names: as in the tables, in any case; names joined by ``+`` are a fusion; ``all``; ``None`` for the systems of
            MathAMR+. BM25, the baseline, is always there, chosen and with the package's defaults.

    Returns:
        Name to the names of its parts, none for most systems.

    Raises:
        ConfigError: a name is that of no system, or a system cannot be a part.
    """
    chosen: dict[str, tuple[str, ...]] = {BM25: (), SHIPPED: ()}
    every = [*TASK1, *ROWS, *LEARNED]
    for asked in names or TASK1:
        for name in every if asked.strip().lower() == ALL else [asked]:
            found = _known(name)
            parts = LEARNED[found[0]].parts if found[0] in LEARNED else found if len(found) > 1 else ()
            for part in parts:
                if part in ROWS and ROWS[part].fitted:
                    what = f"a fusion without {part}, which is fitted on the judgments of the other years"
                    raise ConfigError("systems", name, what)
                chosen.setdefault(part, ())
            chosen.setdefault(PLUS.join(found), parts)
    return chosen


def _known(name: str) -> tuple[str, ...]:
    """Find one system by its name, or several joined by ``+``, which some names have, too.

    Raises:
        ConfigError: there is none.
    """
    known = {each.lower(): each for each in (SHIPPED, *TASK1, *ROWS, *LEARNED) if each != FUSION}
    pieces, found = [piece.strip().lower() for piece in name.split("+")], list[str]()
    while pieces:
        length = next((end for end in range(len(pieces), 0, -1) if PLUS.join(pieces[:end]) in known), 0)
        if not length:
            raise ConfigError(
                "systems", name, f"{ALL}, or some of: {'; '.join(known.values())}; or several joined by +"
            )
        found.append(known[PLUS.join(pieces[:length])])
        del pieces[:length]
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Makes systems of the artifacts of a work folder.

    Attributes:
        made: the model and the artifacts.
        material: the questions.
        seeds: of other systems that are trained; one of them is chosen.
    """

    made: Prepared
    material: Material
    seeds: tuple[int, ...]
    _encoded: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False)
    _rankings: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict, repr=False)

    def systems(self, chosen: Mapping[str, tuple[str, ...]]) -> list[ProtocolSystem]:
        """Make systems.

        Args:
            chosen: name to the names of its parts; see :func:`chosen_systems`.
        """
        made: dict[str, ProtocolSystem] = {}
        for name, parts in chosen.items():
            if name in LEARNED:
                made[name] = LEARNED[name]
            elif parts:
                made[name] = Fused(parts, known=all(made[part].known for part in parts))
            else:
                made[name] = self._system(name)
        return list(made.values())

    def _system(self, name: str) -> ProtocolSystem:
        if name == BM25:
            return Choice(name, self._bm25())
        if name == SHIPPED:
            return Choice(name, (self.material.fitted(partial(self._found, BM25)),))
        if name in TASK1:
            return Choice(name, self._strategy(TASK1[name]))
        row = ROWS[name]
        seeds = self.seeds if row.trained and not row.fitted else self.seeds[:1]
        return Choice(name, tuple(self._row(row, seed) for seed in seeds), known=row.known)

    def _bm25(self) -> tuple[Fitted, ...]:
        """Offer all settings of BM25; its tokens are those of the index."""

        def find(k1: float, b: float, of: str) -> pd.DataFrame:
            retriever = self.made.shared.bm25.retriever(DEPTH, k1=k1, b=b)
            found: pd.DataFrame = retriever(self._parts.at(of=of).found.topics)[["qid", "docno", "score", "rank"]]
            return found

        return tuple(self.material.fitted(partial(find, k1, b), {"k1": k1, "b": b}, keep=False) for k1 in K1 for b in B)

    def _strategy(self, strategy: Strategy) -> tuple[Fitted, ...]:
        """Offer a way to search with the model; where it rescores candidates, with several numbers of them."""
        if strategy.name not in (DOC_VN, SCORER):
            return (self.material.fitted(partial(self._found, strategy.name)),)

        def first(depth: int, of: str) -> pd.DataFrame:
            """Keep what the first stage has among its first; the exact scores do not depend on the others."""
            stage = self._found(BM25 if strategy.name == SCORER else SINGLE, of)
            rows = pd.MultiIndex.from_frame(stage.loc[stage["rank"] < depth, ["qid", "docno"]])
            scored = self._found(strategy.name, of)
            kept = scored[pd.MultiIndex.from_frame(scored[["qid", "docno"]]).isin(rows)]
            return kept.assign(rank=kept.groupby("qid").cumcount())

        return tuple(self.material.fitted(partial(first, depth), {"candidates": depth}) for depth in DEPTHS)

    def _found(self, name: str, of: str) -> pd.DataFrame:
        """Search in one way with all topics, which are encoded once."""
        if of not in self._encoded:
            self._encoded[of] = self._search.encode(self._parts.at(of=of).found)
        if (name, of) not in self._rankings:
            found = self._systems[name](self._encoded[of])
            self._rankings[name, of] = found[["qid", "docno", "score", "rank"]]
        return self._rankings[name, of]

    def _row(self, row: AnswerRow, seed: int) -> Fitted:
        """Offer a system of the answer studies, trained with a seed."""
        chosen = {"seed": seed} if row.trained and len(self.seeds) > 1 and not row.fitted else {}
        return self.material.fitted(lambda of: self._parts.at(of=of, seed=seed).ranking(row), chosen)

    @cached_property
    def _parts(self) -> AnswerParts:
        preset = "full" if self.made.choices.get("preset") == "full" else "mini"
        years = self.material.years
        return AnswerParts(self.made.shared, years[0], years, self.seeds[0], preset)

    @cached_property
    def _search(self) -> Search:
        made = self.made
        strategies = {name: strategy for name, strategy in TASK1.items() if strategy.way != "fusion"}
        return Search(made.model, made.own.answers(made.model), made.shared.bm25, strategies)

    @cached_property
    def _systems(self) -> dict[str, pt.Transformer]:
        return self._search.systems()
