"""The six training conditions: which graphs of a formula are paired (Amador and Zanibbi, ICTIR 2025, section 3).

In a pairing ``(first, second)`` each node of the first graph asks for the most similar node of the second::

    slg   the layout tree with its edges both ways        slg-sub   a sub-expression of it, drawn anew each epoch
    opg   the operator tree likewise                      opg-sub   likewise

    condition      pairings
    slg            slg▸slg-sub
    opg                          opg▸opg-sub
    slg+opg                                     slg▸opg  opg▸slg
    inner          slg▸slg-sub   opg▸opg-sub    slg▸opg  opg▸slg
    outer                                       slg▸opg  opg▸slg   slg▸opg-sub  opg▸slg-sub
    inner+outer    slg▸slg-sub   opg▸opg-sub    slg▸opg  opg▸slg   slg▸opg-sub  opg▸slg-sub
"""

from __future__ import annotations

from typing import Literal

from pyterrier_mathamr.formula.packed_trees import Packed

Condition = Literal["slg", "opg", "slg+opg", "inner", "outer", "inner+outer"]
GraphName = Literal["slg", "opg", "slg-sub", "opg-sub"]
Pairing = tuple[GraphName, GraphName]

_SLG: tuple[Pairing, ...] = (("slg", "slg-sub"),)
_OPG: tuple[Pairing, ...] = (("opg", "opg-sub"),)
_WHOLE: tuple[Pairing, ...] = (("slg", "opg"), ("opg", "slg"))
_ACROSS: tuple[Pairing, ...] = (("slg", "opg-sub"), ("opg", "slg-sub"))

PAIRINGS: dict[Condition, tuple[Pairing, ...]] = {
    "slg": _SLG,
    "opg": _OPG,
    "slg+opg": _WHOLE,
    "inner": (*_SLG, *_OPG, *_WHOLE),
    "outer": (*_WHOLE, *_ACROSS),
    "inner+outer": (*_SLG, *_OPG, *_WHOLE, *_ACROSS),
}
"""The pairings of each condition."""

TREE_OF: dict[GraphName, Packed] = {"slg": "slt", "slg-sub": "slt", "opg": "opt", "opg-sub": "opt"}
"""The tree that each graph is made from."""


def kinds_of(condition: Condition) -> tuple[Packed, ...]:
    """List the kinds of trees that a condition has an encoder for."""
    used = {TREE_OF[name] for pairing in PAIRINGS[condition] for name in pairing}
    return tuple(kind for kind in ("slt", "opt") if kind in used)
