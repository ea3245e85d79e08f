"""The commands of ``mathamr``: each is its arguments and one call of a function of the package."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import counted, ignored_warnings
from pyterrier_mathamr._common.types import FORMULA_MODES, FormulaMode
from pyterrier_mathamr._version import __version__

from .arqmath import arqmath
from .demo import demo
from .draw import draw
from .engine import build, compact, delete, duplicates, mcp, report, search, serve, update
from .group import MathAMRGroup
from .options import (
    FILE,
    FOLDER,
    NEW,
    SOURCE,
    chosen_parser,
    cluster_of,
    quiet_option,
    ray_options,
    values_of,
    with_parser,
)
from .site import site
from .verify import verify

_COMMANDS = (
    arqmath, build, compact, delete, demo, draw, duplicates, mcp, report, search, serve, site, update, verify,
)  # fmt: skip
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


@main.command()
@click.argument("sources", nargs=-1, required=True, type=SOURCE)
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the new graph store.")
@with_parser
@click.option(
    "--formulas",
    type=click.Choice(FORMULA_MODES),
    default="both",
    show_default=True,
    help="Trees of formulas to attach.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="How many processes, by default one for each core; the graphs are the same.",
)
@ray_options
@click.option("--fresh", is_flag=True, help="Discard the work of an interrupted job.")
@quiet_option
def graphs(
    sources: tuple[Path, ...],
    output: Path,
    formulas: FormulaMode,
    workers: int | None,
    ray: str | None,
    ray_workers: int | None,
    fresh: bool,
    quiet: bool,
    **parser: Any,
) -> None:
    """Build the graphs of all posts of SOURCES.

    A source is a local ARQMath folder, whose official formula trees are used; posts as `mathamr build` reads them; or a
    file of question-answer pairs (.jsonl or .jsonl.gz, with qid, question, aid and answer in each line).

    The neural parsers need separate environments: see `mathamr doctor`. Their parses are cached in OUTPUT.parses
    (not on a cluster), so that no text is parsed twice. To resume an interrupted job, run it again with the same
    sources and options; --fresh discards its work.
    """
    from pyterrier_mathamr.arqmath import graphs_from_sources

    chosen = chosen_parser(output, **parser)
    options: dict[str, Any] = {"parser": chosen, "formulas": formulas, "workers": workers, "fresh": fresh}
    options["executor"] = cluster_of(ray, ray_workers, workers)
    store = graphs_from_sources(sources, output, **options, verbose=not quiet)
    click.echo(f"{output}: {counted(len(store), 'graph')}")
    if embedded := getattr(chosen, "embedded_count", 0):
        click.echo(
            f"The parser failed on {counted(embedded, 'text')}; the embedded one parsed them, as '# ::parser' notes."
        )


@main.command(short_help="Import graphs in Penman notation.")
@click.argument("file", type=FILE)
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the graph store.")
@click.option(
    "--mode",
    type=click.Choice(["create", "overwrite", "append"]),
    default="create",
    show_default=True,
    help="What to do if there is a store already; create refuses.",
)
@quiet_option
def import_graphs(file: Path, output: Path, mode: Literal["create", "overwrite", "append"], quiet: bool) -> None:
    """Import the graphs of FILE, and report repaired and refused records.

    FILE has Penman records with `# ::id`, such as the published MathAMR+ graphs or any .amr file, or is a table of ids
    and graphs as in MathAMR. It can be gzipped.

    Ends with exit code 1, and changes nothing, if no record of FILE is a graph.
    """
    from pyterrier_mathamr.graph import GraphStore, import_penman

    with ignored_warnings(MathAMRWarning):  # the report repeats them
        report = import_penman(file, GraphStore(output), mode=mode, allow_empty=False, verbose=not quiet)
    click.echo(f"{output}: {report}")
    for refusal in report.refusals:
        click.echo(f"{file}, {refusal}")


@main.command(short_help="Train a model on pairs of questions and answers.")
@click.argument("graph_store", type=FOLDER)
@click.argument("sources", nargs=-1, required=True, type=SOURCE)
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the new model.")
@click.option(
    "--negatives", type=click.Choice(["bm25", "model", "tags"]), help="Mine hard negatives, one for each pair."
)
@click.option(
    "--negatives-from", default="mathamr-plus-text", show_default=True, help="The model for --negatives model."
)
@click.option(
    "--linked-questions",
    type=click.Choice(["none", "duplicate", "all"]),
    default="none",
    show_default=True,
    help="Linked questions of an ARQMath folder that become pairs.",
)
@click.option(
    "--first", multiple=True, type=SOURCE, help="Source to train on before SOURCES, for one epoch by default."
)
@click.option("--fresh", is_flag=True, help="Start over; do not resume an interrupted run.")
@click.option("--config", "file", type=FILE, help="JSON or YAML file of options.")
@click.option(
    "--set", "changes", multiple=True, metavar="OPTION=VALUE", help="One option of the model, such as layers=2."
)
@quiet_option
def train(graph_store: Path, sources: tuple[Path, ...], output: Path, fresh: bool, quiet: bool, **options: Any) -> None:
    """Train a model on the pairs of SOURCES with the graphs of GRAPH_STORE.

    A source is an ARQMath folder or a file of pairs. A tenth of a folder's questions is held out to decide when to
    stop, and another tenth for testing; files of pairs are only for training. Answers to linked questions are never
    negatives of each other. The state after each epoch is kept next to OUTPUT until the model is finished.
    """
    from pyterrier_mathamr.arqmath import train_from_sources
    from pyterrier_mathamr.model import MathAMR, MathAMRConfig

    file, changes = options.pop("file"), values_of(options.pop("changes"))
    config = (MathAMRConfig.from_file(file) if file else MathAMRConfig()).replace(**changes)
    miner, miners_model = options.pop("negatives"), options.pop("negatives_from")
    if miner:
        from pyterrier_mathamr.arqmath import mine_negatives
        from pyterrier_mathamr.graph import GraphStore

        searched = MathAMR.from_pretrained(miners_model) if miner == "model" else None
        options["mine"] = partial(
            mine_negatives, miner, graphs=GraphStore(graph_store), model=searched, verbose=not quiet
        )
    model = train_from_sources(sources, graph_store, output, config, fresh=fresh, verbose=not quiet, **options)
    click.echo(f"{output}: model {model.identity[:12]}")


@main.command(short_help="Encode graphs with a model, and index their vectors.")
@click.argument("graph_store", type=FOLDER)
@click.argument("model")
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the new index.")
@click.option("--answers-of", type=FOLDER, help="Index only the answers of this ARQMath folder, by default all graphs.")
@click.option("--parts", type=click.IntRange(1), help="Write an index in this many parts, for ShardedIndex.")
@click.option("--workers", type=click.IntRange(1), help="How many processes, by default one; the index is the same.")
@ray_options
@click.option("--fresh", is_flag=True, help="Discard the work of an interrupted job.")
@quiet_option
def index(
    graph_store: Path,
    model: str,
    output: Path,
    workers: int | None,
    answers_of: Path | None,
    ray: str | None,
    ray_workers: int | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Encode the graphs of GRAPH_STORE with MODEL (a name or a folder) and index their vectors."""
    from pyterrier_mathamr._common.running.processes import Processes
    from pyterrier_mathamr.arqmath import ARQMathCollection
    from pyterrier_mathamr.index import ShardedIndex, index_graph_store

    docnos = [post.id for post in ARQMathCollection(answers_of).answers()] if answers_of else None
    options |= {"docnos": docnos, "sources": {"answers_of": str(answers_of.resolve()) if answers_of else None}}
    executor = cluster_of(ray, ray_workers, workers) or Processes(workers or 1)
    built = index_graph_store(graph_store, model, output, executor=executor, verbose=not quiet, **options)
    if isinstance(built, ShardedIndex):
        sizes = [len(part) for part in built.parts()]
        click.echo(f"{output}: {counted(sum(sizes), 'document')} in {counted(len(sizes), 'part')}")
    else:
        click.echo(f"{output}: {counted(len(built), 'document')}")
