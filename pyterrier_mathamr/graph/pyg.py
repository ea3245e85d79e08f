"""`MathAMRGraph` to a `Data` of torch-geometric and back: the graph as written, without virtual nodes.

::

    (e / equal-01 :ARG1 (f / FORMULA_0))    labels  equal-01  FORMULA_0     edge_index  [[0], [1]]
                                            node_type   0         0         edge_type   [0], of roles [":ARG1"]

The arrays that a model reads, with virtual nodes and inverse edges, are `GraphTensors`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch_geometric.data import Data

from pyterrier_mathamr.amr import AmrGraph

from .errors import GraphError
from .mathamr import MathAMRGraph
from .structure import layout_of

_AMR = [field.name for field in dataclasses.fields(AmrGraph) if field.name not in ("edges", "texts")]
_POST = [field.name for field in dataclasses.fields(MathAMRGraph) if field.name != "amr"]


def to_pyg(graph: MathAMRGraph, roles: Sequence[str] | None) -> Data:
    amr, layout = graph.amr, layout_of(graph.amr, graph.n_formulas, graph.id)
    names = sorted({role for _, role, _ in amr.edges}) if roles is None else list(roles)
    number_of = {role: number for number, role in enumerate(names)}
    if unknown := sorted({role for _, role, _ in amr.edges} - number_of.keys()):
        raise GraphError(f"graph {graph.id!r}", f"the roles {', '.join(unknown[:5])} are not in `roles`")
    ends = torch.tensor([(source, target) for source, _, target in amr.edges], dtype=torch.int64)
    return Data(
        edge_index=ends.reshape(-1, 2).T.contiguous(),
        edge_type=torch.tensor([number_of[role] for _, role, _ in amr.edges], dtype=torch.int64),
        node_type=torch.tensor(layout.kinds, dtype=torch.int64),
        num_nodes=len(amr.labels),
        roles=names,
        **{name: getattr(amr, name) for name in _AMR},
        **{name: getattr(graph, name) for name in _POST},
    )


def from_pyg(data: Data) -> MathAMRGraph:
    if missing := sorted({"edge_index", "edge_type", "roles", *_AMR, *_POST} - set(data.keys())):
        raise GraphError("Data", f"it has no {', '.join(missing)}; give what MathAMRGraph.to_pyg returned")
    try:
        sources, targets = data.edge_index.tolist()
        roles = [data.roles[number] for number in data.edge_type.tolist()]
        edges = tuple(zip(sources, roles, targets, strict=True))
        amr = AmrGraph(edges=edges, **{name: _plain(data[name]) for name in _AMR})
        return MathAMRGraph(amr, **{name: _plain(data[name]) for name in _POST})
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise GraphError("Data", f"its attributes do not fit together ({type(error).__name__}: {error})") from error


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
