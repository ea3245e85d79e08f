"""An engine is one artifact: it is read in one state of all its indexes, and none of them can be exchanged.

The battery of ``tests/store`` kills, damages and repeats the changes of engines, too.
"""

import gc
import json
import os
import shutil
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.generations import Indexes
from pyterrier_mathamr.store import META, DamagedError, FormatError
from pyterrier_mathamr.store.manifest import signed
from tests.engine.conftest import POSTS, QUERY, built, stopped


@pytest.fixture
def path(engine, tmp_path) -> Path:
    """A copy of an engine."""
    shutil.copytree(engine.path, tmp_path / "e")
    return tmp_path / "e"


@pytest.fixture(scope="session")
def other(tmp_path_factory) -> SearchEngine:
    """An engine of other posts."""
    return built(tmp_path_factory.mktemp("engine") / "other", POSTS[:3])


@pytest.mark.parametrize("name", Indexes._fields)
def test_a_part_that_is_missing_or_of_another_engine_is_named(path, other, name) -> None:
    part = path / "generation-1" / name
    for harm in (shutil.rmtree, lambda part: shutil.copytree(other.path / "generation-1" / name, part)):
        harm(part)
        for read in (lambda engine: engine.search(QUERY), SearchEngine.verify):
            with pytest.raises(MathAMRError, match=f"generation-1/{name}"):
                read(SearchEngine(path))


def test_a_part_of_an_earlier_state_is_named(path) -> None:
    earlier = path.with_name("earlier")
    shutil.copytree(path / "generation-1" / "bm25", earlier)
    engine = SearchEngine(path)
    engine.delete("basel")
    shutil.rmtree(path / "generation-2" / "bm25")
    shutil.copytree(earlier, path / "generation-2" / "bm25")
    with pytest.raises(DamagedError, match=r"bm25: it is not the part that .*pt_meta\.json names"):
        SearchEngine(path).search(QUERY)
    assert engine.search(QUERY, k=1)["docno"].tolist() == ["harmonic"]  # it has kept the state that it opened


def test_an_index_that_the_engine_does_not_have_is_refused(tmp_path, other) -> None:
    built(tmp_path / "e", [POSTS[4]])
    shutil.copytree(other.path / "generation-1" / "tangent", tmp_path / "e" / "generation-1" / "tangent")
    with pytest.raises(DamagedError, match="names no such part"):
        SearchEngine(tmp_path / "e").search("rings")
    with pytest.raises(DamagedError, match="names no such part"):
        SearchEngine(tmp_path / "e").verify()


def test_a_manifest_that_names_another_place_or_has_odd_tombstones_or_macros_is_a_named_error(path) -> None:
    right = json.loads((path / META).read_text())
    right.pop("checksum")
    shutil.copytree(path / "generation-1", path.parent / "outside")
    for name, values in {
        "generation": ["", "../../outside", "generation-1/../../outside"],
        "indexes": [dict.fromkeys(Indexes._fields), {**right["details"]["indexes"], "posts": "0" * 64}],
        "tombstones": [{"a": 1}, {"a": []}, {"a": [True]}, {"a": ["1"]}],
        "macros": [{"a": 1}, {"a": {"R": []}}, {"a": {"R": [[["m"]], [None]]}}, {"a": {"R": [[1], ["x"]]}}],
    }.items():
        for wrong in values:
            (path / META).write_bytes(signed({**right, "details": {**right["details"], name: wrong}}))
            for read in (lambda: SearchEngine(path).search("x"), lambda: SearchEngine(path).delete("basel")):
                with pytest.raises(MathAMRError):
                    read()
    (path / META).write_bytes(signed(right))
    assert SearchEngine(path).search(QUERY)["docno"].iloc[0] == "basel"
    assert sorted(entry.name for entry in (path.parent / "outside").iterdir()) == sorted(Indexes._fields)


def test_an_engine_from_before_macros_and_exclusions_were_stored_opens_and_is_updated(path) -> None:
    content = json.loads((path / META).read_text())
    content.pop("checksum")
    assert "macros" not in content["details"]
    assert content["details"]["reading"].pop("exclude") == ""
    (path / META).write_bytes(signed(content))
    engine = SearchEngine(path)
    assert engine.search(QUERY)["docno"].iloc[0] == "basel"
    engine.delete("basel")
    assert len(SearchEngine(path)) == len(POSTS) - 1


