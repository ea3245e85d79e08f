"""Updates: an engine follows its files, and reads again only what has changed."""

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.engine import SearchEngine, building
from pyterrier_mathamr.engine.posts import PostStore
from pyterrier_mathamr.engine.sources import Update
from pyterrier_mathamr.posts import DocumentError, files
from pyterrier_mathamr.store import UnknownIdError
from tests.engine.conftest import POSTS, built


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with three notes."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in (("rings", "On rings $R$"), ("sums", "On $\\sum 1/n$"), ("words", "no formula at all")):
        (folder / f"{name}.md").write_text(text)
    return folder


def name_of(engine: SearchEngine, query: str) -> str:
    """The docno of the first result, without an ending."""
    return str(engine.search(query, k=1)["docno"].iloc[0]).removesuffix(".md")


def whole(engine: SearchEngine) -> dict[str, str]:
    """Everything that the engine holds, by docno; all indexes must agree."""
    indexes = engine.snapshot().indexes
    docnos = sorted(engine.docnos())
    for index in (indexes.graphs, indexes.bm25, indexes.vectors):
        assert sorted(index.snapshot()) == docnos
    engine.verify()
    return {docno: engine.post(docno).text for docno in docnos}


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The posts whose graphs are built from now on."""
    read: list[str] = []
    real = building.build_store

    def build_store(posts: Any, *given: Any, **options: Any) -> None:
        records = list(posts)
        read.extend(record["docno"] for record in records)
        real(posts, *given, **options)

    monkeypatch.setattr(building, "build_store", build_store)
    return read


def test_an_updated_engine_is_the_one_that_a_new_build_makes(notes: Path, tmp_path: Path) -> None:
    engine = built(tmp_path / "e", notes)
    (notes / "sums.md").write_text("On $\\prod_n a_n$")
    (notes / "words.md").unlink()
    (notes / "deep").mkdir()
    (notes / "deep" / "new.tex").write_text("Fields are $F$-algebras.")
    assert engine.update() == Update(new=1, changed=1, deleted=1, unchanged=1)
    fresh = built(tmp_path / "f", notes)
    assert whole(engine) == whole(fresh)
    for query in ("rings", r"$\prod_n a_n$", "fields $F$"):
        ours, theirs = (each.search(query)[["docno", "score"]] for each in (engine, fresh))
        pd.testing.assert_frame_equal(ours, theirs, atol=1e-3)
    formulas = [each.search_formula(r"\prod_n a_n")[["docno", "latex"]] for each in (engine, fresh)]
    pd.testing.assert_frame_equal(*formulas)
    assert engine.update(notes) == Update(0, 0, 0, 3)


def test_unchanged_posts_are_not_read_again_and_make_no_new_state(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = built(tmp_path / "e", notes)
    before = engine.snapshot().identity
    read = counted_reads(monkeypatch)
    os.utime(notes / "rings.md", (0, 0))  # its content is the same
    assert engine.update() == Update(0, 0, 0, 3)
    assert (read, engine.snapshot().identity) == ([], before)
    (notes / "sums.md").write_text("On $x$")
    assert str(engine.update()) == "0 new, 1 changed, 0 deleted, 2 unchanged"
    assert [name.removesuffix(".md") for name in read] == ["sums"]


def test_a_file_that_cannot_be_opened_keeps_its_posts_and_an_empty_folder_is_an_error(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = built(tmp_path / "e", notes)
    with monkeypatch.context() as patch:
        real = files._regular

        def regular(path: Path) -> Any:
            if path.name == "rings.md":
                raise PermissionError(13, "Permission denied")
            return real(path)

        patch.setattr(files, "_regular", regular)
        with pytest.warns(MathAMRWarning, match=r"rings\.md: it cannot be read \(Permission denied\)"):
            assert engine.update() == Update(0, 0, 0, 3)
    assert len(engine) == 3
    notes.rename(tmp_path / "elsewhere")
    with pytest.raises(DocumentError, match="no such folder"):
        engine.update()
    notes.mkdir()
    with pytest.raises(DocumentError, match="the folder has no notes"):
        engine.update()
    assert len(engine) == 3


def test_a_folder_that_was_moved_is_recognized_by_its_name(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = built(tmp_path / "e", notes)
    old = whole(engine)
    (tmp_path / "new").mkdir()
    notes.rename(tmp_path / "new" / "notes")
    read = counted_reads(monkeypatch)
    engine.update(tmp_path / "new" / "notes")
    assert (whole(engine), read) == (old, [])
    assert engine.sources() == [str(tmp_path / "new" / "notes")]


def test_several_sources_have_prefixes_and_only_given_ones_are_compared(notes: Path, tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "rings.md").write_text("Another text on rings $S$")
    lines = tmp_path / "more.jsonl"
    lines.write_text('{"id": "line", "text": "so $x$"}\n')
    engine = built(tmp_path / "e", [notes, papers, lines])
    names = sorted(docno.removesuffix(".md") for docno in engine.docnos())
    assert names == ["line", "notes/rings", "notes/sums", "notes/words", "papers/rings"]
    (notes / "sums.md").unlink()
    (papers / "rings.md").write_text("Ideals $I$")
    assert engine.update(papers) == Update(0, 1, 0, 0)
    assert engine.update() == Update(0, 0, 1, 4)
    (tmp_path / "other" / "notes").mkdir(parents=True)
    with pytest.raises(DocumentError, match="two sources have the name notes"):
        engine.update(tmp_path / "other" / "notes")


def test_records_are_added_and_replaced_and_never_deleted(tmp_path: Path) -> None:
    engine = built(tmp_path / "e", POSTS[:3])
    assert engine.update([{"id": "harmonic", "text": "changed"}, POSTS[4]]) == Update(1, 1, 0, 0)
    assert sorted(whole(engine)) == ["basel", "gauss", "harmonic", "words"]
    assert engine.post("harmonic").text == "changed"
    with pytest.raises(DocumentError, match="was not built from "):
        engine.update()


def test_an_id_that_another_source_has_is_left_out_and_named(notes: Path, tmp_path: Path) -> None:
    engine = built(tmp_path / "e", notes)
    [name] = [docno for docno in engine.docnos() if docno.startswith("rings")]
    with pytest.warns(MathAMRWarning, match=rf"{name}' is also the id of {notes}.*rename one"):
        assert engine.update([{"id": name, "text": "mine"}]).changed == 0
    assert "On rings" in engine.post(name).text


def test_deleting_a_file_deletes_its_posts_for_good(notes: Path, tmp_path: Path) -> None:
    engine = built(tmp_path / "e", notes)
    [name] = [docno for docno in engine.docnos() if docno.startswith("rings")]
    with pytest.raises(UnknownIdError, match="nothing"):
        engine.delete([name, "nothing"])
    engine.delete(name)
    assert len(engine) == 2
    assert engine.update() == Update(0, 0, 0, 2)


@pytest.mark.parametrize("step", ["remove_known", "PostStore.write", "build_indexes", "Generations.publish"])
def test_an_update_that_is_stopped_shows_the_old_state_and_the_same_call_completes_it(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    engine = built(tmp_path / "e", notes)
    old = whole(engine)
    (notes / "sums.md").write_text("On $\\prod_n a_n$")
    (notes / "words.md").unlink()
    (notes / "new.md").write_text("new $z$")
    with monkeypatch.context() as patch:
        real = PostStore.write

        def stop(*given: Any, **_: Any) -> None:
            if given[2:] == ("create",):  # of the posts that were read
                return real(*given)
            raise KeyboardInterrupt

        patch.setattr(f"pyterrier_mathamr.engine.search_engine.{step}", stop)
        with pytest.raises(KeyboardInterrupt):
            engine.update()
    assert whole(engine) == old
    assert engine.update() == Update(1, 1, 1, 1)
    assert whole(engine) == whole(built(tmp_path / "f", notes))


def test_the_place_of_a_post_is_stored_again_without_reading_its_text_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = tmp_path / "more.jsonl"
    lines.write_text('{"id": "a", "text": "so $x$"}\n')
    engine = built(tmp_path / "e", lines)
    read = counted_reads(monkeypatch)
    lines.write_text('{"id": "a", "text": "so $x$", "note": "which is no text of the post"}\n')
    assert engine.update() == Update(0, 1, 0, 0)
    assert (read, engine.update()) == ([], Update(0, 0, 0, 1))
