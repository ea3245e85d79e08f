"""What a worker makes of a batch of documents: the rows of an encoder, and the warnings about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import Overheard, overheard
from pyterrier_mathamr.posts import DOCUMENT_COLUMNS

_READ = {*DOCUMENT_COLUMNS, "title", "graph"}  # by an encoder, and by no indexer


class Encoded(NamedTuple):
    """The records of a batch with their vectors, and what was warned of."""

    records: list[dict[str, Any]]
    heard: Overheard


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Work of a batch of documents.

    Attributes:
        encoder: adds vectors to them.
    """

    encoder: pt.Transformer

    def __call__(self, batch: Sequence[Mapping[str, Any]]) -> Encoded:
        """Encode documents, as a pipeline of PyTerrier does."""
        with overheard() as heard:
            frame = self.encoder.transform(pd.DataFrame(list(batch)))
        read = [name for name in frame.columns if name in _READ]
        return Encoded(frame.drop(columns=read).to_dict("records"), heard)


def records_of(encoded: Iterator[Encoded]) -> Iterator[dict[str, Any]]:
    """Repeat the warnings of the workers, and yield their records."""
    for batch in encoded:
        batch.heard.repeat()
        yield from batch.records
