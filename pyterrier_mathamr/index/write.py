"""Writing an index as one step: under its lock, by mode, all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from .build import Build, clean, staging_path
from .disk import writing
from .errors import DtypeMismatchError, EmptyStreamError, IndexExistsError, NotAnIndexError, check_model
from .files import JOURNAL_NAME, META_NAME, DType, Layout
from .lock import writer_lock
from .meta import IndexMeta, read_json, read_meta
from .records import Entry
from .shard import Shard
from .snapshot import Snapshot, entries

IndexMode = Literal["create", "overwrite", "append"]


def standing(path: Path, layout: Layout, mode: IndexMode) -> IndexMeta | None:
    """What stands at ``path`` before a build, or ``None``.

    Raises:
        IndexExistsError: ``mode`` is ``create`` and an index is built.
        NotAnIndexError: something else is there, which no mode may replace.
    """
    if not (path / META_NAME).exists():
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise NotAnIndexError(path, "something else is here, which is not replaced")
        return None
    meta = read_meta(path)
    if meta.layout != layout:
        raise NotAnIndexError(path, f"an index of {meta.layout} is here, which is not replaced by one of {layout}")
    if mode == "create":
        raise IndexExistsError(path)
    return meta


def write_index(
    path: Path,
    layout: Layout,
    mode: IndexMode,
    stream: Iterable[Entry],
    *,
    model: str | None = None,
    dtype: DType | None = None,
    resume: bool = False,
) -> IndexMeta:
    """Build an index, replace it or add to it; it changes in one step at the end, or not at all.

    Args:
        path: the index's folder.
        layout: what an entry is.
        mode: ``create`` refuses a built index, ``overwrite`` replaces it, ``append`` adds to it.
        stream: what is indexed; read once.
        model: the identity of the model that made the vectors.
        dtype: how rows are stored; by default as the index that is added to has them, float32 in a new one.
        resume: take over the whole shards of an earlier such call that died, and keep them if this one dies.

    Returns:
        What the index now is.

    Raises:
        MathAMRIndexError: one of its kinds; what stood before is then unharmed.
    """
    path = path.absolute()
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with writer_lock(path):
        stands = standing(path, layout, mode)
        clean(path, stands)
        target = _target(path, layout, stands if mode == "append" else None, model, dtype)
        build = Build(path, target, replaced=stands, resume=resume)
        try:
            build.add_all(stream)
            if not build.shards:
                if stands is None or mode == "overwrite":
                    raise EmptyStreamError(path)
                build.leave()
                return target
            return build.commit()
        except BaseException:
            build.leave()
            raise


def rewrite_index(path: Path, layout: Layout, drop: Sequence[str], *, everything: bool = False) -> IndexMeta:
    """Leave documents out of an index: the shards that hold them are written anew without them, in one step.

    Args:
        path: the index's folder.
        layout: what an entry is.
        drop: distinct docnos.
        everything: write all shards anew, also those that lose nothing, so that small ones become full ones.

    Returns:
        What the index now is.

    Raises:
        UnknownDocnoError: the index does not hold some of them; it is unchanged.
        MathAMRIndexError: another of its kinds; the index is unchanged.
    """
    path = path.absolute()
    with writer_lock(path):
        stands = standing(path, layout, "append")
        if stands is None:
            raise NotAnIndexError(path, "there is no built index here")
        clean(path, stands)
        snapshot = Snapshot(path)
        gone = snapshot.find(drop)
        held = np.histogram(gone, bins=snapshot.bases)[0] if len(snapshot) else np.empty(0)
        anew = np.ones(len(held), dtype=np.bool_) if everything else held > 0
        if not anew.any():
            return stands
        kept = tuple(shard for shard, again in zip(stands.shards, anew, strict=True) if not again)
        owners = np.repeat(anew, np.diff(snapshot.bases))
        owners[gone] = False
        build = Build(path, stands.with_shards(kept), replaced=stands, resume=False)
        try:
            build.add_all(entries(snapshot, np.flatnonzero(owners)))
            return build.commit()
        except BaseException:
            build.leave()
            raise


def _target(path: Path, layout: Layout, base: IndexMeta | None, model: str | None, dtype: DType | None) -> IndexMeta:
    if base is None:
        return IndexMeta(layout, 0, model, (), dtype or "float32")
    check_model(path, base.model, model)
    if dtype not in (None, base.dtype):
        raise DtypeMismatchError(path, base.dtype, dtype)
    return replace(base, model=base.model or model)


def unfinished(path: Path, layout: Layout) -> Sequence[Shard]:
    """The whole shards of a build that died, which one with ``resume=True`` takes over."""
    path = path.absolute()
    try:
        found = read_json(staging_path(path) / JOURNAL_NAME)
    except FileNotFoundError:
        return ()
    dtype = found["header"].get("dtype", "float32")
    as_meta = {**IndexMeta(layout, found["dimensions"], None, (), dtype).to_dict(), "shards": found["shards"]}
    meta = IndexMeta.from_dict(as_meta, path)
    return [Shard(staging_path(path) / "index" / shard.name, layout, dtype, shard) for shard in meta.shards]
