"""Term counts of a collection by term, on disk and memory-mapped, and the BM25 weights they give.

    offsets    int64  [t + 1]   term ``i`` owns the postings ``offsets[i]:offsets[i + 1]``
    documents  int32  [p]       the document of each posting, ascending for each term
    counts     int32  [p]       how often the term occurs in that document
    lengths    int32  [m]       the tokens of each document
    docnos     str    [m]       the numbers of the documents
    vocabulary.txt              the terms, sorted, one a line

Counts are stored, not weights, so that one index answers for every ``k1`` and ``b``.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.types import DocNo

ARRAYS = ("offsets", "documents", "counts", "lengths", "docnos")
VOCABULARY = "vocabulary.txt"


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The term counts of ``m`` documents; the module says what each array is."""

    terms: dict[str, int]
    offsets: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    docnos: npt.NDArray[np.str_]

    @classmethod
    def count(cls, documents: Iterable[tuple[DocNo, Sequence[str]]]) -> Postings:
        """Count the tokens of each document.

        Args:
            documents: number and tokens of each document, in any order; numbers differ.

        Returns:
            The counts, documents in the order given, terms sorted.
        """
        seen: dict[str, int] = {}
        term_of, document_of, counts, lengths = array("i"), array("i"), array("i"), array("i")
        docnos: list[DocNo] = []
        for number, (docno, tokens) in enumerate(documents):
            docnos.append(docno)
            lengths.append(len(tokens))
            for token, times in Counter(tokens).items():
                term_of.append(seen.setdefault(token, len(seen)))
                document_of.append(number)
                counts.append(times)
        names = sorted(seen)
        sorted_id = np.empty(len(seen), dtype=np.int32)
        sorted_id[[seen[name] for name in names]] = np.arange(len(seen), dtype=np.int32)
        terms = sorted_id[np.asarray(term_of, dtype=np.int32)]
        order = np.argsort(terms, kind="stable")  # stable: documents stay ascending for each term
        return cls(
            terms={name: number for number, name in enumerate(names)},
            offsets=np.concatenate([[0], np.bincount(terms, minlength=len(names)).cumsum()]).astype(np.int64),
            documents=np.asarray(document_of, dtype=np.int32)[order],
            counts=np.asarray(counts, dtype=np.int32)[order],
            lengths=np.asarray(lengths, dtype=np.int32),
            docnos=np.asarray(docnos, dtype=np.str_),
        )

    def save(self, folder: Path) -> None:
        """Write one file for each array and one for the vocabulary.

        Args:
            folder: an existing folder.
        """
        for name in ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)
        (folder / VOCABULARY).write_text("".join(f"{term}\n" for term in self.terms), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Postings:
        """Map the arrays into memory and read the vocabulary.

        Args:
            folder: where :meth:`save` wrote.

        Returns:
            The same counts.

        Raises:
            OSError: a file is missing or cannot be read.
            ValueError: a file is damaged.
        """
        arrays: dict[str, Any] = {
            name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ARRAYS
        }
        lines = (folder / VOCABULARY).read_text(encoding="utf-8").split("\n")[:-1]
        return cls(terms={term: number for number, term in enumerate(lines)}, **arrays)

    def weights(self, k1: float, b: float) -> npt.NDArray[np.float32]:
        """Weigh each posting by BM25 in the form of Lucene.

        With ``f`` the count, ``l`` the document's length, ``L`` the mean length, ``n`` the documents with the term::

            ln(1 + (m - n + 0.5) / (n + 0.5)) · f / (f + k1 · (1 - b + b · l / L))

        Args:
            k1: at least 0; how slowly repetition saturates.
            b: 0 to 1; how much long documents are discounted.

        Returns:
            float32 ``[p]``, positive.
        """
        found_in = np.diff(self.offsets)  # [t]
        rarity = np.log1p((len(self.lengths) - found_in + 0.5) / (found_in + 0.5))  # [t]
        mean = self.lengths.mean() if self.lengths.any() else 1.0
        length = k1 * (1 - b + b * self.lengths / mean)  # [m]
        saturation = self.counts / (self.counts + length[self.documents])  # [p]
        return (np.repeat(rarity, found_in) * saturation).astype(np.float32)
