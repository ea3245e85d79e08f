r"""Files of notes as entries of a source, each read into the documents of its units.

::

    folder ──files──▶ .tex ────latex_folder, latex_units──▶┐
                      .md ─────────────────────────────────┤
                      .rst .org .ipynb ──other_markups──▶ Markdown ──markdown_units──▶ units ──readers──▶ Document
                      .lean ─────────lean──────────────────────────────────────────▶ units of Markdown
                      .html .txt ──────────────────────────────────────────────────▶ one whole unit

The macros of a file, of the files that it includes, of ``macros.tex``, ``macros.sty`` or ``preamble.tex`` at the top of
the folder and of ``--macros`` apply to each of its units. The docno of a whole file is its path with its ending; that
of another unit has a fragment after it.

A statement of a blueprint that names declarations of the folder (``\lean{Foo.bar}``) is no post of its own: its title
and its text are in the posts of the declarations.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from .kept_source import source_texts, with_hidden
from .latex_document import UNCLOSED, cleaned, read_latex_parts
from .latex_folder import FolderMacros, LatexFolder
from .lean import lean_units
from .markdown import FRONT_MATTER, read_markdown
from .markdown_units import Notes, markdown_units, notes_of
from .math_spans import replaced
from .other_markups import notes_of_notebook, notes_of_org, notes_of_rst
from .post import PLACEHOLDER, DocumentError, MathPost, PostFormula, placeholder, plain_text
from .reading import post_from_html, post_from_text, report_unclosed
from .statements import Unit
from .tex_expansion import Expander, collected
from .tex_macros import Definitions, Macro
from .tex_primitives import DEFINED

MACRO_FILES = ("macros.tex", "macros.sty", "preamble.tex")
"""Files at the top of a folder whose definitions apply to all of it."""
_DEFINING = (".tex", *STYLES, ".md", ".markdown", ".qmd", ".rmd")
_DEFINES = re.compile(r"\\(?:(?:re)?newcommand|providecommand|[gex]?def|let|Declare|NewDocument)")
_SETTINGS = ("_config.yml", "_quarto.yml", "myst.yml", "mkdocs.yml", "conf.py", "docs/conf.py", "book.toml")
_SETTING = re.compile(
    r"""^[ \t]*["']?(?:\\{1,2})?(?P<name>[A-Za-z]{1,40})["']?[ \t]*[:=][ \t]*(?:\[[ \t]*|\n[ \t]*-[ \t]+)?"""
    r"""(?:r?(?P<mark>["'])(?P<body>[^\n]{0,1000}?)(?P=mark)(?:[ \t]*,[ \t]*(?P<count>[1-9])[ \t]*\])?[ \t]*,?"""
    r"""|(?P<plain>\\[^\n"']{1,1000}?))[ \t]*$""",
    re.M,
)
"""A macro in the settings of MathJax or KaTeX: ``RR: "\\\\mathbb{R}"``, ``"\\\\norm": ["\\\\|#1\\\\|", 1]``."""
_HAS_MACROS = re.compile(r"macros|^[ \t]*math[ \t]*:", re.M)
_NOTES: Mapping[str, Callable[[str], Notes]] = {
    "markdown": notes_of,
    "notebook": notes_of_notebook,
    "rst": notes_of_rst,
    "org": notes_of_org,
}


