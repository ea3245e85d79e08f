"""A build shows how many posts are done within each batch, and the time left; it is silent on request."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyterrier_mathamr.engine import SearchEngine, building

POSTS = [{"id": f"p{i}", "text": f"Why is $x^{i} = {i}$? " + "It is a long story. " * (i % 20)} for i in range(90)]


@pytest.mark.parametrize("model", ["mathamr-plus-text", "mathamr-plus-mini"])
def test_posts_are_counted_while_a_batch_is_read_and_encoded(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = list[int]()

    @contextmanager
    def recorded(desc: str, unit: str, total: int, *, verbose: bool) -> Iterator[Callable[[int], object]]:
        assert (unit, total, verbose) == ("posts", len(POSTS), False)
        yield counts.append

    monkeypatch.setattr(building, "counted_progress", recorded)
    SearchEngine.build(POSTS, tmp_path / "engine", model=model, verbose=False)
    assert sum(counts) == len(POSTS)
    assert sum(count == 1 for count in counts) >= len(POSTS) // 2  # as posts are read
    if model == "mathamr-plus-text":
        assert max(counts) < len(POSTS) // 2  # as they are encoded


def test_a_build_shows_posts_and_time_left_or_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SearchEngine.build(POSTS, tmp_path / "shown", model="mathamr-plus-mini")
    counts = re.findall(r"indexing:.*?(\d+)/90 posts \[\d\d:\d\d<[\d:?]+, ", capsys.readouterr().err)
    assert len(set(counts)) > 2
    assert counts[-1] == "90"
    SearchEngine.build(POSTS, tmp_path / "silent", model="mathamr-plus-mini", verbose=False)
    assert capsys.readouterr() == ("", "")
