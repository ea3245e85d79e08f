"""An interrupted upload is continued by the same upload, and by no other; what readers see is whole."""

import numpy as np
import pytest
from index_folders import docnos, docnos_of

from pyterrier_mathamr.index import EmbeddingError, QdrantFormulaIndex
from pyterrier_mathamr.store import DuplicateIdError, UnfinishedJobError

pytestmark = pytest.mark.parametrize("mode", ["create", "overwrite", "append"])


@pytest.fixture
def before(documents, mode):
    """The state that readers see before the upload."""
    return [] if mode == "create" else documents([2] * 5, name="b")


def kept(before, mode):
    return before if mode == "append" else []


def interrupted(remote, before, posts, mode, at=45, pending=True, **options):
    """Interrupt an upload with batches of 10 documents."""
    index = remote()
    if before:
        index.index(before)

    def stream():
        yield from posts[:at]
        raise KeyboardInterrupt

    indexer = index.indexer(mode, resume=True, **options)
    with pytest.raises(KeyboardInterrupt):
        indexer.index(indexer.pending(stream(), 5) if pending else stream())
    assert (docnos(index) if before else index.built()) == (docnos_of(before) if before else False)
    return remote()


@pytest.mark.parametrize("step", ["count", "update", "alias"])
def test_one_that_had_stored_all_goes_on_with_nothing(server, remote, posts, before, mode, step):
    if (mode, step) == ("append", "alias"):
        pytest.skip("an addition moves no alias")
    index = interrupted(remote, before, posts, mode, at=0)
    passed = iter(["the first update of an addition"] if (mode, step) == ("append", "update") else [])
    server.fault = lambda name: "unreachable" if name == step and not next(passed, None) else None
    indexer = index.indexer(mode, resume=True)
    with pytest.raises(Exception, match="resume=True"):
        indexer.index(indexer.pending(posts, 5))
    server.fault = lambda name: None
    sent = len(server.sent_ids())
    again = remote().indexer(mode, resume=True)
    left = list(again.pending(posts, 5))
    again.index(left)
    assert (left, len(server.sent_ids())) == ([], sent)
    assert docnos(index) == docnos_of([*posts, *kept(before, mode)])
    assert index.snapshot().meta.job == ""


def test_one_of_other_documents_does_not_take_over_what_is_stored(server, remote, posts, documents, before, mode):
    index = interrupted(remote, before, posts, mode)
    others = documents([2] * 12, seed=5, name="other")
    for count in (len(others), 0):
        with pytest.raises(UnfinishedJobError, match="points: "):
            index.indexer(mode, resume=True).index(others[:count])
        if before:
            assert docnos(index) == docnos_of(before)
        else:
            assert not index.built()
    index.discard()
    index.indexer(mode, resume=True).index(others)
    assert docnos(index) == docnos_of([*others, *kept(before, mode)])


def test_one_without_resume_drops_what_is_stored(server, remote, posts, documents, before, mode):
    index = interrupted(remote, before, posts, mode)
    others = documents([2] * 12, seed=5, name="other")
    index.indexer(mode).index(others)
    assert docnos(index) == docnos_of([*others, *kept(before, mode)])
    assert sum(of.count()["count"] for of in server.collections.values()) == len(index)


@pytest.mark.parametrize("other", [{"model": "b@2"}, {"model": "a@1", "sources": {"parser": "new"}}])
def test_one_of_another_model_or_other_sources_is_refused(server, remote, posts, before, mode, other):
    index = interrupted(remote, before, posts, mode, model="a@1", sources={"parser": "old"})
    sent = len(server.sent_ids())
    indexer = index.indexer(mode, resume=True, **other)
    for call in (lambda: list(indexer.pending(posts)), lambda: indexer.index(posts)):
        with pytest.raises(UnfinishedJobError, match=r"model: a@1, not b@2|parser.*old.*not .*new"):
            call()
    assert len(server.sent_ids()) == sent


def test_one_whose_vectors_are_of_another_model_is_refused(server, remote, posts, before, mode):
    index = interrupted(remote, before, [{**post, "doc_model": "a@1"} for post in posts], mode, pending=False)
    with pytest.raises(UnfinishedJobError, match="model: a@1, not b@2"):
        index.indexer(mode, resume=True).index([{**post, "doc_model": "b@2"} for post in posts])


def test_a_changed_document_is_refused_and_one_with_other_vectors_is_stored_again(server, remote, posts, before, mode):
    with_text = [{**post, "text": "old"} for post in posts]
    index = interrupted(remote, before, with_text, mode)
    changed = [{**post, "text": "new" if post["docno"] == "d7" else "old"} for post in posts]
    with pytest.raises(UnfinishedJobError, match="'d7'"):
        list(index.indexer(mode, resume=True).pending(changed, 5))
    with pytest.raises(DuplicateIdError, match="'d0'"):
        list(index.indexer(mode, resume=True).pending([*with_text[:10], *with_text[:5]], 5))
    turned = {**posts[7], "doc_embs": -posts[7]["doc_embs"]}
    index.indexer(mode, resume=True).index([turned if post["docno"] == "d7" else post for post in posts])
    assert docnos(index) == docnos_of([*posts, *kept(before, mode)])
    rows = next(row["doc_embs"] for row in index.get_corpus_iter() if row["docno"] == "d7")
    np.testing.assert_array_equal(rows, turned["doc_embs"])


def test_a_document_that_is_stored_without_its_source_is_sent_only_where_it_differs(
    server, remote, posts, before, mode
):
    index = interrupted(remote, before, posts, mode, pending=False)
    assert list(index.indexer(mode, resume=True).pending(posts, 10)) == posts  # it cannot be told whether they changed
    sent = len(server.sent_ids())
    index.indexer(mode, resume=True).index(posts)
    assert len(server.sent_ids()) - sent == len(posts) - 40
    assert docnos(index) == docnos_of([*posts, *kept(before, mode)])


def test_an_error_of_the_corpus_keeps_what_is_stored(server, remote, posts, before, mode):
    index = interrupted(remote, before, posts, mode)
    with pytest.raises(EmbeddingError, match="NaN"):
        index.indexer(mode, resume=True).index([*posts, {"docno": "n", "doc_embs": np.full((1, 8), np.nan)}])
    sent = len(server.sent_ids())
    indexer = index.indexer(mode, resume=True)
    indexer.index(indexer.pending(posts, 5))
    assert len(server.sent_ids()) - sent <= len(posts) - 40
    assert docnos(index) == docnos_of([*posts, *kept(before, mode)])


def test_formulas_of_an_interrupted_upload_are_not_sent_again(server, documents, mode):
    posts = [{**post, "formula_ids": [f"{post['docno']}-{i}" for i in range(2)]} for post in documents([3] * 30)]
    index = QdrantFormulaIndex("https://qdrant.test", "formulas", pause=0)
    if mode != "create":
        index.index([{**posts[0], "docno": "b", "formula_ids": ["b-1"]}])

    def stream():
        yield from posts[:16]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.indexer(mode, resume=True).index(stream())
    sent = len(server.sent_ids())
    indexer = index.indexer(mode, resume=True)
    indexer.index(indexer.pending(posts))
    assert len(server.sent_ids()) - sent == 30
    assert len(index) == 60 + (mode == "append")
