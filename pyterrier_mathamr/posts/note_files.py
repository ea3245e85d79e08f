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
from pyterrier_mathamr.store import row_fingerprint

from .document import LONGEST_ID, LONGEST_POST, Document, Origin, ReadingOptions, SourceEntry, html_of, is_empty
from .files import STYLES, SUFFIXES, day_of, listed, path_text, read_text
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

    path: Path
    root: str
    reading: ReadingOptions
    everywhere: Sequence[LatexFile]
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


def folder_entries(
    path: Path, reading: ReadingOptions, everywhere: Sequence[LatexFile], prefix: str
) -> Iterator[SourceEntry | DocumentError]:
    """Iterate over the files of a folder; see :func:`~.own_posts.source_entries`."""
    listing = listed(path)
    if not (listing.files or listing.left_out or listing.unread):
        raise DocumentError(path_text(path), f"the folder has no files of {', '.join(SUFFIXES)}; name another")
    files = {path_text(file.relative_to(path).as_posix()): file for file in (*listing.files, *listing.styles)}
    folder = _folder(path, path_text(path.absolute()), files, reading, everywhere, prefix=prefix)
    for file in listing.files:
        yield from _entry(folder, path_text(file.relative_to(path).as_posix()), file)
    yield from listing.left_out
    yield from listing.unread


def file_entries(
    path: Path, reading: ReadingOptions, everywhere: Sequence[LatexFile]
) -> Iterator[SourceEntry | DocumentError]:
    """Iterate over a file, and the files of its folder that it includes."""
    name = path_text(path.name)
    files = {name: path}
    if path.suffix.lower() == ".tex":
        listing = listed(path.parent)
        found = (*listing.files, *listing.styles)
        files |= {path_text(file.relative_to(path.parent).as_posix()): file for file in found}
    folder = _folder(path.parent, path_text(path.absolute()), files, reading, everywhere, only=name)
    for each in folder.latex.members(name) or [name]:
        yield from _entry(folder, each, files[each])


def _folder(
    path: Path,
    root: str,
    files: Mapping[str, Path],
    reading: ReadingOptions,
    given: Sequence[LatexFile],
    only: str | None = None,
    prefix: str = "",
) -> _Folder:
    everywhere = list(given)
    for name in reversed(MACRO_FILES):
        text = read_text(path / name) if (path / name).is_file() and not (path / name).is_symlink() else None
        if isinstance(text, str):
            everywhere.insert(0, LatexFile(text))
    known = {name: macro for file in everywhere for name, macro in file.macros.items()}
    options = options_digest(reading, everywhere)
    names = [name for name in files if name.lower().endswith((".tex", *STYLES))]
    latex = LatexFolder(names, lambda name: read_text(files[name]), everywhere, known, only)
    return _Folder(path, root, reading, everywhere, known, options, latex, prefix)


def _entry(folder: _Folder, name: str, path: Path) -> Iterator[SourceEntry]:
    place, form = path_text(path), SUFFIXES[path.suffix.lower()]
    origin = Origin(folder.root, name, date=day_of(path))
    if form == "latex":
        if name in folder.latex.errors:
            yield SourceEntry(place, folder.root, name, 0, partial(iter, [folder.latex.errors[name]]))
            return
        digest = row_fingerprint({"file": folder.latex.digest(name), "options": folder.options})
        read: Callable[[], Iterable[Document | DocumentError]] = partial(_latex, folder, place, origin)
    else:
        text = read_text(path)
        if isinstance(text, DocumentError):
            yield SourceEntry(place, folder.root, name, 0, partial(iter, [text]))
            return
        digest = row_fingerprint({"file": text, "options": folder.options})
        read = partial(_notes if form in _NOTES else _plain, folder, place, origin, form, text)
    yield SourceEntry(place, folder.root, name, digest, guarded(place, read))


