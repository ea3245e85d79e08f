"""An index in parts ranks and scores as one index of all documents, however they are cut."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharded_parts import STRATEGIES, asked, cut, drawn, index_here, of_parts

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index import MathAMRIndex, ModelMismatchError, ShardedIndex
from pyterrier_mathamr.store import DuplicateIdError, UnknownIdError

DOCUMENTS = drawn(seed=1, documents=300, copies=150)
QUERIES = asked(seed=2, queries=30)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """All documents in one index."""
    return MathAMRIndex(tmp_path_factory.mktemp("whole") / "index").index(DOCUMENTS)


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    """The same in four parts of 0, 5, 95 and 350 documents, each in a process."""
    return of_parts(tmp_path_factory.mktemp("parts"), DOCUMENTS, [0, 5, 100])


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_finds_what_it_finds_in_one_index(whole, sharded, name):
    expected = STRATEGIES[name](whole)(QUERIES)
    pd.testing.assert_frame_equal(STRATEGIES[name](sharded)(QUERIES), expected, check_exact=True)
    if name == "all documents":  # of a document and its copy, the lesser docno comes first
        ties = expected[expected.duplicated(["qid", "score"], keep=False)]
        assert len(ties) >= len(QUERIES) * 150


def test_a_scorer_scores_each_document_as_one_index_does(whole, sharded):
    ranking = whole.colbert(num_results=60)(QUERIES).sample(frac=1, random_state=3)
    ranking = pd.concat([ranking, ranking.head(9)], ignore_index=True)  # some documents twice
    for options in ({}, {"vectors": "document"}, {"num_results": 7, "normalise": True}, {"batch_size": 4}):
        expected = whole.scorer(**options)(ranking)
        pd.testing.assert_frame_equal(sharded.scorer(**options)(ranking), expected, check_exact=True)


def test_an_explanation_is_that_of_one_index(whole, sharded):
    found = sharded.colbert(num_results=3)(QUERIES)
    for _, row in found.iterrows():
        explained = sharded.explain(row)
        assert explained.score == pytest.approx(row["score"], abs=1e-6)
        assert str(explained) == str(whole.explain(row))
    other = sharded.doc_vn(normalise=True).explain(QUERIES.iloc[3], "m0007")
    assert str(other) == str(whole.doc_vn(normalise=True).explain(QUERIES.iloc[3], "m0007"))


def test_called_directly_it_does_what_one_index_does(whole, sharded):
    ranking = whole.colbert(num_results=5)(QUERIES)
    for frame in (QUERIES, ranking):
        pd.testing.assert_frame_equal(sharded(frame), whole(frame), check_exact=True)
    docnos = pd.DataFrame({"docno": ["m0001", "a0000", "m0001", "m0299"]})
    for one, other in zip(sharded(docnos)["doc_embs"], whole(docnos)["doc_embs"], strict=True):
        np.testing.assert_array_equal(one, other)
    assert sharded.text_loader()(docnos).equals(whole.text_loader()(docnos))
    assert len(sharded) == len(whole)
    assert "m0299" in sharded
    assert "m0300" not in sharded
    by_docno = {entry["docno"]: entry["doc_embs"] for entry in sharded.get_corpus_iter()}
    assert len(by_docno) == len(DOCUMENTS)
    assert all((by_docno[doc["docno"]] == doc["doc_embs"]).all() for doc in DOCUMENTS)
    assert str(sharded).endswith("kB")
    assert "450 documents in 4 parts" in str(sharded)


def test_unknown_documents_and_approximate_search_which_finds_others_in_parts_are_refused(sharded):
    ranking = QUERIES.head(2).assign(docno=["m0001", "nobody"])
    for refused in (lambda: sharded.scorer()(ranking), lambda: sharded.explain(QUERIES.iloc[0], "nobody")):
        with pytest.raises(UnknownIdError) as caught:
            refused()
        assert caught.value.ids == ["nobody"]
    for make in (sharded.colbert, sharded.single_vector, sharded.doc_vn):
        with pytest.raises(ConfigError, match="exact=False"):
            make(exact=False)


@settings(max_examples=10)
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=30),
    places=st.lists(st.integers(0, 30), max_size=5),
    k=st.integers(1, 40),
    seed=st.integers(0, 2**16),
)
def test_any_cut_of_rows_of_few_values_keeps_the_ranking(lengths, places, k, seed):
    rng = np.random.default_rng(seed)  # rows of a few values, so that most scores are tied
    rows = [rng.integers(0, 2, (length, 3)).astype(np.float32) + np.float32(0.5) for length in lengths]
    documents = [{"docno": f"{rng.integers(10**6)}-{i}", "doc_embs": of} for i, of in enumerate(rows)]
    queries = pd.DataFrame({"qid": ["1", "2"]})
    asks = [rng.integers(0, 2, (length, 3)).astype(np.float32) + np.float32(0.25) for length in (1, 3)]
    queries["query_embs"] = pd.Series(asks, dtype=object)
    with TemporaryDirectory() as folder:
        one = MathAMRIndex(Path(folder) / "one").index(documents)
        parts = index_here(cut(Path(folder), documents, sorted(min(place, len(lengths)) for place in places), seed))
        for find in (
            lambda index: index.colbert(num_results=k),
            lambda index: index.single_vector(num_results=k),
            lambda index: index.doc_vn(candidates=k, num_results=5),
        ):
            pd.testing.assert_frame_equal(find(parts)(queries), find(one)(queries), check_exact=True)


def test_deleted_documents_of_a_part_are_not_found_nor_anything_in_empty_parts(tmp_path):
    documents = drawn(seed=4, documents=40, copies=10)
    whole = MathAMRIndex(tmp_path / "whole").index(documents)
    sharded = index_here(cut(tmp_path, documents, [7, 20]))
    some = [doc["docno"] for doc in documents[::3]]
    whole.delete(some)
    for part in sharded.parts():
        part.delete([docno for docno in some if docno in part])
    pd.testing.assert_frame_equal(sharded.colbert()(QUERIES), whole.colbert()(QUERIES), check_exact=True)
    names = [sorted(entry["docno"] for entry in index.get_corpus_iter()) for index in (sharded, whole)]
    assert names[0] == names[1]
    assert len(sharded) == len(whole)
    nothing = index_here(cut(tmp_path / "empty", [], [0]))
    assert len(nothing) == 0
    found = nothing.colbert()(QUERIES)
    assert found.empty
    assert "docno" in found.columns


def test_parts_that_do_not_belong_together_are_refused(tmp_path):
    documents = drawn(seed=5, documents=10, copies=0)
    for name, model in (("one", "a@1"), ("other", "b@2")):
        MathAMRIndex(tmp_path / name).indexer(model=model).index(documents)
    MathAMRIndex(tmp_path / "again").index(documents[:3])
    with pytest.raises(ModelMismatchError):
        index_here([tmp_path / "one", tmp_path / "other"]).colbert()(QUERIES)
    twice = index_here([tmp_path / "one", tmp_path / "again"])
    with pytest.raises(DuplicateIdError, match="m0000"):
        twice.colbert()(QUERIES)
    with pytest.raises(DuplicateIdError, match="m0001"):
        twice.explain(QUERIES.iloc[0], "m0001")
    for paths in ([], [tmp_path / "one", tmp_path / "one"]):
        with pytest.raises(ConfigError, match="each of them once"):
            ShardedIndex(paths)
