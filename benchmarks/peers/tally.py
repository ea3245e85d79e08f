"""Run test files of another project by pytest, and print how many tests passed and why the others failed."""

from __future__ import annotations

import os
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest


class _Tally:
    """A plugin of pytest that keeps the outcome of each test; a test fails if one of its subtests does."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.reasons: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        test = report.nodeid
        if report.failed:
            self.outcomes[test] = "failed"
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message if crash else str(report.longrepr)
            self.reasons.setdefault(test, message.strip().split("\n")[0][:160])
        elif self.outcomes.get(test) != "failed" and (report.when == "call" or report.skipped):
            self.outcomes[test] = report.outcome


def module(name: str, **members: object) -> types.ModuleType:
    """Put a module that has our adapters in the place of a peer's."""
    made = types.ModuleType(name)
    vars(made).update(members)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, made)
    return made


def run(clone: Path, files: Sequence[str]) -> None:
    """Run test files of a clone in an empty folder; print one row for each, then the reasons of failures."""
    tally = _Tally()
    options = [
        "-q",
        "-c",
        os.devnull,
        "--rootdir",
        str(clone),
        "-p",
        "no:cacheprovider",
        "--tb=no",
        "-p",
        "no:warnings",
    ]
    clone = clone.absolute()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pytest.main([*options, *(str(clone / file) for file in files)], plugins=[tally])
        os.chdir(clone)
    counts = Counter((test.split("::")[0].rpartition("/")[2], outcome) for test, outcome in tally.outcomes.items())
    print("\n| file | passed | failed | skipped |\n|---|---|---|---|")
    for file in dict.fromkeys(name for name, _ in counts):
        print(f"| `{file}` | " + " | ".join(str(counts[file, kind]) for kind in ("passed", "failed", "skipped")) + " |")
    for test, reason in tally.reasons.items():
        print(f"{test.partition('::')[2]}: {reason}")
