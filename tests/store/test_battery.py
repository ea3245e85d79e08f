"""A fixed part of the battery, over artifacts of each form; ``benchmarks/durability.py`` runs the whole of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from artifact_modules import NAMES

BATTERY = Path(__file__).with_name("battery")
SAMPLE_OF = (
    *("toy", "bm25", "vector_index", "formula_store", "thread_store", "sharded_index", "training_checkpoint"),
    *("engine", "engine_of_files"),
)
"""Artifacts that write, merge or follow in a way of their own: parts, SQLite files, others, and plain files."""
SAMPLE = [
    "--random-kills", "0", "--flips", "22", "--files", "6", "--limits", "1000", "0", "--appends", "4",
    "--open-files", "100",
]  # fmt: skip
WHOLE = ["--step", "9", "--random-kills", "1", "--flips", "30", "--appends", "20", "--open-files", "100"]
OF_AN_ENGINE = {2: ["--step", "400", "--open-files", "256"], 10: ["--step", "200", "--open-files", "256"]}
"""Further options of an engine, which consists of seven of the others, by the least number of kills."""
FEW_STEPS = {"formula_store": "20", "sharded_index": "20", "training_checkpoint": "20"}  # of an action
TRIALS = [
    *(pytest.param(name, [*SAMPLE, "--step", FEW_STEPS.get(name, "60")], 2, id=name) for name in SAMPLE_OF),
    *(pytest.param(name, WHOLE, 10, id=f"{name}, whole", marks=pytest.mark.slow) for name in NAMES),
]


@pytest.mark.parametrize(("name", "bounds", "kills_at_least"), TRIALS)
def test_nothing_is_lost_silently_wrong_or_without_a_name(name: str, bounds: list[str], kills_at_least: int) -> None:
    further = OF_AN_ENGINE[kills_at_least] if name.startswith("engine") else []
    command = [sys.executable, str(BATTERY), name, *bounds, *further]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
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
