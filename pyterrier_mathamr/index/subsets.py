"""Searching a part of an index: documents by docno, and documents by the columns that were kept at indexing.

::

    subset=  docnos, or a frame of qid and docno      the numbers of the documents of each query, QueryBatch.among
    where=   year >= 2015 & 'algebra' in tags         a condition on kept columns, How.where; a backend evaluates it

A search is exact within both: it ranks all documents that pass, however low they are among all. The columns of a
document are stored as one JSON object; one without columns stores nothing.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import is_missing
from pyterrier_mathamr._common.parameters import Rule

from .backend import Backend, Numbers
from .errors import EmbeddingError

Value = str | int | float | bool  # a value of a kept column, or one of a list
_OWN = ("docno", "doc_embs", "doc_model", "formula_ids")

KEEP = Rule(
    f"names of columns, as of Python's variables, except {', '.join(_OWN)}",
    lambda value: (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(name, str) and name.isidentifier() and name not in _OWN for name in value)
    ),
).or_none()
"""The option ``keep`` of indexers."""


def kept_text(docno: str, record: Mapping[str, Any], keep: Sequence[str]) -> str:
    """Write the kept columns of a document as JSON, without empty ones; nothing where all are empty."""
    given = {name: _plain(docno, name, record[name]) for name in keep if not is_missing(record.get(name))}
    return json.dumps(given, ensure_ascii=False) if given else ""


def kept_columns(text: str) -> dict[str, Any]:
    columns: dict[str, Any] = json.loads(text) if text else {}
    return columns


def _plain(docno: str, column: str, value: Any) -> Value | list[Value]:
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(value, list | tuple | set | frozenset):
        ordered = sorted(value) if isinstance(value, set | frozenset) else value
        values = [_plain(docno, column, one) for one in ordered]
        if not any(isinstance(one, list) for one in values):
            return values  # type: ignore[return-value]
    elif isinstance(value, Value) and value == value and abs(value if not isinstance(value, str) else 0) != np.inf:
        return value
    raise EmbeddingError(docno, f"its {column!r} is {value!r:.80}, not text, a finite number, or a list of them")


class Predicate(NamedTuple):
    """A condition on one column: its value, or one value of its list, is among ``values``, or less or greater."""

    column: str
    sign: str  # in < <= > >=
    values: tuple[Value, ...]

    def holds(self, columns: Mapping[str, Any]) -> bool:
        """Whether a document with these columns passes; one without the column, or with another type, does not."""
        stored, compare = columns.get(self.column, []), _SIGNS[self.sign]
        pairs = product(stored if isinstance(stored, list) else [stored], self.values)
        return any(_kind(one) is _kind(value) and compare(one, value) for one, value in pairs)

    def names(self) -> set[str]:
        return {self.column}


class Group(NamedTuple):
    """Conditions that must all hold, or of which one must."""

    every: bool
    conditions: tuple[Predicate | Group, ...]

    def holds(self, columns: Mapping[str, Any]) -> bool:
        return (all if self.every else any)(one.holds(columns) for one in self.conditions)

    def names(self) -> set[str]:
        return set().union(*(one.names() for one in self.conditions))


Condition = Predicate | Group


def _kind(value: Value) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "in": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARED: dict[type, str] = {ast.Eq: "in", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_TURNED = {"in": "in", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ALLOWED = "a condition such as \"year >= 2015 & 'algebra' in tags\": ==, <, <=, >, >= and in, with & and |"
_QUOTED_OR_SIGN = re.compile(r"('(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")|[&|]")


@lru_cache(maxsize=16)
def read_where(where: str) -> Condition:
    """Parse a condition; as in pandas, ``&`` and ``|`` bind less tightly than comparisons."""
    joined = _QUOTED_OR_SIGN.sub(lambda match: match[1] or {"&": " and ", "|": " or "}[match[0]], where.strip())
    try:
        return _read(ast.parse(joined, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise ConfigError("where", where, _ALLOWED) from error


def _read(node: ast.expr) -> Condition:
    if isinstance(node, ast.BoolOp):
        return Group(isinstance(node.op, ast.And), tuple(map(_read, node.values)))
    if not isinstance(node, ast.Compare):
        raise ValueError(ast.dump(node))
    operands = zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
    predicates = tuple(_predicate(left, sign, right) for left, sign, right in operands)
    return predicates[0] if len(predicates) == 1 else Group(True, predicates)


def _predicate(left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Predicate:
    if isinstance(sign, ast.In) and isinstance(left, ast.Name) and isinstance(right, ast.List | ast.Tuple | ast.Set):
        return Predicate(left.id, "in", tuple(map(_value, right.elts)))
    if isinstance(sign, ast.In) and isinstance(right, ast.Name):
        return Predicate(right.id, "in", (_value(left),))
    compared = _COMPARED[type(sign)]
    if isinstance(left, ast.Name):
        return Predicate(left.id, compared, (_value(right),))
    if isinstance(right, ast.Name):
        return Predicate(right.id, _TURNED[compared], (_value(left),))
    raise ValueError(ast.dump(left))


def _value(node: ast.expr) -> Value:
    value = ast.literal_eval(node)
    if not isinstance(value, Value):
        raise TypeError(value)
    return value


def check_where(where: str, backend: Backend) -> Condition:
    """Parse a condition on the columns of an index, and refuse columns that it does not keep."""
    condition, kept = read_where(where), backend.meta.keep
    if not condition.names() <= set(kept):
        reason = f"the kept columns: {', '.join(kept)}" if kept else "columns, but none were kept: indexer(keep=[…])"
        raise ConfigError("where", where, f"a condition on {reason}")
    return condition


@dataclass(frozen=True)
class Subset:
    """The documents that are searched: the same for all queries, or those of each query; see :meth:`of`."""

    docnos: tuple[str, ...]
    qids: tuple[str, ...] | None = None

    @classmethod
    def of(cls, given: object) -> Subset | None:
        """Read the option ``subset``: docnos, or a frame with ``docno`` and, for each query by itself, ``qid``."""
        if given is None or isinstance(given, Subset):
            return given
        if isinstance(given, pd.DataFrame) and "docno" in given.columns:
            qids = tuple(map(str, given["qid"])) if "qid" in given.columns else None
            return cls(tuple(map(str, given["docno"])), qids)
        if isinstance(given, Iterable) and not isinstance(given, str | bytes | pd.DataFrame):
            return cls(tuple(map(str, given)))
        raise ConfigError("subset", given, "docnos, or a frame with docno and, for each query by itself, qid")

    @property
    def nickname(self) -> str:
        return f"{len(self.docnos)} docnos"

    def numbers(self, backend: Backend, qids: Sequence[str]) -> tuple[Numbers, ...]:
        """Look up the documents of each query, ascending; ``UnknownIdError`` names unknown ones."""
        numbers = backend.find(self.docnos)
        if self.qids is None:
            return (np.unique(numbers),) * len(qids)
        of_query = dict(iter(pd.Series(numbers).groupby(list(self.qids)))) if self.qids else {}
        return tuple(np.unique(of_query.get(qid, np.empty(0, dtype=np.int64))) for qid in qids)

    def has(self, qids: Sequence[str], docnos: Sequence[str]) -> list[bool]:
        """Return for each row of a ranking whether its document is searched for its query."""
        if self.qids is None:
            inside = set(self.docnos)
            return [docno in inside for docno in docnos]
        pairs = set(zip(self.qids, self.docnos, strict=True))
        return [pair in pairs for pair in zip(qids, docnos, strict=True)]
