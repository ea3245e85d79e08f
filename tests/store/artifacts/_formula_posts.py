"""Posts of one formula each, with distinct ids; some are the same expression."""

from typing import Any

from pyterrier_mathamr.sparse import index as sparse

LATEX = ("x^2+1", "a+b", r"\frac{x}{y}", "x^2")


def build(index: Any, rows: range, mode: str, seed: int, **options: Any) -> None:
    """Write posts in parts of two; parts of a run that died are recognized."""
    sparse.PART_BYTES, sparse.BATCH = 1, 2
    spans = ((i, f'<span class="math-container" id="d{i}">{LATEX[(i + seed) % 4]}</span>') for i in rows)
    posts = ({"docno": f"p{i}", "html": span} for i, span in spans)
    visual_ids = {f"d{i}": f"v{seed}-{i % 4}" for i in range(12)}
    index.indexer(mode, resume=True, visual_ids=visual_ids, **options).index(posts)
