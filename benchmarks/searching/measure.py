"""How a system is measured, and the row of the table that it becomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

K = 1000
"""How many documents each system is asked for."""

FEW = 8
"""How many queries a system gets that goes one by one."""

Found = list[np.ndarray]
"""For each query the numbers of documents, best first."""


@dataclass(frozen=True)
class System:
    """Something that searches.

    Args:
        name: what the table says.
        search: from queries, float32 ``[q, d]`` each, to what is found.
        queries: how many queries it is asked; ``None`` for all.
        at_once: ask all of them in one call; else one by one, which gives a median.
        held: bytes it keeps in memory for all documents; ``None`` where that is not known.
        truth: what it tries to find: the best by MaxSim, or by the document vectors alone.
        repeat: how often it is timed; the best counts.
    """

    name: str
    search: Callable[[list[np.ndarray]], Found]
    queries: int | None = None
    at_once: bool = True
    held: float | None = None
    truth: str = "maxsim"
    repeat: int = 3


class Timing(NamedTuple):
    """The best of some runs: seconds that passed, seconds of all processors, and what was returned."""

    passed: float
    processors: float
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
    """The share of the true best that was found, over the queries that both have."""
    return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, true, strict=False)]))


HEADER = f"  {'':<44}{'q/s':>9}{'ms/q':>10}{'cpu-ms/q':>10}{'p50 ms':>9}{'recall':>9}{'B/doc':>8}"


def measure(system: System, queries: list[np.ndarray], true: dict[str, Found], m: int) -> Iterator[str]:
    """Time one system and give its row of the table."""
    asked = queries[: system.queries]
    median = f"{'':>9}"
    if system.at_once:
        timing = timed(lambda: system.search(asked), system.repeat)
    else:
        timings = [timed(lambda query=query: system.search([query]), system.repeat) for query in asked]
        passed = [timing.passed for timing in timings]
        median = f"{np.median(passed) * 1e3:>9.1f}"
        processors = sum(timing.processors for timing in timings)
        timing = Timing(sum(passed), processors, [of for timing in timings for of in timing.result])
    found = recall(timing.result, true[system.truth])
    held = "" if system.held is None else f"{system.held / m:.0f}"
    each = 1e3 / len(asked)
    yield (
        f"  {system.name:<44}{len(asked) / timing.passed:>9.2f}{timing.passed * each:>10.2f}"
        f"{timing.processors * each:>10.2f}{median}{found:>9.4f}{held:>8}"
    )
