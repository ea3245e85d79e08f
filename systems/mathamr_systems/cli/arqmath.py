"""``mathamr arqmath verify`` and ``mathamr arqmath stats``: check and count a local copy of the ARQMath release."""

from __future__ import annotations

from pathlib import Path

import click

from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr.cli.commands import release_at
from pyterrier_mathamr.cli.options import FOLDER, quiet_option


@click.command()
@click.argument("folder", required=False, type=FOLDER)
@quiet_option
def verify(folder: Path | None, quiet: bool) -> None:
    """Read each file and check it: rows, ids, truncation.

    Ends with exit code 1 if a file is bad. It reports missing rows, but accepts them.
    """
    from mathamr_systems import verify as checked

    bad = total = 0
    for finding in checked(release_at(folder), verbose=not quiet):
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


@click.command()
@click.argument("folder", required=False, type=FOLDER)
@click.option("--year", type=click.Choice(["2020", "2021", "2022"]), default="2022", show_default=True)
@quiet_option
def stats(folder: Path | None, year: str, quiet: bool) -> None:
    """Count the rows of Table 4.3 of the MathAMR+ thesis, next to the published numbers."""
    from mathamr_systems import release_statistics
    from pyterrier_mathamr.arqmath import ARQMathCollection

    click.echo(f"{'':<50}{'here':>12}{'published':>12}")
    for row in release_statistics(ARQMathCollection(release_at(folder)), year=int(year), verbose=not quiet):
        here, published = ("–" if count is None else f"{count:,}" for count in (row.here, row.published))
        click.echo(f"{row.name:<50}{here:>12}{published:>12}" + (f"  ({row.note})" if row.note else ""))
