"""What a Qdrant server does to an index: on shards of its engine, and on a real server where MATHAMR_QDRANT_URL is set.

``MATHAMR_QDRANT_URL`` is the URL of a server, or of two peers of a cluster, with a comma between them.
"""

import signal
import subprocess
import sys
import uuid
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from index_folders import docnos, docnos_of
from waiting import until

from pyterrier_mathamr.index import (
    CollectionOptions,
    EmbeddingError,
    MathAMRIndex,
    QdrantError,
    QdrantFormulaIndex,
    QdrantIndex,
)
from pyterrier_mathamr.index.qdrant import upload
from pyterrier_mathamr.store import DuplicateIdError, WriteError
from tests.index.qdrant.fake_server import MOST_BYTES

same = pd.testing.assert_frame_equal
FOUR = CollectionOptions(shard_number=4)


@pytest.fixture(params=["engine", "real server"])
def place(request):
    """Makes indexes by their names on the embedded engine or a real server, written to one peer and read from another.

    What the test makes there is removed at its end.
    """
    made = {}
    if request.param == "engine":
        request.getfixturevalue("server")
        urls = ["https://peer-1.test:6333", "https://peer-2.test:6333"]
    else:
        urls = request.getfixturevalue("peers")
    prefix = f"mathamr-test-{uuid.uuid4().hex[:8]}-"

    def writer(name, kind=QdrantIndex):
        made[name] = kind(urls[0], prefix + name)
        return made[name]

    yield SimpleNamespace(writer=writer, reader=lambda name: QdrantIndex(urls[-1], prefix + name))
    for index in made.values():
        for slot in ("--a", "--b"):
            index.collection.drop(index.name + slot)


def test_a_collection_is_created_added_to_replaced_deleted_from_and_merged(place, posts, topics, judge_index):
    frame = topics([3, 1, 5])
    index = place.writer("one")
    index.indexer(model="mini@1").index(posts[:30])
    with pytest.raises(WriteError, match="already"):
        index.index(posts)
    with pytest.raises(DuplicateIdError, match="'d3'"):
        index.indexer("append").index([posts[30], posts[3]])
    assert docnos(index) == docnos_of(posts[:30])
    index.indexer("append").index(posts[30:])
    for strategy in ("colbert", "single_vector", "doc_vn"):
        same(getattr(index, strategy)(num_results=20)(frame), getattr(judge_index, strategy)(num_results=20)(frame))
    index.indexer("overwrite", model="large@2").index(posts[:9])
    assert (docnos(index), index.model) == (docnos_of(posts[:9]), "large@2")
    index.delete(["d3", "d5"])
    kept = [post for post in posts[:9] if post["docno"] not in ("d3", "d5")]
    assert docnos(index) == docnos_of(kept)
    other = place.writer("two")
    other.indexer(model="large@2").index(posts[3:4])
    place.writer("three")
    merged = QdrantIndex.merge(index.location, place.reader("three").name, index, other)
    assert docnos(merged) == docnos_of([*kept, posts[3]])
    rows = {row["docno"]: row["doc_embs"] for row in merged.get_corpus_iter()}
    np.testing.assert_array_equal(rows["d3"], posts[3]["doc_embs"])


def test_four_shards_on_two_peers_hold_and_find_what_one_folder_does(place, posts, topics, judge_index):
    frame = topics([3, 1, 5]).assign(query_document_weight=[0.0, 0.5, -1.0])
    index, read = place.writer("shards"), place.reader("shards")
    index.indexer(options=FOUR).index(posts[:40])
    index.indexer("append").index(posts[40:])
    assert until(lambda: read.built() and len(read) == len(posts))
    assert docnos(read) == docnos_of(posts)
    for k in (5, 1000):
        for strategy in ("colbert", "single_vector", "doc_vn"):
            same(getattr(read, strategy)(num_results=k)(frame), getattr(judge_index, strategy)(num_results=k)(frame))
    index.indexer("overwrite", options=FOUR).index(posts[20:])
    index.delete(["tie03"])
    left = [post for post in posts[20:] if post["docno"] != "tie03"]
    assert until(lambda: len(read) == len(left))
    assert docnos(read) == docnos_of(left)


