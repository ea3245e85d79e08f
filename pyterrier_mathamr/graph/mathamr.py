"""`MathAMRGraph`: the graph of a whole post, AMR and formula trees, to and from Penman notation.

::

# ::id 154
# ::formula_map {"FORMULA_0": "9549293"}
(e / equal-01 :ARG1 (f / FORMULA_0 :opt (t0 / V!x) :slt (t1 / V!x)) :ARG2 (z / zero))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.amr import AmrGraph, check_penman, decode_penman, encode_penman
from pyterrier_mathamr.posts import placeholder

from .errors import GraphMetadataError
from .structure import layout_of, placeholder_number

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
        from .drawing.graph_drawing import draw_graph

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
