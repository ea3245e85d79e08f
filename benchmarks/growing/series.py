"""A series of measurements: the sizes in order, with all parts at each; finished ones are not repeated."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from . import report, running
from .parts import PARTS, Place


class Series(NamedTuple):
    """The measurements to make.

    Attributes:
        source: the small collection.
        folder: where everything is written, including ``results.jsonl``.
        sizes: numbers of posts.
        parts: their names; the parts that they need are added.
        budget: the most seconds of a part at one size, by its growth so far.
        share: the part of the posts from which graphs are built.
        kill_after: kill each build once after this many seconds; 0 for never.
        keep: keep the artifacts of a size when its parts are done.
    """

    source: Path
    folder: Path
    sizes: Sequence[int]
    parts: Sequence[str]
    budget: float
    share: float = 1.0
    kill_after: float = 0.0
    keep: bool = False


def with_needs(parts: Sequence[str]) -> list[str]:
    """Add the parts that some parts need, in the order of building."""
    wanted = set(parts)
    while missing := {need for name in wanted for need in PARTS[name].needs} - wanted:
        wanted |= missing
    return [name for name in PARTS if name in wanted]


def expected(rows: Sequence[running.Result], part: str, posts: int) -> float:
    """Return the seconds that a part will take at the next size, growing as from the last size but one to the last."""
    points = sorted((row["posts"], max(row["seconds"], 1e-3)) for row in rows if row["part"] == part)
    if not points:
        return 0.0
    exponent = max(1.0, report.slope(points[-2:])) if len(points) > 1 else 1.0
    return float(points[-1][1] * (posts / points[-1][0]) ** exponent)


def run(of: Series) -> list[running.Result]:
    """Measure each part of each size, print its line, and return all results."""
    of.folder.mkdir(parents=True, exist_ok=True)
    log, names, stopped = of.folder / "results.jsonl", with_needs(of.parts), set[str]()
    rows = running.results(log)
    print(report.header(), flush=True)
    for posts in sorted(of.sizes):
        place = Place(of.source, of.folder / f"{posts}", posts, of.share)
        for name in names:
            done = [row for row in rows if (row["posts"], row["part"]) == (posts, name)]
            if not done and (stopped.intersection(PARTS[name].needs) or expected(rows, name, posts) > of.budget):
                stopped.add(name)
                print(f"\n{name} stops before {posts:,} posts.\n", flush=True)
                continue
            if not done:
                done = [running.measure(name, place, of.kill_after)]
                rows += done
                with open(log, "a") as file:
                    file.write(json.dumps(done[0]) + "\n")
            print(report.line(done[0]), flush=True)
        if not of.keep:
            shutil.rmtree(place.folder, ignore_errors=True)
    return [row for row in rows if row["part"] in names]


def listed(text: str) -> list[str]:
    """Split a list at its commas."""
    return [item for item in text.split(",") if item]


def part_names(text: str) -> list[str]:
    """Read a list of parts."""
    if unknown := [name for name in listed(text) if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    return listed(text)
