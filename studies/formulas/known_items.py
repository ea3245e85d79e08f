r"""Known-item search for formulas: the query is an altered formula of the collection, the answer the original.

It needs no judgments and has hundreds of queries, so it distinguishes systems better than a year's topics do; but it
measures whether a formula is found again, not whether results are relevant. A formula is altered as somebody half
remembers it: one variable is renamed throughout, or a piece is missing. Both alterations change the LaTeX,
since every system reads it, and are checked on the layout trees: a renamed formula differs only in that variable,
and a cut formula lacks a single run of symbols (a sub-tree; in ``a+b+c`` the term ``+b``)::

    x^2+y  ──renamed──▶  x^2+k          x^{2n}+y  ──cut──▶  x+y    x^{2n}
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from string import ascii_letters
from typing import Literal, NamedTuple, TypeVar

import pandas as pd

from mathamr_systems.experiments.measuring import (
    KNOWN_ITEM_MEASURES,
    Comparison,
    TimedPipeline,
    compare,
    random_known_items,
)
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.workdir import FormulaArtifacts
from pyterrier_mathamr.formula import FormulaPair, FormulaTree, trees_from_latex
from pyterrier_mathamr.posts import PostFormula, document_post

T = TypeVar("T")
Alteration = Literal["renamed", "cut"]

LEAST_NODES = 6
"""Layout trees with fewer nodes are not altered: too many formulas look like the remainder."""
_LEAST_LEFT = 0.5  # of the nodes after a cut
_TOKEN = re.compile(r"\\[A-Za-z]+\s*|\\.|\s+|.", re.DOTALL)
_SIGNS = ("+", "-", "=", "<", ">", ",")
_RELATIONS = (r"\le", r"\leq", r"\ge", r"\geq", r"\to", r"\in", r"\subset", r"\approx", r"\equiv", r"\sim")
_OPERATORS = frozenset((*_SIGNS, *_RELATIONS, r"\cdot", r"\times", r"\pm"))


class Altered(NamedTuple):
    """An altered formula."""

    latex: str
    how: Alteration
    trees: FormulaPair


def alterations(latex: str) -> Iterator[Altered]:
    """Alter a formula, in an order that depends only on its LaTeX."""
    source = trees_from_latex(latex, lines="all").slt
    if source is None or source.partial or len(source.nodes) < LEAST_NODES:
        return
    tokens = _TOKEN.findall(latex)
    ways: list[Iterator[Altered]] = [_renamed(latex, tokens, source), _cut(latex, tokens, source)]
    if _number(latex) % 2:
        ways.reverse()
    while ways:
        way = ways.pop(0)
        found = next(way, None)
        if found is not None:
            ways.append(way)
            yield found


def _renamed(latex: str, tokens: Sequence[str], source: FormulaTree) -> Iterator[Altered]:
    """Rename one variable to a letter that the formula does not have."""
    labels = set(source.nodes)
    letters = [letter for letter in ascii_letters if f"V!{letter}" in labels]
    free = [letter for letter in ascii_letters if letter not in latex]
    for old in _shuffled(letters, latex):
        same_case = [letter for letter in free if letter.isupper() == old.isupper()]
        for new in _shuffled(same_case, latex + old)[:1]:
            made = "".join(new if token == old else token for token in tokens)
            trees = trees_from_latex(made, lines="all")
            wanted = tuple(f"V!{new}" if label == f"V!{old}" else label for label in source.nodes)
            if trees.slt is not None and trees.opt is not None and trees.slt.nodes == wanted:
                yield Altered(made, "renamed", trees)


def _cut(latex: str, tokens: Sequence[str], source: FormulaTree) -> Iterator[Altered]:
    """Cut a script, or an operator and what follows it up to the next one."""
    nodes = source.nodes
    for start, end in _shuffled(list(_pieces(tokens)), latex):
        made = "".join([*tokens[:start], " ", *tokens[end:]]).strip()
        trees = trees_from_latex(made, lines="all")
        if trees.slt is None or trees.opt is None or trees.slt.partial:
            continue
        left = trees.slt.nodes
        if _LEAST_LEFT * len(nodes) <= len(left) < len(nodes) and _run_is_gone(nodes, left):
            yield Altered(made, "cut", trees)


def _pieces(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find the scripts, and the operators with what follows them, as ranges of tokens."""
    for start, token in enumerate(tokens):
        if token in "^_":
            yield start, _after_argument(tokens, start + 1)
        elif token.strip() in _OPERATORS:
            end, depth = start + 1, 0
            while end < len(tokens) and (depth or tokens[end].strip() not in _OPERATORS):
                depth += (tokens[end] in "{([") - (tokens[end] in "})]")
                if depth < 0:
                    break
                end += 1
            yield start, end


def _after_argument(tokens: Sequence[str], place: int) -> int:
    """Return the place after an argument: one token, or a group in braces."""
    depth = 0
    for end in range(place, len(tokens)):
        depth += (tokens[end] == "{") - (tokens[end] == "}")
        if depth <= 0 and not tokens[end].isspace():
            return end + 1
    return len(tokens)


