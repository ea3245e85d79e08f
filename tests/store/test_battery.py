"""A fixed part of the battery, over each kind of artifact; ``benchmarks/durability.py`` runs the whole of it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from artifact_modules import NAMES

BATTERY = Path(__file__).with_name("battery")
WHOLE_OF = ("toy", "formula_store", "sharded_index", "training_checkpoint")
"""One artifact of parts, one SQLite file, one that consists of others, one of plain files."""
SAMPLE_OF = (
    *("bm25", "tangent", "patterns", "vector_index", "graph_store", "tensor_store", "post_store", "thread_store"),
    *("engine", "engine_of_files"),
)
"""Artifacts that write, merge or follow in a way of their own."""
WHOLE = ["--step", "9", "--random-kills", "1", "--flips", "30", "--appends", "20", "--open-files", "100"]
SAMPLE = [
    "--step", "60", "--random-kills", "0", "--flips", "22", "--files", "8", "--appends", "4", "--open-files", "100",
]  # fmt: skip
OF_AN_ENGINE = {  # it consists of seven of the others
    "whole": [*WHOLE, "--step", "200", "--open-files", "256"],
    "sample": [*SAMPLE, "--step", "400", "--open-files", "256"],
}


def trials() -> Iterator[Any]:
    """The whole battery for some artifacts, a sample for others; as a slow test the whole for all."""
    for name in NAMES:
        bounds = OF_AN_ENGINE if name.startswith("engine") else {"whole": WHOLE, "sample": SAMPLE}
        if name in SAMPLE_OF:
            yield pytest.param(name, bounds["sample"], 2, id=name)
        marks = [] if name in WHOLE_OF else pytest.mark.slow
        yield pytest.param(name, bounds["whole"], 10, id=f"{name}, whole", marks=marks)


@pytest.mark.parametrize(("name", "bounds", "kills_at_least"), list(trials()))
def test_nothing_is_lost_silently_wrong_or_without_a_name(name: str, bounds: list[str], kills_at_least: int) -> None:
    ran = subprocess.run(
        [sys.executable, str(BATTERY), name, *bounds], capture_output=True, text=True, check=False, timeout=1200
    )
    assert ran.returncode == 0, ran.stderr
    tallies = json.loads(ran.stdout)
    assert {sort: faults for sort, (_, faults) in tallies.items() if faults} == {}
    kills = [counts for sort, (counts, _) in tallies.items() if sort.startswith("kill: ")]
    assert sum(counts["tried"] for counts in kills) > kills_at_least  # the operations on files were seen
    assert kills_at_least < 10 or {"old", "new"} <= {outcome for counts in kills for outcome in counts}
    for counts in (counts for sort, (counts, _) in tallies.items() if sort.startswith("full disk: ")):
        assert counts["old"] > 0  # it was full before the action was complete
    flips, _ = tallies["flips, verified"]
    assert flips["named"] == flips["tried"] > 20
    if "kill: append" in tallies:  # others become whole in one part, and leave none
        assert tallies["another job's leftovers"][0]["tried"] > 0
