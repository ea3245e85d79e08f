"""``SearchEngine``: a person's own posts, searched by words and formulas in one call."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pyterrier_mathamr._common.feedback import explain_problem, reported_once
from pyterrier_mathamr.amr import get_parser
from pyterrier_mathamr.graph.parallel import processes_for
from pyterrier_mathamr.model import DEFAULT_MODEL, MathAMR
from pyterrier_mathamr.model.saving import lasting_name
from pyterrier_mathamr.posts import (
    Document,
    DocumentError,
    ReadingOptions,
    Source,
    SourceMacros,
    accepted_posts,
    source_root,
)
from pyterrier_mathamr.store import (
    PACKAGE,
    DuplicateIdError,
    SharedArtifact,
    StoreError,
    UnknownIdError,
    signature,
    writer_lock,
)

from .building import build_indexes, readers, remove_known, remove_posts
from .generations import ENGINE, EngineOptions, EngineRecord, Generations, Indexes
from .matches import unrelated_scores
from .posts import PostStore, distinct_formulas
from .reader import EngineReader, EngineSnapshot, blended
from .updates import Update, answers_to, documents_of, names_of, read_changes, separate, tombstones_of, with_prefixes

_COMPACTED = 0.2
"""The share of deleted rows from which a change rewrites a part of an index."""
_INCOMING = ".incoming"
_FINISHED: set[tuple[Path, str]] = set()
"""The states that this process has made: it knows that the change which led to each of them is complete."""


class SearchEngine(EngineReader, SharedArtifact):
    r"""Posts that are searched by words and formulas.

    ::

        engine = SearchEngine.build(posts, "my.engine")
        engine.search(r"How do I show that $\sum 1/n^2$ converges?", k=10)

    Args:
        path: the folder; :meth:`build` makes it.
    """

    ARTIFACT_TYPE, ARTIFACT_FORMAT, ARTIFACT_PACKAGE_HINT = ENGINE.type, ENGINE.format, PACKAGE
    _USAGE = r"found.search('How do I show that $\sum 1/n^2$ converges?')"
    schematic: ClassVar[dict[str, str]] = {
        "label": "SearchEngine",
        "help_url": "https://pypi.org/project/pyterrier-mathamr/",
    }

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._generations = Generations(self.path)
        self._opened: EngineSnapshot | None = None
        self._opening = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def built(self) -> bool:
        """Return whether there is a finished engine at the path."""
        return self._generations.built()

    def snapshot(self) -> EngineSnapshot:
        """Return the current state: all its answers come from this state, even if posts are added or deleted later.

        Every reading method uses a new snapshot; make one if the answers of several calls must agree.

        Raises:
            NotBuiltError: there is no engine. OtherArtifactError: the folder holds something else.
            FormatError: it has a format that this release does not read.
            DamagedError: an index is missing, damaged, or not the one that belongs here; the error names it.
        """
        with self._opening:
            if self._opened is None or self._opened.signature != signature(self.path):
                self._opened = EngineSnapshot(self.path)
            return self._opened

    @classmethod
    @reported_once()
    def build(
        cls,
        posts: Source | Sequence[str | Path],
        path: str | Path,
        *,
        model: str | Path | Callable[[int], str] = DEFAULT_MODEL,
        parser: str = "dependency",
        bare_formulas: bool = True,
        whole_files: bool = False,
        macros: str | Path | None = None,
        exclude: str | Iterable[str] = (),
        overwrite: bool = False,
        fresh: bool = False,
        workers: int | None = 1,
        verbose: bool = True,
    ) -> SearchEngine:
        """Build an engine; the same call continues a stopped build.

        Args:
            posts: dictionaries or a frame with an id (``docno`` or ``id``), a text (``html``, ``body``, ``text``,
                ``contents``, ``markdown`` or ``latex``), and optionally a ``title`` and, for an answer to another
                post, its id (``parent``) or title (``parent_title``); the path of a ``.jsonl`` file of such
                dictionaries; or of a file or folder of notes in LaTeX, Markdown, HTML, text, reStructuredText, Org,
                notebooks and Lean, which are split into statements and sections; or a list of folders and files, in
                which the docnos of each folder begin with its name.
            path: the folder of the engine.
            model: name or folder of a model; or a function that returns one for the number of posts.
            parser: the AMR parser.
            bare_formulas: also read formulas without delimiters, such as ``x^2+1=0``.
            whole_files: keep each file whole.
            macros: a LaTeX file whose macros apply to all posts, also to posts that are added later.
            exclude: one or more patterns of files and folders to leave out, such as ``drafts/`` or ``*.txt``, as in
                ``.gitignore``, which is respected, too, as is ``.mathamrignore``.
            overwrite: replace an existing engine once the new one is complete.
            fresh: discard the work of a stopped build.
            workers: processes that make graphs; ``None`` for all cores.
            verbose: show progress.

        Returns:
            The engine.

        Raises:
            WriteError: there is an engine already.
            DocumentError: no post could be read; otherwise a warning names the unreadable ones.
            UnfinishedJobError: an unfinished build had other posts or options.
        """
        engine = cls(path)
        engine._generations.for_build(overwrite)  # refuses before anything is read
        _name_report(engine.path)
        file = str(Path(macros).absolute()) if macros else ""
        patterns = exclude if isinstance(exclude, str) else "\n".join(exclude)
        reading = ReadingOptions(bare_formulas, whole_files, file, patterns)
        options = EngineOptions("", "", parser, reading)  # of a model that is chosen when the posts are counted
        if not callable(model):
            options = _with_model(options, model)
        sources = separate(posts)
        prefixes = with_prefixes(sources, {})
        defined: SourceMacros = {}
        read = _accepted(sources, prefixes, reading, defined, verbose)
        documents = _some(distinct_formulas(read, lambda ids: [False] * len(ids)))
        with writer_lock(engine.path.absolute()), readers(documents, parser, workers) as (documents, executor):
            if fresh:
                engine._generations.discard()
            generation = engine._generations.for_build(overwrite)
            indexes = Indexes.of(generation)
            generation.mkdir(parents=True, exist_ok=True)
            if indexes.posts.built():
                indexes.posts.compare(documents, asdict(options))
            else:
                indexes.posts.write(documents, "create", asdict(options))
            if callable(model):
                options = _with_model(options, model(len(indexes.posts.snapshot())))
            encoder = MathAMR.from_pretrained(options.model)
            build_indexes(indexes, encoder, parser, mode="create", executor=executor, verbose=verbose)
            unrelated = unrelated_scores(indexes, blended(indexes, options, named=False), options.model)
            engine._generations.publish(generation, options, prefixes, unrelated, defined)
        return engine

    @reported_once()
    def update(
        self,
        posts: Source | Sequence[str | Path] | None = None,
        *,
        workers: int | None = 1,
        verbose: bool = False,
    ) -> Update:
        """Bring the engine up to date with its sources, in one step; meanwhile searches see the old posts.

        Files and records whose content is the same are neither parsed nor encoded again. A file that cannot be opened
        keeps its posts; one that is empty now, or no text any more, counts as deleted. The same call completes a
        stopped update.

        Args:
            posts: one or more sources as for :meth:`build`, known to the engine or not; posts of other sources stay. By
                default all folders and files from which the engine was built. Dictionaries and frames add posts and
                replace posts with the same id; none is deleted.
            workers: processes that make graphs; ``None`` for all cores.
            verbose: show progress.

        Returns:
            How many files or records are new, changed, deleted and unchanged; and which files have no text any more.

        Raises:
            DocumentError: a source itself cannot be read, or two folders have the same name; nothing was changed.

        Example::

            posts = [{"id": "square", "text": "Show that $x^2 = 1$ has two solutions."}]
            engine = SearchEngine.build(posts, "my.engine", model="mathamr-plus-mini", verbose=False)
            print(engine.update([{"id": "cube", "text": "Solve $x^3 = 1$."}]))  # 1 new, 0 changed, …
        """
        _name_report(self.path)
        with self._locked(), self._incoming() as incoming:
            now = self.snapshot()
            known = now.record.sources
            if posts is None and not known:
                raise DocumentError(
                    str(self.path), "it was not built from folders or files; give the sources to compare it with"
                )
            sources = separate(list(known) if posts is None else posts)
            prefixes = with_prefixes(sources, dict(known))
            read: SourceMacros = {}
            changes = read_changes(
                now.indexes.posts,
                sources,
                prefixes,
                [root for root in known if root not in prefixes],
                now.record.tombstones,
                incoming,
                reading=now.options.reading,
                macros=read,
                verbose=verbose,
            )
            macros = {root: of for root, of in now.record.macros.items() if root in {"", *prefixes}} | read

            def make(old: EngineSnapshot, indexes: Indexes) -> None:
                answers = self._remove(old, indexes, changes.removed, changes.moved)
                moved, written = documents_of(changes, old.indexes.posts, incoming)
                answers = sorted({*answers}.difference(changes.moved))  # moved ones are written with their place
                distinct = distinct_formulas(written, indexes.has_formulas)
                documents = chain(moved, old.indexes.posts.stream(answers), distinct)
                if names := [*changes.moved, *answers, *changes.written]:
                    self._store(indexes, names, documents, old.options, workers, verbose)

            if changes.removed or changes.moved or changes.written or _differ(macros, now.record.macros):
                change = ["update", now.identity, changes.removed, changes.moved, incoming.fingerprint(), macros]
                self._change(change, lambda _: None, make, sources=prefixes, written=changes.written, macros=macros)
            return changes.found

    @reported_once()
    def add(self, posts: Source | Sequence[str | Path], *, workers: int | None = 1, verbose: bool = False) -> None:
        """Add posts atomically.

        Posts that cannot be read are named in a warning. The same call completes a stopped one.

        Args:
            posts: dictionaries or a frame, the path of a ``.jsonl`` file, or folders and files of notes, as for
                :meth:`build`.
            workers: processes that make graphs; ``None`` for all cores.
            verbose: show progress.

        Raises:
            DuplicateIdError: some exist already; none was added. Delete them first to replace them.
        """
        _name_report(self.path)
        with self._locked(), self._incoming() as incoming:
            now = self.snapshot()
            sources = separate(posts)
            prefixes = with_prefixes(sources, dict(now.record.sources))
            read: SourceMacros = {}
            incoming.write(_accepted(sources, prefixes, now.options.reading, read, verbose), "create")
            added = list(incoming.snapshot())

            def check(old: EngineSnapshot) -> None:
                if (known := old.indexes.posts.snapshot().look_up(added) >= 0).any():
                    raise DuplicateIdError(self.path, [added[i] for i in np.flatnonzero(known)])

            def make(old: EngineSnapshot, indexes: Indexes) -> None:
                distinct = distinct_formulas(incoming, indexes.has_formulas)
                self._store(indexes, added, distinct, old.options, workers, verbose)

            change, macros = ["add", incoming.fingerprint()], now.record.macros | read
            self._change(change, check, make, sources=prefixes, written=added, macros=macros)

    def delete(self, docnos: Iterable[str]) -> None:
        """Delete posts in one step. The same call completes a stopped one.

        Updates do not bring back the posts of a file until its content changes.

        Args:
            docnos: one or more; the name of a file means all posts that were read from it.

        Raises:
            UnknownIdError: some do not exist; the error names them, and nothing is removed.
        """
        named = sorted({docnos} if isinstance(docnos, str) else set(map(str, docnos)))

        def make(old: EngineSnapshot, indexes: Indexes) -> None:
            if answers := self._remove(old, indexes, self._named(old, named)):
                self._store(indexes, answers, old.indexes.posts.stream(answers), old.options, 1, False)

        with self._locked():
            self._change(
                ["delete", *named],
                lambda old: self._named(old, named),
                make,
                buried=lambda old: tombstones_of(old, self._named(old, named)),
            )

    def _remove(
        self, old: EngineSnapshot, indexes: Indexes, docnos: Sequence[str], moved: Sequence[str] = ()
    ) -> list[str]:
        """Remove posts from all indexes, and moved ones from that of posts, unless a stopped run has.

        Returns:
            The answers to removed posts, which are removed, too: their graphs have the title of the question.
        """
        generation, answers = indexes.posts.path.parent, answers_to(old, docnos)
        if not self._generations.removed(generation):
            remove_posts(indexes, [*docnos, *answers])
            remove_known(indexes.posts, moved)
            self._generations.mark_removed(generation)
        return answers

    def _named(self, old: EngineSnapshot, names: Sequence[str]) -> list[str]:
        try:
            return old.indexes.posts.named(names)
        except UnknownIdError as error:  # of the engine, for its user
            raise UnknownIdError(self.path, error.ids) from error

    def compact(self) -> None:
        """Rewrite the indexes without deleted posts, so that no file of the engine has their text, in one step.

        Updates and deletions do the same to each part of an index of which 20 % was deleted. The same call completes a
        stopped one.
        """
        with self._locked():
            shutil.rmtree(self.path / _INCOMING, ignore_errors=True)  # of a process that was killed
            self._change(["compact", self.snapshot().identity], lambda _: None, lambda _, indexes: indexes.compact())

    def _change(
        self,
        change: Sequence[Any],
        check: Callable[[EngineSnapshot], object],
        make: Callable[[EngineSnapshot, Indexes], None],
        *,
        sources: Mapping[str, str] | None = None,
        written: Sequence[str] = (),
        macros: SourceMacros | None = None,
        buried: Callable[[EngineSnapshot], Mapping[str, Sequence[int]]] = lambda _: {},
    ) -> None:
        """Change a copy of the engine, and make it the engine.

        Args:
            change: identifies the change.
            check: raises an error if the state cannot be changed so.
            make: changes the indexes of the copy; completes what a stopped run has begun.
            sources: the folders and files that are followed from now on; by default the same.
            written: docnos of posts that are written.
            macros: the macros of all sources; by default the same.
            buried: the tombstones of posts that are deleted.
        """
        old = self.snapshot()
        digest = hashlib.sha256(json.dumps(change).encode()).hexdigest()
        if digest == old.record.change and (self.path.absolute(), old.identity) not in _FINISHED:
            self._generations.discard()  # a process made this change, and was killed before it could report it
            return
        check(old)
        generation = self._generations.copy(old.record, digest)
        indexes = Indexes.of(generation)
        make(old, indexes)
        indexes.compact(_COMPACTED)
        unrelated = old.record.unrelated.after(old.indexes.posts, indexes.posts)
        if unrelated is None:
            unrelated = unrelated_scores(indexes, blended(indexes, old.options, named=False), old.options.model)
        named = old.record.sources if sources is None else sources
        back = names_of(written)
        tombstones = {name: of for name, of in old.record.tombstones.items() if name not in back}
        tombstones.update(buried(old))
        macros = old.record.macros if macros is None else macros
        self._generations.publish(generation, old.options, named, unrelated, macros, tombstones, digest)
        _FINISHED.add((self.path.absolute(), self.snapshot().identity))

    @staticmethod
    def _store(
        indexes: Indexes,
        docnos: Sequence[str],
        documents: Iterable[Document],
        options: EngineOptions,
        workers: int | None,
        verbose: bool,
    ) -> None:
        """Store posts, unless a stopped run has stored them, and bring all indexes into line with them."""
        if (indexes.posts.snapshot().look_up(docnos) < 0).any():
            indexes.posts.write(documents, "append")
        executor = processes_for(get_parser(options.parser), workers)
        model = MathAMR.from_pretrained(options.model)
        build_indexes(indexes, model, options.parser, mode="append", executor=executor, verbose=verbose)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the engine for a change; where there is none, nothing is made, not even the folder of a lock."""
        self.snapshot()
        with writer_lock(self.path.absolute()):
            yield

    @contextmanager
    def _incoming(self) -> Iterator[PostStore]:
        """Yield a store for the posts of an addition, which is removed in the end: they are read once and compared."""
        folder = self.path / _INCOMING
        shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
        try:
            yield PostStore(folder / "posts")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def discard(self) -> None:
        """Remove the work of a build or change that was stopped; a finished engine stays."""
        with writer_lock(self.path.absolute()):
            self._generations.discard()

    def faults(self, *, verbose: bool = False) -> Iterator[StoreError]:
        """Read everything, compare every checksum, and yield the faults; ``verbose`` shows a progress bar."""
        try:
            yield from EngineRecord.read(self.path).faults(self.path, verbose=verbose)
        except StoreError as error:
            yield error

    def verify(self) -> None:
        """Read everything and compare every checksum.

        Raises:
            StoreError: the first fault; ``mathamr verify`` lists all of them.
        """
        for fault in self.faults():
            raise fault


def _with_model(options: EngineOptions, model: str | Path) -> EngineOptions:
    name = lasting_name(model)
    return replace(options, model=name, vectors_by=MathAMR.from_pretrained(name).vectors_by)


def _name_report(path: Path) -> None:
    """Name the command that lists all problems, in a warning of many."""
    explain_problem("", f", which `mathamr report {path}` lists")


def _accepted(
    sources: Sequence[Source],
    prefixes: Mapping[str, str],
    reading: ReadingOptions,
    macros: SourceMacros,
    verbose: bool,
) -> Iterator[Document]:
    """Read the posts of sources that can be read, and their macros."""
    for source in sources:
        prefix = prefixes.get(source_root(source), "")
        yield from accepted_posts(source, reading, prefix, macros, verbose=verbose)


def _differ(macros: SourceMacros, others: SourceMacros) -> bool:
    return any(macros.get(root, {}) != others.get(root, {}) for root in {*macros, *others})


def _some(documents: Iterator[Document]) -> Iterator[Document]:
    """Pass on documents; raise an error if there are none."""
    first = next(documents, None)
    if first is None:
        raise DocumentError("posts", "there are none")
    return chain([first], documents)
