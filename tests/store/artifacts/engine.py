"""A search engine: every post has a distinct word, and some a formula."""

import atexit
import shutil
import tempfile
from pathlib import Path

import pandas as pd
import torch

from pyterrier_mathamr.amr.dependency.syntax import bundled_net
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.graph import GraphBuilder, Vocabulary
from pyterrier_mathamr.model import MathAMR, MathAMRConfig
from pyterrier_mathamr.model.networks import random_network
from pyterrier_mathamr.posts import post_from_html

open = SearchEngine
DELETED = ["d1"]
"""One post of eight: if more were deleted, the engine would be compacted at once."""
REPEATS = ("append", "delete", "compact")
"""Actions that succeed when run again, even if killed after the last step that counts."""
WORDS = ("series", "matrix", "boundary")
QUERY = "series of a matrix own3 with $x_3^2$"

torch.set_num_threads(1)  # others do not survive a fork
bundled_net()  # loaded once instead of in every fork
# A small model, since every trial reads it.
MODEL = Path(tempfile.mkdtemp(prefix="model-"))
MODEL.chmod(0o755)
atexit.register(shutil.rmtree, MODEL, ignore_errors=True)


def _save_small_model() -> None:
    posts = pd.DataFrame({"docno": ["d"], "text": [f"{QUERY}. {' '.join(WORDS)}"]})
    vocabulary = Vocabulary.build(GraphBuilder()(posts)["graph"], min_role_count=1)
    config = MathAMRConfig(layers=1, hidden=16, projection=8, bases=4)
    MathAMR(config, vocabulary, random_network(config, vocabulary).state_dict()).save(MODEL / "small")


_save_small_model()


def build(path: Path, rows: range, mode: str = "create", seed: int = 0) -> None:
    """Build an engine, or add to it; the same call continues what was stopped."""
    posts = [{"docno": f"d{i}", "text": f"own{i} {WORDS[(i + seed) % 3]}" + f" $x_{i}^{seed}$" * (i % 2)} for i in rows]
    if mode == "append":
        SearchEngine(path).add(posts)
    else:
        options = {"model": MODEL / "small", "overwrite": mode == "overwrite", "verbose": False}
        SearchEngine.build(posts, path, **options)


def read(path: Path) -> object:
    """All posts, and what every search finds; all indexes must agree."""
    engine = SearchEngine(path).snapshot()
    docnos = engine.docnos()
    indexes = engine.indexes
    for index in (indexes.graphs, indexes.bm25, indexes.vectors):
        assert sorted(index.snapshot()) == sorted(docnos), index
    found = [engine.search(QUERY, k=20), engine.search_formula("x_3^0", k=20)]
    posts = indexes.posts.get_many(docnos)
    texts = [[post_from_html(post.title).text, post_from_html(post.html).text] for post in posts]
    return docnos, texts, [[*table["docno"], *table["score"].round(3)] for table in found]
