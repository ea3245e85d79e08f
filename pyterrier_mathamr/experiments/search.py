"""The ways to search that experiments compare (MathAMR+, section 3.5.2), each under its name in the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.arqmath import VisualIdDeduplication
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.fusion import ZScoreFusion, fuse_rankings
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.sparse import BM25Index

from .measuring import Way, fitted_weight, run_systems
from .measuring.topics import TopicSet

PAPER_ANSWERS = 33_771
"""Answers in the index of the paper's experiments, which its numbers of candidates refer to."""
HNSW_HITS = 128
BM25 = "BM25"
SINGLE = "single vector"
DOC_VN = "doc-VN + MaxSim (k = 1000)"
COLBERT = "ColBERT-style"
SCORER = "BM25 % 1000 >> scorer"
FUSION = "BM25 + ColBERT-style"
EQUAL_FUSION = "BM25 + ColBERT-style, equal weights"

FORMULA_DEPTH = 10_000
"""Formulas that are ranked before de-duplication; half of a collection's formulas look like another one."""
DISTINCT_FORMULAS = 1000
"""Visually distinct formulas of a ranking, as Task 2 allows."""


@dataclass(frozen=True, slots=True)
class Depth:
    """The length of rankings.

    Attributes:
        results: documents for each query.
        scale: the factor for the paper's numbers of candidates.
    """

    results: int = 1000
    scale: float = 1.0

    @classmethod
    def scaled(cls, answers: int) -> Depth:
        """Shorten rankings and candidates to the share of the collection that they are in the paper."""
        scale = min(1.0, max(0.01, answers / PAPER_ANSWERS))
        return cls(round(1000 * scale), scale)

    def candidates(self, number: int) -> int:
        """Scale a number of candidates."""
        return round(number * self.scale)


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to search.

    Attributes:
        name: in every table, with the number of candidates of an index of the paper's size; see :meth:`label`.
        way: which retriever or pipeline.
        approximate: by HNSW.
        candidates: of the first stage, in an index of the paper's size.
        weight: of MaxSim in a fusion; ``None`` is the fitted weight.
    """

    name: str
    way: Literal["bm25", "single", "doc_vn", "colbert", "scorer", "fusion"]
    approximate: bool = False
    candidates: int = 1000
    weight: float | None = None

    def label(self, depth: Depth) -> str:
        """Return the name with the number of candidates at this depth, such as ``BM25 % 101 >> scorer``."""
        if self.way not in ("doc_vn", "scorer"):
            return self.name
        return self.name.replace(str(self.candidates), str(depth.candidates(self.candidates)))

    @property
    def needs_document(self) -> bool:
        """Whether it searches by the document's own vector, which ``virtual_nodes='none'`` does not have."""
        return self.way in ("single", "doc_vn")

    def system(self, index: MathAMRIndex, bm25: pt.Transformer, depth: Depth, weight: float = 0.5) -> pt.Transformer:
        """Make the transformer from queries with ``query_embs`` to a ranking."""
        results, candidates, exact = depth.results, depth.candidates(self.candidates), not self.approximate
        if self.way == "bm25":
            return (bm25 % results).compile()
        if self.way == "single":
            return index.single_vector(num_results=results, exact=exact)
        if self.way == "doc_vn":
            return index.doc_vn(candidates, num_results=min(candidates, results), exact=exact)
        if self.way == "scorer":
            return (bm25 % candidates).compile() >> index.scorer()
        colbert = index.colbert(num_results=results, exact=exact, hits=HNSW_HITS)
        if self.way == "colbert":
            return colbert
        return ZScoreFusion((bm25 % results).compile(), colbert, weight=self.share(weight), num_results=results)

    def share(self, fitted: float) -> float:
        """Return the weight of MaxSim in a fusion, its own or the fitted one."""
        return fitted if self.weight is None else self.weight


STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy(BM25, "bm25"),
        Strategy(SINGLE, "single"),
        Strategy(f"{SINGLE}, HNSW", "single", approximate=True),
        Strategy(DOC_VN, "doc_vn"),
        Strategy(f"{DOC_VN}, HNSW", "doc_vn", approximate=True),
        Strategy("doc-VN + MaxSim (k = 5000)", "doc_vn", candidates=5000),
        Strategy("doc-VN + MaxSim (k = 5000), HNSW", "doc_vn", approximate=True, candidates=5000),
        Strategy(COLBERT, "colbert"),
        Strategy(f"{COLBERT}, HNSW", "colbert", approximate=True),
        Strategy(SCORER, "scorer"),
        Strategy(FUSION, "fusion"),
        Strategy(EQUAL_FUSION, "fusion", weight=0.5),
    )
}
TASK1 = {name: STRATEGIES[name] for name in (BM25, SINGLE, DOC_VN, COLBERT, SCORER, FUSION)}
"""The systems of Task 1; the first is the baseline."""


def search_systems(
    bm25: pt.Transformer,
    encode: pt.Transformer,
    index: MathAMRIndex,
    *,
    num_results: int = 1000,
    candidates: int = 1000,
    weight: float = 0.5,
) -> dict[str, pt.Transformer]:
    """Make the systems of Task 1: BM25, the strategies of MathAMR+ (section 3.5.2), and the fusion of both.

    Args:
        bm25: queries to a ranking.
        encode: queries to ``query_embs``; ``pt.Transformer.identity()`` for queries that have them.
        index: the answers.
        num_results: length of the rankings.
        candidates: documents that the first stage of doc-VN, and BM25, hand to the exact MaxSim.
        weight: of MaxSim in the fusion.

    Returns:
        Name, with the number of candidates, to system; the first is the baseline.
    """
    depth = Depth(num_results, candidates / 1000)
    made = {strategy.label(depth): strategy.system(index, bm25, depth, weight) for strategy in TASK1.values()}
    return {name: system if name == BM25 else encode >> system for name, system in made.items()}


@dataclass(eq=False)
class Search:
    """Searches with the strategies of one model; each query is encoded once for all of them.

    Attributes:
        model: the encoder.
        index: the answers' vectors.
        bm25: the answers' terms.
        strategies: by their names in the tables.
        depth: length of the rankings.
        device: to encode on; ``None`` is the best available.
        weight: of MaxSim in the fitted fusion; see :meth:`fit`.
    """

    model: MathAMR
    index: MathAMRIndex
    bm25: BM25Index
    strategies: Mapping[str, Strategy]
    depth: Depth = Depth()
    device: str | None = None
    weight: float = 0.5

    def systems(self) -> dict[str, pt.Transformer]:
        """Make the transformers from encoded topics to rankings."""
        bm25 = self.bm25.retriever(self.depth.results)
        made = self.strategies.items()
        return {name: strategy.system(self.index, bm25, self.depth, self.weight) for name, strategy in made}

    def encode(self, found: TopicSet) -> pd.DataFrame:
        """Add ``query_embs`` to topics, from their stored graphs."""
        encoder = self.model.query_encoder(device=self.device)
        encoded: pd.DataFrame = (found.graphs.loader(side="query") >> encoder)(found.topics)
        return encoded.drop(columns="query_graph")

    def ways(self, trees: FormulaStore | None = None) -> dict[str, Way]:
        """Make the systems from the text of topics to rankings, in the two parts that are timed."""
        encode = GraphBuilder(store=trees) >> self.model.query_encoder(device=self.device)
        return {name: Way(system, None if name == BM25 else encode) for name, system in self.systems().items()}

    def rankings(self, topics: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Search with each strategy once, and fuse the rankings of BM25 and ColBERT-style search."""
        fusions = {name: strategy for name, strategy in self.strategies.items() if strategy.way == "fusion"}
        systems = {name: system for name, system in self.systems().items() if name not in fusions}
        found, _ = run_systems(systems, topics)
        for name, fusion in fusions.items():
            found[name] = fuse_rankings(found[BM25], found[COLBERT], fusion.share(self.weight), self.depth.results)
        return found

    def fit(self, questions: TopicSet) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Fit the weight of the fusion to questions, and return the rankings of BM25 and ColBERT-style search."""
        systems = self.systems()
        found, _ = run_systems({name: systems[name] for name in (BM25, COLBERT)}, self.encode(questions))
        self.weight = fitted_weight(found[BM25], found[COLBERT], questions.qrels)
        return found[BM25], found[COLBERT]


def distinct(system: pt.Transformer) -> pt.Transformer:
    """Rank visually distinct formulas, as the evaluation of Task 2 does."""
    return system >> VisualIdDeduplication() >> pt.RankCutoff(DISTINCT_FORMULAS)
