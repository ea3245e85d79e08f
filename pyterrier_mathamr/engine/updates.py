"""The differences between an engine and its sources: missing posts, and posts that the sources no longer have.

::

    sources ──entries──▶ same name, same content        unchanged: neither parsed nor encoded again
                         same name, other content  ┐    parsed: a post whose text is the same is kept, and its place
                         unknown name              ┘    in the file is stored again; others are removed and indexed
                         deleted by the user, same content      left out until it changes
            no entry ◀── a name that the engine knows   deleted, as are the posts of a file without a readable text
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyterrier_mathamr._common.errors import require, shortened
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.posts import (
    Document,
    DocumentError,
    ReadingOptions,
    Source,
    SourceEntry,
    SourceMacros,
    distinct_posts,
    source_entries,
    source_root,
    warn_of_left_out,
)
from pyterrier_mathamr.posts.files import UnopenedFileError
from pyterrier_mathamr.store import row_fingerprint

from .filters import file_of
from .posts import PostStore, root_fingerprint

if TYPE_CHECKING:
    from .reader import EngineSnapshot


class Update(NamedTuple):
    """The outcome of an update: numbers of files, or of records.

    Attributes:
        new, changed, deleted, unchanged: how many of each.
        unreadable: files that are among the deleted ones since they are empty now, or cannot be read as text.
    """

    new: int
    changed: int
    deleted: int
    unchanged: int
    unreadable: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in zip(self._fields, self[:4], strict=False))
        return counts + (f" (no readable text in {shortened(self.unreadable)})" if self.unreadable else "")


class Changes(NamedTuple):
    """How the posts of an engine differ from its sources.

    Attributes:
        found: the numbers.
        removed: docnos that are in no source any more, or whose text has changed.
        moved: docnos of posts with the same text in another file or place.
        written: docnos of posts that are new or have changed.
    """

    found: Update
    removed: list[str]
    moved: list[str]
    written: list[str]


def separate(posts: Source | Sequence[str | Path]) -> list[Source]:
    """Return the sources of posts: one, or a list of folders and files."""
    if isinstance(posts, list | tuple) and posts and all(isinstance(each, str | Path) for each in posts):
        return [each for each in posts if isinstance(each, str | Path)]
    return [posts]  # type: ignore[list-item]


def with_prefixes(sources: Sequence[Source], known: dict[str, str]) -> dict[str, str]:
    """Choose the docno prefix of each folder: empty for a single folder, else its name.

    Args:
        sources: the sources; only folders and files get names.
        known: the prefixes of the engine's sources, which are kept.

    Returns:
        The prefix of each folder and file, the known ones first.

    Raises:
        DocumentError: two folders have the same name.
    """
    prefixes = dict(known)
    paths = [Path(source) for source in sources if isinstance(source, str | Path)]
    single = len(paths) == 1 and not known
    for path in paths:
        root = source_root(path)
        if root in prefixes:
            continue
        moved = next((old for old in known if Path(old).name == path.absolute().name and not Path(old).exists()), None)
        if moved is not None:
            prefixes[root] = prefixes.pop(moved)
            continue
        prefix = "" if single or not path.is_dir() else f"{path.absolute().name}/"
        if prefix and prefix in prefixes.values():
            reason = f"two sources have the name {prefix[:-1]}, with which docnos begin; rename one of them"
            raise DocumentError(root, reason)
        prefixes[root] = prefix
    return prefixes


def read_changes(
    stored: PostStore,
    sources: Sequence[Source],
    prefixes: dict[str, str],
    gone: Sequence[str],
    tombstones: Mapping[str, Sequence[int]],
    incoming: PostStore,
    *,
    reading: ReadingOptions,
    macros: SourceMacros,
    verbose: bool,
) -> Changes:
    """Compare sources with the posts of an engine, and read what has changed.

    Args:
        stored: the posts of the engine.
        sources: the sources to compare; posts of other sources stay.
        prefixes: see :func:`with_prefixes`.
        gone: known sources that were moved and have another path now.
        tombstones: see :func:`tombstones_of`.
        incoming: an empty store, for the posts that are read.
        reading: how posts are read.
        macros: gets the macros of each source.
        verbose: show progress.

    Returns:
        The changes. A warning names posts that cannot be read, or whose docno belongs to a post of another file.
    """
    rows = stored.rows()
    row_of = {docno: row for row, docno in enumerate(rows.docnos)}
    digests = dict(zip(rows.entries.tolist(), rows.digests.tolist(), strict=True))
    followed = {root_fingerprint(root) for root in [*gone, *filter(None, map(source_root, sources))]}
    seen: set[int] = set()
    changed: set[int] = set()  # entries with posts in the engine that were read again
    new: set[int] = set()
    unreadable: dict[int, str] = {}  # changed entries that have no posts any more, and their places
    errors: list[DocumentError] = []

    def entries() -> Iterator[tuple[str, SourceEntry]]:
        for source in sources:
            prefix = prefixes.get(source_root(source), "")
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
            tombstone = () if known else tombstones.get(_name(f"{prefix}{entry.key}"), ())
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
    deleted = {
        name
        for name, root in zip(rows.entries.tolist(), rows.roots.tolist(), strict=True)
        if root in followed and name not in seen
    }
    if closed := tuple(f"{Path(of.place).absolute()}/" for of in errors if isinstance(of, UnopenedFileError)):
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
        else:
            errors.append(_taken(docno, stored, incoming))
    warn_of_left_out(errors, "files or posts")
    kept = set(moved)
    found = Update(
        len(new),
        len(changed) - len(unreadable),
        len(deleted) + len(unreadable),
        len(seen & digests.keys()) - len(changed),
        tuple(unreadable.values()),
    )
    return Changes(found, [docno for docno in replaced if docno not in kept], moved, written)


def tombstones_of(old: EngineSnapshot, deleted: Sequence[str]) -> dict[str, list[int]]:
    """Return the files and records of which no post is left, so that updates leave them out until they change.

    Args:
        old: the state before the deletion.
        deleted: the docnos that are deleted.

    Returns:
        The hash of each name, which may be a deleted text itself, with the digest that it was indexed with and, if the
        file has not changed since, the fingerprint of only its own content, as other files of its document may change.
    """
    rows, gone = old.indexes.posts.rows(), set(deleted)
    kept = {entry for docno, entry in zip(rows.docnos, rows.entries.tolist(), strict=True) if docno not in gone}
    lost = [post for post in old.indexes.posts.get_many(deleted) if post.origin.root and post.entry not in kept]
    found = {_name(file_of(post.docno) if post.origin.kind else post.docno): [post.digest] for post in lost}
    for root in {post.origin.root for post in lost}:
        prefix = old.record.sources.get(root, "")
        with suppress(DocumentError):  # the source is gone
            for entry in source_entries(root, old.options.reading, prefix):
                if isinstance(entry, SourceEntry) and [entry.digest] == found.get(name := _name(prefix + entry.key)):
                    found[name].append(entry.content)
    return found


def answers_to(old: EngineSnapshot, docnos: Sequence[str]) -> list[str]:
    """List the other posts that answer one of some posts; a unit of a file has no answers."""
    gone = {post.docno for post in old.indexes.posts.get_many(docnos) if not post.origin.kind}
    left_out = set(docnos)
    return [name for name, thread in old.threads.items() if thread in gone and name not in left_out] if gone else []


def names_of(docnos: Sequence[str]) -> set[str]:
    """Return the names that tombstones of the files or records with these posts have."""
    return {_name(name) for docno in docnos for name in (docno, file_of(docno))}


def _name(name: str) -> str:
    return f"{row_fingerprint({'name': name}):016x}"


def documents_of(
    changes: Changes, stored: PostStore, incoming: PostStore
) -> tuple[Iterator[Document], Iterator[Document]]:
    """Return the moved posts, as stored except for their place, and the posts to write."""
    both = zip(stored.stream(changes.moved), incoming.stream(changes.moved), strict=True)
    moved = (old._replace(origin=now.origin, entry=now.entry, digest=now.digest) for old, now in both)
    return moved, incoming.stream(changes.written)


def _taken(docno: str, stored: PostStore, incoming: PostStore) -> DocumentError:
    """Return the error for a docno that a post of another file has."""
    [owner], [post] = stored.get_many([docno]), incoming.get_many([docno])
    places = ["/".join(filter(None, each.origin[:2])) for each in (post, owner)]
    return DocumentError(places[0], f"the id {docno!r:.80} is also the id of {places[1]}; rename one of the two")


_QUIET, _LONGEST_WAIT = 0.5, 10.0  # seconds: changed files are left alone so long before they are read, at most
_CHECKED = 1_000  # milliseconds between two looks at whether a folder was replaced


def watch(sources: Sequence[str | Path], ignored: Path, update: Callable[[], object]) -> None:
    """Call a function once, and then whenever files of the sources have changed, until the process is interrupted.

    A folder that is replaced by another one of its name is watched on; one that is gone is waited for.

    Args:
        sources: folders and files.
        ignored: the folder of the engine, which may lie in one of them.
        update: the function to call; changes meanwhile are noticed afterwards.

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
        watched, began = [_identity(folder) for folder in folders], False
        try:
            for changes in watchfiles.watch(
                *folders, watch_filter=concerns, rust_timeout=_CHECKED, yield_on_timeout=True
            ):
                changed = [Path(name) for _, name in changes]
                _let_settle(changed)
                same = [_identity(folder) for folder in folders] == watched and not set(folders) & set(changed)
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
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
