"""Posts to graphs, batch by batch: parse, find the trees, attach them.

Where the parser fails on a batch, the batch is halved until the failing post is alone (MathAMR+, section 3.1). That
post gets the graph ``(a / amr-empty)`` with its formulas attached, and a warning that names it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.running.resources import cycles_kept
from pyterrier_mathamr._common.types import FormulaId, FormulaMode
from pyterrier_mathamr.amr import AmrGraph, AmrParser, ParserUnavailableError
from pyterrier_mathamr.formula import (
    FormulaPair,
    FormulaStore,
    definitions,
    one_text,
    tell_unknown_commands,
    trees_of_posts,
)
from pyterrier_mathamr.graph.formula_trees import attach_formulas
from pyterrier_mathamr.graph.mathamr import EMPTY_AMR, MathAMRGraph
from pyterrier_mathamr.graph.texts import sentence_texts
from pyterrier_mathamr.posts import MathPost, PostFormula

_NO_TREES = FormulaPair(slt=None, opt=None)


def build_graphs(
    ids: Sequence[str],
    posts: Sequence[MathPost],
    parser: AmrParser,
    formulas: FormulaMode = "both",
    store: FormulaStore | None = None,
) -> list[MathAMRGraph]:
    """Build the graphs of a batch of posts (MathAMR+, section 3.1).

    Args:
        ids: the docno or qid of each post.
        posts: the posts.
        parser: the AMR parser.
        formulas: the trees that are attached.
        store: official trees by formula id; others are made from LaTeX.

    Returns:
        One graph for each post, in order, with a node for each of its formulas. A ``MathAMRWarning`` names each
        failure.
    """
    wanted = {formula.id for post in posts for formula in post.formulas if formula.id}
    with cycles_kept():
        amrs = parse_posts(ids, posts, parser)
        official = store.get_many(sorted(wanted)) if store is not None and formulas != "none" else {}
        return [_graph(name, post, amr, formulas, official) for name, post, amr in zip(ids, posts, amrs, strict=True)]


def parse_posts(ids: Sequence[str], posts: Sequence[MathPost], parser: AmrParser) -> list[AmrGraph]:
    """Parse a batch; where the parser fails, parse its halves until the failing posts are alone."""
    found: dict[int, AmrGraph] = {}
    ranges = [(0, len(posts))]
    while ranges:
        start, end = ranges.pop()
        if start == end:
            continue
        try:
            graphs = parser.parse_posts(posts[start:end])
            if len(graphs) != end - start:
                raise ValueError(f"{len(graphs)} graphs for {end - start} posts")
            found.update(enumerate(graphs, start))
        except (ParserUnavailableError, ImportError):
            raise  # smaller batches would fail as well
        except Exception as error:  # a foreign parser may raise anything; the other posts are built
            if end - start == 1:
                warn(ids[start], f"parser {parser.name} failed, its graph has its formulas only", error)
                found[start] = EMPTY_AMR
            else:
                middle = (start + end) // 2
                ranges += [(middle, end), (start, middle)]
    return [found[i] for i in range(len(posts))]


def warn(name: str, outcome: str, error: Exception) -> None:
    """Warn of a post that failed, with the outcome and the reason."""
    reason = str(error).strip().partition("\n")[0][:300]
    warnings.warn(f"post {name!r}: {outcome} ({type(error).__name__}: {reason}).", MathAMRWarning, stacklevel=2)


def _graph(
    name: str, post: MathPost, amr: AmrGraph, formulas: FormulaMode, official: dict[FormulaId, FormulaPair]
) -> MathAMRGraph:
    """Attach the formulas of one post."""
    macros = definitions(formula.latex for formula in post.formulas)
    with one_text():
        trees = [_trees(name, formula, formulas, official, macros) for formula in post.formulas]
    try:
        whole = attach_formulas(amr, trees, formulas)
    except Exception as error:
        warn(name, "its parse cannot carry formulas and was left out", error)
        amr = EMPTY_AMR
        whole = attach_formulas(amr, trees, formulas)
    return MathAMRGraph(
        amr=whole,
        formula_ids=tuple(formula.id for formula in post.formulas),
        id=name,
        text=post.text,
        sentence_texts=sentence_texts(whole, amr.texts, post.text),
        latex=tuple(formula.latex for formula in post.formulas),
    )


def _trees(
    name: str, formula: PostFormula, formulas: FormulaMode, official: dict[FormulaId, FormulaPair], macros: str
) -> FormulaPair:
    """Return the official trees of a formula; make missing ones from its LaTeX."""
    trees = official.get(formula.id, _NO_TREES)
    if formulas == "none" or (trees.slt is not None and trees.opt is not None):
        return trees
    try:
        made = trees_of_posts(formula.latex, macros)
    except Exception as error:
        warn(name, f"the formula {formula.latex[:80]!r} has no trees", error)
        return trees
    tell_unknown_commands(name, formula.latex, made)
    return FormulaPair(slt=trees.slt or made.slt, opt=trees.opt or made.opt)
