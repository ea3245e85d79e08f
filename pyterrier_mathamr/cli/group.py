"""How ``mathamr`` finds commands, warns, and ends.

Errors and warnings of the package are one line, without a place in its code. So are errors of the operating system that
are no fault of the package: a full disk, a missing permission. On SIGINT or SIGTERM a command ends soon, with one line
and exit code 130 or 143::

    signal ──▶ Interrupted, raised in the main thread ──▶ jobs keep their work and note it ──▶ one line, 130 or 143
       └─────▶ a watching thread: ends the process itself if that is too slow (native code, perhaps)

Every job can be killed at any instant, so ending early loses nothing.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from types import FrameType, TracebackType
from typing import Any, TextIO

import click

from pyterrier_mathamr._common.errors import (
    INSTALL_SYSTEMS,
    OF_SYSTEMS,
    ConfigError,
    MathAMRError,
    MathAMRWarning,
    is_refusal,
)
from pyterrier_mathamr._common.ids import visible
from pyterrier_mathamr._common.private import run_exit_functions
from pyterrier_mathamr._common.running.settings import wait_passively

_COMMAND = f"{__name__}.command"

REGISTERED = "mathamr_commands"
"""The group of entry points that are commands of other distributions: ``experiment``, ``draw.topics``."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 1.5  # seconds; a command ends within two


class OpenGroup(click.Group):
    """A group that has the commands of other distributions, too."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List all commands by name."""
        return sorted({*super().list_commands(ctx), *_registered(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; of one that is not installed, raise the error that says how to get it."""
        command = super().get_command(ctx, cmd_name)
        if command is None and (entry := _registered(ctx).get(cmd_name)) is not None:
            command = entry.load()
        if command is not None:
            return command
        if f"{_prefix(ctx)}{cmd_name}" in OF_SYSTEMS["commands"]:
            command_line = f"`{ctx.command_path} {cmd_name}`"
            raise click.UsageError(f"{command_line} is a command of the systems. Run: {INSTALL_SYSTEMS}", ctx)
        return None


def _prefix(ctx: click.Context) -> str:
    """Return what the names of a group's commands begin with: nothing, or ``draw.``."""
    return "" if ctx.parent is None else f"{_prefix(ctx.parent)}{ctx.info_name}."


def _registered(ctx: click.Context) -> dict[str, EntryPoint]:
    """Return the commands of other distributions in a group by name."""
    prefix, registered = _prefix(ctx), entry_points(group=REGISTERED)
    named = {entry.name.removeprefix(prefix): entry for entry in registered if entry.name.startswith(prefix)}
    return {name: entry for name, entry in named.items() if "." not in name}


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


class Interrupted(KeyboardInterrupt):
    """A signal came: SIGINT or SIGTERM, by ``number``. Its notes record the finished work of jobs."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = number


class Interruptible:
    """A context in which SIGINT and SIGTERM raise :class:`Interrupted`; no effect outside of the main thread."""

    def __init__(self, command: str, *, to_the_end: bool) -> None:
        self._command, self._to_the_end = command, to_the_end
        self._heard = False
        self._reported = threading.Lock()
        self._done = threading.Event()
        self._pipe: tuple[int, int] | None = None

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is threading.main_thread():
            self._pipe = os.pipe()
            os.set_blocking(self._pipe[1], False)
            self._wakeup = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
            self._handlers = {number: signal.signal(number, self._interrupt) for number in _SIGNALS}
            threading.Thread(target=self._watch, args=self._pipe[:1], daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pipe and not (self._heard and self._to_the_end):
            self._done.set()
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._wakeup)
            os.close(self._pipe[1])

    def tell(self, error: BaseException | None = None) -> None:
        """Report once, in one line, the finished work and how to resume."""
        if not self._reported.acquire(blocking=False):
            return
        kept = "; ".join(" ".join(note.split()) for note in getattr(error, "__notes__", ()))
        fresh = "\n" if sys.stderr.isatty() else ""  # below a progress bar
        line = f"Interrupted{': ' + kept if kept else ''}. To resume, run the same command again: {self._command}"
        sys.stderr.write(f"{fresh}{line}\n")
        sys.stderr.flush()

    def leave(self, code: int) -> None:
        """End the process, where it ends with the command, without the seconds of Python's own shutdown."""
        if self._to_the_end and self._pipe:
            run_exit_functions()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self._heard:
            self._heard = True
            raise Interrupted(number)

    def _watch(self, pipe: int) -> None:
        while received := os.read(pipe, 64):
            number = next((number for number in received if number in _SIGNALS), None)
            if number is not None and not self._done.wait(_PATIENCE):
                self.tell()
                os._exit(128 + number)
        os.close(pipe)
