"""Progress bars: a total and the time left where the total is known, no bar for a single item."""

import io
import re

import pytest

from pyterrier_mathamr._common.feedback import count_lines, counted_progress, progress, work_counted, work_done


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [part.strip() for part in re.split(r"[\r\n]", capsys.readouterr().err) if part.strip()]


@pytest.mark.parametrize("items", [[], [1], [1, 2], [1, 2, 3]])
@pytest.mark.parametrize("verbose", [True, False])
def test_items_pass_through_in_order_and_only_several_have_a_bar(
    capsys: pytest.CaptureFixture[str], items: list[int], verbose: bool
) -> None:
    for total in (None, len(items)):
        for given in (items, iter(items)):
            assert list(progress(given, "read", "posts", verbose=verbose, total=total)) == items
    assert bool(shown(capsys)) == (verbose and len(items) > 1)


def test_a_bar_has_total_unit_time_left_and_a_text_at_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    list(progress(range(1985), "building", "graphs", verbose=True))
    assert re.fullmatch(r"building: 100%\|.*\| 1985/1985 graphs \[00:0\d<00:00, +[\d.]+ graphs/s\]", shown(capsys)[-1])
    list(progress(range(3), "building", "graphs", verbose=True, note=lambda: "a 2, b 1"))
    assert shown(capsys)[-1].endswith("graphs/s, a 2, b 1]")
    list(progress(iter(range(7)), "reading", "posts", verbose=True))  # without a total
    assert shown(capsys)[-1].startswith("reading: 7 posts [00:0")


def test_blank_lines_do_not_count() -> None:
    assert count_lines(io.BytesIO(b"a\n\n \r\nb")) == 2


def test_counts_are_shown_and_bytes_only_where_they_take_more_than_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    for unit, total, verbose in (("B", 3_000, True), ("B", 3_000, False), ("posts", 3_000, False), ("posts", 1, True)):
        with counted_progress("reading", unit, total, verbose=verbose) as read:
            read(1_000)
            read(2_000)
        assert shown(capsys) == []
    with counted_progress("reading", "posts", 3_000, verbose=True) as read:
        read(1_000)
        read(2_000)
    assert shown(capsys)[-1].startswith("reading: 100%|")


def test_work_within_a_batch_is_counted_where_someone_counts() -> None:
    counts = list[int]()
    with work_counted(counts.append):
        work_done(3)
    work_done(4)
    assert counts == [3]
