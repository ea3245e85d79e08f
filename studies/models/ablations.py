"""Ablations of our own as data: the effect of each option, with message passing and without.

Without message passing (``layers=0``) a virtual node keeps its initial value, so all conditions except in
``ablation/initial`` start from the mean of its members. Each option is tested against the plain model, and each model
without message passing against the same model with two layers.
"""

from __future__ import annotations

from typing import Any

from mathamr_systems.experiments.preparing import BEST_BAGS, BEST_LOOKUP, MEAN
from mathamr_systems.experiments.systems import COLBERT
from studies.study import Condition, Recipe, Row, Study, condition

from .paper import SEEDS

_PLAIN = "plain"
_WITHOUT = ", layers = 0"


def _crossed(name: str, title: str, *options: Condition, **shared: Any) -> Study:
    """Make a study of options, each with two layers and without."""
    conditions, rows, first = [], [], (options[0].name, COLBERT)
    for option in options:
        plain = option.name + _WITHOUT
        changes = {**MEAN, **shared, **dict(option.changes)}
        conditions.append(condition(option.name, option.recipe, **{"layers": 2, **changes}))
        conditions.append(condition(plain, option.recipe, **{**changes, "layers": 0}))
        rows.append(Row(option.name, against=None if option is options[0] else first))
        rows.append(Row(plain, against=(option.name, COLBERT)))
    return Study(name, title, conditions=tuple(conditions), rows=tuple(rows), seeds=SEEDS)


def _listed(name: str, title: str, *conditions: Condition) -> Study:
    """Make a study whose conditions are tested against the first."""
    first = (conditions[0].name, COLBERT)
    rows = (Row(c.name, against=None if c is conditions[0] else first) for c in conditions)
    return Study(name, title, conditions=conditions, rows=tuple(rows), seeds=SEEDS)


_LAYERS = (condition(f"layers = {layers}", layers=layers, **MEAN) for layers in (4, 0, 1, 2))
_BEST_TEXT: dict[str, Any] = {
    "features": "text",
    "kind_means": True,
    "projection": 384,
    "layers": 0,
    "beta": 0.3,
    "batch_size": 128,
    "learning_rate": 1e-4,
}
_FITTED = Recipe(fitted=True)
_FITTED_COLLECTION = Recipe(pairs="collection", fitted=True)

ABLATIONS = (
    _listed("ablation/layers", "Message passing", *_LAYERS),
    _listed(
        "ablation/initial",
        "Initial value of virtual nodes",
        condition("zero, layers = 4"),
        condition("random, layers = 4", initialisation="random"),
        condition("mean, layers = 4", **MEAN),
        condition("mean, layers = 0", layers=0, **MEAN),
    ),
    _crossed(
        "ablation/features",
        "Labels learned, from word vectors, or text",
        condition("lookup"),
        condition("words", features="words"),
        condition("bags", features="words", word_residual=True),
        condition("text", features="text"),
        projection=128,
    ),
    _crossed(
        "ablation/weights",
        "Weights of the kinds of rows and of the document vector",
        condition(_PLAIN),
        condition("learned in training", kind_weights="learned", document_blend="learned"),
        condition("fitted after training", _FITTED),
        beta=0.5,
    ),
    _crossed(
        "ablation/negatives",
        "Hard negatives",
        condition(_PLAIN),
        condition("BM25", Recipe(negatives="bm25"), hard_negatives=2),
        condition("same tags", Recipe(negatives="tags"), hard_negatives=2),
        condition("the model itself", Recipe(negatives="model"), hard_negatives=2),
    ),
    _crossed(
        "ablation/pairs",
        "Pairs from outside the collection and linked questions",
        condition("collection", Recipe(pairs="collection")),
        condition("all"),
        condition("outside first", Recipe(pairs="first"), first_epochs=2),
        condition("collection and duplicates", Recipe(pairs="collection", links="duplicate")),
        condition("collection and all links", Recipe(pairs="collection", links="all")),
    ),
    _crossed(
        "ablation/batch",
        "Pairs in a batch",
        condition("32"),
        condition("128", batch_size=128),
        condition("256", batch_size=256),
    ),
    _crossed(
        "ablation/roles",
        "Rare roles as separate relations",
        condition("5 or more", min_role_count=5),
        condition("all", min_role_count=1),
    ),
    _listed(
        "best/lookup",
        "Without a text encoder at query time",
        condition("bags", _FITTED_COLLECTION, **BEST_BAGS),
        condition("bags, layers = 0", _FITTED_COLLECTION, **{**BEST_BAGS, "layers": 0}),
        condition("words", _FITTED, **BEST_LOOKUP),
        condition("words, layers = 0", _FITTED, **{**BEST_LOOKUP, "layers": 0}),
    ),
    _listed(
        "best/text",
        "With a text encoder",
        condition("text", _FITTED, **_BEST_TEXT),
        condition("text, layers = 2", _FITTED, **{**_BEST_TEXT, "layers": 2}),
        condition("text, 128 dimensions", _FITTED, **{**_BEST_TEXT, "projection": 128}),
        condition("text, sums of best matches", _FITTED, **{**_BEST_TEXT, "kind_means": False}),
    ),
)