def test_formulas_are_stored_on_shards_as_well(place, documents):
    index = place.writer("formulas", QdrantFormulaIndex)
    posts = [{**post, "formula_ids": [f"f-{post['docno']}"]} for post in documents([2] * 12)]
    index.indexer(options=FOUR).index(posts)
    asked = pd.DataFrame({"qid": ["q"], "query_formula_id": ["x"], "query_formula_ids": [["x"]]})
    found = index.retriever(num_results=1)(asked.assign(query_embs=[posts[7]["doc_embs"]]))
    assert found[["docno", "post_id"]].to_numpy().tolist() == [["f-d7", "d7"]]


@pytest.mark.parametrize("place", ["real server"], indirect=True)
def test_as_many_numbers_are_stored_as_a_server_accepts_and_not_one_more(place, documents, monkeypatch):
    index, most = place.writer("large"), upload.MOST_NUMBERS // 256
    index.index(documents([most, 1], d=256))
    assert [len(row["doc_embs"]) for row in index.get_corpus_iter() if row["docno"] == "d0"] == [most]
    with pytest.raises(EmbeddingError, match=f"{most + 1} rows, and Qdrant accepts at most {most}"):
        index.indexer("append").index(documents([most + 1], d=256, name="e"))
    monkeypatch.setattr(upload, "MOST_NUMBERS", 1 << 20)
    index = place.writer("too-large")
    with pytest.raises(QdrantError, match="while storing points") as caught:
        index.index(documents([1 << 12], d=256))
    assert caught.value.status in (400, 422)
    assert not index.built()


KILLED = """
import sys, time
import numpy as np
from pyterrier_mathamr.index import QdrantIndex
from pyterrier_mathamr.index.qdrant import upload

url, name, mode = sys.argv[1:4]
upload.BATCH_POINTS = 10
def posts():
    for i, rows in enumerate(np.load(sys.argv[4])):
        if i == 40:
            print("here", flush=True)
            time.sleep(600)
        yield {"docno": f"k{i}", "doc_embs": rows}
indexer = QdrantIndex(url, name).indexer(mode, resume=True)
indexer.index(indexer.pending(posts(), 5))
"""


@pytest.mark.parametrize("place", ["real server"], indirect=True)
@pytest.mark.parametrize("mode", ["create", "append"])
def test_an_upload_whose_process_is_killed_goes_on(place, documents, tmp_path, mode):
    posts = documents([3] * 60, name="k")
    np.save(tmp_path / "rows.npy", np.stack([post["doc_embs"] for post in posts]))
    index, before = place.writer("killed"), documents([2] * 5, seed=9)
    if mode == "append":
        index.index(before)
    command = [sys.executable, "-c", KILLED, index.location, index.name, mode, str(tmp_path / "rows.npy")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "here\n"
        child.send_signal(signal.SIGKILL)
    assert index.built() == (mode == "append")
    if mode == "append":
        assert docnos(index) == docnos_of(before)
    indexer = index.indexer(mode, resume=True)
    left = list(indexer.pending(posts, 10))
    assert docnos_of(left) == docnos_of(posts[30:])
    indexer.index(posts)
    assert docnos(index) == docnos_of([*posts, *before] if mode == "append" else posts)


def test_no_request_of_wide_rows_is_longer_than_a_server_reads(server, remote, documents, monkeypatch):
    longer = upload.BATCH_NUMBERS >> 14
    monkeypatch.setattr(upload, "BATCH_NUMBERS", 1 << 14)
    remote().index(documents([10] * 8, d=512))
    sizes = [size for (name, _), size in zip(server.requests, server.sizes, strict=True) if name == "upsert"]
    assert len(sizes) == 3
    assert longer * max(sizes) < MOST_BYTES / 4


def test_graphs_and_codes_of_int8_change_no_exact_search_and_little_of_an_approximate_one(
    server, remote, documents, topics, tmp_path
):
    server.indexing_threshold = 1
    posts, frame = documents([3] * 500), topics([4, 2])
    index = remote()
    index.indexer(options=CollectionOptions(quantise=True, shard_number=2)).index(posts)
    assert server.collections["some--a"].optimize() >= len(posts)
    judge = MathAMRIndex(tmp_path / "j").index(posts)
    for strategy in ("colbert", "single_vector"):
        true = getattr(judge, strategy)(num_results=50)(frame)
        same(getattr(index, strategy)(num_results=50)(frame), true)
        both = getattr(index, strategy)(num_results=50, exact=False)(frame).merge(true, on=["qid", "docno"])
        assert both["score_x"].equals(both["score_y"])
        assert len(both) > 80
