"""``pt.get_dataset('arqmath:2022/task1')``: PyTerrier loads this class by its entry point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.posts import BeirFolder, DocumentError

from .definitions import DATASETS  # whose import registers them


class ARQMathProvider(pt.datasets.DatasetProvider):  # type: ignore[misc]
    """Provides ``arqmath:2022/task1`` as another name of ``irds:arqmath/2022/task1``.

    Example::

        pt.get_dataset("arqmath:sample/task1").get_topics("text")
    """

    def get_dataset(self, name: str) -> Any:
        """Return a dataset.

        Args:
            name: its id without the prefix, such as ``2022/task1``, or ``posts`` for ``irds:arqmath`` itself.

        Raises:
            KeyError: there is no such dataset; the message lists all names.
        """
        dataset = "arqmath" if name == "posts" else f"arqmath/{name}"
        if dataset not in DATASETS:
            known = ", ".join(dataset.partition("/")[2] or "posts" for dataset in DATASETS)
            raise KeyError(f"arqmath:{name} is unknown; there are {known}")
        return pt.get_dataset(f"irds:{dataset}")

    def list_dataset_names(self) -> Iterable[str]:
        """Return no names: ``pt.list_datasets()`` has them already as ``irds:arqmath/…``."""
        return ()


class BeirDataset(pt.datasets.Dataset):  # type: ignore[misc]
    """A collection in BEIR's layout; files are read when needed.

    Args:
        path: the folder, with ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/*.tsv``.

    Raises:
        DocumentError: a file is missing.
    """

    def __init__(self, path: str | Path) -> None:
        self.folder = BeirFolder(path)

    def __repr__(self) -> str:
        return f"BeirDataset({str(self.folder.path)!r})"

    def get_corpus_iter(self, *, verbose: bool = True) -> Iterator[dict[str, str]]:
        """Iterate over the documents: ``docno``, ``title`` where there is one, ``text``.

        Args:
            verbose: show a progress bar.
        """
        documents = self.folder.documents()
        yield from pt.tqdm(documents, desc=f"{self.folder.path.name} documents") if verbose else documents

    def get_topics(self, variant: str | None = None) -> pd.DataFrame:
        """Return the judged queries: ``qid`` and ``query``.

        Args:
            variant: a split; by default ``test``, or the only one.

        Raises:
            ConfigError: there is no such split.
        """
        judged = {row.query_id for row in self.folder.judgments(variant)}
        rows = [(qid, text) for qid, text in self.folder.queries() if qid in judged]
        return pd.DataFrame(rows, columns=["qid", "query"], dtype=str)

    def get_qrels(self, variant: str | None = None) -> pd.DataFrame:
        """Return the judgments: ``qid``, ``docno``, ``label``.

        Args:
            variant: a split; by default ``test``, or the only one.

        Raises:
            ConfigError: there is no such split. DocumentError: a line cannot be read.
        """
        return pd.DataFrame(list(self.folder.judgments(variant)), columns=["qid", "docno", "label"])


class BeirProvider(pt.datasets.DatasetProvider):  # type: ignore[misc]
    """Provides ``mathamr-beir:FOLDER``; PyTerrier loads this class by its entry point.

    With a folder ``mirb/arqmath``::

        dataset = pt.get_dataset("mathamr-beir:mirb/arqmath")
        index.indexer().index(dataset.get_corpus_iter())
    """

    def get_dataset(self, name: str) -> BeirDataset:
        """Return the dataset in a folder.

        Args:
            name: the path of the folder.

        Raises:
            KeyError: there is no such folder, or a file is missing; the message names it.
        """
        try:
            return BeirDataset(Path(name).expanduser())
        except DocumentError as error:
            raise KeyError(f"mathamr-beir:{name}: {error}") from error
