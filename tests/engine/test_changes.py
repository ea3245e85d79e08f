"""Changes: an engine follows its files, reads again only what has changed, and what was deleted is gone."""

import json
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.engine import SearchEngine, search_engine
from pyterrier_mathamr.engine.posts import PostStore
from pyterrier_mathamr.engine.sources import Update
from pyterrier_mathamr.posts import DocumentError, files
from pyterrier_mathamr.store import DuplicateIdError, NotBuiltError, UnknownIdError
from tests.engine.conftest import POSTS, QUERY, built, stopped, written

NOTES = {"rings.md": "On rings $R$", "sums.md": "On $\\sum 1/n$", "words.md": "no formula at all"}
CHANGED = {"rings.md": "On rings $R$", "sums.md": "On $\\prod_n a_n$", "deep/new.tex": "Fields are $F$-algebras."}
LONG = "Filler about limits and series. " * 60
BOOK = f"**Theorem (One).** A limit $x$.\n\n**Lemma (Two).** A series $y$.\n\n{LONG}\n"
LINES = '{"id": "line", "text": "so $x$"}\n{"id": "other", "text": "fields"}\n'
NEW = {"id": "new", "text": "On ∑ 1/n² again"}
SECRET = "swordfish"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three notes, an engine of them, and one of the changed notes."""
    folder = tmp_path_factory.mktemp("changes")
    built(folder / "engine", written(folder / "notes", NOTES))
    built(folder / "fresh", written(folder / "changed" / "notes", CHANGED))
    return folder


@pytest.fixture
def notes(base: Path) -> Path:
    """The three notes as they were when the engine was built."""
    shutil.rmtree(base / "notes", ignore_errors=True)
    return written(base / "notes", NOTES)


@pytest.fixture
def follower(base: Path, notes: Path, tmp_path: Path) -> SearchEngine:
    """A copy of the engine of the notes."""
    return SearchEngine(shutil.copytree(base / "engine", tmp_path / "e"))


@pytest.fixture
def records(engine: SearchEngine, tmp_path: Path) -> SearchEngine:
    """A copy of the engine of records."""
    return SearchEngine(shutil.copytree(engine.path, tmp_path / "records"))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The posts whose graphs are built from now on."""
    built_graphs: list[str] = []
    real = search_engine.build_store

    def build_store(posts: Any, *given: Any, **options: Any) -> None:
        rows = list(posts)
        built_graphs.extend(row["docno"] for row in rows)
        real(rows, *given, **options)

    monkeypatch.setattr(search_engine, "build_store", build_store)
    return built_graphs


def whole(engine: SearchEngine) -> dict[str, str]:
    """Everything that the engine holds, by docno; all indexes must agree."""
    indexes = engine.snapshot().indexes
    docnos = sorted(engine.docnos())
    for index in (indexes.graphs, indexes.bm25, indexes.vectors):
        assert sorted(index.snapshot()) == docnos
    engine.verify()
    return {docno: engine.post(docno).text for docno in docnos}


def files_of(engine: SearchEngine) -> set[str]:
    """The files and records that an engine has posts of."""
    return {docno.partition("#")[0] for docno in engine.docnos()}


# ---- updates

STEPS = ["", "_remove_known", "_index_vectors", "Generations.publish"]
OTHER_STEPS = ["distinct_formulas", "_build_indexes", "build_store", "_index_formulas"]


@pytest.mark.parametrize("step", [*STEPS, *(pytest.param(step, marks=pytest.mark.slow) for step in OTHER_STEPS)])
def test_an_update_stopped_anywhere_shows_the_old_state_and_ends_in_that_of_a_new_build(
    base: Path, notes: Path, follower: SearchEngine, step: str
) -> None:
    old, fresh = whole(follower), SearchEngine(base / "fresh")
    (notes / "words.md").unlink()
    written(notes, CHANGED)
    if step:
        with stopped(step):
            follower.update()
        assert whole(follower) == old
    assert follower.update() == Update(new=1, changed=1, deleted=1, unchanged=1)
    assert whole(follower) == whole(fresh)
    for query in ("rings", r"$\prod_n a_n$", "fields $F$"):
        ours, theirs = (each.search(query)[["docno", "score"]] for each in (follower, fresh))
        pd.testing.assert_frame_equal(ours, theirs, atol=1e-3)
    formulas = [each.search_formula(r"\prod_n a_n")[["docno", "latex"]] for each in (follower, fresh)]
    pd.testing.assert_frame_equal(*formulas)
    assert follower.update(notes) == Update(0, 0, 0, 3)


