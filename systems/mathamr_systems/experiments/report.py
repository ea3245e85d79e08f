"""The outcome of a run: tables, the cost of each stage, versions and machine; as JSON, CSV and Markdown."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from pyterrier_mathamr.arqmath import markdown_table
from pyterrier_mathamr.extending import ConfigError

from .stages import StageRecord, slug, write_atomically

PACKAGES = (
    *("pyterrier-mathamr", "pyterrier", "torch", "torch-geometric", "numpy", "pandas", "ir-measures"),
    *("pytrec-eval-terrier", "penman", "lxml", "math-core", "faiss-cpu", "PyStemmer"),
)


def environment() -> dict[str, str | int]:
    described: dict[str, str | int] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count() or 0,
        "commit": _commit(),
    }
    for package in PACKAGES:
        try:
            described[package] = version(package)
        except PackageNotFoundError:
            continue
    return described


def _commit() -> str:
    """Return the commit of the checkout that the package runs from, or an empty string."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@dataclass(frozen=True, eq=False)
class Report:
    """The results of a run.

    Attributes:
        title: one line.
        settings: the settings of the run.
        stages: the cost of each stage, in order.
        tables: caption to table.
        about: caption to a description of the table, shown above it.
        remarks: caption to warnings about the table, shown below it.
        notes: sentences to be read with the tables.
        published: caption to table, of published tables; they are always kept separate from measured ones.
        values: file name to table, of further values, written to CSV files of these names.
        environment: versions and machine.
    """

    title: str
    settings: Mapping[str, Any]
    stages: Sequence[StageRecord]
    tables: Mapping[str, pd.DataFrame]
    notes: Sequence[str] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    remarks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    published: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    values: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    environment: Mapping[str, str | int] = field(default_factory=environment)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON; NaN becomes ``None``."""
        return {
            "title": self.title,
            "settings": dict(self.settings),
            "stages": [asdict(stage) for stage in self.stages],
            "tables": _records(self.tables),
            "about": dict(self.about),
            "remarks": {caption: list(remarks) for caption, remarks in self.remarks.items()},
            "notes": list(self.notes),
            "published": _records(self.published),
            "environment": dict(self.environment),
        }

    def to_markdown(self) -> str:
        """Return the report as a page to read."""
        costs = pd.DataFrame(
            {
                "stage": [stage.name for stage in self.stages],
                "seconds": [f"{stage.seconds:.1f}" for stage in self.stages],
                "peak MiB so far": [f"{stage.peak_mib:.0f}" for stage in self.stages],
                "when": ["before" if stage.resumed else "this run" for stage in self.stages],
            }
        )
        parts = [f"# {self.title}"]
        for caption, table in self.tables.items():
            about = [self.about[caption]] if caption in self.about else []
            parts += [f"## {caption}", *about, markdown_table(table), *self.remarks.get(caption, ())]
        parts += ["## Notes\n\n" + "\n".join(f"* {note}" for note in self.notes)] if self.notes else []
        parts += ["## Published by others, not measured here"] if self.published else []
        parts += [f"{caption}\n\n{markdown_table(table)}" for caption, table in self.published.items()]
        parts += [f"## Cost\n\n{markdown_table(costs)}"] if self.stages else []
        parts += [f"## Settings\n\n{_listed(self.settings)}", f"## Made with\n\n{_listed(self.environment)}"]
        return "\n\n".join(parts) + "\n"

    def write(self, folder: Path) -> Report:
        """Write ``report.json``, ``report.md``, and a CSV file for each measured table; return the report.

        Args:
            folder: created if missing; earlier files of these names are replaced.
        """
        folder.mkdir(parents=True, exist_ok=True)
        tables = {slug(caption): table for caption, table in self.tables.items()}
        for name, table in {**tables, **self.values}.items():
            write_atomically(folder / f"{name}.csv", table.to_csv(index=False))
        write_atomically(folder / "report.json", json.dumps(self.to_dict(), indent=1) + "\n")
        write_atomically(folder / "report.md", self.to_markdown())
        return self


def _records(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    return {caption: json.loads(table.to_json(orient="records")) for caption, table in tables.items()}


def _listed(values: Mapping[str, Any]) -> str:
    return "\n".join(f"* {name}: {value}" for name, value in values.items() if value != "")


_FOLDER = "data/published"
_NUMBER = re.compile(r"(-?[\d,]*\.?\d+(?:e-?\d+)?)(?: ± [\d.]+)?\*?")


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table of the paper."""

    number: str  # such as 4.6
    caption: str  # as printed, without its notes
    view: str  # best seed, mean, efficiency, single run or settings
    baseline: str | None  # the row that the others were tested against, or None
    of: str  # the subject of a row
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]  # the row's name, and its cells as printed

    def figure(self, row: str, column: str) -> float | None:
        """Read one cell, without its spread and star; ``None`` if it is not a number."""
        match = _NUMBER.fullmatch(dict(self.rows)[row][self.columns.index(column)])
        return float(match[1].replace(",", "")) if match else None

    def frame(self) -> pd.DataFrame:
        table: pd.DataFrame = pd.DataFrame([cells for _, cells in self.rows], columns=list(self.columns), dtype=str)
        table.insert(0, self.of, [name for name, _ in self.rows])
        return table


@dataclass(frozen=True, slots=True)
class Publication:
    """Where tables were published."""

    source: str  # author, title, and where
    references: Mapping[str, str]  # the publications behind the numbers in brackets
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
def published(paper: str = "yoon") -> Publication:
    """Read the tables of a paper as printed.

    Args:
        paper: its first author: ``yoon`` has Tables 4.5 to 4.22 of MathAMR+, settings and results; ``zhong`` Approach
            Zero, ColBERT, their fusion and extracted answers (Tables 2 to 7), ``mansouri`` the two-step search (Tables
            5.2, 5.3, 5.5, 5.6), ``wang`` MaRF (Tables 1 to 6), ``amador`` In+Out (Tables 2 and 5).

    Raises:
        ConfigError: there is no such paper.
    """
    found = {"yoon": _content("mathamr-plus.json"), **_content("answer-systems.json")["publications"]}
    if paper not in found:
        raise ConfigError("paper", paper, f"one of {', '.join(found)}")
    source, tables = found[paper]["source"], dict[str, PublishedTable]()
    for table in found[paper]["tables"]:
        number, columns = table["table"], tuple(table["columns"])
        rows = tuple((name, tuple(cells)) for name, cells in table["rows"].items())
        fields = {name: table[name] for name in ("caption", "view", "baseline", "of")}
        tables[number] = PublishedTable(number, columns=columns, rows=rows, **fields)
    printed = f"{source['author']}: {source['title']}. {source['published']}."
    return Publication(printed, found[paper]["references"], tables)


def _content(name: str) -> Any:
    return json.loads(files("mathamr_systems").joinpath(_FOLDER, name).read_text(encoding="utf-8"))
