"""``mathamr index`` that was stopped: it goes on with the same graphs and model, and never with others."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from folder_bytes import folder_bytes

from pyterrier_mathamr import MathAMRIndex, cli
from pyterrier_mathamr.arqmath import graphs_from_sources
from pyterrier_mathamr.index import index_graph_store, indexing
from pyterrier_mathamr.index.indexing import ArtifactIndexer
from pyterrier_mathamr.store import UnfinishedJobError

MODEL = "mathamr-plus-mini"


def graph_store(folder: Path, name: str, added: str) -> Path:
    """The graphs of 130 pairs of short posts."""
    source = folder / f"{name}.jsonl.gz"
    texts = [f"Why is $x^{i % 9}$ {added}?" for i in range(130)]
    pairs = [{"qid": f"q{i}", "question": text, "aid": f"a{i}", "answer": text} for i, text in enumerate(texts)]
    with gzip.open(source, "wt") as out:
        out.writelines(json.dumps(pair) + "\n" for pair in pairs)
    return graphs_from_sources([source], folder / f"{name}.mathamr").path


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graph_store(tmp_path_factory.mktemp("graphs"), "some", "even")


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch, graphs: Path, tmp_path: Path) -> Path:
    """An index whose job stopped in the third batch of a hundred documents."""
    monkeypatch.setattr(indexing, "PART_BYTES", 20_000)

    def dying(self, stream, batch_size=100, real=ArtifactIndexer.pending):
        for number, record in enumerate(real(self, stream, batch_size)):
            if number == 250:
                raise KeyboardInterrupt
            yield record

    with monkeypatch.context() as patch:
        patch.setattr(ArtifactIndexer, "pending", dying)
        with pytest.raises(KeyboardInterrupt):
            index_graph_store(graphs, MODEL, tmp_path / "x.mathamr")
    assert MathAMRIndex(tmp_path / "x.mathamr").unfinished() > 150
    return tmp_path / "x.mathamr"


def test_a_stopped_job_goes_on_to_the_same_bytes_and_encodes_only_the_rest(stopped, graphs, tmp_path, monkeypatch):
    handed = []
    real = ArtifactIndexer.pending
    monkeypatch.setattr(
        ArtifactIndexer, "pending", lambda *given: (handed.append(record) or record for record in real(*given))
    )
    index_graph_store(graphs, MODEL, stopped)
    assert 60 <= len(handed) <= 160
    assert folder_bytes(stopped) == folder_bytes(index_graph_store(graphs, MODEL, tmp_path / "plain.mathamr").path)


def test_a_stopped_job_of_other_graphs_is_refused_and_fresh_discards_it(stopped, tmp_path):
    other = graph_store(tmp_path, "other", "odd")
    result = CliRunner().invoke(cli.main, ["index", str(other), MODEL, "-o", str(stopped), "-q"])
    assert result.exit_code == 1
    assert "made from something else" in result.output
    assert "--fresh" in result.output
    assert not stopped.exists()
    with pytest.raises(UnfinishedJobError) as caught:
        index_graph_store(other, MODEL, stopped)
    assert list(caught.value.differences) == ["sources"]
    result = CliRunner().invoke(cli.main, ["index", str(other), MODEL, "-o", str(stopped), "-q", "--fresh"])
    assert result.exit_code == 0, result.output
    plain = index_graph_store(other, MODEL, tmp_path / "plain.mathamr")
    first = [next(iter(of.get_corpus_iter()))["doc_embs"] for of in (MathAMRIndex(stopped), plain)]
    np.testing.assert_allclose(first[0], first[1], atol=1e-5)
    assert len(plain) == 260
