"""Graphs as numbers: the vocabulary and the arrays of one graph.

Labels are normalized first (MathAMR+, section 3.3.1), one example of each rule::

    V!𝑥                     V!x             NFKC: compatibility variants to one form
    https://en.wikipedia…   [URL]           anything with ``http`` or ``www.``
    FORMULA_12              [FORMULA]       placeholders
    continuity              continu         Porter stem of an AMR concept; constants and formula symbols stay
    solve-01                solve-01        PropBank frames stay
    N!1729, 1729            [UNKNUM_INT]    numbers seen fewer than five times, by type (``number_token``)

The numbers that labels and roles have in a model (section 4.1)::

    node ids      0 [UNK]  1 [MASK]  2 VIRTUAL_FORMULA  3 VIRTUAL_SENTENCE  4 VIRTUAL_DOCUMENT  5 [FORMULA]  6 [URL]
                  7 [UNKNUM_INT]  8 [UNKNUM_DEC]  9 [UNKNUM_RAT]  10… labels, the most frequent first
                  … [UNKNOWN_0]  [UNKNOWN_1] …, if requested: any other label is assigned one of them by its hash
    relation ids  0 :unknown   2 :virtual_formula   4 :virtual_sentence   6 :virtual_document   8 :auxiliary_vn
                  10… roles in alphabetical order; the odd number after each is its inverse, written with a star

The first ids are the same in every vocabulary. A label of a graph never has the id of one of the first five names: the
word VIRTUAL_DOCUMENT in a post is an ordinary concept.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import Stemmer

from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr._common.types import FormulaMode

from .mathamr import MathAMRGraph
from .structure import (
    VIRTUAL_ROLES,
    Auxiliary,
    GraphError,
    NodeKind,
    VirtualKind,
    VirtualNodes,
    check_conditions,
    layout_of,
    placeholder_number,
    virtual_part,
)

NORMALISATION_VERSION = 1
"""The version of these rules, part of the vocabulary's hash: a change alters the meaning of ids."""

URL, FORMULA = "[URL]", "[FORMULA]"
UNKNUM_INT, UNKNUM_DEC, UNKNUM_RAT = "[UNKNUM_INT]", "[UNKNUM_DEC]", "[UNKNUM_RAT]"

_FRAME = re.compile(r".*-[0-9]+")
_INTEGER = r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
_POINT = r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)"
_NUMBERS = (
    (re.compile(_INTEGER), UNKNUM_INT),
    (re.compile(rf"{_POINT}|(?:{_POINT}|{_INTEGER})[eE][+-]?[0-9]+"), UNKNUM_DEC),
    (re.compile(rf"{_INTEGER} *[/\u2044] *[0-9]+"), UNKNUM_RAT),  # NFKC turns one-character fractions into U+2044
)
_LONGEST_WORD = 64
_PORTER = Stemmer.Stemmer("porter")


def normalise(label: str, kind: NodeKind) -> str:
    """Map the variants of a label of a ``kind`` of node to the form that is counted and looked up."""
    text = unicodedata.normalize("NFKC", label)
    folded = text.casefold()
    if "http" in folded or "www." in folded:
        return URL
    if kind >= NodeKind.OPT:
        return text
    if placeholder_number(text) >= 0:
        return FORMULA
    if kind is not NodeKind.CONCEPT or len(text) > _LONGEST_WORD or _FRAME.fullmatch(text):
        return text
    stem: str = _PORTER.stemWord(text)
    return stem


def number_token(text: str) -> str | None:
    """Return the token of rare numbers of a number's type, or ``None`` if the text is not a number."""
    digits = text.removeprefix("N!").replace("&comma;", ",")
    if not digits[-1:].isascii() or not (digits[-1:].isdigit() or digits[-1:] == "."):
        return None
    return next((token for pattern, token in _NUMBERS if pattern.fullmatch(digits)), None)


VOCABULARY_FORMAT = 1
"""The version of the file format."""

UNK_ID, MASK_ID = 0, 1
FIRST_VIRTUAL_ID = 2
"""Id of ``VIRTUAL_FORMULA``; that of another kind is this plus the :class:`VirtualKind`."""

