"""Folders and files as people have them: links, FIFOs, odd names, what vanishes, what is too long."""

import gzip
import json
import os
import sys
import threading
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.posts import (
    Document,
    DocumentError,
    accepted_posts,
    count_posts,
    files,
    note_files,
    own_posts,
    read_posts,
)

LINKS = pytest.mark.skipif(os.name == "nt", reason="Windows makes no links without a right to")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with one post."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "good.md").write_text("so $x$")
    return folder


def read(source: object) -> tuple[list[str], list[str]]:
    """Return the ids of the posts, and the errors of what is left out."""
    found = [post for _, post in read_posts(source)]  # type: ignore[arg-type]
    docnos = [post.docno for post in found if isinstance(post, Document)]
    return docnos, [str(error) for error in found if isinstance(error, DocumentError)]


@LINKS
def test_a_link_out_of_the_folder_is_not_followed_and_reported(notes: Path) -> None:
    (notes.parent / "secret.md").write_text("the password")
    (notes.parent / "others").mkdir()
    (notes.parent / "others" / "more.md").write_text("more")
    (notes / "file.md").symlink_to(notes.parent / "secret.md")
    (notes / "relative.md").symlink_to("../secret.md")
    (notes / "folder").symlink_to(notes.parent / "others")
    (notes / "nothing.md").symlink_to("gone.md")
    (notes / "script.py").symlink_to("/usr/bin/env")  # no post, with or without a link
    docnos, errors = read(notes)
    assert docnos == ["good.md"]
    assert [error.partition(": ")[0] for error in errors] == [
        str(notes / name) for name in ("file.md", "folder", "nothing.md", "relative.md")
    ]
    assert f"it links to {notes.parent / 'secret.md'}, which is not in the folder" in errors[0]
    assert "it links to nothing" in errors[2]
    assert count_posts(notes) is None  # how many posts a file has is known when it is read
    with pytest.warns(MathAMRWarning, match=r"4 of 5 posts were left out: .*file\.md"):
        assert [post.docno for post in accepted_posts(notes)] == ["good.md"]