@dataclass
class _Blueprint:
    r"""The files of LaTeX in a folder with ``\lean``, whose statements name declarations.

    Attributes:
        files: their paths.
        declared: the declarations in the folder; empty without such files.
        posts: of each file, once all were read.
        statements: by the names of declarations, likewise.
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    declared: frozenset[str] = frozenset()
    posts: dict[str, list[Document | DocumentError]] = field(default_factory=dict)
    statements: dict[str, Document] = field(default_factory=dict)

    def named(self, post: Document) -> list[str]:
        """List the declarations of the folder that a statement names."""
        sources = (source for source in source_texts(post.html) if not source.startswith("\\"))
        names = [name.strip() for source in sources for name in source.split(",")]
        return [name for name in names if name in self.declared]


class _Folder(NamedTuple):
    """The data shared by the entries of a folder."""

    root: str
    reading: ReadingOptions
    known: Definitions
    macros: FolderMacros
    options: str
    latex: LatexFolder
    prefix: str
    blueprint: _Blueprint


def read_macros(*paths: Path) -> tuple[Definitions, str]:
    """Read files of macros; return what they define, and a text that changes with it.

    Raises:
        DocumentError: a file cannot be read.
    """
    known, texts = Definitions({}, {}, []), []
    for path in paths:
        text = read_text(path)
        if isinstance(text, DocumentError):
            raise DocumentError(text.place, f"the file of macros: {text.reason}")
        texts.append(text)
        new = collected(cleaned(text), known)
        known = new._replace(found=[*known.found, *new.found])
    return known, repr(texts)


def options_digest(reading: ReadingOptions, macros: str) -> str:
    """Return a digest of the reading options, including the content of files of macros."""
    return repr((reading.bare_formulas, reading.whole_files, macros))


def note_entries(
    path: Path, reading: ReadingOptions, prefix: str, lasting: dict[str, Macro]
) -> Iterator[SourceEntry | DocumentError]:
    """Iterate over the files of a folder; or over a file, and the files of its folder that it includes.

    Args:
        path: the folder or file.
        reading: how to read them.
        prefix: the prefix of the docnos of a folder's files.
        lasting: gets the macros of the folder.
    """
    only = "" if path.is_dir() else path_text(path.name)
    top = path.parent if only else path
    is_whole = not only or path.suffix.lower() == ".tex"
    listing = listed(top, None if only else reading.exclude) if is_whole else Listing([], [], [], [])
    if not (only or listing.files or listing.left_out or listing.unread):
        kinds = ", ".join(SUFFIXES)
        raise DocumentError(path_text(path), f"the folder has no notes. Name a folder with files of {kinds}")
    files = {path_text(file.relative_to(top).as_posix()): file for file in (*listing.files, *listing.styles)}
    files |= {only: path} if only else {}
    given = [top / name for name in MACRO_FILES if _text_if_any(top / name)]
    known, digest = read_macros(*given, *([Path(reading.macros)] if reading.macros else []))
    macros, texts = FolderMacros(), _Texts(files)
    for name in files:
        if name.lower().endswith(_DEFINING) and isinstance(text := texts.kept(name), str):
            macros.add(name, _definitions(text).macros)
    for name in _SETTINGS:
        macros.add(name, collected(_macros_of_settings(_text_if_any(top / name))).macros)
    macros.explain_unknown()
    lasting.update(macros.lasting() | known.macros)
    names = [name for name in files if name.lower().endswith((".tex", *STYLES))]
    latex = LatexFolder(names, texts.read, known, macros, only)
    options = options_digest(reading, digest)
    root, prefix = path_text(path.absolute()), "" if only else prefix
    blueprint = _Blueprint() if only or reading.whole_files else _blueprint(latex, files, texts)
    folder = _Folder(root, reading, known, macros, options, latex, prefix, blueprint)
    if only:
        for name in latex.members(only) or [only]:
            yield _entry(folder, name, files[name], texts)
    else:
        for name, file in files.items():
            if file.suffix.lower() in SUFFIXES:
                yield _entry(folder, name, file, texts)
        yield from listing.left_out
        yield from listing.unread


def _blueprint(latex: LatexFolder, files: Mapping[str, Path], texts: _Texts) -> _Blueprint:
    forms = {name: SUFFIXES.get(path.suffix.lower()) for name, path in files.items()}
    lean = [name for name, form in forms.items() if form == "lean"]
    named = {name: files[name] for name in latex.having("\\lean{") if forms[name] == "latex"} if lean else {}
    read = (texts.kept(name) for name in lean) if named else ()
    units = (unit for text in read if isinstance(text, str) for unit in lean_units(text, whole=False))
    return _Blueprint(named, frozenset(unit.fragment for unit in units))


class _Texts:
    """Reads each file of a folder once: one whose definitions were read is kept, packed, until its posts are."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = files
        self._kept: dict[str, bytes] = {}

    def kept(self, name: str) -> str | DocumentError:
        text = read_text(self._files[name])
        if isinstance(text, str):
            self._kept[name] = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
        return text

    def read(self, name: str) -> str | DocumentError:
        packed = self._kept.pop(name, None)
        return zlib.decompress(packed).decode("utf-8", "surrogatepass") if packed else read_text(self._files[name])


