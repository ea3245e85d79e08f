"""``python -m studies``: run a study, compare all systems, or cross-validate them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mathamr_systems.cli import names_of
from pyterrier_mathamr.cli.group import MathAMRGroup
from pyterrier_mathamr.cli.options import (
    FILE,
    FOLDER,
    NEW,
    cluster_of,
    quiet_option,
    ray_options,
    values_of,
)

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class _Studies(MathAMRGroup):
    """Knows a command for each study."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return the command of a name; a name with a slash is a study."""
        if "/" not in name:
            return super().get_command(context, name)
        return click.Command(name, callback=lambda **options: _run(name, **options), params=study.params)


def _list(context: click.Context, _: click.Parameter, listed: bool) -> None:
    from .registry import STUDIES

    if listed:
        for one in STUDIES.values():
            click.echo(f"{one.name:<26} {one.title}: {'; '.join(one.compared)}")
        context.exit()


@click.group(cls=_Studies, context_settings=_SETTINGS)
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="Show the studies.")
def main() -> None:
    """The research behind the figures of docs/archive/: `python -m studies STUDY FOLDER`, or one of these commands."""


def _common(command: Any) -> Any:
    """Add the common options of commands on an ARQMath folder."""
    for option in (
        quiet_option,
        click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True),
        click.option("--years", default="2020,2022", show_default=True, help="Whose topics and judgments."),
        click.argument("folder", type=FOLDER),
    ):
        command = option(command)
    return command


def _model(command: Any) -> Any:
    """Add the options of a single model."""
    for option in (
        click.option("--set", "changes", multiple=True, metavar="OPTION=VALUE", help="One option of its training."),
        click.option("--model", help="Name or folder of a trained model, or the preset that one is trained by."),
        click.option("--systems", help="all, or names joined by commas (by ; where a name has one)."),
    ):
        command = option(command)
    return command


def _measured(command: Any) -> Any:
    """Add the options that say how many posts a text encoder is measured on."""
    for option in (
        click.option("--answers", type=click.IntRange(1), default=1000, show_default=True, help="Of each kind."),
        click.option(
            "--questions", type=click.IntRange(1), default=150, show_default=True, help="Of each kind and part."
        ),
    ):
        command = option(command)
    return command


def _made_by(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "systems": names_of(options.pop("systems")),
        "model": options.pop("model"),
        "changes": values_of(options.pop("changes")),
        "verbose": not options.pop("quiet"),
    }


@click.command()
@_common
@click.option("--pairs", multiple=True, type=FILE, help="File of further pairs that are trained on.")
@click.option("--seeds", help="Such as 42,43,44; by default the preset's or the study's.")
@click.option("--preset", default="auto", show_default=True, help="full (as published) or mini; auto counts pairs.")
@click.option("--workers", type=click.IntRange(1), help="Runs at a time, by default one.")
@click.option("--set", "changes", multiple=True, metavar="OPTION=VALUE", help="One option of all conditions.")
@ray_options
def study(**_: Any) -> None:
    """Run a study on FOLDER."""


def _run(name: str, folder: Path, years: str, seeds: str | None, quiet: bool, **options: Any) -> None:
    from .registry import find_study, run_study

    workers = options.pop("workers")
    cluster = cluster_of(options.pop("ray"), options.pop("ray_workers"), workers)
    if (cluster or workers) and find_study(name).kind != "models":
        raise click.UsageError("--workers and --ray are for studies that train models of Task 1, such as paper/4.6.")
    report = run_study(
        name,
        folder,
        options.pop("workdir"),
        years=years.split(","),
        seeds=_numbers(seeds),
        changes=values_of(options.pop("changes")),
        workers=workers or 1,
        executor=cluster,
        verbose=not quiet,
        **options,
    )
    click.echo(report.to_markdown())


@main.command("task-1")
@_common
@_model
def task_1(folder: Path, years: str, workdir: Path, **options: Any) -> None:
    """Compare all systems of Task 1."""
    from mathamr_systems.experiments import run_arqmath

    from .answers.catalogue import task1_systems

    chosen = _made_by(options)
    chosen["systems"] = task1_systems(chosen["systems"])
    click.echo(run_arqmath(folder, years, workdir, **chosen).to_markdown())


