"""`MathAMRGraph`: the graph of a whole post, AMR and formula trees, to and from Penman notation, and its texts.

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

One sentence carries little ("This follows."), so text encoders get a post as segments, its sentences with the places of
their formulas, and read as many segments as fit at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr._common.types import FormulaId, FormulaMode
from pyterrier_mathamr.amr import AmrGraph, decode_penman, encode_penman
from pyterrier_mathamr.amr.graph import AmrEdge, Branch, check_penman
from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.posts import PLACEHOLDER, placeholder

from .structure import FORMULAS, GraphError, NodeKind, VirtualNodes, layout_of, placeholder_number, sentence_numbers

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from pyterrier_mathamr._common.drawing import Picture, Theme

_ID, _MAP, _TEXT = "id", "formula_map", "post_text"
_TEXTS = {_TEXT: "text", "sentence_texts": "sentence_texts", "formula_latex": "latex"}  # metadata to field
_OWN = {_ID, _MAP, *_TEXTS}

_INDENT, _LARGE = 3, 2_000  # nodes; indented text grows quadratically with the depth

EMPTY_AMR = AmrGraph(labels=("amr-empty",), variables=("a",), edges=())
"""The AMR of a post without text, or without a parse."""


@dataclass(frozen=True, slots=True, repr=False)
class MathAMRGraph:
    """A post as one rooted graph (MathAMR+, section 3.1).

    Attributes:
        amr: the whole graph in writing order, with its trees.
        formula_ids: entry ``i`` is the id of ``FORMULA_i`` in the collection, empty if it has none, and ``^title``
            if it is in the title of the question that a document answers.
        id: the post's docno or the topic's qid.
        text: title and body with placeholders; empty if the graph was not built from text.
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
        """Whether the graph has neither text nor formulas, as for a blank query."""
        return self.amr.labels == EMPTY_AMR.labels and not self.formula_ids and not self.text

    @property
    def n_sentences(self) -> int:
        """Number of sentences, nested ``multi-sentence`` flattened; at least one."""
        return len(layout_of(self.amr, self.n_formulas, self.id).roots)

    def n_vectors(self, formulas: FormulaMode = "both", virtual_nodes: VirtualNodes = "hierarchy") -> int:
        """Count the retrieval vectors that a model with these ``formulas`` and ``virtual_nodes`` makes of the graph."""
        return self.n_formulas * (formulas != "none") + self.n_sentences + (virtual_nodes != "none")

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
        texts = ((key, getattr(self, name)) for key, name in _TEXTS.items())
        head += [(key, _json(value)) for key, value in texts if value]
        return encode_penman(self.amr.with_metadata((*head, *_others(self.amr))), indent)

    def __repr__(self) -> str:
        """Write the graph in Penman notation with its id, without its texts; indented unless it is large."""
        named = self.amr.with_metadata(((_ID, _plain_or_json(self.id)),) if self.id else ())
        return encode_penman(named, _INDENT if len(self.amr.labels) <= _LARGE else None)

    def _repr_svg_(self) -> str | None:
        """Draw the graph in a notebook; a large one is shown as text."""
        return draw_graph(self).svg if len(self.amr.labels) <= _LARGE else None

    def check(self) -> None:
        """Raise an error for a graph that :meth:`to_penman` could not write, without writing it.

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
            PenmanError: the text is not a graph; names the position.
            GraphError: the formula map is not a JSON object of placeholders numbered from 0, or a text is not JSON as
                written by ``to_penman``.
        """
        return cls.from_amr(decode_penman(text))

    @classmethod
    def from_amr(cls, amr: AmrGraph, *, unreadable: list[str] | None = None) -> MathAMRGraph:
        """Read id, formula map and texts from the metadata of a graph; see :meth:`from_penman`.

        Args:
            amr: the graph with its metadata.
            unreadable: where given, metadata that cannot be read is left out, and its key added here.
        """
        known: dict[str, Any] = {}
        for key, value in amr.metadata:
            try:
                if key == _MAP:
                    known["formula_ids"] = _read_map(value, len(amr.labels))
                elif key == _ID:
                    known["id"] = _read_id(value)
                elif key in _TEXTS:
                    texts = parse_json(value)
                    texts = [texts] if key == _TEXT and isinstance(texts, str) else texts
                    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                        raise ValueError("not text")
                    known[_TEXTS[key]] = "".join(texts) if key == _TEXT else tuple(texts)
            except (ValueError, RecursionError) as error:
                if unreadable is None:
                    reason = f"{error}; write it as JSON, as MathAMRGraph.to_penman does, or leave the line out"
                    raise GraphError(f"# ::{key} {value[:80]!r}", reason) from error
                unreadable.append(key)
        if "formula_ids" not in known:
            numbers = set(map(placeholder_number, amr.labels))
            known["formula_ids"] = ("",) * next(i for i in count() if i not in numbers)
        return cls(amr.with_metadata(_others(amr)), **known)

    def to_pyg(self, roles: Sequence[str] | None = None) -> Data:
        """Convert the graph, as written, to a ``torch_geometric.data.Data``, without virtual nodes and inverse edges.

        Args:
            roles: the role of each number in ``edge_type``; the same for all graphs that a network reads. By default
                the roles of this graph, sorted.

        Returns:
            ``edge_index``, int64 ``[2, e]``; ``edge_type``, int64 ``[e]``, the place of each edge's role in the list
            ``roles``; ``node_type``, int64 ``[N]``, 0 for concepts, 1 for constants, 2 for nodes of operator trees, 3
            for those of symbol layout trees; ``labels``, one text for each node; and the other fields of
            :class:`~pyterrier_mathamr.amr.AmrGraph` and this class by name, which :meth:`from_pyg` needs.

        Raises:
            GraphError: a role is not in ``roles``. MissingPlaceholderError: a formula has no node.
        """
        geometric, torch = require("torch_geometric.data"), require("torch")
        amr, layout = self.amr, layout_of(self.amr, self.n_formulas, self.id)
        used = {role for _, role, _ in amr.edges}
        names = sorted(used) if roles is None else list(roles)
        number_of = {role: number for number, role in enumerate(names)}
        if unknown := sorted(used - number_of.keys()):
            raise GraphError(f"graph {self.id!r}", f"the roles {', '.join(unknown[:5])} are not in `roles`")
        ends = torch.tensor([(source, target) for source, _, target in amr.edges], dtype=torch.int64)
        data: Data = geometric.Data(
            edge_index=ends.reshape(-1, 2).T.contiguous(),
            edge_type=torch.tensor([number_of[role] for _, role, _ in amr.edges], dtype=torch.int64),
            node_type=torch.tensor(layout.kinds, dtype=torch.int64),
            num_nodes=len(amr.labels),
            roles=names,
            **{name: getattr(amr, name) for name in _fields(AmrGraph, "edges", "texts")},
            **{name: getattr(self, name) for name in _fields(MathAMRGraph, "amr")},
        )
        return data

    @classmethod
    def from_pyg(cls, data: Data) -> MathAMRGraph:
        """Convert what :meth:`to_pyg` returned, also taken from a batch; ``from_pyg(graph.to_pyg())`` equals ``graph``.

        Raises:
            GraphError: an attribute is missing or does not fit the others. AmrError: the edges are not of a graph.
        """
        of_amr, of_post = _fields(AmrGraph, "edges", "texts"), _fields(MathAMRGraph, "amr")
        if missing := sorted({"edge_index", "edge_type", "roles", *of_amr, *of_post} - set(data.keys())):
            raise GraphError("Data", f"it has no {', '.join(missing)}; give what MathAMRGraph.to_pyg returned")
        values: dict[str, Any] = {name: data[name] for name in of_amr + of_post}
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        try:
            sources, targets = data.edge_index.tolist()
            roles = [data.roles[number] for number in data.edge_type.tolist()]
            edges = tuple(zip(sources, roles, targets, strict=True))
            amr = AmrGraph(edges=edges, **{name: values[name] for name in of_amr})
            return cls(amr, **{name: values[name] for name in of_post})
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise GraphError("Data", f"its attributes do not fit together ({type(error).__name__}: {error})") from error

    def trees(self) -> tuple[FormulaPair, ...]:
        """Detach the trees of each formula, ``None`` where there is none; their ``partial`` is lost.

        Raises:
            MissingPlaceholderError: a formula has no node.
        """
        amr, layout = self.amr, layout_of(self.amr, self.n_formulas, self.id)
        leaving: list[list[tuple[str, int]]] = [[] for _ in amr.labels]
        for source, role, target in amr.edges:
            if layout.kinds[target] >= NodeKind.OPT and layout.kinds[source] >= NodeKind.OPT:
                leaving[source].append((role, target))
        return tuple(
            FormulaPair(slt=_tree(amr, leaving, slt, _LAYOUT), opt=_tree(amr, leaving, opt, _OPERAND))
            for slt, opt in zip(layout.slts, layout.opts, strict=True)
        )


