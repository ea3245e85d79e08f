"""Published figures as printed, with their source; reports keep them apart from measured ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

_FOLDER = "data/published"
_NUMBER = re.compile(r"(-?[\d,]*\.?\d+(?:e-?\d+)?)(?: ± ([\d.]+))?(\*?)")


@dataclass(frozen=True, slots=True)
class Figure:
    """One printed figure.

    Attributes:
        value: the number.
        spread: the standard deviation printed with it, or ``None``.
        starred: marked as significantly different from the baseline.
    """

    value: float
    spread: float | None = None
    starred: bool = False

    @classmethod
    def parse(cls, text: str) -> Figure | None:
        """Read ``0.494 ± 0.002`` or ``0.497*``; return ``None`` for anything else."""
        match = _NUMBER.fullmatch(text)
        if match is None:
            return None
        value, spread, star = match.groups()
        return cls(float(value.replace(",", "")), float(spread) if spread else None, bool(star))


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table of the paper.

    Attributes:
        number: such as ``4.6``.
        caption: as printed, without its notes.
        view: ``best seed``, ``mean``, ``efficiency``, ``single run`` or ``settings``.
        baseline: the row that the others were tested against, or ``None``.
        of: what a row is.
        columns: its columns.
        rows: the row's name, and its cells as printed.
    """

    number: str
    caption: str
    view: str
    baseline: str | None
    of: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    def figure(self, row: str, column: str) -> Figure | None:
        """Read one cell; return ``None`` if it is not a number."""
        return Figure.parse(dict(self.rows)[row][self.columns.index(column)])

    def frame(self) -> pd.DataFrame:
        """Return the cells as printed."""
        table: pd.DataFrame = pd.DataFrame([cells for _, cells in self.rows], columns=list(self.columns), dtype=str)
        table.insert(0, self.of, [name for name, _ in self.rows])
        return table


@dataclass(frozen=True, slots=True)
class Publication:
    """Where tables were published.

    Attributes:
        source: author, title, and where.
        references: the publications behind the numbers in brackets.
        tables: by number.
    """

    source: str
    references: Mapping[str, str]
    tables: Mapping[str, PublishedTable]

    def cited(self, table: PublishedTable) -> tuple[str, ...]:
        """List the references that the rows of a table name."""
        numbers = dict.fromkeys(re.findall(r"\[(\d+)\]", " ".join(name for name, _ in table.rows)))
        return tuple(f"[{number}] {self.references[number]}" for number in numbers)

    def captioned(self, numbers: Iterable[str]) -> dict[str, pd.DataFrame]:
        """Return tables as printed by their captions, which name the source."""
        chosen = (self.tables[number] for number in numbers)
        return {f"Table {table.number} of {self.source} {table.caption}": table.frame() for table in chosen}


@cache
def published() -> Publication:
    """Read Tables 4.5 to 4.22 of the MathAMR+ paper, settings and results."""
    return _publication(_content("mathamr-plus.json"))


@cache
def published_answers() -> Mapping[str, Publication]:
    """Read the results of other systems of Tasks 1 to 3, by the first author of the paper.

    ``zhong`` has Approach Zero, ColBERT, their fusion and extracted answers (Tables 2 to 7), ``mansouri`` the two-step
    search (Tables 5.2, 5.3, 5.5, 5.6), ``wang`` MaRF (Tables 1 to 6).
    """
    return {name: _publication(found) for name, found in _content("answer-systems.json")["publications"].items()}


def _content(name: str) -> Any:
    return json.loads(files("pyterrier_mathamr").joinpath(_FOLDER, name).read_text(encoding="utf-8"))


def _publication(content: Mapping[str, Any]) -> Publication:
    """Read a publication from its part of a file."""
    source = content["source"]
    tables = [
        PublishedTable(
            number=table["table"],
            caption=table["caption"],
            view=table["view"],
            baseline=table["baseline"],
            of=table["of"],
            columns=tuple(table["columns"]),
            rows=tuple((name, tuple(cells)) for name, cells in table["rows"].items()),
        )
        for table in content["tables"]
    ]
    return Publication(
        source=f"{source['author']}: {source['title']}. {source['published']}.",
        references=content["references"],
        tables={table.number: table for table in tables},
    )