def guarded(
    place: str, read: Callable[[], Iterable[Document | DocumentError]]
) -> Callable[[], Iterator[Document | DocumentError]]:
    """Turn whatever goes wrong while an entry is read into the error of that entry."""

    def documents() -> Iterator[Document | DocumentError]:
        try:
            yield from read()
        except DocumentError as error:
            yield DocumentError(place, error.reason)
        except MathAMRError as error:
            yield DocumentError(place, str(error).rstrip("."))
        except Exception as error:  # whatever one post does to its reader, the others are read
            yield DocumentError(place, f"it cannot be read ({type(error).__name__}: {error!s:.80})")

    return documents


Parts = tuple[list[MathPost], dict[str, str]]


def _latex(folder: _Folder, place: str, origin: Origin) -> Iterator[Document | DocumentError]:
    document = folder.latex.document(origin.file)
    file = document.files[origin.file]
    macros = Macros(document.macros, len(file.text))

    def plain(title: str) -> str:
        return read_latex_parts([title], macros)[0][0]

    def read(parts: Sequence[str]) -> Parts:
        texts, problems = read_latex_parts(parts, macros)
        return [post_from_text(text, bare_formulas=folder.reading.bare_formulas) for text in texts], problems

    if origin.file in MACRO_FILES and r"\begin{document}" not in file.text:
        return
    units = document.units(origin.file, plain, folder.reading.whole_files)
    if units or not (file.definitions or origin.file != document.root):
        yield from _documents(units, folder.prefix, place, origin, read, balanced=file.balanced)


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
    units: Sequence[Unit],
    prefix: str,
    place: str,
    origin: Origin,
    read: Callable[[Sequence[str]], Parts],
    *,
    balanced: bool = False,
) -> Iterator[Document | DocumentError]:
    """Read the units of a file."""
    nothing = True
    for unit in units:
        try:
            document = _document(unit, prefix, origin, read, balanced)
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


def _document(
    unit: Unit, prefix: str, origin: Origin, read: Callable[[Sequence[str]], Parts], balanced: bool
) -> Document | None:
    """Read a unit; nothing if it has no text."""
    docno = f"{prefix}{origin.file}" + (f"#{unit.fragment}" if unit.fragment else "")
    if len(docno) > LONGEST_ID:
        raise DocumentError("", f"its docno {docno[:40]!r}… has {len(docno):,} characters, more than {LONGEST_ID:,}")
    if len(unit.text) > LONGEST_POST:
        raise DocumentError("", f"its {len(unit.text):,} characters are more than {LONGEST_POST:,}; split it")
    (title, body, *sections), problems = read([unit.title, unit.text, *unit.section])
    for what, where in problems.items():
        if not (balanced and what == UNCLOSED):  # a group that units divide
            report_problem(docno, what, where)
    if is_empty(title, body):
        return None
    for post in (title, body):
        report_unclosed(docno, post)
    section = " › ".join(" ".join(plain_text(post).split()) for post in sections)
    if not title.text:
        stem = origin.file.rpartition("/")[2].rpartition(".")[0]
        title = MathPost(" ".join(plain_text(sections[-1]).split()), ()) if sections else post_from_text(stem)
    title_html = html_of(docno, title.in_latex())
    html = html_of(docno, body.in_latex(), len(title.formulas))
    around = _joined(sections)
    place = origin._replace(line=unit.line, section=section, kind=unit.kind)
    return Document(docno, title_html, html, parent_title=html_of("", around.in_latex()), origin=place)


def _joined(sections: Sequence[MathPost]) -> MathPost:
    """Join the titles of sections to one text."""
    texts: list[str] = []
    formulas: list[PostFormula] = []
    for post in sections:
        names = [placeholder(len(formulas) + i) for i in range(len(post.formulas))]
        pieces = PLACEHOLDER.split(post.text)
        pieces[1::2] = [names[int(number)] for number in pieces[1::2]]
        texts.append("".join(pieces))
        formulas += post.formulas
    return MathPost(" › ".join(" ".join(text.split()) for text in texts), tuple(formulas))
