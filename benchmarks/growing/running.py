"""Each build and each round of queries in a separate process, watched from outside; finished ones are written down.

``results.jsonl`` has a line for each part of each size:

    posts, part, units, unit
    seconds, cpu       of the build, including runs that were killed
    peak, private      MiB: the maximum resident memory, and its part that is not a page of a file
    disk               bytes of the result;  while_built: the maximum during the build
    written            bytes written to the disk for it
    files              the most files that were open
    kills              how often it was killed
    first_ms           CPU milliseconds from opening to the first answer
    query_ms           median of queries on the open artifact
    query_private      MiB during queries
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .parts import PARTS, Part, Place

_EVERY = 0.1  # seconds between looks at a process
_DISK_EVERY = 100  # looks between looks at the disk
_BENCHMARKS = str(Path(__file__).resolve().parents[1])

Result = dict[str, Any]


@dataclass
class Watched:
    """Observations of a process."""

    seconds: float = 0.0
    cpu: float = 0.0
    peak: float = 0.0
    private: float = 0.0
    disk: int = 0
    written: int = 0
    files: int = 0
    kills: int = 0


def results(path: Path) -> list[Result]:
    """Read the finished measurements; a line that was cut off by a kill does not count."""
    found = []
    with suppress(FileNotFoundError):
        for line in path.read_text().splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
    return found


def measure(name: str, place: Place, kill_after: float = 0) -> Result:
    """Build a part and query it, each in a separate process.

    Args:
        name: of the part.
        place: where.
        kill_after: kill the build once after this many seconds, and resume it; 0 for never.
    """
    part, seen = PARTS[name], Watched()
    place.folder.mkdir(parents=True, exist_ok=True)
    built = _run("build", name, place, seen, kill_after) if kill_after else None
    built = built or _run("build", name, place, seen)
    row: Result = {"posts": place.posts, "part": name, "unit": part.unit, **(built or {})}
    row |= {"seconds": seen.seconds, "cpu": seen.cpu, "peak": seen.peak, "private": seen.private}
    row |= {
        "disk": disk(place, part),
        "while_built": seen.disk,
        "written": seen.written,
        "files": seen.files,
        "kills": seen.kills,
    }
    if part.queries:
        asked = Watched()
        row |= _run("ask", name, place, asked) or {}
        row |= {"query_private": asked.private, "files": max(seen.files, asked.files)}
    return row


def _run(action: str, name: str, place: Place, seen: Watched, kill_after: float = 0) -> Result | None:
    """Run one process to its end; ``None`` if it was killed after ``kill_after`` seconds."""
    command = [sys.executable, "-m", "growing.child", action, name, *map(str, place)]
    paths = os.pathsep.join(filter(None, [_BENCHMARKS, os.environ.get("PYTHONPATH")]))
    start, killed = time.perf_counter(), False
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, env={**os.environ, "PYTHONPATH": paths})
        looks, status = 0, 0
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            _look(process.pid, seen)
            if looks % _DISK_EVERY == 0:
                seen.disk = max(seen.disk, disk(place, PARTS[name]))
            if kill_after and not killed and time.perf_counter() - start > kill_after:
                process.send_signal(signal.SIGKILL)
                killed = True
            looks += 1
            time.sleep(_EVERY)
        _, status, usage = ended
        process.returncode = os.waitstatus_to_exitcode(status)
        seen.seconds += time.perf_counter() - start
        seen.cpu += usage.ru_utime + usage.ru_stime
        seen.written += 512 * usage.ru_oublock
        seen.disk = max(seen.disk, disk(place, PARTS[name]))
        if killed and process.returncode:
            seen.kills += 1
            return None
        if process.returncode:
            raise SystemExit(f"{action} {name} of {place.posts:,} posts ended with {process.returncode}")
        out.seek(0)
        found: Result = json.loads(out.read().splitlines()[-1])
        return found


def _look(pid: int, seen: Watched) -> None:
    """Look at the memory and the open files of a process, as Linux shows them."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        sizes = {
            key: int(value.split()[0]) / 1024
            for key, _, value in (line.partition(":") for line in lines if "kB" in line)
        }
        seen.peak = max(seen.peak, sizes.get("VmHWM", 0.0))
        seen.private = max(seen.private, sizes.get("RssAnon", 0.0))
        seen.files = max(seen.files, len(os.listdir(f"/proc/{pid}/fd")))


def disk(place: Place, part: Part) -> int:
    """Count the bytes that a part has on the disk, unfinished work included."""
    found = 0
    for entry in place.folder.iterdir():
        if part.files and (entry.name == part.files or entry.name.startswith(f".{part.files}.")):
            for file in entry.rglob("*") if entry.is_dir() else [entry]:
                with suppress(FileNotFoundError):
                    found += file.stat().st_blocks * 512
    return found
