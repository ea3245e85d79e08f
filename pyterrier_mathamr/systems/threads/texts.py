"""The texts of threads: an answer with its question in front, and the text of any post."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.frames import documents, empty_output, is_missing
from pyterrier_mathamr._common.parameters import FLAG
from pyterrier_mathamr._common.transformers import ColumnAdder, Transformer
from pyterrier_mathamr.posts import DOCUMENT_COLUMNS, html_from_markdown, is_html

if TYPE_CHECKING:
    from .thread_store import ThreadStore

_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


class WithQuestion(Transformer):
    """Puts the title and the body of its question before each answer: the documents of a structural search.

    Zhong, Xie and Lin, "Applying Structural and Dense Semantic Matching for the ARQMath Lab 2022" (CLEF 2022), index
    answers so.

    Example::

        (threads.with_question() >> BM25Index("threads.bm25").indexer()).index(dataset.get_corpus_iter())

    Args:
        threads: the store.
        body: the body of the question, too; else its title alone.
    """

    label = "with question"

    def __init__(self, threads: ThreadStore, body: bool = True) -> None:
        super().__init__()
        FLAG.check("body", body)
        self.threads, self.body = threads, body

    def transform_inputs(self) -> list[list[str]]:
        """Return the columns of a document, one list for each way."""
        return [["docno", name] for name in DOCUMENT_COLUMNS]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Put the questions in front.

        Args:
            inp: ``docno`` and the first of ``html``, ``body``, ``text`` and ``markdown``.

        Returns:
            The rows with ``title``, the question's, and ``html``, its body, if asked for, and the answer. What is a
            question, or has none in the store, keeps its own title and text.

        Raises:
            UnknownIdError: some documents are not in the store; it names them.
        """
        with pt.validate.any(inp, context=self) as check:
            for name in DOCUMENT_COLUMNS:
                check.columns(includes=["docno", name])
        if inp.empty:
            return empty_output(inp, ["title", "html"])
        posts = self.threads.posts(inp["docno"].tolist())
        questions = {post.id for post in self.threads.known_posts(post.question_id for post in posts)}
        asked = [post.question_id if post.kind == "answer" else "" for post in posts]
        known = list(dict.fromkeys(name for name in asked if name in questions))
        texts = {
            name: (title, body if self.body else "")
            for name, (title, body) in zip(known, self.threads.texts(known), strict=True)
        }
        rows = [
            _in_front(row, *texts.get(question, (None, "")))
            for row, question in zip(documents(inp), asked, strict=True)
        ]
        titles, bodies = zip(*rows, strict=True)
        result: pd.DataFrame = inp.assign(title=list(titles), html=list(bodies))
        return result


def with_question(threads: ThreadStore, body: bool = True) -> WithQuestion:
    """Return the transformer that puts its question before each answer; see :class:`WithQuestion`."""
    return WithQuestion(threads, body)


class ThreadTextLoader(ColumnAdder, Transformer):
    """Adds the text of the posts of a ranking as ``html``; see :meth:`ThreadStore.text_loader`.

    Example::

        bm25 >> threads.best_answer() >> threads.text_loader()

    Args:
        threads: the store.
    """

    label = "ThreadStore loader"

    def __init__(self, threads: ThreadStore) -> None:
        super().__init__()
        self.threads = threads

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Load the texts, each once.

        Args:
            inp: ``docno``.

        Returns:
            The rows with ``html``; that of a question begins with its title.

        Raises:
            UnknownIdError: some posts are not in the store; it names them.
        """
        with pt.validate.any(inp, context=self) as check:
            check.columns(includes=["docno"])
        if inp.empty:
            return empty_output(inp, ["html"])
        ids = list(dict.fromkeys(inp["docno"]))
        texts = {
            name: f"<p>{title}</p>{body}" if title else body
            for name, (title, body) in zip(ids, self.threads.texts(ids), strict=True)
        }
        result: pd.DataFrame = inp.assign(html=[texts[name] for name in inp["docno"]])
        return result


def _in_front(row: dict[str, Any], title: str | None, question: str) -> tuple[str, str]:
    """Return title and HTML of a document with its question."""
    name = next((name for name in DOCUMENT_COLUMNS if not is_missing(row.get(name))), "")
    text = row[name] if name else ""
    if name == "markdown":
        text = html_from_markdown(text)
    elif name != "html" and not is_html(text):
        text = "".join(f"<p>{escape(block, quote=False)}</p>" for block in _BLANK_LINES.split(text))
    own = row.get("title")
    return ("" if is_missing(own) else str(own)) if title is None else title, question + text
