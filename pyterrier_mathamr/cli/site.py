"""``mathamr site``: a search of a folder of HTML pages, as static files."""

from __future__ import annotations

from pathlib import Path

import click

from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr._common.ids import visible

from .options import FOLDER, NEW


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
