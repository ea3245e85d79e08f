"""Search engines: of records, and of a folder that they follow."""

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from artifact_modules import Artifact

from pyterrier_mathamr.amr.dependency.syntax import bundled_net
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.graph import GraphBuilder, Vocabulary
from pyterrier_mathamr.model import MathAMR, MathAMRConfig
from pyterrier_mathamr.model.networks import random_network
from pyterrier_mathamr.posts import post_from_html

WORDS = ("series", "matrix", "boundary")
QUERY = "series of a matrix own3 with $x_3^2$"


def _folder(name: str, mode: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=name))
    folder.chmod(mode)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


torch.set_num_threads(1)  # others do not survive a fork
bundled_net()  # loaded once instead of in every fork
MODEL, NOTES = _folder("model-", 0o755) / "small", _folder("notes-", 0o777)


def _save_small_model() -> None:
    """Save a small model, since every trial reads it."""
    posts = pd.DataFrame({"docno": ["d"], "text": [f"{QUERY}. {' '.join(WORDS)}"]})
    vocabulary = Vocabulary.build(GraphBuilder()(posts)["graph"], min_role_count=1)
    config = MathAMRConfig(layers=1, hidden=16, projection=8, bases=4)
    MathAMR(config, vocabulary, random_network(config, vocabulary).state_dict()).save(MODEL)


_save_small_model()


def _texts(numbers: range, seed: int) -> dict[str, str]:
    """Posts with a distinct word, and some with a formula."""
    return {f"d{i}": f"own{i} {WORDS[(i + seed) % 3]}" + f" $x_{i}^{seed}$" * (i % 2) for i in numbers}


def _build(posts: Any, path: Path, mode: str) -> None:
    SearchEngine.build(posts, path, model=MODEL, overwrite=mode == "overwrite", verbose=False)


class OfRecords(Artifact, name="engine"):
    KIND = "pyterrier_mathamr.engine:SearchEngine"
    DELETED = ["d1"]  # noqa: RUF012 - one of eight: if more were deleted, the engine would be compacted at once
    REPEATS = ("append", "delete", "compact")

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        """Build an engine, or add to it; the same call continues what was stopped."""
        posts = [{"docno": docno, "text": text} for docno, text in _texts(numbers, seed).items()]
        if mode == "append":
            SearchEngine(path).add(posts)
        else:
            _build(posts, path, mode)

    def read(self, path: Path) -> Any:
        """All posts, and what every search finds; all indexes must agree."""
        engine = SearchEngine(path).snapshot()
        docnos, indexes = engine.docnos(), engine.indexes
        for index in (indexes.graphs, indexes.bm25, indexes.vectors):
            assert sorted(index.snapshot()) == sorted(docnos), index
        found = [engine.search(QUERY, k=20), engine.search_formula("x_3^0", k=20)]
        posts = indexes.posts.get_many(docnos)
        texts = [[post_from_html(post.title).text, post_from_html(post.html).text] for post in posts]
        return docnos, texts, [[*table["docno"], *table["score"].round(3)] for table in found]


class OfFiles(OfRecords, name="engine_of_files"):
    """An update adds files, changes one and deletes one."""

    COMPACTS = DELETES = False
    REPEATS = ()

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        """Build an engine of a folder, or change the folder and update the engine."""
        if mode == "append":
            changed = {"d2": f"own2 changed {numbers.stop}"} if len(numbers) > 1 else {}  # a single row is only added
            self._write({**_texts(range(numbers.stop), seed), **changed}, without="d1" if changed else "")
            SearchEngine(path).update()
        else:
            self._write(_texts(numbers, seed))
            _build(NOTES, path, mode)

    def read(self, path: Path) -> object:
        """All posts by docno, and what every search finds."""
        docnos, texts, found = super().read(path)
        return sorted(zip(docnos, texts, strict=True)), found

    def _write(self, texts: dict[str, str], without: str = "") -> None:
        """Make the folder hold these files and no others; one that is right already is not touched."""
        wanted = {NOTES / f"{name}.md": text for name, text in texts.items() if name != without}
        for file in NOTES.iterdir():
            if file not in wanted:
                file.unlink()
        for file, text in wanted.items():
            if not file.exists() or file.read_text() != text:
                file.unlink(missing_ok=True)  # another user's, where the folder of an engine is read-only
                file.write_text(text)
