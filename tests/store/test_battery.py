"""A fixed part of the battery, over every artifact; ``benchmarks/durability.py`` runs the whole of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from artifact_modules import NAMES

BATTERY = Path(__file__).with_name("battery")
BOUNDS = ["--random-kills", "1", "--flips", "30", "--appends", "20"]
ONE, SIX = ["--step", "9", "--open-files", "100"], ["--step", "200", "--flips", "22", "--open-files", "256"]
"""For one artifact, and for an engine, which is six, each of them tried by itself."""


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_silently_wrong_or_without_a_name(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(BATTERY), name, *BOUNDS, *(SIX if name == "engine" else ONE)],
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
