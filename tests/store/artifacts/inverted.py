"""Inverted indexes: of words, and of formulas, where some documents have the same expression."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from artifact_modules import Artifact

from pyterrier_mathamr.sparse import index as sparse

WORDS = ("series", "matrix", "boundary")
LATEX = ("x^2+1", "a+b", r"\frac{x}{y}", "x^2")
CFT = Path(__file__).resolve().parents[2] / "data" / "cft-format-1"


class BM25(Artifact, name="bm25"):
    """Every document has a distinct word, one of three common ones, and a formula."""

    KIND = "pyterrier_mathamr.sparse:BM25Index"

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        sparse.PART_BYTES, sparse.BATCH = 1, 2
        documents = ({"docno": f"d{i}", "text": f"own{i} {WORDS[(i + seed) % 3]} $x^{seed}$"} for i in numbers)
        self.open(path).indexer(mode, resume=True).index(documents)

    def read(self, path: Path) -> object:
        """All docnos in order, all term counts, and a ranking."""
        index = self.open(path)
        postings = index.snapshot().postings
        found = index.retriever()(pd.DataFrame({"qid": ["1"], "query": ["series matrix $x^0$ own3"]}))
        return [
            index.snapshot().tokens.to_dict(),
            [row["docno"] for row in index.get_corpus_iter()],
            [list(postings.names), *(getattr(postings, name).tolist() for name in ("offsets", "documents", "counts"))],
            found[["docno", "score", "rank"]].round(5).to_numpy().tolist(),
        ]


class OfFormulas(Artifact):
    """An index of posts with one formula each, of distinct ids."""

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        sparse.PART_BYTES, sparse.BATCH = 1, 2
        spans = ((i, f'<span class="math-container" id="d{i}">{LATEX[(i + seed) % 4]}</span>') for i in numbers)
        visual_ids = {f"d{i}": f"v{seed}-{i % 4}" for i in range(12)}
        indexer = self.open(path).indexer(mode, resume=True, visual_ids=visual_ids, **self.options())
        indexer.index({"docno": f"p{i}", "html": span} for i, span in spans)

    def options(self) -> dict[str, Any]:
        return {}

    def read(self, path: Path) -> object:
        """All formulas with their posts, and what is particular to the index."""
        index = self.open(path)
        return [sorted(map(str, index.get_corpus_iter())), self.details(index)]

    def details(self, index: Any) -> object:
        raise NotImplementedError


class Tangent(OfFormulas, name="tangent"):
    KIND = "pyterrier_mathamr.sparse:TangentIndex"

    def details(self, index: Any) -> object:
        """All pairs, and a ranking."""
        pairs = index.snapshot().expressions.payload
        return [
            index.pair_options().to_dict(),
            [(list(kind.names), kind.documents.tolist(), kind.counts.tolist()) for kind in (pairs.slt, pairs.opt)],
            ranking_of(index),
        ]


def ranking_of(index: Any) -> list[Any]:
    found = index.retriever()(pd.DataFrame({"qid": ["1"], "latex": ["x^2+b"]}))
    return found[["docno", "post_id", "visual_id", "score", "rank"]].round(5).to_numpy().tolist()


class Patterns(OfFormulas, name="patterns"):
    KIND = "pyterrier_mathamr.sparse:PatternIndex"

    def details(self, index: Any) -> object:
        return index.retriever().search("?a+?b")[["docno", "post_id", "visual_id"]].to_numpy().tolist()


class ApproachZero(OfFormulas, name="approach0"):
    KIND = "mathamr_systems:ApproachZeroIndex"

    def details(self, index: Any) -> object:
        """All paths, and a ranking."""
        paths = index.snapshot().expressions.payload.arrays()
        return {name: array.tolist() for name, array in paths.items()}, ranking_of(index)


class Trees(OfFormulas, name="formula_trees"):
    KIND = "mathamr_systems:FormulaTrees"

    def details(self, index: Any) -> object:
        """Both trees of each formula."""
        packed = index.snapshot().expressions.payload
        pairs = [index.get(entry["docno"]) for entry in index.get_corpus_iter()]
        return sorted(map(str, pairs)), list(packed.slt.names), list(packed.opt.names)


class CFT2(OfFormulas, name="cft"):
    """With a trained encoder."""

    KIND = "mathamr_systems:TangentCFT"

    def options(self) -> dict[str, Any]:
        return {"model": self.open(CFT)}

    def details(self, index: Any) -> object:
        """The vectors of all formulas in order, and of the encoder's words."""
        entries = sorted(entry["docno"] for entry in index.get_corpus_iter())
        snapshot = index.snapshot()
        expressions = snapshot.expressions_of(entries)
        words = snapshot.encoder().words.values() if entries else ()
        vectors = [rows[expressions].tolist() for rows in snapshot.expressions.payload.rows.values()]
        return vectors, [np.asarray(kind.vectors).tolist() for kind in words]


class InOut(OfFormulas, name="in_out"):
    KIND = "mathamr_systems:InOutIndex"

    def open(self, path: Path) -> Any:
        """The artifact with a model that knows only labels."""

        def row(label: str) -> np.ndarray:
            drawn = np.random.default_rng(zlib.crc32(label.encode())).standard_normal(4)
            return (drawn / np.linalg.norm(drawn)).astype(np.float32)

        def encode(trees: Sequence[Any], kind: str, *, distinct: bool = True) -> list[np.ndarray]:
            return [np.array([row(label) for label in tree.nodes if tree]).reshape(-1, 4) for tree in trees if tree]

        from mathamr_systems import InOutIndex

        return InOutIndex(path, SimpleNamespace(identity="labels", kinds=("slt", "opt"), encode=encode))

    def details(self, index: Any) -> object:
        """What searches find."""
        found = [index.retriever(combine=combine).search("x^2+y") for combine in ("max", "rrf")]
        return [each[["docno", "rank"]].assign(score=each["score"].round(5)).values.tolist() for each in found]
