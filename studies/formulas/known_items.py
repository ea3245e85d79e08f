"""Known-item search for formulas: the query is a formula of the collection that was altered, and the formula is sought.

It needs no judgments and has hundreds of queries, so that it tells systems apart where a year's topics cannot; but it
measures whether a formula is found again, not whether what is found is relevant.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pandas as pd

from pyterrier_mathamr.arqmath import read_documents
from pyterrier_mathamr.experiments.artifacts import Artifacts
from pyterrier_mathamr.experiments.measuring import (
    KNOWN_ITEM_MEASURES,
    RANDOM_FORMULAS,
    Comparison,
    Way,
    compare,
    random_known_items,
)
from pyterrier_mathamr.experiments.reporting.report import Report
from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.posts import document_post

from .altered import alterations

KNOWN_FORMULAS = 500
"""Queries that are drawn."""
KNOWN = "Known formulas"
ALL = "all"
_DRAWN = 4  # formulas looked at for each query: some are too small, or have LaTeX that is not wholly understood
_AT_ONCE = 50  # queries searched together, which bounds the memory
_DEPTH = 10


def known_formulas(
    formulas: Iterable[tuple[str, str]], holds: Callable[[FormulaPair], bool], count: int = KNOWN_FORMULAS
) -> pd.DataFrame:
    """Alter formulas, one variable renamed throughout or one piece cut; see :mod:`.altered`."""
    rows: list[tuple[str, ...]] = []
    for docno, latex in formulas:
        if len(rows) == count:
            break
        made = next((made for made in alterations(latex) if not holds(made.trees)), None)
        if made is not None:
            name = f"known-{docno}"
            body = f'<span class="math-container" id="{html.escape(name)}">{html.escape(made.latex)}</span>'
            rows.append((name, "", body, name, made.latex, docno, made.how))
    columns = ["qid", "title", "body", "formula_id", "latex", "docno", "how"]
    table: pd.DataFrame = pd.DataFrame(rows, columns=columns, dtype=str)
    return table


def draw_known_formulas(shared: Artifacts, count: int = KNOWN_FORMULAS) -> pd.DataFrame:
    """Draw formulas of a collection by sha-256 of their visual ids, and alter them."""
    owners: dict[str, str] = {}
    for entry in shared.tangent.get_corpus_iter():
        if entry["visual_id"]:
            owners.setdefault(entry["visual_id"], entry["docno"])
    drawn = sorted(owners, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[: _DRAWN * count]
    wanted = {owners[name] for name in drawn}
    posts = map(document_post, read_documents(shared.collection.path))
    latex = {formula.id: formula.latex for post in posts for formula in post.formulas if formula.id in wanted}
    known = ((name, latex[owners[name]]) for name in drawn if owners[name] in latex)
    return known_formulas(known, shared.tangent.snapshot().holds, count)


def search_known_formulas(ways: Mapping[str, Way], queries: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Search with each system, and keep the first ten formulas of each query."""
    topics = queries.drop(columns=["docno", "how"])
    parts = [topics.iloc[start : start + _AT_ONCE] for start in range(0, len(topics), _AT_ONCE)]
    found = {}
    for name, way in ways.items():
        system = way.encode >> way.search if way.encode else way.search
        rankings = [ranking[ranking["rank"] < _DEPTH] for ranking in map(system, parts)]
        found[name] = pd.concat([ranking[["qid", "docno", "score", "rank"]] for ranking in rankings])
    return found


def compare_known_formulas(
    rankings: Mapping[str, pd.DataFrame], queries: pd.DataFrame, formulas: int
) -> dict[str, Comparison]:
    """Compare systems by the rank of the formula that is sought, beside a random order of all."""
    compared = {}
    for how in (ALL, *sorted(queries["how"].unique())):
        own = queries if how == ALL else queries[queries["how"] == how]
        qrels = own[["qid", "docno"]].assign(label=1)
        floor = random_known_items(qrels, formulas)
        found = dict(rankings)
        compared[how] = compare(found, own, qrels, floor, KNOWN_ITEM_MEASURES, floor_name=RANDOM_FORMULAS)
    return compared


def with_known_formulas(
    report: Report, shared: Artifacts, ways: Mapping[str, Way], count: int = KNOWN_FORMULAS
) -> Report:
    """Add a table of known items to a report."""
    with shared.stages.timed("known formulas"):
        queries = draw_known_formulas(shared, count)
        rankings = search_known_formulas(ways, queries)
    compared = compare_known_formulas(rankings, queries, len(shared.visual_ids))
    blocks = [one.table.assign(queries=how, of=one.topics) for how, one in compared.items()]
    table = pd.concat([block[["queries", "of", *block.columns[:-2]]] for block in blocks])
    about = (
        f"The query is a formula of the collection in which one variable was renamed throughout or one piece was cut, "
        f"and the formula itself is sought among {len(shared.visual_ids):,} visually distinct ones. {len(queries)} "
        "formulas were drawn by sha-256 of their visual ids; none was altered into another one of the collection. A "
        f"star: differs from {next(iter(ways))} (two-sided paired t-test, p < 0.05 after Bonferroni over the systems "
        "of the block)."
    )
    return replace(
        report,
        stages=tuple(shared.stages.records),
        tables={**report.tables, KNOWN: table},
        about={**report.about, KNOWN: about},
    )
