"""``mathamr draw``: pictures of graphs, scores and experiments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyterrier_mathamr._common.types import FORMULA_MODES, FormulaMode

from .options import FILE, FOLDER, Command

if TYPE_CHECKING:
    import pandas as pd

    from pyterrier_mathamr._common.drawing import Theme


def _drawn(forms: str) -> Callable[[Command], Command]:
    return click.option(
        "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), required=True, help=f"The picture: {forms}."
    )


_theme = click.option("--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True)
_FORMS = ".svg, or with the extra plots .png or .pdf"


@click.group(short_help="Draw a graph or formula, scores, or results.")
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
@_drawn(_FORMS)
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
@_drawn(_FORMS)
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
@_drawn(_FORMS)
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


@draw.command("topics")
@click.argument("by_topic", type=FILE)
@click.argument("baseline")
@click.argument("system")
@click.option(
    "--measure", required=True, help="Name of the measure, in the file or in the paper: nDCG', MAP', P'@10, Bpref."
)
@_drawn(".png, .svg or .pdf")
def topics_command(by_topic: Path, baseline: str, system: str, measure: str, output: Path) -> None:
    """Draw for each topic how much better or worse SYSTEM is than BASELINE.

    BY_TOPIC is a file that `mathamr experiment` writes, or any .csv with name, qid, measure and value. A system of a
    study is named by its condition, too: 'OPT-only / ColBERT-style'; values are averaged over the seeds.
    """
    from pyterrier_mathamr.explain import draw_topic_differences, save

    click.echo(f"{save(draw_topic_differences(_read(by_topic), measure, baseline, system), output)}")


@draw.command("speed")
@click.argument("tables", type=FILE, nargs=-1, required=True)
@click.option("--measure", required=True, help="Name of the measure, in the file or in the paper: nDCG'.")
@click.option("--time", default="ms per query", show_default=True, help="Column with the milliseconds per query.")
@_drawn(".png, .svg or .pdf")
def speed_command(tables: tuple[Path, ...], measure: str, time: str, output: Path) -> None:
    """Draw effectiveness against queries per second.

    TABLES are .csv files that `mathamr experiment` writes, joined by name: one has the measure, one the time. Of a
    study: every-system-….csv and single-queries.csv, with --time 'p50 ms'.
    """
    from pyterrier_mathamr.explain import draw_speed, save

    joined = _read(tables[0])
    for file in tables[1:]:
        other = _read(file)
        shared = "system" if "system" in joined.columns and "system" in other.columns else "name"
        joined = joined.merge(other.drop(columns="name") if shared == "system" else other, on=shared)
    click.echo(f"{save(draw_speed(joined, measure, time=time), output)}")


def _read(file: Path) -> pd.DataFrame:
    """Read a table of systems, its topics as text; systems of a study are named by condition and system."""
    import pandas as pd

    texts = dict.fromkeys(("qid", "name", "measure", "condition", "system"), str)
    # A condition may have the name None, which is not a missing value.
    table: pd.DataFrame = pd.read_csv(file, dtype=texts, keep_default_na=False, na_values=[""])
    if "name" not in table.columns and "system" in table.columns:
        table = table.assign(name=table["system"])
        if "condition" in table.columns:
            full = table["condition"] + " / " + table["system"]
            table = table.assign(name=full.where(table["condition"] != "–", table["system"]))
    if "name" not in table.columns:
        raise click.UsageError(f"{file} has no column 'name'. Give a .csv file that `mathamr experiment` wrote.")
    return table
