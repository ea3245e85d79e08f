"""Tiers: few parts, each byte rewritten a few times, whatever the sizes."""

from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr.store.parts import parts_to_merge

FULL = 64 << 20


def grow(sizes: list[int], full: int = FULL) -> tuple[list[int], int]:
    """Add parts one by one and merge as the store does; the sizes at the end, and the bytes written."""
    parts: list[int] = []
    written = 0
    for size in sizes:
        parts.append(size)
        written += size
        while run := parts_to_merge(parts, full):
            assert len(run) > 1
            merged = sum(parts[run.start : run.stop])
            assert merged <= full
            parts[run.start : run.stop] = [merged]
            written += merged
    return parts, written


def test_a_thousand_small_parts_become_a_few() -> None:
    parts, written = grow([3_000] * 1000)
    assert sum(parts) == 3_000_000
    assert len(parts) <= 20
    assert written <= 60 * 3_000_000  # the smallest are rewritten more often, but never beyond 64 KiB


def test_parts_of_a_megabyte_are_rewritten_a_few_times() -> None:
    parts, written = grow([1 << 20] * 2000)
    assert sum(parts) == 2000 << 20
    assert len(parts) <= 2000 / 32 + 20
    assert written <= 4 * (2000 << 20)


def test_full_parts_are_not_touched() -> None:
    assert grow([40 << 20] * 30) == ([40 << 20] * 30, 30 * (40 << 20))


@given(st.lists(st.integers(0, 1000), max_size=200), st.integers(1, 1000))
def test_any_sizes_end(sizes, full) -> None:
    parts, _ = grow(sizes, full)
    assert sum(parts) == sum(sizes)
