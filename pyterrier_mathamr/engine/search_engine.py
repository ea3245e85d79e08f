"""``SearchEngine``: a person's own posts, searched by words and formulas in one call.

::

    build    posts ──batches──▶ workers: each post is read once, each formula once     ┐
                                graphs · tokens · symbol pairs · patterns              │
                                   └──in order──▶ this process ──▶ graphs ──▶ vectors  ├─▶ published at the end
                                                               ──▶ bm25                │
                                                               ──▶ tangent, patterns   ┘
                                                     vectors ──▶ formulas
    update   sources ──compared──▶ removed · moved · written posts ──▶ a changed copy of the indexes ──▶ published

A new engine reads its posts once for all indexes; the worker processes need a second to start, while the posts are
stored. Each index is a separate artifact and resumes where it was stopped: the same call continues a build that was
killed, then one index after the other. Nothing is visible before the generation is published (``generations``). Methods
that only read are in ``reader``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.feedback import counted_progress, explain_problem, reported_once, work_counted
from pyterrier_mathamr._common.running.processes import Executor, StartedProcesses
from pyterrier_mathamr.amr import AmrParser, DependencyAmrParser, get_parser
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph, build_store
from pyterrier_mathamr.graph.parallel import Built, begun_store, processes_for
from pyterrier_mathamr.graph.store import graph_of, unpack
from pyterrier_mathamr.index.backend import GROUP
from pyterrier_mathamr.index.indexing import DocumentIndexer
from pyterrier_mathamr.index.parts import WIDE, DType
from pyterrier_mathamr.model import DEFAULT_MODEL, MathAMR
from pyterrier_mathamr.model.saving import lasting_name
from pyterrier_mathamr.posts import (
    TITLE_FORMULA,
    Document,
    DocumentError,
    ReadingOptions,
    Source,
    SourceMacros,
    document_post,
)
from pyterrier_mathamr.sparse.expressions import Read as ReadFormulas
from pyterrier_mathamr.store import (
    PACKAGE,
    DuplicateIdError,
    Mode,
    SharedArtifact,
    StoredArtifact,
    StoreError,
    UnknownIdError,
    replace_file,
    signature,
    writer_lock,
)

from .generations import ENGINE, REMOVED, EngineOptions, EngineRecord, Generations, Indexes
from .posts import AT_ONCE, PostStore, Records, distinct_formulas, having
from .ranking import unrelated_scores
from .reader import EngineReader, EngineSnapshot, blended, model_of
from .sources import Update, named_sources, read_changes, read_posts, tombstones_of, without_tombstones
from .worker import BatchRead, ReadBatch, prepare

_COMPACTED = 0.2
"""The share of deleted rows from which a change rewrites a part of an index."""
_INCOMING = ".incoming"
_IDS_AT_ONCE = 10_000
_MANY = 8 * AT_ONCE  # posts; fewer are read before a process has started
_PACKED_FROM = 50_000
"""Posts from which wide vectors have four bits a number: a search then mostly reads vectors, and loses nothing."""
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
        sources, prefixes = named_sources(posts, {})
        defined: SourceMacros = {}
        documents = distinct_formulas(read_posts(sources, reading, defined, verbose), lambda ids: [False] * len(ids))
        if (first := next(documents, None)) is None:
            raise DocumentError("posts", "there are none")
        documents = chain([first], documents)
        with writer_lock(engine.path.absolute()), _readers(documents, parser, workers) as (documents, executor):
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
            _build_indexes(indexes, model_of(options), parser, mode="create", executor=executor, verbose=verbose)
            unrelated = unrelated_scores(indexes.posts, blended(indexes, options, named=False), options.model)
            engine._generations.publish(generation, EngineRecord("", {}, options, prefixes, unrelated, {}, defined))
        return engine

    @reported_once()
    def update(
        self, posts: Source | Sequence[str | Path] | None = None, *, workers: int | None = 1, verbose: bool = False
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
        with self._locked() as old, self._incoming() as incoming:
            known = old.record.sources
            if posts is None and not known:
                reason = "it was not built from folders or files; give the sources to compare it with"
                raise DocumentError(str(self.path), reason)
            sources, prefixes = named_sources(list(known) if posts is None else posts, known)
            read: SourceMacros = {}
            changes = read_changes(
                old.indexes.posts,
                sources,
                [root for root in known if root not in prefixes],
                old.record.tombstones,
                incoming,
                reading=old.options.reading,
                macros=read,
                verbose=verbose,
            )
            before = old.record.macros
            macros = {root: defined for root, defined in before.items() if root in {"", *prefixes}} | read
            same_macros = all(macros.get(root, {}) == before.get(root, {}) for root in {*macros, *before})
            if same_macros and not (changes.removed or changes.moved or changes.written):
                return changes.counts
            digest = _digest("update", old.identity, changes.removed, changes.moved, incoming.fingerprint(), macros)
            indexes = Indexes.of(self._generations.copy(old.record, digest))
            answers = self._remove(old, indexes, changes.removed, changes.moved)
            answers = sorted({*answers}.difference(changes.moved))  # moved ones are written with their place
            stored = old.indexes.posts
            pairs = zip(stored.stream(changes.moved), incoming.stream(changes.moved), strict=True)
            moved = (was._replace(origin=now.origin, entry=now.entry, digest=now.digest) for was, now in pairs)
            written = distinct_formulas(incoming.stream(changes.written), indexes.has_formulas)
            if docnos := [*changes.moved, *answers, *changes.written]:
                documents = chain(moved, stored.stream(answers), written)
                self._store(indexes, docnos, documents, old.options, workers, verbose)
            tombstones = without_tombstones(old.record.tombstones, changes.written)
            record = replace(old.record, sources=prefixes, macros=macros, tombstones=tombstones, change=digest)
            self._publish(old, indexes, record)
            return changes.counts

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
        with self._locked() as old, self._incoming() as incoming:
            sources, prefixes = named_sources(posts, old.record.sources)
            read: SourceMacros = {}
            incoming.write(read_posts(sources, old.options.reading, read, verbose), "create")
            docnos, digest = list(incoming.snapshot()), _digest("add", incoming.fingerprint())
            if self._is_complete(old, digest):
                return
            if known := having(old.indexes.posts, docnos):
                raise DuplicateIdError(self.path, known)
            indexes = Indexes.of(self._generations.copy(old.record, digest))
            documents = distinct_formulas(incoming, indexes.has_formulas)
            self._store(indexes, docnos, documents, old.options, workers, verbose)
            tombstones = without_tombstones(old.record.tombstones, docnos)
            macros = {**old.record.macros, **read}
            record = replace(old.record, sources=prefixes, macros=macros, tombstones=tombstones, change=digest)
            self._publish(old, indexes, record)

    def delete(self, docnos: Iterable[str]) -> None:
        """Delete posts in one step. The same call completes a stopped one.

        Updates do not bring back the posts of a file until its content changes.

        Args:
            docnos: one or more; the name of a file means all posts that were read from it.

        Raises:
            UnknownIdError: some do not exist; the error names them, and nothing is removed.
        """
        named = sorted({docnos} if isinstance(docnos, str) else set(map(str, docnos)))
        with self._locked() as old:
            digest = _digest("delete", *named)
            if self._is_complete(old, digest):
                return
            try:
                deleted = old.indexes.posts.named(named)
            except UnknownIdError as error:  # of the engine, for its user
                raise UnknownIdError(self.path, error.ids) from error
            indexes = Indexes.of(self._generations.copy(old.record, digest))
            if answers := self._remove(old, indexes, deleted):
                self._store(indexes, answers, old.indexes.posts.stream(answers), old.options, 1, False)
            tombstones = {**old.record.tombstones, **tombstones_of(old.record, old.indexes.posts, deleted)}
            self._publish(old, indexes, replace(old.record, tombstones=tombstones, change=digest))

    def compact(self) -> None:
        """Rewrite the indexes without deleted posts, so that no file of the engine has their text, in one step.

        Updates and deletions do the same to each part of an index of which 20 % was deleted. The same call completes a
        stopped one.
        """
        with self._locked() as old:
            shutil.rmtree(self.path / _INCOMING, ignore_errors=True)  # of a process that was killed
            digest = _digest("compact", old.identity)
            indexes = Indexes.of(self._generations.copy(old.record, digest))
            indexes.compact()
            self._publish(old, indexes, replace(old.record, change=digest))

    @contextmanager
    def _locked(self) -> Iterator[EngineSnapshot]:
        """Lock the engine for a change; where there is none, nothing is made, not even the folder of a lock."""
        self.snapshot()
        with writer_lock(self.path.absolute()):
            yield self.snapshot()

    @contextmanager
    def _incoming(self) -> Iterator[PostStore]:
        """Yield a store for the posts of an addition, which is removed in the end: they are read once and compared."""
        folder = self.path / _INCOMING
        shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
        try:
            yield PostStore(folder / "posts")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _is_complete(self, old: EngineSnapshot, digest: str) -> bool:
        """Return whether a process made the change, and was killed before it could report it."""
        complete = digest == old.record.change and (self.path.absolute(), old.identity) not in _FINISHED
        if complete:
            self._generations.discard()
        return complete

    @staticmethod
    def _remove(old: EngineSnapshot, indexes: Indexes, docnos: Sequence[str], moved: Sequence[str] = ()) -> list[str]:
        """Remove posts from all indexes, and moved ones from that of posts, unless a stopped run has.

        Returns:
            The answers to removed posts, which are removed, too: their graphs have the title of the question.
        """
        # a unit of a file has no answers
        questions = {post.docno for post in old.indexes.posts.get_many(docnos) if not post.origin.kind}
        threads, gone = old.threads if questions else {}, set(docnos)
        answers = [docno for docno, thread in threads.items() if thread in questions and docno not in gone]
        note = indexes.posts.path.parent / REMOVED
        if not note.exists():
            removed = [*docnos, *answers]
            formula_ids = [name for _, ids in _formula_ids(indexes, removed) for name in ids]
            for index in (indexes.formulas, indexes.tangent, indexes.patterns):
                _remove_known(index, formula_ids)
            for index in (indexes.graphs, indexes.bm25, indexes.posts, indexes.vectors):
                _remove_known(index, removed)  # the vectors, which know the formulas of each, come last
            _remove_known(indexes.posts, moved)
            replace_file(note, b"")
        return answers

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
        if len(having(indexes.posts, docnos)) < len(docnos):
            indexes.posts.write(documents, "append")
        executor = processes_for(get_parser(options.parser), workers)
        _build_indexes(indexes, model_of(options), options.parser, mode="append", executor=executor, verbose=verbose)

    def _publish(self, old: EngineSnapshot, indexes: Indexes, record: EngineRecord) -> None:
        indexes.compact(_COMPACTED)
        unrelated = old.record.unrelated.after(old.indexes.posts, indexes.posts)
        if unrelated is None:
            unrelated = unrelated_scores(indexes.posts, blended(indexes, old.options, named=False), old.options.model)
        self._generations.publish(indexes.posts.path.parent, replace(record, unrelated=unrelated))
        _FINISHED.add((self.path.absolute(), self.snapshot().identity))

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


def _digest(*change: object) -> str:
    """Identify a change, so that a call that is repeated continues it."""
    return hashlib.sha256(json.dumps(change).encode()).hexdigest()


# ---- indexes


def _build_indexes(
    indexes: Indexes, model: MathAMR, parser: str | AmrParser, *, mode: Mode, executor: Executor, verbose: bool
) -> None:
    """Build every index from the posts, or add the missing posts to it."""
    sources, builder = {"posts": len(indexes.posts)}, GraphBuilder(parser, reads=model.reads)
    made = (indexes.graphs, indexes.bm25, indexes.tangent, indexes.patterns, indexes.vectors)
    everything = Records(indexes.posts, list(indexes.posts.snapshot()))
    options: dict[str, Any] = {"resume": True, "verbose": verbose}

    def missing(index: StoredArtifact) -> Records:
        """Return the posts that an index does not have, in order."""
        known = set(having(index, everything.docnos)) if index.built() else ()
        return Records(indexes.posts, [docno for docno in everything.docnos if docno not in known])

    width = model.config.projection
    packed = mode == "create" and sources["posts"] >= _PACKED_FROM and width >= WIDE and width % GROUP == 0
    dtype: DType | None = "int4" if packed else None
    vectors = indexes.vectors.indexer(mode, model=model.vectors_by, dtype=dtype, resume=True, sources=sources)
    if mode == "create" and not any(index.built() or index.unfinished() for index in made):
        pending = vectors.pending({"docno": docno} for docno in everything.docnos)
        with closing(_graphs_in_one_pass(indexes, everything, builder, sources, executor)) as graphs:
            built = ({**row, "graph": graph} for row, graph in zip(pending, graphs, strict=True))
            _index_vectors(model, vectors, built, len(everything), verbose)
    else:
        if posts := missing(indexes.graphs):
            stored: dict[str, Any] = {"sources": sources, "mode": mode, "executor": executor, "total": len(posts)}
            build_store(posts, builder, indexes.graphs, verbose=verbose, **stored)
        if posts := missing(indexes.bm25):
            indexes.bm25.indexer(mode, **options).index(posts)
        unbuilt = [index for index in (indexes.tangent, indexes.patterns) if mode == "create" and not index.built()]
        if unbuilt and any(document_post(post).formulas for post in everything):
            for index in unbuilt:
                index.indexer("create", executor=executor, **options).index(everything)
        if posts := missing(indexes.vectors):
            pending = (row["docno"] for row in vectors.pending({"docno": docno} for docno in posts.docnos))
            batches = iter(lambda: list(islice(pending, AT_ONCE)), [])
            pairs = (pair for batch in batches for pair in zip(batch, indexes.graphs.get_many(batch), strict=True))
            stored_rows = ({"docno": docno, "graph": graph} for docno, graph in pairs)
            _index_vectors(model, vectors, stored_rows, len(posts), verbose)
    _index_formulas(indexes, mode, verbose)


def _graphs_in_one_pass(
    indexes: Indexes, posts: Records, builder: GraphBuilder, sources: dict[str, Any], executor: Executor
) -> Generator[MathAMRGraph, None, None]:
    """Read posts, make their indexes, and yield the graph of each; with the last one the indexes are published.

    A build that is stopped is completed by one index after the other.
    """
    bm25 = indexes.bm25.indexer("create", resume=True)
    tangent, patterns = (index.indexer("create", resume=True) for index in (indexes.tangent, indexes.patterns))
    with ExitStack() as stack:
        begun = stack.enter_context(begun_store(builder, indexes.graphs, sources, executor=executor))
        add_tokens = stack.enter_context(bm25.adding())
        add_formulas: list[Callable[[ReadFormulas], None]] = []

        def indexed(batches: Iterator[BatchRead]) -> Iterator[Built]:
            """Add what the workers have read to the indexes, and yield the graphs."""
            for batch in batches:
                batch.heard.repeat()
                add_tokens(batch.tokens)
                if not add_formulas and batch.formulas.found:  # posts without formulas have no such index
                    add_formulas.extend(stack.enter_context(index.adding()) for index in (tangent, patterns))
                for add, formulas in zip(add_formulas, (batch.formulas, batch.patterns), strict=False):
                    add(formulas)
                yield batch.graphs

        work = ReadBatch(begun.build, bm25.reading(), tangent.reading(), patterns.reading())
        batches = stack.enter_context(closing(begun.executor.map(work, begun.batches(posts))))
        for record in begun.indexer.written(begun.job, begun.records(indexed(batches))):
            yield graph_of(unpack(record.data))


def _index_vectors(
    model: MathAMR, indexer: DocumentIndexer, rows: Iterator[dict[str, Any]], total: int, verbose: bool
) -> None:
    """Encode posts and index their vectors; one that is read counts half, since either may take longer."""
    halves = ahead = 0
    with counted_progress("indexing", "posts", total, verbose=verbose) as done:

        def add(count: int) -> None:
            nonlocal halves
            before, halves = halves, halves + count
            done(halves // 2 - before // 2)

        def read() -> Iterator[dict[str, Any]]:
            for row in rows:
                add(1)
                yield row

        def encoding(count: int) -> None:
            nonlocal ahead
            ahead += count
            add(count)

        def encoded(batch: pd.DataFrame) -> pd.DataFrame:
            nonlocal ahead
            add(len(batch) - ahead)
            ahead = 0
            return batch

        with work_counted(encoding):
            (model.doc_encoder() >> pt.apply.generic(encoded) >> indexer).index(read())


def _index_formulas(indexes: Indexes, mode: Mode, verbose: bool) -> None:
    """Index formulas by their vectors, which are stored already; added ones by symbol pairs and patterns, too."""
    known = indexes.formulas.snapshot() if indexes.formulas.built() else None  # the last index to be built
    pending = [
        docno
        for docno, ids in _formula_ids(indexes, list(indexes.posts.snapshot()))
        if ids and ids != [TITLE_FORMULA] and (known is None or known.look_up(ids[:1])[0] < 0)
    ]
    if not pending:
        return
    for index in (indexes.tangent, indexes.patterns) if mode == "append" else ():
        own_mode: Mode = "append" if index.built() else "create"
        index.indexer(own_mode, resume=True, verbose=verbose).index(Records(indexes.posts, pending))
    load = indexes.vectors.text_loader("formula_ids") >> indexes.vectors.vec_loader()
    batches = (pending[start : start + AT_ONCE] for start in range(0, len(pending), AT_ONCE))
    rows = (row for docnos in batches for row in load(pd.DataFrame({"docno": docnos})).to_dict("records"))
    options: dict[str, Any] = {"resume": True, "verbose": verbose, "total": len(pending)}
    vector_mode: Mode = mode if known is None else "append"
    indexes.formulas.indexer(vector_mode, model=indexes.vectors.model, **options).index(rows)


def _formula_ids(indexes: Indexes, docnos: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the posts that the index of vectors has, with the ids of their formulas."""
    load = indexes.vectors.text_loader("formula_ids")
    for start in range(0, len(docnos), _IDS_AT_ONCE):
        known = having(indexes.vectors, docnos[start : start + _IDS_AT_ONCE])
        loaded = load(pd.DataFrame({"docno": known}))
        yield from ((docno, ids or []) for docno, ids in zip(loaded["docno"], loaded["formula_ids"], strict=True))


def _remove_known(index: StoredArtifact, ids: Sequence[str]) -> None:
    if ids and index.built():
        index.delete(having(index, ids))


@contextmanager
def _readers(
    documents: Iterator[Document], parser: str, workers: int | None
) -> Iterator[tuple[Iterator[Document], Executor]]:
    """Yield posts and the executor that reads them; its processes start once there are many."""
    executor = processes_for(get_parser(parser), workers)
    if executor.slots == 1 or parser != DependencyAmrParser.name:
        yield documents, executor
        return
    with StartedProcesses(executor, prepare) as started:

        def starting() -> Iterator[Document]:
            for number, document in enumerate(documents, 1):
                if number == _MANY:
                    started.start()
                yield document

        yield starting(), started
