"""``mathamr experiment``: a whole experiment on a folder, or a study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .options import FILE, FOLDER, NEW, cluster_of, config_of, config_options, quiet_option, ray_options, values_of


@click.command(short_help="Run a whole experiment, or a study.")
@click.argument("what", required=False, metavar="FOLDER|STUDY")
@click.option("--year", "--years", "years", help="Whose topics and judgments: 2022, or several: 2020,2022.")
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True, help="Keeps all results.")
@click.option("--model", help="Name or folder of a trained model; one is trained otherwise. Not for studies.")
@click.option("--task", type=click.Choice(["1", "2"]), default="1", show_default=True, help="1: answers; 2: formulas.")
@click.option(
    "--systems",
    help="all, or names as in the table, such as Tangent-S,MathAMR+ (by ; where a name has a comma); of task 2 also "
    "variants.",
)
@click.option(
    "--protocol",
    type=click.Choice(["crossed", "domains"]),
    help="crossed: choose everything on other topics than those that are measured. domains: FOLDER has files of pairs, "
    "each left out of training and measured in turn.",
)
@click.option("--known-items", is_flag=True, help="Of task 2: also search altered formulas of the collection.")
@click.option("--collection", type=FOLDER, help="The ARQMath folder of a study.")
@click.option("--pairs", multiple=True, type=FILE, help="File of further pairs that a study trains on.")
@click.option("--seeds", help="Of a study, such as 42,43,44; by default those of its preset.")
@click.option(
    "--preset",
    default="auto",
    show_default=True,
    help="How models are trained: full (as in the paper), mini (for few pairs), on a folder also labels or bundled; "
    "auto chooses by the number of training pairs.",
)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Runs of a study at a time.")
@ray_options
@click.option("--list", "listed", is_flag=True, help="Show the studies.")
@config_options
@quiet_option
def experiment(what: str | None, listed: bool, collection: Path | None, **options: Any) -> None:
    """Run a whole experiment on the ARQMath folder FOLDER, or run STUDY on the folder given by --collection.

    A whole experiment makes graphs, a model, an index and tables. Its model depends on the number of training pairs:
    from 40,000 as in the paper, from 2,000 by a recipe for few pairs, below that the bundled mathamr-plus-mini.

    A folder in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/*.tsv) is searched with a trained model, the bundled
    mathamr-plus-mini by default.

    A study is a table of the MathAMR+ paper, such as paper/4.6, or an ablation, such as ablation/layers; each condition
    is trained with several seeds. Those named formula/… train models of formulas alone and measure Task 2, those named
    answers/… compare other systems of Task 1.

    With --protocol crossed, k1 and b of BM25, the weights of fusions and everything else is chosen on other topics than
    those that are measured: on the other year, and in ten folds. Its --systems may be joined by +, which is a fusion.
    With --protocol domains, FOLDER has files of pairs (.jsonl, .jsonl.gz): the questions of each look for their answers
    with a model that was not trained on that file, given by --model or trained on the others.

    Finished steps are kept in the work folder and not repeated; the report is there, too.
    """
    cluster = cluster_of(options.pop("ray"), options.pop("ray_workers"))
    if cluster and (collection is None or options["protocol"] or str(what).startswith(("formula/", "answers/"))):
        raise click.UsageError("--ray is for studies that train models of Task 1, such as paper/4.6.")
    options["executor"] = cluster
    if listed:
        click.echo(_studies())
    elif what is None:
        raise click.UsageError("Give an ARQMath folder, or a study and --collection; --list shows the studies.")
    elif options["protocol"] == "domains":
        _run_domains(Path(what), collection, **options)
    elif collection is not None:
        _run_study(what, collection, **options)
    elif options["protocol"]:
        _run_protocol(Path(what), **options)
    elif _is_beir(Path(what)):
        _run_beir(Path(what), **options)
    elif Path(what).is_dir():
        _run_folder(Path(what), **options)
    else:
        raise click.UsageError(f"{what} is no folder. A study needs --collection; --list shows the studies.")


def _run_folder(folder: Path, years: str | None, workdir: Path, task: str, quiet: bool, **options: Any) -> None:
    """Run a whole experiment on a folder."""
    from pyterrier_mathamr.experiments import run_arqmath, run_task2

    file, changes = options["file"], options["changes"]
    config = config_of(file, changes) if file else None
    if options["known_items"] and task != "2":
        raise click.UsageError("--known-items is for --task 2; Task 1 always has known items.")
    chosen: dict[str, Any] = {"known_items": True} if options["known_items"] else {}
    if options["systems"]:
        chosen["systems"] = _names(options["systems"])
    run: Any = run_task2 if task == "2" else run_arqmath
    report = run(
        folder,
        years or "2022",
        workdir,
        config=config,
        model=options["model"],
        preset=options["preset"],
        changes=None if file else values_of(changes),
        verbose=not quiet,
        **chosen,
    )
    click.echo(report.to_markdown())


def _is_beir(folder: Path) -> bool:
    from pyterrier_mathamr.posts import BeirFolder

    return BeirFolder.found(folder)


def _run_beir(folder: Path, workdir: Path, quiet: bool, **options: Any) -> None:
    """Run an experiment on a folder in BEIR's layout."""
    from pyterrier_mathamr.experiments import run_beir

    refused = ("years", "file", "changes", "known_items", "pairs", "seeds", "protocol")
    given = [name for name in refused if options[name]]
    if given or options["task"] != "1" or options["preset"] != "auto":
        raise click.UsageError("A folder in BEIR's layout takes --systems, --model and --workdir; nothing is trained.")
    model = {"model": options["model"]} if options["model"] else {}
    report = run_beir(folder, workdir, systems=_names(options["systems"]), verbose=not quiet, **model)
    click.echo(report.to_markdown())


def _run_protocol(
    folder: Path, years: str | None, workdir: Path, seeds: str | None, quiet: bool, **options: Any
) -> None:
    """Measure systems on topics that chose nothing."""
    from pyterrier_mathamr.experiments import run_protocol

    file, changes = options["file"], options["changes"]
    if options["task"] != "1" or options["known_items"]:
        raise click.UsageError("--protocol is for Task 1, which always has known items.")
    report = run_protocol(
        folder,
        workdir,
        years=years or "2020,2022",
        systems=_names(options["systems"]),
        config=config_of(file, changes) if file else None,
        model=options["model"],
        preset=options["preset"],
        changes=None if file else values_of(changes),
        verbose=not quiet,
        **({"seeds": _numbers(seeds)} if seeds else {}),
    )
    click.echo(report.to_markdown())


def _run_domains(folder: Path, collection: Path | None, workdir: Path, quiet: bool, **options: Any) -> None:
    """Measure a model on kinds of text that it was not trained on."""
    from pyterrier_mathamr.experiments import run_domains

    refused = ("years", "systems", "file", "known_items", "seeds")
    if any(options[name] for name in refused) or options["task"] != "1":
        raise click.UsageError("--protocol domains takes --model, or --collection, --preset and --set to train by.")
    files = [*sorted(folder.glob("*.jsonl")), *sorted(folder.glob("*.jsonl.gz")), *options["pairs"]]
    report = run_domains(
        files,
        workdir,
        model=options["model"],
        collection=collection,
        preset=options["preset"],
        changes=values_of(options["changes"]),
        verbose=not quiet,
    )
    click.echo(report.to_markdown())


def _run_study(
    name: str, collection: Path, years: str | None, workdir: Path, seeds: str | None, quiet: bool, **options: Any
) -> None:
    """Run a study on a folder."""
    from pyterrier_mathamr.experiments import run_answer_study, run_formula_study, run_study

    if options["systems"] or options["known_items"] or options["protocol"]:
        raise click.UsageError("A study has its own systems: it takes no --systems, --known-items or --protocol.")
    if options["model"] or options["file"]:
        raise click.UsageError("A study trains its own models: it takes --set, but neither --model nor --config.")
    kind = name.partition("/")[0]
    runs: dict[str, Any] = {"formula": run_formula_study, "answers": run_answer_study}
    taken = {"formula": (), "answers": ("pairs", "preset")}.get(kind, ("pairs", "preset", "workers", "executor"))
    run, more = runs.get(kind, run_study), {option: options[option] for option in taken}
    report = run(
        name,
        collection,
        workdir,
        years=(years or "2020,2022").split(","),
        seeds=_numbers(seeds) if seeds else None,
        changes=values_of(options["changes"]),
        verbose=not quiet,
        **more,
    )
    click.echo(report.to_markdown())


def _names(text: str | None) -> list[str] | None:
    """Split names at commas, or at semicolons where there is one, since some names have a comma."""
    names = text.split(";" if ";" in text else ",") if text else []
    return [name.strip() for name in names if name.strip()] or None


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no list of numbers such as 42,43", param_hint="--seeds") from error


def _studies() -> str:
    """List the studies: name, what is varied, the conditions."""
    from pyterrier_mathamr.experiments import ANSWER_STUDIES, FORMULA_STUDIES, STUDIES
    from studies.answers import COMMON_ROWS

    listed = [(of.name, of.title, [condition.name for condition in of.conditions]) for of in STUDIES.values()]
    listed += [(study.name, study.title, list(study.conditions)) for study in FORMULA_STUDIES.values()]
    listed += [(of.name, of.title, [row.name for row in of.all_rows(COMMON_ROWS)]) for of in ANSWER_STUDIES.values()]
    return "\n".join(f"{name:<26} {title}: {'; '.join(conditions)}" for name, title, conditions in listed)
