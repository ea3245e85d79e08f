"""Kill the build of every artifact, damage it and load it, and print the outcome.

::

    python benchmarks/durability.py                        all artifacts, about half an hour on two cores
    python benchmarks/durability.py toy bm25 --flips 500   some of them

Each build is killed before each operation on files and at random instants. Each artifact is read with flipped bits,
truncated, removed and exchanged files; written by two processes, on a full disk, in a read-only folder and over the
unfinished work of another job; and appended to a thousand times with a limit of 256 open files. ``tests/store/battery``
defines the checks. The columns ``lost``, ``silently wrong`` and ``unnamed`` must be 0; otherwise the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests" / "store"
sys.path.append(str(TESTS))
from artifact_modules import NAMES  # noqa: E402

COLUMNS = ("tried", "old", "new", "named", "harmless", "unnoticed", "lost", "silently wrong", "unnamed")
FAULTS = COLUMNS[-3:]

Found = dict[str, tuple[dict[str, int], list[str]]]


def run(name: str, options: list[str]) -> Found:
    """Test one artifact in a separate process."""
    command = [sys.executable, str(TESTS / "battery"), name, *options]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: Found = json.loads(ran.stdout)
    return found


def table(found: dict[str, Found]) -> str:
    """Return a Markdown table: a row for each artifact and kind of trial."""
    lines = ["| artifact | trial | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * len(COLUMNS)]
    for name, tallies in found.items():
        for sort, (counts, _) in tallies.items():
            cells = " | ".join(str(counts.get(column, 0)) for column in COLUMNS)
            lines.append(f"| {name} | {sort} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Run the battery and print the table."""
    names = NAMES
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="ARTIFACT", help=f"of {', '.join(names)}; all of them")
    parser.add_argument("--step", default="1", help="kill before each so many operations on files")
    parser.add_argument("--random-kills", default="20", help="for each action of each artifact")
    parser.add_argument("--flips", default="120", help="for each artifact")
    parser.add_argument("--appends", default="1000")
    parser.add_argument("--open-files", default="256")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--workers", type=int, default=2, help="artifacts at a time")
    arguments = vars(parser.parse_args())
    names, workers = arguments.pop("names") or names, arguments.pop("workers")
    options = [f"--{option.replace('_', '-')}={value}" for option, value in arguments.items()]
    with ThreadPoolExecutor(workers) as pool:
        found = dict(zip(names, pool.map(lambda name: run(name, options), names), strict=True))
    print(table(found))
    faults = [(name, sort, fault) for name, of in found.items() for sort, (_, errors) in of.items() for fault in errors]
    for name, sort, fault in faults:
        print(f"{name}, {sort}: {fault}", file=sys.stderr)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