def test_unchanged_posts_are_not_read_again_and_make_no_new_state(
    notes: Path, follower: SearchEngine, read: list[str]
) -> None:
    before = follower.snapshot().identity
    os.utime(notes / "rings.md", (0, 0))  # its content is the same
    assert follower.update() == Update(0, 0, 0, 3)
    assert (read, follower.snapshot().identity) == ([], before)
    (notes / "sums.md").write_text("On $x$")
    assert str(follower.update()) == "0 new, 1 changed, 0 deleted, 2 unchanged"
    assert [name.removesuffix(".md") for name in read] == ["sums"]


def test_the_place_of_a_post_is_stored_again_without_reading_its_text_again(tmp_path: Path, read: list[str]) -> None:
    lines = tmp_path / "more.jsonl"
    lines.write_text('{"id": "a", "text": "so $x$"}\n')
    engine = built(tmp_path / "e", lines)
    lines.write_text('{"id": "a", "text": "so $x$", "note": "which is no text of the post"}\n')
    assert engine.update() == Update(0, 1, 0, 0)
    assert (read, engine.update()) == ([], Update(0, 0, 0, 1))


def test_a_file_that_cannot_be_opened_keeps_its_posts_and_an_empty_folder_is_an_error(
    notes: Path, follower: SearchEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        real = files._regular

        def regular(path: Path) -> Any:
            if path.name == "rings.md":
                raise PermissionError(13, "Permission denied")
            return real(path)

        patch.setattr(files, "_regular", regular)
        with pytest.warns(MathAMRWarning, match=r"rings\.md: it cannot be read \(Permission denied\)"):
            assert follower.update() == Update(0, 0, 0, 3)
    assert len(follower) == 3
    notes.rename(tmp_path / "elsewhere")
    with pytest.raises(DocumentError, match="no such folder"):
        follower.update()
    notes.mkdir()
    with pytest.raises(DocumentError, match="the folder has no notes"):
        follower.update()
    assert len(follower) == 3


def test_files_of_a_folder_that_cannot_be_opened_keep_their_posts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "notes", {"rings.md": "On rings $R$", "deep/book.md": BOOK})
    engine, real = built(tmp_path / "e", folder), files.os.walk

    def walk(top: Path, onerror: Any = None) -> Any:
        for place, folders, names in real(top):
            if str(place).endswith("deep"):
                onerror(PermissionError(13, "Permission denied", place))
            else:
                yield place, folders, names

    monkeypatch.setattr(files.os, "walk", walk)
    (folder / "rings.md").unlink()
    with pytest.warns(MathAMRWarning, match=r"deep: it cannot be read \(Permission denied\)"):
        assert engine.update().deleted == 1
    assert files_of(engine) == {"deep/book.md"}


@pytest.mark.parametrize("content", [b"", b" \n", b"\x00\x01\x02\xff\xfe\x81 Rings", b"---\n---\n"])
def test_a_file_without_readable_text_is_deleted_and_named(notes: Path, follower: SearchEngine, content: bytes) -> None:
    (notes / "rings.md").write_bytes(content)
    with pytest.warns(MathAMRWarning, match=r"rings\.md"):
        update = follower.update()
    assert update == Update(0, 0, 1, 2, (str(notes / "rings.md"),))
    assert str(update) == f"0 new, 0 changed, 1 deleted, 2 unchanged (no readable text in {notes / 'rings.md'})"
    assert "rings.md" not in follower