RESERVED_NODES = ("[UNK]", "[MASK]", *(f"VIRTUAL_{kind.name}" for kind in VirtualKind))
SPECIAL_NODES = (*RESERVED_NODES, FORMULA, URL, UNKNUM_INT, UNKNUM_DEC, UNKNUM_RAT)
UNKNOWN_ROLE = ":unknown"
SPECIAL_ROLES = (UNKNOWN_ROLE, *VIRTUAL_ROLES)

_MOST_ROLES = 16_000  # relation ids, inverses included, fit int16
_MOST_UNPACKED, _MOST_GROWTH = 1 << 20, 50  # words shrink to about a third
_CACHE_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Labels and relations by number.

    Attributes:
        nodes: label of each node id.
        relations: name of each relation id, ``role`` at even and ``role*`` at odd ones.
        hash: sha256 of the content and the versions, 64 hexadecimal digits.
    """

    nodes: tuple[str, ...]
    relations: tuple[str, ...]
    hash: str = field(init=False, compare=False)
    _ids: Mapping[str, int] = field(init=False, compare=False, repr=False)
    _roles: Mapping[str, int] = field(init=False, compare=False, repr=False)
    _known: tuple[dict[str, int], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        roles = self.relations[::2]
        if self.nodes[: len(SPECIAL_NODES)] != SPECIAL_NODES or roles[: len(SPECIAL_ROLES)] != SPECIAL_ROLES:
            raise GraphError("vocabulary", "the special tokens and roles are not at the beginning")
        if self.relations != _with_inverses(roles):
            raise GraphError("vocabulary", "a role is not followed by its inverse")
        if len(set(self.nodes)) != len(self.nodes) or len(set(roles)) != len(roles):
            raise GraphError("vocabulary", "a label or role occurs twice")
        first = len(RESERVED_NODES)
        values = {
            "hash": hashlib.sha256(json.dumps(self._content()).encode()).hexdigest(),
            "_ids": {label: i for i, label in enumerate(self.nodes[first:], first)},
            "_roles": {role: 2 * i for i, role in enumerate(roles)},
            "_known": ({}, {}, {}, {}),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self.nodes)} nodes, {len(self.relations)} relations, {self.hash[:12]}>"

    def __reduce__(self) -> tuple[type[Vocabulary], tuple[tuple[str, ...], tuple[str, ...]]]:
        return Vocabulary, (self.nodes, self.relations)

    @classmethod
    def build(
        cls,
        graphs: Iterable[MathAMRGraph],
        *,
        size: int = 20_000,
        min_number_count: int = 5,
        min_role_count: int = 5,
    ) -> Vocabulary:
        """Count and number the labels and roles of graphs, independently of the order of the graphs.

        Args:
            graphs: the training graphs, read once.
            size: the most node ids, special tokens included, for the most frequent labels, ties in alphabetical order.
            min_number_count: less frequent numbers share the three UNKNUM ids.
            min_role_count: less frequent roles are unknown: a few long posts and wide matrices add hundreds of rare
                roles, such as ``:snt200``, without a gain (docs/archive/models.md). The paper keeps every role (1).
        """
        labels, roles = count_labels(graphs)
        counts: Counter[str] = Counter()
        for (label, kind), count in labels.items():
            counts[normalise(label, kind)] += count
        kept = [
            text
            for text in sorted(counts, key=lambda text: (-counts[text], text))
            if text not in SPECIAL_NODES and (counts[text] >= min_number_count or number_token(text) is None)
        ]
        frequent = sorted(roles, key=lambda role: (-roles[role], role))
        common = [role for role in frequent if roles[role] >= min_role_count][:_MOST_ROLES]
        names = [*SPECIAL_ROLES, *sorted(role for role in common if role not in SPECIAL_ROLES)]
        return cls((*SPECIAL_NODES, *kept[: max(size - len(SPECIAL_NODES), 0)]), _with_inverses(names))

    def node_id(self, label: str, kind: NodeKind) -> int:
        """Look up the ``label`` of a ``kind`` of node: its id, or the id of its type of number or of unknown labels."""
        known = self._known[kind]
        number = known.get(label)
        if number is None:
            text = normalise(label, kind)
            number = self._ids.get(text)
            if number is None:
                token = number_token(text)
                number = UNK_ID if token is None else self._ids[token]
            if len(known) < _CACHE_LIMIT:
                known[label] = number
        return number

    def node_ids(self, labels: Sequence[str], kinds: Sequence[NodeKind]) -> list[int]:
        """Look up the ``labels`` of a whole graph, given the ``kinds`` of its nodes; see :meth:`node_id`."""
        known = self._known
        ids = [known[kind].get(label, -1) for label, kind in zip(labels, kinds, strict=True)]
        return ids if -1 not in ids else [self.node_id(*node) for node in zip(labels, kinds, strict=True)]

    def role_ids(self, roles: Iterable[str]) -> list[int]:
        """Look up the roles of a whole graph, none of them inverse; unknown roles share one id."""
        return [self._roles.get(role, 0) for role in roles]

    def spellings(self, graphs: Iterable[MathAMRGraph]) -> list[str]:
        """Find the most frequent label of each id: stemmed concepts and rare numbers share ids.

        Args:
            graphs: read once.

        Returns:
            One label for each id, ties in alphabetical order; empty for ids that no graph has and for unknown labels.
        """
        labels, _ = count_labels(graphs)
        counts: Counter[tuple[int, str]] = Counter()
        for (label, kind), count in labels.items():
            counts[self.node_id(label, kind), label] += count
        spellings = [""] * len(self.nodes)
        for (number, label), _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            spellings[number] = spellings[number] or label
        return ["", *spellings[UNK_ID + 1 :]]

    def save(self, path: str | Path) -> None:
        """Write the vocabulary as JSON, compressed for a name in ``.gz``; the same bytes each time."""
        path = Path(path)
        data = (json.dumps(self._content(), indent=0, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read a vocabulary that :meth:`save` wrote.

        Raises:
            GraphError: the file is damaged, or has an unknown format or normalization.
        """
        path = Path(path)
        try:
            data = path.read_bytes()
            text = _unpacked(data) if path.suffix == ".gz" else data
            content = parse_json(text.decode("utf-8", "surrogatepass"))
            versions = (content["format"], content["normalisation"])
            nodes, roles = tuple(map(str, content["nodes"])), tuple(map(str, content["roles"]))
        except (EOFError, ValueError, KeyError, TypeError, gzip.BadGzipFile, zlib.error) as error:
            raise _unreadable(path, f"no vocabulary ({type(error).__name__}: {error})") from error
        if versions != (VOCABULARY_FORMAT, NORMALISATION_VERSION):
            wanted = (VOCABULARY_FORMAT, NORMALISATION_VERSION)
            raise _unreadable(path, f"format and normalization {versions}, but this release reads {wanted}")
        return cls(nodes, _with_inverses(roles))

    def _content(self) -> dict[str, object]:
        return {
            "format": VOCABULARY_FORMAT,
            "normalisation": NORMALISATION_VERSION,
            "nodes": self.nodes,
            "roles": self.relations[::2],
        }


def _with_inverses(roles: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for role in roles for name in (role, role + "*"))


def _unreadable(path: Path, reason: str) -> GraphError:
    return GraphError(str(path), f"{reason}; build the vocabulary with Vocabulary.build and save it")


def _unpacked(data: bytes) -> bytes:
    """Decompress a file, unless it grows more than a list of words could."""
    most = _MOST_UNPACKED + _MOST_GROWTH * len(data)
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise ValueError(f"{len(data):,} bytes unpack to more than {most:,}")
    return text


def count_labels(graphs: Iterable[MathAMRGraph]) -> tuple[Counter[tuple[str, NodeKind]], Counter[str]]:
    """Count the labels, by kind of node, and the de-inverted roles of graphs, without roles that end in a star."""
    labels: Counter[tuple[str, NodeKind]] = Counter()
    roles: Counter[str] = Counter()
    for graph in graphs:
        layout = layout_of(graph.amr, graph.n_formulas, graph.id)
        labels.update(zip(graph.amr.labels, layout.kinds, strict=True))
        roles.update(role for _, role, _ in graph.amr.triples())
    return labels, Counter({role: count for role, count in roles.items() if not role.endswith("*")})


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
