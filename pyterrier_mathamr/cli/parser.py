"""The options of the command line that choose an AMR parser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from pyterrier_mathamr.amr import AmrParser

Command = TypeVar("Command", bound=Callable[..., Any])


def with_parser(command: Command) -> Command:
    """Give a command the options that choose an AMR parser; `chosen_parser` takes them."""
    options = (
        click.option("--parser", default="dependency", show_default=True, help="dependency, transition or amrlib."),
        click.option("--parser-python", help="Interpreter of its environment, by default MATHAMR_TRANSITION_PYTHON."),
        click.option("--parser-model", help="Name, folder or checkpoint of its model."),
        click.option("--parser-device", multiple=True, help="cuda:0, cpu, …; give it once per worker."),
        click.option(
            "--parser-cache",
            type=click.Path(path_type=Path),
            help="Keeps what it parsed; by default OUTPUT.parses.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def chosen_parser(
    output: Path,
    parser: str,
    parser_python: str | None,
    parser_model: str | None,
    parser_device: tuple[str, ...],
    parser_cache: Path | None,
) -> str | AmrParser:
    """Make the parser that the options of `with_parser` choose.

    Args:
        output: what is made with it; a neural parser keeps its answers beside it as ``<output>.parses``.
        parser: name of the parser.
        parser_python: interpreter of its environment.
        parser_model: its model.
        parser_device: where its workers run.
        parser_cache: where it keeps its answers instead.

    Returns:
        The parser, or the name of the embedded one.

    Raises:
        click.BadParameter: an option that the embedded parser does not have; ConfigError: no parser has this name.
    """
    from pyterrier_mathamr.amr import get_parser

    chosen = {"python": parser_python, "model": parser_model, "devices": parser_device, "cache": parser_cache}
    options = {name: value for name, value in chosen.items() if value}
    if parser == "dependency":
        if options:
            raise click.BadParameter(
                "the embedded parser has no such options", param_hint="--parser-" + min(options).removesuffix("s")
            )
        return parser
    return get_parser(parser, **{"cache": output.with_name(f"{output.name}.parses"), **options})
