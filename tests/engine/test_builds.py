"""Builds: one call makes an engine, in one process or several, and the same call completes a stopped one."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.running import processes
from pyterrier_mathamr.engine import SearchEngine, search_engine
from pyterrier_mathamr.engine.generations import Indexes
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.posts import DocumentError
from pyterrier_mathamr.store import NotBuiltError, UnfinishedJobError, WriteError
from tests.engine.conftest import POSTS, QUERY, built, stopped


@pytest.mark.parametrize("step", ["_graphs_in_one_pass", "_index_formulas"])
def test_a_build_that_stops_anywhere_goes_on_to_the_same_engine(engine, tmp_path, step) -> None:
    with stopped(step):
        built(tmp_path / "e")
    unfinished = SearchEngine(tmp_path / "e")
    assert not unfinished.built()
    with pytest.raises(NotBuiltError, match="is not complete"):
        unfinished.search("x")
    for posts, options in (
        (POSTS[1:], {}),
        (POSTS, {"bare_formulas": False}),
        ([*POSTS, {"id": "x", "text": "y"}], {}),
    ):
        with pytest.raises(UnfinishedJobError):
            built(tmp_path / "e", posts, **options)
    shutil.copytree(tmp_path / "e", tmp_path / "f")
    pd.testing.assert_frame_equal(built(tmp_path / "e").search(QUERY), engine.search(QUERY))
    assert len(built(tmp_path / "f", POSTS[:2], fresh=True)) == 2


@pytest.fixture
def batches_of_two(monkeypatch) -> None:
    """Batches, and parts of the graphs, of two posts; several processes for any number of them."""
    monkeypatch.setattr(search_engine, "GraphBuilder", partial(GraphBuilder, batch_size=2))
    monkeypatch.setattr(search_engine, "begun_store", partial(search_engine.begun_store, shard_size=2))
    monkeypatch.setattr(processes, "_FEW", 1)


@pytest.mark.usefixtures("batches_of_two")
@pytest.mark.parametrize("many", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_several_processes_make_the_engine_of_one(engine, tmp_path, monkeypatch, many) -> None:
    monkeypatch.setattr(search_engine, "_MANY", many)  # of three they start before the posts are stored
    assert_same_engine(built(tmp_path / "e", workers=2), engine)


@pytest.mark.usefixtures("batches_of_two")
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_pass_that_is_stopped_is_completed_by_one_index_after_the_other(
    engine, tmp_path, monkeypatch, workers
) -> None:
    graphs, real = iter(range(3)), search_engine.graph_of

    def graph_of(text: bytes) -> object:
        if next(graphs, None) is None:
            raise KeyboardInterrupt
        return real(text)

    with monkeypatch.context() as patch:
        patch.setattr(search_engine, "graph_of", graph_of)
        with pytest.raises(KeyboardInterrupt):
            built(tmp_path / "e")
    unfinished = Indexes.of(tmp_path / "e" / "generation-1")
    assert unfinished.graphs.unfinished() == 2
    assert not any(index.built() for index in unfinished[1:])
    with monkeypatch.context() as patch:
        patch.setattr(search_engine, "_graphs_in_one_pass", None)  # is not called
        again = built(tmp_path / "e", workers=workers)
    assert_same_engine(again, engine)


def assert_same_engine(ours: SearchEngine, theirs: SearchEngine) -> None:
    """Compare the indexes of two engines; of those without floats, all bytes."""
    one, other = ours.snapshot().indexes, theirs.snapshot().indexes
    for index, expected in zip(one, other, strict=True):
        assert list(index.snapshot()) == list(expected.snapshot())
    for name in ("bm25", "tangent"):
        parts = [getattr(each, name).path / "part-000000" for each in (one, other)]
        ours_files, their_files = ({file.name: file.read_bytes() for file in part.iterdir()} for part in parts)
        assert ours_files
        assert ours_files == their_files
    docnos = ours.docnos()
    assert one.graphs.get_many(docnos) == other.graphs.get_many(docnos)
    pd.testing.assert_frame_equal(ours.search(QUERY), theirs.search(QUERY))


def test_an_engine_is_replaced_only_on_request_and_in_one_step(engine, tmp_path) -> None:
    path = shutil.copytree(engine.path, tmp_path / "e")
    with pytest.raises(WriteError, match=r"mathamr update.*overwrite it"):
        built(path, POSTS[:2])
    with stopped("_graphs_in_one_pass"):
        built(path, POSTS[:2], overwrite=True)
    assert len(SearchEngine(path)) == 5
    assert engine.search(QUERY)["docno"].iloc[0] == "basel"
    assert len(built(path, POSTS[:2], overwrite=True)) == 2
    assert [entry.name for entry in path.glob("generation-*")] == ["generation-2"]


def test_posts_that_cannot_be_read_are_named_and_none_at_all_is_an_error(tmp_path) -> None:
    with pytest.warns(MathAMRWarning, match="1 of 3 posts were left out: post 2: no id"):
        engine = built(tmp_path / "e", [POSTS[0], {"text": "x"}, POSTS[4]])
    assert len(engine) == 2
    for posts, message in (([], "there are none"), ([{"docno": "a", "content": "x"}], "no text; give one of")):
        with pytest.raises(DocumentError, match=message):
            built(tmp_path / "f", posts)
    assert not SearchEngine(tmp_path / "f").built()


def test_posts_without_formulas_make_an_engine_too(tmp_path) -> None:
    engine = built(tmp_path / "e", [POSTS[4]])
    assert engine.search("rings")["docno"].tolist() == ["words"]
    assert engine.search_formula("x^2").empty


def test_a_large_engine_has_four_bits_for_each_number_of_wide_vectors(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(search_engine, "_PACKED_FROM", len(POSTS))
    large = SearchEngine.build(POSTS, tmp_path / "large", verbose=False)
    small = SearchEngine.build(POSTS[1:], tmp_path / "small", verbose=False)
    for change in (large, small):
        change.update([{"id": "new", "text": "The harmonic series diverges."}], verbose=False)
    dtypes = [one.snapshot().indexes.vectors.snapshot().meta.dtype for one in (large, small, built(tmp_path / "mini"))]
    assert dtypes == ["int4", "int8", "float32"], "an update keeps the form, and narrow vectors are never packed"
    assert large.search(QUERY)["docno"].tolist()[:2] == ["basel", "harmonic"]


def test_an_engine_finds_its_model_from_any_folder(tmp_path, monkeypatch) -> None:
    MathAMR.from_pretrained("mathamr-plus-mini").save(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    SearchEngine.build(POSTS[:2], "e", model="mine", verbose=False)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert SearchEngine("../e").search(QUERY)["docno"].iloc[0] == "basel"


# ---- progress

LONG = [{"id": f"p{i}", "text": f"Why is $x^{i} = {i}$? " + "It is a long story. " * (i % 20)} for i in range(90)]


@pytest.mark.parametrize("model", ["mathamr-plus-text", "mathamr-plus-mini"])
def test_posts_are_counted_while_a_batch_is_read_and_encoded(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = list[int]()

    @contextmanager
    def recorded(desc: str, unit: str, total: int, *, verbose: bool) -> Iterator[Callable[[int], object]]:
        assert (unit, total, verbose) == ("posts", len(LONG), False)
        yield counts.append

    monkeypatch.setattr(search_engine, "counted_progress", recorded)
    SearchEngine.build(LONG, tmp_path / "engine", model=model, verbose=False)
    assert sum(counts) == len(LONG)
    assert sum(count == 1 for count in counts) >= len(LONG) // 2  # as posts are read
    if model == "mathamr-plus-text":
        assert max(counts) < len(LONG) // 2  # as they are encoded


def test_a_build_shows_posts_and_time_left_or_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(path: Path, **options: bool) -> str:
        SearchEngine.build((post for post in LONG), path, model="mathamr-plus-mini", **options)
        return capsys.readouterr().err

    counts = re.findall(r"indexing:.*?(\d+)/90 posts \[\d\d:\d\d<[\d:?]+, ", shown(tmp_path / "shown"))
    assert len(set(counts)) > 2
    assert counts[-1] == "90"
    assert shown(tmp_path / "silent", verbose=False) == ""
    with stopped("pyterrier_mathamr.model.MathAMR.encode"):
        shown(tmp_path / "stopped")
    unfinished = capsys.readouterr().err  # not full before the vectors are made
    assert "0/90" in unfinished
    assert "90/90" not in unfinished
