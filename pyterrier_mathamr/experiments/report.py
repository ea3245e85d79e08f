"""The outcome of a run: tables, what each stage cost, and with what it was made; as JSON, CSV and Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from .environment import environment
from .markdown import markdown_table
from .stages import StageRecord, write_whole


@dataclass(frozen=True, eq=False)
class Report:
    """What a run found.

    Attributes:
        title: one line.
        settings: what the run was asked for.
        stages: what each stage cost, in order.
        tables: caption to table.
        notes: sentences to be read with the tables.
        published: the same of tables that others have printed; they are kept apart everywhere.
        environment: versions and machine.
    """

    title: str
    settings: Mapping[str, Any]
    stages: Sequence[StageRecord]
    tables: Mapping[str, pd.DataFrame]
    notes: Sequence[str] = ()
    published: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    environment: Mapping[str, str | int] = field(default_factory=environment)

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain values for JSON; what is not a number is ``None``."""
        return {
            "title": self.title,
            "settings": dict(self.settings),
            "stages": [stage.to_dict() for stage in self.stages],
            "tables": _records(self.tables),
            "notes": list(self.notes),
            "published": _records(self.published),
            "environment": dict(self.environment),
        }

    def to_markdown(self) -> str:
        """Give the report as a page to be read."""
        costs = pd.DataFrame(
            {
                "stage": [stage.name for stage in self.stages],
                "seconds": [f"{stage.seconds:.1f}" for stage in self.stages],
                "peak MiB so far": [f"{stage.peak_mib:.0f}" for stage in self.stages],
                "when": ["before" if stage.resumed else "this run" for stage in self.stages],
            }
        )
        parts = [f"# {self.title}"]
        parts += [f"## {caption}\n\n{markdown_table(table)}" for caption, table in self.tables.items()]
        parts += ["## Notes\n\n" + "\n".join(f"* {note}" for note in self.notes)] if self.notes else []
        parts += ["## Published by others, not measured here"] if self.published else []
        parts += [f"{caption}\n\n{markdown_table(table)}" for caption, table in self.published.items()]
        parts += [f"## Cost\n\n{markdown_table(costs)}"] if self.stages else []
        parts += [f"## Settings\n\n{_listed(self.settings)}", f"## Made with\n\n{_listed(self.environment)}"]
        return "\n\n".join(parts) + "\n"

    def write(self, folder: Path) -> None:
        """Write ``report.json``, ``report.md`` and one CSV file for each table that was measured.

        Args:
            folder: an existing folder; earlier files of these names are replaced.
        """
        for caption, table in self.tables.items():
            name = "-".join("".join(c if c.isalnum() else " " for c in caption.lower()).split())
            write_whole(folder / f"{name}.csv", table.to_csv(index=False))
        write_whole(folder / "report.json", json.dumps(self.to_dict(), indent=1) + "\n")
        write_whole(folder / "report.md", self.to_markdown())


def _records(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    return {caption: json.loads(table.to_json(orient="records")) for caption, table in tables.items()}


def _listed(values: Mapping[str, Any]) -> str:
    return "\n".join(f"* {name}: {value}" for name, value in values.items() if value != "")
