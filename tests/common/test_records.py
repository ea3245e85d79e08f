"""Records of others: each thing wrong with JSON is one kind of error, and none expands to gigabytes."""

import gzip
import zlib
from pathlib import Path

import pytest

from pyterrier_mathamr._common import records
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.records import decompressed, parse_json
from pyterrier_mathamr.arqmath import read_training_pairs
from pyterrier_mathamr.engine.posts import PostStore
from pyterrier_mathamr.fusion import LinearBlend, WeightsError
from pyterrier_mathamr.graph import GraphBuilder, GraphError, GraphStore, MathAMRGraph
from pyterrier_mathamr.model import MathAMRConfig
from pyterrier_mathamr.posts import Document
from pyterrier_mathamr.store import DamagedError


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 5000, "nonsense", ""])
def test_bad_json_is_a_value_error_which_each_reader_names(text, tmp_path) -> None:
    for written in (text, text.encode()):
        with pytest.raises(ValueError, match=r"too deeply|digits|Expecting"):
            parse_json(written)
    with pytest.raises(ConfigError):
        MathAMRConfig.from_json(text)
    for field in ("formula_map", "sentence_texts"):
        with pytest.raises(GraphError):
            MathAMRGraph.from_penman(f"# ::{field} {text}\n(a / b)")
    (tmp_path / "blend.json").write_text(text)
    with pytest.raises(WeightsError):
        LinearBlend.load(tmp_path / "blend.json", [])
    with gzip.open(tmp_path / "pairs.jsonl.gz", "wt") as file:
        file.write(f'{text or "{}"}\n{{"qid": "q", "aid": "a", "question": "Q", "answer": "A"}}\n')
    with pytest.warns(MathAMRWarning, match=r"pairs\.jsonl\.gz, line 1"):
        read_training_pairs(tmp_path / "pairs.jsonl.gz")


def test_a_record_is_decompressed_up_to_a_limit(monkeypatch) -> None:
    monkeypatch.setattr(records, "MOST", 1_000)
    assert decompressed(zlib.compress(b"a" * 1_000)) == b"a" * 1_000
    for data in (zlib.compress(b"a" * 1_001), zlib.compress(b"a" * 1_000)[:-1]):
        with pytest.raises(ValueError, match="cut off, or expands to more"):
            decompressed(data)


def test_a_post_and_a_graph_that_expand_beyond_it_are_named(tmp_path: Path, monkeypatch) -> None:
    posts, graphs = PostStore(tmp_path / "posts"), GraphStore(tmp_path / "graphs")
    posts.write([Document("small", "", "<p>x</p>"), Document("bomb", "", "<p>" + "word " * 400 + "</p>")], "create")
    rows = [{"docno": "small", "text": "so it is"}, {"docno": "bomb", "text": "So it is. " * 100}]
    (GraphBuilder() >> graphs.indexer()).index(rows)
    monkeypatch.setattr(records, "MOST", 1_000)
    assert posts.get_many(["small"])[0].html == "<p>x</p>"
    assert graphs["small"].n_sentences == 1
    with pytest.raises(DamagedError, match="bomb"):
        posts.get_many(["bomb"])
    with pytest.raises(DamagedError, match="expands"):
        graphs["bomb"]
