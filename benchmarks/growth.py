"""How time, memory, disk and open files grow with the collection, from a thousand posts to a million.

    python benchmarks/growth.py ARQMATH_MINI --folder /a/disk
    python benchmarks/growth.py ARQMATH_MINI --folder /a/disk --sizes 1000,10000 --parts bm25,tangent

A collection of each size is made from the small one, with new ids, words and symbols (``growing/release.py``), and each
part of it is built and then queried in separate processes, so that each has its own peak of memory. Finished work
is not repeated: ``results.jsonl`` in the folder keeps it, and a build that was stopped is resumed. A part that would
exceed ``--budget`` seconds at the next size, by its growth so far, stops before it; this is reported, and no figure is
filled in. Do not run other programs, and set OMP_NUM_THREADS=1 for figures of one core. Needs Linux (``/proc``).

Printed are a line for each part of each size and the fitted exponents, over all sizes and between the two largest;
``growth.csv`` and ``growth.svg`` in the folder have the same (the figure needs the extra ``plots``). ``private`` is
memory other than pages of files: the need of a build, whatever the system caches.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from growing import figure, report, series
from growing.parts import PARTS

SIZES = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
DEFAULT = ("formulas", "bm25", "tangent", "vectors", "graphs", "encoding")


def main() -> None:
    """Read the options, measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="the small collection, arqmath-mini")
    parser.add_argument("--folder", type=Path, required=True, help="where everything is written")
    parser.add_argument("--sizes", type=lambda text: list(map(int, series.listed(text))), default=list(SIZES))
    parser.add_argument("--parts", type=series.part_names, default=list(DEFAULT), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--budget", type=float, default=3600.0, help="seconds of a part at one size")
    parser.add_argument("--keep", action="store_true", help="keep the artifacts, to add more parts later")
    given = parser.parse_args()
    rows = series.run(series.Series(**vars(given)))
    print(f"\nExponents over all sizes (between the two largest); n log n has {report.nlogn(given.sizes):.2f}:\n")
    print(report.exponents(rows))
    report.write_csv(rows, given.folder / "growth.csv")
    figure.draw(rows, given.folder / "growth.svg")


if __name__ == "__main__":
    main()
