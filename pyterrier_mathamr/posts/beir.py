"""Folders in BEIR's layout, in which many collections with judgments are distributed.

::

    corpus.jsonl      {"_id": "d1", "title": "Limits", "text": "Let $f$ be …"}      or corpus.jsonl.gz
    queries.jsonl     {"_id": "q1", "text": "Is $f$ bounded?"}                      or queries.jsonl.gz
    qrels/test.tsv    query-id  corpus-id  score                                    and dev.tsv, train.tsv
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr._common.errors import ConfigError

from .files import json_lines
from .own_posts import readable
from .post import DocumentError

TEST = "test"
_TEXTS = ("_id", "text")


class Judgment(NamedTuple):
    """A grade of a document for a query."""

    query_id: str
    doc_id: str
    relevance: int


class BeirFolder:
    """A collection in BEIR's layout.

    Args:
        path: the folder.

    Raises:
        DocumentError: a file is missing.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        for name in ("corpus", "queries"):
            self._file(name)
        if not self.splits:
            raise DocumentError(str(self.path / "qrels"), "it holds no judgments such as test.tsv")

    @staticmethod
    def found(path: str | Path) -> bool:
        """Return whether a path is such a folder, by the names of its files."""
        folder = Path(path)
        return (folder / "qrels").is_dir() and any(folder.glob("corpus.jsonl*")) and any(folder.glob("queries.jsonl*"))

    @cached_property
    def splits(self) -> tuple[str, ...]:
        """The names of the files of judgments: ``test``, ``dev``, …."""
        return tuple(sorted(file.stem for file in (self.path / "qrels").glob("*.tsv")))

    def split(self, name: str | None = None) -> str:
        """Return the name of a split.

        Args:
            name: of a split; by default ``test``, or the only one.

        Raises:
            ConfigError: there is none of this name.
        """
        chosen = name or (self.splits[0] if len(self.splits) == 1 else TEST)
        if chosen not in self.splits:
            raise ConfigError("split", chosen, f"one of {', '.join(self.splits)} of {self.path}")
        return chosen

    def documents(self) -> Iterator[dict[str, str]]:
        """Read the documents: ``docno``, ``title`` (if there is one) and ``text``.

        A line that is not a document is left out, with a warning at the end.
        """
        for record in readable(json_lines(self._file("corpus"), _TEXTS), "documents", str(self.path)):
            title = {"title": str(record["title"])} if record.get("title") else {}
            yield {"docno": record["_id"], **title, "text": record["text"]}

    def queries(self) -> Iterator[tuple[str, str]]:
        """Read the queries of all splits: id and text."""
        for record in readable(json_lines(self._file("queries"), _TEXTS), "queries", str(self.path)):
            yield record["_id"], record["text"]

    def judgments(self, split: str | None = None) -> Iterator[Judgment]:
        """Read the judgments of a split.

        Args:
            split: the name of the file; by default ``test``, or the only one.

        Raises:
            DocumentError: a line has no three columns, or its grade is not a number.
        """
        file = self.path / "qrels" / f"{self.split(split)}.tsv"
        with file.open(encoding="utf-8-sig", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                cells = line.rstrip("\r\n").split("\t")
                try:
                    is_number = math.isfinite(grade := float(cells[-1]))
                except ValueError:
                    is_number = False
                if not line.strip() or (number == 1 and not is_number):
                    continue  # the header
                if len(cells) != 3 or not is_number:
                    reason = "it is not query-id, corpus-id and score separated by tabs"
                    raise DocumentError(f"{file}, line {number}", reason)
                yield Judgment(cells[0], cells[1], int(grade))

    def count(self) -> int:
        """Count the documents, without reading them as JSON."""
        return sum(1 for _ in json_lines(self._file("corpus"), _TEXTS))

    def files(self) -> tuple[Path, ...]:
        """List all files, whose content the collection is."""
        return (self._file("corpus"), self._file("queries"), *sorted((self.path / "qrels").glob("*.tsv")))

    def _file(self, name: str) -> Path:
        """Find a file, plain or gzipped."""
        for ending in (".jsonl", ".jsonl.gz"):
            if (file := self.path / f"{name}{ending}").is_file():
                return file
        raise DocumentError(str(self.path / f"{name}.jsonl"), "there is no such file, which BEIR's layout requires")