def _definitions(text: str) -> Definitions:
    """Return what a file defines, also in its front matter."""
    front = _macros_of_front_matter(text)
    return collected(front + cleaned(text)) if front or _DEFINES.search(text) else Definitions({}, {}, [])


def _macros_of_front_matter(text: str) -> str:
    front = FRONT_MATTER.match(text)
    return _macros_of_settings(front[1]) if front else ""


def _text_if_any(path: Path) -> str:
    """Return the text of a file that may be there; empty if it cannot be read, or is a link out of the folder."""
    text = read_text(path) if path.is_file() and not path.is_symlink() else ""
    return text if isinstance(text, str) else ""


def _macros_of_settings(text: str) -> str:
    r"""Write the macros of the settings of MathJax or KaTeX as ``\newcommand``."""
    macros = []
    for setting in _SETTING.finditer(cleaned(text)) if _HAS_MACROS.search(text) else ():
        body = (setting["body"] or setting["plain"] or "").replace("\\\\", "\\")
        count = max([int(number) for number in re.findall(r"#([1-9])", body)], default=0)
        if "\\" in body:
            macros.append(rf"\newcommand{{\{setting['name']}}}[{setting['count'] or count}]{{{body}}}")
    return "\n".join(macros)


def _entry(folder: _Folder, name: str, path: Path, texts: _Texts) -> SourceEntry:
    place, form = path_text(path), SUFFIXES[path.suffix.lower()]
    origin = Origin(folder.root, name, date=day_of(path))
    text = texts.read(name) if form != "latex" else folder.latex.errors.get(name) or folder.latex.digest(name)
    if isinstance(text, DocumentError):
        digest = 0 if isinstance(text, UnopenedFileError) else row_fingerprint({"fault": text.reason})
        return SourceEntry(place, folder.root, name, digest, partial(iter, [text]))
    if form == "latex":
        read: Callable[[], Iterable[Document | DocumentError]] = partial(_latex, folder, place, origin)
    else:
        by = _lean if form == "lean" else _notes if form in _NOTES else _plain
        read = partial(by, folder, place, origin, form, text)
    used = "" if form == "latex" else repr(sorted(folder.macros.used(text, name).items()))
    read_from = {"file": text, "options": folder.options, "macros": used}
    if form == "lean" and folder.blueprint.files:
        read_from["blueprint"] = repr([folder.latex.digest(each) for each in folder.blueprint.files])
    elif name in folder.blueprint.files:
        read_from["declared"] = repr(sorted(folder.blueprint.declared))
    digest = row_fingerprint(read_from)
    own = folder.latex.own_digest(name) if form == "latex" else text
    return SourceEntry(place, folder.root, name, digest, read, row_fingerprint({"file": own}))


Parts = tuple[list[MathPost], dict[str, str]]


def _latex(folder: _Folder, place: str, origin: Origin) -> Iterator[Document | DocumentError]:
    """Read the units of a file, except statements that are in the posts of declarations."""
    if origin.file not in folder.blueprint.files:
        return _statements(folder, place, origin)
    joined = {post.docno for post in _read_blueprint(folder).statements.values()}
    posts = folder.blueprint.posts[origin.file]
    return (post for post in posts if isinstance(post, DocumentError) or post.docno not in joined)


