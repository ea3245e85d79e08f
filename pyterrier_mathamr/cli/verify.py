"""``mathamr verify``: compare the checksums of artifacts, models and caches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyterrier_mathamr._common.errors import MathAMRError

from .options import quiet_option

if TYPE_CHECKING:
    from pyterrier_mathamr.engine import SearchEngine
    from pyterrier_mathamr.index import ShardedIndex
    from pyterrier_mathamr.store import Kind


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
            click.echo("BAD  " + " ".join(str(fault).split()))
        if not found:
            click.echo(f"ok   {path}: {_described(path)}")
        bad += bool(found)
    if bad:
        raise click.ClickException(f"{bad} of {len(paths)} failed. Rebuild or replace the ones listed as BAD.")


def _faults(path: Path, *, verbose: bool) -> Iterator[MathAMRError]:
    """Recognize the artifact at the path, and yield its faults."""
    from pyterrier_mathamr.model.in_out.model import DESCRIPTION as IN_OUT
    from pyterrier_mathamr.model.saving import model_faults
    from pyterrier_mathamr.store import META, Cache, NotBuiltError, StoreError, faults
    from pyterrier_mathamr.store.saved import is_saved, saved_faults
    from pyterrier_mathamr.systems import InOut
    from pyterrier_mathamr.systems.colbert.checkpoints import DESCRIPTION as COLBERT
    from pyterrier_mathamr.systems.colbert.checkpoints import colbert_faults
    from pyterrier_mathamr.systems.marf.model import DESCRIPTION as MARF
    from pyterrier_mathamr.systems.marf.model import marf_faults
    from pyterrier_mathamr.systems.two_step.networks import DESCRIPTION as TWO_STEP
    from pyterrier_mathamr.systems.two_step.networks import two_step_faults

    if is_saved(path):
        yield from saved_faults(path)
    elif path.is_file():
        yield from Cache(path).faults(verbose=verbose)
    elif (path / META).exists():
        try:
            if (whole := _compound(path)) is not None:
                yield from whole.faults(verbose=verbose)
            else:
                yield from faults(path, _kind_of(path), verbose=verbose)
        except StoreError as error:
            yield error
    elif (path / COLBERT).exists():
        yield from colbert_faults(path)
    elif (path / TWO_STEP).exists():
        yield from two_step_faults(path)
    elif (path / "config.json").exists():
        yield from model_faults(path)
    elif (path / IN_OUT).exists():
        try:
            InOut.from_pretrained(path)
        except MathAMRError as error:
            yield error
    elif (path / MARF).exists():
        yield from marf_faults(path)
    elif path.exists():
        yield StoreError(path, "it is not an artifact, model or cache of this package")
    else:
        yield NotBuiltError(path, "there is nothing at this path")


def _compound(path: Path) -> SearchEngine | ShardedIndex | None:
    """Return the artifact at a path, if it is one that consists of others."""
    from pyterrier_mathamr.engine import SearchEngine
    from pyterrier_mathamr.index import ShardedIndex

    for kind in (SearchEngine, ShardedIndex):
        if _type_of(path) == f"{kind.ARTIFACT_TYPE}.{kind.ARTIFACT_FORMAT}":
            whole: SearchEngine | ShardedIndex = kind(path)
            return whole
    return None


def _kind_of(path: Path) -> Kind:
    """Read from the manifest which kind of artifact is at the path."""
    from pyterrier_mathamr.store import OtherArtifactError
    from pyterrier_mathamr.systems.removed import GraphTermsIndex

    name = _type_of(path)
    if name == "sparse_index.mathamr_graph_terms":
        GraphTermsIndex(path)
    for kind in _kinds():
        if kind.name == name:
            return kind
    raise OtherArtifactError(path, f"it holds a {name}, which is not an artifact of this package")


def _type_of(path: Path) -> str:
    """Read type and format of an artifact from its manifest."""
    from pyterrier_mathamr.store import META, DamagedError, parse_json

    try:
        content = parse_json((path / META).read_bytes(), path / META)
    except OSError as error:
        raise DamagedError(path / META, f"it cannot be read ({error.strerror or error})") from error
    return f"{content.get('type')!s:.80}.{content.get('format')!s:.80}"


def _kinds() -> list[Kind]:
    """Return all kinds of artifacts that the package writes."""
    from pyterrier_mathamr.formula import FormulaStore
    from pyterrier_mathamr.graph import GraphStore, TensorStore
    from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex
    from pyterrier_mathamr.model.checkpoints import Checkpoint
    from pyterrier_mathamr.sparse import BM25Index, TangentIndex
    from pyterrier_mathamr.systems import (
        ApproachZeroIndex,
        FormulaTrees,
        InOutIndex,
        MaRFIndex,
        TangentCFT,
        ThreadStore,
    )

    stores = (GraphStore, TensorStore, FormulaStore, ThreadStore, Checkpoint, MathAMRIndex, MathAMRFormulaIndex)
    systems = (ApproachZeroIndex, BM25Index, FormulaTrees, InOutIndex, MaRFIndex, TangentCFT, TangentIndex)
    return [artifact.KIND for artifact in (*stores, *systems)]


def _described(path: Path) -> str:
    from pyterrier_mathamr.index import ShardedIndex
    from pyterrier_mathamr.model import MathAMR
    from pyterrier_mathamr.model.in_out.model import DESCRIPTION as IN_OUT
    from pyterrier_mathamr.store import META, Cache, read_manifest
    from pyterrier_mathamr.store.saved import described, is_saved
    from pyterrier_mathamr.systems import ColBERT, InOut, MaRF
    from pyterrier_mathamr.systems.colbert.checkpoints import DESCRIPTION as COLBERT
    from pyterrier_mathamr.systems.marf.model import DESCRIPTION as MARF
    from pyterrier_mathamr.systems.two_step.networks import DESCRIPTION as TWO_STEP

    if is_saved(path):
        return described(path)
    if path.is_file():
        return f"cache, {len(Cache(path)):,} values"
    if (path / META).exists():
        whole = _compound(path)
        if isinstance(whole, ShardedIndex):
            sizes = [len(part) for part in whole.parts()]
            return f"{_type_of(path)}, {sum(sizes):,} rows in {len(sizes)} parts"
        if whole is not None:
            return f"{_type_of(path)}, {len(whole):,} rows"
        return f"{_type_of(path)}, {read_manifest(path, _kind_of(path)).count:,} rows"
    if (path / IN_OUT).exists():
        return f"In+Out model {InOut.from_pretrained(path).identity[:12]}"
    if (path / COLBERT).exists():
        return f"ColBERT model {ColBERT.from_pretrained(path).identity[:12]}"
    if (path / MARF).exists():
        return f"MaRF model {MaRF.from_pretrained(path).identity[:12]}"
    if (path / TWO_STEP).exists():
        return f"model, {described(path / TWO_STEP)}"
    return f"model {MathAMR.from_pretrained(path).identity[:12]}"
