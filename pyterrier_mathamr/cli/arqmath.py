"""``mathamr arqmath``: list, check, unpack and count a local copy of the ARQMath release."""

from __future__ import annotations

from pathlib import Path

import click

from pyterrier_mathamr._common.feedback import counted

from .options import FOLDER, quiet_option


@click.group()
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

    place = _place(folder)
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
@quiet_option
def verify(folder: Path | None, quiet: bool) -> None:
    """Read each file and check it: rows, ids, truncation.

    Ends with exit code 1 if a file is bad. It reports missing rows, but accepts them.
    """
    from pyterrier_mathamr.arqmath import verify

    bad = total = 0
    for finding in verify(_place(folder), verbose=not quiet):
        total += 1
        bad += not finding.good
        click.echo(f"{'ok ' if finding.good else 'BAD'}  {finding.role}: {finding.counts}")
        for problem in finding.problems:
            click.echo(f"     problem: {problem}")
        for note in finding.notes:
            click.echo(f"     note: {note}")
    if bad or not total:
        raise click.ClickException(
            f"Of {counted(total, 'file')}, {bad:,} failed. Replace the files listed as BAD by new copies."
            if total
            else "The folder has no file of the ARQMath release. Name the folder that contains Posts.V1.3.xml."
        )


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

    made = unpack_release(_place(folder), output, verbose=not quiet)
    for path in made:
        click.echo(path)
    if not made:
        click.echo("Nothing to unpack.")


@arqmath.command()
@click.argument("folder", required=False, type=FOLDER)
@click.option("--year", type=click.Choice(["2020", "2021", "2022"]), default="2022", show_default=True)
@quiet_option
def stats(folder: Path | None, year: str, quiet: bool) -> None:
    """Count the rows of Table 4.3 of the MathAMR+ thesis, next to the published numbers."""
    from pyterrier_mathamr.arqmath import ARQMathCollection, release_statistics

    click.echo(f"{'':<50}{'here':>12}{'published':>12}")
    for row in release_statistics(ARQMathCollection(_place(folder)), year=int(year), verbose=not quiet):
        here, published = ("–" if count is None else f"{count:,}" for count in (row.here, row.published))
        click.echo(f"{row.name:<50}{here:>12}{published:>12}" + (f"  ({row.note})" if row.note else ""))


def _place(folder: Path | None) -> Path:
    """Return the folder, by default that of the copy that the datasets read."""
    if folder is not None:
        return folder
    from pyterrier_mathamr.arqmath import locate

    return locate("mathamr arqmath").path
