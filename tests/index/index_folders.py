"""What tests look at in the folder of an index."""

from pathlib import Path

from pyterrier_mathamr.index import MathAMRIndex


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def docnos(index: MathAMRIndex) -> list[str]:
    return sorted(doc["docno"] for doc in index.get_corpus_iter())
