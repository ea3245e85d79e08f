"""The measurement of a system, and its row of the table."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .floor import Machine, Work

K = 1000
"""The documents that each system returns for a query."""

FEW = 8
"""The queries of a system that is measured one by one."""

Found = list[np.ndarray]
"""For each query the numbers of documents, best first."""

Search = Callable[[list[np.ndarray]], Found]
"""From queries, float32 ``[q, d]`` each, to documents."""


@dataclass(frozen=True)
class System:
    """A system that searches.

    Args:
        name: its name in the table.
        make: builds it and returns its search.
        queries: the number of queries; ``None`` for all.
        at_once: send all of them in one call; otherwise one by one, which yields a median.
        held: bytes in memory for all documents; ``None`` if unknown.
        truth: the ground truth of recall: by MaxSim, or by only the document vectors.
        repeat: the number of timed runs; the best is reported.
        work: the minimum that an exact search reads and computes; empty for an approximate one.
    """

    name: str
    make: Callable[[], Search]
    queries: int | None = None
    at_once: bool = True
    held: float | None = None
    truth: str = "maxsim"
    repeat: int = 3
    work: tuple[Work, ...] = ()


class Timing(NamedTuple):
    """The best of some runs: wall-clock seconds, CPU seconds of all cores, and the result."""

    passed: float
    cpu: float
    result: Any


def timed(run: Callable[[], Any], repeat: int = 3, *, warm: bool = True) -> Timing:
    """Time some runs, after one to warm up."""
    if warm:
        run()
    runs = []
    for _ in range(repeat):
        start, cpu = time.perf_counter(), time.process_time()
        result = run()
        runs.append(Timing(time.perf_counter() - start, time.process_time() - cpu, result))
    return min(runs, key=lambda run: run.passed)


def recall(found: Found, true: Found) -> float:
    """Return the share of the true best that was found, over the queries of both."""
    return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, true, strict=False)]))


_WIDTHS = {"system": 44, "q/s": 8, "ms/q": 9, "cpu-ms/q": 9, "p50 ms": 8, "x floor": 7}
_WIDTHS |= {f"recall@{K}": 11, "B/doc": 6, "build cpu-s": 11}


def header() -> str:
    """Return the first two lines of the table, in Markdown."""
    rule = "|".join("-" * (width + 1) + ("-" if name == "system" else ":") for name, width in _WIDTHS.items())
    return _line(dict(zip(_WIDTHS, _WIDTHS, strict=True))) + f"\n|{rule}|"


def measure(system: System, queries: list[np.ndarray], true: dict[str, Found], m: int, machine: Machine) -> str:
    """Build one system, time it and return its row of the table."""
    made = timed(system.make, 1, warm=False)
    search, asked = made.result, queries[: system.queries]
    cells = {"system": system.name, "build cpu-s": f"{made.cpu:.1f}" if made.cpu >= 0.1 else ""}
    if system.at_once:
        timing = timed(lambda: search(asked), system.repeat)
    else:
        timings = [timed(lambda query=query: search([query]), system.repeat) for query in asked]
        passed = [timing.passed for timing in timings]
        cells["p50 ms"] = f"{np.median(passed) * 1e3:.1f}"
        used = sum(timing.cpu for timing in timings)
        timing = Timing(sum(passed), used, [of for timing in timings for of in timing.result])
    each = 1e3 / len(asked)
    cells |= {"q/s": f"{len(asked) / timing.passed:.2f}", "ms/q": f"{timing.passed * each:.2f}"}
    cells |= {"cpu-ms/q": f"{timing.cpu * each:.2f}"}
    cells[f"recall@{K}"] = f"{recall(timing.result, true[system.truth]):.4f}"
    if system.held is not None:
        cells["B/doc"] = f"{system.held / m:.0f}"
    if system.work:
        at_once = len(asked) if system.at_once else 1
        least = sum(machine.seconds(work, asked, at_once) for work in system.work)
        cells["x floor"] = f"{timing.cpu / len(asked) / least:.1f}"
    return _line(cells)


def _line(cells: dict[str, str]) -> str:
    shown = [f"{cells.get(name, ''):{'<' if name == 'system' else '>'}{width}}" for name, width in _WIDTHS.items()]
    return f"| {' | '.join(shown)} |"
