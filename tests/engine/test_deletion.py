"""Deletion means gone: updates do not bring a post back, and after compaction its text is in no file."""

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.generations import Generations
from pyterrier_mathamr.engine.sources import Update
from pyterrier_mathamr.posts import files
from tests.engine.conftest import built

SECRET = "swordfish"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with two notes, one of two statements, and a file of records."""
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "rings.md").write_text("On rings $R$")
    long = "Filler about limits and series. " * 60
    text = f"**Theorem (One).** A limit $x$.\n\n**Lemma (Two).** A series $y$.\n\n{long}\n"
    (folder / "deep" / "book.md").write_text(text)
    (tmp_path / "more.jsonl").write_text('{"id": "line", "text": "so $x$"}\n{"id": "other", "text": "fields"}\n')
    return folder


def files_of(engine: SearchEngine) -> set[str]:
    """The files and records that an engine has posts of."""
    return {docno.partition("#")[0] for docno in engine.docnos()}


def test_what_was_deleted_stays_away_until_its_content_changes(notes: Path, tmp_path: Path) -> None:
    lines = tmp_path / "more.jsonl"
    engine = built(tmp_path / "e", [notes, lines])
    for name in ("notes/rings.md", "line", *[name for name in engine.docnos() if "book" in name]):
        engine.delete(name)
    assert engine.update() == engine.update() == Update(0, 0, 0, 1)
    (notes / "rings.md").write_text("On rings $S$")
    lines.write_text('{"id": "line", "text": "so $x$"}\n{"id": "other", "text": "fields and ideals"}\n')
    assert engine.update() == Update(1, 1, 0, 0)
    assert files_of(engine) == {"notes/rings.md", "other"}
    (tmp_path / "moved").mkdir()
    notes.rename(tmp_path / "moved" / "notes")  # a file stays deleted where its folder is moved
    engine.update([tmp_path / "moved" / "notes", lines])
    assert files_of(engine) == {"notes/rings.md", "other"}
    (tmp_path / "moved" / "notes" / "deep" / "book.md").write_text("A book $b$")
    assert engine.update().new == 1
    engine.delete("notes/deep/book.md")
    engine.add([{"id": "notes/deep/book.md", "text": "given by name"}])  # what is given is not left out
    assert "notes/deep/book.md" in engine


def test_a_deleted_note_comes_back_with_its_file_and_a_record_when_it_is_given(tmp_path: Path, notes: Path) -> None:
    engine = built(tmp_path / "e", notes)
    engine.update([{"id": "mine", "text": "a record $z$"}])
    engine.delete(["mine", "rings.md"])
    assert engine.update([{"id": "mine", "text": "a record $z$"}]).new == 1
    engine.add(notes / "rings.md")
    assert {"mine", "rings.md"} <= files_of(engine)


def test_a_deleted_chapter_stays_away_when_others_of_its_document_or_the_macros_change(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    texts = {"main": r"A book. \input{one}\input{two}", "one": "A ring $x$.", "two": "A field $y$."}
    for name, text in texts.items():
        (folder / f"{name}.tex").write_text(text)
    (folder / "plain.md").write_text("A limit $z$.")
    engine = built(tmp_path / "e", folder)
    engine.delete(["one.tex", "plain.md"])
    (folder / "two.tex").write_text("A field $z$.")
    (folder / "macros.tex").write_text(r"\newcommand{\R}{\mathbb{R}}")
    engine.update()
    assert files_of(engine) == {"main.tex", "two.tex"}
    (folder / "one.tex").write_text("A ring $S$.")
    engine.update()
    assert files_of(engine) == {"main.tex", "one.tex", "two.tex"}


@pytest.mark.parametrize("content", [b"", b" \n", b"\x00\x01\x02\xff\xfe\x81 Rings", b"---\n---\n"])
def test_a_file_without_readable_text_is_deleted_and_named(notes: Path, tmp_path: Path, content: bytes) -> None:
    engine = built(tmp_path / "e", notes)
    (notes / "rings.md").write_bytes(content)
    with pytest.warns(MathAMRWarning, match=r"rings\.md"):
        found = engine.update()
    assert found == Update(0, 0, 1, 1, (str(notes / "rings.md"),))
    assert str(found) == f"0 new, 0 changed, 1 deleted, 1 unchanged (no readable text in {notes / 'rings.md'})"
    assert "rings.md" not in engine


def test_files_of_a_folder_that_cannot_be_opened_keep_their_posts(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = built(tmp_path / "e", notes)
    real = files.os.walk

    def walk(top: Path, onerror: Any = None) -> Any:
        for place, folders, names in real(top):
            if str(place).endswith("deep"):
                onerror(PermissionError(13, "Permission denied", place))
            else:
                yield place, folders, names

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "walk", walk)
        (notes / "rings.md").unlink()
        with pytest.warns(MathAMRWarning, match=r"deep: it cannot be read \(Permission denied\)"):
            assert engine.update().deleted == 1
    assert files_of(engine) == {"deep/book.md"}


def holding(path: Path, word: str) -> list[str]:
    """The files that hold a word, as bytes of text or in what zlib has packed."""
    needle, found = word.encode(), []
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        data = file.read_bytes()
        packed = (at for at in range(len(data) - 1) if data[at] == 0x78 and data[at + 1] in (1, 0x5E, 0x9C, 0xDA))
        if needle in data or any(needle in unpacked(data[at:]) for at in packed):
            found.append(file.relative_to(path).as_posix())
    return found


def unpacked(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, 1 << 20)
    except zlib.error:
        return b""


def posts_with_a_secret() -> list[dict[str, str]]:
    """Twelve posts; one has the secret as its id, in its title, text and formulas."""
    others = [{"id": f"d{i}", "text": f"Ring number {i} has $x_{i}^2 = y$."} for i in range(11)]
    of = rf"The password {SECRET} is ${SECRET}^2$ and $\mathrm{{{SECRET}}}_1$, {SECRET}."
    return [*others, {"id": SECRET, "title": f"On {SECRET}", "text": of}]


@pytest.fixture(scope="module")
def deleted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An engine from which one post of twelve was deleted: too few to rewrite anything."""
    path = tmp_path_factory.mktemp("deleted") / "e"
    built(path, posts_with_a_secret()).delete(SECRET)
    return path