def _fields(kind: type[AmrGraph | MathAMRGraph], *others: str) -> list[str]:
    """List the fields that a ``Data`` has by name, which are all but ``others``."""
    return [field.name for field in fields(kind) if field.name not in others]


def _others(amr: AmrGraph) -> tuple[tuple[str, str], ...]:
    """List the metadata that are not fields of :class:`MathAMRGraph`."""
    return tuple((key, value) for key, value in amr.metadata if key not in _OWN)


def _read_map(text: str, nodes: int) -> tuple[FormulaId, ...]:
    """Read ``{"FORMULA_0": "9549293", …}`` as ids in order of the numbers; missing numbers have no id."""
    names = parse_json(text)
    if not isinstance(names, dict):
        raise ValueError("not an object")
    numbers = {placeholder_number(name): str(formula_id) for name, formula_id in names.items()}
    if -1 in numbers:
        raise ValueError("a name that is not a placeholder")
    last = max(numbers, default=-1)
    if last >= nodes:
        raise ValueError(f"FORMULA_{last} in a graph of {nodes} nodes")
    return tuple(numbers.get(i, "") for i in range(1 + last))


def _json(value: object) -> str:
    """Write JSON without ``::``, which would begin another piece of metadata."""
    return json.dumps(value).replace("::", ":\\u003a")


