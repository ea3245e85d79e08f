"""Building a Tangent index from posts: whole, or not at all."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import pyterrier as pt

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.parameters import ByParameters
from pyterrier_mathamr._common.progress import progress
from pyterrier_mathamr._common.types import FormulaId
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.systems._artifact import Mode, check_mode
from pyterrier_mathamr.systems._posts import DOCUMENT_COLUMNS, checked_documents, document_post

from .content import IndexedFormula, TangentContent
from .pairs import PairOptions, formula_trees

if TYPE_CHECKING:
    from .index import TangentIndex

_BATCH = 256  # posts whose trees are looked up together


class TangentIndexer(ByParameters, pt.Indexer):  # type: ignore[misc]
    """Builds a :class:`TangentIndex` of the formulas with ids of a stream of posts.

    Of an id that comes twice the first place counts, as in ARQMath's own tables. Building takes about 0.2 ms and 1 KB
    of memory for each formula.

    Args:
        tangent_index: where to build.
        mode: ``create`` or ``overwrite``.
        pairs: which pairs of symbols are taken; queries are taken apart alike.
        store: official trees by formula id; formulas that it does not have get theirs from LaTeX.
        visual_ids: formula id to visual id; formulas that are not in it get the empty string. By default the store's.
        verbose: show a progress bar.

    Raises:
        ConfigError: the mode is unknown.
    """

    schematic: ClassVar[dict[str, str]] = {
        "label": "Tangent Indexer",
        "help_url": "https://doi.org/10.1145/3077136.3080748",
    }

    def __init__(
        self,
        tangent_index: TangentIndex,
        mode: Mode = "create",
        *,
        pairs: PairOptions = PairOptions(),  # noqa: B008 - frozen
        store: FormulaStore | None = None,
        visual_ids: Mapping[str, str] | None = None,
        verbose: bool = False,
    ) -> None:
        check_mode(mode)
        super().__init__()
        self.tangent_index, self.mode, self.pairs = tangent_index, mode, pairs
        self.store, self.visual_ids, self.verbose = store, visual_ids, verbose

    def index_inputs(self) -> list[list[str]]:
        """Say which columns a document may bring, one list for each way."""
        return [list(columns) for columns in DOCUMENT_COLUMNS]

    def index(self, iter: Iterable[Mapping[str, Any]]) -> TangentIndex:
        """Build the index.

        Args:
            iter: posts; each has ``docno`` and one of ``html``, ``body``, ``text``, and may have ``title``.

        Returns:
            The index that was built. Formulas without any tree are left out, with a warning that counts them.

        Raises:
            OtherArtifactError: something else is at the path.
            IndexExistsError: an index is there and the mode is ``create``.
        """
        self.tangent_index.check_free(self.mode)
        total = getattr(iter, "__len__", lambda: None)()
        documents = progress(checked_documents(iter, self), "Tangent", "doc", verbose=self.verbose, total=total)
        content = TangentContent.of(self._formulas(documents), self.pairs)
        details = {
            "formulas": len(content.docnos),
            "expressions": len(content.owned) - 1,
            "pairs": self.pairs.to_dict(),
        }
        with self.tangent_index.replaced(details) as folder:
            content.save(folder)
        return self.tangent_index

    def _formulas(self, documents: Iterable[Mapping[str, Any]]) -> Iterator[IndexedFormula]:
        """List the formulas of all posts, each id once."""
        stream, seen, without = iter(documents), set[FormulaId](), 0
        while batch := list(islice(stream, _BATCH)):
            found = []
            for document in batch:
                for formula in document_post(document).formulas:
                    if formula.id and formula.id not in seen:
                        seen.add(formula.id)
                        found.append((str(document["docno"]), formula))
            trees = formula_trees((formula for _, formula in found), self.store)
            visual = self._visual_ids([formula.id for _, formula in found])
            for (docno, formula), pair in zip(found, trees, strict=True):
                if pair.slt is None and pair.opt is None:
                    without += 1
                else:
                    yield IndexedFormula(formula.id, docno, str(visual.get(formula.id, "")), pair)
        if without:
            text = f"{without} formulas have no trees and cannot be found: their LaTeX cannot be read"
            warnings.warn(MathAMRWarning(text), stacklevel=2)

    def _visual_ids(self, ids: list[FormulaId]) -> Mapping[str, str]:
        if self.visual_ids is not None:
            return self.visual_ids
        return self.store.visual_ids(ids) if self.store is not None else {}