@pytest.mark.parametrize("place", [META, f"generation-1/posts/{META}"])
def test_an_engine_of_an_earlier_format_is_refused_with_a_way_out(path, place) -> None:
    content = json.loads((path / place).read_text("utf-8"))
    content.pop("checksum", None)
    (path / place).write_bytes(signed({**content, "format_version": 2}))
    with pytest.raises(FormatError, match=r"mathamr build POSTS -o .* --overwrite"):
        SearchEngine(path).search("x")
    assert len(built(path, POSTS[:2], overwrite=True)) == 2
    assert [entry.name for entry in path.glob("generation-*")] == ["generation-2"]


def test_transformers_and_snapshots_keep_the_state_that_they_were_made_from(path) -> None:
    engine = SearchEngine(path)
    before, retriever = engine.snapshot(), engine.retriever(num_results=3)
    found, formulas = before.search(QUERY, weak=True), before.search_formula("x")
    engine.delete(["basel"])
    engine.add([{"id": "new", "text": "On ∑ 1/n² again"}])
    assert before.search(QUERY, weak=True).equals(found)
    assert before.search_formula("x").equals(formulas)
    assert before.explain(QUERY, "basel").score == pytest.approx(found["score"].iloc[0], abs=1e-4)
    assert retriever(engine.frame(QUERY))["docno"].tolist() == found["docno"].tolist()[:3]
    assert engine.search(QUERY)["docno"].tolist()[0] == "new"


def test_a_copy_shares_the_bytes_that_a_change_does_not_touch_and_leaves_none_behind(path) -> None:
    arrays = "vectors/part-000000/arrays.safetensors"
    before = (path / "generation-1" / arrays).stat().st_ino
    SearchEngine(path).add([{"id": "new", "text": "words"}])
    assert (path / "generation-2" / arrays).stat().st_ino == before
    assert sorted(entry.name for entry in path.iterdir()) == ["generation-2", META]


def test_where_files_cannot_be_linked_they_are_copied(path, monkeypatch) -> None:
    def refuse(*_):
        raise OSError(1, "not permitted")

    monkeypatch.setattr(os, "link", refuse)
    engine = SearchEngine(path)
    engine.delete("basel")
    engine.verify()
    assert len(engine) == 4


def test_a_stopped_copy_is_not_taken_for_a_build(path) -> None:
    with stopped("Generations.publish"):
        SearchEngine(path).delete("basel")
    assert (path / "generation-2").is_dir()
    assert SearchEngine(path).search(QUERY)["docno"].iloc[0] == "basel"
    assert built(path, POSTS[:2], overwrite=True).docnos() == ["basel", "gauss"]


def test_a_state_that_is_replaced_closes_its_files_at_once(path) -> None:
    engine = SearchEngine(path)
    engine.search(QUERY)
    engine.search_formula("x")
    indexes = [weakref.ref(index.snapshot()) for index in engine.snapshot().indexes]
    gc.disable()
    try:
        engine.delete("basel")
        engine.search(QUERY)
        assert [index() for index in indexes] == [None] * len(indexes)
    finally:
        gc.enable()


CHANGES = """
import sys, pathlib
from pyterrier_mathamr import SearchEngine
engine, stop = SearchEngine(sys.argv[1]), pathlib.Path(sys.argv[2])
while not stop.exists():
    engine.add([{"id": "new", "text": "On ∑ 1/n² again"}])
    print("added", flush=True)
    engine.delete("new")
"""
_THREADS, _ANSWERS, _ADDITIONS = 8, 10, 2


def test_answers_during_additions_and_deletions_are_each_of_one_state(path) -> None:
    engine, stop = SearchEngine(path), path.with_name("stop")
    with_new = built(path.with_name("with"))
    with_new.add([{"id": "new", "text": "On ∑ 1/n² again"}])
    states = {_answer(engine), _answer(with_new)}
    assert len(states) == 2
    command = [sys.executable, "-c", CHANGES, str(path), str(stop)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer, ThreadPoolExecutor(_THREADS) as pool:
        assert writer.stdout is not None
        try:
            for _ in range(_ADDITIONS):
                assert writer.stdout.readline() == "added\n"
                found = [pool.submit(_answer, engine) for _ in range(_THREADS * _ANSWERS // _ADDITIONS + 1)]
                assert {each.result() for each in found} <= states
        finally:
            stop.touch()
            writer.stdout.read()
    assert writer.returncode == 0


def _answer(engine: SearchEngine) -> tuple[object, ...]:
    """The results of a search, as a value that can be compared exactly except for the last bits of scores."""
    at = engine.snapshot()
    found, formulas = at.search(QUERY, k=9), at.search_formula("1/n", k=9)
    return (*found["docno"], *found["score"].round(3), *found["snippet"], *formulas["docno"])
