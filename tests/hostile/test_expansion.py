"""A small record that expands to gigabytes is a named error, wherever records are compressed."""

import zlib
from pathlib import Path

import pytest

from pyterrier_mathamr._common import records
from pyterrier_mathamr._common.records import decompressed
from pyterrier_mathamr.engine.posts import PostStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore
from pyterrier_mathamr.posts import Document
from pyterrier_mathamr.store import DamagedError


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
