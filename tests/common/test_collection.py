"""The search for unreachable cycles: postponed for a piece of work, and as before after it."""

import gc

import pytest

from pyterrier_mathamr._common.running.resources import cycles_kept


def test_cycles_are_kept_within_and_looked_for_after_it_also_after_an_error():
    with cycles_kept():
        with cycles_kept():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), cycles_kept():
        1 / 0  # noqa: B018
    assert gc.isenabled()


def test_a_process_that_looks_for_no_cycles_goes_on_so():
    gc.disable()
    try:
        with cycles_kept():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
