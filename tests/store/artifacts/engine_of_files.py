"""A search engine that follows a folder: an update adds files, changes one and deletes one."""

import atexit
import shutil
import tempfile
from pathlib import Path

from artifact_modules import load

from pyterrier_mathamr.engine import SearchEngine

open = SearchEngine
of_records = load("engine")
COMPACTS = DELETES = False
NOTES = Path(tempfile.mkdtemp(prefix="notes-"))
NOTES.chmod(0o777)
atexit.register(shutil.rmtree, NOTES, ignore_errors=True)


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    """Build an engine of a folder, or change the folder and update the engine."""
    if mode == "append":
        changed = {"d2": f"own2 changed {rows.stop}"} if len(rows) > 1 else {}  # a single row is only added
        _write({**_texts(range(rows.stop), seed), **changed}, without="d1" if changed else "")
        SearchEngine(path).update()
    else:
        _write(_texts(rows, seed))
        options = {"model": of_records.MODEL / "small", "overwrite": mode == "overwrite", "verbose": False}
        SearchEngine.build(NOTES, path, **options)


def read(path: Path) -> object:
    """All posts by docno, and what every search finds."""
    docnos, texts, found = of_records.read(path)
    return sorted(zip(docnos, texts, strict=True)), found


def _texts(rows: range, seed: int) -> dict[str, str]:
    return {f"d{i}": f"own{i} {of_records.WORDS[(i + seed) % 3]}" + f" $x_{i}^{seed}$" * (i % 2) for i in rows}


def _write(texts: dict[str, str], without: str = "") -> None:
    """Make the folder hold these files and no others; one that is right already is not touched."""
    wanted = {NOTES / f"{name}.md": text for name, text in texts.items() if name != without}
    for file in NOTES.iterdir():
        if file not in wanted:
            file.unlink()
    for file, text in wanted.items():
        if not file.exists() or file.read_text() != text:
            file.unlink(missing_ok=True)  # which is another user's, where the folder of an engine is read-only
            file.write_text(text)
