"""What a scan must at least do for one query, how long that takes on one core here, and how much memory ours holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from .measure import timed


def floor(rows: int, dimensions: int, query_rows: float) -> dict[str, float]:
    """Seconds of one core for one query, in float32 and over bytes; the floor is the slower of moving and computing.

    Prints the bytes that are read, the operations, and the speed of both here.
    """
    copy = np.ones(1 << 27, np.uint8)
    speed = copy.nbytes / timed(lambda: copy.view(np.uint64).max()).passed
    operations = 2 * rows * dimensions * query_rows
    least = {}
    for kind, size, rate in (("float32", 4, _float_rate(dimensions)), ("bytes", 1, _byte_rate(dimensions))):
        moved = rows * dimensions * size
        least[kind] = max(moved / speed, operations / rate)
        print(
            f"  floor of one query on one core in {kind:<8}{moved / 1e6:>8.0f} MB at {speed / 1e9:.1f} GB/s, "
            f"{operations / 1e9:.2f} G operations at {rate / 1e9:.0f} G/s: {least[kind] * 1e3:.1f} ms"
        )
    return least


def _float_rate(dimensions: int, rows: int = 512, columns: int = 13) -> float:
    """Operations a second of numpy's product of a block that stays in the cache."""
    block, query = np.ones((rows, dimensions), np.float32), np.ones((dimensions, columns), np.float32)
    return 2 * block.size * columns / timed(lambda: block @ query, 200).passed


def _byte_rate(dimensions: int, rows: int = 4096, columns: int = 128) -> float:
    """The same of torch's integer product, with as many columns as keep it busy; of float32 where there is none."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        block, query = torch.ones((rows, dimensions), dtype=torch.int8), torch.ones((columns, dimensions)).char().T
        return 2 * block.numel() * columns / timed(lambda: torch._int_mm(block, query), 200).passed
    except (AttributeError, RuntimeError, NotImplementedError):
        return _float_rate(dimensions)
    finally:
        torch.set_num_threads(threads)


_HELD = """
import sys, numpy as np, pandas as pd
from pyterrier_mathamr.index import MathAMRIndex
import torch
def resident(name):
    fields = dict(line.split(":") for line in open("/proc/self/status") if line.startswith(("Rss", "VmRSS", "VmHWM")))
    print(name, {key: int(value.split()[0]) // 1000 for key, value in fields.items()}, "MB")
resident("    imported:         ")
index = MathAMRIndex(sys.argv[1])
rows = np.load(sys.argv[2])
frame = pd.DataFrame({"qid": ["q"]}).assign(query_embs=[rows])
index.colbert(num_results=1000)(frame)
resident("    one query later:  ")
many = pd.DataFrame({"qid": [str(i) for i in range(78)]}).assign(query_embs=[rows[i % len(rows):] for i in range(78)])
index.colbert(num_results=1000)(many)
resident("    78 queries later: ")
"""


def print_resident(index: Path, query: np.ndarray, folder: Path) -> None:
    """Search in a process of its own and print what of it is in memory: its own (anonymous) and mapped files."""
    np.save(folder / "query.npy", query)
    print("  memory of a process that searches by colbert():", flush=True)
    subprocess.run([sys.executable, "-c", _HELD, str(index), str(folder / "query.npy")], check=True)
