"""``mathamr experiment``: a whole experiment on a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from pyterrier_mathamr.cli.options import FILE, NEW, quiet_option, values_of

_STUDIES = "`python -m studies {}` in a clone of the repository"
_NTCIR12 = "ntcir12"
_TASKS: dict[str, Literal[1, 2, 3]] = {"1": 1, "2": 2, "3": 3}


@click.command(short_help="Run a whole experiment on a folder.")
@click.argument("folder", type=NEW)
@click.option(
    "--year", "--years", "years", help="Year of the topics and judgments, or several: 2020,2022. By default 2022."
)
@click.option(
    "--task",
    type=click.Choice([*_TASKS, _NTCIR12]),
    default="1",
    show_default=True,
    help=f"1: answers; 2: formulas; 3: one text for each topic; {_NTCIR12}: formulas of NTCIR-12 MathWiki.",
)
@click.option(
    "--systems", help="Names of systems, joined by commas (by semicolons if a name has a comma), by default all."
)
@click.option(
    "--model",
    help="Name or folder of a trained model, by default the bundled one; or how to train one: full (as in the thesis), "
    "or mini or labels (for few pairs).",
)
@click.option(
    "--set", "changes", multiple=True, metavar="OPTION=VALUE", help="One option of the training; trains a model."
)
@click.option(
    "--categories", type=FILE, help="Table of topic, difficulty, dependency and type: measure each category (task 1)."
)
@click.option(
    "--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True, help="Folder for all results."
)
@quiet_option
def experiment(
    folder: Path,
    years: str | None,
    task: str,
    systems: str | None,
    model: str | None,
    changes: tuple[str, ...],
    categories: Path | None,
    workdir: Path,
    quiet: bool,
) -> None:
    """Run a whole experiment on FOLDER, from its posts to tables.

    FOLDER is an ARQMath folder, a folder in BEIR's layout, or with --task ntcir12 a folder of NTCIR-12 MathWiki.

    In a clone of the repository, `python -m studies --list` names the studies behind the documented figures.
    """
    from mathamr_systems.experiments import run_arqmath, run_beir, run_ntcir12
    from pyterrier_mathamr.posts import BeirFolder

    if not folder.is_dir():
        study = f" To run a study, use {_STUDIES.format(f'{folder} FOLDER')}." if "/" in str(folder) else ""
        raise click.UsageError(
            f"The folder {folder} does not exist.{study or ' Name a folder of ARQMath, BEIR or NTCIR-12.'}"
        )
    options: dict[str, Any] = {"systems": names_of(systems), "verbose": not quiet}
    of_formulas = task == _NTCIR12
    if of_formulas or BeirFolder.found(folder):
        if years or changes or categories or task not in ("1", _NTCIR12):
            what = f"--task {_NTCIR12}" if of_formulas else "a folder in BEIR's layout"
            raise click.UsageError(f"Nothing is trained for {what}. Give only --systems, --model and --workdir.")
        options |= {"model": model} if model else {}
        report = (run_ntcir12 if of_formulas else run_beir)(folder, workdir, **options)
    else:
        options |= {"changes": values_of(changes), "categories": categories}
        report = run_arqmath(folder, years or "2022", workdir, task=_TASKS[task], model=model, **options)
    click.echo(report.to_markdown())


def names_of(text: str | None) -> list[str] | None:
    """Split names at commas, or at semicolons where there is one, since some names have a comma."""
    names = text.split(";" if ";" in text else ",") if text else []
    return [name.strip() for name in names if name.strip()] or None
