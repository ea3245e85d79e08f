"""The memory of a process that opens an index and searches it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

_HELD = """
import sys, numpy as np, pandas as pd, torch
from pyterrier_mathamr.index import MathAMRIndex
def resident(name, m=None):
    held = dict.fromkeys(("own", "libraries", "arrays of the index"), 0)
    for line in open("/proc/self/smaps"):
        if "-" in (words := line.split())[0]:
            file = words[5] if len(words) > 5 else ""
        elif words[0] == "Rss:":
            kind = "libraries" if file.startswith("/") else "own"
            if file.startswith(sys.argv[1]):
                kind = "arrays of the index"
            held[kind] += int(words[1]) * 1024
    needed = held["own"] + held["libraries"]
    shown = ", ".join(f"{kind} {size / 1e6:,.0f}" for kind, size in held.items())
    print(f"{name:<17}{needed / 1e6:>6,.0f} MB without arrays: {shown}", flush=True)
rows = np.load(sys.argv[2])
def frame(n):
    return pd.DataFrame({"qid": map(str, range(n))}).assign(query_embs=[rows[i % len(rows):] for i in range(n)])
resident("imported")
index = MathAMRIndex(sys.argv[1])
index.colbert(num_results=1000)(frame(1))
resident("one query later")
index.colbert(num_results=1000)(frame(78))
resident("78 queries later")
"""


def print_resident(index: Path, query: np.ndarray, folder: Path) -> None:
    """Search in a separate process and print its resident memory.

    Arrays are memory-mapped, and the system may drop their pages. A search reads all codes, a quarter of the rows'
    bytes, and few of the rows: how many of these are resident depends on the free memory, not on the search.
    """
    np.save(folder / "query.npy", query)
    print("\nMemory of a process that searches by colbert(), in MB:\n", flush=True)
    subprocess.run([sys.executable, "-c", _HELD, str(index.resolve()), str(folder / "query.npy")], check=True)
