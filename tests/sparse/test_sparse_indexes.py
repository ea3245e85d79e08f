"""Common to BM25, Tangent and patterns: after any changes, an index ranks like one that is built at once."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.sparse import (
    BM25Index,
    PairOptions,
    PatternIndex,
    TangentIndex,
    TokenOptions,
    bm25,
    bm25_search,
    expression_parts,
    postings,
    texts,
)
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.sparse.texts import TermVocabulary, Texts
from pyterrier_mathamr.store import (
    Appended,
    DamagedError,
    DuplicateIdError,
    FormatError,
    UnfinishedJobError,
    UnknownIdError,
    WriteError,
    job,
    scratch_array,
)

DATA = Path(__file__).parents[1] / "data"
LATEX = ["x^2+1", "x^2", r"\frac{a}{b}", "y", "a+b", r"\sqrt{x}"]
WORDS = ["bounded", "series", "matrix", "élan", "series series", "x"]
KINDS = (BM25Index, TangentIndex)
ALL_KINDS = (*KINDS, PatternIndex)  # including one without options


def document(name: str, content: int) -> dict[str, str]:
    """A document whose words and single formula, of the same id, depend on its content."""
    latex, words = LATEX[content % len(LATEX)], f"{WORDS[content % 5]} {WORDS[content % 3]}"
    return {"docno": name, "html": f'{words} <span class="math-container" id="{name}">{latex}</span>'}


def documents(*names: str, seed: int = 0) -> list[dict[str, str]]:
    return [document(name, sum(name.encode("utf-8", "surrogatepass")) * (seed + 1)) for name in names]


def search(index: BM25Index | TangentIndex) -> pd.DataFrame:
    """Rank by queries that share something with most documents, with cutoffs that fall into ties."""
    if isinstance(index, BM25Index):
        queries = pd.DataFrame({"qid": ["1", "2"], "query": ["bounded series matrix $x^2$", "élan series"]})
    else:
        queries = pd.DataFrame({"qid": ["1", "2"], "latex": ["x^2+y", "a+b"]})
    return pd.concat([index.retriever(count)(queries) for count in (2, 1000)], ignore_index=True)


def assert_alike(index: Any, rebuilt: Any) -> None:
    pd.testing.assert_frame_equal(search(index), search(rebuilt), check_exact=True)
    assert len(index) == len(rebuilt)


def arrays(index: Any) -> list[bytes]:
    return [(index.path / part.meta.name / "arrays.safetensors").read_bytes() for part in index.snapshot().parts]


names = st.sampled_from(["a", "b", "c", "d10", "d9", "é", "n!", "\ud800", "007", " 7", "z" * 70])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.tuples(names, st.integers(0, 20)), unique_by=lambda row: row[0])),
        st.tuples(st.just("delete"), st.lists(names, unique=True)),
        st.tuples(st.just("compact"), st.none()),
    ),
    min_size=1,
    max_size=6,
)


@contextmanager
def combined_by(block: int) -> Iterator[None]:
    """Read, combine and weigh so many texts, terms, expressions or postings at a time."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((postings, "BLOCK"), (expression_parts, "BLOCK"), (texts, "AT_ONCE")):
            patch.setattr(module, name, block)
        patch.setattr(bm25_search, "_AT_ONCE", block)
        yield


@pytest.mark.parametrize("block", [1, 1 << 16])
@pytest.mark.parametrize("kind", ALL_KINDS)
@settings(max_examples=5)
@given(steps=steps)
def test_after_any_changes_it_ranks_like_a_rebuilt_index_whatever_is_combined_at_a_time(kind, block, steps):
    with tempfile.TemporaryDirectory() as folder:
        index, stored = kind(Path(folder) / "index").index([]), dict[str, dict[str, str]]()
        with combined_by(block):
            for step, given_rows in steps:
                if step == "append":  # a formula has an id in HTML, which cannot have all characters
                    possible = [row for row in given_rows if kind is BM25Index or row[0].isalnum()]
                    new = {name: document(name, content) for name, content in possible if name not in stored}
                    index.indexer("append").index(new.values())
                    stored |= new
                elif step == "delete":
                    gone = [name for name in given_rows if name in stored]
                    index.delete(gone)
                    stored = {name: row for name, row in stored.items() if name not in gone}
                else:
                    index.compact()
            rankings, ids = [search(index)], [row["docno"] for row in index.get_corpus_iter()]
            index.compact()
            rankings.append(search(index))
            index.verify()
        rebuilt = kind(Path(folder) / "rebuilt").index(stored.values())
        for ranking in rankings:
            pd.testing.assert_frame_equal(ranking, search(rebuilt), check_exact=True)
        assert sorted(ids) == sorted(stored)
        assert (len(index), arrays(index)) == (len(rebuilt), arrays(rebuilt))


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_merged_indexes_rank_as_one_built_of_all_documents(kind: Any, tmp_path: Path) -> None:
    parts = [documents("a", "b", "c"), documents("d", "é"), documents("x", "f", seed=3)]
    indexes = [kind(tmp_path / str(number)).index(part) for number, part in enumerate(parts)]
    indexes[1].delete(["d"])
    indexes[2].delete(["f"])
    indexes[2].indexer("append").index(documents("d", seed=5))
    merged = kind.merge(tmp_path / "merged", *indexes)
    rebuilt = kind(tmp_path / "rebuilt").index(
        documents("a", "b", "c", "é") + documents("x", seed=3) + documents("d", seed=5)
    )
    assert_alike(merged, rebuilt)
    assert arrays(merged) == arrays(rebuilt)
    assert arrays(kind.merge(tmp_path / "copy", rebuilt)) == arrays(rebuilt)
    with pytest.raises(WriteError, match="already"):
        kind.merge(tmp_path / "merged", *indexes)


