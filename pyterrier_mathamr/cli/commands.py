"""All commands of ``mathamr`` except those over an engine. Each parses its arguments and makes one library call."""

from __future__ import annotations

from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pyterrier_mathamr._common.errors import INSTALL_SYSTEMS, MathAMRError, MathAMRWarning
from pyterrier_mathamr._common.feedback import counted, ignored_warnings
from pyterrier_mathamr._common.ids import visible
from pyterrier_mathamr._common.types import FORMULA_MODES, FormulaMode
from pyterrier_mathamr._version import __version__

from .demo import demo
from .engine import build, compact, delete, duplicates, mcp, report, search, serve, site, update
from .group import MathAMRGroup, OpenGroup
from .options import (
    FILE,
    FOLDER,
    NEW,
    SOURCE,
    chosen_parser,
    cluster_of,
    drawn,
    quiet_option,
    ray_options,
    values_of,
    with_parser,
)  # fmt: skip

if TYPE_CHECKING:
    from pyterrier_mathamr._common.drawing import Theme

_COMMANDS = (build, compact, delete, demo, duplicates, mcp, report, search, serve, site, update)
_theme = click.option("--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True)
_FORMS = ".svg, or with the extra plots .png or .pdf"
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
        texts = counted(embedded, "text")
        click.echo(f"The parser failed on {texts}; the embedded one parsed them, as '# ::parser' notes.")


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
        store = GraphStore(graph_store)
        options["mine"] = partial(mine_negatives, miner, graphs=store, model=searched, verbose=not quiet)
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


@main.group(cls=OpenGroup)
def arqmath() -> None:
    """Look at a local copy of the ARQMath release. Nothing is ever downloaded.

    FOLDER is where it was unpacked; by default ARQMATH_HOME, or `arqmath` in the home of ir_datasets.
    """


@arqmath.command()
@click.argument("folder", required=False, type=FOLDER)
def status(folder: Path | None) -> None:
    """List the files that are there, packed or missing, by their names only."""
    from pyterrier_mathamr.arqmath import inventory
    from pyterrier_mathamr.arqmath.errors import DOWNLOAD_PAGE

    place = release_at(folder)
    items = inventory(place)
    for item in items:
        where = str(item.files[0].relative_to(place)) if item.files else "" if item.needed else "(optional)"
        more = f" and {len(item.files) - 1} more" if len(item.files) > 1 else ""
        click.echo(f"{item.state:<10}  {item.role:<40}  {where}{more}{f'; {item.note}' if item.note else ''}")
    if any(item.state == "packed" for item in items):
        click.echo(f"\nTo unpack the archives: mathamr arqmath convert {place}")
    if any(item.state == "missing" and item.needed for item in items):
        click.echo(f"\nDownload the missing files from {DOWNLOAD_PAGE}")


@arqmath.command()
@click.argument("folder", required=False, type=FOLDER)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Where to unpack; by default next to each archive."
)
@quiet_option
def convert(folder: Path | None, output: Path | None, quiet: bool) -> None:
    """Unpack the archives of the release (.zip, .7z, .bz2, .xz, .tar.gz) into the files that are read.

    Gzipped files are read without unpacking. The archives are kept.
    """
    from pyterrier_mathamr.arqmath import unpack_release

    made = unpack_release(release_at(folder), output, verbose=not quiet)
    for path in made:
        click.echo(path)
    if not made:
        click.echo("Nothing to unpack.")


def release_at(folder: Path | None) -> Path:
    """Return the folder, by default that of the copy that the datasets read."""
    if folder is not None:
        return folder
    from pyterrier_mathamr.arqmath import locate

    return locate("mathamr arqmath").path


@main.group(cls=OpenGroup, short_help="Draw a graph or formula, scores, or results.")
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


@main.command(short_help="Compare the checksums of artifacts, models and caches.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…", type=click.Path(path_type=Path))
@quiet_option
def verify(paths: tuple[Path, ...], quiet: bool) -> None:
    """Read every byte of artifacts, models, caches and files of learned weights, and compare their checksums.

    Prints a line for each fault, and ok where there is none. Ends with exit code 1 if there is a fault.
    """
    bad = 0
    for path in paths:
        faults, description = _checked(path, verbose=not quiet)
        for fault in faults:
            click.echo("BAD  " + visible(" ".join(str(fault).split())))
        if not faults:
            click.echo(f"ok   {path}: {description}")
        bad += bool(faults)
    if bad:
        raise click.ClickException(f"{bad} of {len(paths)} failed. Rebuild or replace the ones listed as BAD.")


def _checked(path: Path, *, verbose: bool) -> tuple[list[MathAMRError], str]:
    """Recognize what is at the path, and return its faults, or a description of what has none."""
    from pyterrier_mathamr.store import META, Cache, NotBuiltError, StoreError, read_signed
    from pyterrier_mathamr.store.saved import described, is_saved, saved_faults

    if is_saved(path):
        faults = list(saved_faults(path))
        return faults, "" if faults else described(path)
    if path.is_file():
        faults = list(Cache(path).faults(verbose=verbose))
        return faults, "" if faults else f"cache, {len(Cache(path)):,} values"
    if (path / META).exists():
        faults = []
        try:
            faults.extend((artifact := _artifact(path)).faults(verbose=verbose))
        except StoreError as error:
            faults.append(error)
        if faults:
            return faults, ""
        parts = f" in {len(artifact.parts()):,} parts" if hasattr(artifact, "parts") else ""
        return [], f"{_type_of(path)}, {read_signed(path / META)['count']:,} rows{parts}"
    if (model := _model(path)) is not None:
        faults = list(model.faults(path))
        return faults, "" if faults else str(model.described(path))
    if path.exists():
        return [StoreError(path, "it is not an artifact, model or cache of this package")], ""
    return [NotBuiltError(path, "there is nothing at this path")], ""


def _artifact(path: Path) -> Any:
    """Open the artifact at the path by the entry point of its type."""
    from pyterrier_mathamr.store import StoreError

    name, registered = _type_of(path), entry_points(group="pyterrier.artifact")
    for entry in registered:
        if entry.name == name and hasattr(artifact := entry.load()(path), "faults"):
            return artifact
    known = sorted(entry.name for entry in registered if "mathamr" in entry.module)
    complete = any(entry.module.startswith("mathamr_systems") for entry in registered)
    others = "" if complete else f"; artifacts of other systems need: {INSTALL_SYSTEMS}"
    raise StoreError(path, f"unknown artifact type `{name}`; this installation knows: {', '.join(known)}{others}")


def _type_of(path: Path) -> str:
    """Read type and format of an artifact from its manifest."""
    from pyterrier_mathamr.store import META, parse_object, unreadable

    try:
        content = parse_object((path / META).read_bytes(), path / META)
    except OSError as error:
        raise unreadable(error, path / META) from error
    return f"{content.get('type')!s:.80}.{content.get('format')!s:.80}"


def _model(path: Path) -> Any:
    """Return the class of the model at the path, by the file that describes it; ``None`` if there is none."""
    kinds = [entry.load() for entry in entry_points(group="mathamr_models")]
    fitting = [kind for kind in kinds if (path / kind.DESCRIPTION).exists()]
    # the models of transformers have a config.json, too, so any other description is the decisive one
    return max(fitting, key=lambda kind: kind.DESCRIPTION != "config.json", default=None)
