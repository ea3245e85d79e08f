r"""The posts of an engine, as read: title and body as HTML, their names, and one id for each formula of all posts.

A post that answers another one names it, or its title. When it is indexed, the title of a named post is looked
up among all posts of the engine; a title that comes or changes later is read when the answer is indexed again.

A post is found first by its printed name, its title, its label or its number. Names are compared without case, accents,
punctuation, articles, and the endings of possessives and plurals; they are stored as numbers when a post is added, so
that a question is compared with all of them at once::

    Theorem 3.2 (Fatou's lemma), \label{thm:fatou}   ──▶   fatou lemma · theorem 3 2 · thm fatou · …
    What is Fatou's Lemma?                           ──▶   fatou lemma

User HTML repeats its ids from post to post; a formula whose id is already used gets a new one.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape, unescape
from itertools import chain, islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from pyterrier_mathamr._common.records import decompressed, parse_json
from pyterrier_mathamr.formula.display.typesetting import text_of
from pyterrier_mathamr.posts import Document, Origin, post_from_html
from pyterrier_mathamr.store import (
    Array,
    Content,
    DamagedError,
    DuplicateIdError,
    Field,
    Job,
    Kind,
    Mode,
    StoredArtifact,
    UnfinishedJobError,
    changed_row,
    differences,
    merge_ragged,
    row_fingerprint,
)

AT_ONCE = 64
"""Posts that are handed on together."""
PRINTED = re.compile(r"(?P<kind>[^\W\d_]+)(?P<number> [\w.]{1,20})?(?: \((?P<name>.+)\))?")
"""The title of a statement: its kind, number and name."""
_PART = 2_000  # posts; the work that a killed build repeats
_BATCH = 256  # posts whose formulas are looked up together
_WHOLES = ("", "section", "file")
"""Kinds of posts that are no statements, but may hold one of the same name; the first is a record's."""
_ID = re.compile(r'(?<=<span class="math-container" id=")[^"]*')
_ASKED = re.compile(r"^(?:what (?:is|are)|who is|state|recall)\s+", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_POSSESSIVE = re.compile(r"['’]s?(?!\w)")
_ARTICLES = frozenset(("the", "a", "an"))
_LONGEST_NAME = 120  # characters

POSTS = Kind(
    type="posts",
    version=3,  # 2 had no names
    fields=(
        Field("records", "uint8", "r"),
        Field("offsets", "int64", "m+1", cuts="r"),  # post i is records[offsets[i]:offsets[i + 1]]: zlib of JSON
        Field("sources", "uint64", "m"),  # fingerprint of each post
        Field("roots", "uint64", "m"),  # fingerprint of the folder or file that was its source
        Field("entries", "uint64", "m"),  # fingerprint of the file or record that it was read from
        Field("digests", "uint64", "m"),  # fingerprint of the content of that file or record
        Field("names", "uint64", "n"),  # fingerprint of each name, post by post
        Field("name_offsets", "int64", "m+1", cuts="n"),
        Field("statements", "uint8", "m"),  # 1 if the names are of a statement, 0 of a section, file or record
    ),
    merge=merge_ragged,
    rebuild="mathamr build POSTS -o ENGINE --overwrite",
)


class StoredRows(NamedTuple):
    """The posts of a store: their docnos, and uint64 ``[m]`` of each column, see `POSTS`."""

    docnos: list[str]
    sources: npt.NDArray[np.uint64]
    roots: npt.NDArray[np.uint64]
    entries: npt.NDArray[np.uint64]
    digests: npt.NDArray[np.uint64]


class PostStore(StoredArtifact):
    """Posts by docno."""

    KIND: ClassVar[Kind] = POSTS
    HOLDS = "post"

    def write(self, documents: Iterable[Document], mode: Mode, options: Mapping[str, Any] | None = None) -> None:
        """Store posts; the same call continues one that was killed."""
        stream = iter(documents)
        with self.job(mode, {"job": "posts", **(options or {})}) as job:
            details = job.base.details if job.base else dict(options or {})
            done = np.concatenate([np.zeros(0, np.uint64), *(part["sources"] for part in job.done.parts)])
            while batch := list(islice(stream, _PART)):
                _add(job, batch, done)
            job.commit(details)

    def compare(self, documents: Iterable[Document], options: Mapping[str, Any]) -> None:
        """Raise an error for posts or options other than the stored ones."""
        if wrong := differences(self.snapshot().manifest.details, options):
            raise UnfinishedJobError(self.path, wrong)
        rows = self.rows()
        stored = dict(zip(rows.docnos, rows.sources.tolist(), strict=True))
        for document in documents:
            if stored.pop(document.docno, None) != row_fingerprint(document.record()):
                raise changed_row(self.path, document.docno)
        if stored:
            more = f"{len(stored)} more, such as {next(iter(stored))!r}"
            raise UnfinishedJobError(self.path, {"posts": (more, "none")})

    def fingerprint(self) -> str:
        """Identify the posts: docnos, texts and order."""
        digest = hashlib.sha256()
        for part in self.snapshot().parts:
            digest.update(part["sources"].tobytes())
        return digest.hexdigest()

    def rows(self) -> StoredRows:
        """Return the data of every post without reading it, in the order of storage."""
        snapshot = self.snapshot()
        columns = {
            name: np.concatenate([np.zeros(0, np.uint64), *(part[name][part.alive] for part in snapshot.parts)])
            for name in ("sources", "roots", "entries", "digests")
        }
        return StoredRows(list(snapshot), **columns)

    def get_many(self, docnos: Sequence[str]) -> list[Document]:
        snapshot, documents = self.snapshot(), dict[int, Document]()
        for part, places, local in snapshot.by_part(snapshot.find(docnos)):
            records, offsets, entries, digests = (part[name] for name in ("records", "offsets", "entries", "digests"))
            for place, row in zip(places.tolist(), local.tolist(), strict=True):
                docno, data = docnos[place], bytes(records[offsets[row] : offsets[row + 1]])
                try:
                    fields = parse_json(decompressed(data).decode("utf-8", "surrogatepass"))
                    title, html, parent, parent_title, *origin = fields
                    post = Document(docno, title, html, parent, parent_title, Origin(*origin))
                except (zlib.error, ValueError, TypeError) as error:
                    raise DamagedError(self.path, f"the post {docno!r:.80} cannot be read ({error})") from error
                documents[place] = post._replace(entry=int(entries[row]), digest=int(digests[row]))
        return [documents[place] for place in range(len(docnos))]

    def named(self, names: Sequence[str]) -> list[str]:
        """Return the posts with one of the names as their docno or file; raises ``UnknownIdError`` for other names."""
        snapshot, docnos = self.snapshot(), having(self, names)
        if files := {*names}.difference(docnos):
            units = [docno for docno in snapshot if docno.partition("#")[0] in files]
            snapshot.find(sorted(files - {docno.partition("#")[0] for docno in units}))  # names the missing ones
            docnos += units
        return sorted(docnos)

    def called(self, query: str) -> dict[str, bool]:
        """Return the docnos of the posts that have a query as their name, each with whether it is a statement."""
        snapshot, asked = self.snapshot(), normalized(_ASKED.sub("", query))
        if not asked:
            return {}
        named, statements = [np.zeros(0, np.int64)], [np.zeros(0, np.bool_)]
        for part, base in zip(snapshot.parts, snapshot.bases.tolist(), strict=False):
            hits = np.flatnonzero(part["names"] == np.uint64(name_fingerprint(asked)))
            rows = np.searchsorted(part["name_offsets"], hits, side="right") - 1
            rows = rows[part.alive[rows]]
            named.append(base + rows)
            statements.append(part["statements"][rows] > 0)
        return dict(zip(snapshot.ids(np.concatenate(named)), np.concatenate(statements).tolist(), strict=True))

    def titled(self, documents: Sequence[Document]) -> list[Document]:
        """Give posts the titles of the posts that they answer, where these exist."""
        asked = list(dict.fromkeys(post.parent for post in documents if post.parent and not post.parent_title))
        titles = {post.docno: post.title for post in self.get_many(having(self, asked))} if asked else {}
        return [post._replace(parent_title=post.parent_title or titles.get(post.parent, "")) for post in documents]

    def __iter__(self) -> Iterator[Document]:
        return self.stream(self.snapshot())

    def stream(self, docnos: Iterable[str]) -> Iterator[Document]:
        """Read posts one after the other, many at a time from the disk."""
        names = iter(docnos)
        while some := list(islice(names, _PART)):
            yield from self.get_many(some)


class Records:
    """Posts as the records that indexers read."""

    def __init__(self, posts: PostStore, docnos: Sequence[str]) -> None:
        self.posts, self.docnos = posts, docnos

    def __len__(self) -> int:
        return len(self.docnos)

    def __iter__(self) -> Iterator[dict[str, str]]:
        names = iter(self.docnos)
        while batch := list(islice(names, AT_ONCE)):
            for document in self.posts.titled(self.posts.get_many(batch)):
                yield document.record()


def having(index: StoredArtifact, ids: Sequence[str]) -> list[str]:
    """Return the ids that an index has, in the order given."""
    return [name for name, row in zip(ids, index.snapshot().look_up(list(ids)).tolist(), strict=True) if row >= 0]


def _add(job: Job, batch: Sequence[Document], done: npt.NDArray[np.uint64]) -> None:
    """Write a batch of posts as a part, except posts that an earlier run has written."""
    docnos = [document.docno for document in batch]
    if len(set(docnos)) < len(docnos):
        raise DuplicateIdError(job.path, sorted({name for name in docnos if docnos.count(name) > 1}))
    sources = [row_fingerprint(document.record()) for document in batch]
    new: list[int] = []
    for i, row in enumerate(job.rows_done(docnos).tolist()):
        if row < 0:
            new.append(i)
        elif int(done[row]) != sources[i]:
            raise job.changed(docnos[i])
    if not new:
        return
    posts, data = [batch[i] for i in new], list[bytes]()
    for post in posts:
        fields = [post.title, post.html, post.parent, post.parent_title, *post.origin]
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        data.append(zlib.compress(text.encode("utf-8", "surrogatepass")))
    names = [sorted(map(name_fingerprint, names_of(post))) for post in posts]
    arrays: dict[str, Array] = {
        "records": np.frombuffer(b"".join(data), dtype=np.uint8),
        "offsets": np.cumsum([0, *map(len, data)], dtype=np.int64),
        "sources": np.array([sources[i] for i in new], dtype=np.uint64),
        "roots": np.array([root_fingerprint(post.origin.root) for post in posts], dtype=np.uint64),
        "entries": np.array([post.entry for post in posts], dtype=np.uint64),
        "digests": np.array([post.digest for post in posts], dtype=np.uint64),
        "names": np.array([*chain.from_iterable(names)], dtype=np.uint64),
        "name_offsets": np.cumsum([0, *map(len, names)], dtype=np.int64),
        "statements": np.array([post.origin.kind not in _WHOLES for post in posts], dtype=np.uint8),
    }
    job.add(Content([docnos[i] for i in new], arrays))


def root_fingerprint(root: str) -> int:
    return row_fingerprint({"root": root})


def name_fingerprint(name: str) -> int:
    return row_fingerprint({"name": name})


def normalized(name: str) -> str:
    """Write a name as it is compared; empty if it is too long for one."""
    if len(name) > _LONGEST_NAME:
        return ""
    plain = "".join(each for each in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(each))
    words = [word for word in _WORD.findall(_POSSESSIVE.sub("", plain)) if word not in _ARTICLES]
    return " ".join(word[:-1] if len(word) > 3 and word[-1] == "s" != word[-2] else word for word in words)


def names_of(document: Document) -> set[str]:
    """Return the names of a post, as they are compared."""
    title = " ".join(text_of(post_from_html(document.title)).split())
    names = [title, document.docno.partition("#")[2].rpartition("/")[2]]
    if document.origin.kind and (printed := PRINTED.fullmatch(title)):
        kind, number, name = printed["kind"], printed["number"] or "", printed["name"] or ""
        names += [f"{kind}{number}" if number else "", name, f"{name} {kind}" if name else ""]
    return set(filter(None, map(normalized, names)))


def distinct_formulas(
    documents: Iterable[Document], known: Callable[[Sequence[str]], Iterable[bool]]
) -> Iterator[Document]:
    """Give each formula whose id is already used a new id: ``basel#3``, by its post and its place there."""
    taken: set[int] = set()  # hashes of the ids that earlier posts keep

    def renamed(post: Document) -> Document:
        ids: set[str] = set()
        count = 0

        def own(match: re.Match[str]) -> str:
            nonlocal count
            name = unescape(match[0])
            copies = 0
            while name in ids or hash(name) in taken:
                name = f"{post.docno}#{count}" + (f".{copies}" if copies else "")
                copies += 1
            count += 1
            ids.add(name)
            return escape(name)

        changed = post._replace(title=_ID.sub(own, post.title), html=_ID.sub(own, post.html))
        taken.update(hash(name) for name in ids if not name.startswith(f"{post.docno}#"))
        return changed

    stream = iter(documents)
    while batch := list(islice(stream, _BATCH)):
        ids = sorted({unescape(name) for post in batch for name in _ID.findall(post.title + post.html)})
        taken.update(hash(name) for name, is_known in zip(ids, known(ids), strict=True) if is_known)
        yield from map(renamed, batch)
