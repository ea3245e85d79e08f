"""Whole builds of what a stranger puts into a folder or file: what can be read is indexed, the rest is named."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyterrier_mathamr.engine import SearchEngine

PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
"""A terminal that writes only ASCII."""


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pyterrier_mathamr", *map(os.fspath, arguments)]  # type: ignore[arg-type]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **PLAIN}, timeout=300, check=True)


def write(folder: Path, name: bytes, text: bytes = b"so $x^2=1$ holds") -> None:
    with open(os.fsencode(folder) + b"/" + name, "wb") as file:
        file.write(text)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such names")
def test_a_folder_of_odd_names_links_and_fifos_is_built_and_searched_where_only_ascii_is_written(tmp_path) -> None:
    notes = tmp_path / "notes"
    (notes / "dir.md").mkdir(parents=True)
    names = [b"good.md", b"caf\xe9.md", b"new\nline.md", "weiß ∑.md".encode(), b"-rf.md", b"a'b\"c&<>.md"]
    for name in (*names, b"x" * 200 + b".md", b"tab\t.txt", b"dir.md/in.md"):
        write(notes, name)
    write(notes, b"caf\xe8.md", b"\xff")
    os.mkfifo(notes / "pipe.md")
    (notes / "out.md").symlink_to("/etc/passwd")
    (notes / "loop").symlink_to(".")
    built = run("build", notes, "-o", tmp_path / "engine", "--model", "mathamr-plus-mini", "-q")
    assert "9 posts" in built.stdout
    assert "3 of 12 posts were left out" in built.stderr
    odd = (r"caf\xe8.md: it is not UTF-8", "out.md: it links to /etc/passwd", "pipe.md: it is not a regular file")
    for part in odd:
        assert part in built.stderr
    assert r"caf\xe9" in run("search", tmp_path / "engine", "so $x^2=1$").stdout
    assert {r"caf\xe9.md", r"new\nline.md", r"tab\t.txt"} <= set(SearchEngine(tmp_path / "engine").docnos())


def test_a_file_of_odd_ids_is_built_searched_and_changed(tmp_path) -> None:
    good = ["ok", "a b", "a/b", "..", "../../outside", "/etc/passwd", "a" * 300, "\u202e\u200b", "#0",
            "a#0", "FORMULA_0", "é", "e\u0301", "\U0001f600", "-x", "'\"&<>", "'" * 300]  # fmt: skip
    bad = ["\ud800", "x\udfff", "b" * 301, "", " ", "a\0b", "a\x1bb", "a\nb", "a\tb", 7.5, None, [], {}]
    lines = [json.dumps({"docno": name, "text": f"own{i} $x_{{{i}}}$"}) for i, name in enumerate([*good, *bad])]
    (tmp_path / "posts.jsonl").write_text("\n".join([*lines, '{"docno": "half", "text": "own \\ud800 $y\\udfff$"}']))
    path = tmp_path / "engine"
    with pytest.warns(UserWarning, match=f"{len(bad)} of {len(good) + len(bad) + 1} posts were left out"):
        engine = SearchEngine.build(tmp_path / "posts.jsonl", path, model="mathamr-plus-mini", verbose=False)
    assert engine.docnos() == [*good, "half"]
    for i, name in enumerate(good):
        assert name in set(engine.search(f"own{i}", k=len(good))["docno"])
        assert name in set(engine.search_formula(f"x_{{{i}}}", k=2 * len(good))["post_id"])
        assert engine.explain(f"own{i}", name).docno == name
    engine.delete(good[1:])
    assert engine.docnos() == ["ok", "half"]
    engine.add([{"docno": name, "text": "so"} for name in good[1:]])
    assert len(engine) == len(good) + 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["engine", "posts.jsonl"]
