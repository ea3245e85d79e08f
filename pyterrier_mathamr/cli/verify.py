"""``mathamr verify``: compare the checksums of artifacts, models and caches."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.ids import visible

from .options import quiet_option

_OTHERS = "; artifacts of other systems need: pip install 'pyterrier-mathamr[systems]'"


@click.command(short_help="Compare the checksums of artifacts, models and caches.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…", type=click.Path(path_type=Path))
@quiet_option
def verify(paths: tuple[Path, ...], quiet: bool) -> None:
    """Read every byte of artifacts, models, caches and files of learned weights, and compare their checksums.

    Prints a line for each fault, and ok where there is none. Ends with exit code 1 if there is a fault.
    """
    bad = 0
    for path in paths:
        found = list(_faults(path, verbose=not quiet))
        for fault in found:
            click.echo("BAD  " + visible(" ".join(str(fault).split())))
        if not found:
            click.echo(f"ok   {path}: {_described(path)}")
        bad += bool(found)
    if bad:
        raise click.ClickException(f"{bad} of {len(paths)} failed. Rebuild or replace the ones listed as BAD.")


def _faults(path: Path, *, verbose: bool) -> Iterator[MathAMRError]:
    """Recognize what is at the path, and yield its faults."""
    from pyterrier_mathamr.store import META, Cache, NotBuiltError, StoreError
    from pyterrier_mathamr.store.saved import is_saved, saved_faults

    if is_saved(path):
        yield from saved_faults(path)
    elif path.is_file():
        yield from Cache(path).faults(verbose=verbose)
    elif (path / META).exists():
        try:
            yield from _artifact(path).faults(verbose=verbose)
        except StoreError as error:
            yield error
    elif (model := _model(path)) is not None:
        yield from model.faults(path)
    elif path.exists():
        yield StoreError(path, "it is not an artifact, model or cache of this package")
    else:
        yield NotBuiltError(path, "there is nothing at this path")


def _described(path: Path) -> str:
    """Describe what is at the path and has no fault."""
    from pyterrier_mathamr.store import META, Cache, read_signed
    from pyterrier_mathamr.store.saved import described, is_saved

    if is_saved(path):
        return described(path)
    if path.is_file():
        return f"cache, {len(Cache(path)):,} values"
    if (model := None if (path / META).exists() else _model(path)) is not None:
        return str(model.described(path))
    artifact, rows = _artifact(path), read_signed(path / META)["count"]
    parts = f" in {len(artifact.parts()):,} parts" if hasattr(artifact, "parts") else ""
    return f"{_type_of(path)}, {rows:,} rows{parts}"


def _artifact(path: Path) -> Any:
    """Open the artifact at the path by the entry point of its type."""
    from pyterrier_mathamr.store import StoreError

    name, registered = _type_of(path), entry_points(group="pyterrier.artifact")
    for entry in registered:
        if entry.name == name and hasattr(artifact := entry.load()(path), "faults"):
            return artifact
    known = sorted(entry.name for entry in registered if "mathamr" in entry.module)
    others = "" if any(entry.module.startswith("mathamr_systems") for entry in registered) else _OTHERS
    raise StoreError(path, f"unknown artifact type `{name}`; this installation knows: {', '.join(known)}{others}")


def _type_of(path: Path) -> str:
    """Read type and format of an artifact from its manifest."""
    from pyterrier_mathamr.store import META, parse_json, unreadable

    try:
        content = parse_json((path / META).read_bytes(), path / META)
    except OSError as error:
        raise unreadable(error, path / META) from error
    return f"{content.get('type')!s:.80}.{content.get('format')!s:.80}"


def _model(path: Path) -> Any:
    """Return the class of the model at the path, by the file that describes it; ``None`` if there is none."""
    kinds = [entry.load() for entry in entry_points(group="mathamr_models")]
    found = [kind for kind in kinds if (path / kind.DESCRIPTION).exists()]
    # the models of transformers have a config.json, too, so any other description is the decisive one
    return max(found, key=lambda kind: kind.DESCRIPTION != "config.json", default=None)
