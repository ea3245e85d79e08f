"""``mathamr arqmath``: list, check, unpack and count a local copy of the ARQMath release."""

from __future__ import annotations

from pathlib import Path

import click

from .group import OpenGroup
from .options import FOLDER, quiet_option


@click.group(cls=OpenGroup)
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