@main.command("task-2")
@_common
@_model
@click.option("--known-items", is_flag=True, help="Also search altered formulas of the collection.")
@click.option("--seeds", default="42", show_default=True, help="Of trained systems; several also give means.")
def task_2(folder: Path, years: str, workdir: Path, known_items: bool, seeds: str, **options: Any) -> None:
    """Compare all systems of Task 2; --systems also accepts variants."""
    from .formulas.systems import compare_formulas

    options = _made_by(options) | {"seeds": _numbers(seeds) or ()}
    report = compare_formulas(folder, years, workdir, known_items=known_items, **options)
    click.echo(report.to_markdown())


@main.command()
@click.argument("folder", type=FOLDER)
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True)
@click.option("--queries", type=click.IntRange(1), default=1000, show_default=True, help="Formulas of each kind.")
@quiet_option
def patterns(folder: Path, workdir: Path, queries: int, quiet: bool) -> None:
    """Search for altered formulas of an ARQMath FOLDER by patterns, and time it."""
    from .formulas.patterns import run_patterns

    click.echo(run_patterns(folder, workdir, count=queries, verbose=not quiet).to_markdown())


@main.command()
@click.argument("folder", type=FOLDER)
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True)
@click.option("--systems", help="all, or names joined by commas (by ; where a name has one).")
@click.option("--model", help="Name or folder of a trained model.")
@click.option("--trained", multiple=True, type=FOLDER, help="Folder of a trained ColBERT or MaRF, to add its rows.")
@quiet_option
def ntcir12(
    folder: Path, workdir: Path, systems: str | None, model: str | None, trained: tuple[Path, ...], quiet: bool
) -> None:
    """Compare all formula systems on a folder of NTCIR-12 MathWiki."""
    from .formulas.systems import compare_browsing

    options = {"model": model} if model else {}
    report = compare_browsing(folder, workdir, systems=names_of(systems), trained=trained, verbose=not quiet, **options)
    click.echo(report.to_markdown())


@main.command()
@_common
@_model
@click.option("--seeds", default="42", show_default=True, help="Of trained systems; from several, one is chosen.")
def crossed(folder: Path, years: str, workdir: Path, seeds: str, **options: Any) -> None:
    """Measure systems with settings tuned on other topics; --systems also accepts fusions, A+B."""
    from .protocol.protocol_run import run_protocol

    chosen = _made_by(options)
    report = run_protocol(folder, workdir, years=years, seeds=_numbers(seeds) or (), **chosen)
    click.echo(report.to_markdown())


@main.command()
@click.argument("folder", type=FOLDER)
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True)
@click.option("--collection", type=FOLDER, help="An ARQMath folder whose pairs are trained on, too.")
@click.option("--pairs", multiple=True, type=FILE, help="Further files of pairs.")
@click.option("--model", help="Name or folder of a trained model; one is trained for each file otherwise.")
@click.option("--preset", default="auto", show_default=True)
@click.option("--set", "changes", multiple=True, metavar="OPTION=VALUE", help="One option of the model.")
@quiet_option
def domains(folder: Path, pairs: tuple[Path, ...], changes: tuple[str, ...], quiet: bool, **options: Any) -> None:
    """Measure a model on the files of pairs in FOLDER, each left out of training in turn."""
    from .protocol.domains import run_domains

    files = [*sorted(folder.glob("*.jsonl")), *sorted(folder.glob("*.jsonl.gz")), *pairs]
    report = run_domains(files, changes=values_of(changes), verbose=not quiet, **options)
    click.echo(report.to_markdown())


@main.command()
@click.argument("folders", type=FOLDER, nargs=-1, required=True)
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True)
@click.option("--model", "models", multiple=True, help="Name or folder; by default the two bundled models.")
@click.option("--questions", type=FILE, help="Lines of docno, tab and question, in place of a folder's own queries.")
@quiet_option
def judges(
    folders: tuple[Path, ...], workdir: Path, models: tuple[str, ...], questions: Path | None, quiet: bool
) -> None:
    """Measure BM25, models and the engine's score on FOLDERS in BEIR's layout, without tuning."""
    from .protocol.judges import MODELS, run_judges

    report = run_judges(folders, workdir, models=models or MODELS, questions=questions, verbose=not quiet)
    click.echo(report.to_markdown())


