"""Progress bars: a total and the time left where the total is known, no bar for a single item."""

import io
import re

import pytest

from pyterrier_mathamr._common.feedback import count_lines, counted_progress, progress


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [part.strip() for part in re.split(r"[\r\n]", capsys.readouterr().err) if part.strip()]


def test_items_pass_through_in_order_whatever_is_known_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    for items in ([], [1], [1, 2], [1, 2, 3]):
        for total in (None, len(items)):
            for verbose in (True, False):
                for given in (items, iter(items)):
                    assert list(progress(given, "read", "posts", verbose=verbose, total=total)) == items


def test_a_bar_has_total_unit_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    list(progress(range(1985), "building", "graphs", verbose=True))
    assert re.fullmatch(r"building: 100%\|.*\| 1985/1985 graphs \[00:0\d<00:00, +[\d.]+ graphs/s\]", shown(capsys)[-1])


def test_a_bar_says_what_is_given_to_stand_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress(range(3), "building", "graphs", verbose=True, beside=lambda: "a 2, b 1")) == [0, 1, 2]
    assert shown(capsys)[-1].endswith("graphs/s, a 2, b 1]")


def test_without_a_total_the_bar_counts_from_the_first_item(capsys: pytest.CaptureFixture[str]) -> None:
    list(progress(iter(range(7)), "reading", "posts", verbose=True))
    assert shown(capsys)[-1].startswith("reading: 7 posts [00:0")


@pytest.mark.parametrize(("items", "total"), [([1], None), (iter([1]), None), (iter([1]), 1), ([], None)])
def test_a_single_item_has_no_bar(capsys: pytest.CaptureFixture[str], items: list[int], total: int | None) -> None:
    list(progress(items, "encoding", "batches", verbose=True, total=total))
    assert shown(capsys) == []


def test_silence_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    list(progress(range(9), "building", "graphs", verbose=False))
    assert shown(capsys) == []


def test_blank_lines_do_not_count() -> None:
    assert count_lines(io.BytesIO(b"a\n\n \r\nb")) == 2


def test_bytes_are_counted_and_work_of_less_than_a_second_shows_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    for verbose in (True, False):
        with counted_progress("verifying", "B", 3_000, verbose=verbose) as read:
            read(1_000)
            read(2_000)
        assert shown(capsys) == []


def test_a_bar_of_bytes_gets_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    class Bar:
        def __init__(self, total: int, **options: object) -> None:
            seen.append(total)

        def __enter__(self) -> "Bar":
            return self

        def __exit__(self, *error: object) -> None:
            seen.append("closed")

        def update(self, size: int) -> None:
            seen.append(size)

    monkeypatch.setattr("pyterrier.tqdm", Bar)
    with counted_progress("verifying", "B", 3_000, verbose=True) as read:
        read(1_000)
        read(2_000)
    assert seen == [3_000, 1_000, 2_000, "closed"]