def test_a_document_that_two_merged_indexes_have_is_refused_and_of_a_formula_the_first_place_counts(tmp_path):
    for kind in KINDS:
        one = kind(tmp_path / f"{kind.__name__}1").index([{**document("a", 0), "docno": "1"}])
        two = kind(tmp_path / f"{kind.__name__}2").index([{**document("a", 2), "docno": "1"}, document("b", 1)])
        if kind is BM25Index:
            with pytest.raises(DuplicateIdError, match="'1'"):
                kind.merge(tmp_path / "no", one, two)
        else:
            merged = kind.merge(tmp_path / "yes", one, two)
            assert {row["docno"] for row in merged.get_corpus_iter()} == {"a", "b"}
            assert merged.search(LATEX[0]).score[0] == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_only_indexes_of_the_same_kind_and_options_are_merged_or_added_to(kind: Any, tmp_path: Path) -> None:
    usual, other = kind(tmp_path / "usual").index(documents("a")), kind(tmp_path / "other")
    other.indexer(**OTHER_OPTION[kind]).index(documents("b"))
    message = {BM25Index: "'stem': True.*'stem': False", TangentIndex: "'window': 2.*'window': 1"}[kind]
    with pytest.raises(ConfigError, match=message):
        other.indexer("append").index(documents("c"))
    with pytest.raises(ConfigError, match=message):
        kind.merge(tmp_path / "merged", usual, other)
    with pytest.raises(ConfigError, match="at least one"):
        kind.merge(tmp_path / "merged", usual, next(type_ for type_ in KINDS if type_ is not kind)(tmp_path / "x"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "usual"]
    assert len(other) == 1


def test_what_is_there_is_not_added_again_unless_it_was_deleted_and_of_a_formula_the_first_place_counts(tmp_path):
    index = BM25Index(tmp_path / "index").index(documents("a", "b"))
    with pytest.raises(DuplicateIdError, match="'b'"):
        index.indexer("append").index(documents("c", "b"))
    with pytest.raises(UnknownIdError, match="'c'"):
        index.delete(["a", "c"])
    assert len(index) == 2
    index.delete(["b"])
    index.indexer("append").index(documents("c", "b"))
    assert [row["docno"] for row in index.get_corpus_iter()] == ["a", "c", "b"]
    index = TangentIndex(tmp_path / "formulas").index([document("a", 0)])
    again = [{**document("a", 2), "docno": "later"}, document("b", 1)]
    index.indexer("append").index(again)
    assert {row["docno"]: row["post_id"] for row in index.get_corpus_iter()} == {"a": "a", "b": "b"}
    index.delete(["a"])
    index.indexer("append").index(again)
    assert {row["docno"]: row["post_id"] for row in index.get_corpus_iter()} == {"a": "later", "b": "b"}
    assert index.search(LATEX[2]).docno[0] == "a"


ODD = ["!", "n!", "n", "\ud800", "\udfff!", "é", "007", "7", "a b", "x" * 20_000, "\U0001f600", "￿"]


def test_ids_come_back_as_they_went_in_and_ties_are_in_their_order(tmp_path: Path) -> None:
    index = BM25Index(tmp_path / "bm25").index({"docno": name, "text": "bounded"} for name in ODD)
    assert [row["docno"] for row in index.get_corpus_iter()] == ODD
    assert index.search("bounded").docno.tolist() == sorted(ODD)
    assert index.retriever(3).search("bounded").docno.tolist() == sorted(ODD)[:3]
    size = sum(file.stat().st_size for file in (tmp_path / "bm25").rglob("*") if file.is_file())
    assert 20_000 < size < 50_000


def test_formula_ids_post_ids_and_visual_ids_come_back_as_they_went_in(tmp_path: Path) -> None:
    ids = ["é", "007", "7", "x" * 300, "\U0001f600"]
    rows = list(zip(ids, ODD, reversed(ODD), strict=False))  # of formula, post and visual id
    posts = [{"docno": post, "html": f'<span class="math-container" id="{name}">y</span>'} for name, post, _ in rows]
    visual = {name: visual_id for name, _, visual_id in rows}
    index = TangentIndex(tmp_path / "tangent").indexer(visual_ids=visual).index(posts)
    for _ in range(2):
        found = index.search("y")[["docno", "post_id", "visual_id"]]
        assert found.to_numpy().tolist()[: len(rows)] == [list(row) for row in sorted(rows)]
        assert {tuple(row.values()) for row in index.get_corpus_iter()} >= set(rows)
        index.indexer("append").index(documents("new"))


class StoppedError(Exception):
    """The error that interrupts a stream."""


def until(stop: int, stream: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    yield from stream[:stop]
    raise StoppedError


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a part after every second document."""
    monkeypatch.setattr(sparse, "PART_BYTES", 1)
    monkeypatch.setattr(sparse, "BATCH", 2)


STREAM = documents(*(f"d{number}" for number in range(11)))
OTHER_OPTION = {
    BM25Index: {"tokens": TokenOptions(stop_words=False, stem=False)},
    TangentIndex: {"pairs": PairOptions(window=1)},
}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("kind", "mode", "stop"),
    [
        (BM25Index, "create", 0), (BM25Index, "append", 11), (BM25Index, "overwrite", 4), (TangentIndex, "append", 1),
        (TangentIndex, "create", 7), (PatternIndex, "overwrite", 7),
    ],
)  # fmt: skip
def test_an_interrupted_build_goes_on_and_gives_the_same(kind, mode, stop, tmp_path, monkeypatch):
    def prepared(name: str) -> Any:
        index = kind(tmp_path / name)
        return index.index(documents("old")) if mode != "create" else index

    index, undisturbed = prepared("index"), prepared("undisturbed")
    with pytest.raises(StoppedError):
        index.indexer(mode, resume=True).index(until(stop, STREAM))
    assert index.built() == (mode != "create")
    kept, read = index.unfinished(), list[str]()
    assert kept == stop - stop % 2
    for module in (sparse, bm25):

        def reading(row: Any, *, whole: Callable[..., Any] = module.document_or_empty, **options: Any) -> Any:
            read.append(row["docno"])
            return whole(row, **options)

        monkeypatch.setattr(module, "document_or_empty", reading)
    index.indexer(mode, resume=True).index(iter(STREAM))
    assert len(read) == len(STREAM) - kept
    undisturbed.indexer(mode).index(STREAM)
    assert_alike(index, undisturbed)
    index.compact()
    undisturbed.compact()
    assert arrays(index) == arrays(undisturbed)
    assert index.unfinished() == 0


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_build_refuses_other_documents_or_options(kind: Any, tmp_path: Path) -> None:
    index = kind(tmp_path / "index")
    with pytest.raises(StoppedError):
        index.indexer(resume=True).index(until(6, STREAM))
    changed = [*STREAM[:2], document("d2", 99), *STREAM[3:]]
    for other in (changed, STREAM[:4], STREAM[1:6]):
        with pytest.raises(UnfinishedJobError):
            index.indexer(resume=True).index(other)
    option = {"visual_ids": {"d1": "v"}} if kind is TangentIndex else OTHER_OPTION[kind]
    with pytest.raises(UnfinishedJobError, match=next(iter(option))):
        index.indexer(resume=True, **option).index(STREAM)
    assert index.unfinished() == 6
    index.indexer(resume=False, **option).index(changed)  # starts over
    assert_alike(index, kind(tmp_path / "rebuilt").indexer(**option).index(changed))


@pytest.mark.usefixtures("small_parts")
def test_posts_without_a_new_formula_do_not_prevent_resuming(tmp_path: Path) -> None:
    stream = [*STREAM[:2], {"docno": "none", "html": "text"}, {**STREAM[0], "docno": "again"}, *STREAM[2:], STREAM[1]]
    index = TangentIndex(tmp_path / "index")
    with pytest.raises(StoppedError):
        index.indexer(resume=True).index(until(8, stream))
    assert index.unfinished() == 6
    index.indexer(resume=True).index(stream)
    assert arrays(index) == arrays(TangentIndex(tmp_path / "rebuilt").index(stream))


@pytest.mark.parametrize(
    ("kind", "old", "new", "preset"),
    [
        (BM25Index, "bm25-format-1", 3, ", preset='math'"),  # as it was built
        (BM25Index, "bm25-format-2", 3, ", preset='math'"),
        (TangentIndex, "tangent-format-1", 2, ""),
    ],
)
def test_an_old_format_is_refused_with_the_call_that_rebuilds_it(kind, old, new, preset, tmp_path):
    shutil.copytree(DATA / old, tmp_path / "old")
    index = pt.Artifact.load(str(tmp_path / "old"))
    assert type(index) is kind
    call = rf"{kind.__name__}\('.*/old'{preset}\)\.indexer\(mode='overwrite'\)\.index\("
    rebuild = rf"format {old[-1]}, .* {new}\. Rebuild it: {call}"
    for use in (search, lambda index: index.indexer("append").index(STREAM), lambda index: index.index(STREAM)):
        with pytest.raises(FormatError, match=rebuild):
            use(index)
    assert len(index.indexer("overwrite").index(STREAM)) == len(STREAM)
    assert len(list(index.path.iterdir())) == 2  # the manifest and a part; what was there is gone


@pytest.mark.parametrize(("name", "number"), [("bm25", 3), ("tangent", 2)])
def test_the_present_format_opens(name: str, number: int) -> None:
    """A change of the format needs a new number, and the file below one more neighbor."""
    index = pt.Artifact.load(str(DATA / f"{name}-format-{number}"))
    index.verify()
    query = {"bm25": "geometric series", "tangent": "x^2"}[name]
    assert index.search(query).docno.tolist() == {"bm25": ["d2", "d1"], "tangent": ["2", "1"]}[name]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [None, {}, {"window": "2", "ends": True}, {"stem": "no"}, {"new": 1}, [1]])
def test_options_that_are_none_are_damage(kind: Any, value: Any, tmp_path: Path) -> None:
    index = kind(tmp_path / "index")
    name = {BM25Index: "tokens", TangentIndex: "pairs"}[kind]
    with index.job("create", {}) as job:
        job.commit({"preset": "standard"} | ({} if value is None else {name: value}))
    if kind is BM25Index and value == {}:
        assert index.snapshot().tokens.stem  # missing options have their defaults
    else:
        with pytest.raises(DamagedError, match=name):
            search(index)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("kind", "mode"), [(BM25Index, "create"), (TangentIndex, "overwrite")])
def test_an_index_is_not_there_before_its_parts_are_one(kind, mode, tmp_path, monkeypatch):
    stream = [{"docno": str(i), "text": f"a word$x^{i}$"} for i in range(7)]
    index = kind(tmp_path / "index")
    if mode == "overwrite":
        index.index(stream[:1])
    with monkeypatch.context() as broken:
        broken.setattr(job, "merged", lambda parts: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            index.indexer(mode, resume=True).index(stream)
    assert len(index) == 1 if mode == "overwrite" else not index.built()
    index.indexer(mode, resume=True).index(stream)
    assert len(index.snapshot().parts) == 1
    assert sorted(index.snapshot()) == sorted(kind(tmp_path / "rebuilt").index(stream).snapshot())
    assert not list(tmp_path.glob(".index.job/parts/*"))


TEXT = st.text(st.characters(exclude_categories=()), max_size=4) | st.sampled_from(["1", "10", "é", "\ud800", "z" * 70])


@given(st.sets(TEXT), TEXT)
def test_terms_are_looked_up_as_in_a_dictionary(terms: set[str], other: str) -> None:
    names = sorted(terms)
    vocabulary = TermVocabulary(Texts.of(names))
    assert dict(vocabulary) == {name: number for number, name in enumerate(names)}
    assert vocabulary.get(other) == (names.index(other) if other in terms else None)
    assert (other in vocabulary) == (other in terms)


def test_scratch_arrays_leave_no_file_and_report_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = scratch_array(tmp_path, 1000, np.dtype(np.int32))
    scratch[-1] = 7
    assert scratch[-2:].tolist() == [0, 7]
    for folder in (None, tmp_path):
        array, empty = (Appended(folder, np.dtype(np.int32)) for _ in range(2))
        for piece in ([1, 2], [], [3]):
            array.append(np.array(piece))
        assert array.array().tolist() == [1, 2, 3]
        assert empty.array().tolist() == []
    assert list(tmp_path.iterdir()) == []
    if not Path("/dev/full").exists():
        return
    with open("/dev/full", "r+b", buffering=0) as full:
        monkeypatch.setattr("tempfile.TemporaryFile", lambda dir: full)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            Appended(tmp_path, np.dtype(np.int32)).append(np.zeros(1000))
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            scratch_array(tmp_path, 1000, np.dtype(np.int32))