@main.command()
@click.argument("sources", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True)
@click.option("--model", default="mathamr-plus-text", show_default=True, help="Name or folder of a trained model.")
@quiet_option
def blending(sources: tuple[Path, ...], workdir: Path, model: str, quiet: bool) -> None:
    """Fit the engine's score on SOURCES: files of pairs, and ARQMath folders."""
    from .protocol.blending import run_blending

    click.echo(run_blending(sources, workdir, model=model, verbose=not quiet).to_markdown())


@main.command()
@click.argument("sources", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True, help="As of blending.")
@click.option("--model", default="mathamr-plus-text", show_default=True, help="Name or folder of a model of text.")
@click.option("--seed", "seeds", type=int, multiple=True, default=(42, 43, 44), show_default=True)
@click.option("--steps", type=click.IntRange(1), default=240, show_default=True, help="Batches of a training.")
@click.option("--most", type=click.IntRange(1), default=2700, show_default=True, help="Training pairs of each kind.")
@quiet_option
def halves(
    sources: tuple[Path, ...], workdir: Path, model: str, seeds: tuple[int, ...], steps: int, most: int, quiet: bool
) -> None:
    """Measure what graphs without letters add to text, on SOURCES: files of pairs, and ARQMath folders."""
    from .notation.halves import run_halves

    report = run_halves(sources, workdir, model=model, seeds=seeds, steps=steps, most=most, verbose=not quiet)
    click.echo(report.to_markdown())


@main.command("formula-topics")
@_common
@click.option("--model", default="mathamr-plus-mini", show_default=True, help="Name or folder of a model.")
@click.option("--systems", "systems", multiple=True, help="Names of systems of Task 2.")
def formula_topics(folder: Path, years: str, workdir: Path, quiet: bool, model: str, systems: tuple[str, ...]) -> None:
    """Measure formula search on FOLDER as its topics are written and with other letters."""
    from .notation.formula_topics import SYSTEMS, run_formula_topics

    report = run_formula_topics(
        folder, years.split(","), workdir, model=model, systems=systems or SYSTEMS, verbose=not quiet
    )
    click.echo(report.to_markdown())


@main.command()
@click.argument("engine", type=FOLDER)
@_common
@click.option("--foreign", multiple=True, type=FILE, help="File of questions on other subjects, one a line.")
def matches(engine: Path, folder: Path, years: str, workdir: Path, quiet: bool, foreign: tuple[Path, ...]) -> None:
    """Count how often ENGINE, of the posts of FOLDER, finds a match where it should, and none where it should not."""
    from .protocol.matches import run_matches

    report = run_matches(engine, folder, workdir, foreign=foreign, years=years.split(","), verbose=not quiet)
    click.echo(report.to_markdown())


@main.command()
@click.argument("engine", type=FOLDER)
@click.argument("folder", type=FOLDER)
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True)
@quiet_option
def duplicates(engine: Path, folder: Path, workdir: Path, quiet: bool) -> None:
    """Fit and measure which posts of ENGINE are duplicates, by the links of FOLDER and by copies with other letters."""
    from .protocol.duplicates import run_duplicates

    click.echo(run_duplicates(engine, folder, workdir, verbose=not quiet).to_markdown())


@main.command()
@_common
@click.option("--outside", multiple=True, type=FOLDER, help="Folder in BEIR's layout whose queries are renamed, too.")
@click.option("--model", "models", multiple=True, help="Name or folder of a model; by default the bundled ones.")
@click.option(
    "--runs", multiple=True, type=FOLDER, help="Folder of a system's rankings, COLLECTION.run each, in TREC's format."
)
@click.option("--controls", is_flag=True, help="Also read all formulas with canonical letters, and in both ways.")
def notation(
    folder: Path,
    years: str,
    workdir: Path,
    quiet: bool,
    outside: tuple[Path, ...],
    models: tuple[str, ...],
    runs: tuple[Path, ...],
    controls: bool,
) -> None:
    """Measure systems with other letters in the queries of FOLDER, and by copies with one formula changed."""
    from .notation.measuring import MODELS, run_notation

    report = run_notation(
        folder,
        workdir,
        years=years.split(","),
        others=outside,
        models=models or MODELS,
        runs=runs,
        controls=controls,
        verbose=not quiet,
    )
    click.echo(report.to_markdown())


