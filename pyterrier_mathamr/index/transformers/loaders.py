"""The loaders of what an index stores of each document: its vectors and texts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import empty_output, with_objects
from pyterrier_mathamr._common.transformers import ColumnAdder
from pyterrier_mathamr.index.building.entries import TEXTS, stored_formula_ids

from .options import IndexTransformer


class VectorLoader(ColumnAdder, IndexTransformer):
    """Adds ``doc_embs``, the vectors of each document, float32 ``[n, d]``, from the index.

    ``index.vec_loader()`` constructs one.

    Example::

        bm25 >> index.vec_loader()

    Args:
        index: the index.
    """

    label = "MathAMR vectors"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``doc_embs`` to documents or a ranking, by ``docno``.

        Raises:
            UnknownIdError: the index does not contain some of the documents; it names them.
        """
        pt.validate.columns(inp, includes=["docno"], context=self)
        if inp.empty:
            return empty_output(inp, ["doc_embs"])
        snapshot = self.index.snapshot()
        places, docnos = pd.factorize(inp["docno"], use_na_sentinel=False)
        rows, offsets = snapshot.rows(snapshot.find([str(docno) for docno in docnos]))
        vectors = [rows[start:end] for start, end in pairwise(offsets.tolist())]
        return with_objects(inp, doc_embs=[vectors[place] for place in places])


class TextLoader(ColumnAdder, IndexTransformer):
    """Adds the texts that an index stores of each document or formula.

    An index of documents stores ``formula_ids``, one of formulas ``post_id`` and ``visual_id``. The posts themselves
    are in the collection; load them with ``dataset.text_loader()``, or their graphs with ``GraphStore.loader()``.
    ``index.text_loader()`` constructs one.

    Example::

        formula_index.text_loader(["visual_id"])

    Args:
        index: the index.
        fields: a field, several, or ``*`` for all that are stored.
        verbose: no effect; ``pt.text.get_text`` passes it.

    Raises:
        ConfigError: a field is not stored.
    """

    label = "MathAMR texts"

    def __init__(self, index: Any, fields: str | Sequence[str] = "*", *, verbose: bool = False) -> None:
        super().__init__(index)
        self.verbose = verbose
        stored = TEXTS[index.LAYOUT][1:]
        self.fields = stored if fields == "*" else (fields,) if isinstance(fields, str) else tuple(fields)
        if unknown := [name for name in self.fields if name not in stored]:
            allowed = f"{' or '.join(map(repr, stored))}; a collection loads its posts by dataset.text_loader()"
            raise ConfigError("fields", unknown[0], allowed)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the fields to documents or a ranking, by ``docno``.

        Raises:
            UnknownIdError: the index does not contain some of the documents; it names them.
        """
        pt.validate.columns(inp, includes=["docno"], context=self)
        if inp.empty:
            return empty_output(inp, self.fields)
        snapshot = self.index.snapshot()
        numbers = snapshot.find([str(docno) for docno in inp["docno"]])
        texts = {name: snapshot.texts(name, numbers) for name in self.fields}
        if "formula_ids" in texts:
            ids = [stored_formula_ids(text, snapshot.path) for text in texts.pop("formula_ids")]
            inp = with_objects(inp, formula_ids=ids)
        result: pd.DataFrame = inp.assign(**texts)
        return result
