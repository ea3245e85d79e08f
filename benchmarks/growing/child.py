"""One build or some queries, in this process: the last line printed is the result as JSON.

``python -m growing.child build|ask PART SOURCE FOLDER POSTS SHARE``, with ``benchmarks`` among the modules' folders.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from growing.parts import PARTS, Part, Place

WARM = 2  # rounds; the first opens files and caches for the second


def ask(part: Part, place: Place) -> dict[str, float]:
    """Ask each query, and return the milliseconds of CPU time of the first one and the median of the second round."""
    assert part.queries is not None
    start = time.process_time()
    queries = part.queries(place)
    opening, times = time.process_time() - start, [[0.0] * len(queries) for _ in range(WARM)]
    for row in times:
        for i, query in enumerate(queries):
            start = time.process_time()
            query()
            row[i] = 1000 * (time.process_time() - start)
    return {"first_ms": 1000 * opening + times[0][0], "query_ms": statistics.median(times[-1])}


def main() -> None:
    """Do it."""
    action, name, source, folder, posts, share = sys.argv[1:]
    part, place = PARTS[name], Place(Path(source), Path(folder), int(posts), float(share))
    found = {"units": part.build(place)} if action == "build" else ask(part, place)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
