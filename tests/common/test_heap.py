"""When a process returns free memory to the system."""

from pyterrier_mathamr._common.running import resources


def test_memory_is_returned_where_the_process_has_grown_by_a_quarter_since_the_first_batch():
    held, returned = iter([100, 120, 125, 126, 90, 112, 113]), []
    of = resources.Heap(lambda: next(held), lambda: returned.append(True))
    counts = []
    for _ in range(7):
        of.after_batch()
        counts.append(len(returned))
    assert counts == [0, 0, 0, 1, 1, 1, 2]


def test_without_glibc_nothing_is_read_or_returned(monkeypatch):
    monkeypatch.setattr(resources.sys, "platform", "darwin")
    monkeypatch.setattr(resources, "_resident", lambda: 1 / 0)
    of = resources.Heap()
    of.after_batch()
    of.trim()


def test_on_this_system_a_heap_is_returned_or_left():
    of = resources.Heap()
    for _ in range(3):
        of.after_batch()
    of.trim()
