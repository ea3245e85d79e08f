"""How ``mathamr`` ends and warns: errors and warnings of the package are one line, without a place in its code.

So are errors of the operating system that are no fault of the package: a full disk, a missing permission.
"""

from __future__ import annotations

import shlex
import signal
import warnings
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TextIO

import click

from pyterrier_mathamr._common.errors import ConfigError, MathAMRError, MathAMRWarning, is_refusal
from pyterrier_mathamr._common.ids import visible
from pyterrier_mathamr._common.running.variables import wait_passively

from .interrupts import Interruptible

_COMMAND = f"{__name__}.command"

REGISTERED = "mathamr_commands"
"""The group of entry points that are commands of other distributions: ``experiment``, ``draw.topics``."""

_OF_SYSTEMS = (
    "arqmath.stats",
    "arqmath.verify",
    "doctor",
    "draw.speed",
    "draw.topics",
    "evaluate",
    "experiment",
    "train-in-out",
)


class OpenGroup(click.Group):
    """A group that has the commands of other distributions, too."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List all commands by name."""
        return sorted({*super().list_commands(ctx), *_registered(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; of one that is not installed, raise the error that says how to get it."""
        if (own := super().get_command(ctx, cmd_name)) is not None:
            return own
        if (entry := _registered(ctx).get(cmd_name)) is not None:
            command: click.Command = entry.load()
            return command
        if f"{_prefix(ctx)}{cmd_name}" in _OF_SYSTEMS:
            raise click.UsageError(
                f"`{ctx.command_path} {cmd_name}` is a command of the systems. Run: pip install "
                "'pyterrier-mathamr[systems]'",
                ctx,
            )
        return None


def _prefix(ctx: click.Context) -> str:
    """Return what the names of a group's commands begin with: nothing, or ``draw.``."""
    return "" if ctx.parent is None else f"{_prefix(ctx.parent)}{ctx.info_name}."


def _registered(ctx: click.Context) -> dict[str, EntryPoint]:
    """Return the commands of other distributions in a group by name."""
    prefix = _prefix(ctx)
    found = {
        entry.name.removeprefix(prefix): entry
        for entry in entry_points(group=REGISTERED)
        if entry.name.startswith(prefix)
    }
    return {name: entry for name, entry in found.items() if "." not in name}


class MathAMRGroup(OpenGroup):
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
