"""A Tangent-CFT index on disk, and what a reader of it has opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr._common.parameters import method
from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.sparse.expressions import ExpressionIndex, ExpressionSnapshot
from pyterrier_mathamr.sparse.index import SparseIndex
from pyterrier_mathamr.store import Rows
from pyterrier_mathamr.systems.errors import NoEncoderError

from .encoder import KEPT, FormulaEncoder, cosines, quantized
from .indexer import TangentCFTIndexer
from .payload import CFT, FormulaVectors
from .retriever import TangentCFTRetriever
from .words import REPRESENTATIONS


class TangentCFT(ExpressionIndex, SparseIndex):
    r"""Tangent-CFT: vectors of formulas that fastText learns from their symbol pairs, with the encoder that made them.

    Mansouri and others, "Tangent-CFT: An Embedding Model for Mathematical Formulas", ICTIR 2019; in its second version
    each formula has four vectors (Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval", 2022, section
    4.3). A formula's vector is the mean of those of its symbol pairs, which are the words of fastText. Training needs
    the extra ``cft``, searching and adding posts do not. Called directly it is its retriever.

    Args:
        path: the folder of the index; it need not exist yet.

    Example::

        cft, trees = TangentCFT("formulas.cft"), FormulaTrees("formulas.trees")
        pipeline = cft.retriever(mode="cft2") >> trees.edit_distance(combine="rrf")      # CFT2TED
    """

    KIND = CFT
    ARTIFACT_TYPE, ARTIFACT_FORMAT = CFT.type, CFT.format

    schematic: ClassVar[dict[str, str]] = {"label": "Tangent-CFT Index", "help_url": TangentCFTIndexer.help_url}

    @staticmethod
    def example() -> TangentCFT:
        """Return an index that is not built."""
        return TangentCFT("index.cft")

    indexer = method(TangentCFTIndexer)
    retriever = method(TangentCFTRetriever)

    def more_counts(self) -> list[str]:
        """List the number of expressions, and that of trained words in all representations."""
        parts = self.snapshot().parts
        words = sum(len(part[f"{name}_word_vectors"]) for part in parts for name in REPRESENTATIONS)
        return [*super().more_counts(), counted(words, "trained word")]

    def cosines(self, pair: FormulaPair, formulas: Sequence[str] | Rows) -> npt.NDArray[np.float64]:
        """Compare a formula with some formulas of the index.

        Args:
            pair: the formula's trees.
            formulas: ``n`` ids of formulas; or int64 ``[n]``, expressions as the index numbers them.

        Returns:
            float64 ``[n, 4]``: the cosines of the vectors of layout trees, operator trees, layout trees of types and
            operator trees of types, -1 to 1; 0 where one side lacks the tree.

        Raises:
            UnknownIdError: some ids are not in the index; it names them.
        """
        snapshot = self.snapshot()
        rows = formulas if isinstance(formulas, np.ndarray) else snapshot.expressions_of(list(formulas))
        payload, found = snapshot.expressions.payload, np.zeros((len(rows), len(REPRESENTATIONS)))
        if len(rows):
            query = quantized(snapshot.encoder().encode(pair))
            for column, name in enumerate(REPRESENTATIONS):
                place = KEPT.index(name)
                found[:, column] = cosines(payload.rows[name][rows], payload.squares[rows, place], query[place])
        return found

    def delete(self, ids: Iterable[str]) -> None:
        """Remove formulas by their ids, in one step; :meth:`compact` frees their bytes.

        Raises:
            UnknownIdError: some are not in it; it names them, and nothing is removed.
        """
        ids = list(dict.fromkeys(ids))
        snapshot = self.snapshot()
        if len(snapshot.parts) > 1:  # the part with the encoder must not be dropped with its last formula
            rows = snapshot.find(ids)
            if any(len(local) == part.meta.live for part, _, local in snapshot.by_part(rows)):
                self.compact()
        super().delete(ids)

    def snapshot(self) -> CFTSnapshot:
        """Return the current state; an index of several parts is combined in memory, until it is compacted."""
        return cast("CFTSnapshot", super().snapshot())

    def open_snapshot(self) -> CFTSnapshot:
        """Open the index."""
        return CFTSnapshot(self.path)


class CFTSnapshot(ExpressionSnapshot[FormulaVectors]):
    """A Tangent-CFT index as it was when it was opened."""

    KIND, payload = CFT, FormulaVectors

    def encoder(self) -> FormulaEncoder:
        """Return the encoder."""
        encoder = self.expressions.payload.encoder
        if encoder is None:
            raise NoEncoderError(self.path)
        return encoder
