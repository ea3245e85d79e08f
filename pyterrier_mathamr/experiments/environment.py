"""With what a result was made: versions and machine, to be stored beside it."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "pyterrier-mathamr",
    "pyterrier",
    "torch",
    "torch-geometric",
    "numpy",
    "pandas",
    "ir-measures",
    "pytrec-eval-terrier",
    "penman",
    "lxml",
    "math-core",
    "faiss-cpu",
    "bm25s",
    "PyStemmer",
)


def environment() -> dict[str, str | int]:
    """Say with what this process computes.

    Returns:
        ``python``, ``platform``, ``cpus``, ``commit`` (of a checkout, else empty), then the version of each package
        that is installed.
    """
    found: dict[str, str | int] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count() or 0,
        "commit": _commit(),
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def peak_memory() -> float:
    """Give the most memory this process has held so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes on macOS, KiB elsewhere


def _commit() -> str:
    """Give the commit of the checkout that the package runs from, or nothing."""
    folder = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
