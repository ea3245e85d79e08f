"""`MathPost`: the text of a post with a placeholder for each formula.

    "Prove that <span class=math-container id=7>x^2</span>&gt;0."   text      "Prove that FORMULA_0>0."
                                                                    formulas  (PostFormula("x^2", "7"),)

A ``FORMULA_3`` that a user typed becomes ``FORMULA-3``. A post is parsed sentence by sentence. `Document` is a post of
a person's source, ready for indexing, with its origin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import NamedTuple

from pyterrier_mathamr._common.errors import DocumentError as DocumentError
from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.types import DocNo, FormulaId
from pyterrier_mathamr.store import row_fingerprint

from .math_spans import (
    CODE_BACKSLASH,
    CODE_DOLLAR,
    CODE_END,
    CODE_START,
    HIDDEN,
    MARK,
    bare_spans,
    latex_of_unicode,
    math_spans,
    shown,
    source_html,
)

MAX_TOKENS = 120

PLACEHOLDER = re.compile(r"(?<![A-Za-z0-9_])FORMULA_([0-9]{1,9})(?![A-Za-z0-9_])")
"""Matches one placeholder as a whole word; group 1 is the formula's number."""

TOKEN = re.compile(r"FORMULA_\d+|[^\W_]+(?:['’][^\W_]+)*|\S")
"""Matches one token, the unit of limits on sentences and chunks."""

_END = re.compile(r"(?<![.?!…])[.?!…]+[\"'”’»)\]]*(?=\s|$)|(?<=[a-z][a-z])[.?!](?=[A-Z][a-z])")
_WORD_BEFORE = re.compile(r"\S{1,20}$")
_LIST_NUMBER = re.compile(r"\(?(?:\d{1,3}|[ivxIVX]{1,4}|[a-zA-Z])")
_ONLY_FORMULAS = re.compile(r"(?:FORMULA_\d+|[\W_])+")
_STOPS = frozenset(".?!…")
_ABBREVIATION_LIST = (
    "a.e a.s approx al ca cf ch chap const cor corr def dr e.g eg eq eqn eqs esp et ex exer fig figs i.e i.i.d ie incl "
    "lem lhs mr mrs ms no nos p pg pp prof prop props ref refs rem resp rhs s.t sec sect st thm thms viz vol vs "
    "w.l.o.g w.r.t wlog wrt"
)
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_OPEN_WORDS = frozenset({"and", "get", "gives", "hence", "is", "or", "so", "that", "then", "thus", "where", "with"})


def split_sentences(text: str) -> tuple[str, ...]:
    """Split text into sentences of at most 120 tokens.

    Blocks are separated by line ends; placeholders of formulas are never split.
    """
    return tuple(
        piece for block in _joined(text) for sentence in _sentences_of(block) for piece in _limited(sentence) if piece
    )


def _joined(text: str) -> Iterator[str]:
    """Join each block with the blocks that continue its last sentence."""
    parts: list[str] = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        if parts:
            last = parts[-1].rstrip("\"'”’»)]")[-1:]
            formulas = _ONLY_FORMULAS.fullmatch(line) is not None and "FORMULA_" in line
            expects = last == "," or parts[-1].rpartition(" ")[2] in _OPEN_WORDS
            goes_on = last not in _STOPS and (
                formulas or (line[0].islower() and last not in ":;") or (expects and line.startswith("FORMULA_"))
            )
            if not goes_on:
                yield " ".join(parts)
                parts = []
        parts.append(line)
    if parts:
        yield " ".join(parts)


def _sentences_of(block: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(block):
        following = block[end.end() : end.end() + 3].lstrip()[:1]
        if following.islower():
            continue
        if end[0].startswith(".") and not end[0].startswith(".."):
            before = _WORD_BEFORE.search(block, max(start, end.start() - 20), end.start())
            word = before[0].lstrip("([\"'“‘") if before else ""
            if not before or word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isupper()):
                continue
            if before.start() == start + (block[start : start + 1] == " ") and _LIST_NUMBER.fullmatch(word):
                continue
        yield block[start : end.end()].strip()
        start = end.end()
    yield block[start:].strip()


def _limited(sentence: str) -> Iterator[str]:
    """Split a sentence of more than 120 tokens, if possible at a comma or semicolon of its second half."""
    if len(sentence) <= MAX_TOKENS:  # characters; a token has at least one
        yield sentence.strip()
        return
    start = cut = count = 0
    for token in TOKEN.finditer(sentence):
        if count == MAX_TOKENS:
            cut = cut if cut > start else token.start()
            yield sentence[start:cut].strip()
            count = len(TOKEN.findall(sentence, cut, token.start()))
            start = cut
        count += 1
        if count > MAX_TOKENS // 2 and token[0] in (",", ";"):
            cut = token.end()
    yield sentence[start:].strip()


_TYPED_PLACEHOLDER = re.compile(rf"(?<!{MARK})FORMULA_(?=\d)")
_NUMBERED = re.compile(r"#\d+$")
_BLANKS = re.compile(r"[^\S\n]+")
_MARKS = re.compile(f"[{MARK}{CODE_DOLLAR}{CODE_BACKSLASH}{CODE_START}{CODE_END}]")
_EXCERPT = 60
_IN_WORD = re.compile(r"[\w]")
_CODE = re.compile(f"{CODE_START}([^{CODE_END}]*){CODE_END}?")


@dataclass(frozen=True, slots=True)
class PostFormula:
    """A formula of a post.

    Attributes:
        latex: its LaTeX without the delimiting dollars.
        id: its identifier in the collection, or empty.
    """

    latex: str
    id: FormulaId = ""

    @property
    def html(self) -> str:
        """The formula as ARQMath's HTML has it, whose LaTeX needs no delimiters."""
        return f'<span class="math-container" id="{escape(self.id)}">{escape(self.latex)}</span>'


