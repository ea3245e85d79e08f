"""``mathamr experiment``: a whole experiment on a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .options import NEW, config_of, config_options, quiet_option, values_of

_STUDIES = "`python -m studies {}` in a clone of the repository"
_MOVED = {
    "--protocol": _STUDIES.format("crossed FOLDER` or `python -m studies domains FOLDER"),
    "--known-items": _STUDIES.format("task-2 FOLDER --known-items"),
    **dict.fromkeys(
        ("--collection", "--pairs", "--seeds", "--workers", "--ray", "--ray-workers"), _STUDIES.format("STUDY FOLDER")
    ),
    "--list": _STUDIES.format("--list"),
}
"""Options of earlier releases, and the commands that have them now."""


def _moved_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse the options that moved, by the command that has them now."""

    def refuse(context: click.Context, option: click.Parameter, value: Any) -> None:
        if value:
            raise click.UsageError(f"{option.opts[0]} is now an option of {_MOVED[option.opts[0]]}.", context)

    for name in _MOVED:
        flag: dict[str, Any] = {"is_flag": True} if name in ("--list", "--known-items") else {"multiple": True}
        options = {**flag, "hidden": True, "expose_value": False, "is_eager": True, "callback": refuse}
        command = click.option(name, **options)(command)
    return command


@click.command(short_help="Run a whole experiment on a folder.")
@click.argument("folder", type=NEW)
@click.option("--year", "--years", "years", help="Whose topics and judgments: 2022, or several: 2020,2022.")
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True, help="Keeps all results.")
@click.option("--model", help="Name or folder of a trained model; one is trained otherwise.")
@click.option("--task", type=click.Choice(["1", "2"]), default="1", show_default=True, help="1: answers; 2: formulas.")
@click.option("--systems", help="Names as in the table, joined by commas (by ; where a name has one); by default all.")
@click.option(
    "--preset",
    default="auto",
    show_default=True,
    help="How the model is trained: full (as in the paper), mini or labels (for few pairs), or bundled, which trains "
    "nothing; auto chooses by the number of training pairs.",
)
@config_options
@quiet_option
@_moved_options
def experiment(folder: Path, workdir: Path, task: str, quiet: bool, **options: Any) -> None:
    """Run a whole experiment on FOLDER, an ARQMath folder or one in BEIR's layout, from its posts to tables.

    In a clone of the repository, `python -m studies --list` names the studies behind the documented figures.
    """
    from pyterrier_mathamr.experiments import run_arqmath, run_beir
    from pyterrier_mathamr.posts import BeirFolder

    if not folder.is_dir():
        study = f" A study is run by {_STUDIES.format(f'{folder} FOLDER')}." if "/" in str(folder) else ""
        raise click.UsageError(f"{folder} is no folder.{study}")
    file, changes, years = options["file"], options["changes"], options["years"]
    systems = names_of(options["systems"])
    if BeirFolder.found(folder):
        if years or file or changes or task != "1" or options["preset"] != "auto":
            raise click.UsageError(
                "A folder in BEIR's layout takes --systems, --model and --workdir; nothing is trained."
            )
        model = {"model": options["model"]} if options["model"] else {}
        report = run_beir(folder, workdir, systems=systems, verbose=not quiet, **model)
    else:
        report = run_arqmath(
            folder,
            years or "2022",
            workdir,
            task=2 if task == "2" else 1,
            config=config_of(file, changes) if file else None,
            model=options["model"],
            preset=options["preset"],
            changes=None if file else values_of(changes),
            systems=systems,
            verbose=not quiet,
        )
    click.echo(report.to_markdown())


def names_of(text: str | None) -> list[str] | None:
    """Split names at commas, or at semicolons where there is one, since some names have a comma."""
    names = text.split(";" if ";" in text else ",") if text else []
    return [name.strip() for name in names if name.strip()] or None