def _read_blueprint(folder: _Folder) -> _Blueprint:
    """Read the files of a blueprint, once."""
    blueprint = folder.blueprint
    for name, path in blueprint.files.items() if not blueprint.posts else ():
        place, origin = path_text(path), Origin(folder.root, name, date=day_of(path))
        entry = SourceEntry(place, folder.root, name, 0, partial(_statements, folder, place, origin))
        blueprint.posts[name] = list(entry.documents())
        for post in blueprint.posts[name]:
            if isinstance(post, Document):
                for declaration in blueprint.named(post):
                    blueprint.statements.setdefault(declaration, post)
    return blueprint


def _statements(folder: _Folder, place: str, origin: Origin) -> Iterator[Document | DocumentError]:
    document = folder.latex.document(origin.file)
    file = document.files[origin.file]
    if file.expanded.error:
        yield DocumentError(place, file.expanded.error)

    def plain(title: str) -> str:
        return read_latex_parts([title])[0][0]

    def read(parts: Sequence[str]) -> Parts:
        texts, problems = read_latex_parts(parts)
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
    in_front = collected(_macros_of_front_matter(text))
    defined = defined._replace(macros=in_front.macros | defined.macros)
    origin = origin._replace(date=notes.date or origin.date)
    yield from _documents(units, folder.prefix, place, origin, _of_markdown(folder, origin.file, defined, text))


def _of_markdown(folder: _Folder, file: str, defined: Definitions, text: str) -> Callable[[Sequence[str]], Parts]:
    """Make the reader of the parts of a file of Markdown."""
    expander = _expander(folder, file, defined, text)

    def read(parts: Sequence[str]) -> Parts:
        html, problems = read_markdown(*parts, expander=expander)
        bare = folder.reading.bare_formulas
        return [post_from_html(with_hidden(part), bare_formulas=bare) for part in html], problems

    return read


def _lean(folder: _Folder, place: str, origin: Origin, form: str, text: str) -> Iterator[Document | DocumentError]:
    """Read the declarations of a file, each with the statement of a blueprint that names it."""
    read = _of_markdown(folder, origin.file, Definitions({}, {}, []), text)
    statements = _read_blueprint(folder).statements
    if units := lean_units(text, whole=folder.reading.whole_files):  # none in a file that only imports
        for post in _documents(units, folder.prefix, place, origin, read):
            statement = statements.get(post.docno.partition("#")[2]) if isinstance(post, Document) else None
            yield _with_statement(post, statement) if statement and isinstance(post, Document) else post


def _with_statement(post: Document, statement: Document) -> Document:
    """Give a declaration the title and text of its statement."""
    html = (statement.title, post.html + with_hidden(statement.html), post.parent_title)
    read = [post_from_html(part) for part in html]
    title, body, above = (MathPost(of.text, tuple(PostFormula(each.latex) for each in of.formulas)) for of in read)
    return document_of(post.docno, title, body, above, post.origin)


def _expander(folder: _Folder, file: str, defined: Definitions, text: str) -> Expander:
    """Make the expander of a file's formulas."""
    known = folder.known
    both = Definitions({**known.macros, **defined.macros}, {**known.environments, **defined.environments}, [])
    return Expander(both, folder.macros.at(file), length=len(text))


def _plain(folder: _Folder, place: str, origin: Origin, form: str, text: str) -> Iterator[Document | DocumentError]:
    defined = collected(text) if form == "text" else Definitions({}, {}, [])
    expander = _expander(folder, origin.file, defined, text)
    spans = [(of.start, of.end, DEFINED) for of in defined.found]
    title, text = title_of_html(text) if form == "html" else ("", replaced(text, spans))
    by: Callable[..., MathPost] = post_from_html if form == "html" else post_from_text

    def read(parts: Sequence[str]) -> Parts:
        posts = [by(part, bare_formulas=folder.reading.bare_formulas) for part in parts]
        return [post.with_macros(expander.formula) for post in posts], expander.problems

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
    section = plain_text(_joined(sections))
    if not title.text:
        stem = origin.file.rpartition("/")[2].rpartition(".")[0]
        title = MathPost(" ".join(plain_text(sections.pop()).split()), ()) if sections else post_from_text(stem)
    origin = origin._replace(line=unit.line, section=section, kind=unit.kind)
    return document_of(docno, title, body, _joined(sections), origin)


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
