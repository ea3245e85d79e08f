"""The store behind docs_store: whole or not at all, and gone on with after a stop."""

import multiprocessing
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyterrier_mathamr.arqmath import ARQMathError
from pyterrier_mathamr.arqmath.datasets import definitions
from pyterrier_mathamr.arqmath.datasets.definitions import ARQMathDoc, DocumentStore

DOCS = [
    ARQMathDoc(str(100 + i), "answer", "7", "", f"<p>{i} ≤ \ud835</p>", f"{i}", "", "", None if i % 2 else -i, None)
    for i in range(23)
]


class Source:
    """Reads the documents; ends early, once, after `fails_after` of them."""

    def __init__(self, fails_after: int | None = None) -> None:
        self.fails_after, self.reads = fails_after, 0

    def __call__(self) -> Iterator[ARQMathDoc]:
        self.reads += 1
        for i, doc in enumerate(DOCS):
            if i == self.fails_after:
                self.fails_after = None
                raise KeyboardInterrupt
            yield doc


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "BATCH", 5)


def store(path: Path, source: Source) -> DocumentStore:
    return DocumentStore(path / "new" / "s.sqlite", source, ARQMathDoc)


def test_nothing_is_made_before_the_store_is_used_and_then_it_is_made_once(tmp_path: Path) -> None:
    source = Source()
    made = store(tmp_path, source)
    assert (made.built(), list(tmp_path.iterdir()), source.reads) == (False, [], 0)
    assert made.get("107") == DOCS[7]
    assert list(made) == DOCS
    assert (made.built(), made.count(), source.reads) == (True, 23, 1)
    assert made.get_many(["122", "x", "100", "122"]) == {"100": DOCS[0], "122": DOCS[22]}
    assert list(made.get_many_iter([])) == []
    with pytest.raises(KeyError):
        made.get("x")
    documents = iter(made)  # another thread goes on with what one began to read
    assert next(documents) == DOCS[0]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(list, documents).result() == DOCS[1:]


@pytest.mark.parametrize("fails_after", [0, 3, 5, 22])
def test_a_stopped_build_is_not_a_store_and_resumes_after_its_last_batch(tmp_path: Path, fails_after: int) -> None:
    made = store(tmp_path, Source(fails_after))
    with pytest.raises(KeyboardInterrupt):
        made.build()
    assert not made.built()
    with sqlite3.connect(made.path) as connection:
        assert connection.execute("SELECT count(*) FROM doc").fetchone()[0] == fails_after // 5 * 5
    assert [doc.doc_id for doc in made] == [doc.doc_id for doc in DOCS]
    assert made.get("113") == DOCS[13]


def killed_while_building(path: Path) -> None:
    import os

    def read() -> Iterator[ARQMathDoc]:
        yield from DOCS[:12]
        os._exit(9)

    DocumentStore(path, read, ARQMathDoc).build()


def test_a_killed_process_leaves_whole_batches(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    process = multiprocessing.get_context("spawn").Process(target=killed_while_building, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == 9
    made = DocumentStore(path, Source(), ARQMathDoc)
    assert not made.built()
    assert list(made) == DOCS


def test_slices_behave_like_a_list_s_and_can_be_sliced_again(tmp_path: Path) -> None:
    made = iter(store(tmp_path, Source()))
    for place in ((2, 5), (None, 3), (20, None), (-4, -1), (1, 20, 6), (30, 40), (4, 4), (9, 2, -3)):
        assert list(made[slice(*place)]) == DOCS[slice(*place)]
        assert list(made[slice(*place)][1:3]) == DOCS[slice(*place)][1:3]
    assert [*made[: 1 / 3], *made[1 / 3 : 0.5], *made[0.5:]] == DOCS
    assert (made[0], made[-1]) == (DOCS[0], DOCS[-1])
    for number in (23, -24):
        with pytest.raises(IndexError):
            made[number]


def test_a_file_that_is_not_a_store_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "s.sqlite").write_bytes(b"something else" * 100)
    with pytest.raises(ARQMathError, match=r"s\.sqlite.*delete this file"):
        DocumentStore(tmp_path / "s.sqlite", Source(), ARQMathDoc).build()
