"""Why a document has its score by graph terms: what each formula, concept and relation of the query contributes.

The edges of a formula are one part, and so are its nodes; a term that several formulas share is divided among them by
how often each has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pyterrier_mathamr.explain import Asked, Explanation, Part
from pyterrier_mathamr.graph import MathAMRGraph

from .terms import GraphField, GraphTerms, terms_of_graph

SYSTEM = "Graph terms"


def explain_terms(
    asked: Asked, shares: Mapping[GraphField, Mapping[str, float]], query: MathAMRGraph, terms: GraphTerms
) -> Explanation:
    """Group what each term contributes to a score by formulas; concepts and relations are parts of their own."""
    document = asked.graph("graph")
    found = None if document is None else terms_of_graph(document)
    parts: list[Part] = []
    for field, given in shares.items():
        if field == "concepts" or field == "relations":
            parts += _of_amr("concept" if field == "concepts" else "relation", given, found is not None)
            continue
        own = terms.edges if field == "edges" else terms.nodes
        theirs = () if found is None else found.edges if field == "edges" else found.nodes
        parts += _of_formulas(field, given, (query, own), (document, theirs))
    return asked.explained(parts)


def _of_amr(part: str, given: Mapping[str, float], document: bool) -> Iterator[Part]:
    """Make the part of each concept or relation; the document has the same."""
    for term, share in given.items():
        text = term.replace("|", " ")
        yield Part(SYSTEM, part, text, part, text if document else "", contribution=share)


def _of_formulas(
    part: str,
    given: Mapping[str, float],
    query: tuple[MathAMRGraph, Sequence[list[str]]],
    document: tuple[MathAMRGraph | None, Sequence[list[str]]],
) -> Iterator[Part]:
    """Make the part of each formula, with the formula of the document that has most of what contributes."""
    counts = [Counter(term for term in terms if term in given) for terms in query[1]]
    total: Counter[str] = sum(counts, start=Counter())
    for row, own in enumerate(counts):
        shares = {term: given[term] * times / total[term] for term, times in own.items()}
        if not shares:
            continue
        common = [sum(shares.get(term, 0.0) for term in set(theirs)) for theirs in document[1]]
        met = common.index(max(common)) if any(common) else -1
        latex, formula_id = _formula(query[0], row)
        met_latex, met_id = _formula(document[0], met)
        yield Part(
            SYSTEM,
            part,
            latex,
            "formula" if met >= 0 else "",
            met_latex,
            contribution=sum(shares.values()),
            query_row=row,
            document_row=met,
            query_formula_id=formula_id,
            document_formula_id=met_id,
        )


def _formula(graph: MathAMRGraph | None, row: int) -> tuple[str, str]:
    """Return the LaTeX and the id of a formula of a graph; empty where there is none."""
    if graph is None or row < 0:
        return "", ""
    return (graph.latex[row] if row < len(graph.latex) else ""), graph.formula_ids[row]
