"""`GraphTensors`: one graph as arrays of vocabulary ids, with inverse edges and virtual nodes.

The order in each array::

    nodes      [ AMR and tree nodes in writing order | formula nodes | sentence nodes | document node ]
    edges      [ e/2 edges as in the triples, then those of virtual nodes | the same e/2 reversed     ]
    relations  [ their relations                                          | each plus one             ]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.types import FormulaMode
from pyterrier_mathamr.graph.errors import GraphError
from pyterrier_mathamr.graph.mathamr import MathAMRGraph
from pyterrier_mathamr.graph.structure import NodeKind, layout_of
from pyterrier_mathamr.graph.virtual_nodes import Auxiliary, VirtualNodes, check_conditions, virtual_part

from .vocabulary import FIRST_VIRTUAL_ID, Vocabulary

if TYPE_CHECKING:
    from torch_geometric.data import Data

_DROPPED: dict[FormulaMode, tuple[NodeKind, ...]] = {
    "both": (),
    "opt": (NodeKind.SLT,),
    "slt": (NodeKind.OPT,),
    "none": (NodeKind.OPT, NodeKind.SLT),
}


@dataclass(frozen=True, slots=True, eq=False)
class GraphTensors:
    """One graph as the arrays that the encoder reads.

    Attributes:
        nodes: int32 ``[N]``, vocabulary id of each node, virtual nodes last.
        edges: int32 ``[2, e]``, source and target of each message, inverse edges included.
        relations: int16 ``[e]``, relation id of each edge.
        virtual: int32 ``[n]``, the node of each retrieval vector: formulas, sentences, document.
        kinds: int8 ``[n]``, the :class:`VirtualKind` of each.
        features: float16 ``[n, d_x]``, the vectors of their texts or formulas; ``None`` for a model that reads neither.
    """

    nodes: npt.NDArray[np.int32]
    edges: npt.NDArray[np.int32]
    relations: npt.NDArray[np.int16]
    virtual: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.int8]
    features: npt.NDArray[np.float16] | None = None

    def __post_init__(self) -> None:
        edges, rows = self.edges.shape, self.virtual.shape
        if len(edges) != 2 or edges[0] != 2 or self.relations.shape != edges[1:]:
            raise GraphError("GraphTensors", f"edges of shape {edges} with relations of {self.relations.shape}")
        if self.nodes.ndim != 1 or len(rows) != 1 or self.kinds.shape != rows:
            raise GraphError("GraphTensors", f"{rows} virtual nodes with {self.kinds.shape} kinds")
        if self.features is not None and (self.features.ndim != 2 or self.features.shape[:1] != rows):
            raise GraphError("GraphTensors", f"{rows} virtual nodes with features of shape {self.features.shape}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphTensors) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.nodes.tobytes(), self.edges.tobytes(), self.relations.tobytes()))

    def to_pyg(self) -> Data:
        """Convert the arrays to PyTorch Geometric's form, for its convolutions and loaders.

        Returns:
            ``x`` int64 ``[N]``, ``edge_index`` int64 ``[2, e]``, ``edge_type`` int64 ``[e]``, ``kinds`` int64 ``[n]``,
            ``virtual_index`` int64 ``[n]``, which PyTorch Geometric shifts in a batch, and ``features`` float16
            ``[n, d_text]``, if any.
        """
        import torch
        from torch_geometric.data import Data

        def tensor(array: npt.NDArray[Any]) -> torch.Tensor:
            return torch.from_numpy(array.astype(np.int64))

        features = {} if self.features is None else {"features": torch.from_numpy(self.features)}
        return Data(
            x=tensor(self.nodes),
            edge_index=tensor(self.edges),
            edge_type=tensor(self.relations),
            virtual_index=tensor(self.virtual),
            kinds=tensor(self.kinds),
            num_nodes=len(self.nodes),
            **features,
        )


def graph_tensors(
    graph: MathAMRGraph,
    vocabulary: Vocabulary,
    *,
    formulas: FormulaMode = "both",
    virtual_nodes: VirtualNodes = "hierarchy",
    auxiliary: Auxiliary = "none",
) -> GraphTensors:
    """Convert a graph to arrays: labels to ids, roles to typed edges with inverses, virtual nodes added.

    Args:
        graph: the graph of a post.
        vocabulary: the ids of labels and roles; unknown ones become ``[UNK]`` or the unknown relation.
        formulas: which trees of the graph are used; ``none`` has no formula vectors (section 4.3.1).
        virtual_nodes: which nodes represent the post (sections 3.2 and 4.3.2).
        auxiliary: extra edges between formula and sentence virtual nodes (section 4.3.3).

    Returns:
        The arrays; edges follow the de-inverted triples (``:ARG0-of`` is an ``:ARG0`` edge the other way).

    Raises:
        ConfigError: an option has no such value.
        MissingPlaceholderError: a formula of the graph has no node.
    """
    check_conditions(formulas, virtual_nodes, auxiliary)
    amr = graph.amr
    layout = layout_of(amr, graph.n_formulas, graph.id)
    part = virtual_part(layout, formulas, virtual_nodes, auxiliary)
    ids = vocabulary.node_ids(amr.labels, layout.kinds)
    nodes = np.array([*ids, *(FIRST_VIRTUAL_ID + kind for kind in part.added)], dtype=np.int32)
    triples = [*amr.triples(), *part.edges]
    sources, roles, targets = zip(*triples, strict=True) if triples else ((), (), ())
    edges = np.array([sources, targets], dtype=np.int32)
    relations = np.array(vocabulary.role_ids(roles), dtype=np.int16)
    virtual = np.array(part.rows, dtype=np.int32)
    dropped = _DROPPED[formulas]
    if dropped:
        keep = np.ones(len(nodes), dtype=bool)
        keep[: len(layout.kinds)] = ~np.isin(layout.kinds, dropped)
        place = (np.cumsum(keep) - 1).astype(np.int32)
        inside = keep[edges].all(axis=0)
        nodes, edges, relations, virtual = nodes[keep], place[edges[:, inside]], relations[inside], place[virtual]
    return GraphTensors(
        nodes=nodes,
        edges=np.concatenate([edges, edges[::-1]], axis=1),
        relations=np.concatenate([relations, relations + np.int16(1)]),
        virtual=virtual,
        kinds=np.array(part.kinds, dtype=np.int8),
    )
