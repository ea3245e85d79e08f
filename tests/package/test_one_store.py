"""What changes names on disk or locks them stands in the store alone."""

import re
from pathlib import Path

import pytest

import pyterrier_mathamr

ROOMS = Path(pyterrier_mathamr.__file__).parent
FORBIDDEN = re.compile(
    r"\bos\.(replace|rename|fsync)\b|\bfcntl\b|\bflock\b|\bfilelock\b|finalized_(directory|open)|shutil\.move"
)


@pytest.mark.parametrize("file", sorted(ROOMS.rglob("*.py")), ids=lambda file: str(file.relative_to(ROOMS)))
def test_no_other_room_swaps_or_locks_files_by_itself(file: Path) -> None:
    if file.relative_to(ROOMS).parts[0] == "store":
        return
    assert FORBIDDEN.search(file.read_text(encoding="utf-8")) is None


def test_the_rule_knows_what_it_forbids() -> None:
    assert FORBIDDEN.search((ROOMS / "store" / "files.py").read_text(encoding="utf-8"))
    assert FORBIDDEN.search((ROOMS / "store" / "lock.py").read_text(encoding="utf-8"))
