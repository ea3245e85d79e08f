"""Commands over a person's own posts: build a search engine, ask it, serve its page."""

from __future__ import annotations

import contextlib
import json
import shutil
import textwrap
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import FOLDER, NEW, SOURCE, counted, quiet_option

if TYPE_CHECKING:
    import pandas as pd

    from pyterrier_mathamr.engine import SearchEngine

_SYSTEMS = ("blend", "bm25", "mathamr")


@click.command()
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
    text (html, body, text, contents, markdown or latex) and perhaps a title in each line. The same command continues a
    build that was stopped.
    """
    from pyterrier_mathamr.engine import SearchEngine

    if add:
        engine = SearchEngine(output)
        engine.add(posts, workers=workers, verbose=not quiet)
    else:
        engine = SearchEngine.build(
            posts,
            output,
            model=model,
            bare_formulas=not delimited_only,
            overwrite=overwrite,
            fresh=fresh,
            workers=workers,
            verbose=not quiet,
        )
    click.echo(f"{output}: {counted(len(engine), 'post')}. Search them: mathamr search {output} 'your question'")


@click.command()
@click.argument("engine", type=FOLDER)
@click.argument("query")
@click.option("-k", type=click.IntRange(1), default=10, show_default=True, help="Results.")
@click.option("--formula", is_flag=True, help="QUERY is one formula; find formulas like it.")
@click.option("--explain", is_flag=True, help="Say what contributes to the score of the first result.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def search(engine: Path, query: str, k: int, formula: bool, explain: bool, as_json: bool) -> None:
    r"""Search ENGINE with QUERY: words, and formulas between dollars.

    mathamr search my.engine 'why does $\sum 1/n$ diverge?'
    """
    from pyterrier_mathamr.engine import SearchEngine

    opened = SearchEngine(engine)
    found = opened.search_formula(query, k=k) if formula else opened.search(query, k=k)
    if as_json:
        for row in found.to_dict("records"):
            click.echo(json.dumps(row, ensure_ascii=False))
        return
    click.echo(_table(found, formula) or "Nothing was found.")
    if explain and not formula and len(found):
        click.echo(_explanation(opened, query, found["docno"].iloc[0]))


@click.command()
@click.argument("engine", type=FOLDER)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for every one.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option("--system", "systems", multiple=True, type=click.Choice(_SYSTEMS), help="Twice: two side by side.")
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


@click.command()
@click.argument("engine", type=FOLDER)
def mcp(engine: Path) -> None:
    """Serve ENGINE to an assistant or prover, as tools over stdin and stdout (Model Context Protocol)."""
    from pyterrier_mathamr.engine.mcp import serve_tools

    serve_tools(engine)


def _table(found: pd.DataFrame, formula: bool) -> str:
    """Write results for a terminal: rank, score, docno and title, and below them the snippet."""
    width = min(shutil.get_terminal_size((100, 20)).columns, 110)
    lines = []
    for rank, row in enumerate(found.to_dict("records"), start=1):
        head = row["post_id"] if formula else f"{row['docno']}  {row['title']}"
        lines.append(f"{rank:>3}  {row['score']:6.2f}  {head}".rstrip())
        text = row["latex"] if formula else row["snippet"]
        lines += textwrap.wrap(" ".join(text.split()), width, initial_indent=" " * 13, subsequent_indent=" " * 13)
    return "\n".join(lines)


def _explanation(engine: SearchEngine, query: str, docno: str) -> str:
    """Write the parts of a score for a terminal."""
    found = engine.explain(query, docno)
    lines = [f"\nWhy {docno} has {found.score:.2f}:"]
    for part in found.parts.head(12).to_dict("records"):
        texts = [" ".join(part[side].split()) for side in ("query", "document")]
        shown = texts[:1] if part["part"] == "word" else texts
        lines.append(f"  {part['contribution']:6.2f}  {part['part']:<9} {'  ~  '.join(text[:60] for text in shown)}")
    return "\n".join(lines)