def _plain_or_json(name: str) -> str:
    """Write an id unchanged, or as a JSON string where a metadata line could not hold it."""
    plain = name.isprintable() and name == name.strip() and "::" not in name and not name.startswith('"')
    return name if plain else _json(name)


def _read_id(text: str) -> str:
    with suppress(ValueError):
        return str(parse_json(text)) if text.startswith('"') else text
    return text


NO_TREES = FormulaPair(slt=None, opt=None)

MATH_ROLE = ":math"
"""The role from the root to a formula that the parser dropped (MathAMR+, section 3.1)."""

_OPERAND, _LAYOUT = ":op", ":slt-"


def attach_formulas(amr: AmrGraph, trees: Sequence[FormulaPair], formulas: FormulaMode = "both") -> AmrGraph:
    """Attach the trees of each formula below its placeholder (MathAMR+, section 3.1)."""
    FORMULAS.check("formulas", formulas)
    first: dict[int, int] = {}
    for node, label in enumerate(amr.labels):
        if label[:1] == "F":
            first.setdefault(placeholder_number(label), node)
    used = {*amr.variables, *amr.labels}
    fresh_formula = (name for name in map("f{}".format, count()) if name not in used)
    fresh_tree = (name for name in map("t{}".format, count()) if name not in used)
    variables = list(amr.variables)
    below: dict[int, list[Branch]] = {}
    for i, pair in enumerate(trees):
        branches = list[Branch]()
        if pair.opt is not None and formulas in ("both", "opt"):
            branches.append(_branch(":opt", _OPERAND, pair.opt, fresh_tree))
        if pair.slt is not None and formulas in ("both", "slt"):
            branches.append(_branch(":slt", _LAYOUT, pair.slt, fresh_tree))
        node = first.get(i, -1)
        if node < 0:
            below.setdefault(0, []).append(_dropped(placeholder(i), next(fresh_formula), branches))
        else:
            variables[node] = variables[node] or next(fresh_formula)
            below.setdefault(node, []).extend(branches)
    return (replace(amr, variables=tuple(variables)) if "" in amr.variables else amr).arranged(below)


def _branch(role: str, prefix: str, tree: FormulaTree, fresh: Iterator[str]) -> Branch:
    edges = [(parent, _role(prefix, label), child) for parent, child, label in tree.edges]
    return Branch(role, tree.nodes, list(islice(fresh, len(tree.nodes))), edges)


def _dropped(label: str, variable: str, trees: Sequence[Branch]) -> Branch:
    """Write a placeholder that the parser dropped with the trees below it."""
    labels, variables, edges = [label], [variable], list[AmrEdge]()
    for tree in trees:
        base = len(labels)
        labels += tree.labels
        variables += tree.variables
        edges.append((0, tree.role, base))
        edges += [(base + source, role, base + target) for source, role, target in tree.edges]
    return Branch(MATH_ROLE, labels, variables, edges)


@lru_cache(maxsize=4096)
def _role(prefix: str, label: str) -> str:
    """Make the role of a tree edge; a label that no role can contain (as of a 65th operand) is percent-encoded."""
    return prefix + quote(label, safe="").replace("~", "%7E")


def _tree(
    amr: AmrGraph, leaving: Sequence[Sequence[tuple[str, int]]], nodes: Sequence[int], prefix: str
) -> FormulaTree | None:
    """Rebuild one tree from its nodes in writing order, which is depth first."""
    if not nodes:
        return None
    place = {node: i for i, node in enumerate(nodes)}
    edges = [
        (place[node], place[child], unquote(role.removeprefix(prefix)))
        for node in nodes
        for role, child in leaving[node]
    ]
    edges.sort(key=lambda edge: edge[1])  # each node but the root has one edge to it, so this is depth-first order
    labels = tuple(amr.labels[node] for node in nodes)
    return FormulaTree(labels, tuple(edges), kind="slt" if prefix == _LAYOUT else "opt")


