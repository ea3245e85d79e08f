"""Small files in the manner of real notes, in all formats: posts, formulas and faults of each, counted by hand.

`corpus.csv` has for each file the kinds of its posts, the numbers of its formulas, and of the partial and
unreadable ones, and its unknown commands; no formula between delimiters is lost in any.
"""

import csv
import sys
from collections import Counter
from pathlib import Path

import pytest

from pyterrier_mathamr._common.feedback import gathered

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts, not a part of the package

from reading import readings

CORPUS = Path(__file__).parent / "corpus"
EXPECTED = list(csv.DictReader((CORPUS.parent / "corpus.csv").read_text().splitlines()))


@pytest.mark.parametrize("folder", sorted(path.name for path in CORPUS.iterdir()))
def test_each_file_has_the_posts_formulas_and_faults_that_were_counted_by_hand(folder) -> None:
    with gathered() as problems:
        found = readings(CORPUS / folder, problems)
    rows = {
        file.name: (
            dict(file.kinds),
            *(file.counts[name] for name in ("formulas", "partial", "unreadable", "lost")),
            " ".join(sorted(file.unknown)),
        )
        for file in found
    }
    expected = {
        row["file"].partition("/")[2]: (
            dict(Counter(row["posts"].split())),
            *(int(row[name]) for name in ("formulas", "partial", "unreadable")),
            0,
            row["unknown"],
        )
        for row in EXPECTED
        if row["file"].startswith(f"{folder}/")
    }
    assert rows == expected
