"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pyterrier_mathamr._common.records import parse_json

if TYPE_CHECKING:
    from pyterrier_mathamr._common.running.ray_cluster import RayCluster
    from pyterrier_mathamr.amr import AmrParser

Command = TypeVar("Command", bound=Callable[..., Any])
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
SOURCE = click.Path(exists=True, path_type=Path)
NEW = click.Path(path_type=Path)

SYSTEMS = ("blend", "bm25", "mathamr")
"""The systems of an engine: words and graphs, only words, only graphs."""

_PYTHON = {"None": None, "True": True, "False": False}
"""Python's spellings of JSON's ``null``, ``true`` and ``false``, as in messages and documentation."""


def _options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return the decorator that adds options, which the help shows in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


quiet_option = click.option("--quiet", "-q", is_flag=True, help="Show no progress.")

place_options = _options(
    click.option(
        "--in", "within", default="", metavar="FOLDER", help="Only posts of this folder or file, such as analysis/."
    ),
    click.option("--kind", default="", help="Only posts of this type: theorem, definition, …"),
)

filter_options = _options(
    place_options,
    click.option(
        "--since",
        default="",
        metavar="DATE",
        help="Only posts changed on this day or later: 2026-03-01, 2026-03 or 2026.",
    ),
    click.option("--until", default="", metavar="DATE", help="Only posts changed on this day or earlier."),
)
"""The fields of an engine's ``Filter``."""

ray_options = _options(
    click.option(
        "--ray",
        metavar="auto|HOST:PORT",
        help="Use a Ray cluster: the local one (auto), or the one with this head node.",
    ),
    click.option("--ray-workers", type=click.IntRange(1), help="How many tasks run on the cluster at a time."),
)
""":func:`cluster_of` reads them."""

with_parser = _options(
    click.option(
        "--parser", default="dependency", show_default=True, help="AMR parser: dependency, transition or amrlib."
    ),
    click.option("--parser-python", help="Python of the parser's environment, by default MATHAMR_TRANSITION_PYTHON."),
    click.option("--parser-model", help="Name, folder or checkpoint of the parser's model."),
    click.option(
        "--parser-device", multiple=True, help="Device of the parser: cuda:0, cpu, …; give it once for each worker."
    ),
    click.option(
        "--parser-cache", type=click.Path(path_type=Path), help="Folder that keeps parses, by default OUTPUT.parses."
    ),
)
""":func:`chosen_parser` reads them."""


def cluster_of(ray: str | None, ray_workers: int | None, workers: int | None = None) -> RayCluster | None:
    """Make the executor that the options of :func:`ray_options` choose; ``None`` for this machine."""
    if ray is None:
        if ray_workers:
            raise click.UsageError("--ray-workers works only with --ray. Add --ray auto, or use --workers.")
        return None
    if workers:
        raise click.UsageError("--workers has no effect with --ray. Use --ray-workers.")
    from pyterrier_mathamr._common.running.ray_cluster import RayCluster

    return RayCluster(ray, ray_workers)


def chosen_parser(
    output: Path,
    parser: str,
    parser_python: str | None,
    parser_model: str | None,
    parser_device: tuple[str, ...],
    parser_cache: Path | None,
) -> str | AmrParser:
    """Make the parser that the options of :func:`with_parser` choose, or return the name of the embedded one."""
    from pyterrier_mathamr.amr import get_parser

    chosen = {"python": parser_python, "model": parser_model, "devices": parser_device, "cache": parser_cache}
    options = {name: value for name, value in chosen.items() if value}
    if parser == "dependency":
        if options:
            raise click.BadParameter(
                "The embedded parser has no such option. Choose another --parser, or leave it out.",
                param_hint="--parser-" + min(options).removesuffix("s"),
            )
        return parser
    return get_parser(parser, **{"cache": output.with_name(f"{output.name}.parses"), **options})


def values_of(changes: tuple[str, ...]) -> dict[str, Any]:
    """Read ``--set`` options; a value is JSON, Python's None, True or False, or a word."""
    options: dict[str, Any] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals:
            message = f"{change!r} has no '='. Write OPTION=VALUE, such as layers=2."
            raise click.BadParameter(message, param_hint="--set")
        try:
            options[name] = parse_json(value)
        except ValueError:
            options[name] = _PYTHON.get(value, value)
    return options


def drawn(forms: str) -> Callable[[Command], Command]:
    """Return the option of a picture that is written."""
    return click.option(
        "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), required=True, help=f"The picture: {forms}."
    )
