"""Common to all systems: an option out of its range is refused by its name, before anything is read."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from node_stand_in import HashedNodes

from mathamr_systems import (
    ApproachZeroIndex,
    ColBERT,
    ColBERTOptions,
    ColBERTTraining,
    EditCosts,
    EditDistanceReranker,
    ExtractAnswer,
    FastTextOptions,
    FitOptions,
    FormulaContexts,
    FormulaFeatures,
    FormulaQuery,
    FormulaTrees,
    InOutIndex,
    LinkedPosts,
    MaRF,
    MaRFConfig,
    MaRFIndex,
    MathAMRSentenceBERT,
    PairwiseRanker,
    QASim,
    QQSim,
    QueryReduction,
    RankingSVM,
    TangentCFT,
    TangentS,
    ThreadStore,
    formula_documents,
    linearise,
    math_tokens,
    tree_edit_distance,
)
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.formula import FormulaTree
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.sparse import BM25Index, TangentIndex

TREES, LEAF = FormulaTrees("trees"), FormulaTree(("V!x",), (), kind="slt")
NO_COUNT = (0, -1, 1.5, True)
REFUSED: list[tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = [
    (ApproachZeroIndex("a0").retriever, {"eta": (-0.1, 1.1)}),
    (TangentCFT("cft").retriever, {"mode": ("cft3",), "candidates": NO_COUNT}),
    (
        FastTextOptions,
        {"dimensions": (-1, 1001), "epochs": NO_COUNT, "seed": (-1,)}
        | dict.fromkeys(("context", "negatives", "min_ngram", "max_ngram", "min_count"), (-1,)),
    ),
    (ColBERTTraining, {"loss": ("other",)}),
    (ColBERT.new, {"preset": ("huge",)}),
    (MaRF.new, {"preset": ("huge",)}),
    (ColBERTOptions.from_dict, {"options": ({"depth": 1},)}),
    (
        lambda costs: tree_edit_distance(LEAF, LEAF, EditCosts(rename=costs)),
        {"costs": (-0.1, float("nan"), float("inf"))},
    ),
    (partial(EditDistanceReranker, TREES), {"combine": ("sum",)}),
    (
        partial(ExtractAnswer, SimpleNamespace()),
        {"posts": ("all",), "start": ("end",), "depth": NO_COUNT, "sizes": ((6, 5), 5), "limit": NO_COUNT},
    ),
    (partial(ExtractAnswer, SimpleNamespace(), "remap"), {"threads": (None,)}),
    (
        partial(FormulaFeatures, TREES),
        {"tuples": ("jaccard",), "nodes": ("mean",), "costs": ("unit",), "max_nodes": NO_COUNT},
    ),
    (partial(formula_documents, []), {"context": ("sentence",), "words": NO_COUNT, "instances": NO_COUNT}),
    (FormulaQuery, {"context": ("sentence",), "words": NO_COUNT}),
    (InOutIndex("f", HashedNodes()).retriever, {"temperature": (0,), "combine": ("sum",)}),
    (
        MaRFConfig,
        {"text": ("html",), "formulas": NO_COUNT, "dropout": (1,), "formula_heads": (3,), "keys": ("other",)},
    ),
    (MaRFIndex("marf").retriever, {"exact": (False,)}),
    (partial(math_tokens, "1"), {"numbers": ("words",)}),
    (FormulaContexts, {"window": (*NO_COUNT, 2, 1.0)}),
    (MathAMRSentenceBERT.new, {"representation": ("slt",)}),
    (QASim.new, {"kind": ("tri",)}),
    (QQSim.new, {"view": ("middle",)}),
    (FitOptions, {"epochs": NO_COUNT, "batch_size": NO_COUNT, "layers": NO_COUNT, "learning_rate": (-1,)}),
    (
        PairwiseRanker,
        {"c": (0, -1.0, float("nan"), (1.0, 0.0), ()), "loss": ("hinge",), "weights": ((1.0, float("inf")),)},
    ),
    (RankingSVM, {"C": (0,), "tolerance": (-1,)}),
    (
        partial(QueryReduction, BM25Index("words")),
        {"words": (-1,), "formulas": (1.5,), "weights": ({"word": {}}, {"word": {"root": 1.0}, "formula": {}})},
    ),
    (partial(TangentS, TangentIndex("pairs"), TREES), {"weights": ((1.0, 2.0),)}),
    (partial(linearise, MathAMRGraph.from_penman("(a / and)")), {"order": ("breadth",)}),
    (partial(LinkedPosts, threads=ThreadStore("threads")), {"links": (pd.DataFrame({"qid": ["t"]}),)}),
]


@pytest.mark.parametrize(("make", "options"), REFUSED)
def test_an_option_out_of_its_range_is_refused_by_its_name(
    make: Callable[..., Any], options: dict[str, tuple[Any, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for option, values in options.items():
        for value in values:
            with pytest.raises(ConfigError) as refused:
                make(**{option: value})
            assert refused.value.option == option
    assert not list(tmp_path.iterdir())