def found_in(engine: SearchEngine) -> str:
    at = engine.snapshot()
    tables = [at.search("ring number 3 with $x^2$", weak=True, k=20), at.search_formula("x_3^2", k=20)]
    found = [table.round(4).to_dict("list") for table in tables]
    return json.dumps([sorted(at.docnos()), at.counts()[:2], *found])


def test_after_compaction_deleted_text_is_in_no_file_and_searches_find_the_same(deleted: Path, tmp_path: Path) -> None:
    path = shutil.copytree(deleted, tmp_path / "e")
    engine = SearchEngine(path)
    before = found_in(engine)
    named = {name.split("/")[1] for name in holding(path, SECRET)}
    assert {"posts", "graphs", "bm25", "vectors"} <= named
    engine.compact()
    assert holding(path, SECRET) == []
    assert found_in(engine) == before
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


def test_a_stopped_compaction_changes_nothing_and_the_same_call_completes_it(
    deleted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shutil.copytree(deleted, tmp_path / "e")
    engine = SearchEngine(path)
    before = found_in(engine)

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for at in ("pyterrier_mathamr.store.artifact.merged", f"{Generations.__module__}.Generations.publish"):
        with monkeypatch.context() as patch:
            patch.setattr(at, stop)
            with pytest.raises(KeyboardInterrupt):
                engine.compact()
        assert found_in(SearchEngine(path)) == before
    engine.compact()
    assert holding(path, SECRET) == []
    assert found_in(engine) == before


def test_changes_rewrite_parts_of_which_a_fifth_was_deleted(tmp_path: Path) -> None:
    engine = built(tmp_path / "e", posts_with_a_secret())
    engine.delete([SECRET, "d0", "d1"])  # three of twelve
    assert holding(tmp_path / "e", SECRET) == []
    for round_ in range(4):
        engine.update([{"id": f"d{i}", "text": f"Ring {i} again: $z_{i}^{round_} = y$."} for i in range(2, 11)])
        for index in engine.snapshot().indexes:
            parts = index.snapshot().parts
            assert all(len(part.deleted) < 0.2 * len(part) for part in parts)
    engine.verify()
