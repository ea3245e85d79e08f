r"""How an engine reads its sources: counts for each format, and every fault with its place.

::

    format      files  posts  formulas  partial  unreadable
    markdown      113    964     4,310      577           2

    the command \bb is unknown (defined differently in a.sty, b.sty), in 577 places of 113 files, first 'a.md': “\bb R”
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyterrier_mathamr._common.feedback import Problems, gathered, progress, report_problem
from pyterrier_mathamr.formula import definitions, report_unknown_commands, trees_of_posts
from pyterrier_mathamr.posts import Document, DocumentError, document_post, source_entries
from pyterrier_mathamr.posts.files import LINES, SUFFIXES

if TYPE_CHECKING:
    from .reader import EngineSnapshot

_COLUMNS = ("files", "posts", "formulas", "partial", "unreadable")


class ReadingReport(NamedTuple):
    """How an engine reads its sources.

    Attributes:
        formats: for each format the number of files, or records, of posts and of formulas; and how many formulas are
            partial, with a part that is not understood, or unreadable.
        problems: everything that could not be read, with its place.
    """

    formats: dict[str, Counter[str]]
    problems: Problems

    def __str__(self) -> str:
        rows = [["format", *_COLUMNS]]
        rows += [[name, *(f"{counts[of]:,}" for of in _COLUMNS)] for name, counts in sorted(self.formats.items())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            f"{name:{widths[0]}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
            for name, *cells in rows
        ]
        return "\n".join([*table, "", *(self.problems.causes() or ["Everything could be read."])])


def report_of(engine: EngineSnapshot, *, verbose: bool) -> ReadingReport:
    """Read the files of an engine, as they are now, and its records once more, without changing it."""
    formats: dict[str, Counter[str]] = {}
    with gathered() as problems:
        for form, documents in progress(_read(engine), "reading", "files", verbose=verbose):
            counts = formats.setdefault(form, Counter())
            counts["files"] += 1
            for document in documents:
                if isinstance(document, DocumentError):
                    report_problem(document.place, document.reason, "")
                else:
                    counts += counts_of(document)
    return ReadingReport(formats, problems)


def _read(engine: EngineSnapshot) -> Iterator[tuple[str, Iterator[Document | DocumentError]]]:
    """Yield each file or record, with its format."""
    for root, prefix in engine.record.sources.items():
        try:
            for entry in source_entries(root, engine.options.reading, prefix):
                if isinstance(entry, DocumentError):
                    report_problem(entry.place, entry.reason, "")
                else:
                    suffix = "" if root.endswith(LINES) else Path(entry.key).suffix.lower()
                    yield SUFFIXES.get(suffix, "records"), entry.documents()
        except DocumentError as error:
            report_problem(error.place, error.reason, "")
    for document in engine.indexes.posts:
        if not document.origin.root:
            yield "records", iter([document])


def counts_of(document: Document) -> Counter[str]:
    """Count the formulas of a post, and report the ones that are not understood."""
    post = document_post(document.record())
    counts = Counter(posts=1, formulas=len(post.formulas))
    macros = definitions(formula.latex for formula in post.formulas)
    for formula in post.formulas:
        trees = trees_of_posts(formula.latex, macros)
        if trees.opt is None:
            counts["unreadable"] += 1
            report_problem(document.docno, "a formula cannot be read", formula.latex)
        elif trees.opt.partial:
            counts["partial"] += 1
            report_unknown_commands(document.docno, formula.latex, trees)
            if not trees.opt.unknown_commands():
                report_problem(document.docno, "a part of a formula is not understood", formula.latex)
    return counts
