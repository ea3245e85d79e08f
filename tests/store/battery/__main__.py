"""Trials that every artifact must survive: kills, damage, two writers, full disks, another job's leftovers.

Run as a program it tries one artifact and prints what became of it as JSON::

    python tests/store/battery toy --random-kills 20 --flips 50
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from subjects import NAMES, Subject, Tally
from trials import appends, damage, exchanges, full_disk, kills, leftovers, permissions, writers


def trials(subject: Subject, options: argparse.Namespace) -> Iterator[tuple[str, Tally]]:
    """All sorts of trials of one artifact."""
    for action in subject.actions:
        yield f"kill: {action}", kills(subject, action, options.step, options.random_kills, options.seed)
    yield from damage(subject, options.flips, options.files, options.seed).items()
    yield "exchanged", exchanges(subject, options.files, options.seed)
    yield "two writers", writers(subject)
    for action in subject.actions:
        yield f"full disk: {action}", full_disk(subject, action, options.limits)
    yield "read-only folder", permissions(subject)
    yield "another job's leftovers", leftovers(subject)
    yield "appends", appends(subject, options.appends, options.open_files)


def main() -> None:
    """Try one artifact and print the tallies."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--step", type=int, default=1, help="kill before each so many operations on files")
    parser.add_argument("--random-kills", type=int, default=20, help="kills at random instants, for each action")
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--files", type=int, default=1_000_000, help="truncate, remove and exchange at most so many")
    parser.add_argument("--limits", type=int, nargs="+", default=[4_000, 1_000, 100, 0], help="bytes on a full disk")
    parser.add_argument("--appends", type=int, default=40)
    parser.add_argument("--open-files", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.fsync = lambda descriptor: None  # a kill loses nothing that was written, synced or not; a power cut is not tried
    with tempfile.TemporaryDirectory(prefix="battery-") as folder:
        os.chmod(folder, 0o755)
        subject = Subject(options.name, Path(folder))
        found = {sort: [dict(tally.counts), tally.faults[:20]] for sort, tally in trials(subject, options)}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
