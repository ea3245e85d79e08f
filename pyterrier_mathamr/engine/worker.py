"""The work of processes on posts for the indexes of an engine; they start without torch, which saves a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pyterrier_mathamr._common.feedback import Overheard, overheard
from pyterrier_mathamr.amr.dependency.syntax import bundled_net
from pyterrier_mathamr.graph.parallel import Batch, Built
from pyterrier_mathamr.sparse.bm25 import Read as ReadDocument
from pyterrier_mathamr.sparse.bm25 import ReadTokens
from pyterrier_mathamr.sparse.expressions import Read as ReadFormulas
from pyterrier_mathamr.sparse.expressions import ReadPosts, Unread
from pyterrier_mathamr.store import row_fingerprint


def prepare() -> None:
    """Load everything needed to read posts, in a process that waits for the first of them."""
    bundled_net()


class BatchRead(NamedTuple):
    """A worker's results for a batch of posts."""

    graphs: Built
    tokens: list[ReadDocument]
    heard: Overheard
    formulas: ReadFormulas  # with their symbol pairs
    patterns: ReadFormulas  # with their sub-expressions


@dataclass(frozen=True, eq=False)
class ReadBatch:
    """Work of a batch of posts: all that indexes need of it, so that posts and formulas are remembered in between."""

    graphs: Callable[[Batch], Built]
    tokens: ReadTokens
    formulas: ReadPosts
    patterns: ReadPosts

    def __call__(self, batch: Batch) -> BatchRead:
        graphs = self.graphs(batch)
        with overheard() as heard:
            tokens = self.tokens(batch)
        unread = Unread(len(batch), [], [(post, row_fingerprint(post)) for post in batch])
        formulas, patterns = self.formulas(unread), self.patterns(unread)
        return BatchRead(graphs, tokens, heard, formulas, patterns._replace(heard=None))  # which has heard the same
