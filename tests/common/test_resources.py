"""Threads, memory and the search for cycles: limits hold for a piece of work, and are gone after it."""

import gc
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from threading import Barrier
from typing import Any

import pytest
import torch
from threadpoolctl import ThreadpoolController

from pyterrier_mathamr._common.feedback import ignored_warnings, recorded_warnings
from pyterrier_mathamr._common.running import resources
from pyterrier_mathamr._common.running.resources import (
    cycles_kept,
    on_threads,
    one_blas_thread,
    one_torch_thread,
    seeded,
)
from pyterrier_mathamr._common.running.settings import one_thread_each
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index.search.int8 import exactly
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.posts import post_from_text


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in ThreadpoolController().select(threading_layer="pthreads").info()]


@pytest.mark.parametrize(
    ("limit", "state", "within"),
    [
        (one_blas_thread, blas_threads, lambda: [1] * len(blas_threads())),
        (one_torch_thread, torch.get_num_threads, lambda: 1),
        (cycles_kept, gc.isenabled, lambda: False),
    ],
)
def test_a_limit_holds_within_also_when_nested_and_is_gone_after_it_also_after_an_error(
    limit: Callable[[], AbstractContextManager[None]], state: Callable[[], Any], within: Callable[[], Any]
) -> None:
    before = state()
    with limit():
        with limit():
            pass
        assert state() == within()
    assert state() == before
    with pytest.raises(ZeroDivisionError), limit():
        raise ZeroDivisionError
    assert state() == before


def test_a_process_that_looks_for_no_cycles_goes_on_so() -> None:
    gc.disable()
    try:
        with cycles_kept():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("cores", [1, 2])
def test_work_on_threads_comes_back_in_order_and_each_multiplies_by_itself(monkeypatch, cores):
    monkeypatch.setattr(resources, "usable_cores", lambda: cores)
    before = blas_threads()
    done = on_threads(lambda item: (item, set(blas_threads()) <= {1}), range(20))
    assert done == [(item, True) for item in range(20)]
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError):
        on_threads(lambda item: 1 / item, [1, 0])
    assert on_threads(str, []) == []


@pytest.fixture
def set_otherwise(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    usual = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("medium")
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        yield
    torch.set_float32_matmul_precision("highest")
    torch.set_num_threads(usual)


@pytest.mark.parametrize(
    ("setting", "state"),
    [
        (one_blas_thread, blas_threads),
        (one_torch_thread, torch.get_num_threads),
        (cycles_kept, gc.isenabled),
        (exactly, torch.get_float32_matmul_precision),
        (one_thread_each, lambda: os.environ.get("OMP_NUM_THREADS")),
    ],
)
def test_a_setting_holds_until_the_last_thread_that_needs_it_and_is_then_as_before(set_otherwise, setting, state):
    before, together = state(), Barrier(2)

    def first() -> Any:
        with setting():
            together.wait()
            together.wait()  # both are in
        together.wait()  # this one is out

    def second() -> list[Any]:
        together.wait()
        with setting():
            seen = [state()]
            together.wait()
            together.wait()
            return [*seen, state()]

    with ThreadPoolExecutor(2) as pool:
        waiting, (within, alone) = pool.submit(first), pool.submit(second).result()
        waiting.result()
        assert within == alone != before
        assert [pool.submit(state).result() for _ in range(4)] == [before] * 4


def test_a_limited_thread_of_torch_multiplies_by_itself_also_where_the_user_chose_a_number() -> None:
    with one_torch_thread(), ThreadPoolExecutor(1) as pool:  # a thread that uses torch first meanwhile keeps its number
        elsewhere = pool.submit(torch.get_num_threads).result()
    assert elsewhere == torch.get_num_threads()
    matrix, usual = torch.ones(1500, 1500), torch.get_num_threads()

    def seconds_of_others() -> float:
        before = time.process_time() - time.thread_time()
        for _ in range(5):
            matrix @ matrix
        return time.process_time() - time.thread_time() - before

    torch.set_num_threads(2)
    try:
        shared = seconds_of_others()
        assert shared > 0.02
        with one_torch_thread():  # other threads of this process may have some small work
            assert seconds_of_others() < shared / 2
    finally:
        torch.set_num_threads(usual)


def test_networks_drawn_at_the_same_time_are_those_of_their_seeds() -> None:
    def drawn(seed: int) -> list[float]:
        with seeded(seed):
            return torch.cat([torch.rand(1) for _ in range(50)]).tolist()

    state = torch.random.get_rng_state()
    alone = [drawn(seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(drawn, range(8))) == alone
    assert torch.equal(torch.random.get_rng_state(), state)


def test_the_filters_of_warnings_are_as_before_after_threads_that_changed_them() -> None:
    before = list(warnings.filters)

    def heard(number: int) -> list[str]:
        with recorded_warnings() as caught:
            warnings.warn(str(number), stacklevel=1)
            time.sleep(0.002)
        with ignored_warnings(UserWarning):
            warnings.warn("never shown", stacklevel=1)
            time.sleep(0.001)
        return [str(warning.message) for warning in caught]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(heard, range(40))) == [[str(number)] for number in range(40)]
    assert list(warnings.filters) == before


def test_graphs_are_encoded_on_one_thread_and_the_others_are_given_back():
    model, seen = MathAMR.from_pretrained("mathamr-plus-mini"), []
    model.encoder("cpu").register_forward_pre_hook(lambda *_: seen.append(torch.get_num_threads()))
    graphs = GraphBuilder().build({"1": post_from_text("Prove $x^2 > 0$. Is it true?")})
    usual = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model.encode(graphs, device="cpu")
        assert (set(seen), torch.get_num_threads()) == ({1}, 2)
    finally:
        torch.set_num_threads(usual)


def test_memory_is_returned_where_the_process_has_grown_by_a_quarter_since_the_first_batch(monkeypatch):
    held, returned = iter([100, 120, 125, 126, 90, 112, 113]), []
    monkeypatch.setattr(resources, "_malloc_trim", lambda: returned.append)
    monkeypatch.setattr(resources, "resident", lambda: next(held))
    heap, counts = resources.Heap(), []
    for _ in range(7):
        heap.after_batch()
        counts.append(len(returned))
    assert counts == [0, 0, 0, 1, 1, 1, 2]


def test_without_glibc_nothing_is_done_and_on_this_system_a_heap_is_returned_or_left(monkeypatch):
    for system in (resources.sys.platform, "darwin"):
        monkeypatch.setattr(resources.sys, "platform", system)
        heap = resources.Heap()
        for _ in range(3):
            heap.after_batch()
        heap.trim()


_FAULTS = """
import resource, numpy as np
from pyterrier_mathamr._common.running.resources import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        arrays = [np.ones(3 << 18) for _ in range(4)]  # 6 MB each
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
before = faults()
keep_freed_memory()
faults()
print(before, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps what it freed")
def test_kept_memory_is_used_again_without_faults():
    done = subprocess.run([sys.executable, "-c", _FAULTS], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < before / 10
