"""``mathamr doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mathamr_systems.amr.doctor import ParserName


@click.command(short_help="Report missing parts of an AMR parser, and how to install them.")
@click.option(
    "--parser", type=click.Choice(["dependency", "transition", "amrlib"]), help="Parser to check, by default all."
)
@click.option("--python", default="", help="Python of the parser's environment, as for --parser-python.")
@click.option("--model", default="", help="Name, folder or checkpoint of the model, by default the parser's usual one.")
def doctor(parser: ParserName | None, python: str, model: str) -> None:
    """Report missing parts of an AMR parser's environment, and how to install them.

    Without --parser, --python and --model apply to the transition parser. Ends with exit code 1 if a single
    parser is checked and cannot run.
    """
    from mathamr_systems import examine

    one: ParserName | None = parser or ("transition" if python or model else None)
    names: tuple[ParserName, ...] = (one,) if one else ("dependency", "transition", "amrlib")
    for name in names:
        click.echo(f"parser {name}")
        findings = examine(name, python, model)
        for finding in findings:
            mark = "ok     " if finding.good else "MISSING" if finding.needed else "note   "
            click.echo(f"{mark}  {finding.what}" + ("" if finding.good else f"\n         {finding.remedy}"))
        if one and not all(finding.good or not finding.needed for finding in findings):
            raise click.ClickException(f"The parser {one} cannot run yet. Install the parts listed as MISSING above.")
