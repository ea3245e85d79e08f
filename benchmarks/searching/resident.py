"""How much memory a process holds that opens an index and searches it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

_HELD = """
import sys, numpy as np, pandas as pd, torch
from pyterrier_mathamr.index import MathAMRIndex
def resident(name, m=0, before=None):
    lines = (line.split(":") for line in open("/proc/self/status") if line.startswith(("Rss", "VmRSS", "VmHWM")))
    held = {key: int(value.split()[0]) * 1024 for key, value in lines}
    each = f"; {(held['VmRSS'] - before['VmRSS']) / m:,.0f} bytes a document since" if m else ""
    parts = f"{held['RssAnon'] / 1e6:,.0f} MB its own, {held['RssFile'] / 1e6:,.0f} MB of files"
    print(f"{name:<20}{held['VmRSS'] / 1e6:>7,.0f} MB ({parts}; peak {held['VmHWM'] / 1e6:,.0f} MB{each})", flush=True)
    return held
rows = np.load(sys.argv[2])
def frame(n):
    return pd.DataFrame({"qid": map(str, range(n))}).assign(query_embs=[rows[i % len(rows):] for i in range(n)])
imported = resident("imported")
index = MathAMRIndex(sys.argv[1])
m = len(index)
resident("opened", m, imported)
index.colbert(num_results=1000)(frame(1))
resident("one query later", m, imported)
index.colbert(num_results=1000)(frame(78))
resident("78 queries later", m, imported)
"""


def print_resident(index: Path, query: np.ndarray, folder: Path) -> None:
    """Search in a process of its own and print what of it is in memory: its own (anonymous) and mapped files."""
    np.save(folder / "query.npy", query)
    print("\nMemory of a process that searches by colbert():\n", flush=True)
    subprocess.run([sys.executable, "-c", _HELD, str(index), str(folder / "query.npy")], check=True)
