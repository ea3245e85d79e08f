"""`MathAMRGraph`: the graph of a whole post, AMR and formula trees, to and from Penman notation.

::

    # ::id 154
    # ::formula_map {"FORMULA_0": "9549293"}
    (e / equal-01 :ARG1 (f / FORMULA_0 :opt (t0 / V!x) :slt (t1 / V!x)) :ARG2 (z / zero))

Trees are attached by node and detached again::

    (f / FORMULA_0)  +  U!eq(V!x, N!2)  +  V!x ─n─ = ─n─ N!2

    (f / FORMULA_0 :opt (t0 / U!eq :op0 (t1 / V!x) :op0 (t2 / N!2))
                   :slt (t3 / V!x :slt-n (t4 / = :slt-n (t5 / N!2))))

The role of an operand is ``:op`` and the label of its edge, as in MathAMR; that of a layout edge has the prefix
``slt-`` to differ from the roles of AMR. Each tree node is a node of the graph, so nothing is nested by comparing
labels. Where several nodes mention one formula, the first carries its trees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, islice
from typing import NamedTuple
from urllib.parse import quote, unquote

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr._common.types import FORMULA_MODES, FormulaId, FormulaMode
from pyterrier_mathamr.amr import AmrEdge, AmrGraph, check_penman, decode_penman, encode_penman
from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.posts import placeholder

from .errors import GraphMetadataError
from .structure import NodeKind, layout_of, placeholder_number

_ID, _MAP, _TEXT, _SENTENCES, _LATEX = _OWN = ("id", "formula_map", "post_text", "sentence_texts", "formula_latex")

_INDENT, _LARGE = 3, 2_000  # nodes; indented text grows quadratically with the depth

EMPTY_AMR = AmrGraph(labels=("amr-empty",), variables=("a",), edges=())
"""The AMR of a post without text, or without a parse."""


@dataclass(frozen=True, slots=True, repr=False)
class MathAMRGraph:
    """A post as one rooted graph (MathAMR+, section 3.1).

    Attributes:
        amr: the whole graph in writing order, with its trees.
        formula_ids: entry ``i`` is the id of ``FORMULA_i`` in the collection, empty where it has none.
        id: the post's docno or the topic's qid.
        text: title and body with placeholders; empty where the graph was not built from text.
        sentence_texts: entry ``i`` is the text of sentence ``i``, with placeholders.
        latex: entry ``i`` is the LaTeX of ``FORMULA_i``.
    """

    amr: AmrGraph
    formula_ids: tuple[FormulaId, ...] = ()
    id: str = ""
    text: str = ""
    sentence_texts: tuple[str, ...] = ()
    latex: tuple[str, ...] = ()

    @property
    def n_formulas(self) -> int:
        """Number of formulas, with or without trees."""
        return len(self.formula_ids)

    @property
    def is_empty(self) -> bool:
        """Whether the graph has neither text nor formulas, as that of a blank query."""
        return self.amr.labels == EMPTY_AMR.labels and not self.formula_ids and not self.text

    @property
    def n_sentences(self) -> int:
        """Number of sentences, nested ``multi-sentence`` flattened; at least one."""
        return len(layout_of(self.amr, self.n_formulas, self.id).roots)

    def to_penman(self, indent: int | None = None) -> str:
        """Write the graph with its metadata.

        Args:
            indent: spaces for each level, or ``None`` for one line; indented text grows quadratically with the depth.

        Returns:
            The lines ``# ::id`` and ``# ::formula_map``, the texts as JSON, other metadata, and the graph, without a
            final line end.
        """
        names = {placeholder(i): formula_id for i, formula_id in enumerate(self.formula_ids)}
        head = [(_ID, _plain_or_json(self.id))] if self.id else []
        head += [(_MAP, _json(names))] if names else []
        texts = ((_TEXT, self.text), (_SENTENCES, self.sentence_texts), (_LATEX, self.latex))
        head += [(key, _json(value)) for key, value in texts if value]
        return encode_penman(self.amr.with_metadata((*head, *_others(self.amr))), indent)

    def __repr__(self) -> str:
        """Write the graph in Penman notation with its id, without its texts; indented unless it is large."""
        named = self.amr.with_metadata(((_ID, _plain_or_json(self.id)),) if self.id else ())
        return encode_penman(named, _INDENT if len(self.amr.labels) <= _LARGE else None)

    def _repr_svg_(self) -> str | None:
        """Draw the graph in a notebook; a large one is shown as text."""
        from .drawing import draw_graph

        return draw_graph(self).svg if len(self.amr.labels) <= _LARGE else None

    def check(self) -> None:
        """Refuse a graph that :meth:`to_penman` could not write, without writing it.

        Raises:
            AmrError: it has no form in Penman notation.
        """
        others = _others(self.amr)
        check_penman(self.amr if others == self.amr.metadata else self.amr.with_metadata(others))

    @classmethod
    def from_penman(cls, text: str) -> MathAMRGraph:
        """Read one graph with its metadata.

        Args:
            text: Penman notation; without ``formula_map`` the placeholders from ``FORMULA_0`` on have empty ids.

        Returns:
            The graph; ``from_penman(graph.to_penman())`` equals ``graph``.

        Raises:
            PenmanError: the text is no graph; names the position.
            GraphMetadataError: the formula map is no JSON object of placeholders numbered from 0, or a text is no JSON
                of the form that ``to_penman`` writes.
        """
        return cls.from_amr(decode_penman(text))

    @classmethod
    def from_amr(cls, amr: AmrGraph) -> MathAMRGraph:
        """Read id, formula map and texts from the metadata of a graph; otherwise as :meth:`from_penman`."""
        metadata = dict(amr.metadata)
        if _MAP in metadata:
            formula_ids = _read_map(metadata[_MAP], len(amr.labels))
        else:
            numbers = set(map(placeholder_number, amr.labels))
            formula_ids = ("",) * next(i for i in count() if i not in numbers)
        return cls(
            amr=amr.with_metadata(_others(amr)),
            formula_ids=formula_ids,
            id=_read_id(metadata.get(_ID, "")),
            text="".join(_read_texts(_TEXT, metadata)),
            sentence_texts=_read_texts(_SENTENCES, metadata),
            latex=_read_texts(_LATEX, metadata),
        )


def _others(amr: AmrGraph) -> tuple[tuple[str, str], ...]:
    """List the metadata that are no field of :class:`MathAMRGraph`."""
    return tuple((key, value) for key, value in amr.metadata if key not in _OWN)


def _read_map(text: str, nodes: int) -> tuple[FormulaId, ...]:
    """Read ``{"FORMULA_0": "9549293", …}`` as ids in order of the numbers; missing numbers have no id."""
    try:
        names = parse_json(text)
    except ValueError as error:
        raise _unreadable(_MAP, text, str(error)) from error
    if not isinstance(names, dict):
        raise _unreadable(_MAP, text, "not an object")
    numbers = {placeholder_number(name): str(formula_id) for name, formula_id in names.items()}
    if -1 in numbers:
        raise _unreadable(_MAP, text, "a name that is no placeholder")
    last = max(numbers, default=-1)
    if last >= nodes:
        raise _unreadable(_MAP, text, f"FORMULA_{last} in a graph of {nodes} nodes")
    return tuple(numbers.get(i, "") for i in range(1 + last))


def _read_texts(key: str, metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Read one text, or a list of texts; records of earlier releases have none."""
    written = metadata.get(key, "[]")
    try:
        texts = parse_json(written)
    except ValueError as error:
        raise _unreadable(key, written, str(error)) from error
    texts = [texts] if key == _TEXT and isinstance(texts, str) else texts
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise _unreadable(key, written, "not text")
    return tuple(texts)


