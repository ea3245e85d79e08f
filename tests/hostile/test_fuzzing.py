"""A fixed part of what ``benchmarks/fuzzing.py`` reads: nothing but named errors comes out, and nothing is endless."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts, not a part of the package
from fuzzing import FAMILIES, KINDS, SAMPLE, fuzz, growth, real_posts, table


def test_damaged_posts_and_formulas_are_read_or_refused_by_name():
    tallies = fuzz(real_posts(SAMPLE, 50), tries=350, seed=3)
    for kind in KINDS:
        found = tallies[kind]
        assert (found.unnamed, found.aborted) == ([], []), kind
        assert found.tried == 50 > found.refused
    rows = table(tallies).splitlines()
    assert [row.split(" | ")[0].strip("| ") for row in rows[2:]] == [*KINDS, "all"]
    assert "| all | 350 | 0 | 0 |" in rows[-1]


def test_families_of_a_thousand_characters_are_read_in_each_form(monkeypatch):
    monkeypatch.setattr("fuzzing.SIZES", (1_000,))
    rows, faults = growth(["Markdown", "LaTeX", "HTML", "plain"], len(FAMILIES))
    assert faults == []
    assert rows.count("\n") == 1 + 4 * len(FAMILIES)
