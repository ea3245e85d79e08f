"""How ``mathamr`` and its groups of commands end and warn: in one line, without the place in the package's code."""

from __future__ import annotations

import warnings
from typing import Any, TextIO

import click

from ._common.errors import MathAMRError, MathAMRWarning


class MathAMRGroup(click.Group):
    """Shows the package's own errors and warnings as one line each."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what goes wrong for a reason ends the program with that reason."""
        with warnings.catch_warnings():
            warnings.showwarning = _show
            try:
                return super().invoke(ctx)
            except MathAMRError as error:
                raise click.ClickException(str(error)) from error


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning; one that is not ours with the place in the code, which is what helps there."""
    ours = issubclass(category, MathAMRWarning)
    text = f"Warning: {message}\n" if ours else warnings.formatwarning(message, category, filename, lineno, line)
    click.echo(text, nl=False, err=True, file=file)