def _unreadable(key: str, text: str, reason: str) -> GraphMetadataError:
    return GraphMetadataError(f"# ::{key} {text[:80]!r}", reason, key)


def _json(value: object) -> str:
    """Write JSON without ``::``, which would begin another piece of metadata."""
    return json.dumps(value).replace("::", ":\\u003a")


def _plain_or_json(name: str) -> str:
    """Write an id unchanged, or as a JSON string where a metadata line could not hold it."""
    plain = name.isprintable() and name == name.strip() and "::" not in name and not name.startswith('"')
    return name if plain else _json(name)


def _read_id(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(parse_json(text))
    except ValueError:
        return text


MATH_ROLE = ":math"
"""The role from the root to a formula that the parser dropped (MathAMR+, section 3.1)."""

_OPERAND, _LAYOUT = ":op", ":slt-"


def attach_formulas(amr: AmrGraph, trees: Sequence[FormulaPair], formulas: FormulaMode = "both") -> AmrGraph:
    """Attach the trees of each formula below its placeholder (MathAMR+, section 3.1)."""
    if formulas not in FORMULA_MODES:
        raise ConfigError("formulas", formulas, "one of " + ", ".join(map(repr, FORMULA_MODES)))
    first: dict[int, int] = {}
    for node, label in enumerate(amr.labels):
        if label[:1] == "F":
            first.setdefault(placeholder_number(label), node)
    used = {*amr.variables, *amr.labels}
    fresh_formula, fresh_tree = _fresh("f", used), _fresh("t", used)
    variables = list(amr.variables)
    below: dict[int, list[_Formula]] = {}
    for i, both in enumerate(trees):
        chosen = [(*one, list(islice(fresh_tree, len(one[2].nodes)))) for one in _chosen(both, formulas)]
        node = first.get(i, -1)
        if node < 0:
            below.setdefault(0, []).append(_Formula(chosen, placeholder(i), next(fresh_formula)))
            continue
        if not variables[node]:
            variables[node] = next(fresh_formula)
        if chosen:
            below.setdefault(node, []).append(_Formula(chosen))
    return _written(replace(amr, variables=tuple(variables)) if "" in amr.variables else amr, below)


class _Formula(NamedTuple):
    """What is written below a node of the AMR: the trees of a formula.

    Attributes:
        trees: each with its role, the prefix of its edges' roles, and the variables of its nodes.
        label: of the placeholder that is written above them; empty where the node itself is the placeholder.
        variable: of this placeholder.
    """

    trees: list[tuple[str, str, FormulaTree, list[str]]]
    label: str = ""
    variable: str = ""


def _written(amr: AmrGraph, below: Mapping[int, Sequence[_Formula]]) -> AmrGraph:
    """Write a graph depth first, with formulas after the edges of some nodes."""
    leaving: list[list[int]] = [[] for _ in amr.labels]
    for edge in range(len(amr.edges) - 1, -1, -1):  # reversed: popped in writing order
        leaving[amr.edges[edge][0]].append(edge)
    bare = frozenset(amr.mentions)
    labels, variables, edges = [amr.labels[0]], [amr.variables[0]], list[AmrEdge]()
    node_at, edge_at = [0, *[-1] * (len(amr.labels) - 1)], [0] * len(amr.edges)
    stack = [0]
    while stack:
        node = stack[-1]
        while leaving[node]:
            edge = leaving[node].pop()
            _, role, target = amr.edges[edge]
            edge_at[edge] = len(edges)
            is_new = node_at[target] < 0 and edge not in bare
            if is_new:
                node_at[target] = len(labels)
                labels.append(amr.labels[target])
                variables.append(amr.variables[target])
            edges.append((node_at[node], role, node_at[target]))
            if is_new:
                stack.append(target)
                break
        else:
            stack.pop()
            for formula in below.get(node, ()):
                _write_formula(formula, node_at[node], labels, variables, edges)
    if -1 in node_at:
        amr.arranged()  # raises: it names the nodes that are never reached
    for edge in amr.mentions:
        source, role, _ = edges[edge_at[edge]]
        edges[edge_at[edge]] = (source, role, node_at[amr.edges[edge][2]])
    return AmrGraph(
        labels=tuple(labels),
        variables=tuple(variables),
        edges=tuple(edges),
        metadata=amr.metadata,
        spellings=tuple(sorted((node_at[node], atom) for node, atom in amr.spellings)),
        mentions=tuple(sorted(edge_at[edge] for edge in amr.mentions)),
        alignments=tuple(sorted((edge_at[edge], role, target) for edge, role, target in amr.alignments)),
    )


def _write_formula(formula: _Formula, node: int, labels: list[str], variables: list[str], edges: list[AmrEdge]) -> None:
    """Write the trees of a formula below a node."""
    if formula.label:
        edges.append((node, MATH_ROLE, len(labels)))
        node = len(labels)
        labels.append(formula.label)
        variables.append(formula.variable)
    for role, prefix, tree, names in formula.trees:
        base = len(labels)
        labels += tree.nodes
        variables += names
        edges.append((node, role, base))
        edges += [(base + parent, _role(prefix, label), base + child) for parent, child, label in tree.edges]


def detach_formulas(amr: AmrGraph, formulas: int) -> tuple[AmrGraph, tuple[FormulaPair, ...]]:
    """Detach the trees: the inverse of :func:`attach_formulas` for a graph that had all its placeholders.

    Args:
        amr: the whole graph in writing order.
        formulas: the number of formulas.

    Returns:
        The graph without trees in writing order, and the trees of each formula, ``None`` where there is none; their
        ``partial`` is lost.

    Raises:
        MissingPlaceholderError: a formula has no node.
    """
    layout = layout_of(amr, formulas)
    leaving: list[list[tuple[str, int]]] = [[] for _ in amr.labels]
    for source, role, target in amr.edges:
        if layout.kinds[target] >= NodeKind.OPT and layout.kinds[source] >= NodeKind.OPT:
            leaving[source].append((role, target))
    trees = tuple(
        FormulaPair(slt=_tree(amr, leaving, slt, _LAYOUT), opt=_tree(amr, leaving, opt, _OPERAND))
        for slt, opt in zip(layout.slts, layout.opts, strict=True)
    )
    return _without_trees(amr, layout.kinds), trees


def _chosen(trees: FormulaPair, formulas: FormulaMode) -> Iterator[tuple[str, str, FormulaTree]]:
    """List the trees of a formula that the mode includes, each with its role and the prefix of its edges' roles."""
    if formulas in ("both", "opt") and trees.opt is not None:
        yield ":opt", _OPERAND, trees.opt
    if formulas in ("both", "slt") and trees.slt is not None:
        yield ":slt", _LAYOUT, trees.slt


@lru_cache(maxsize=4096)
def _role(prefix: str, label: str) -> str:
    """Make the role of a tree edge; a label that no role can contain (as of a 65th operand) is percent-encoded."""
    return prefix + quote(label, safe="").replace("~", "%7E")


def _label(prefix: str, role: str) -> str:
    """Undo :func:`_role`."""
    return unquote(role.removeprefix(prefix))


def _fresh(prefix: str, used: set[str]) -> Iterator[str]:
    """Generate variables that differ from those of all nodes and from all labels."""
    return (name for name in map(f"{prefix}{{}}".format, count()) if name not in used)


def _tree(
    amr: AmrGraph, leaving: Sequence[Sequence[tuple[str, int]]], nodes: Sequence[int], prefix: str
) -> FormulaTree | None:
    """Rebuild one tree from its nodes in writing order, which is depth first."""
    if not nodes:
        return None
    place = {node: i for i, node in enumerate(nodes)}
    edges = [(place[node], place[child], _label(prefix, role)) for node in nodes for role, child in leaving[node]]
    edges.sort(key=lambda edge: edge[1])  # each node but the root has one edge to it, so this is depth-first order
    labels = tuple(amr.labels[node] for node in nodes)
    return FormulaTree(labels, tuple(edges), kind="slt" if prefix == _LAYOUT else "opt")


def _without_trees(amr: AmrGraph, kinds: Sequence[NodeKind]) -> AmrGraph:
    """Drop all tree nodes and the edges that touch them; the rest keeps its order."""
    kept = [node for node, kind in enumerate(kinds) if kind < NodeKind.OPT]
    node_at = {node: i for i, node in enumerate(kept)}
    kept_edges = [i for i, (source, _, target) in enumerate(amr.edges) if source in node_at and target in node_at]
    edge_at = {edge: i for i, edge in enumerate(kept_edges)}
    return replace(
        amr,
        labels=tuple(amr.labels[node] for node in kept),
        variables=tuple(amr.variables[node] for node in kept),
        edges=tuple((node_at[s], role, node_at[t]) for s, role, t in (amr.edges[edge] for edge in kept_edges)),
        spellings=tuple((node_at[node], atom) for node, atom in amr.spellings if node in node_at),
        mentions=tuple(edge_at[edge] for edge in amr.mentions if edge in edge_at),
        alignments=tuple((edge_at[edge], role, target) for edge, role, target in amr.alignments if edge in edge_at),
    )
