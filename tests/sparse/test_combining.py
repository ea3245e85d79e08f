"""Combining and ordering by blocks: the same as all at once in plain Python, whatever the size of a block."""

from __future__ import annotations

import errno
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.sparse import BM25Index, TangentIndex
from pyterrier_mathamr.sparse import bm25_search as weights
from pyterrier_mathamr.sparse import expression_parts as expressions
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.sparse import postings as blocks
from pyterrier_mathamr.sparse import texts as text_blocks
from pyterrier_mathamr.sparse.bm25_search import PostingWeights, Weighting
from pyterrier_mathamr.sparse.expression_parts import _order
from pyterrier_mathamr.sparse.postings import Postings, PostingsBuilder
from pyterrier_mathamr.sparse.texts import TermVocabulary, Texts, united
from pyterrier_mathamr.store import Appended, job, scratch_array

WORDS = ["a", "bee", "élan", "x", "y", "z"]
DOCUMENTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=6), max_size=6)
TEXT = st.text(st.characters(exclude_categories=()), max_size=4) | st.sampled_from(["1", "10", "é", "\ud800", "z" * 70])


def counted(documents: list[list[str]]) -> Postings:
    builder = PostingsBuilder()
    for tokens in documents:
        builder.add(tokens)
    return builder.postings()


def plain(postings: Postings) -> list[Counter[str]]:
    """The counts of each document."""
    found = [Counter[str]() for _ in postings.lengths]
    for i, name in enumerate(postings.names):
        here = slice(postings.offsets[i], postings.offsets[i + 1])
        assert here.start < here.stop, "a term that no document has"
        assert np.all(np.diff(postings.documents[here]) > 0)
        for document, count in zip(postings.documents[here], postings.counts[here], strict=True):
            found[document][name] = int(count)
    return found


@settings(max_examples=50)
@given(st.lists(DOCUMENTS, max_size=4), st.sampled_from([1, 3, 1 << 22]), st.booleans(), st.randoms())
def test_pieces_are_combined_as_if_their_documents_were_counted_at_once(tmp_path_factory, pieces, block, disk, random):
    kept = [[random.random() < 0.8 for _ in piece] for piece in pieces]
    documents = [
        doc for piece, of in zip(pieces, kept, strict=True) for doc, keep in zip(piece, of, strict=True) if keep
    ]
    places = iter(random.sample(range(len(documents)), len(documents)))
    numbers = [np.array([next(places) if keep else -1 for keep in of], dtype=np.int64) for of in kept]
    expected: list[Counter[str]] = [Counter() for _ in documents]
    for piece, number in zip(pieces, numbers, strict=True):
        for tokens, place in zip(piece, number.tolist(), strict=True):
            if place >= 0:
                expected[place] = Counter(tokens)
    folder = tmp_path_factory.getbasetemp() if disk else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", block)
        patch.setattr(text_blocks, "AT_ONCE", block)
        found = Postings.combined([counted(piece) for piece in pieces], numbers, len(documents), folder)
    assert plain(found) == expected
    assert list(found.names) == sorted({token for tokens in expected for token in tokens})
    assert found.lengths.tolist() == [tokens.total() for tokens in expected]


@settings(max_examples=50)
@given(st.lists(st.sets(TEXT), max_size=4), st.sampled_from([1, 3, 8, 1 << 16]))
def test_vocabularies_are_united_in_order_whatever_is_taken_at_a_time(vocabularies: list[set[str]], step: int) -> None:
    pieces = [sorted(of) for of in vocabularies]
    found: list[str] = []
    numbers: list[list[int]] = [[] for _ in pieces]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_blocks, "AT_ONCE", step)
        for terms, places in united([Texts.of(piece) for piece in pieces]):
            assert len(terms) <= max(step, len(pieces))
            for (first, here), number in zip(places, numbers, strict=True):
                assert first == len(number)
                number += (here + len(found)).tolist()
            found += [term.decode("utf-8", "surrogatepass") for term in terms]
    assert found == sorted(set().union(*vocabularies))
    assert [[found[number] for number in of] for of in numbers] == pieces


@given(st.sets(TEXT), TEXT)
def test_terms_are_looked_up_as_in_a_dictionary(terms: set[str], other: str) -> None:
    names = sorted(terms)
    vocabulary = TermVocabulary(Texts.of(names))
    assert dict(vocabulary) == {name: number for number, name in enumerate(names)}
    assert vocabulary.get(other) == (names.index(other) if other in terms else None)
    assert (other in vocabulary) == (other in terms)


@pytest.mark.parametrize("delta", [None, 1.0])
def test_weights_do_not_depend_on_blocks(delta: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    postings = counted([["x", "x", "y"], ["y"], [], ["a", "x"]])
    weighting = Weighting.of("bm25", None, None, None, delta, "standard")
    whole = [PostingWeights(weighting, postings).of(term).tolist() for term in range(3)]
    assert list(map(len, whole)) == [1, 2, 2]
    assert min(map(min, whole)) > 0
    monkeypatch.setattr(weights, "_AT_ONCE", 1)
    assert [PostingWeights(weighting, postings).of(term).tolist() for term in range(3)] == whole


@given(
    st.lists(st.tuples(st.integers(0, 2), TEXT), max_size=8, unique_by=lambda pair: pair[1]), st.sampled_from([1, 3])
)
def test_formulas_are_in_order_of_expression_and_then_of_id_as_python_has_it(
    pairs: list[tuple[int, str]], step
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_blocks, "AT_ONCE", step)
        texts = Texts.of(name for _, name in pairs)
        order = _order(np.array([number for number, _ in pairs], dtype=np.int64), texts)
        assert list(texts) == [name for _, name in pairs]
        assert [texts[row] for row in order] == list(texts.take(order)) == [name for _, name in sorted(pairs)]
        assert list(Texts.joined([texts, texts.take(order)])) == [*texts, *texts.take(order)]


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


def test_formulas_are_joined_alike_whatever_is_taken_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latex = ["x", "y^2", "x", r"\frac{a}{b}", "x", "z", "y^2"]
    stream = [
        {"docno": f"d{i}", "html": f'<span class="math-container" id="{9 - i}">{of}</span>'}
        for i, of in enumerate(latex)
    ]
    alike = []
    for step in (1 << 16, 1):
        monkeypatch.setattr(expressions, "BLOCK", step)
        whole = TangentIndex(tmp_path / f"whole{step}").index(stream)
        index = TangentIndex(tmp_path / f"parts{step}").index(stream[:3])
        index.indexer("append").index(stream[3:])
        index.delete(["7"])
        index.compact()
        whole.delete(["7"])
        whole.compact()
        alike += [[dict(row) for row in of.get_corpus_iter()] for of in (whole, index)]
        alike += [
            [np.array(part[field.name]).tolist() for part in of.snapshot().parts for field in of.KIND.fields]
            for of in (whole, index)
        ]
    assert alike == [alike[0], alike[0], alike[2], alike[2]] * 2
    assert sorted(row["docno"] for row in alike[0]) == ["3", "4", "5", "6", "8", "9"]


@pytest.mark.parametrize(("kind", "mode"), [(BM25Index, "create"), (TangentIndex, "overwrite")])
def test_an_index_is_not_there_before_its_parts_are_one(
    kind: Any, mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse, "PART_BYTES", 1)
    monkeypatch.setattr(sparse, "BATCH", 2)
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
