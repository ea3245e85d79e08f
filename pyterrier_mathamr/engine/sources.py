r"""The sources of an engine: how they differ from its posts, how they are read, and when their files change.

::

    sources ──entries──▶ same name, same content        unchanged: neither parsed nor encoded again
                         same name, other content  ┐    parsed: a post whose text is the same is kept, and its place
                         unknown name              ┘    in the file is stored again; others are removed and indexed
                         deleted by the user, same content      left out until it changes
            no entry ◀── a name that the engine knows   deleted, as are the posts of a file without a readable text

A report reads all of them once more, and has counts for each format, and every fault with its place::

    format      files  posts  formulas  partial  unreadable
    markdown      113    964     4,310      577           2

    the command \bb is unknown (defined differently in a.sty, b.sty), in 577 places of 113 files, first 'a.md': “\bb R”
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr._common.errors import first_five, require
from pyterrier_mathamr._common.feedback import Problems, gathered, progress, report_problem
from pyterrier_mathamr.formula import definitions, report_unknown_commands, trees_of_posts
from pyterrier_mathamr.posts import (
    Document,
    DocumentError,
    ReadingOptions,
    Source,
    SourceEntry,
    SourceMacros,
    accepted_posts,
    distinct_posts,
    document_post,
    source_entries,
    source_root,
    warn_of_left_out,
)
from pyterrier_mathamr.posts.files import LINES, SUFFIXES, UnopenedFileError

from .generations import EngineRecord
from .origins import file_of
from .posts import PostStore, name_fingerprint, root_fingerprint

NamedSource = tuple[Source, str]
"""A source, and the prefix of the docnos of its posts."""

_QUIET, _LONGEST_WAIT = 0.5, 10.0  # seconds: changed files are left alone so long before they are read, at most
_CHECKED = 1_000  # milliseconds between two looks at whether a folder was replaced
_COLUMNS = ("files", "posts", "formulas", "partial", "unreadable")


class Update(NamedTuple):
    """The outcome of an update: numbers of files, or of records."""

    new: int
    changed: int
    deleted: int
    unchanged: int
    unreadable: tuple[str, ...] = ()  # files among the deleted ones that are empty now, or cannot be read as text

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in zip(self._fields, self[:4], strict=False))
        return counts + (f" (no readable text in {first_five(self.unreadable)})" if self.unreadable else "")


class Changes(NamedTuple):
    """How the posts of an engine differ from its sources."""

    counts: Update
    removed: list[str]  # docnos that are in no source any more, or whose text has changed
    moved: list[str]  # docnos of posts with the same text in another file or place
    written: list[str]  # docnos of posts that are new or have changed


def named_sources(
    posts: Source | Sequence[str | Path], known: Mapping[str, str]
) -> tuple[list[NamedSource], dict[str, str]]:
    """Choose the docno prefix of each source: empty for a single folder, else the folder's name; known ones are kept.

    Returns:
        The sources; and the prefix of each folder and file, the known ones first, without those that have moved.
    """
    several = isinstance(posts, list | tuple) and posts and all(isinstance(each, str | Path) for each in posts)
    sources: list[Source] = list(posts) if several else [posts]  # type: ignore[list-item, arg-type]
    prefixes = dict(known)
    paths = [Path(source) for source in sources if isinstance(source, str | Path)]
    for path in paths:
        root, name = source_root(path), path.absolute().name
        if root in prefixes:
            continue
        if moved := next((old for old in known if Path(old).name == name and not Path(old).exists()), None):
            prefixes[root] = prefixes.pop(moved)
            continue
        prefix = "" if (len(paths) == 1 and not known) or not path.is_dir() else f"{name}/"
        if prefix and prefix in prefixes.values():
            reason = f"two sources have the name {name}, with which docnos begin; rename one of them"
            raise DocumentError(root, reason)
        prefixes[root] = prefix
    return [(source, prefixes.get(source_root(source), "")) for source in sources], prefixes


def read_changes(
    stored: PostStore,
    sources: Sequence[NamedSource],
    gone: Sequence[str],
    tombstones: Mapping[str, Sequence[int]],
    incoming: PostStore,
    *,
    reading: ReadingOptions,
    macros: SourceMacros,
    verbose: bool,
) -> Changes:
    """Compare ``sources`` with the ``stored`` posts of an engine, and read what has changed to the store ``incoming``.

    Posts of other sources stay, unless the source is in ``gone``, the old paths of sources that were moved. ``macros``
    receives the macros of each source. A warning names posts that cannot be read, and those whose docno already
    belongs to a post of another file.
    """
    rows = stored.rows()
    row_of = {docno: row for row, docno in enumerate(rows.docnos)}
    digests = dict(zip(rows.entries.tolist(), rows.digests.tolist(), strict=True))
    seen: set[int] = set()
    changed: set[int] = set()  # entries with posts in the engine that were read again
    new: set[int] = set()
    unreadable: dict[int, str] = {}  # changed entries that have no posts any more, and their places
    errors: list[DocumentError] = []

    def entries() -> Iterator[tuple[str, SourceEntry]]:
        for source, prefix in sources:
            for entry in source_entries(source, reading, prefix, macros):
                if isinstance(entry, DocumentError):
                    errors.append(entry)
                else:
                    yield prefix, entry

    def read() -> Iterator[tuple[str, Document | DocumentError]]:
        for prefix, entry in progress(entries(), "comparing", "files", verbose=verbose):
            name = entry.fingerprint
            known = name in digests
            if name in seen:
                yield entry.place, DocumentError(entry.place, f"the id {entry.key!r:.80} is in the sources twice")
                continue
            seen.add(name)
            tombstone = () if known else tombstones.get(tombstone_name(f"{prefix}{entry.key}"), ())
            if entry.digest == digests.get(name) or entry.digest in tombstone or entry.content in tombstone:
                continue
            if known and entry.digest:
                changed.add(name)
                unreadable[name] = entry.place
            for document in entry.documents():
                if isinstance(document, Document):
                    unreadable.pop(name, None)
                    if not known:
                        new.add(name)
                yield entry.place, document

    def readable() -> Iterator[Document]:
        for _, document in distinct_posts(read()):
            if isinstance(document, DocumentError):
                errors.append(document)
            else:
                yield document

    incoming.write(readable(), "create")
    followed = {root_fingerprint(root) for root in [*gone, *(source_root(source) for source, _ in sources)] if root}
    of_posts = zip(rows.entries.tolist(), rows.roots.tolist(), strict=True)
    deleted = {entry for entry, root in of_posts if root in followed and entry not in seen}
    if closed := tuple(f"{Path(fault.place).absolute()}/" for fault in errors if isinstance(fault, UnopenedFileError)):
        absent = stored.get_many([docno for docno, row in row_of.items() if int(rows.entries[row]) in deleted])
        deleted -= {post.entry for post in absent if f"{post.origin.root}/{post.origin.file}".startswith(closed)}
    replaced = {docno: row for docno, row in row_of.items() if int(rows.entries[row]) in changed | deleted}
    moved: list[str] = []
    written: list[str] = []
    for docno, fingerprint in zip(incoming.snapshot(), incoming.rows().sources.tolist(), strict=True):
        row = row_of.get(docno)
        if row is None:
            written.append(docno)
        elif docno in replaced:
            (moved if int(rows.sources[row]) == fingerprint else written).append(docno)
        else:  # a post of another file has this docno
            [post], [owner] = incoming.get_many([docno]), stored.get_many([docno])
            place, other = ("/".join(filter(None, each.origin[:2])) for each in (post, owner))
            reason = f"the id {docno!r:.80} is also the id of {other}; rename one of the two"
            errors.append(DocumentError(place, reason))
    warn_of_left_out(errors, "files or posts")
    kept = set(moved)
    counts = Update(
        len(new),
        len(changed) - len(unreadable),
        len(deleted) + len(unreadable),
        len(seen & digests.keys()) - len(changed),
        tuple(unreadable.values()),
    )
    return Changes(counts, [docno for docno in replaced if docno not in kept], moved, written)


def read_posts(
    sources: Sequence[NamedSource], reading: ReadingOptions, macros: SourceMacros, verbose: bool
) -> Iterator[Document]:
    """Read the posts of sources that can be read, and their macros."""
    for source, prefix in sources:
        yield from accepted_posts(source, reading, prefix, macros, verbose=verbose)


def tombstones_of(record: EngineRecord, posts: PostStore, deleted: Sequence[str]) -> dict[str, list[int]]:
    """Return the files and records of which no post is left, so that updates leave them out until they change.

    They are the hash of each name, which may be a deleted text itself, with the digest that it was indexed with and, if
    the file has not changed since, the fingerprint of only its own content, as other files of its document may change.
    """
    rows, gone = posts.rows(), set(deleted)
    kept = {entry for docno, entry in zip(rows.docnos, rows.entries.tolist(), strict=True) if docno not in gone}
    lost = [post for post in posts.get_many(deleted) if post.origin.root and post.entry not in kept]
    tombstones = {
        tombstone_name(file_of(post.docno) if post.origin.kind else post.docno): [post.digest] for post in lost
    }
    for root in {post.origin.root for post in lost}:
        prefix = record.sources.get(root, "")
        with suppress(DocumentError):  # the source is gone
            for entry in source_entries(root, record.options.reading, prefix):
                if isinstance(entry, SourceEntry):
                    name = tombstone_name(prefix + entry.key)
                    if tombstones.get(name) == [entry.digest]:
                        tombstones[name].append(entry.content)
    return tombstones


def without_tombstones(tombstones: Mapping[str, Sequence[int]], written: Sequence[str]) -> dict[str, Sequence[int]]:
    """Drop the tombstones of files and records whose posts are written again."""
    back = {tombstone_name(name) for docno in written for name in (docno, file_of(docno))}
    return {name: digests for name, digests in tombstones.items() if name not in back}


def tombstone_name(name: str) -> str:
    return f"{name_fingerprint(name):016x}"


class ReadingReport(NamedTuple):
    """How an engine reads its sources."""

    # of each format the number of files or records, posts and formulas; and how many formulas are partial, with a part
    # that is not understood, or unreadable
    formats: dict[str, Counter[str]]
    problems: Problems  # everything that could not be read, with its place

    def __str__(self) -> str:
        rows = [["format", *_COLUMNS]]
        rows += [
            [name, *(f"{counts[column]:,}" for column in _COLUMNS)] for name, counts in sorted(self.formats.items())
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            f"{name:{widths[0]}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
            for name, *cells in rows
        ]
        return "\n".join([*table, "", *(self.problems.causes() or ["Everything could be read."])])


def report_of(record: EngineRecord, posts: PostStore, *, verbose: bool) -> ReadingReport:
    """Read the files of an engine, as they are now, and its records once more, without changing it."""
    formats: dict[str, Counter[str]] = {}

    def entries() -> Iterator[tuple[str, Iterator[Document | DocumentError]]]:
        """Yield the format of each file or record, and its posts."""
        for root, prefix in record.sources.items():
            try:
                for entry in source_entries(root, record.options.reading, prefix):
                    if isinstance(entry, DocumentError):
                        report_problem(entry.place, entry.reason, "")
                    else:
                        suffix = "" if root.endswith(LINES) else Path(entry.key).suffix.lower()
                        yield SUFFIXES.get(suffix, "records"), entry.documents()
            except DocumentError as error:
                report_problem(error.place, error.reason, "")
        yield from (("records", iter([document])) for document in posts if not document.origin.root)

    with gathered() as problems:
        for form, documents in progress(entries(), "reading", "files", verbose=verbose):
            counts = formats.setdefault(form, Counter())
            counts["files"] += 1
            for document in documents:
                if isinstance(document, DocumentError):
                    report_problem(document.place, document.reason, "")
                else:
                    counts += counts_of(document)
    return ReadingReport(formats, problems)


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


def watch(sources: Sequence[str | Path], ignored: Path, update: Callable[[], object]) -> None:
    """Call a function once, and then whenever files of the sources have changed, until the process is interrupted.

    A folder that is replaced by another one of its name is watched on; one that is gone is waited for. Changes while
    ``update`` runs are noticed afterwards; changes in ``ignored``, the engine's own folder, never are.

    Raises:
        MissingExtraError: the extra ``watch`` is not installed. DocumentError: a source is not there, or the system
            does not watch it.
    """
    watchfiles = require("watchfiles", "watch")
    paths = [Path(source).absolute() for source in sources]
    for path in paths:
        if not path.exists():
            raise DocumentError(str(path), "no such folder or file")
    paths = [path.parent if path.suffix == ".tex" and path.is_file() else path for path in paths]  # it includes others
    engine = ignored.resolve()

    def concerns(_: object, name: str) -> bool:
        """Whether a change may be one of notes; hidden files, such as the locks of an engine, are none."""
        changed = Path(name)
        below = [changed.relative_to(path).parts for path in paths if changed.is_relative_to(path)]
        is_visible = any(not any(part.startswith(".") for part in parts) for parts in below)
        return is_visible and not changed.resolve().is_relative_to(engine)

    folders = sorted({path if path.is_dir() else path.parent for path in paths})  # editors replace whole files
    while True:
        watched, began = list(map(_identity, folders)), False
        try:
            options = {"watch_filter": concerns, "rust_timeout": _CHECKED, "yield_on_timeout": True}
            for changes in watchfiles.watch(*folders, **options):
                changed = [Path(name) for _, name in changes]
                _let_settle(changed)
                same = list(map(_identity, folders)) == watched and not set(folders) & set(changed)
                if changes or not (began and same):  # also at the beginning: something may have changed before
                    update()
                began = True
                if not same:
                    break
        except FileNotFoundError:  # it went away
            time.sleep(_CHECKED / 1000)
        except OSError as error:
            reason = f"it cannot be watched ({error.strerror or error}); run the update by a timer instead"
            raise DocumentError(str(folders[0]), reason) from error
        while not all(map(_identity, folders)):
            time.sleep(_CHECKED / 1000)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what distinguishes a folder from another one that takes its place; ``None`` for one that is gone."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _let_settle(paths: Sequence[Path]) -> None:
    """Wait until none of some files has changed for a while; somebody may be writing them."""
    end = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < end:
        ages = []
        for path in paths:
            with suppress(OSError):
                ages.append(time.time() - path.stat().st_mtime)
        left = _QUIET - min((age for age in ages if age >= 0), default=_QUIET)
        if left <= 0:
            return
        time.sleep(left)
