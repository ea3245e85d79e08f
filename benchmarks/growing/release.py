"""A collection in the layout of the ARQMath release, multiplied from a small one: any size, constant memory.

The first copy is the small collection itself, so that topics and judgments, which are copied unchanged, still have
something to find. Each further one has new ids, and newly drawn words and symbols. Part of the formulas is repeated as
formulas of comments, which the tables have and the posts lack, until there are 11.67 formulas a post, 28 million for
2.4 million posts. Equal arguments give equal bytes. A run that was stopped continues after its last complete step::

    Posts.V1.3.xml                        every post, ids ascending, a question before its answers
    latex_representation_v3/1.tsv.gz …    about 280,000 formulas each, as many files as the release has; slt, opt
    pairs.tsv                             questions with their answers
    topics/, qrels/                       copied
    .multiplied.json                      the arguments, and the completed steps
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import compress
from pathlib import Path
from random import Random
from typing import IO, Any

import numpy as np

from .drawing import Drawing
from .templates import KINDS, Formula, Source, Words, read_source

FORMULAS_PER_POST = 28 / 2.4
_TABLE_ROWS = 280_000
_HEADER = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\r\n"
_POSTS, _STATE = "Posts.V1.3.xml", ".multiplied.json"
_VISUAL = 30_000_000, 70_000_000  # first id and number of ids: above the release's ids of eight digits


@dataclass(frozen=True)
class _Done:
    """The completed work: the arguments, the next copy, the next table, and the bytes of the files that grow."""

    asked: list[Any]
    copy: int = 0
    table: int = 1
    posts: int = 0
    pairs: int = 0
    whole: bool = False


def multiply(folder: Path, target: Path, posts: int, seed: int = 0) -> Path:
    """Write a collection of ``posts`` posts, or complete it.

    Args:
        folder: the small collection.
        target: where to write; a folder of other arguments is replaced.
        posts: how many.
        seed: of all that is drawn.

    Returns:
        The target.
    """
    asked = [str(folder.resolve()), posts, seed]
    done = _read_state(target, asked)
    if done.whole:
        return target
    source = read_source(folder)
    writer = _Writer(source, Drawing(source, seed), target, posts)
    if not done.copy:
        _begin(folder, target)
    copies = -(-posts // len(source.posts))
    step = max(1, round(_TABLE_ROWS / writer.rows_of_copy))
    while done.copy < copies:
        done = writer.write(done, range(done.copy, min(copies, done.copy + step)))
        _write_state(target, done)
    with open(target / f"{_POSTS}.part", "ab") as file:
        file.truncate(done.posts)
        file.write(b"</posts>\n")
    os.replace(target / f"{_POSTS}.part", target / _POSTS)
    _write_state(target, replace(done, whole=True))
    return target


def _begin(folder: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    for name in ("topics", "qrels"):
        if (folder / name).is_dir():
            shutil.copytree(folder / name, target / name, copy_function=shutil.copyfile)
            (target / name).chmod(0o755)
    for kind in KINDS:
        (target / f"{kind}_representation_v3").mkdir(parents=True)


def _read_state(target: Path, asked: list[Any]) -> _Done:
    try:
        done = _Done(**json.loads((target / _STATE).read_text()))
    except FileNotFoundError:
        return _Done(asked)
    return done if done.asked == asked else _Done(asked)


def _write_state(target: Path, done: _Done) -> None:
    new = target / f"{_STATE}.new"
    new.write_text(json.dumps(done.__dict__))
    os.replace(new, target / _STATE)


class _Writer:
    """Writes copies."""

    def __init__(self, source: Source, drawing: Drawing, target: Path, posts: int) -> None:
        self._source, self._drawing, self._target, self._posts = source, drawing, target, posts
        self._place = {post.id: i for i, post in enumerate(source.posts)}
        count = len(source.formulas)
        self._comments = max(0, round(FORMULAS_PER_POST * len(source.posts)) - count)
        self._first_post = 1 + max(int(post.id) for post in source.posts)
        self._first_formula = 1 + max(int(formula.row.id) for formula in source.formulas)
        self._visual = {of.cells["latex"].filled(_Same()): of.row.visual_id for of in source.formulas}
        words = [word for title, body in zip(source.titles, source.bodies, strict=True) for word in _both(title, body)]
        self._capitals = np.array([word[0].isupper() for word in words], dtype=np.bool_)

    @property
    def rows_of_copy(self) -> int:
        """How many rows of tables a whole copy has."""
        return len(self._source.formulas) + self._comments

    def write(self, done: _Done, copies: range) -> _Done:
        """Write some copies: to the next table of each kind, and to the end of the posts and pairs."""
        posts, pairs = self._target / f"{_POSTS}.part", self._target / "pairs.tsv"
        tables = {k: self._target / f"{k}_representation_v3" / f"{done.table}.tsv.gz" for k in KINDS}
        with open(posts, "ab") as out, open(pairs, "ab") as paired, ExitStack() as files:
            for file, size in ((out, done.posts), (paired, done.pairs)):
                file.seek(file.truncate(size))
            if not done.copy:
                out.write(b'<?xml version="1.0" encoding="utf-8"?>\n<posts>\n')
                paired.write(b"question_id\tanswer_id\n")
            zipped = {kind: files.enter_context(_zipped(path, files)) for kind, path in tables.items()}
            for table in zipped.values():
                table.write(_HEADER.encode())
            for copy in copies:
                self._write_copy(copy, out, paired, zipped)
            return replace(done, copy=copies.stop, table=done.table + 1, posts=out.tell(), pairs=paired.tell())

    def _write_copy(self, copy: int, posts: IO[bytes], pairs: IO[bytes], tables: dict[str, gzip.GzipFile]) -> None:
        size = min(len(self._source.posts), self._posts - copy * len(self._source.posts))
        ids = self._post_ids(copy)
        rng = self._drawing.random(copy)
        symbols = [self._drawing.symbols(rng, post) if copy else _Same() for post in range(size)]
        words = iter(self._drawing.words(copy, self._capitals)) if copy else None
        posts.write("".join(self._rows_of_posts(ids, symbols, words, copy)).encode())
        answers = [(self._place.get(post.parent_id), i) for i, post in enumerate(self._source.posts[:size])]
        pairs.write("".join(f"{ids[q]}\t{ids[a]}\n" for q, a in answers if q is not None).encode())
        rows = [i for post in range(size) for i in self._source.of_post[post]]
        kept = np.zeros(len(self._source.formulas), dtype=np.bool_)
        kept[rows] = True
        columns: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for i in np.flatnonzero(kept).tolist():
            self._add_row(columns, i, self._formula_id(copy, i), ids, symbols, "")
        for i, comment in self._comments_of(rng, copy, kept):
            self._add_row(columns, i, comment, ids, symbols, comment)
        for kind, table in tables.items():
            table.write("".join(columns[kind]).encode())

    def _post_ids(self, copy: int) -> list[str]:
        if not copy:
            return [post.id for post in self._source.posts]
        first = self._first_post + (copy - 1) * len(self._source.posts)
        return list(map(str, range(first, first + len(self._source.posts))))

    def _formula_id(self, copy: int, row: int) -> str:
        if not copy and row < len(self._source.formulas):
            return self._source.formulas[row].row.id
        return str(self._first_formula + copy * self.rows_of_copy + row)

    def _comments_of(self, rng: Random, copy: int, kept: np.ndarray) -> Iterator[tuple[int, str]]:
        """Yield the formulas that comments repeat, with their new ids."""
        count = len(self._source.formulas)
        drawn = [rng.randrange(count) for _ in range(self._comments)]
        for place, row in compress(enumerate(drawn), kept[drawn].tolist()):
            yield row, self._formula_id(copy, count + place)

    def _rows_of_posts(
        self, ids: list[str], symbols: list[dict[str, str]], words: Iterator[str] | None, copy: int
    ) -> Iterator[str]:
        for place, drawn in enumerate(symbols):
            post, title, body = self._source.posts[place], self._source.titles[place], self._source.bodies[place]
            texts = [self._filled(of, drawn, words, copy) for of in (title, body)]
            tags = "".join(f"&lt;{tag}&gt;" for tag in post.tags)
            if post.kind == "question":
                yield f'  <row Id="{ids[place]}" PostTypeId="1" Title="{texts[0]}" Body="{texts[1]}" Tags="{tags}"/>\n'
            else:
                parent = self._place.get(post.parent_id)
                named = post.parent_id if parent is None else ids[parent]
                yield f'  <row Id="{ids[place]}" PostTypeId="2" Body="{texts[1]}" ParentId="{named}"/>\n'

    def _filled(self, of: Words, symbols: dict[str, str], words: Iterator[str] | None, copy: int) -> str:
        """Fill the template of an attribute."""
        new = of.words if words is None else [next(words) for _ in of.words]
        spans = [self._span(row, symbols, copy) for row in of.formulas]
        return of.text % tuple([new[slot] if slot >= 0 else spans[-slot - 1] for slot in of.slots])

    def _span(self, row: int, symbols: dict[str, str], copy: int) -> str:
        latex = self._source.formulas[row].in_html.filled(symbols)
        name = self._formula_id(copy, row)
        return f"&lt;span class=&quot;math-container&quot; id=&quot;{name}&quot;&gt;{latex}&lt;/span&gt;"

    def _add_row(
        self,
        columns: dict[str, list[str]],
        i: int,
        name: str,
        ids: list[str],
        symbols: list[dict[str, str]],
        comment: str,
    ) -> None:
        """Add a formula to the columns of the three tables."""
        formula: Formula = self._source.formulas[i]
        row, post = formula.row, self._place[formula.row.post_id]
        thread = self._place.get(row.thread_id)
        cells = {kind: cell.filled(symbols[post]) for kind, cell in formula.cells.items()}
        new = self._visual.get(cells["latex"]) or str(_VISUAL[0] + _number(cells["latex"]))
        visual = row.visual_id if isinstance(symbols[post], _Same) else new
        type_, old = "comment" if comment else row.type, row.thread_id if thread is None else ids[thread]
        start = f"{name}\t{ids[post]}\t{old}\t{type_}\t{comment}\t{visual}\t{visual}\t\t"
        for kind, cell in cells.items():
            columns[kind].append(f"{start}{cell}\r\n")


class _Same(dict[str, str]):
    """Symbols that map to themselves."""

    def __missing__(self, name: str) -> str:
        return name


def _zipped(path: Path, files: ExitStack) -> gzip.GzipFile:
    """Open a gzipped file whose bytes depend only on its content: it has neither name nor time."""
    return gzip.GzipFile("", "wb", 1, files.enter_context(open(path, "wb")), mtime=0)


def _both(title: Words, body: Words) -> Iterator[str]:
    yield from title.words
    yield from body.words


def _number(text: str) -> int:
    """Return a number for a text, the same for the same text; a few percent share theirs with another."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") % _VISUAL[1]