@dataclass(frozen=True, slots=True)
class MathPost:
    """A post as text and formulas (MathAMR+, section 3.1).

    Attributes:
        text: the blocks, one on each line; formula ``i`` is the word ``FORMULA_i``, in order.
        formulas: the formulas.
        unclosed: the text after each opening delimiter that is never closed; such delimiters are text.
        unread: the text of each formula in MathML that cannot be read; it is text as code is.
    """

    text: str
    formulas: tuple[PostFormula, ...]
    unclosed: tuple[str, ...] = field(default=(), compare=False)
    unread: tuple[str, ...] = field(default=(), compare=False)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of the text, see `split_sentences`."""
        return split_sentences(self.text)

    def sentence_with(self, formula: int) -> str:
        """Return the first sentence with a formula, given by its number; empty if the text does not have it."""

        def has(text: str) -> bool:
            return any(int(match[1]) == formula for match in PLACEHOLDER.finditer(text))

        blocks = filter(has, _joined(self.text))  # the others need not be split
        return next(filter(has, (sentence for block in blocks for sentence in split_sentences(block))), "")

    def with_formula_ids(self, docno: DocNo) -> MathPost:
        """Return the post of a document, in which each formula has an id: its own, else from `formula_id`.

        Args:
            docno: the document; if empty, nothing changes.
        """
        if not docno or all(formula.id for formula in self.formulas):
            return self
        named = [PostFormula(of.latex, of.id or formula_id(docno, i)) for i, of in enumerate(self.formulas)]
        return replace(self, formulas=tuple(named))

    def with_macros(self, written_out: Callable[[str], str]) -> MathPost:
        """Return the post with the macros in its formulas written out."""
        formulas = (PostFormula(written_out(formula.latex), formula.id) for formula in self.formulas)
        return replace(self, formulas=tuple(formulas))

    def in_latex(self) -> MathPost:
        r"""Rewrite formulas typed in Unicode, so that ``√2`` and ``\sqrt{2}`` have the same symbols in every index."""
        return self.with_macros(latex_of_unicode)


def formula_id(docno: DocNo, i: int) -> FormulaId:
    """Return the id of formula ``i`` of the document ``docno`` where the collection gives it none: ``docno#i``."""
    return f"{docno}#{i}"


TITLE_FORMULA = "^title"
"""The id, in a document's graph, of each formula in the title of the question that the document answers."""


def is_numbered(id: FormulaId) -> bool:
    """Return whether an id was made by `formula_id`, not by the collection."""
    return _NUMBERED.search(id) is not None


def placeholder(i: int) -> str:
    """Return the word in the place of formula ``i``."""
    return f"FORMULA_{i}"


def plain_text(post: MathPost) -> str:
    """Write a post as text with each formula as ``$latex$``."""

    def in_dollars(match: re.Match[str]) -> str:
        latex = post.formulas[int(match[1])].latex
        escaped = (len(latex) - len(latex.rstrip("\\"))) % 2  # the dollar, by the rest of a stripped "\\ "
        return f"${latex}{' ' * escaped}$"

    return PLACEHOLDER.sub(in_dollars, post.text)


def typed_text(post: MathPost) -> str:
    r"""Write a post so that `post_from_text` reads it again: blank lines between blocks, ``\$`` for a dollar sign."""
    return plain_text(replace(post, text=post.text.replace("$", "\\$").replace("\n", "\n\n")))


def assemble(flat: str, marked: Sequence[PostFormula], bare_formulas: bool = False) -> MathPost:
    """Replace the formulas of a text by placeholders; its marks are the formulas that are already known."""
    pieces: list[str] = []  # of the text, a `MARK` before each placeholder
    formulas: list[PostFormula] = []
    unclosed: list[int] = []
    known = iter(marked)

    def add(formula: PostFormula) -> None:
        if pieces and _IN_WORD.match(pieces[-1][-1]):
            pieces.append(" ")
        pieces.append(MARK + placeholder(len(formulas)))
        formulas.append(formula)

    def add_text(text: str) -> None:
        if text:
            text = text.replace("\\$", "$").replace(CODE_DOLLAR, "$").replace(CODE_BACKSLASH, "\\")
            glued = pieces and pieces[-1][0] == MARK and _IN_WORD.match(text)
            pieces.append((" " if glued else "") + text)

    at = 0
    for start, end, latex in (*math_spans(flat, unclosed), (len(flat), len(flat), "")):
        for i, part in enumerate(flat[at:start].split(MARK)):
            if i:
                add(next(known))
            for k, text in enumerate(_CODE.split(part) if bare_formulas else [part]):  # text and code in turn
                done = 0
                for begin, stop, bare in bare_spans(text) if bare_formulas and k % 2 == 0 else ():
                    add_text(text[done:begin])
                    add(PostFormula(bare))
                    done = stop
                add_text(text[done:])
        if latex:
            add(PostFormula(latex))
        at = end
    text = _TYPED_PLACEHOLDER.sub("FORMULA-", "".join(pieces)).replace(MARK, "")
    lines = (_BLANKS.sub(" ", line).strip() for line in text.split("\n"))
    text = "\n".join(line for line in lines if line)
    excerpts = (_MARKS.sub("…", flat[start : start + _EXCERPT]) for start in unclosed)
    shown = (_BLANKS.sub(" ", excerpt).replace("\n", " ").strip() for excerpt in excerpts)
    return MathPost(text, tuple(formulas), tuple(shown))


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
