"""The whole release rehearsed: a collection of its size, and everything built from it, killed on the way and resumed.

    python benchmarks/rehearsal.py ARQMATH_MINI --folder /a/disk                   2.4 million posts: hours, 50 GB
    python benchmarks/rehearsal.py ARQMATH_MINI --folder /a/disk --posts 6164      minutes

The release may not be redistributed, so one of its size is made from the small collection: 2.4 million posts with 28
million formulas under new ids, with newly drawn words and symbols, in the official layout (``growing/release.py``).
``mathamr arqmath verify`` and ``stats`` read it; formula store, BM25, Tangent and the vector index (of random vectors,
16 an answer) are built whole, graphs and their encoding of a tenth. Each build is killed once, ``--kill-after`` seconds
after its start, and resumed in a new process; its figures include both. A line is printed as soon as its part is done,
and the same command resumes where it was stopped. At the end each part is compared with the estimate of ``Running on
the full release``, made before anything was measured at this size. Trees and lengths are real; the words and
symbols in them are drawn.

Do not run other programs, and set OMP_NUM_THREADS=1 for figures of one core. Needs Linux (``/proc``).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from growing import series
from growing.parts import PARTS, ROWS
from growing.running import Result

ESTIMATES = {
    "verify": (2_400_000 / 600, None),
    "formulas": (26_097, 174),
    "vectors": (47_700, 173 * ROWS),
    "graphs": (171, 2080),
    "encoding": (383, None),
}
"""Units a CPU second, and bytes of a unit, as extrapolated; graphs and encoding on one core."""


def compared(rows: Sequence[Result]) -> str:
    """Return the table of measurements and estimates, in Markdown."""
    lines = ["| part | units | a CPU second | estimated | bytes a unit | estimated | private MiB |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        rate, size = ESTIMATES.get(row["part"], (None, None))
        measured = f"{row['units'] / row['cpu']:,.0f}", f"{row['disk'] / max(1, row['units']):,.0f}"
        estimated = [f"{value:,.0f}" if value else "" for value in (rate, size)]
        cells = [row["part"], f"{row['units']:,} {row['unit']}", measured[0], estimated[0], measured[1], estimated[1]]
        lines.append(f"| {' | '.join(cells)} | {row['private']:,.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Read the options and rehearse."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="the small collection, arqmath-mini")
    parser.add_argument("--folder", type=Path, required=True, help="where everything is written")
    parser.add_argument("--posts", type=int, default=2_400_000)
    parser.add_argument("--parts", type=series.part_names, default=list(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--share", type=float, default=0.1, help="of the posts for graphs and encoding")
    parser.add_argument("--kill-after", type=float, default=300.0, help="seconds; 0 for never")
    given = parser.parse_args()
    options = {"share": given.share, "kill_after": given.kill_after, "keep": True}
    rows = series.run(series.Series(given.source, given.folder, [given.posts], given.parts, math.inf, **options))
    print("\n" + compared([row for row in rows if row["posts"] == given.posts]))


if __name__ == "__main__":
    main()
