"""The commands of ``mathamr``: each is its arguments and one call of a function of the package."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.types import FORMULA_MODES, FormulaMode
from pyterrier_mathamr._version import __version__

from .arqmath import arqmath
from .draw import draw
from .engine import build, mcp, serve
from .evaluate import evaluate
from .group import MathAMRGroup
from .options import (
    FILE,
    FOLDER,
    NEW,
    SOURCE,
    chosen_parser,
    config_of,
    config_options,
    counted,
    quiet_option,
    values_of,
    with_parser,
)
from .search import search
from .verify import verify

if TYPE_CHECKING:
    from pyterrier_mathamr.amr.worker.doctor import ParserName

_COMMANDS = (arqmath, build, draw, evaluate, mcp, search, serve, verify)
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(cls=MathAMRGroup, commands=_COMMANDS, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="mathamr")
def main() -> None:
    """Math-aware retrieval with MathAMR+.

    Your own posts: `mathamr build POSTS -o my.engine`, then `mathamr search my.engine 'your question'`, or `mathamr
    serve my.engine` for a page.

    Experiments: begin with `mathamr demo`. With a local ARQMath folder, `mathamr experiment FOLDER --year 2022` runs
    everything from posts to tables; `graphs`, `train` and `index` are its steps. Long commands resume where they were
    stopped.
    """


@main.command(short_help="Try everything on the bundled sample.")
@quiet_option
def demo(quiet: bool) -> None:
    """Build, index and search the bundled sample, and compare MathAMR+ with BM25.

    Needs no data and no network, and leaves nothing behind.
    """
    from pyterrier_mathamr.experiments import markdown_table, run_demo

    click.echo(markdown_table(run_demo(verbose=not quiet)))
    click.echo(
        "\n222 answers, 20 topics, 1,273 judgements, written for this package: the table shows that everything works, "
        "not how well.\nRankings of 1000 answers unless the name says otherwise; the random order is of the judged."
        "\n* differs from BM25 (two-sided paired t-test, p < 0.05 after Bonferroni)."
    )


@main.command()
@click.argument("sources", nargs=-1, required=True, type=SOURCE)
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the new graph store.")
@with_parser
@click.option("--formulas", type=click.Choice(FORMULA_MODES), default="both", show_default=True)
@click.option(
    "--workers", type=click.IntRange(1), help="Processes, by default all usable cores; the graphs are the same."
)
@click.option("--fresh", is_flag=True, help="Discard the work of an interrupted job.")
@quiet_option
def graphs(
    sources: tuple[Path, ...],
    output: Path,
    formulas: FormulaMode,
    workers: int | None,
    fresh: bool,
    quiet: bool,
    **parser: Any,
) -> None:
    """Build the graphs of all posts of SOURCES.

    A source is a local ARQMath folder, whose official formula trees are used; posts as `mathamr build` reads them; or a
    file of question-answer pairs (.jsonl or .jsonl.gz, with qid, question, aid and answer in each line).

    The neural parsers need environments of their own: see `mathamr doctor`. Their parses are cached in OUTPUT.parses,
    so an interrupted job does not parse them again. A job with other sources or options than the interrupted one is
    refused; --fresh discards the interrupted one's work.
    """
    from pyterrier_mathamr.experiments import build_graphs

    chosen = chosen_parser(output, **parser)
    options: dict[str, Any] = {"parser": chosen, "formulas": formulas, "workers": workers, "fresh": fresh}
    store = build_graphs(sources, output, **options, verbose=not quiet)
    click.echo(f"{output}: {counted(len(store), 'graph')}")
    if embedded := getattr(chosen, "embedded_count", 0):
        click.echo(f"The embedded parser parsed {embedded:,} of the texts instead; see '# ::parser' of their graphs.")


@main.command(short_help="Store graphs in Penman notation that others made.")
@click.argument("file", type=FILE)
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the graph store.")
@click.option("--mode", type=click.Choice(["create", "overwrite", "append"]), default="create", show_default=True)
@quiet_option
def import_graphs(file: Path, output: Path, mode: Literal["create", "overwrite", "append"], quiet: bool) -> None:
    """Store the graphs of FILE, and report what was repaired and what was refused.

    FILE holds Penman records with `# ::id`, such as the published MathAMR+ graphs or any .amr file, or is a table of
    ids and graphs as MathAMR has it; gzipped or not.

    Ends with exit code 1, and changes nothing, if no record of FILE is a graph.
    """
    from pyterrier_mathamr.graph import GraphStore, import_penman

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MathAMRWarning)  # the report says it all
        report = import_penman(file, GraphStore(output), mode=mode, allow_empty=False, verbose=not quiet)
    click.echo(f"{output}: {report}")
    for refusal in report.refusals:
        click.echo(f"{file}, {refusal}")


@main.command(short_help="Report what an AMR parser lacks, and how to install it.")
@click.option("--parser", type=click.Choice(["dependency", "transition", "amrlib"]), help="By default all of them.")
@click.option("--python", default="", help="Interpreter of the parser's environment, as for --parser-python.")
@click.option("--model", default="", help="Name, folder or checkpoint of the model; the parser's usual one.")
def doctor(parser: ParserName | None, python: str, model: str) -> None:
    """Report what the environment of an AMR parser lacks, and how to install that.

    --python and --model without --parser are those of the transition parser. Ends with exit code 1 if one parser is
    examined and cannot work.
    """
    from pyterrier_mathamr.amr import examine

    one: ParserName | None = parser or ("transition" if python or model else None)
    names: tuple[ParserName, ...] = (one,) if one else ("dependency", "transition", "amrlib")
    for name in names:
        click.echo(f"parser {name}")
        findings = examine(name, python, model)
        for finding in findings:
            mark = "ok     " if finding.good else "MISSING" if finding.needed else "note   "
            click.echo(f"{mark}  {finding.what}" + ("" if finding.good else f"\n         {finding.remedy}"))
        if one and not all(finding.good or not finding.needed for finding in findings):
            raise click.ClickException(f"parser {one} cannot work yet")


@main.command(short_help="Train a model on pairs of questions and answers.")
@click.argument("graph_store", type=FOLDER)
@click.argument("sources", nargs=-1, required=True, type=SOURCE)
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the new model.")
@click.option("--negatives", type=click.Choice(["bm25", "model", "tags"]), help="Mine hard negatives; one a pair.")
@click.option("--negatives-from", default="mathamr-plus-mini", show_default=True, help="The model that mines.")
@click.option("--linked-questions", type=click.Choice(["none", "duplicate", "all"]), default="none", show_default=True)
@click.option("--first", multiple=True, type=SOURCE, help="A source trained on before SOURCES, one epoch by default.")
@click.option("--fresh", is_flag=True, help="Start again; do not continue an interrupted run.")
@config_options
@quiet_option
def train(graph_store: Path, sources: tuple[Path, ...], output: Path, fresh: bool, quiet: bool, **options: Any) -> None:
    """Train a model on the pairs of SOURCES with the graphs of GRAPH_STORE.

    A tenth of a folder's questions is held out to decide when to stop, and another tenth for testing; pair files are
    for training only. Linked questions of a folder can be pairs, too; the answers of each are never negatives of the
    other. The state after each epoch is kept beside OUTPUT until the model is finished.
    """
    from pyterrier_mathamr.experiments import FurtherTraining, train_from_sources

    config = config_of(options.pop("file"), options.pop("changes"))
    further = FurtherTraining(**options)
    model = train_from_sources(sources, graph_store, output, config, further=further, fresh=fresh, verbose=not quiet)
    click.echo(f"{output}: model {model.identity[:12]}")


@main.command(short_help="Encode graphs with a model, and index their vectors.")
@click.argument("graph_store", type=FOLDER)
@click.argument("model")
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the new index.")
@click.option("--answers-of", type=FOLDER, help="Index only the answers of this ARQMath folder; all graphs otherwise.")
@click.option("--fresh", is_flag=True, help="Discard the work of an interrupted job.")
@quiet_option
def index(graph_store: Path, model: str, output: Path, answers_of: Path | None, fresh: bool, quiet: bool) -> None:
    """Encode the graphs of GRAPH_STORE with MODEL (a name or a folder) and index their vectors."""
    from pyterrier_mathamr.experiments import index_graph_store

    built = index_graph_store(graph_store, model, output, answers_of=answers_of, fresh=fresh, verbose=not quiet)
    click.echo(f"{output}: {counted(len(built), 'document')}")


@main.command(short_help="Run a whole experiment, or a study.")
@click.argument("what", required=False, metavar="FOLDER|STUDY")
@click.option("--year", "--years", "years", help="Whose topics and judgements: 2022, or several: 2020,2022.")
@click.option("--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True, help="Keeps all results.")
@click.option("--model", help="Name or folder of a trained model; one is trained otherwise. Not for studies.")
@click.option("--task", type=click.Choice(["1", "2"]), default="1", show_default=True, help="1: answers; 2: formulas.")
@click.option("--systems", help="Of task 2: all, or names as in its table, such as Tangent-S,MathAMR+.")
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
@click.option("--list", "listed", is_flag=True, help="Show the studies.")
@config_options
@quiet_option
def experiment(what: str | None, listed: bool, collection: Path | None, **options: Any) -> None:
    """Run a whole experiment on the ARQMath folder FOLDER, or run STUDY on the folder given by --collection.

    A whole experiment makes graphs, a model, an index and tables. Its model depends on the number of training pairs:
    from 40,000 as in the paper, from 2,000 by a recipe for few pairs, below that the bundled mathamr-plus-mini.

    A study is a table of the MathAMR+ paper, such as paper/4.6, or an ablation, such as ablation/layers; each condition
    is trained with several seeds.

    Finished steps are kept in the work folder and not repeated; the report is there, too.
    """
    if listed:
        click.echo(_studies())
    elif what is None:
        raise click.UsageError("Give an ARQMath folder, or a study and --collection; --list shows the studies.")
    elif collection is not None:
        _run_study(what, collection, **options)
    elif Path(what).is_dir():
        _run_folder(Path(what), **options)
    else:
        raise click.UsageError(f"{what} is no folder. A study needs --collection; --list shows the studies.")


def _run_folder(folder: Path, years: str | None, workdir: Path, task: str, quiet: bool, **options: Any) -> None:
    """Run a whole experiment on a folder."""
    from pyterrier_mathamr.experiments import run_arqmath, run_task2

    file, changes = options["file"], options["changes"]
    config = config_of(file, changes) if file else None
    if options["systems"] and task != "2":
        raise click.UsageError("--systems chooses among those of --task 2.")
    chosen = {"systems": [name.strip() for name in options["systems"].split(",")]} if options["systems"] else {}
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


def _run_study(
    name: str, collection: Path, years: str | None, workdir: Path, seeds: str | None, quiet: bool, **options: Any
) -> None:
    """Run a study on a folder."""
    from pyterrier_mathamr.experiments import run_study

    if options["systems"]:
        raise click.UsageError("A study has its own systems: it does not take --systems.")
    if options["model"] or options["file"]:
        raise click.UsageError("A study trains its own models: it takes --set, but neither --model nor --config.")
    report = run_study(
        name,
        collection,
        workdir,
        pairs=options["pairs"],
        years=(years or "2020,2022").split(","),
        seeds=_numbers(seeds) if seeds else None,
        preset=options["preset"],
        changes=values_of(options["changes"]),
        workers=options["workers"],
        verbose=not quiet,
    )
    click.echo(report.to_markdown())


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no list of numbers such as 42,43", param_hint="--seeds") from error


def _studies() -> str:
    """List the studies: name, what is varied, the conditions."""
    from pyterrier_mathamr.experiments import STUDIES

    return "\n".join(
        f"{study.name:<26} {study.title}: {'; '.join(condition.name for condition in study.conditions)}"
        for study in STUDIES.values()
    )
