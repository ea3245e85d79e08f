"""``mathamr index``: the graphs of posts become one index or several, also where the job was stopped."""

import gzip
import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from folder_bytes import folder_bytes

from pyterrier_mathamr import MathAMRIndex, ShardedIndex, cli
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import graphs_from_sources
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.index import index_graph_store, indexing
from pyterrier_mathamr.index.indexing import ArtifactIndexer
from pyterrier_mathamr.store import META, NotBuiltError, OtherArtifactError, UnfinishedJobError

MODEL = "mathamr-plus-mini"


@pytest.fixture(scope="module", autouse=True)
def small_parts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "PART_BYTES", 20_000)
        yield


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """The graphs of 260 short posts."""
    folder = tmp_path_factory.mktemp("graphs")
    texts = [f"Why is $x^{i % 9}$ number {i}?" for i in range(130)]
    pairs = [{"qid": f"q{i}", "question": text, "aid": f"a{i}", "answer": text} for i, text in enumerate(texts)]
    with gzip.open(folder / "pairs.jsonl.gz", "wt") as out:
        out.writelines(json.dumps(pair) + "\n" for pair in pairs)
    return graphs_from_sources([folder / "pairs.jsonl.gz"], folder / "graphs.mathamr").path


@pytest.fixture(scope="module")
def whole(graphs):
    """The index of all at once."""
    return MathAMRIndex(index_graph_store(graphs, MODEL, graphs.parent / "whole.mathamr").path)


@pytest.fixture
def stopping(monkeypatch):
    """Builds an index and stops after so many documents of it, or of one of its parts."""

    def build(graphs, path, after, part="", **options):
        def dying(self, stream, batch_size=100, real=ArtifactIndexer.pending):
            for number, record in enumerate(real(self, stream, batch_size)):
                if part in str(self._index.path) and number == after:
                    raise KeyboardInterrupt
                yield record

        with monkeypatch.context() as patch:
            patch.setattr(ArtifactIndexer, "pending", dying)
            with pytest.raises(KeyboardInterrupt):
                index_graph_store(graphs, MODEL, path, **options)

    return build


@pytest.fixture
def handed(monkeypatch):
    """The input of the encoder, with the name of its index."""
    found = []

    def counting(self, stream, batch_size=100, real=ArtifactIndexer.pending):
        for record in real(self, stream, batch_size):
            found.append((self._index.path.name, record["docno"]))
            yield record

    monkeypatch.setattr(ArtifactIndexer, "pending", counting)
    return found


def command(graphs, output, *options):
    result = CliRunner().invoke(cli.main, ["index", str(graphs), MODEL, "-o", str(output), "-q", *options])
    return result.exit_code, result.output


def vectors(index):
    parts = index.parts() if isinstance(index, ShardedIndex) else [index]
    return {entry["docno"]: entry["doc_embs"] for part in parts for entry in part.get_corpus_iter()}


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def assert_same(found, expected):
    assert list(found) == list(expected)
    for docno, rows in found.items():
        np.testing.assert_array_equal(rows, expected[docno])


def test_a_stopped_job_goes_on_to_the_same_bytes_and_encodes_only_the_rest(graphs, whole, stopping, handed, tmp_path):
    stopping(graphs, tmp_path / "x", 250)
    assert MathAMRIndex(tmp_path / "x").unfinished() > 150
    handed.clear()
    index_graph_store(graphs, MODEL, tmp_path / "x")
    assert 60 <= len(handed) <= 160
    assert folder_bytes(tmp_path / "x") == folder_bytes(whole.path)


def test_a_stopped_job_of_other_graphs_is_refused_and_fresh_discards_it(graphs, stopping, tmp_path):
    path, other = tmp_path / "x", tmp_path / "other"
    stopping(graphs, path, 110)
    shutil.copytree(graphs, other)
    GraphStore(other).delete(["q5"])
    code, output = command(other, path)
    assert code == 1
    assert "made from something else" in output
    assert "--fresh" in output
    assert not path.exists()
    with pytest.raises(UnfinishedJobError) as caught:
        index_graph_store(other, MODEL, path)
    assert list(caught.value.differences) == ["sources"]
    assert command(other, path, "--fresh")[0] == 0
    assert len(MathAMRIndex(path)) == 259


def test_the_parts_have_the_vectors_of_one_index_in_its_order(graphs, whole, tmp_path):
    path = tmp_path / "parts.mathamr"
    assert command(graphs, path, "--parts", "2") == (0, f"{path}: 260 documents in 2 parts\n")
    assert names(path) == ["part-000000", "part-000001", META]
    parts = ShardedIndex(path)
    assert [len(part) for part in parts.parts()] == [100, 160]  # cut between batches
    assert_same(vectors(parts), vectors(whole))
    assert_same(vectors(parts.merge(tmp_path / "merged.mathamr")), vectors(whole))


def test_more_parts_than_batches_are_cut_anywhere(graphs, whole, tmp_path):
    parts = index_graph_store(graphs, MODEL, tmp_path / "parts", parts=4)
    assert isinstance(parts, ShardedIndex)
    assert [len(part) for part in parts.parts()] == [65] * 4
    expected = vectors(whole)
    for docno, rows in vectors(parts).items():
        np.testing.assert_allclose(rows, expected[docno], atol=1e-5)
    with pytest.raises(ConfigError, match="between 1 and 260"):
        index_graph_store(graphs, MODEL, tmp_path / "more", parts=261)


def test_a_stopped_job_goes_on_in_the_part_where_it_was(graphs, whole, stopping, handed, tmp_path):
    path = tmp_path / "parts"
    stopping(graphs, path, 150, "part-000001", parts=2)
    with pytest.raises(NotBuiltError):
        len(ShardedIndex(path))
    with pytest.raises(UnfinishedJobError, match="parts: 2, not 3"):
        index_graph_store(graphs, MODEL, path, parts=3)
    handed.clear()
    parts = index_graph_store(graphs, MODEL, path, parts=2)
    assert {name for name, _ in handed} == {"part-000001"}
    assert names(path) == ["part-000000", "part-000001", META]
    assert_same(vectors(parts), vectors(whole))


def test_the_old_index_stays_until_the_new_one_is_complete(graphs, stopping, tmp_path):
    path = tmp_path / "parts"
    index_graph_store(graphs, MODEL, path, parts=2)
    stopping(graphs, path, 0, parts=3)
    assert [len(part) for part in ShardedIndex(path).parts()] == [100, 160]
    code, output = command(graphs, path, "--parts", "1")
    assert code == 1
    assert "--fresh" in output
    assert command(graphs, path, "--parts", "1", "--fresh")[0] == 0
    assert names(path) == ["part-000002", META]
    assert [len(part) for part in ShardedIndex(path).parts()] == [260]


def test_an_index_of_another_kind_and_a_folder_of_other_things_are_not_touched(graphs, whole, tmp_path):
    with pytest.raises(OtherArtifactError, match="multi_vector_index"):
        index_graph_store(graphs, MODEL, whole.path, parts=2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("chapter 1")
    with pytest.raises(OtherArtifactError, match=r"thesis\.tex"):
        index_graph_store(graphs, MODEL, tmp_path / "other", parts=2)
    assert names(tmp_path / "other") == ["thesis.tex"]
    MathAMRIndex(tmp_path / "parts" / "part-000000").index([{"docno": "d", "doc_embs": np.eye(2)}])
    with pytest.raises(OtherArtifactError, match="sharded_index"):
        index_graph_store(graphs, MODEL, ShardedIndex.join(tmp_path / "parts").path)
