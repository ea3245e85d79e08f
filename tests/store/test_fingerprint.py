"""The identity of the sources of a job."""

import os

from pyterrier_mathamr.store import file_fingerprint, job, row_fingerprint


def test_a_file_is_known_by_its_content(tmp_path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("posts")
    two.write_text("posts")
    assert file_fingerprint(one) == file_fingerprint(two)
    two.write_text("postz")
    assert file_fingerprint(one) != file_fingerprint(two)


def test_a_large_file_is_known_by_its_size_time_and_ends(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(job, "_WHOLE", 100)
    monkeypatch.setattr(job, "_END", 40)
    file = tmp_path / "posts"
    seen = []
    for text, time in [("a" * 200, 1), ("b" + "a" * 199, 1), ("a" * 199 + "b", 1), ("a" * 201, 1), ("a" * 200, 2)]:
        file.write_text(text)
        os.utime(file, (time, time))
        seen.append(str(file_fingerprint(file)))
    assert len(set(seen)) == 5


def test_a_row_is_known_by_its_values() -> None:
    one = {"docno": "1", "text": "x", "score": 1.5}
    assert row_fingerprint(one) == row_fingerprint(dict(reversed(one.items())))
    others = [{**one, "text": "y"}, {**one, "score": 1.25}, {**one, "title": ""}, {"docno": "1", "text": "x"}]
    assert len({row_fingerprint(row) for row in (one, *others)}) == 5
    assert 0 <= row_fingerprint({"text": "\ud800"}) < 1 << 64
