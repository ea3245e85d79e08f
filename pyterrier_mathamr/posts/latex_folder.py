r"""The LaTeX documents of a folder: which file includes which, and which document a file belongs to.

::

    book/main.tex ──\include{ch1}──▶ book/ch1.tex ──\input{defs}──▶ book/defs.tex
    slides.tex ─────\input{book/defs}─────────────────────────────────────┘     shared: its definitions count in both

A file belongs to one document: to the first that includes it, in the order of their paths; a file
that no other includes is a document. Only files in the folder are read, by their names in the folder, and each once:
its text stays in memory, packed, so that its digest is of the same text as its posts.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyterrier_mathamr._common.errors import first_five
from pyterrier_mathamr._common.feedback import explain_problem

from .files import STYLES
from .latex_document import cleaned
from .latex_units import LatexDocument
from .post import DocumentError
from .tex_expansion import Expander
from .tex_input import AT, NAME
from .tex_macros import Definitions, Macro

_KEPT = 4  # documents that are split


_INCLUDES = re.compile(r"\\(?:input|include|subfile|(?:sub)?import)(?![A-Za-z@])")
_INPUT = re.compile(
    r"\\(?P<input>input|include|subfile|subfileinclude)(?![A-Za-z@])"
    r"\s*+(?:\{(?P<file>[^{}\n#]{1,300})\}|(?P<bare>[\w./-]{1,300}))"
    r"|\\(?:sub)?import\*?\s*+\{(?P<folder>[^{}\n#]{0,300})\}\s*+\{(?P<imported>[^{}\n#]{1,300})\}"
    r"|\\(?P<style>usepackage|RequirePackage|documentclass)\s*+(?:\[[^\[\]]{0,1000}\]\s*+)?\{(?P<names>[^{}#]{1,1000})\}"
    r"|\\.|%[^\n]*",
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
        self._places: dict[str, dict[str, Macro | None]] = {}  # its definition by folder; none if they differ there
        self._at: dict[str, dict[str, Macro]] = {}

    def add(self, file: str, macros: Mapping[str, Macro]) -> None:
        """Add the macros of a file.

        Args:
            file: its name, for messages.
            macros: by name, without the backslash.
        """
        for name, macro in macros.items():
            places, place = self._places.setdefault(name, {}), posixpath.dirname(file)
            places[place] = macro if places.get(place, macro) == macro else None
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
                name: next((places[each] for each in above if each in places), None)
                for name, places in self._places.items()
                if name not in self.macros
            }
            self._at[folder] = self.macros | {name: macro for name, macro in nearest.items() if macro}
        return self._at[folder]

    def differing(self, text: str) -> list[tuple[str, dict[str, Macro | None]]]:
        """Return by folder the definitions of the commands of a text on which not all agree."""
        return [(name, self._places[name]) for name in sorted({*NAME.findall(text)} & {*self._places} - {*self.macros})]

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

    @property
    def text(self) -> str:
        return zlib.decompress(self.packed).decode("utf-8", "surrogatepass")


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
        self._names = there = frozenset(names)
        waiting = list(names if not only else {only} & there)
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
        self._documents: dict[str, LatexDocument] = {}  # by root, most recently used last
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
        return [name for name, file in self._files.items() if text in file.text]

    def own_digest(self, name: str) -> str:
        return _digest(self._files[name].text)

    def members(self, root: str) -> list[str]:
        """List the files of a document, itself first; nothing for one that cannot be read."""
        return [name for name in self._reachable(root) if not _is_style(name) and self._root[name] == root]

    def document(self, name: str) -> LatexDocument:
        """Split the document to which a file belongs; some are kept, as files of others may come in between."""
        root = self._root[name]
        document = self._documents.pop(root, None)
        if document is None:
            document = self._expanded(root)
        while len(self._documents) >= _KEPT:
            del self._documents[next(iter(self._documents))]
        self._documents[root] = document
        return document

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
        return cleaned(self._files[name].text)

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
        for match in _INPUT.finditer(text):
            if match["style"]:
                ending = ".cls" if match["style"] == "documentclass" else ".sty"
                targets += [each.strip() + ending for each in match["names"].split(",")]
            elif match["input"] or match["imported"]:
                target = match["file"] or match["bare"] or f"{match['folder']}/{match['imported']}".replace("//", "/")
                targets.append(Expander(self._known, used).text(target) if "\\" in target else target)
        files = dict.fromkeys(filter(None, (self._found(name, target.strip())[0] for target in targets)))
        inputs = [each for each in files if not _is_style(each)]
        packed = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)
        return _Scanned(
            packed,
            _digest(f"{text}{sorted(used.items())}{self._macros.differing(text)}"),
            inputs,
            [each for each in files if _is_style(each)],
        )


def _is_style(name: str) -> bool:
    return name.lower().endswith(STYLES)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
