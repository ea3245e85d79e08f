"""A fixed part of the battery, over every artifact; ``benchmarks/durability.py`` runs the whole of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from artifact_modules import NAMES

BATTERY = Path(__file__).with_name("battery")
BOUNDS = ["--random-kills", "1", "--flips", "30", "--appends", "20", "--open-files", "100"]
STEPS = {"engine": "90"}
"""An engine is six artifacts, each of which is tried by itself."""


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_silently_wrong_or_without_a_name(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(BATTERY), name, "--step", STEPS.get(name, "9"), *BOUNDS],
        capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    tallies = json.loads(ran.stdout)
    assert {sort: faults for sort, (_, faults) in tallies.items() if faults} == {}
    kills = [counts for sort, (counts, _) in tallies.items() if sort.startswith("kill: ")]
    assert sum(counts["tried"] for counts in kills) > 10  # the operations on files were seen
    assert {"old", "new"} <= {outcome for counts in kills for outcome in counts}
    flips, _ = tallies["flips, verified"]
    assert flips["named"] == flips["tried"] > 20
    if "kill: append" in tallies:  # others become whole in one part, and leave none
        assert tallies["another job's leftovers"][0]["tried"] > 0
