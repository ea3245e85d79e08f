"""What is read of posts before their expressions are taken: by the indexer itself, or by workers of an executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from pyterrier_mathamr._common.feedback import Overheard, Problem, gathered, overheard
from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.formula import FormulaPair, FormulaStore, definitions, tell_unknown_commands
from pyterrier_mathamr.posts import PostFormula
from pyterrier_mathamr.sparse.reading import document_post

from .content import digests
from .trees import formula_trees

Row = Mapping[str, Any]
Key = tuple[str, str]


class Found(NamedTuple):
    """A formula of a post, and the hash of the post."""

    formula: PostFormula
    post_id: DocNo
    source: int
    macros: str


class Taker(Protocol):
    """What is kept of an expression, computed by itself; it can be pickled."""

    def __call__(self, pair: FormulaPair) -> Any:
        """Return what a payload's ``add_taken`` is given."""


class Expression(NamedTuple):
    """The expression of a formula.

    Attributes:
        key: what tells it from others; ``None`` for a formula without trees.
        taken: what is kept of it.
        problems: what is told of the formula if it is the first of its id.
    """

    key: Key | None
    taken: Any
    problems: tuple[Problem, ...]


class Unread(NamedTuple):
    """Some posts for a worker.

    Attributes:
        posts: the number of all posts of the batch.
        done: hashes of those that an earlier run has stored.
        rest: the others, with their hashes.
    """

    posts: int
    done: list[int]
    rest: list[tuple[Row, int]]


class Read(NamedTuple):
    """What a worker has read of some posts.

    Attributes:
        posts: the number of all posts of the batch.
        done: hashes of those that an earlier run has stored.
        found: the formulas of the others.
        expressions: of each formula; of equal ones ``taken`` is the same object.
        heard: what was warned of.
    """

    posts: int
    done: list[int]
    found: list[Found]
    expressions: list[Expression]
    heard: Overheard


@dataclass(frozen=True, eq=False)
class PostReader:
    """Reads the formulas of posts and their trees.

    Attributes:
        bare_formulas: also read formulas without delimiters.
        store: the official trees.
    """

    bare_formulas: bool
    store: FormulaStore | None

    def found(self, row: Row, source: int) -> list[Found]:
        """Read the formulas of a post."""
        docno = str(row["docno"])
        formulas = document_post(row, bare_formulas=self.bare_formulas).formulas
        macros = definitions(formula.latex for formula in formulas)
        return [Found(formula, docno, source, macros) for formula in formulas]

    def trees(self, found: Sequence[Found]) -> list[FormulaPair]:
        """Read or make the trees of formulas."""
        return formula_trees((of.formula for of in found), self.store, (of.macros for of in found))


@dataclass(frozen=True, eq=False)
class ReadPosts:
    """Work of a batch of posts.

    Attributes:
        reader: reads them.
        take: what is kept of an expression.
    """

    reader: PostReader
    take: Taker

    def __call__(self, posts: Unread) -> Read:
        """Read the formulas of the posts, and take their expressions, each once."""
        with overheard() as heard:
            found = [of for row, source in posts.rest for of in self.reader.found(row, source)]
            trees = self.reader.trees(found)
        known: dict[Key, Any] = {}
        expressions = [self._expression(of, pair, known) for of, pair in zip(found, trees, strict=True)]
        return Read(posts.posts, posts.done, found, expressions, heard)

    def _expression(self, of: Found, pair: FormulaPair, known: dict[Key, Any]) -> Expression:
        if pair.slt is None and pair.opt is None:
            return Expression(None, None, ())
        with gathered() as problems:
            tell_unknown_commands(of.post_id, of.formula.latex, pair)
        key = digests(pair)
        if key not in known:
            known[key] = self.take(pair)
        return Expression(key, known[key], tuple(problems))
