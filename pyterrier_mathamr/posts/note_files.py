r"""Files of notes as entries of a source, each read into the documents of its units.

::

    folder ──files──▶ .tex ──────latex_units───────────────▶┐
                      .md ──────────────────────────────────┤
                      .rst .org .ipynb ──other_markups──▶ Markdown ──markdown──▶ units ──readers──▶ Document
                      .lean ─────────lean────────────────────────────────────▶ units of Markdown
                      .html .txt ────────────────────────────────────────────▶ one whole unit

The macros of a file, of the files that it includes, of ``macros.tex``, ``macros.sty`` or ``preamble.tex`` at the top of
the folder and of ``--macros`` apply to each of its units. The docno of a whole file is its path with its ending; that
of another unit has a fragment after it.

Which LaTeX file includes which, and which document a file belongs to::

    book/main.tex ──\include{ch1}──▶ book/ch1.tex ──\input{defs}──▶ book/defs.tex
    slides.tex ─────\input{book/defs}─────────────────────────────────────┘     shared: its definitions count in both

A file belongs to one document: to the first that includes it, in the order of their paths; a file that no other
includes is a document. Only files in the folder are read, by their names in the folder, and each once: its text stays
in memory, packed, so that its digest is of the same text as its posts.

A statement of a blueprint that names declarations of the folder (``\lean{Foo.bar}``) is no post of its own: its title
and its text are in the posts of the declarations.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr._common.errors import MathAMRError, first_five
from pyterrier_mathamr._common.feedback import explain_problem, report_problem
from pyterrier_mathamr._common.ids import valid_id
from pyterrier_mathamr.store import row_fingerprint

from .files import STYLES, SUFFIXES, Listing, UnopenedFileError, day_of, listed, path_text, read_text
from .html import title_of_html
from .latex_document import UNCLOSED, cleaned, read_latex_parts
from .latex_units import INPUT, LatexDocument
from .lean import lean_units
from .markdown import FRONT_MATTER, markdown_units, notes_of, read_markdown
from .math_spans import replaced, source_texts, with_hidden
from .other_markups import notes_of_notebook, notes_of_org, notes_of_rst
from .post import (
    LONGEST_ID,
    LONGEST_POST,
    PLACEHOLDER,
    Document,
    DocumentError,
    MathPost,
    Origin,
    PostFormula,
    ReadingOptions,
    SourceEntry,
    document_of,
    is_empty,
    placeholder,
    plain_text,
)
from .reading import post_from_html, post_from_text, report_unclosed
from .statements import Unit
from .tex_expansion import Expander, collected
from .tex_macros import AT, DEFINED, NAME, Definitions, Macro

_KEPT = 4  # documents that are split


_INCLUDES = re.compile(r"\\(?:input|include|subfile|(?:sub)?import)(?![A-Za-z@])")
_FILES = re.compile(
    rf"{INPUT}|\\(?P<style>usepackage|RequirePackage|documentclass)\s*+(?:\[[^\[\]]{{0,1000}}\]\s*+)?"
    r"\{(?P<names>[^{}#]{1,1000})\}|\\.|%[^\n]*",
    re.DOTALL,
)


class FolderMacros:
    """The macros that the files of a folder define, for commands that a file does not define itself.

    Attributes:
        macros: the ones on which all definitions agree.
    """

    def __init__(self) -> None:
        self.macros: dict[str, Macro] = {}
        self._files: dict[str, list[str]] = {}  # in which each command is defined
        self._by_folder: dict[str, dict[str, Macro | None]] = {}  # its definition by folder; none if they differ there
        self._at: dict[str, dict[str, Macro]] = {}

    def add(self, file: str, macros: Mapping[str, Macro]) -> None:
        """Add the macros of a file.

        Args:
            file: its name, for messages.
            macros: by name, without the backslash.
        """
        for name, macro in macros.items():
            by_folder, folder = self._by_folder.setdefault(name, {}), posixpath.dirname(file)
            by_folder[folder] = macro if by_folder.get(folder, macro) == macro else None
            files = self._files.setdefault(name, [])
            if not files:
                self.macros[name] = macro
            elif self.macros.get(name) != macro:
                self.macros.pop(name, None)
            files.append(file)

    def at(self, file: str) -> dict[str, Macro]:
        """Return the macros for a file: where definitions differ, the one in the nearest folder around it."""
        folder = posixpath.dirname(file)
        if folder not in self._at:
            parts = folder.split("/")
            above = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)] + [""]
            nearest = {
                name: next((by_folder[each] for each in above if each in by_folder), None)
                for name, by_folder in self._by_folder.items()
                if name not in self.macros
            }
            self._at[folder] = self.macros | {name: macro for name, macro in nearest.items() if macro}
        return self._at[folder]

    def differing(self, text: str) -> list[tuple[str, dict[str, Macro | None]]]:
        """Return by folder the definitions of the commands of a text on which not all agree."""
        names = {*NAME.findall(text)} & {*self._by_folder} - {*self.macros}
        return [(name, self._by_folder[name]) for name in sorted(names)]

    def explain_unknown(self) -> None:
        """Tell a warning of unknown commands where those are defined whose definitions differ."""
        for name, files in self._files.items():
            if name not in self.macros:
                explain_problem(rf"the command \{name} is unknown", f"defined differently in {first_five(files)}")

    def formula(self, latex: str) -> str:
        """Write out the macros in a formula that belongs to no file, such as a query."""
        return Expander(None, self.macros).formula(latex)

    def lasting(self) -> dict[str, Macro]:
        """Return the macros that a person may type, and those that they use in turn."""
        return self.used(" ".join(f"\\{name}" for name in self.macros if AT not in name))

    def used(self, text: str, file: str = "") -> dict[str, Macro]:
        """Return the macros whose names a text has, and those that they use in turn.

        Args:
            text: in which names are searched.
            file: the file whose macros they are, see :meth:`at`; by default those on which all definitions agree.
        """
        macros = self.at(file) if file else self.macros
        used: dict[str, Macro] = {}
        waiting = [text]
        while waiting:
            for name in dict.fromkeys(NAME.findall(waiting.pop())):
                if name in macros and name not in used:
                    used[name] = macros[name]
                    waiting += [piece for piece in used[name].body if isinstance(piece, str)]
        return used


class _Scanned(NamedTuple):
    """The scan of a file before it is split."""

    packed: bytes
    digest: str
    inputs: list[str]  # the files that it includes
    styles: list[str]


class LatexFolder:
    """The LaTeX files of a folder.

    Args:
        names: of all of them, in order, including packages and classes.
        read: reads a file, or returns why it cannot be read.
        known: definitions that apply to all.
        macros: of the folder.
        only: the file to read, with the files that it includes; by default all.

    Attributes:
        errors: why files cannot be read.
    """

    def __init__(
        self,
        names: Sequence[str],
        read: Callable[[str], str | DocumentError],
        known: Definitions,
        macros: FolderMacros,
        only: str = "",
    ) -> None:
        self._known, self._macros = known, macros
        self.errors: dict[str, DocumentError] = {}
        self._files: dict[str, _Scanned] = {}
        self._names = frozenset(names)
        waiting = [name for name in names if not only or name == only]
        for name in waiting:
            if name in self._files or name in self.errors:
                continue
            text = read(name)
            if isinstance(text, DocumentError):
                self.errors[name] = text
                continue
            file = self._files[name] = self._scanned(name, text)
            waiting += [] if not only else [*file.styles, *file.inputs]
        self._digests: dict[str, str] = {}  # by root
        self._document = lru_cache(_KEPT)(self._expanded)  # files of other documents may come in between
        included = {target for file in self._files.values() for target in file.inputs}
        self._root: dict[str, str] = {}
        for root in sorted(self._files, key=lambda name: name in included):
            if root not in self._root:
                self._root.update({name: root for name in self._reachable(root) if name not in self._root})

    def digest(self, name: str) -> str:
        """Return a fingerprint of all files on which the units of one depend."""
        root = self._root[name]
        if root not in self._digests:
            texts = "".join(f"{each}\0{self._files[each].digest}\0" for each in self._reachable(root))
            self._digests[root] = _digest(f"{root}\0{texts}")
        return _digest(f"{name}\0{self._digests[root]}")

    def having(self, text: str) -> list[str]:
        return [name for name, file in self._files.items() if text in _unpacked(file.packed)]

    def own_digest(self, name: str) -> str:
        return _digest(_unpacked(self._files[name].packed))

    def members(self, root: str) -> list[str]:
        """List the files of a document, itself first; nothing for one that cannot be read."""
        return [name for name in self._reachable(root) if not _is_style(name) and self._root[name] == root]

    def document(self, name: str) -> LatexDocument:
        """Split the document to which a file belongs."""
        return self._document(self._root[name])

    def _reachable(self, root: str) -> Iterator[str]:
        """Iterate over a file and the files that it includes, also by way of others, in reading order."""
        seen: set[str] = set()
        waiting = [root]
        while waiting:
            name = waiting.pop()
            if name in seen or name not in self._files:
                continue
            seen.add(name)
            yield name
            file = self._files[name]
            waiting += reversed(file.inputs)
            waiting += reversed(file.styles)

    def _expanded(self, root: str) -> LatexDocument:
        """Expand a document in the order in which TeX reads it; what it never reads, after that."""
        reachable = dict.fromkeys(self._reachable(root))

        def include(file: str, target: str) -> tuple[str, str | None, str]:
            name, problem = self._found(file, target)
            return name, self._text(name) if name in reachable else None, problem

        expander = Expander(self._known, self._macros.at(root), include)
        for name in (root, *sorted(reachable, key=lambda name: not _is_style(name))):
            if name not in expander.files:
                expander.read(name, self._text(name), style=_is_style(name))
        return LatexDocument(self.members(root), expander, self._known.found)

    def _text(self, name: str) -> str:
        return cleaned(_unpacked(self._files[name].packed))

    def _found(self, file: str, target: str) -> tuple[str, str]:
        """Find the file that another one names, or the fault; neither for one of another kind.

        It is looked for from the folder of the including file up to the top.
        """
        if not target.endswith(STYLES):
            if posixpath.splitext(target)[1] not in ("", ".tex") and "." in posixpath.basename(target)[-6:]:
                return "", ""  # a drawing, a table of numbers
            target = target if target.endswith(".tex") else f"{target}.tex"
        folders = [posixpath.dirname(file)]
        while folders[-1]:
            folders.append(posixpath.dirname(folders[-1]))
        paths = [posixpath.normpath(posixpath.join(folder, target)) for folder in folders]
        leaves = posixpath.isabs(target) or ":" in target or target.startswith("~")
        name = "" if leaves else next((path for path in paths if path in self._names), "")
        if name or target.endswith(STYLES):
            return name, ""
        if leaves or all(path.startswith("../") for path in paths):
            return "", f"{target} leaves the folder, and is not followed"
        return "", f"{target} is not a file of the folder"

    def _scanned(self, name: str, text: str) -> _Scanned:
        """Find the files that a file includes; it is expanded for that only if macros name them."""
        used = self._macros.used(text, name)
        targets: list[str] = []
        bodies = [piece for macro in used.values() for piece in macro.body if isinstance(piece, str)]
        if any(_INCLUDES.search(body) for body in bodies):

            def include(file: str, target: str) -> tuple[str, None, str]:
                targets.append(target)
                return "", None, ""

            Expander(self._known, self._macros.at(name), include).read(name, cleaned(text), style=_is_style(name))
        for match in _FILES.finditer(text):
            if match["style"]:
                ending = ".cls" if match["style"] == "documentclass" else ".sty"
                targets += [each.strip() + ending for each in match["names"].split(",")]
            elif match["input"] or match["imported"]:
                target = match["file"] or match["bare"] or f"{match['folder']}/{match['imported']}".replace("//", "/")
                targets.append(Expander(self._known, used).text(target) if "\\" in target else target)
        files = dict.fromkeys(filter(None, (self._found(name, target.strip())[0] for target in targets)))
        inputs = [each for each in files if not _is_style(each)]
        return _Scanned(
            _packed(text),
            _digest(f"{text}{sorted(used.items())}{self._macros.differing(text)}"),
            inputs,
            [each for each in files if _is_style(each)],
        )


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


def _unpacked(packed: bytes) -> str:
    return zlib.decompress(packed).decode("utf-8", "surrogatepass")


def _is_style(name: str) -> bool:
    return name.lower().endswith(STYLES)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# ---- files of notes

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
_NOTES = {"markdown": notes_of, "notebook": notes_of_notebook, "rst": notes_of_rst, "org": notes_of_org}
Parts = tuple[list[MathPost], dict[str, str]]
"""What is read of the parts of a file, and the faults by place."""
_Results = Iterator[Document | DocumentError]


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

    The docnos of a folder's files get the ``prefix``; ``lasting`` gets the macros of the folder.
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
    folder = _NoteFolder(path_text(path.absolute()), top, files, reading, "" if only else prefix, only)
    lasting.update(folder.macros.lasting() | folder.known.macros)
    if only:
        names = folder.latex.members(only) or [only]
    else:
        names = [name for name, file in files.items() if file.suffix.lower() in SUFFIXES]
    yield from map(folder.entry, names)
    if not only:
        yield from listing.left_out
        yield from listing.unread


class _NoteFolder:
    """The files of a folder by name, read with the macros of all; or ``only`` one, and the files that it includes."""

    def __init__(
        self, root: str, top: Path, files: Mapping[str, Path], reading: ReadingOptions, prefix: str, only: str
    ) -> None:
        self.root, self.files, self.reading, self.prefix = root, files, reading, prefix
        self._packed: dict[str, bytes] = {}  # the texts whose definitions were read, until their posts are
        given = [top / name for name in MACRO_FILES if _text_if_any(top / name)]
        self.known, digest = read_macros(*given, *([Path(reading.macros)] if reading.macros else []))
        self.options = options_digest(reading, digest)
        self.macros = FolderMacros()
        for name in files:
            if name.lower().endswith(_DEFINING) and isinstance(text := self._kept(name), str):
                front = _macros_of_front_matter(text)
                if front or _DEFINES.search(text):
                    self.macros.add(name, collected(front + cleaned(text)).macros)
        for name in _SETTINGS:
            self.macros.add(name, collected(_macros_of_settings(_text_if_any(top / name))).macros)
        self.macros.explain_unknown()
        names = [name for name in files if name.lower().endswith((".tex", *STYLES))]
        self.latex = LatexFolder(names, self._text, self.known, self.macros, only)
        forms = {name: SUFFIXES.get(path.suffix.lower()) for name, path in files.items()}
        lean = [name for name, form in forms.items() if form == "lean"] if not (only or reading.whole_files) else []
        blueprint = [name for name in self.latex.having("\\lean{") if forms[name] == "latex"] if lean else []
        texts = (text for text in map(self._kept, lean if blueprint else ()) if isinstance(text, str))
        self._blueprint = blueprint  # files of LaTeX whose statements name declarations
        self._declared = frozenset(unit.fragment for text in texts for unit in lean_units(text, whole=False))
        self._blueprint_posts: dict[str, list[Document | DocumentError]] = {}  # by file, once all were read
        self._statements_of: dict[str, Document] = {}  # by declaration, likewise

    def _kept(self, name: str) -> str | DocumentError:
        """Read a file, and keep its text packed until it is read again."""
        text = read_text(self.files[name])
        if isinstance(text, str):
            self._packed[name] = _packed(text)
        return text

    def _text(self, name: str) -> str | DocumentError:
        packed = self._packed.pop(name, None)
        return _unpacked(packed) if packed else read_text(self.files[name])

    def entry(self, name: str) -> SourceEntry:
        path = self.files[name]
        place, form = path_text(path), SUFFIXES[path.suffix.lower()]
        text = self._text(name) if form != "latex" else self.latex.errors.get(name) or self.latex.digest(name)
        if isinstance(text, DocumentError):
            digest = 0 if isinstance(text, UnopenedFileError) else row_fingerprint({"fault": text.reason})
            return SourceEntry(place, self.root, name, digest, partial(iter, [text]))
        used = "" if form == "latex" else repr(sorted(self.macros.used(text, name).items()))
        read_from = {"file": text, "options": self.options, "macros": used}
        if form == "lean" and self._blueprint:
            read_from["blueprint"] = repr([self.latex.digest(file) for file in self._blueprint])
        elif name in self._blueprint:
            read_from["declared"] = repr(sorted(self._declared))
        origin = Origin(self.root, name, date=day_of(path))
        read: Callable[[], Iterable[Document | DocumentError]] = partial(self._latex, place, origin)
        if form != "latex":
            reader = self._lean if form == "lean" else self._notes if form in _NOTES else self._plain
            read = partial(reader, place, origin, form, text)
        content = row_fingerprint({"file": self.latex.own_digest(name) if form == "latex" else text})
        return SourceEntry(place, self.root, name, row_fingerprint(read_from), read, content)

    def _latex(self, place: str, origin: Origin) -> _Results:
        """Read the units of a file, except statements that are in the posts of declarations."""
        if origin.file not in self._blueprint:
            return self._statements(place, origin)
        joined = {post.docno for post in self._statements_by_declaration().values()}
        posts = self._blueprint_posts[origin.file]
        return (post for post in posts if isinstance(post, DocumentError) or post.docno not in joined)

    def _statements_by_declaration(self) -> Mapping[str, Document]:
        """Read the files of the blueprint, once."""
        for name in self._blueprint if not self._blueprint_posts else ():
            place, origin = path_text(self.files[name]), Origin(self.root, name, date=day_of(self.files[name]))
            entry = SourceEntry(place, self.root, name, 0, partial(self._statements, place, origin))
            self._blueprint_posts[name] = list(entry.documents())
            for post in self._blueprint_posts[name]:
                sources = source_texts(post.html) if isinstance(post, Document) else []
                for source in (source for source in sources if not source.startswith("\\")):
                    for declaration in map(str.strip, source.split(",")):
                        if declaration in self._declared and isinstance(post, Document):
                            self._statements_of.setdefault(declaration, post)
        return self._statements_of

    def _statements(self, place: str, origin: Origin) -> _Results:
        document = self.latex.document(origin.file)
        file = document.files[origin.file]
        if file.expanded.error:
            yield DocumentError(place, file.expanded.error)

        def read(parts: Sequence[str]) -> Parts:
            texts, problems = read_latex_parts(parts)
            if file.is_balanced:
                problems.pop(UNCLOSED, None)  # a group that units divide
            return [post_from_text(text, bare_formulas=self.reading.bare_formulas) for text in texts], problems

        if origin.file in MACRO_FILES and r"\begin{document}" not in file.text:
            return
        units = document.units(origin.file, lambda title: read_latex_parts([title])[0][0], self.reading.whole_files)
        if units or not (file.expanded.definitions or origin.file != document.root):
            yield from self._documents(units, place, origin, read)

    def _notes(self, place: str, origin: Origin, form: str, text: str) -> _Results:
        notes = _NOTES[form](text)
        units, defined = markdown_units(origin.file, notes, whole=self.reading.whole_files)
        in_front = collected(_macros_of_front_matter(text))
        defined = defined._replace(macros=in_front.macros | defined.macros)
        origin = origin._replace(date=notes.date or origin.date)
        yield from self._documents(units, place, origin, self._reader_of_markdown(origin.file, defined, text))

    def _reader_of_markdown(self, file: str, defined: Definitions, text: str) -> Callable[[Sequence[str]], Parts]:
        expander = self._expander(file, defined, text)

        def read(parts: Sequence[str]) -> Parts:
            html, problems = read_markdown(*parts, expander=expander)
            bare = self.reading.bare_formulas
            return [post_from_html(with_hidden(part), bare_formulas=bare) for part in html], problems

        return read

    def _lean(self, place: str, origin: Origin, form: str, text: str) -> _Results:
        """Read the declarations of a file, each with the title and text of the statement that names it, if any."""
        read = self._reader_of_markdown(origin.file, Definitions({}, {}, []), text)
        statements = self._statements_by_declaration()
        units = lean_units(text, whole=self.reading.whole_files)
        for post in self._documents(units, place, origin, read) if units else ():  # none in a file that only imports
            statement = statements.get(post.docno.partition("#")[2]) if isinstance(post, Document) else None
            if statement and isinstance(post, Document):
                html = (statement.title, post.html + with_hidden(statement.html), post.parent_title)
                title, body, above = (
                    replace(part, formulas=tuple(PostFormula(formula.latex) for formula in part.formulas))
                    for part in map(post_from_html, html)
                )
                post = document_of(post.docno, title, body, above, post.origin)
            yield post

    def _expander(self, file: str, defined: Definitions, text: str) -> Expander:
        macros, environments = self.known.macros | defined.macros, self.known.environments | defined.environments
        return Expander(Definitions(macros, environments, []), self.macros.at(file), length=len(text))

    def _plain(self, place: str, origin: Origin, form: str, text: str) -> _Results:
        defined = collected(text) if form == "text" else Definitions({}, {}, [])
        expander = self._expander(origin.file, defined, text)
        spans = [(of.start, of.end, DEFINED) for of in defined.found]
        title, text = title_of_html(text) if form == "html" else ("", replaced(text, spans))
        post_from: Callable[..., MathPost] = post_from_html if form == "html" else post_from_text

        def read(parts: Sequence[str]) -> Parts:
            posts = [post_from(part, bare_formulas=self.reading.bare_formulas) for part in parts]
            return [post.with_macros(expander.formula) for post in posts], expander.problems

        yield from self._documents([Unit("", title, text, "file")], place, origin, read)

    def _documents(
        self, units: Sequence[Unit], place: str, origin: Origin, read: Callable[[Sequence[str]], Parts]
    ) -> _Results:
        is_empty_file = True
        for unit in units:
            try:
                document = self._document(unit, origin, read)
            except MathAMRError as error:
                where = f"{place}, line {unit.line}" if unit.line else place
                reason = error.reason if isinstance(error, DocumentError) else str(error).rstrip(".")
                yield DocumentError(where, reason)
                is_empty_file = False
                continue
            if document is not None:
                is_empty_file = False
                yield document
        if is_empty_file:
            yield DocumentError(place, "the file has neither a word nor a formula")

    def _document(self, unit: Unit, origin: Origin, read: Callable[[Sequence[str]], Parts]) -> Document | None:
        """Read a unit; nothing if it has no text."""
        docno = valid_id(f"{self.prefix}{origin.file}" + (f"#{unit.fragment}" if unit.fragment else ""), "")
        if len(docno) > LONGEST_ID:
            raise DocumentError(
                "", f"its docno {docno[:40]!r}… has {len(docno):,} characters, more than {LONGEST_ID:,}"
            )
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
