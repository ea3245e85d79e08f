"""``MathAMRFormulaIndex``: one vector for each formula virtual node, for formula retrieval (ARQMath Task 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyterrier_mathamr.store import Mode

from .base import IndexArtifact, example_folder
from .building.entries import DType, VisualIds
from .building.indexers import FormulaIndexer
from .building.kinds import FORMULAS
from .text_search import TypedFormulas
from .transformers import FormulaRetriever, search_of


class MathAMRFormulaIndex(TypedFormulas, IndexArtifact):
    r"""One vector for each formula virtual node (MathAMR+, section 3.5.1), memory-mapped in a folder.

    ``docno`` is the formula's id; ``post_id`` and ``visual_id`` come with it. Called directly it takes queries as
    :meth:`retriever`::

        formulas = MathAMRFormulaIndex("formulas.mathamr")
        encode = graphs >> model.doc_encoder()
        (encode >> formulas.indexer(visual_ids=formula_store)).index(arqmath.get_corpus_iter())
        pipeline = graphs >> model.query_encoder() >> formulas.retriever()
        formulas.search(r"\int_0^\infty e^{-x^2}\,dx")

    Args:
        path: the folder; making the object reads nothing, and it need not exist yet.
    """

    KIND = FORMULAS
    ARTIFACT_TYPE, ARTIFACT_FORMAT = KIND.type, KIND.format
    LAYOUT = "formulas"

    def indexer(
        self,
        mode: Mode = "create",
        *,
        visual_ids: VisualIds | None = None,
        model: str | None = None,
        dtype: DType | None = None,
        resume: bool = False,
        sources: Mapping[str, Any] | None = None,
        verbose: bool = False,
        total: int | None = None,
    ) -> FormulaIndexer:
        """Consumes ``{docno, doc_embs, formula_ids}`` and builds, replaces or extends this index.

        Args:
            mode: ``create`` refuses a built index, ``overwrite`` replaces it, ``append`` adds to it.
            visual_ids: formula id to visual id, or a ``FormulaStore`` of them; others get the empty string.
            model: who makes the vectors, a name or ``name@hash``; by default what the records carry in ``doc_model``.
            dtype: how vectors are stored: ``float32``, or ``float16``, which takes half the room and which every search
                has to convert. By default as the index that is added to has them, else float32.
            resume: take over what an earlier such call that died had finished; another's work is refused.
            sources: what the documents are made from, as plain values, by which such a call is recognised.
            verbose: show a progress bar.
            total: how many documents will come, for the bar.
        """
        options = {"dtype": dtype, "resume": resume, "sources": sources, "verbose": verbose, "total": total}
        return FormulaIndexer(self, mode, visual_ids=visual_ids, model=model, **options)  # type: ignore[arg-type]

    def retriever(
        self,
        *,
        num_results: int = 1000,
        exact: bool | None = None,
        search: str | None = None,
        verbose: bool = False,
        batch_size: int = 128,
        device: str | None = None,
    ) -> FormulaRetriever:
        """Ranks formulas by one row of ``query_embs``, that of ``query_formula_id`` in ``query_formula_ids``.

        Args:
            num_results: formulas for each query.
            exact: ``True`` for exact search (the default), ``False`` for HNSW.
            search: the same by name: ``exact`` or ``approximate``.
            verbose: show a progress bar.
            batch_size: queries scored in one pass over the data.
            device: accepted as everywhere; the processor computes this.
        """
        how = search_of(exact, search)
        return FormulaRetriever(
            self, num_results=num_results, search=how, verbose=verbose, batch_size=batch_size, device=device
        )

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The same as ``retriever()(inp)``."""
        result: pd.DataFrame = self.retriever()(inp)
        return result

    def get_corpus_iter(self, *, verbose: bool = False) -> Iterator[dict[str, Any]]:
        """The formulas: ``docno`` (its id), ``post_id``, ``visual_id`` and ``formula_vec``, float32 ``[d]``."""
        for entry in self.entries(verbose=verbose):
            docno, post_id, visual_id = entry.texts
            yield {"docno": docno, "post_id": post_id, "visual_id": visual_id, "formula_vec": entry.rows[0]}

    @classmethod
    def merge(cls, path: str | Path, *indexes: MathAMRFormulaIndex, dtype: DType | None = None) -> MathAMRFormulaIndex:
        """Build a new index of all formulas of some others, in their order; as ``MathAMRIndex.merge``."""
        index = cls(path)
        index._merge(indexes, dtype)
        return index

    @staticmethod
    def example() -> MathAMRFormulaIndex:
        """A small index of random vectors in a temporary folder that is removed when Python ends."""
        random = np.random.default_rng(42)
        index = MathAMRFormulaIndex(example_folder() / "example.mathamr")
        rows = (random.standard_normal((n, 4)).astype(np.float32) for n in (3, 2))
        unit = [of / np.linalg.norm(of, axis=1, keepdims=True) for of in rows]
        ids = (["f1", "f2"], ["f3"])
        return index.index(
            {"docno": f"d{i}", "doc_embs": of, "formula_ids": names}
            for i, (of, names) in enumerate(zip(unit, ids, strict=True), 1)
        )
