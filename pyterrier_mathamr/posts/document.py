"""`Document`: a post ready for indexing, with its origin; and how the posts of a source are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.store import row_fingerprint

from .kept_source import HIDDEN, shown, source_html
from .post import PLACEHOLDER, DocumentError, MathPost, formula_id


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How the posts of a source are read.

    Attributes:
        bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.
        whole_files: a file is one post, and is not split at headings and statements.
        macros: path of a LaTeX file whose macros and kinds of statements apply to all posts; empty for none.
        exclude: patterns of the files and folders to leave out, one a line, as in ``.gitignore``.
    """

    bare_formulas: bool = True
    whole_files: bool = False
    macros: str = ""
    exclude: str = ""


class Origin(NamedTuple):
    """Where a post was read.

    Attributes:
        root: the folder or file that was given as a source; empty for dictionaries and frames.
        file: the path in that folder, with its ending; of other sources the docno.
        line: the line of the file where the post begins, from 1; 0 if it is the whole file or no file.
        section: titles of the sections that it is in, the outermost first, joined by `` › ``.
        kind: ``theorem``, ``definition`` and the like (with its proof), ``proof`` for one whose statement is not known,
            ``section``, ``paragraph``; ``file`` for a whole file with no or several statements; empty for a record.
        date: the date in its front matter, else the day on which its file was last changed, such as 2026-01-31; empty
            if unknown.
    """

    root: str = ""
    file: str = ""
    line: int = 0
    section: str = ""
    kind: str = ""
    date: str = ""


class Document(NamedTuple):
    """A post ready for indexing.

    Attributes:
        docno: its id.
        title: HTML of its title, formulas as math containers; may be empty.
        html: HTML of its body, likewise.
        parent: the id of the post that it answers, or empty.
        parent_title: HTML of the title of that post, if given; for a unit of a file, its section.
        origin: where it was read.
        entry: fingerprint of the name of the file or record that contains it.
        digest: fingerprint of the content of that file or record.
    """

    docno: str
    title: str
    html: str
    parent: str = ""
    parent_title: str = ""
    origin: Origin = Origin()
    entry: int = 0
    digest: int = 0

    def record(self) -> dict[str, str]:
        """Return the columns that builders and indexers read; columns about a parent only if they are not empty."""
        columns = {"docno": self.docno, "title": self.title, "html": self.html}
        of_parent = {"parent": self.parent, "parent_title": self.parent_title}
        return {**columns, **{name: text for name, text in of_parent.items() if text}}


class SourceEntry(NamedTuple):
    """The unit of change in a source: a file of a folder, or a record.

    Attributes:
        place: file, line or number, as errors name it.
        root: the folder or file that was given as a source; empty for dictionaries and frames.
        key: the file, or the id of the record; unique in its source.
        digest: fingerprint of its content, and of whatever else its posts depend on.
        read: reads its posts and yields each one, or why it cannot be read; may raise any error.
        content: fingerprint of only its own content.
    """

    place: str
    root: str
    key: str
    digest: int
    read: Callable[[], Iterable[Document | DocumentError]]
    content: int = 0

    @property
    def fingerprint(self) -> int:
        """The identity of the entry among all sources."""
        return row_fingerprint({"root": self.root, "key": self.key})

    def documents(self) -> Iterator[Document | DocumentError]:
        """Yield each post, or why it cannot be read; anything that goes wrong is an error of this entry."""
        entry = self.fingerprint
        try:
            for document in self.read():
                if isinstance(document, Document):
                    document = document._replace(entry=entry, digest=self.digest)
                yield document
        except DocumentError as error:
            yield type(error)(self.place, error.reason)
        except MathAMRError as error:
            yield DocumentError(self.place, str(error).rstrip("."))
        except Exception as error:  # whatever one post does to its reader, the others are read
            yield DocumentError(self.place, f"it cannot be read ({type(error).__name__}: {error!s:.80})")


LONGEST_POST = 10_000_000
"""Characters of a title or text."""
LONGEST_ID = 300
"""Characters of an id, which the ids of its formulas repeat."""
_WORD = re.compile(r"[^\W_]")
_DELIMITING = re.compile(r"\\(?=[(\[]|begin\{)")


def is_empty(*posts: MathPost) -> bool:
    """Whether posts have neither a word nor a formula."""
    return not any(post.formulas or _WORD.search(PLACEHOLDER.sub(" ", post.text)) for post in posts)


def document_of(
    docno: str, title: MathPost, body: MathPost, above: MathPost, origin: Origin, parent: str = ""
) -> Document:
    """Make a document of its title and body, and the title of the post or section above."""
    html = _html_of(docno, body, len(title.formulas))
    return Document(docno, _html_of(docno, title), html, parent, _html_of("", above), origin)


def _html_of(docno: str, post: MathPost, first: int = 0) -> str:
    """Write a post as HTML in which each formula is a container with its id."""

    def formula_html(match: re.Match[str]) -> str:
        formula = formulas[int(match[1])]
        name = formula.id or formula_id(docno, first + int(match[1]))
        return f'<span class="math-container" id="{escape(name)}">{escape(formula.latex, quote=False)}</span>'

    formulas = post.in_latex().formulas
    text = escape(post.text, quote=False).replace("$", "\\$")  # it delimits no formula when this is read again
    text = _DELIMITING.sub(r"<code>\\</code>", text)
    lines = (f"<p>{PLACEHOLDER.sub(formula_html, line)}</p>" for line in text.split("\n") if line)
    return HIDDEN.sub(lambda source: source_html(shown(source[0])), "".join(lines))
