"""Commands over a person's own posts: build a search engine, serve its page."""

from __future__ import annotations

import contextlib
import webbrowser
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from .options import FOLDER, NEW, SOURCE, SYSTEMS, counted, quiet_option


@click.command(short_help="Build a search engine from your posts.")
@click.argument("posts", type=SOURCE)
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the engine.")
@click.option("--model", help="Name or folder of a model; by default the best one that is installed.")
@click.option("--add", is_flag=True, help="Add POSTS to the engine at OUTPUT.")
@click.option("--overwrite", is_flag=True, help="Replace the engine at OUTPUT once the new one is complete.")
@click.option("--fresh", is_flag=True, help="Discard the work of a build that was stopped.")
@click.option("--delimited-only", is_flag=True, help="Read formulas between delimiters only, not x^2=1 in plain text.")
@click.option("--workers", type=click.IntRange(1), help="Processes, by default all usable cores.")
@quiet_option
def build(
    posts: Path,
    output: Path,
    model: str | None,
    add: bool,
    overwrite: bool,
    fresh: bool,
    delimited_only: bool,
    workers: int | None,
    quiet: bool,
) -> None:
    """Build a search engine from POSTS.

    POSTS is a folder of Markdown, HTML, LaTeX and text files, or a .jsonl file (also .gz) with an id (docno or id), a
    text (html, body, text, contents, markdown or latex) and perhaps a title in each line; or a local ARQMath folder.
    The same command continues a build that was stopped.
    """
    from pyterrier_mathamr.arqmath import is_release
    from pyterrier_mathamr.engine import SearchEngine

    release = is_release(posts)
    source = _release(posts) if release else posts
    if add:
        engine = SearchEngine(output)
        engine.add(source, workers=workers, verbose=not quiet)
    else:
        engine = SearchEngine.build(
            source,
            output,
            model=model,
            bare_formulas=not (delimited_only or release),
            overwrite=overwrite,
            fresh=fresh,
            workers=workers,
            verbose=not quiet,
        )
    click.echo(f"{output}: {counted(len(engine), 'post')}. Search them: mathamr search {output} 'your question'")


@click.command(short_help="Serve a page that searches an engine and shows why.")
@click.argument("engine", type=FOLDER)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for every one.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option("--system", "systems", multiple=True, type=click.Choice(SYSTEMS), help="Twice: two side by side.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
def serve(engine: Path, host: str, port: int, systems: tuple[str, ...], open_page: bool) -> None:
    """Serve a page that searches ENGINE and shows why, to this machine alone unless --host says otherwise."""
    from pyterrier_mathamr.engine.page import serve_page

    def opened(url: str, public: bool) -> None:
        click.echo(f"{engine}: {url}   (Ctrl-C ends it)")
        if public:
            click.echo(
                "Every machine that reaches this one can search and read the posts: there is no password.", err=True
            )
        if open_page:
            webbrowser.open(url)

    with contextlib.suppress(KeyboardInterrupt):  # which is how a server ends
        serve_page(engine, systems or ("blend",), host=host, port=port, started=opened)


@click.command(short_help="Serve an engine to assistants and provers, as tools.")
@click.argument("engine", type=FOLDER)
def mcp(engine: Path) -> None:
    """Serve ENGINE to an assistant or prover, as tools over stdin and stdout (Model Context Protocol)."""
    from pyterrier_mathamr.engine.mcp import serve_tools

    serve_tools(engine)


def _release(folder: Path) -> Iterable[Mapping[str, Any]]:
    """Return the posts of an ARQMath folder, with their number."""
    import pyterrier as pt

    from pyterrier_mathamr.arqmath import ARQMathCollection

    collection = ARQMathCollection(folder)
    posts: Iterable[Mapping[str, Any]] = pt.utils.GeneratorLen(collection.documents(), collection.count_posts())
    return posts
