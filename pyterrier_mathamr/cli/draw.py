"""``mathamr draw``: pictures of graphs, scores and experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyterrier_mathamr._common.types import FORMULA_MODES, FormulaMode

from .group import OpenGroup
from .options import FOLDER, drawn

if TYPE_CHECKING:
    from pyterrier_mathamr._common.drawing import Theme


_theme = click.option("--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True)
_FORMS = ".svg, or with the extra plots .png or .pdf"


@click.group(cls=OpenGroup, short_help="Draw a graph or formula, scores, or results.")
def draw() -> None:
    """Draw a graph or a formula, the scores between two posts, or the results of an experiment."""


@draw.command("graph")
@click.argument("graph_store", type=FOLDER)
@click.argument("id")
@click.option(
    "--sentence", type=int, multiple=True, help="Draw only this sentence (the first is 1); give it once for each."
)
@click.option("--formulas", type=click.Choice(FORMULA_MODES), default="both", show_default=True, help="Trees to draw.")
@_theme
@drawn(_FORMS)
def graph_command(
    graph_store: Path, id: str, sentence: tuple[int, ...], formulas: FormulaMode, theme: Theme, output: Path
) -> None:
    """Draw the MathAMR+ graph of post ID: virtual nodes, sentences, and the trees of each formula."""
    from pyterrier_mathamr.explain import draw_graph
    from pyterrier_mathamr.graph import GraphStore

    graph = GraphStore(graph_store).get(id)
    click.echo(f"{draw_graph(graph, theme=theme, formulas=formulas, sentences=sentence or None).save(output)}")


@draw.command("formula")
@click.argument("latex")
@_theme
@drawn(_FORMS)
def formula_command(latex: str, theme: Theme, output: Path) -> None:
    """Draw a formula with its operator tree and its symbol layout tree."""
    from pyterrier_mathamr.explain import draw_formula

    click.echo(f"{draw_formula(latex, theme=theme).save(output)}")


@draw.command("maxsim")
@click.argument("graph_store", type=FOLDER)
@click.argument("model")
@click.argument("query_id")
@click.argument("doc_id")
@_theme
@drawn(_FORMS)
def maxsim_command(graph_store: Path, model: str, query_id: str, doc_id: str, theme: Theme, output: Path) -> None:
    """Draw why post DOC_ID has its score for post QUERY_ID: both texts, their matches, and MODEL's weighted cosines."""
    import pandas as pd

    from pyterrier_mathamr.explain import draw_maxsim
    from pyterrier_mathamr.graph import GraphStore
    from pyterrier_mathamr.model import MathAMR

    graphs = GraphStore(graph_store).get_many([query_id, doc_id])
    encoder = MathAMR.from_pretrained(model)
    asked = pd.DataFrame({"qid": [query_id], "query_graph": [graphs[0]]})
    query = encoder.query_encoder()(asked).iloc[0]
    weights = {name: query.get(name) for name in ("query_weights", "query_document_weight")}
    (document,) = encoder.encode(graphs[1:])
    picture = draw_maxsim(graphs[0], query["query_embs"], graphs[1], document, theme=theme, **weights)
    click.echo(f"{picture.save(output)}")
