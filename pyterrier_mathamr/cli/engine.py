"""Commands over a person's own posts: build a search engine, search it, serve its page or its tools."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import textwrap
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr._common.ids import visible, visible_json

from .options import FILE, FOLDER, NEW, SOURCE, SYSTEMS, filter_options, place_options, quiet_option
from .topic_files import read_topic_file

if TYPE_CHECKING:
    import pandas as pd

    from pyterrier_mathamr.engine import EngineSnapshot


_LINK = "Link to the source of each result, such as 'vscode://file/{path}:{line}'; also {file}, {name}, {docno}."


@click.command(short_help="Build a search engine from your posts.")
@click.argument("posts", type=SOURCE, nargs=-1, required=True)
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the engine.")
@click.option(
    "--model",
    help="Name or folder of a model; by default mathamr-plus-text, or, if mathamr-mpnet is installed and there are at "
    "most 20,000 posts, mathamr-plus-text-large.",
)
@click.option("--overwrite", is_flag=True, help="Replace the engine at OUTPUT once the new one is complete.")
@click.option("--fresh", is_flag=True, help="Discard the work of a build that was stopped.")
@click.option("--delimited-only", is_flag=True, help="Read formulas between delimiters only, not x^2=1 in plain text.")
@click.option("--whole-files", is_flag=True, help="Keep files whole; do not split them at headings and statements.")
@click.option("--macros", type=FILE, help="LaTeX file whose macros and kinds of statements apply to all posts.")
@click.option(
    "--exclude",
    metavar="GLOB",
    multiple=True,
    help="Files and folders to leave out, as in .gitignore, which is respected, too; give it again for more.",
)
@click.option("--workers", type=click.IntRange(1), help="Processes, by default all usable cores.")
@quiet_option
def build(
    posts: tuple[Path, ...], output: Path, model: str | None, delimited_only: bool, quiet: bool, **options: Any
) -> None:
    """Build a search engine from POSTS.

    POSTS are files or folders of notes in LaTeX, Markdown, HTML, text, rst, Org, notebooks and Lean; each statement and
    section becomes a post. Or a .jsonl file (also .gz), where each line has an id (docno or id), a text (html, body,
    text, contents, markdown or latex), and optionally a title and the id (parent) or the title (parent_title) of the
    post that it answers. Or a local ARQMath folder.

    Run the same command again to resume a build that was stopped.
    """
    from pyterrier_mathamr.arqmath import is_release
    from pyterrier_mathamr.engine import SearchEngine

    source: Any = posts
    if release := len(posts) == 1 and is_release(posts[0]):
        import pyterrier as pt

        from pyterrier_mathamr.arqmath import ARQMathCollection

        collection = ARQMathCollection(posts[0])
        source = pt.utils.GeneratorLen(collection.documents(), collection.count_posts())
    options |= {"model": model or _chosen_model(), "bare_formulas": not (delimited_only or release)}
    engine = SearchEngine.build(source, output, verbose=not quiet, **options)
    click.echo(f"{output}: {counted(len(engine), 'post')}. Search them: mathamr search {output} 'your question'")


_MOST_FOR_LARGE = 20_000  # posts


def _chosen_model() -> str | Callable[[int], str]:
    """Choose the large model for a collection that it encodes in reasonable time, if its encoder is installed."""
    from pyterrier_mathamr.model import MathAMR
    from pyterrier_mathamr.model.saving import DEFAULT_MODEL, LARGE_MODEL
    from pyterrier_mathamr.model.text_encoder import own_folder

    def choose(posts: int) -> str:
        large = posts <= _MOST_FOR_LARGE
        chosen, other = (LARGE_MODEL, DEFAULT_MODEL) if large else (DEFAULT_MODEL, LARGE_MODEL)
        reason = "its encoder is on this machine" if large else f"more than {_MOST_FOR_LARGE:,} posts"
        click.echo(f"The model is {chosen}: {reason}. --model {other} is {'faster' if large else 'slower'}.", err=True)
        return chosen

    encoder = MathAMR.from_pretrained(LARGE_MODEL).config.text.text_model
    return choose if own_folder(encoder) else DEFAULT_MODEL


@click.command(short_help="Bring an engine up to date with its files.")
@click.argument("posts", type=SOURCE, nargs=-1)
@click.option("--output", "-o", "path", type=FOLDER, required=True, help="Folder of the engine.")
@click.option("--watch", is_flag=True, help="Keep running, and update the engine whenever a file changes.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="How many processes read posts.")
@quiet_option
def update(posts: tuple[Path, ...], path: Path, watch: bool, workers: int, quiet: bool) -> None:
    """Bring an engine up to date with POSTS: folders and files, by default the ones that it was built from.

    Reads new and changed files, and removes the posts of deleted ones. Searches see the old posts until everything is
    done. To complete a stopped update, run the same command again.
    """
    from pyterrier_mathamr._common.errors import MathAMRError
    from pyterrier_mathamr.engine import SearchEngine

    engine = SearchEngine(path)

    def update_once(if_changed: bool = False) -> None:
        done = engine.update(posts or None, workers=workers, verbose=not quiet)
        if not if_changed or done[:3] != (0, 0, 0):
            click.echo(visible(f"{path}: {done}; {counted(len(engine), 'post')}"))

    def update_or_tell() -> None:
        try:
            update_once(if_changed=True)
        except (MathAMRError, OSError) as error:  # perhaps the next change repairs it
            click.echo(visible(f"Error: {error}"), err=True)

    update_once()
    if watch:
        from pyterrier_mathamr.engine.sources import watch as watch_files

        sources = engine.sources()
        click.echo(visible(f"Watching {', '.join(sources)}   (Ctrl-C ends it)"))
        watch_files(sources, path, update_or_tell)


@click.command(short_help="Delete posts from an engine.")
@click.argument("engine", type=FOLDER)
@click.argument("docnos", metavar="DOCNO...", nargs=-1, required=True)
def delete(engine: Path, docnos: tuple[str, ...]) -> None:
    """Delete posts from ENGINE by their docnos; the name of a file deletes all posts that were read from it.

    The files themselves stay, and updates leave them out until they change. `mathamr compact` also frees the space of
    the posts.
    """
    from pyterrier_mathamr.engine import SearchEngine

    opened = SearchEngine(engine)
    before = len(opened)
    opened.delete(docnos)
    click.echo(f"{engine}: {counted(before - len(opened), 'post')} deleted, {counted(len(opened), 'post')} left")


@click.command(short_help="Report how an engine reads its sources, with every fault.")
@click.argument("engine", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: each fault with its post and place.")
@quiet_option
def report(engine: Path, as_json: bool, quiet: bool) -> None:
    """Report how ENGINE reads its sources, as they are now: counts for each format, and every fault.

    Reads them once more, without changing the engine.
    """
    from pyterrier_mathamr.engine import SearchEngine

    reading = SearchEngine(engine).report(verbose=not quiet)
    if as_json:
        for problem in reading.problems:
            click.echo(_as_json(problem._asdict()))
    else:
        click.echo(visible(str(reading), "\n"))


@click.command(short_help="Remove what is left of deleted posts.")
@click.argument("engine", type=FOLDER)
def compact(engine: Path) -> None:
    """Rewrite ENGINE without deleted posts: afterwards their text is in none of its files.

    Updates and deletions do this themselves where a fifth of the rows of an index was deleted. Searches see the same
    posts meanwhile. To complete a stopped run, run the same command again.
    """
    from pyterrier_mathamr.engine import SearchEngine

    opened = SearchEngine(engine)
    before = opened.counts()[-1]
    opened.compact()
    click.echo(f"{engine}: {', '.join(opened.counts())}; before {before}")


@click.command(short_help="Serve a page that searches an engine and shows why.")
@click.argument("engine", type=FOLDER)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all of them.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option(
    "--system",
    "systems",
    multiple=True,
    type=click.Choice(SYSTEMS),
    help="How to rank; give it twice to compare two side by side.",
)
@click.option("--link", metavar="TEMPLATE", help=_LINK)
@click.option("--title", default="", help="Name of the collection, by default the folder's.")
@click.option("--about", default="", help="A sentence about it, by default its numbers of posts and formulas.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--token", envvar="MATHAMR_TOKEN", show_envvar=True, help="The password of readers; '' if they need none."
)
@click.option(
    "--allowed-host", "hosts", metavar="NAME", multiple=True, help="Name under which a proxy reaches the server."
)
@click.option(
    "--root-path", default="", metavar="PATH", help="Path under which a proxy serves the page, such as /notes."
)
@click.option(
    "--trusted-proxy", "proxies", metavar="ADDRESS", multiple=True, help="Address of a proxy on another machine."
)
def serve(engine: Path, systems: tuple[str, ...], link: str | None, open_page: bool, **options: Any) -> None:
    """Serve a page that searches ENGINE and shows why, only to this machine unless --host is given.

    Readers on other machines need the token. Set it in MATHAMR_TOKEN: other users of this machine can see options.
    """
    from pyterrier_mathamr.engine.origins import LinkTemplate
    from pyterrier_mathamr.engine.page import serve_page

    if link is not None:
        LinkTemplate(link)

    def opened(url: str, public: bool) -> None:
        click.echo(f"{engine}: {url}   (Ctrl-C ends it)")
        if public:
            warning = "Every machine that reaches this one can search and read the posts: there is no token."
            click.echo(warning, err=True)
        if open_page:
            webbrowser.open(url)

    with contextlib.suppress(KeyboardInterrupt):  # which is how a server ends
        serve_page(engine, systems or ("blend",), link=link, started=opened, **options)


@click.command(short_help="Serve an engine to assistants and provers, as tools.")
@click.argument("engine", type=FOLDER)
def mcp(engine: Path) -> None:
    """Serve ENGINE to an assistant or prover, as tools over stdin and stdout (Model Context Protocol)."""
    from pyterrier_mathamr.engine.mcp import serve_tools

    serve_tools(engine)


@click.command(short_help="List pairs of posts with the same content.")
@click.argument("engine", type=FOLDER)
@click.option("-k", type=click.IntRange(1), default=100, show_default=True, help="Maximum number of pairs.")
@click.option("--similarity", type=click.FloatRange(0, 1), default=0.9, show_default=True, help="Minimum similarity.")
@place_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def duplicates(engine: Path, k: int, similarity: float, within: str, kind: str, as_json: bool) -> None:
    """List pairs of posts of ENGINE with the same content, and the words and formulas that only one of both has."""
    from pyterrier_mathamr.engine import SearchEngine

    pairs = SearchEngine(engine).duplicates(k, similarity=similarity, within=within, kind=kind).to_dict("records")
    for row in pairs:
        if as_json:
            click.echo(_as_json(row))
            continue
        start = f"{row['similarity']:.3f}  "
        for side in "ab":
            click.echo(visible(f"{start}{row[f'docno_{side}']}  {row[f'title_{side}']}".rstrip()))
            start = " " * len(start)
            if only := row[f"only_{side}"]:
                click.echo(visible(f"{start}  only here: {textwrap.shorten(only, 100, placeholder=' …')}"))
    if not (pairs or as_json):
        click.echo(f"No two posts have a similarity of {similarity:g} or more.")


_MARKED = re.compile(r"\*\*([^*\s]+|\$[^$]+\$)\*\*")  # what a snippet marks, which a terminal shows in bold
_INDENT = 13


@click.command(short_help="Search an engine, with one query or a file of topics.")
@click.argument("engine", type=FOLDER)
@click.argument("query", required=False)
@click.option("-k", type=click.IntRange(1), help="Number of results, by default 10; 1000 for each topic of a file.")
@click.option(
    "--system",
    type=click.Choice(SYSTEMS),
    default="blend",
    show_default=True,
    help="Rank by both, only words, or only graphs.",
)
@click.option(
    "--formula", is_flag=True, help="QUERY is one formula, perhaps with wildcards such as ?a; find formulas like it."
)
@filter_options
@click.option("--weak", is_flag=True, help="Also show weak matches, which may be no better than random posts.")
@click.option("--explain", is_flag=True, help="Show the parts of the first result's score.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--link", metavar="TEMPLATE", help=_LINK)
@click.option("--topics", type=FILE, help="Search with all topics of a file: ARQMath, TREC, .jsonl or .tsv.")
@click.option("--output", "-o", type=NEW, help="The run file of --topics, in TREC's format.")
@click.option("--overwrite", is_flag=True, help="Replace OUTPUT.")
@quiet_option
def search(
    engine: Path, query: str | None, k: int | None, topics: Path | None, quiet: bool, weak: bool, **options: Any
) -> None:
    r"""Search ENGINE with QUERY: words, and formulas between dollars; or with the topics of a file.

    mathamr search my.engine 'why does $\sum 1/n$ diverge?'

    mathamr search my.engine --topics topics.xml -o run.txt
    """
    if (query is None) == (topics is None):
        message = "Either QUERY or --topics is needed, and not both. Give a QUERY, or --topics FILE with -o RUN."
        raise click.UsageError(message)
    if query is not None and not query.strip():
        raise click.UsageError("QUERY is empty. Give words, or a formula between dollars.")
    if topics is not None:
        if weak:
            message = "--weak has no effect with --topics, whose run always includes weak matches. Leave it out."
            raise click.UsageError(message)
        _search_topics(_opened(engine), topics, k or 1000, quiet=quiet, **options)
    else:
        from pyterrier_mathamr._common.running.resources import cycles_kept

        with cycles_kept():  # garbage collection during imports would cost a tenth of the time of a search
            _search(_opened(engine), query or "", k or 10, weak=weak, **options)


def _opened(path: Path) -> EngineSnapshot:
    from pyterrier_mathamr.engine import SearchEngine

    return SearchEngine(path).snapshot()


def _search(
    engine: EngineSnapshot,
    query: str,
    k: int,
    *,
    system: str,
    formula: bool,
    weak: bool,
    explain: bool,
    as_json: bool,
    link: str | None,
    output: Path | None,
    overwrite: bool,
    **filters: str,
) -> None:
    from pyterrier_mathamr.engine.origins import Filter, LinkTemplate
    from pyterrier_mathamr.engine.ranking import GOOD
    from pyterrier_mathamr.explain.explanation import table_of

    if output is not None or overwrite:
        message = "-o and --overwrite work only with --topics. Leave them out, or redirect the output to a file."
        raise click.UsageError(message)
    if formula and (explain or system != "blend"):
        raise click.UsageError("--formula cannot be combined with --explain or --system. Leave them out.")
    if explain and system != "blend":
        raise click.UsageError(f"--explain works only with the system blend, not with {system}. Leave out --system.")
    template = LinkTemplate(link) if link else None
    message = "Nothing was found."
    if formula:
        results = engine.search_formula(query, k=k, **filters)
    else:
        suggestions = engine.suggestions(query)
        if words := str(suggestions):
            click.echo(visible(words), err=True)
        question = engine.question(suggestions.searched)
        results = engine.shown(question, engine.found(question, k, system, Filter(**filters)))
        if not weak and len(results):
            first = results.iloc[0]
            closest = visible(f"{first['docno']}  {first['title']}".rstrip())
            message = f"No good match. The closest: {closest}  (--weak shows it)"
            results = results[results["match"] >= GOOD]
    if template is not None:
        posts = engine.indexes.posts.get_many(results["post_id" if formula else "docno"].tolist())
        results = results.assign(link=[template.link(post) for post in posts])
    why = engine.explain(query, results["docno"].iloc[0]) if explain and len(results) else None
    if as_json:
        for row in results.to_dict("records"):
            click.echo(_as_json(row))
        if why is not None:
            parts = json.loads(why.parts.to_json(orient="records"))
            click.echo(_as_json({"explains": why.docno, "score": why.score, "parts": parts}))
        return
    if formula and results.empty:
        message = _no_formula(engine, query)
    click.echo(results_table(results, formula) or message)
    if why is not None:
        click.echo(visible(f"\n{table_of(why, width=_width())}", "\n"))


def _search_topics(
    engine: EngineSnapshot,
    topics: Path,
    k: int,
    *,
    system: str,
    formula: bool,
    output: Path | None,
    overwrite: bool,
    quiet: bool,
    **others: bool | str | None,
) -> None:
    """Search with each topic of a file, and write the run."""
    import pandas as pd

    from pyterrier_mathamr._common.feedback import progress
    from pyterrier_mathamr.arqmath import write_run

    if output is None:
        raise click.UsageError("--topics needs a file for its results. Add -o RUN.")
    if formula or any(others.values()):
        message = "--topics cannot be combined with --formula, --explain, --json, --link or filters. Leave them out."
        raise click.UsageError(message)
    if output.exists() and not overwrite:
        raise click.ClickException(f"{output} exists already. Add --overwrite to replace it, or give another -o.")
    if not output.absolute().parent.is_dir():
        raise click.ClickException(f"The folder {output.parent} does not exist. Create it, or give another -o.")
    read = read_topic_file(topics)
    retriever = {"blend": engine.retriever, "bm25": engine.bm25, "mathamr": engine.mathamr}[system](num_results=k)
    rankings = [
        retriever(engine.frame(topic.query).assign(qid=topic.qid))[["qid", "docno", "score"]]
        for topic in progress(read, "searching", "topics", verbose=not quiet)
    ]
    run = pd.concat(rankings, ignore_index=True)
    write_run(run, output, name=f"mathamr-{system}")
    answered = run["qid"].nunique()
    click.echo(f"{output}: {counted(len(run), 'result')} for {counted(answered, 'topic')}")
    if answered < len(read):
        nothing = [topic.qid for topic in read if topic.qid not in set(run["qid"])]
        click.echo(f"Nothing was found for {counted(len(nothing), 'topic')}: {visible(', '.join(nothing[:5]))}")


def _as_json(row: Mapping[Any, Any]) -> str:
    return visible_json(json.dumps(row, ensure_ascii=False))


def _no_formula(engine: EngineSnapshot, query: str) -> str:
    """Return a message for a formula that finds nothing, or raise an error for one that cannot be read."""
    from pyterrier_mathamr.engine.page.queries import problems

    for problem in problems(query, query, engine.macros.formula):
        latex, place = visible(problem["latex"]), " " * len(visible(problem["latex"][: problem["start"]]))
        raise click.ClickException(f"The formula cannot be read. {visible(problem['message'])}\n  {latex}\n  {place}^")
    return "No formula like this one was found. To search by words, leave out --formula."


def results_table(results: pd.DataFrame, formula: bool) -> str:
    """Write results for a terminal: rank, match (of a formula its score), title and place, and below the snippet."""
    from pyterrier_mathamr.engine.ranking import percent
    from pyterrier_mathamr.engine.snippets import substitution_text

    indent = " " * _INDENT
    lines = []
    for rank, row in enumerate(results.to_dict("records"), start=1):
        docno, place = row["post_id" if formula else "docno"], f"{row['file']}:{row['line'] or 1}"
        if row["file"]:
            head = " — ".join(filter(None, ["" if formula else row["title"], place, row["section"]]))
        else:
            head = f"{docno}  {row['title']}"
        how_good = f"{row['tier']:8}" if formula else " named" if row["named"] else f"{percent(row['match']):>6}"
        lines.append(visible(f"{rank:>3}  {how_good}  {head}".rstrip()))
        if row.get("link"):
            lines.append(indent + visible(row["link"]))
        text = visible(" ".join((row["latex"] if formula else row["snippet"]).split()))
        wrapped = textwrap.wrap(text, _width(), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
        shown = "\n".join(wrapped)
        if not formula and sys.stdout.isatty():
            shown = _MARKED.sub(lambda match: click.style(match[1], bold=True), shown)
        lines.append(shown)
        if formula and (changed := substitution_text(row["substitution"])):
            lines.append(visible(f"{indent}with {changed}"))
    return "\n".join(lines)


def _width() -> int:
    return min(shutil.get_terminal_size((100, 20)).columns, 110)


@click.command(short_help="Add a search by words and formulas to a static site.")
@click.argument("folder", type=FOLDER)
@click.option("--output", "-o", type=NEW, help="Folder of the search, in FOLDER; by default FOLDER/mathamr.")
@click.option("--title", default="", help="Title of the search page; by default that of FOLDER/index.html.")
def site(folder: Path, output: Path | None, title: str) -> None:
    """Add a search by words and formulas to FOLDER, a site of HTML pages.

    Sphinx, Jupyter Book, MkDocs, Quarto and pandoc write such folders; formulas may be for MathJax or KaTeX, or MathML.
    The search is a page and its data. It runs in the browser and needs no server but that of the site: publish it with
    the pages. Run the same command again when they have changed.
    """
    from pyterrier_mathamr.engine.site import write_site

    output = output or folder / "mathamr"
    report = write_site(folder, output, title=title)
    click.echo(f"{output}: {counted(report.sections, 'section')}, {counted(report.formulas, 'formula')}")
    if report.unread:
        click.echo(visible(f"{counted(len(report.unread), 'formula')} cannot be read, such as {report.unread[0]}"))
    click.echo(f"Try it: python -m http.server --directory {folder}")