def sentence_texts(amr: AmrGraph, texts: Sequence[str], whole: str) -> tuple[str, ...]:
    """Find the text of each sentence of :func:`layout_of` in the parser's ``texts``: one for each ``:snti``, or one.

    Nested sentences have the text of the ``:snt`` above them. Without a text from the parser, it is the whole post's:
    too much, but never another sentence's.
    """
    numbers = sentence_numbers(amr)
    if len(texts) == 1:
        return (texts[0],) * len(numbers)
    return tuple(texts[number - 1] if 0 < number <= len(texts) else whole for number in numbers)


class TextPlace(NamedTuple):
    """The place of a formula: characters ``start`` to ``end`` of segment ``segment``, without its dollars."""

    segment: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Segments:
    """A post as consecutive texts.

    Attributes:
        texts: the distinct texts of its sentences, in order, with formulas as ``$latex$``; then the formulas that are
            in no sentence.
        of_sentence: the number of each sentence's text.
        of_formula: the first place of each formula.
    """

    texts: tuple[str, ...]
    of_sentence: tuple[int, ...]
    of_formula: tuple[TextPlace, ...]


def segments_of(graph: MathAMRGraph) -> Segments:
    """Give the sentences of a post, each once, and the places of its formulas in them.

    Args:
        graph: a graph that was built from text.

    Raises:
        GraphError: the graph has no texts, or a formula no LaTeX; names the graph and the remedy.
    """
    if len(graph.latex) < graph.n_formulas:
        raise _missing(graph, f"LaTeX of FORMULA_{len(graph.latex)}")
    if not graph.sentence_texts:  # an empty post has one empty sentence
        raise _missing(graph, "text of the post")
    plain = list(dict.fromkeys(graph.sentence_texts))
    number = {text: i for i, text in enumerate(plain)}
    texts, places = [], dict[int, TextPlace]()
    for segment, text in enumerate(plain):
        pieces, length, last = list[str](), 0, 0
        for match in PLACEHOLDER.finditer(text):
            formula = int(match[1])
            if formula < len(graph.latex):  # a placeholder without LaTeX stays
                pieces += [text[last : match.start()], f"${graph.latex[formula]}$"]
                length += len(pieces[-2]) + len(pieces[-1])
                places.setdefault(formula, TextPlace(segment, length - 1 - len(graph.latex[formula]), length - 1))
                last = match.end()
        texts.append("".join([*pieces, text[last:]]))
    for formula in range(graph.n_formulas):
        if formula not in places:
            places[formula] = TextPlace(len(texts), 1, 1 + len(graph.latex[formula]))
            texts.append(f"${graph.latex[formula]}$")
    of_sentence = tuple(number[text] for text in graph.sentence_texts)
    return Segments(tuple(texts), of_sentence, tuple(places[i] for i in range(graph.n_formulas)))


def _missing(graph: MathAMRGraph, what: str) -> GraphError:
    """Make the error of a graph without a text that a model with text features reads."""
    return GraphError(
        f"graph {graph.id!r}",
        f"no {what}, which a model with text features reads; build the graph from its post with GraphBuilder (a graph "
        "from Penman text has texts only where to_penman wrote them)",
    )


def draw_graph(
    graph: MathAMRGraph,
    *,
    theme: Theme = "light",
    formulas: FormulaMode = "both",
    sentences: Sequence[int] | None = None,
    label_length: int = 32,
    formula_width: int = 520,
) -> Picture:
    """Draw a graph with its virtual nodes: sentence by sentence, with boxes for formulas (MathAMR+, Figure 3.1).

    Args:
        graph: the graph of a post or query. Its texts and formulas are shown if it has them.
        theme: ``light`` or ``dark`` background.
        formulas: the trees that are drawn: ``both``, ``opt``, ``slt``, or ``none`` for the formulas only.
        sentences: the numbers of the sentences to draw, from 1; by default all.
        label_length: longer labels are cut; pointing at a node shows the whole label.
        formula_width: width of a row of a symbol layout tree before it is broken, in pixels.

    Returns:
        The picture. Its size grows with the number of nodes, the size of its text does not. Posts of more than a
        hundred sentences are easier to read by parts (``sentences``) or without trees (``formulas="none"``).

    Raises:
        ConfigError: an option has an unknown value, or there is no such sentence.
        MissingPlaceholderError: a formula has no node.
    """
    from .drawing import GraphDrawing  # late: fonts and outlines take longer to import than all of this layer

    FORMULAS.check("formulas", formulas)
    layout = layout_of(graph.amr, graph.n_formulas, graph.id)
    texts = (graph.formula_ids, graph.latex, graph.sentence_texts)
    drawing = GraphDrawing(graph.amr, layout, *texts, formulas, label_length, formula_width)
    return drawing.draw(graph.id or "graph", sentences, theme)
