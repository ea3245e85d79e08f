r"""Search by patterns, measured: is a formula found again under other letters, and with a wildcard in it, and how fast?

Queries are made of formulas of the collection with at least three distinct symbols, and of lines of their derivations::

    renamed    every letter has another name, one to one      x^2+y=0   ──▶  k^2+b=0
    wildcard   one random sub-tree is a wildcard               x^2+y=0   ──▶  ?w+y=0

Both alterations change the LaTeX and are checked on the operator trees, node by node, with none of the code that is
measured. Formulas and alterations are drawn by sha-256.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import to_stderr
from mathamr_systems.experiments.workdir import Artifacts
from pyterrier_mathamr.formula import RELATIONS, FormulaError, FormulaTree, opt_from_latex, trees_from_latex
from pyterrier_mathamr.formula.matching import Extent, with_wildcards
from pyterrier_mathamr.posts import document_post
from pyterrier_mathamr.sparse import PatternIndex
from pyterrier_mathamr.sparse.patterns import read_pattern
from pyterrier_mathamr.store import Rows

T = TypeVar("T")
Alteration = Literal["renamed", "wildcard"]

LEAST_SYMBOLS = 3
"""Distinct symbols of a formula that is altered."""
QUERIES = 1000
"""Formulas of each kind."""
RELEASE = 28_320_920
"""Formulas of the full release of ARQMath."""
ALTERED, TIMES, SIZE = "Altered formulas", "Time of a query", "Size"
_SHARES = {"median": 0.5, "95 %": 0.95, "most": 1.0}
_DEPTH, _FOUND, _ALL = 10, 100, 5000
_MOST_TRIED = 400  # ranges of a formula, in random order, that may be one of its sub-trees
_TOKEN = re.compile(
    r"\\(?:begin|end)\s*\{[^}]*\}"
    r"|\\(?:text|mbox|operatorname|label|tag|mathrm|mathbb|mathcal|hspace|color)\s*\*?\s*\{[^{}]*\}"
    r"|\\[A-Za-z]+\s*|\\.|\s+|.",
    re.DOTALL,
)
_GREEK_NAMES = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi o pi rho . sigma tau"
_GREEK = {
    rf"\{name}": chr(0x1D6FC + place)
    for place, name in enumerate(_GREEK_NAMES.split())
    if len(name) > 1 and name != "epsilon"
}  # as mathematical italics
_KEPT = frozenset({"e", "d", r"\pi"})  # a constant, a differential
_ENVIRONMENT = re.compile(
    r"\\begin\s*\{((?:align|gather|eqnarray|split|aligned|gathered)\w*\*?)\}(.*)\\end\s*\{\1\}", re.DOTALL
)


class Query(NamedTuple):
    """An altered formula, and the one that is sought."""

    latex: str
    docno: str
    how: Alteration


def number_of(text: str) -> int:
    """Return a number derived from a text."""
    return int(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), 16)


def shuffled(values: Sequence[T], seed: str) -> list[T]:
    """Order values by sha-256 of a text and their place."""
    return [values[place] for place in sorted(range(len(values)), key=lambda place: number_of(f"{seed}\n{place}"))]


def tree_of(latex: str) -> FormulaTree | None:
    """Read a formula in all its lines; ``None`` where a part of it is a guess."""
    try:
        tree = opt_from_latex(latex, lines="all")
    except FormulaError:
        return None
    return None if tree.partial else tree


def renamed(latex: str) -> str | None:
    """Give every letter of a formula another name; ``None`` where that cannot be done in its LaTeX."""
    source = tree_of(latex)
    if source is None:
        return None
    tokens = _TOKEN.findall(latex)
    used = dict.fromkeys(token.strip() for token in tokens)
    pools = (ascii_lowercase.replace("e", "").replace("d", ""), ascii_uppercase, tuple(_GREEK))
    names = dict[str, str]()
    for pool in pools:
        own = [letter for letter in pool if letter in used and letter not in _KEPT]
        free = [letter for letter in shuffled(pool, latex) if letter not in used and letter not in _KEPT]
        if len(free) < len(own):
            return None
        names |= dict(zip(own, free, strict=False))
    made = "".join(
        names[token.strip()] + (" " if token[0] == "\\" else "") if token.strip() in names else token
        for token in tokens
    )
    tree = tree_of(made)
    if not names or tree is None or tree.edges != source.edges:
        return None
    forth, back = dict[str, str](), dict[str, str]()
    for old, new in zip(source.nodes, tree.nodes, strict=True):
        letters = old[:2] == new[:2] == "V!"
        if (old != new and not letters) or forth.setdefault(old, new) != new or back.setdefault(new, old) != old:
            return None
    return made if any(old != new for old, new in forth.items()) else None


def with_wildcard(latex: str) -> str | None:
    """Replace a random sub-tree of a formula by a wildcard; ``None`` where none is found in its LaTeX."""
    source = tree_of(latex)
    if source is None:
        return None
    tokens = _TOKEN.findall(latex)
    spans = [(first, last) for first in range(len(tokens)) for last in _ends(tokens, first)]
    for first, last in shuffled(spans, latex)[:_MOST_TRIED]:
        typed = [*tokens[:first], "{", r"\qvar{w}", "}", *tokens[last:]]
        tree = tree_of("".join(typed))
        if tree is not None and _one_is_gone(source, tree):
            return "".join([*tokens[:first], "{?w}", *tokens[last:]])
    return None


def _ends(tokens: Sequence[str], first: int) -> Iterator[int]:
    """Find where a range of tokens from one on may end: braces pair, and it is not all."""
    depth = 0
    for last in range(first, min(len(tokens), first + 40)):
        depth += (tokens[last] in "{(") - (tokens[last] in "})")
        if depth < 0 or (tokens[last][:2] in ("\\b", "\\e") and tokens[last].startswith((r"\begin", r"\end"))):
            return
        if depth == 0 and not tokens[first].isspace() and not tokens[last].isspace() and last - first + 1 < len(tokens):
            yield last + 1


def _one_is_gone(whole: FormulaTree, left: FormulaTree) -> bool:
    """Whether one tree is the other with ``?w`` for one sub-tree, which is not all of it."""
    if left.nodes.count("?w") != 1 or left.nodes[0] == "?w":
        return False
    ours, theirs = whole.children(), left.children()
    stack = [(0, 0)]
    while stack:
        one, other = stack.pop()
        if left.nodes[other] == "?w":
            continue
        if whole.nodes[one] != left.nodes[other] or len(ours[one]) != len(theirs[other]):
            return False
        stack += [(a, b) for (_, a), (_, b) in zip(ours[one], theirs[other], strict=True)]
    return True


def distinct_symbols(latex: str) -> int:
    """Count the distinct symbols of a formula, as it looks."""
    tree = trees_from_latex(latex, lines="all").slt
    return 0 if tree is None or tree.partial else len(set(tree.nodes))


def lines_of(latex: str) -> list[str]:
    """List the lines of a derivation that are separate formulas: each begins without a sign."""
    found = _ENVIRONMENT.search(latex)
    if found is None:
        return []
    lines = [
        re.sub(r"\\(?:label|tag)\s*\{[^}]*\}|\\nonumber|\[\d+\w+\]", "", line) for line in re.split(r"\\\\", found[2])
    ]
    plain = [line.replace("&", " ").strip() for line in lines]
    if len(plain) < 2 or any(line.count("{") != line.count("}") for line in lines):
        return []
    return [line for line, raw in zip(plain, lines, strict=True) if raw.count("&") <= 1 and _is_statement(line)]


def _is_statement(latex: str) -> bool:
    """Whether a line has both sides of a relation, so that it continues no other line."""
    tree = tree_of(latex)
    if tree is None or "W!" in tree.nodes:
        return False
    kids = [len(below) for below in tree.children()]
    return tree.nodes[0] in RELATIONS and kids[0] > 1


ALTERATIONS: dict[Alteration, Callable[[str], str | None]] = {"renamed": renamed, "wildcard": with_wildcard}


def make_queries(
    formulas: Sequence[tuple[str, str]],
    how: Alteration,
    count: int,
    *,
    lines: bool,
    holds: Callable[[str], bool],
) -> list[Query]:
    """Alter formulas, or one line of each, in the order that they are given; none into another of the collection."""
    found = list[Query]()
    for docno, latex in formulas:
        if len(found) == count:
            break
        source = next(iter(shuffled(lines_of(latex), latex)), "") if lines else latex
        if source and distinct_symbols(source) >= LEAST_SYMBOLS:
            made = ALTERATIONS[how](source)
            if made is not None and not holds(made):
                found.append(Query(made, docno, how))
    return found


def holder(index: PatternIndex) -> Callable[[str], bool]:
    """Return a predicate: whether a formula, or a line of one, equals another up to the order of operands."""
    of = index.snapshot().terms.stored

    def holds(latex: str) -> bool:
        pattern = read_pattern(latex)
        if pattern is None:
            return True
        terms = np.arange(*of.of_shape(pattern.shapes[pattern.root]))
        same = terms[of.exact[terms] == np.uint64(pattern.keys[pattern.root])]
        return bool(np.any(of.best_places[same] >= Extent.STATEMENT))

    return holds


def search_queries(index: PatternIndex, retriever: Any, queries: Sequence[Query]) -> pd.DataFrame:
    """Search with each query.

    Returns:
        For each query ``rank``, how many other formulas are before the one that is sought (-1 for one that is not
        found); ``above``, how many are in a higher tier; ``seconds`` on the clock and of the ``cpu``; and ``left``, the
        distinct symbols of the query.
    """
    snapshot, all_of = index.snapshot(), index.retriever(_ALL, similar=retriever.similar)
    rows = list[tuple[Any, ...]]()
    for query, sought in zip(queries, snapshot.expressions_of([each.docno for each in queries]).tolist(), strict=True):
        began, worked = time.perf_counter(), time.process_time()
        retriever.search(query.latex)
        seconds, cpu = time.perf_counter() - began, time.process_time() - worked
        found = all_of.search(query.latex)
        found = found[snapshot.look_up(found["docno"].tolist()) >= 0]
        own: Rows = snapshot.expressions_of(found["docno"].tolist())
        tiers = found["score"].to_numpy().astype(int)
        places = np.flatnonzero(own == sought)
        rank = above = -1
        if len(places):
            before = own[: places[0]]
            rank = len(set(before.tolist()))
            above = len(set(before[tiers[: places[0]] > tiers[places[0]]].tolist()))
        rows.append(
            (query.docno, query.latex, rank, above, seconds, cpu, distinct_symbols(with_wildcards(query.latex)) - 1)
        )
    return pd.DataFrame(rows, columns=["docno", "latex", "rank", "above", "seconds", "cpu", "left"])


def _row(kind: str, how: str, found: pd.DataFrame) -> dict[str, Any]:
    def share(here: Any) -> float:
        return round(float(np.mean(here)), 4)

    ten = found["rank"].between(0, _DEPTH - 1)
    return {
        "of": kind,
        "query": how,
        "queries": len(found),
        "first": share(found["rank"] == 0),
        "first, ties shared": share(found["above"] == 0),
        "first ten": share(ten),
        "first ten, ties shared": share(found["above"].between(0, _DEPTH - 1)),
    }


def run_patterns(path: str | Path, workdir: str | Path, *, count: int = QUERIES, verbose: bool = True) -> Report:
    """Measure the search by patterns on an ARQMath folder; the report is written to ``patterns`` of the work folder."""
    shared = Artifacts(path, Path(workdir), say=to_stderr if verbose else None, verbose=verbose)
    index, tangent = shared.patterns, shared.tangent
    retriever = index.retriever(_FOUND, similar=tangent.retriever(_FOUND))
    formulas = [
        (formula.id, formula.latex) for post in map(document_post, shared.documents()) for formula in post.formulas
    ]
    known = index.snapshot().look_up([name for name, _ in formulas]) >= 0
    drawn = sorted(
        (pair for pair, has in zip(formulas, known, strict=True) if has), key=lambda pair: number_of(pair[0])
    )
    retriever.search("x^2+y^2=1")  # opens the indexes
    rows: list[dict[str, Any]] = []
    seconds: list[pd.DataFrame] = []
    with shared.stages.timed("altered formulas"):
        for kind, lines in (("formulas", False), ("lines", True)):
            for how in ALTERATIONS:
                queries = make_queries(drawn, how, count, lines=lines, holds=holder(index))
                found = search_queries(index, retriever, queries)
                rows.append(_row(kind, how, found))
                seconds.append(found[["seconds", "cpu"]])
                if how == "wildcard":
                    rows.append(
                        _row(kind, f"{how}, {LEAST_SYMBOLS} symbols left", found[found["left"] >= LEAST_SYMBOLS])
                    )
    milliseconds = 1000 * pd.concat(seconds)
    of, size = index.snapshot(), sum(file.stat().st_size for file in index.path.rglob("*") if file.is_file())
    payload = of.terms.stored
    each = size / len(of)
    table = {
        "formulas": len(of),
        "expressions": len(payload.symbols),
        "sub-expressions": len(payload.shapes),
        "bytes a formula": round(each, 1),
        "GB of the release": round(each * RELEASE / 1e9, 1),
    }
    times = [
        {
            "time": name,
            "queries": len(milliseconds),
            **{column: round(float(milliseconds[of].quantile(share)), 1) for column, share in _SHARES.items()},
        }
        for name, of in (("on the clock", "seconds"), ("of the CPU", "cpu"))
    ]
    return Report(
        title=f"Search by patterns on {shared.path.name}",
        settings={"collection": str(shared.path), "queries": count},
        stages=tuple(shared.stages.records),
        tables={
            ALTERED: pd.DataFrame([row for row in rows if row["queries"]]),
            TIMES: pd.DataFrame(times),
            SIZE: pd.DataFrame([table]),
        },
        about={
            ALTERED: f"Formulas with at least {LEAST_SYMBOLS} distinct symbols, drawn by sha-256 of their ids, and "
            "lines of derivations that are separate statements; none was altered into another formula or line of "
            "the collection. `first`: no other formula is before it. `ties shared`: no formula of a higher tier is; "
            "formulas of one tier match the query equally well, and the query does not determine which one was meant.",
            TIMES: f"Milliseconds of the {len(milliseconds):,} searches above, one by one, for {_FOUND} formulas, "
            "Tangent's search included.",
            SIZE: f"The release has {RELEASE:,} formulas; its size is by arithmetic, and an upper bound, since "
            "repetitions are stored once.",
        },
    ).write(shared.workdir / "patterns")
