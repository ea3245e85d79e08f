"""What tests look at in the folder of an index."""

from pathlib import Path

from pyterrier_mathamr.index import MathAMRIndex


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def docnos(index: MathAMRIndex) -> list[str]:
    return sorted(doc["docno"] for doc in index.get_corpus_iter())
