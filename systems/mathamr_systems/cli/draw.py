"""``mathamr draw topics`` and ``mathamr draw speed``: the results of experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyterrier_mathamr.cli.options import FILE, drawn

if TYPE_CHECKING:
    import pandas as pd


@click.command("topics")
@click.argument("by_topic", type=FILE)
@click.argument("baseline")
@click.argument("system")
@click.option(
    "--measure", required=True, help="Name of the measure, in the file or in the paper: nDCG', MAP', P'@10, Bpref."
)
@drawn(".png, .svg or .pdf")
def topics_command(by_topic: Path, baseline: str, system: str, measure: str, output: Path) -> None:
    """Draw for each topic how much better or worse SYSTEM is than BASELINE.

    BY_TOPIC is a file that `mathamr experiment` writes, or any .csv with name, qid, measure and value. A system of a
    study is named by its condition, too: 'OPT-only / ColBERT-style'; values are averaged over the seeds.
    """
    from mathamr_systems import draw_topic_differences, save

    click.echo(f"{save(draw_topic_differences(_read(by_topic), measure, baseline, system), output)}")


@click.command("speed")
@click.argument("tables", type=FILE, nargs=-1, required=True)
@click.option("--measure", required=True, help="Name of the measure, in the file or in the paper: nDCG'.")
@click.option("--time", default="ms per query", show_default=True, help="Column with the milliseconds per query.")
@drawn(".png, .svg or .pdf")
def speed_command(tables: tuple[Path, ...], measure: str, time: str, output: Path) -> None:
    """Draw effectiveness against queries per second.

    TABLES are .csv files that `mathamr experiment` writes, joined by name: one has the measure, one the time. Of a
    study: every-system-….csv and single-queries.csv, with --time 'p50 ms'.
    """
    from mathamr_systems import draw_speed, save

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
