r"""Files of notes as entries of a source, each read into the documents of its units.

::

    folder ──files──▶ .tex ────latex_folder, latex_units──▶┐
                      .md ─────────────────────────────────┤
                      .rst .org .ipynb ──other_markups──▶ Markdown ──markdown_units──▶ units ──readers──▶ Document
                      .html .txt ──────────────────────────────────────────────────▶ one whole unit

The macros of a file, of the files that it includes, of ``macros.tex``, ``macros.sty`` or ``preamble.tex`` at the top of
the folder and of ``--macros`` apply to each of its units. The docno of a whole file is its path with its ending; that
of another unit has a fragment after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.feedback import report_problem
from pyterrier_mathamr._common.ids import valid_id
from pyterrier_mathamr.store import row_fingerprint

from .document import LONGEST_ID, LONGEST_POST, Document, Origin, ReadingOptions, SourceEntry, document_of, is_empty
from .files import STYLES, SUFFIXES, Listing, UnopenedFileError, day_of, listed, path_text, read_text
from .html import title_of_html
from .latex_document import UNCLOSED, read_latex_parts
from .latex_folder import LatexFolder
from .latex_macros import Macro, Macros, definitions, without_definitions
from .latex_units import LatexFile
from .markdown import read_markdown
from .markdown_units import Notes, markdown_units, notes_of
from .other_markups import notes_of_notebook, notes_of_org, notes_of_rst
from .post import PLACEHOLDER, DocumentError, MathPost, PostFormula, placeholder, plain_text
from .reading import post_from_html, post_from_text, report_unclosed
from .statements import Unit

MACRO_FILES = ("macros.tex", "macros.sty", "preamble.tex")
"""Files at the top of a folder whose definitions apply to all of it."""
_NOTES: Mapping[str, Callable[[str], Notes]] = {
    "markdown": notes_of,
    "notebook": notes_of_notebook,
    "rst": notes_of_rst,
    "org": notes_of_org,
}


class _Folder(NamedTuple):
    """The data shared by the entries of a folder."""

    root: str
    reading: ReadingOptions
    known: Mapping[str, Macro]
    options: str
    latex: LatexFolder
    prefix: str


def read_macros(path: str) -> LatexFile:
    """Read a file of macros.

    Raises:
        DocumentError: it cannot be read.
    """
    text = read_text(Path(path))
    if isinstance(text, DocumentError):
        raise DocumentError(text.place, f"the file of macros: {text.reason}")
    return LatexFile(text)


def options_digest(reading: ReadingOptions, everywhere: Iterable[LatexFile]) -> str:
    """Return a digest of the reading options, including the content of files of macros."""
    return repr((reading.bare_formulas, reading.whole_files, [file.text for file in everywhere]))


def note_entries(
    path: Path, reading: ReadingOptions, given: Sequence[LatexFile], prefix: str
) -> Iterator[SourceEntry | DocumentError]:
    """Iterate over the files of a folder; or over a file, and the files of its folder that it includes."""
    only = "" if path.is_dir() else path_text(path.name)
    top = path.parent if only else path
    listing = listed(top) if not only or path.suffix.lower() == ".tex" else Listing([], [], [], [])
    if not (only or listing.files or listing.left_out or listing.unread):
        kinds = ", ".join(SUFFIXES)
        raise DocumentError(path_text(path), f"the folder has no notes. Name a folder with files of {kinds}")
    files = {path_text(file.relative_to(top).as_posix()): file for file in (*listing.files, *listing.styles)}
    files |= {only: path} if only else {}
    everywhere = list(given)
    of_macros: dict[str, str | DocumentError] = {}
    for name in reversed(MACRO_FILES):
        if (top / name).is_file() and not (top / name).is_symlink():
            text = of_macros[name] = read_text(top / name)
            if isinstance(text, str):
                everywhere.insert(0, LatexFile(text))
    known = {name: macro for file in everywhere for name, macro in file.macros.items()}
    names = [name for name in files if name.lower().endswith((".tex", *STYLES))]
    latex = LatexFolder(names, lambda name: of_macros.get(name) or read_text(files[name]), everywhere, known, only)
    options = options_digest(reading, everywhere)
    folder = _Folder(path_text(path.absolute()), reading, known, options, latex, "" if only else prefix)
    if only:
        for name in latex.members(only) or [only]:
            yield _entry(folder, name, files[name])
    else:
        for name, file in files.items():
            if file.suffix.lower() in SUFFIXES:
                yield _entry(folder, name, file)
        yield from listing.left_out
        yield from listing.unread


def _entry(folder: _Folder, name: str, path: Path) -> SourceEntry:
    place, form = path_text(path), SUFFIXES[path.suffix.lower()]
    origin = Origin(folder.root, name, date=day_of(path))
    text = read_text(path) if form != "latex" else folder.latex.errors.get(name) or folder.latex.digest(name)
    if isinstance(text, DocumentError):
        digest = 0 if isinstance(text, UnopenedFileError) else row_fingerprint({"fault": text.reason})
        return SourceEntry(place, folder.root, name, digest, partial(iter, [text]))
    if form == "latex":
        read: Callable[[], Iterable[Document | DocumentError]] = partial(_latex, folder, place, origin)
    else:
        read = partial(_notes if form in _NOTES else _plain, folder, place, origin, form, text)
    digest = row_fingerprint({"file": text, "options": folder.options})
    own = folder.latex.own_digest(name) if form == "latex" else text
    return SourceEntry(place, folder.root, name, digest, read, row_fingerprint({"file": own}))


Parts = tuple[list[MathPost], dict[str, str]]


def _latex(folder: _Folder, place: str, origin: Origin) -> Iterator[Document | DocumentError]:
    document = folder.latex.document(origin.file)
    file = document.files[origin.file]
    macros = Macros(document.macros, len(file.text))

    def plain(title: str) -> str:
        return read_latex_parts([title], macros)[0][0]

    def read(parts: Sequence[str]) -> Parts:
        texts, problems = read_latex_parts(parts, macros)
        if file.balanced:
            problems.pop(UNCLOSED, None)  # a group that units divide
        return [post_from_text(text, bare_formulas=folder.reading.bare_formulas) for text in texts], problems

    if origin.file in MACRO_FILES and r"\begin{document}" not in file.text:
        return
    units = document.units(origin.file, plain, folder.reading.whole_files)
    if units or not (file.definitions or origin.file != document.root):
        yield from _documents(units, folder.prefix, place, origin, read)


def _notes(folder: _Folder, place: str, origin: Origin, form: str, text: str) -> Iterator[Document | DocumentError]:
    notes = _NOTES[form](text)
    units, defined = markdown_units(origin.file, notes, whole=folder.reading.whole_files)
    macros = Macros({**folder.known, **defined}, len(text))

    def read(parts: Sequence[str]) -> Parts:
        html, problems = read_markdown(*parts, macros=macros)
        return [post_from_html(part, bare_formulas=folder.reading.bare_formulas) for part in html], problems

    origin = origin._replace(date=notes.date or origin.date)
    yield from _documents(units, folder.prefix, place, origin, read)


def _plain(folder: _Folder, place: str, origin: Origin, form: str, text: str) -> Iterator[Document | DocumentError]:
    defined = definitions(text)[0] if form == "text" else {}
    macros = Macros({**folder.known, **defined}, len(text))
    title, text = title_of_html(text) if form == "html" else ("", without_definitions(text))
    by: Callable[..., MathPost] = post_from_html if form == "html" else post_from_text

    def read(parts: Sequence[str]) -> Parts:
        posts = [by(part, bare_formulas=folder.reading.bare_formulas) for part in parts]
        return [post.with_macros(macros.written_out) if macros else post for post in posts], {}

    yield from _documents([Unit("", title, text, "file")], folder.prefix, place, origin, read)


def _documents(
    units: Sequence[Unit], prefix: str, place: str, origin: Origin, read: Callable[[Sequence[str]], Parts]
) -> Iterator[Document | DocumentError]:
    nothing = True
    for unit in units:
        try:
            document = _document(unit, prefix, origin, read)
        except MathAMRError as error:
            where = f"{place}, line {unit.line}" if unit.line else place
            reason = error.reason if isinstance(error, DocumentError) else str(error).rstrip(".")
            yield DocumentError(where, reason)
            nothing = False
            continue
        if document is not None:
            nothing = False
            yield document
    if nothing:
        yield DocumentError(place, "the file has neither a word nor a formula")


def _document(unit: Unit, prefix: str, origin: Origin, read: Callable[[Sequence[str]], Parts]) -> Document | None:
    """Read a unit; nothing if it has no text."""
    docno = valid_id(f"{prefix}{origin.file}" + (f"#{unit.fragment}" if unit.fragment else ""), "")
    if len(docno) > LONGEST_ID:
        raise DocumentError("", f"its docno {docno[:40]!r}… has {len(docno):,} characters, more than {LONGEST_ID:,}")
    if len(unit.text) > LONGEST_POST:
        raise DocumentError("", f"its {len(unit.text):,} characters are more than {LONGEST_POST:,}; split it")
    (title, body, *sections), problems = read([unit.title, unit.text, *unit.section])
    for what, where in problems.items():
        report_problem(docno, what, where)
    if is_empty(title, body):
        return None
    for post in (title, body):
        report_unclosed(docno, post)
    if not title.text:
        stem = origin.file.rpartition("/")[2].rpartition(".")[0]
        title = MathPost(" ".join(plain_text(sections[-1]).split()), ()) if sections else post_from_text(stem)
    around = _joined(sections)
    origin = origin._replace(line=unit.line, section=plain_text(around), kind=unit.kind)
    return document_of(docno, title, body, around, origin)


def _joined(sections: Sequence[MathPost]) -> MathPost:
    """Join the titles of sections to one text."""
    texts: list[str] = []
    formulas: list[PostFormula] = []
    for post in sections:
        pieces = PLACEHOLDER.split(" ".join(post.text.split()))
        pieces[1::2] = [placeholder(len(formulas) + int(number)) for number in pieces[1::2]]
        texts.append("".join(pieces))
        formulas += post.formulas
    return MathPost(" › ".join(texts), tuple(formulas))
