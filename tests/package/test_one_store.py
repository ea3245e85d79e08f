"""Only the store renames, syncs or locks files."""

import re
from pathlib import Path

import mathamr_systems
import pyterrier_mathamr

ROOMS = Path(pyterrier_mathamr.__file__).parent
FORBIDDEN = re.compile(
    r"\bos\.(replace|rename|fsync)\b|\bfcntl\b|\bflock\b|\bfilelock\b|finalized_(directory|open)|shutil\.move"
)


def test_no_other_room_swaps_or_locks_files_by_itself() -> None:
    others = [file for file in ROOMS.rglob("*.py") if file.relative_to(ROOMS).parts[0] != "store"]
    others += Path(mathamr_systems.__file__).parent.rglob("*.py")
    assert len(others) > 100
    assert [file for file in others if FORBIDDEN.search(file.read_text(encoding="utf-8"))] == []


def test_the_rule_knows_what_it_forbids() -> None:
    found = FORBIDDEN.findall((ROOMS / "store" / "files.py").read_text(encoding="utf-8"))
    assert len(found) > 2
