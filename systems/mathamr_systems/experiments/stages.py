"""Long work in stages: a finished stage is not repeated, and its settings and cost are recorded.

The folder of a run::

    stages/graphs.json     settings of a stage, and when it is finished also its seconds and peak memory
    graphs.mathamr         the artifact of the stage
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyterrier as pt

from pyterrier_mathamr.extending import MathAMRError
from pyterrier_mathamr.store import differences, replace_file

_SHOWN = 3


class ExperimentError(MathAMRError):
    """An experiment cannot be made from its arguments, or its folder holds one with other settings."""


def _change(name: str, before: Any, now: Any) -> str:
    """Describe how a setting changed; for a list, such as the files of a collection, only removed and added values."""
    if not (isinstance(before, list) and isinstance(now, list)):
        return f"{name} was {before!r} and is now {now!r}"
    gone, new = [value for value in before if value not in now], [value for value in now if value not in before]
    parts = []
    for what, values in (("removed", gone), ("added", new)):
        more = f" and {len(values) - _SHOWN:,} more" if len(values) > _SHOWN else ""
        parts += [f"{what} {', '.join(map(repr, values[:_SHOWN]))}{more}"] if values else []
    return f"{name}: {', '.join(parts) or 'the same in another order'}"


@dataclass(frozen=True, slots=True)
class StageRecord:
    """The work and cost of one stage."""

    name: str
    seconds: float  # of the run that finished it
    peak_mib: float  # of the process up to its end
    resumed: bool  # an earlier run finished it
    settings: Mapping[str, Any]  # the inputs of its artifact


class Stages:
    """Runs stages one after another and keeps their records."""

    def __init__(self, workdir: Path, say: Callable[[str], None] | None = None) -> None:
        self.workdir = workdir
        self.records: list[StageRecord] = []
        self._say = say
        (workdir / "stages").mkdir(parents=True, exist_ok=True)

    def run(
        self,
        name: str,
        artifact: Path,
        settings: Mapping[str, Any],
        build: Callable[[], object],
        *,
        update: Callable[[dict[str, Any]], Mapping[str, Any]] = dict,
    ) -> None:
        """Do a stage, or skip it if it is finished."""
        wanted = json.loads(json.dumps(settings))
        file = self.workdir / "stages" / f"{name}.json"
        stored = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"settings": wanted}
        if update(stored["settings"]) != wanted:
            changed = differences(stored["settings"], wanted).items()
            changes = "; ".join(_change(setting, old, new) for setting, (old, new) in changed)
            raise ExperimentError(
                f"{self.workdir}: stage {name!r} was done with other settings: {changes}. Use another folder for the "
                f"new settings, or delete {self.workdir} to start over."
            )
        if "seconds" in stored and artifact.exists():
            self.records.append(StageRecord(**{**stored, "resumed": True}))
            self._tell(f"{name}: finished before ({stored['seconds']:.0f} s)")
            return
        self._tell(f"{name} …")
        write_atomically(file, json.dumps({"settings": wanted}, indent=1) + "\n")  # of the half-finished artifact
        start = time.perf_counter()
        try:
            build()
        except KeyboardInterrupt as error:
            error.add_note(f"the finished steps before {name!r} are kept in {self.workdir}")
            raise
        record = self._record(name, start, wanted)
        write_atomically(file, json.dumps(asdict(record), indent=1) + "\n")

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Record the cost of work that each run repeats."""
        self._tell(f"{name} …")
        start = time.perf_counter()
        yield
        self._record(name, start, {})

    def last(self) -> tuple[StageRecord, ...]:
        """List the cost of each stage, the last time that it ran."""
        return tuple({record.name: record for record in reversed(self.records)}.values())[::-1]

    def _record(self, name: str, start: float, settings: Mapping[str, Any]) -> StageRecord:
        record = StageRecord(name, round(time.perf_counter() - start, 2), round(peak_memory(), 1), False, settings)
        self.records.append(record)
        self._tell(f"{name}: {record.seconds:.0f} s, {record.peak_mib:.0f} MiB")
        return record

    def _tell(self, text: str) -> None:
        if self._say is not None:
            self._say(text)


def write_atomically(file: Path, text: str) -> None:
    replace_file(file, text.encode())


def to_stderr(text: str) -> None:
    """Write a line to stderr, above a progress bar, for verbose runs."""
    pt.tqdm.write(text, file=sys.stderr)


def slug(name: str) -> str:
    """Make a name of a file from any name, such as ``bm25-1000-scorer``."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def peak_memory() -> float:
    """Return the peak memory of this process so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes on macOS, KiB elsewhere
