"""The least work of an exact search for one query, and the time of one core of this machine for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch

Numbers = Literal["bytes", "float32"]
"""The number type of the products: float32, or codes of one byte for each, which an exact search may scan."""

_SIZE: dict[Numbers, int] = {"bytes": 1, "float32": 4}


class Work(NamedTuple):
    """A pass over rows that an exact search cannot avoid.

    Args:
        rows: their number.
        dimensions: of each.
        numbers: the readable forms; the faster one is the floor.
        by: all rows of each query (MaxSim), or only its document vector.
        shared: queries of one batch read the rows once; otherwise each reads its own.
    """

    rows: float
    dimensions: int
    numbers: tuple[Numbers, ...] = ("bytes", "float32")
    by: Literal["rows", "document"] = "rows"
    shared: bool = True


@dataclass(frozen=True)
class Machine:
    """One core: the bytes that it reads from memory in a second, and the operations in a product."""

    reading: float
    operations: dict[Numbers, float]

    def seconds(self, work: Work, queries: list[np.ndarray], at_once: int = 1) -> float:
        """Return the floor of one query: the slower of reading and computing, in seconds of one core.

        Args:
            work: the pass over rows.
            queries: the queries, of whose rows the mean number is taken.
            at_once: the queries of one batch.
        """
        columns = float(np.mean([len(query) for query in queries])) if work.by == "rows" else 1
        size, share = work.rows * work.dimensions, at_once if work.shared else 1
        return min(
            max(size * _SIZE[kind] / share / self.reading, 2 * size * columns / self.operations[kind])
            for kind in work.numbers
        )

    def describe(self, rows: int, dimensions: int, queries: list[np.ndarray]) -> str:
        """Describe the floor of MaxSim over all rows, for one query and for all at once."""
        lines = [f"One core reads {self.reading / 1e9:.1f} GB/s and computes, in 10⁹ operations a second,"]
        lines[0] += "".join(f" {rate / 1e9:.0f} in {kind}," for kind, rate in self.operations.items())[:-1] + "."
        for kind, size in _SIZE.items():
            one, many = (
                1e3 * self.seconds(Work(rows, dimensions, (kind,)), queries, at_once) for at_once in (1, len(queries))
            )
            moved = rows * dimensions * size / 1e6
            lines.append(
                f"Floor of MaxSim over all rows in {kind} ({moved:,.0f} MB): {one:.2f} ms of one core for one query, "
                f"{many:.2f} ms each for {len(queries)} at once."
            )
        return "\n".join(f"* {line}" for line in lines)


def machine(dimensions: int) -> Machine:
    """Measure one core, in CPU time."""
    memory = np.ones(1 << 25, np.uint64)
    rates: dict[Numbers, float] = {"bytes": _byte_rate(dimensions), "float32": _float_rate(dimensions)}
    return Machine(memory.nbytes / _cpu_seconds(memory.max, 5), rates)


def _cpu_seconds(run: Callable[[], object], repeat: int) -> float:
    """Return the least CPU seconds of a run."""
    run()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def _float_rate(dimensions: int, rows: int = 512, columns: int = 13) -> float:
    """Measure the operations a second of numpy's product of a block that stays in the cache."""
    block, query = np.ones((rows, dimensions), np.float32), np.ones((dimensions, columns), np.float32)
    return 100 * 2 * block.size * columns / _cpu_seconds(lambda: [block @ query for _ in range(100)], 20)


def _byte_rate(dimensions: int, rows: int = 4096, columns: int = 128) -> float:
    """Measure torch's integer product, with enough columns to keep it busy; numpy's in float32 where there is none."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        block, query = torch.ones((rows, dimensions), dtype=torch.int8), torch.ones((columns, dimensions)).char().T
        return 2 * block.numel() * columns / _cpu_seconds(lambda: torch._int_mm(block, query), 200)
    except (AttributeError, RuntimeError, NotImplementedError):
        return _float_rate(dimensions)
    finally:
        torch.set_num_threads(threads)
