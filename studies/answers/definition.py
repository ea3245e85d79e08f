"""A study of answer retrieval as data: the rows of its table, each a transformer that is made of the collection."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.experiments.measuring import Missing
from pyterrier_mathamr.experiments.search import BM25
from studies.trained.results import ONCE, Results

if TYPE_CHECKING:
    from .parts import AnswerParts

SEEDS = (42, 43, 44)
"""Of what is trained."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A system that ranks answers: one row of a table.

    Attributes:
        name: in every table; a work folder keeps the row's rankings by it, and studies share them.
        make: the system, from topics (``qid``, ``query``, ``title``, ``body``) to a ranking of at most 1000 answers.
            It is called for each set of topics and each seed. Where an extra is missing, it or its search raises
            ``MissingExtraError``, and the row says so.
        against: names of rows of the same study that this one is tested against, beside BM25.
        trained: it depends on the seed, the preset and the options that are set by hand.
        fitted: it is fitted on the judgments of other years than the one whose topics it ranks for.
        known: it can search for known items. A two-step search can't, nor one whose documents have their question in
            front: a question would find itself.
        linked: it can search for the answers of linked questions, since it ranks all answers, and not judged ones
            alone.
        settings: what else its rankings depend on, as plain values: with others, they are made again.
    """

    name: str
    make: Callable[[AnswerParts], pt.Transformer]
    against: tuple[str, ...] = ()
    trained: bool = False
    fitted: bool = False
    known: bool = True
    linked: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def baselines(self) -> tuple[str, ...]:
        """The rows that it is tested against, BM25 first."""
        return tuple(name for name in dict.fromkeys((BM25, *self.against)) if name != self.name)


@dataclass(frozen=True, slots=True)
class AnswerStudy:
    """Systems to compare on Task 1.

    Attributes:
        name: by which it is run, such as ``answers/colbert``.
        title: one line.
        rows: its own; the common rows come first. A row with the name of a common one takes its place.
        seeds: of the trained rows.
        notes: sentences to be read with its tables.
        more: further tables by their captions, such as results by kind of question, made from the outcome.
        about: caption to what such a table is of.
    """

    name: str
    title: str
    rows: tuple[AnswerRow, ...]
    seeds: tuple[int, ...] = SEEDS
    notes: tuple[str, ...] = ()
    more: Callable[[Outcome], Mapping[str, pd.DataFrame]] | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    def all_rows(self, common: tuple[AnswerRow, ...]) -> tuple[AnswerRow, ...]:
        """Return the rows of the table: the common ones, then its own.

        Args:
            common: the common rows.

        Raises:
            ConfigError: two rows of its own have one name, or a row is tested against none of the table.
        """
        rows = {row.name: row for row in common}
        if len({row.name for row in self.rows}) < len(self.rows):
            raise ConfigError("rows", [row.name for row in self.rows], f"each row of {self.name} once")
        rows |= {row.name: row for row in self.rows}
        for row in rows.values():
            for name in row.baselines:
                if name not in rows:
                    raise ConfigError("against", name, f"a row of {self.name}: {'; '.join(rows)}")
        return tuple(rows.values())


def key_of(name: str, settings: Mapping[str, Any]) -> str:
    """Name a folder by what its content depends on, such as ``bm25-1f0c23ab``."""
    slug = "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
    text = json.dumps(settings, sort_keys=True)
    return f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the rows of a study found.

    Attributes:
        study: which.
        rows: all rows in order, also those that could not be measured.
        parts: of the first year; ``parts.at(of=…, seed=…)`` has the others.
        seeds: of the trained rows.
        results: values by topic, of each row and of random orders.
        missing: rows that an extra is missing for.
    """

    study: AnswerStudy
    rows: tuple[AnswerRow, ...]
    parts: AnswerParts
    seeds: tuple[int, ...]
    results: Results
    missing: Missing

    @property
    def years(self) -> tuple[str, ...]:
        """The years whose topics are pooled."""
        return self.parts.years

    def measured(self, *, known: bool = False) -> list[AnswerRow]:
        """List the rows that were measured on the topics of all years, or on known items."""
        return [row for row in self.rows if row.name not in self.missing and (row.known or not known)]

    def ranking(self, name: str, of: str, seed: int = ONCE) -> pd.DataFrame:
        """Return what a row found: ``qid``, ``docno``, ``score``, ``rank``."""
        return self.parts.at(of=of, seed=seed).ranking(next(row for row in self.rows if row.name == name))
