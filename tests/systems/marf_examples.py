"""A tiny MaRF and the posts that it reads."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tiny_models import tiny_bert

from mathamr_systems import MaRF, MaRFConfig, MaRFTraining
from pyterrier_mathamr.posts import post_from_text

TEXTS = {
    "d0": r"prove the sum of $\frac{x}{2} + 1$",
    "d1": r"the sum of $x^2$ is $y+1+2$, $\frac12 y$ less",
    "d2": "limit",
    "d3": r"the limit is $x+y$, two",
    "d4": r"sum $\frac12 x$ and $x^{y}$",
    "d5": "fraction of two",
    "d6": "the sum is two of two, prove the limit $x$",
}
DOCUMENTS = pd.DataFrame({"docno": list(TEXTS), "text": list(TEXTS.values())})
POSTS = {docno: post_from_text(text) for docno, text in TEXTS.items()}
QUERIES = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["the sum of $x^2$ and $y+1$", "limit of two", "prove"]})
PAIRS = [("d0", "d1"), ("d3", "d4"), ("d1", "d4"), ("d2", "d5"), ("d4", "d0"), ("d6", "d3")]
EXACT = {"precision": "float32", "device": "cpu"}


def tiny_config(**options: Any) -> MaRFConfig:
    """Sizes of a few numbers."""
    sizes = {"formula_layers": 1, "formula_heads": 2, "formula_width": 8, "formula_hidden": 16, "heads": 2}
    return MaRFConfig(**{**sizes, "formulas": 2, "dropout": 0.0, **options})


def tiny_marf(folder: Path, backbone: Path | None = None, training: MaRFTraining | None = None, **options: Any) -> MaRF:
    """Make an untrained model."""
    path = backbone or tiny_bert(folder / "bert")
    made = training or MaRFTraining(epochs=1, batch=6, formula_batch=4, formula_steps=4)
    return MaRF.new(str(path), POSTS.values(), config=tiny_config(**options), training=made, min_count=1, device="cpu")


def fusing(marf: MaRF) -> MaRF:
    """Give the last layer of the fusion random weights, so that formulas have an effect."""
    with torch.no_grad():
        torch.manual_seed(1)
        last = marf._network.fusion.network[-1]
        last.weight.normal_(std=2.0)
    vars(marf).pop("identity", None)
    return marf
