"""When a process returns free memory to the system."""

import pytest

from pyterrier_mathamr._common.running import resources


def test_memory_is_returned_where_the_process_has_grown_by_a_quarter_since_the_first_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, returned = iter([100, 120, 125, 126, 90, 112, 113]), []
    monkeypatch.setattr(resources, "_malloc_trim", lambda: returned.append)
    monkeypatch.setattr(resources, "resident", lambda: next(held))
    of, counts = resources.Heap(), []
    for _ in range(7):
        of.after_batch()
        counts.append(len(returned))
    assert counts == [0, 0, 0, 1, 1, 1, 2]


@pytest.mark.parametrize("platform", ["darwin", resources.sys.platform])
def test_without_glibc_nothing_is_done_and_on_this_system_a_heap_is_returned_or_left(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(resources.sys, "platform", platform)
    of = resources.Heap()
    for _ in range(3):
        of.after_batch()
    of.trim()