@main.command()
@_common
def reduction(folder: Path, years: str, workdir: Path, quiet: bool) -> None:
    """Learn which words and formulas of a question to search with, and measure reduced questions."""
    from .answers.reduction import run_reduction

    click.echo(run_reduction(folder, workdir, years=years.split(","), verbose=not quiet).to_markdown())


@main.command()
@click.argument("sources", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True)
@click.option("--layers", default="6", show_default=True, help="How many of the last layers are trained, such as 2,6.")
@click.option("--seeds", default="42", show_default=True)
@click.option(
    "--shares", default="0.5", show_default=True, help="Of trained weights in their mean with published ones."
)
@click.option("--start", type=FOLDER, help="Folder of the encoder to train; all-MiniLM-L6-v2 if it is not given.")
@click.option("--rank", type=int, help="Of what training adds to a matrix; all of it if it is not given.")
@click.option("--steps", type=int, help="Batches that an encoder is trained on; all if it is not given.")
@_measured
@quiet_option
def encoders(
    sources: tuple[Path, ...],
    workdir: Path,
    layers: str,
    seeds: str,
    shares: str,
    start: Path | None,
    rank: int | None,
    steps: int | None,
    questions: int,
    answers: int,
    quiet: bool,
) -> None:
    """Train a text encoder on SOURCES: files of pairs, and ARQMath folders."""
    from .models.text_encoder import Measured, run_encoders

    report = run_encoders(
        sources,
        workdir,
        start=start,
        layers=_numbers(layers) or (),
        seeds=_numbers(seeds) or (),
        shares=[float(share) for share in shares.split(",")],
        rank=rank,
        steps=steps,
        size=Measured(questions, answers),
        verbose=not quiet,
    )
    click.echo(report.to_markdown())


@main.command()
@click.argument("sources", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option("--teacher", type=FOLDER, required=True, help="Folder of a larger encoder.")
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True)
@click.option("--losses", default="similarity,rows,both,both + pairs", show_default=True)
@click.option("--layers", default="6", show_default=True, help="Of the students, such as 6,12.")
@click.option("--seeds", default="42", show_default=True)
@click.option("--shares", default="1", show_default=True, help="Of a student in its mean with the bundled encoder.")
@click.option(
    "--renamed", default="0", show_default=True, help="Shares of posts that students read with other letters."
)
@click.option("--most", type=int, help="Pairs of each kind of text that are read; all if it is not given.")
@click.option("--alone", type=int, default=0, help="Sentences and formulas of each post that are also read alone.")
@click.option("--steps", type=int, help="Batches that each student is trained on; all if it is not given.")
@_measured
@quiet_option
def distillation(
    sources: tuple[Path, ...],
    teacher: Path,
    workdir: Path,
    losses: str,
    layers: str,
    seeds: str,
    shares: str,
    renamed: str,
    most: int | None,
    alone: int,
    steps: int | None,
    questions: int,
    answers: int,
    quiet: bool,
) -> None:
    """Distill an encoder into smaller ones on SOURCES: files of pairs, and ARQMath folders."""
    from .models.distillation import LOSSES, run_distillation
    from .models.text_encoder import Measured

    if unknown := [loss for loss in losses.split(",") if loss not in LOSSES]:
        raise click.BadParameter(f"{unknown[0]!r} is none of: {', '.join(LOSSES)}", param_hint="--losses")
    report = run_distillation(
        sources,
        teacher,
        workdir,
        losses=[loss for loss in LOSSES if loss in losses.split(",")],
        layers=_numbers(layers) or (),
        seeds=_numbers(seeds) or (),
        shares=[float(share) for share in shares.split(",")],
        renamed=[float(share) for share in renamed.split(",")],
        alone=alone,
        most=most,
        steps=steps,
        size=Measured(questions, answers),
        verbose=not quiet,
    )
    click.echo(report.to_markdown())


def _numbers(text: str | None) -> list[int] | None:
    try:
        return [int(number) for number in text.split(",")] if text else None
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a list of numbers such as 42,43", param_hint="--seeds") from error


if __name__ == "__main__":
    main(prog_name="python -m studies")