def _run_is_gone(whole: Sequence[str], left: Sequence[str]) -> bool:
    """Whether one sequence is the other without a single run."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(whole, left, strict=False)))
    after = len(left) - same
    return not after or tuple(whole[-after:]) == tuple(left[-after:])


def _shuffled(values: Sequence[T], latex: str) -> list[T]:
    """Order values by sha-256 of the formula and their place."""
    return [values[place] for place in sorted(range(len(values)), key=lambda place: _number(f"{latex}\n{place}"))]


def _number(text: str) -> int:
    return int(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), 16)


KNOWN_FORMULAS = 500
"""Queries that are drawn."""
KNOWN = "Known formulas"
RANDOM_FORMULAS = "random order of all formulas"
ALL = "all"
_DRAWN = 4  # formulas looked at for each query: some are too small, or have LaTeX that is not wholly understood
_AT_ONCE = 50  # queries searched together, which bounds the memory
_DEPTH = 10


def known_formulas(
    formulas: Iterable[tuple[str, str]], holds: Callable[[FormulaPair], bool], count: int = KNOWN_FORMULAS
) -> pd.DataFrame:
    """Alter formulas, one variable renamed throughout or one piece cut."""
    rows: list[tuple[str, ...]] = []
    for docno, latex in formulas:
        if len(rows) == count:
            break
        made = next((made for made in alterations(latex) if not holds(made.trees)), None)
        if made is not None:
            name = f"known-{docno}"
            rows.append((name, "", PostFormula(made.latex, name).html, name, made.latex, docno, made.how))
    columns = ["qid", "title", "body", "formula_id", "latex", "docno", "how"]
    table: pd.DataFrame = pd.DataFrame(rows, columns=columns, dtype=str)
    return table


def draw_known_formulas(shared: FormulaArtifacts, count: int = KNOWN_FORMULAS) -> pd.DataFrame:
    """Draw formulas of a collection by sha-256 of their visual ids, and alter them."""
    owners: dict[str, str] = {}
    for entry in shared.tangent.get_corpus_iter():
        if entry["visual_id"]:
            owners.setdefault(entry["visual_id"], entry["docno"])
    drawn = sorted(owners, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[: _DRAWN * count]
    wanted = {owners[name] for name in drawn}
    posts = map(document_post, shared.documents())
    latex = {formula.id: formula.latex for post in posts for formula in post.formulas if formula.id in wanted}
    known = ((name, latex[owners[name]]) for name in drawn if owners[name] in latex)
    return known_formulas(known, shared.tangent.snapshot().holds, count)


def search_known_formulas(pipelines: Mapping[str, TimedPipeline], queries: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Search with each system, and keep the first ten formulas of each query."""
    topics = queries.drop(columns=["docno", "how"])
    parts = [topics.iloc[start : start + _AT_ONCE] for start in range(0, len(topics), _AT_ONCE)]
    found = {}
    for name, pipeline in pipelines.items():
        rankings = [ranking[ranking["rank"] < _DEPTH] for ranking in map(pipeline.whole, parts)]
        found[name] = pd.concat([ranking[["qid", "docno", "score", "rank"]] for ranking in rankings])
    return found


def compare_known_formulas(
    rankings: Mapping[str, pd.DataFrame], queries: pd.DataFrame, formulas: int
) -> dict[str, Comparison]:
    """Compare systems, and a random order of all formulas, by the rank of the right formula."""
    compared = {}
    for how in (ALL, *sorted(queries["how"].unique())):
        own = queries if how == ALL else queries[queries["how"] == how]
        qrels = own[["qid", "docno"]].assign(label=1)
        floor = random_known_items(qrels, formulas)
        found = dict(rankings)
        compared[how] = compare(found, own, qrels, floor, KNOWN_ITEM_MEASURES, floor_name=RANDOM_FORMULAS)
    return compared


def with_known_formulas(
    report: Report, shared: FormulaArtifacts, pipelines: Mapping[str, TimedPipeline], count: int = KNOWN_FORMULAS
) -> Report:
    """Add a table of known items to a report."""
    with shared.stages.timed("known formulas"):
        queries = draw_known_formulas(shared, count)
        rankings = search_known_formulas(pipelines, queries)
    compared = compare_known_formulas(rankings, queries, len(shared.visual_ids))
    blocks = [one.table.assign(queries=how, of=one.topics) for how, one in compared.items()]
    table = pd.concat([block[["queries", "of", *block.columns[:-2]]] for block in blocks])
    about = (
        f"The query is a formula of the collection in which one variable was renamed throughout or one piece was cut, "
        f"and the right answer is the formula itself, among {len(shared.visual_ids):,} visually distinct ones. "
        f"{len(queries)} formulas were drawn by sha-256 of their visual ids; none was altered into another one of the "
        f"collection. A star: differs from {next(iter(pipelines))} (two-sided paired t-test, p < 0.05 after "
        "Bonferroni over the systems of the block)."
    )
    return replace(
        report,
        stages=tuple(shared.stages.records),
        tables={**report.tables, KNOWN: table},
        about={**report.about, KNOWN: about},
    )
