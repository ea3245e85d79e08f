"""The ways to search that studies compare (MathAMR+, section 3.5.2), each under the name it has in every table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyterrier as pt

from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.systems import BM25Index

PAPER_ANSWERS = 33_771
"""Answers in the index of the paper's experiments, of which its candidate numbers are a part."""
HNSW_HITS = 128
FLOOR = "random order of the judged"
BM25 = "BM25"
SINGLE = "single vector"
DOC_VN = "doc-VN + MaxSim (k = 1000)"
COLBERT = "ColBERT-style"
FUSION = "BM25 + ColBERT-style"
EQUAL_FUSION = "BM25 + ColBERT-style, equal weights"
FORMULAS, TANGENT = "formula vectors", "Tangent"
"""Of Task 2: the vectors of single formulas, and the search by symbol pairs that stands beside them."""


@dataclass(frozen=True, slots=True)
class Depth:
    """How long rankings are.

    Attributes:
        results: documents for each query.
        scale: what the paper's numbers of candidates are multiplied by.
    """

    results: int = 1000
    scale: float = 1.0

    @classmethod
    def scaled(cls, answers: int) -> Depth:
        """Shorten rankings and candidates to the share of the collection that they are in the paper.

        Args:
            answers: in the index.
        """
        scale = min(1.0, answers / PAPER_ANSWERS)
        return cls(max(10, round(1000 * scale)), scale)

    def candidates(self, number: int) -> int:
        """Scale a number of candidates; at least 10."""
        return max(10, round(number * self.scale))


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to search.

    Attributes:
        name: in every table.
        way: which retriever or pipeline.
        approximate: by HNSW.
        candidates: of the first stage of doc-VN, in an index of the paper's size.
    """

    name: str
    way: Literal["bm25", "single", "doc_vn", "colbert", "scorer", "fusion"]
    approximate: bool = False
    candidates: int = 0

    @property
    def needs_document(self) -> bool:
        """Whether it searches by the document's own vector, which ``virtual_nodes='none'`` does not have."""
        return self.way in ("single", "doc_vn")

    def system(self, index: MathAMRIndex, bm25: BM25Index, depth: Depth) -> pt.Transformer:
        """Make the transformer from queries with ``query_embs`` to a ranking.

        Args:
            index: the answers' vectors.
            bm25: the answers' tokens.
            depth: length of the rankings.
        """
        first, exact = bm25.retriever(num_results=depth.results), not self.approximate
        if self.way == "bm25":
            return first
        if self.way == "single":
            return index.single_vector(num_results=depth.results, exact=exact)
        if self.way == "doc_vn":
            found = depth.candidates(self.candidates)
            return index.doc_vn(found, num_results=min(found, depth.results), exact=exact)
        if self.way == "scorer":
            return first >> index.scorer()
        return index.colbert(num_results=depth.results, exact=exact, hits=HNSW_HITS)


STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy(BM25, "bm25"),
        Strategy(SINGLE, "single"),
        Strategy(f"{SINGLE}, HNSW", "single", approximate=True),
        Strategy(DOC_VN, "doc_vn", candidates=1000),
        Strategy(f"{DOC_VN}, HNSW", "doc_vn", approximate=True, candidates=1000),
        Strategy("doc-VN + MaxSim (k = 5000)", "doc_vn", candidates=5000),
        Strategy("doc-VN + MaxSim (k = 5000), HNSW", "doc_vn", approximate=True, candidates=5000),
        Strategy(COLBERT, "colbert"),
        Strategy(f"{COLBERT}, HNSW", "colbert", approximate=True),
        Strategy("BM25 >> scorer", "scorer"),
        Strategy(FUSION, "fusion"),
        Strategy(EQUAL_FUSION, "fusion"),
    )
}
STANDARD = (BM25, SINGLE, DOC_VN, COLBERT, "BM25 >> scorer", FUSION, EQUAL_FUSION)
"""What is measured of every condition."""