def test_a_folder_that_was_moved_is_recognized_by_its_name(
    notes: Path, follower: SearchEngine, tmp_path: Path, read: list[str]
) -> None:
    old = whole(follower)
    (tmp_path / "new").mkdir()
    notes.rename(tmp_path / "new" / "notes")
    follower.update(tmp_path / "new" / "notes")
    assert (whole(follower), read) == (old, [])
    assert follower.sources() == [str(tmp_path / "new" / "notes")]


def test_several_sources_have_prefixes_and_only_given_ones_are_compared(notes: Path, tmp_path: Path) -> None:
    papers = written(tmp_path / "papers", {"rings.md": "Another text on rings $S$"})
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


def test_records_are_added_and_replaced_and_never_deleted(records: SearchEngine) -> None:
    added = {"id": "added", "text": "a new one"}
    assert records.update([{"id": "harmonic", "text": "changed"}, added]) == Update(1, 1, 0, 0)
    assert sorted(whole(records)) == ["added", "basel", "gauss", "harmonic", "matrix", "words"]
    assert records.post("harmonic").text == "changed"
    with pytest.raises(DocumentError, match="was not built from "):
        records.update()


def test_an_id_that_another_source_has_is_left_out_and_named(notes: Path, follower: SearchEngine) -> None:
    with pytest.warns(MathAMRWarning, match=rf"rings.md' is also the id of {notes}.*rename one"):
        assert follower.update([{"id": "rings.md", "text": "mine"}]).changed == 0
    assert "On rings" in follower.post("rings.md").text


# ---- additions and deletions


def test_posts_are_added_and_deleted_everywhere(records: SearchEngine, tmp_path: Path) -> None:
    records.add([NEW])
    assert records.search(QUERY, k=2)["docno"].tolist() == ["new", "basel"]
    assert records.search_formula("∑ 1/n²", k=1)["docno"].tolist() == ["new#0"]
    records.delete(["basel"])
    assert "basel" not in records.search(QUERY)["docno"].tolist()
    assert "basel" not in records.search_formula(r"\pi^2/6")["post_id"].tolist()
    assert len(records) == 5
    with pytest.raises(DuplicateIdError):
        records.add([NEW])
    with pytest.raises(UnknownIdError):
        records.delete(["basel"])
    records.add(POSTS[:1])
    assert records.search(QUERY, k=2)["docno"].tolist() == ["new", "basel"]
    fresh = built(tmp_path / "f", [*POSTS[1:], NEW, POSTS[0]])
    both = [each.search(QUERY).set_index("docno")["score"] for each in (records, fresh)]
    assert np.allclose(both[0][both[1].index], both[1], atol=1e-4)


