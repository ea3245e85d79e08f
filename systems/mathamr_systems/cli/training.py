"""``mathamr train-in-out``."""

from __future__ import annotations

from pathlib import Path

import click

from pyterrier_mathamr.cli.options import FOLDER, NEW, quiet_option, values_of


@click.command(short_help="Train an In+Out model on formulas.")
@click.argument("formula_trees", type=FOLDER)
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the new model.")
@click.option("--set", "changes", multiple=True, metavar="OPTION=VALUE", help="One of InOutOptions, such as layers=1.")
@click.option("--fresh", is_flag=True, help="Start over; do not resume an interrupted run.")
@quiet_option
def train_in_out(formula_trees: Path, output: Path, changes: tuple[str, ...], fresh: bool, quiet: bool) -> None:
    """Train encoders of formula graphs on the formulas of FORMULA_TREES, which need no judgments.

    The state after each epoch is kept next to OUTPUT until the model is finished.
    """
    from mathamr_systems import FormulaTrees, InOutOptions
    from mathamr_systems.in_out import train_in_out as train

    options = InOutOptions.from_dict(values_of(changes))
    model = train(FormulaTrees(formula_trees), output, options, fresh=fresh, verbose=not quiet)
    click.echo(f"{output}: In+Out model {model.identity[:12]}")
