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
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .files import STYLES
from .latex_macros import Macro
from .latex_units import LatexDocument, LatexFile
from .post import DocumentError

_KEPT = 4  # documents that are split


class _Scanned(NamedTuple):
    """The scan of a file before it is split."""

    packed: bytes
    digest: str
    links: dict[int, tuple[str, str]]  # place to the file that is included there, or the fault
    styles: list[str]

    @property
    def text(self) -> str:
        return zlib.decompress(self.packed).decode("utf-8", "surrogatepass")


class LatexFolder:
    """The LaTeX files of a folder.

    Args:
        names: of all of them, in order, including packages and classes.
        read: reads a file, or returns why it cannot be read.
        everywhere: files whose definitions apply to all.
        known: macros that are defined elsewhere.
        only: the file to read, with the files that it includes; by default all.

    Attributes:
        errors: why files cannot be read.
    """

    def __init__(
        self,
        names: Sequence[str],
        read: Callable[[str], str | DocumentError],
        everywhere: Sequence[LatexFile],
        known: Mapping[str, Macro],
        only: str = "",
    ) -> None:
        self._everywhere, self._known = everywhere, known
        self.errors: dict[str, DocumentError] = {}
        self._files: dict[str, _Scanned] = {}
        there = frozenset(names)
        waiting = list(names if not only else {only} & there)
        for name in waiting:
            if name in self._files or name in self.errors:
                continue
            text = read(name)
            if isinstance(text, DocumentError):
                self.errors[name] = text
                continue
            file = self._files[name] = _scanned(name, text, there)
            waiting += [] if not only else [*file.styles, *(target for target, _ in file.links.values() if target)]
        self._digests: dict[str, str] = {}  # by root
        self._documents: dict[str, LatexDocument] = {}  # by root, most recently used last
        included = {target for file in self._files.values() for target, _ in file.links.values()}
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

    def own_digest(self, name: str) -> str:
        """Return a fingerprint of one file."""
        return self._files[name].digest

    def members(self, root: str) -> list[str]:
        """List the files of a document, itself first; nothing for one that cannot be read."""
        return [name for name in self._reachable(root) if not _is_style(name) and self._root[name] == root]

    def document(self, name: str) -> LatexDocument:
        """Split the document to which a file belongs; some are kept, as files of others may come in between."""
        root = self._root[name]
        document = self._documents.pop(root, None)
        if document is None:
            files = {each: LatexFile(self._files[each].text) for each in self._reachable(root)}
            links = {each: self._files[each].links for each in files}
            document = LatexDocument(self.members(root), files, links, self._everywhere, self._known)
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
            waiting += [target for target, _ in reversed(list(file.links.values())) if target]
            waiting += reversed(file.styles)


def _scanned(name: str, text: str, names: frozenset[str]) -> _Scanned:
    links: dict[int, tuple[str, str]] = {}
    styles: list[str] = []
    for place, target in LatexFile(text).included():
        if target.endswith((".sty", ".cls")):
            styles += filter(None, [_resolved(name, target, names)[0]])
        elif posixpath.splitext(target)[1] in ("", ".tex") or "." not in posixpath.basename(target)[-6:]:
            links[place] = _resolved(name, target if target.endswith(".tex") else f"{target}.tex", names)
        else:
            links[place] = ("", "")  # a drawing, a table of numbers
    return _Scanned(zlib.compress(text.encode("utf-8", "surrogatepass"), 1), _digest(text), links, styles)


def _is_style(name: str) -> bool:
    return name.lower().endswith(STYLES)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _resolved(name: str, target: str, names: frozenset[str]) -> tuple[str, str]:
    """Find the file at a path, from the folder of the including file up to the top, or the fault."""
    folders = [posixpath.dirname(name)]
    while folders[-1]:
        folders.append(posixpath.dirname(folders[-1]))
    paths = [posixpath.normpath(posixpath.join(folder, target)) for folder in folders]
    leaves = posixpath.isabs(target) or ":" in target or target.startswith("~")
    if not leaves and (found := next((path for path in paths if path in names), "")):
        return found, ""
    leaves = leaves or all(path.startswith("../") for path in paths)
    return "", f"{target} leaves the folder, and is not followed" if leaves else f"{target} is not a file of the folder"