def test_an_addition_that_is_stopped_shows_the_old_state_and_the_same_call_completes_it(
    records: SearchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stopped("_index_formulas"):
        records.add([NEW])
    assert "new" not in records
    assert "new" not in records.search(QUERY)["docno"].tolist()
    calls, write = iter([PostStore.write]), "pyterrier_mathamr.engine.posts.PostStore.write"
    with monkeypatch.context() as patch:  # only for posts that are read; they are stored already
        patch.setattr(write, lambda *given, **options: next(calls)(*given, **options))
        records.add([NEW])
    assert records.search(QUERY, k=1)["docno"].tolist() == ["new"]
    assert records.search_formula("∑ 1/n²", k=1)["docno"].tolist() == ["new#0"]


def test_a_stopped_deletion_is_completed_and_a_change_other_than_the_stopped_one_starts_over(
    records: SearchEngine,
) -> None:
    with stopped("_index_vectors"):
        records.add([NEW])
    for step in ("_remove_known", "Generations.publish"):
        with stopped(step):
            records.delete(["basel"])
        assert records.search(QUERY)["docno"].iloc[0] == "basel"
    records.delete("basel")
    assert sorted(records.docnos()) == ["gauss", "harmonic", "matrix", "words"]
    records.verify()


def test_a_change_that_another_process_made_and_did_not_report_succeeds_when_it_is_repeated(
    records: SearchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for change in (lambda: records.delete(["basel"]), lambda: records.add([NEW])):
        change()
        with pytest.raises((UnknownIdError, DuplicateIdError)):
            change()
        monkeypatch.setattr(search_engine, "_FINISHED", set())  # another process
        change()
    assert sorted(records.docnos()) == ["gauss", "harmonic", "matrix", "new", "words"]


def test_a_change_of_an_engine_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    engine = SearchEngine(tmp_path / "gone" / "e")
    for change in (engine.update, engine.compact, lambda: engine.delete("a"), lambda: engine.add(POSTS)):
        with pytest.raises(NotBuiltError):
            change()
    assert list(tmp_path.iterdir()) == []


def test_what_was_deleted_stays_away_until_its_content_changes(tmp_path: Path) -> None:
    written(tmp_path, {"notes/rings.md": "On rings $R$", "notes/deep/book.md": BOOK, "more.jsonl": LINES})
    notes, lines, moved = tmp_path / "notes", tmp_path / "more.jsonl", tmp_path / "moved" / "notes"
    engine = built(tmp_path / "e", [notes, lines])
    with pytest.raises(UnknownIdError, match="nothing"):
        engine.delete(["notes/rings.md", "nothing"])
    engine.delete(["notes/rings.md", "line", *(name for name in engine.docnos() if "book" in name)])
    assert engine.update() == engine.update() == Update(0, 0, 0, 1)
    (notes / "rings.md").write_text("On rings $S$")
    lines.write_text('{"id": "line", "text": "so $x$"}\n{"id": "other", "text": "fields and ideals"}\n')
    assert engine.update() == Update(1, 1, 0, 0)
    assert files_of(engine) == {"notes/rings.md", "other"}
    moved.parent.mkdir()
    notes.rename(moved)  # a file stays deleted where its folder is moved
    engine.update([moved, lines])
    assert files_of(engine) == {"notes/rings.md", "other"}
    (moved / "deep" / "book.md").write_text("A book $b$")
    assert engine.update().new == 1
    engine.delete("notes/deep/book.md")
    engine.add([{"id": "notes/deep/book.md", "text": "given by name"}])  # what is given is not left out
    assert "notes/deep/book.md" in engine


def test_a_deleted_note_comes_back_with_its_file_and_a_record_when_it_is_given(
    notes: Path, follower: SearchEngine
) -> None:
    mine = [{"id": "mine", "text": "a record $z$"}]
    follower.update(mine)
    follower.delete(["mine", "rings.md"])
    assert follower.update(mine).new == 1
    follower.add(notes / "rings.md")
    assert {"mine", "rings.md"} <= files_of(follower)


def test_a_deleted_chapter_stays_away_when_others_of_its_document_or_the_macros_change(tmp_path: Path) -> None:
    texts = {"main.tex": r"A book. \input{one}\input{two}", "one.tex": "A ring $x$.", "two.tex": "A field $y$."}
    folder = written(tmp_path / "notes", {**texts, "plain.md": "A limit $z$."})
    engine = built(tmp_path / "e", folder)
    engine.delete(["one.tex", "plain.md"])
    written(folder, {"two.tex": "A field $z$.", "macros.tex": r"\newcommand{\R}{\mathbb{R}}"})
    engine.update()
    assert files_of(engine) == {"main.tex", "two.tex"}
    (folder / "one.tex").write_text("A ring $S$.")
    engine.update()
    assert files_of(engine) == {"main.tex", "one.tex", "two.tex"}


# ---- compaction


def holding(path: Path, word: str) -> list[str]:
    """The files that hold a word, as bytes of text or in what zlib has packed."""
    needle, holders = word.encode(), []
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        data = file.read_bytes()
        packed = (at for at in range(len(data) - 1) if data[at] == 0x78 and data[at + 1] in (1, 0x5E, 0x9C, 0xDA))
        if needle in data or any(needle in unpacked(data[at:]) for at in packed):
            holders.append(file.relative_to(path).as_posix())
    return holders


def unpacked(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, 1 << 20)
    except zlib.error:
        return b""


def posts_with_a_secret() -> list[dict[str, str]]:
    """Twelve posts; one has the secret as its id, in its title, text and formulas."""
    others = [{"id": f"d{i}", "text": f"Ring number {i} has $x_{i}^2 = y$."} for i in range(11)]
    text = rf"The password {SECRET} is ${SECRET}^2$ and $\mathrm{{{SECRET}}}_1$, {SECRET}."
    return [*others, {"id": SECRET, "title": f"On {SECRET}", "text": text}]


@pytest.fixture(scope="module")
def deleted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An engine from which one post of twelve was deleted: too few to rewrite anything."""
    path = tmp_path_factory.mktemp("deleted") / "e"
    built(path, posts_with_a_secret()).delete(SECRET)
    return path


def results_of(engine: SearchEngine) -> str:
    at = engine.snapshot()
    tables = [at.search("ring number 3 with $x^2$", weak=True, k=20), at.search_formula("x_3^2", k=20)]
    found = [table.round(4).to_dict("list") for table in tables]
    return json.dumps([sorted(at.docnos()), at.counts()[:2], *found])


def test_after_a_compaction_stopped_anywhere_deleted_text_is_in_no_file_and_searches_find_the_same(
    deleted: Path, tmp_path: Path
) -> None:
    path = shutil.copytree(deleted, tmp_path / "e")
    engine = SearchEngine(path)
    before = results_of(engine)
    assert {"posts", "graphs", "bm25", "vectors"} <= {name.split("/")[1] for name in holding(path, SECRET)}
    for step in ("pyterrier_mathamr.store.artifact.merged", "Generations.publish"):
        with stopped(step):
            engine.compact()
        assert results_of(SearchEngine(path)) == before
    engine.compact()
    assert holding(path, SECRET) == []
    assert results_of(engine) == before
    engine.verify()
    assert not any(part.deleted.size for index in engine.snapshot().indexes for part in index.snapshot().parts)


def test_the_title_of_a_deleted_or_changed_question_leaves_the_indexes_of_its_answers(tmp_path: Path) -> None:
    others = [{"id": f"d{i}", "text": f"Ring number {i} has $x_{i}^2 = y$."} for i in range(8)]
    answers = [{"id": name, "text": f"The answer {name} is $y$.", "parent": "asked"} for name in ("one", "two")]
    asked = {"id": "asked", "title": f"Which {SECRET} is ${SECRET}$?", "text": "A question"}
    engine = built(tmp_path / "e", [asked, *answers, *others])
    assert SECRET in engine.graph("one").text
    engine.update([{**asked, "title": "Which fish?"}])
    engine.compact()
    assert holding(tmp_path / "e", SECRET) == []
    assert "fish" in engine.graph("one").text
    engine.delete("asked")
    engine.compact()
    assert holding(tmp_path / "e", "fish") == []
    assert engine.graph("one").text.startswith("The answer one")
    engine.verify()


def test_an_answer_that_moves_while_its_question_changes_is_indexed_again(tmp_path: Path) -> None:
    lines = tmp_path / "posts.jsonl"
    asked = {"id": "asked", "title": f"Which {SECRET}?", "text": "A question"}
    answer = {"id": "one", "text": "The answer is $y$.", "parent": "asked"}
    lines.write_text(f"{json.dumps(asked)}\n{json.dumps(answer)}\n")
    engine = built(tmp_path / "e", lines)
    lines.write_text(f"{json.dumps({**asked, 'title': 'Which fish?'})}\n{json.dumps({**answer, 'note': 'no text'})}\n")
    assert engine.update() == Update(0, 2, 0, 0)
    assert "Which fish" in engine.graph("one").text
    assert engine.update() == Update(0, 0, 0, 2)
    engine.verify()


def test_changes_rewrite_parts_of_which_a_fifth_was_deleted(tmp_path: Path) -> None:
    engine = built(tmp_path / "e", posts_with_a_secret())
    engine.delete([SECRET, "d0", "d1"])  # three of twelve
    assert holding(tmp_path / "e", SECRET) == []
    for round_ in range(2):
        engine.update([{"id": f"d{i}", "text": f"Ring {i} again: $z_{i}^{round_} = y$."} for i in range(2, 11)])
        for index in engine.snapshot().indexes:
            parts = index.snapshot().parts
            assert all(len(part.deleted) < 0.2 * len(part) for part in parts)
    engine.verify()
