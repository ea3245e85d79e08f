"""How ``mathamr`` ends and warns: errors and warnings of the package are one line, without a place in its code.

So are errors of the operating system that are no fault of the package: a full disk, a missing permission.
"""

from __future__ import annotations

import shlex
import signal
import warnings
from collections.abc import Sequence
from typing import Any, TextIO

import click

from pyterrier_mathamr._common.errors import ConfigError, MathAMRError, MathAMRWarning, is_refusal
from pyterrier_mathamr._common.ids import visible
from pyterrier_mathamr._common.running.variables import wait_passively

from .interrupts import Interruptible

_COMMAND = f"{__name__}.command"


class MathAMRGroup(click.Group):
    """Shows errors and warnings of the package, and the end by SIGINT or SIGTERM, as one line."""

    _is_program = False

    def main(self, args: Sequence[str] | None = None, *given: Any, **options: Any) -> Any:
        """Run the program with ``args``, by default the process's."""
        self._is_program = args is None and options.get("standalone_mode", True)
        if self._is_program:
            wait_passively()  # before torch is loaded
        return super().main(args, *given, **options)

    def make_context(self, info_name: str | None, args: list[str], *given: Any, **options: Any) -> click.Context:
        """Keep the command line before it is parsed."""
        command = f"{info_name or 'mathamr'} {shlex.join(args)}"
        context = super().make_context(info_name, args, *given, **options)
        context.meta.setdefault(_COMMAND, command)
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of the package ends the program with its message."""
        if ctx.parent is not None:
            return super().invoke(ctx)
        with Interruptible(ctx.meta[_COMMAND], to_the_end=self._is_program) as ending, warnings.catch_warnings():
            warnings.showwarning = _show
            try:
                return super().invoke(ctx)
            except MathAMRError as error:
                raise click.ClickException(visible(_in_words_of_options(error, ctx), "\n")) from error
            except OSError as error:
                if not is_refusal(error):
                    raise
                where = f"{error.filename}: " if error.filename else ""
                raise click.ClickException(visible(f"{where}{error.strerror}.")) from error
            except KeyboardInterrupt as error:
                code = 128 + getattr(error, "number", signal.SIGINT)
                ending.tell(error)
                ending.leave(code)
                raise click.exceptions.Exit(code) from error


def _in_words_of_options(error: MathAMRError, context: click.Context) -> str:
    """Write an error with the option of the command line that it is about, where the API's argument has its name."""
    command = context.command.get_command(context, context.invoked_subcommand or "")  # type: ignore[attr-defined]
    if isinstance(error, ConfigError) and command is not None:
        for option in (f"--{error.option.replace('_', '-')}", f"-{error.option}"):
            if any(option in parameter.opts for parameter in command.params):
                return f"{option} {error.value} is not accepted; give {error.allowed}."
    return str(error)


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning; one that is not ours with its place in the code."""
    text = f"Warning: {visible(str(message))}\n"
    if not issubclass(category, MathAMRWarning):
        text = warnings.formatwarning(message, category, filename, lineno, line)
    click.echo(text, nl=False, err=True, file=file)