@LINKS
def test_targets_of_links_in_the_folder_are_read_once_and_loops_end(notes: Path) -> None:
    (notes / "again.md").symlink_to("good.md")
    (notes / "a" / "b").mkdir(parents=True)
    (notes / "a" / "b" / "deep.tex").write_text("$y$")
    (notes / "a" / "b" / "up").symlink_to(notes)
    (notes / "a" / "here").symlink_to(".")
    (notes / "z").symlink_to("a/b")
    (notes / "self.md").symlink_to("self.md")
    (notes / "text.data").write_text("read by a link with the ending of a post")
    (notes / "first.txt").symlink_to("text.data")
    (notes / "second.txt").symlink_to("first.txt")
    docnos, errors = read(notes)
    assert docnos == ["a/b/deep.tex", "first.txt", "good.md"]
    assert errors == [f"{notes / 'self.md'}: it links to nothing.", "1 other file (1 .data): they are not notes."]
    folder_by_a_link = notes.parent / "link"
    folder_by_a_link.symlink_to(notes)
    assert read(folder_by_a_link)[0] == docnos


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
def test_special_files_are_reported_and_not_waited_for(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(notes / "pipe.md")
    (notes / "later.md").write_text("it becomes a FIFO before it is read")
    found: list[tuple[list[str], list[str]]] = []
    listed = files.listed

    def listed_and_changed(folder: Path, exclude: str) -> object:
        files = listed(folder, exclude)
        (notes / "later.md").unlink()
        os.mkfifo(notes / "later.md")
        return files

    monkeypatch.setattr(note_files, "listed", listed_and_changed)
    reading = threading.Thread(target=lambda: found.append(read(notes)), daemon=True)
    reading.start()
    reading.join(60)
    assert not reading.is_alive()
    docnos, errors = found[0]
    assert docnos == ["good.md"]
    assert errors == [
        f"{notes / 'later.md'}: it cannot be read (no regular file).",
        f"{notes / 'pipe.md'}: it is not a regular file.",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such names")
def test_names_that_are_not_utf_8_or_have_line_breaks_are_written_with_escapes(notes: Path) -> None:
    for name in (b"caf\xe9.md", b"caf\xe8.md", b"new\nline.md", "weiß.md".encode()):
        (Path(os.fsdecode(os.fsencode(notes) + b"/" + name))).write_text("so $x$")
    bad = Path(os.fsdecode(os.fsencode(notes) + b"/caf\xe7.md"))
    bad.write_bytes(b"\xff")
    docnos, errors = read(notes)
    assert docnos == [r"caf\xe8.md", r"caf\xe9.md", "good.md", r"new\nline.md", "weiß.md"]
    assert errors == [rf"{notes}/caf\xe7.md: it is not UTF-8 from byte 0 on, nor Latin-1; save it as UTF-8."]
    for text in (*docnos, *errors):
        text.encode()
    assert read(bad)[1] == errors


def test_a_file_that_vanishes_or_cannot_be_read_is_reported(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (notes / "gone.md").write_text("here when it is listed")
    (notes / "locked").mkdir()
    listed = files.listed

    def listed_then_gone(folder: Path, exclude: str) -> object:
        files = listed(folder, exclude)
        (notes / "gone.md").unlink()
        return files

    walk = os.walk

    def walk_over_a_locked_folder(folder: Path, onerror: object) -> object:
        error = PermissionError(13, "Permission denied", str(notes / "locked"))
        onerror(error)  # type: ignore[operator]
        return walk(folder)

    monkeypatch.setattr(note_files, "listed", listed_then_gone)
    monkeypatch.setattr(files.os, "walk", walk_over_a_locked_folder)
    docnos, errors = read(notes)
    assert docnos == ["good.md"]
    assert errors == [
        f"{notes / 'gone.md'}: it cannot be read (No such file or directory).",
        f"{notes / 'locked'}: it cannot be read (Permission denied).",
    ]


def test_a_file_that_is_too_large_or_in_another_encoding_is_refused_by_name(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST_FILE", 100)
    (notes / "JUST.TXT").write_text("word " * 20)
    (notes / "more.txt").write_text("word " * 20 + "x")
    (notes / "old.txt").write_bytes("na\xefve $x$".encode("latin-1"))
    (notes / "other.txt").write_bytes("теорема $x$".encode("koi8-r"))
    docnos, errors = read(notes)
    assert docnos == ["JUST.TXT", "good.md", "old.txt"]
    assert errors[0] == f"{notes / 'more.txt'}: it has more than 100 bytes; split it."
    assert errors[1:] == read(notes / "other.txt")[1]
    assert errors[1:] == [f"{notes / 'other.txt'}: it is not UTF-8 from byte 0 on, nor Latin-1; save it as UTF-8."]


def test_a_folder_in_which_everything_is_left_out_is_an_error_with_the_reason(notes: Path) -> None:
    (notes / "good.md").write_bytes(b"\xff")
    with pytest.raises(DocumentError, match="it is not UTF-8"):
        list(accepted_posts(notes))
    (notes / "good.md").unlink()
    with pytest.raises(DocumentError, match="the folder has no notes"):
        list(accepted_posts(notes))


@pytest.mark.parametrize("name", ["posts.jsonl", "posts.jsonl.gz"])
def test_a_line_that_is_too_long_is_named_without_keeping_it_and_those_after_it_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 5000)

    def line(docno: int, length: int) -> str:
        return json.dumps({"docno": str(docno), "text": "so"}).ljust(length)

    lengths = [50, 5000, 5001, 20_000_000, 50, 9000]
    text = "\n".join(line(number, length) for number, length in enumerate(lengths, start=1))
    opened = gzip.open if name.endswith("gz") else open
    for end in ("", "\n"):
        with opened(tmp_path / name, "wt") as file:
            file.write(text + end)
        tracemalloc.start()
        docnos, errors = read(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 6_000_000  # less than the line: its rest is read in pieces
        tracemalloc.stop()
        assert docnos == ["1", "2", "5"]
        assert errors == [
            f"{tmp_path / name}, line {number}: this is not JSON (the line has more than 5,000 bytes); "
            "write one JSON object in each line."
            for number in (3, 4, 6)
        ]
        assert count_posts(tmp_path / name) == len(lengths)


def test_a_damaged_gzip_file_is_a_named_error(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(os.urandom(100_000)))
    data[20:60] = b"\xff" * 40
    (tmp_path / "posts.jsonl.gz").write_bytes(data)
    assert count_posts(tmp_path / "posts.jsonl.gz") is None
    with pytest.raises(DocumentError, match=r"posts\.jsonl\.gz: it cannot be read"):
        list(read_posts(tmp_path / "posts.jsonl.gz"))


@pytest.mark.parametrize("key", ["docno", "id", "_id", "doc_id"])
def test_an_id_with_half_a_surrogate_pair_is_refused_by_name_and_a_text_with_one_is_read(
    tmp_path: Path, key: str
) -> None:
    lines = [f'{{"{key}": "a\\ud800b", "text": "so"}}', f'{{"{key}": "\\ud83d\\ude00", "text": "\\udfff $x$"}}']
    (tmp_path / "posts.jsonl").write_text("\n".join(lines))
    for source in (tmp_path / "posts.jsonl", [json.loads(line) for line in lines]):
        found = [post for _, post in read_posts(source)]
        assert isinstance(found[0], DocumentError)
        assert "'a\\ud800b' has half of a surrogate pair at place 2" in str(found[0])
        assert isinstance(found[1], Document)
        assert found[1].docno == "\U0001f600"
        assert "x</span>" in found[1].html
        found[1].html.encode()


def test_an_id_may_have_hundreds_of_characters_and_no_more() -> None:
    most = own_posts.LONGEST_ID
    docnos, errors = read([{"docno": "a" * most, "text": "so"}, {"docno": "b" * (most + 1), "text": "so"}])
    assert docnos == ["a" * most]
    assert errors == [f"post 2: its docno '{'b' * 40}'… has 301 characters, more than 300."]


@pytest.mark.parametrize("docno", ["a\0b", "a\x1b[31m", "\x7f", "\uffff", "a\tb", "a\nb", "a\u2028"])
def test_an_id_with_a_control_character_is_refused_by_name(docno: str) -> None:
    docnos, errors = read([{"docno": docno, "text": "so"}, {"docno": "a b / .. \u200f", "text": "so"}])
    assert docnos == ["a b / .. \u200f"]
    assert f"{docno!r} has a control character at place" in errors[0]


@pytest.mark.parametrize("name", ["a.tex", "a.md", "a.txt", "a.html", "macros.tex", "a.sty"])
def test_a_file_is_read_once_so_that_its_digest_is_of_the_text_of_its_posts(tmp_path: Path, name: str) -> None:
    (tmp_path / "main.tex").write_text(r"\usepackage{a}\input{a} Whole.")
    file = tmp_path / name
    file.write_text(r"\newcommand{\V}{\mathbf{v}} Here is $\V$.")

    def whole() -> dict[str, tuple[int, Any]]:
        entries = own_posts.source_entries(tmp_path)
        return {of.key: (of.digest, of.read) for of in entries if not isinstance(of, DocumentError)}

    def posts(entries: dict[str, tuple[int, Any]]) -> list[tuple[str, int, list[str]]]:
        return [(key, digest, [getattr(each, "html", "") for each in of()]) for key, (digest, of) in entries.items()]

    before, late = posts(whole()), whole()
    file.write_text(r"\newcommand{\V}{\mathbf{w}} Another.")
    assert posts(late) == before
    assert posts(whole()) != before


@pytest.mark.parametrize("name", ["a.md", "a.tex", "a.jsonl"])
def test_a_file_that_is_being_written_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "other.md").write_text("calm")
    age = 0.01  # seconds since the file was written, by the clock of the reader
    with open(tmp_path / name, "w") as file:
        file.write('{"docno": "a", "text": "The beginning')
        file.flush()

        def finish(seconds: float) -> None:
            nonlocal age
            file.write(' and the end."}\n')
            file.close()
            age = 1.0

        clock = SimpleNamespace(time=lambda: (tmp_path / name).stat().st_mtime + age, sleep=finish)
        monkeypatch.setattr(files, "time", clock)
        found = [post for _, post in read_posts(tmp_path / name if name.endswith("jsonl") else tmp_path)]
    assert any("and the end" in post.html for post in found if isinstance(post, Document))
