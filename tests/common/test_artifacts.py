"""What is at a path is recognised by its pt_meta.json, and nothing else is read or replaced."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyterrier_mathamr as mathamr
from pyterrier_mathamr._common.artifacts import NotWritableError, OtherArtifactError, check_artifact, check_writable

DOCUMENTS = [{"docno": "1", "text": "Why is $x^2$ not negative?"}]

BUILDS: dict[str, Callable[[Path, str], Any]] = {
    "bm25": lambda path, mode: mathamr.BM25Index(path).indexer(mode).index(DOCUMENTS),
    "tangent": lambda path, mode: mathamr.TangentIndex(path).indexer(mode).index(DOCUMENTS),
}


@pytest.mark.parametrize("content", [None, "an empty folder", '{"type": "graph_store", "format": "mathamr"}'])
def test_nothing_an_empty_folder_and_the_same_kind_are_let_through(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "place"
    if content is not None:
        path.mkdir()
        if content.startswith("{"):
            (path / "pt_meta.json").write_text(content)
    check_artifact(path, "graph_store.mathamr")


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("thesis.tex", "chapter 1", "files but no pt_meta.json"),
        ("pt_meta.json", '{"type": "sparse_index", "format": "terrier"}', "a sparse_index.terrier"),
        ("pt_meta.json", "{", "a pt_meta.json that cannot be read"),
        ("pt_meta.json", "[]", "a pt_meta.json that cannot be read"),
    ],
)
def test_other_content_is_named(tmp_path: Path, name: str, content: str, found: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(OtherArtifactError, match=f"{tmp_path} holds {found}, not a graph_store.mathamr") as caught:
        check_artifact(tmp_path, "graph_store.mathamr")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_file_is_named_as_one(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x")
    with pytest.raises(OtherArtifactError, match="holds a file"):
        check_artifact(tmp_path / "notes", "graph_store.mathamr")


@pytest.mark.parametrize("mode", ["create", "overwrite"])
@pytest.mark.parametrize("build", BUILDS)
def test_no_mode_replaces_a_folder_of_other_things(tmp_path: Path, build: str, mode: str) -> None:
    (tmp_path / "thesis.tex").write_text("chapter 1")
    with pytest.raises(OtherArtifactError, match=r"files but no pt_meta\.json"):
        BUILDS[build](tmp_path, mode)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert (tmp_path / "thesis.tex").read_text() == "chapter 1"


def test_an_artifact_of_another_kind_is_not_opened_and_its_own_kind_is_named(tmp_path: Path) -> None:
    graphs = (mathamr.GraphBuilder() >> mathamr.GraphStore(tmp_path / "graphs").indexer()).index(DOCUMENTS)
    with pytest.raises(OtherArtifactError, match=r"a graph_store\.mathamr, not a sparse_index\.mathamr_bm25"):
        len(mathamr.BM25Index(graphs.path))
    with pytest.raises(OtherArtifactError, match=r"a graph_store\.mathamr, not a sparse_index\.mathamr_tangent"):
        len(mathamr.TangentIndex(graphs.path))


WRITES: dict[str, Callable[[Path], Any]] = {
    **{name: lambda path, build=build: build(path, "create") for name, build in BUILDS.items()},
}


@pytest.mark.parametrize("write", WRITES)
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, write: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda folder, _: folder != tmp_path)  # permissions do not bind the root of a CI
    with pytest.raises(NotWritableError, match=f"you may not write in {tmp_path}") as caught:
        WRITES[write](tmp_path / "folder" / "new")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_folders_that_are_missing_can_be_made_but_not_below_a_file(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b" / "c")
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotWritableError, match=f"write in {tmp_path / 'file'}"):
        check_writable(tmp_path / "file" / "c")
