"""`FormulaStore`: the trees of a collection's official MathML by formula id, an artifact of one SQLite file.

A tree that many formulas share is stored once, under a number made from its digest::

    formula   id ──────── slt, opt ─────── visual_id            one row for each formula
                              │
    tree      number ──────── body                              one row for each distinct tree
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.formula.tree import FormulaPair
from pyterrier_mathamr.store import (
    DamagedError,
    FormatError,
    Mode,
    NotBuiltError,
    OtherArtifactError,
    Snapshot,
    SqliteArtifact,
)

from .build import KIND, StoreFile, build_store, fingerprint


class FormulaStore(SqliteArtifact):
    """The official trees of a collection, looked up by formula id.

    A store is opened on first use and can be pickled; a worker process opens it again.

    Args:
        path: a folder that :meth:`build` made.

    Raises:
        StoreError: on first use: :class:`NotBuiltError`, :class:`FormatError` or another of its kinds.
    """

    KIND, FILE = KIND, StoreFile
    HOLDS = "formula"

    @classmethod
    def build(
        cls,
        path: str | Path,
        slt_tables: Sequence[str | Path],
        opt_tables: Sequence[str | Path],
        *,
        executor: Executor | None = None,
        verbose: bool = False,
        overwrite: bool = False,
        reuse: bool = False,
    ) -> FormulaStore:
        """Build a store from official tables, in bounded memory.

        The store appears at ``path`` when it is complete and checked. An interrupted build resumes when it is called
        again with the same tables. Trees wait beside the store until all are there and are then sorted into it, so a
        build needs up to twice the store's space on the disk.

        Args:
            path: the folder to make.
            slt_tables: tables of Presentation MathML, of the collection or of topics.
            opt_tables: tables of Content MathML.
            executor: where MathML is read, by default in this process; the store is the same for all.
            verbose: show progress.
            overwrite: replace an existing store and discard unfinished work.
            reuse: keep a store that was made from the same tables, and replace any other.

        Raises:
            WriteError: a store exists, another process builds it, or nothing can be written there.
            OtherArtifactError: the path holds something else. UnfinishedJobError: other tables were not finished.
            WorkerDiedError, ClusterError: a worker was lost; the next call resumes.
            FormulaTableError: a table cannot be read; names file and line.
        """
        store = cls(path)
        tables = [*map(Path, slt_tables)], [*map(Path, opt_tables)]
        if overwrite:
            store.discard()
        if not (reuse and store._made_from(*tables)):
            mode: Mode = "overwrite" if overwrite or reuse else "create"
            build_store(store, *tables, executor or Processes(1), verbose, mode)
        return store

    def get_many(self, ids: Iterable[FormulaId]) -> dict[FormulaId, FormulaPair]:
        """Look up the trees of many formulas in a few queries.

        Args:
            ids: formula ids; unknown ones are left out of the result.

        Returns:
            Both trees of each known id, in the order of ``ids``; a tree is ``None`` where the table had none.

        Raises:
            DamagedError: a tree is damaged; names the formula.
        """
        file = self._file()
        rows = {fid: (slt, opt) for fid, slt, opt, _ in file.rows(ids)}
        trees = file.trees({number: fid for fid, pair in rows.items() for number in pair if number is not None})
        return {fid: FormulaPair(trees.get(slt), trees.get(opt)) for fid, (slt, opt) in rows.items()}

    def visual_ids(self, ids: Iterable[FormulaId]) -> dict[FormulaId, str]:
        """Look up the visual ids of many formulas: formulas that look the same share one.

        Args:
            ids: formula ids; unknown ones and those without a visual id are left out of the result.
        """
        return {fid: visual for fid, _, _, visual in self._file().rows(ids) if visual}

    def __contains__(self, formula_id: object) -> bool:
        return isinstance(formula_id, str) and any(True for _ in self._file().rows([formula_id]))

    def opened(self) -> Snapshot:
        """Open the store; a file at its path is one of format 1."""
        try:
            return super().opened()
        except OtherArtifactError as error:
            if not self.path.is_file():
                raise
            rebuild = KIND.rebuild.format(path=self.path)
            reason = f"it is a file, as formula stores of format 1 were, not a folder. Remove it and rebuild: {rebuild}"
            raise FormatError(self.path, reason) from error

    def _file(self) -> StoreFile:
        file: StoreFile = self.snapshot().caches["file"]
        return file

    def _made_from(self, slt_tables: Sequence[Path], opt_tables: Sequence[Path]) -> bool:
        """Tell whether there is a store of these tables that can be opened."""
        try:
            return bool(self.snapshot().manifest.details.get("tables") == fingerprint(slt_tables, opt_tables))
        except (NotBuiltError, FormatError, DamagedError):
            return False
