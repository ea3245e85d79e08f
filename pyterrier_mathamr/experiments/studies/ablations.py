"""Our own questions as data: what each option is worth, always with ``layers=0``, the model without message passing."""

from __future__ import annotations

from .definition import Study, condition, each_against_first

_PLAIN = condition("layers = 0", layers=0)
_LAYERS = (
    condition("layers = 4", layers=4),
    _PLAIN,
    condition("layers = 1", layers=1),
    condition("layers = 2", layers=2),
)
_INITIAL = (
    condition("layers = 4, zero"),
    condition("layers = 4, mean", initialisation="mean", learned="projection"),
    condition("layers = 1, mean", layers=1, initialisation="mean", learned="projection"),
    condition("layers = 0, mean", layers=0, initialisation="mean", learned="projection"),
)
_PAIRS = (
    condition("all pairs"),
    condition("pairs of the collection", pairs="collection"),
    condition("all pairs, layers = 0", layers=0, initialisation="mean", learned="projection"),
    condition(
        "pairs of the collection, layers = 0", pairs="collection", layers=0, initialisation="mean", learned="projection"
    ),
)

ABLATIONS = (
    Study("ablation/layers", "Message passing", _LAYERS, each_against_first(_LAYERS)),
    Study(
        "ablation/initial",
        "First value of virtual nodes, with and without message passing",
        _INITIAL,
        each_against_first(_INITIAL),
    ),
    Study("ablation/pairs", "Pairs from outside the collection", _PAIRS, each_against_first(_PAIRS)),
)
