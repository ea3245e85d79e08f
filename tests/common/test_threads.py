"""Limits on the threads of libraries: held for a piece of work, and gone after it."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from threadpoolctl import ThreadpoolController

from pyterrier_mathamr._common.running import processes, resources
from pyterrier_mathamr._common.running.resources import on_threads, one_blas_thread, one_torch_thread
from pyterrier_mathamr.amr import DependencyAmrParser
from pyterrier_mathamr.amr.dependency.syntax import SyntaxNet
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.posts import post_from_text


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in ThreadpoolController().select(threading_layer="pthreads").info()]


def test_matrix_products_are_made_on_one_thread_within_and_on_as_many_as_before_after_it():
    before = blas_threads()
    with one_blas_thread():
        assert set(blas_threads()) <= {1}
        with one_blas_thread():
            pass
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert blas_threads() == before


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


def test_threads_that_are_limited_at_once_leave_the_limit_as_it_was():
    before, together = blas_threads(), Barrier(2)

    def enter_and_leave(first: bool) -> None:
        if not first:
            together.wait()  # the other is in
        with one_blas_thread():
            if first:
                together.wait()
            together.wait()  # both are in
            assert set(blas_threads()) <= {1}
            together.wait()
            if not first:
                together.wait()  # the other is out
        if first:
            together.wait()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(enter_and_leave, [True, False]))
    assert blas_threads() == before


def test_torch_computes_on_one_thread_within_and_on_as_many_as_before_after_it():
    before = torch.get_num_threads()
    with one_torch_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    with pytest.raises(ZeroDivisionError), one_torch_thread():
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


def test_the_parser_takes_one_thread_and_gives_the_others_back(monkeypatch):
    before, seen, real = blas_threads(), [], SyntaxNet._hidden
    monkeypatch.setattr(SyntaxNet, "_hidden", lambda self, *rest: (seen.append(blas_threads()), real(self, *rest))[1])
    DependencyAmrParser().parse_sentences(["FORMULA_0 converges."])
    assert seen == [[1] * len(before)]
    assert blas_threads() == before


def test_graphs_are_encoded_on_one_thread_and_the_others_are_given_back(monkeypatch):
    model, seen = MathAMR.from_pretrained("mathamr-plus-mini"), []
    encoder = model.encoder("cpu")
    encoder.register_forward_pre_hook(lambda *_: seen.append(torch.get_num_threads()))
    graphs = GraphBuilder().build({str(i): post_from_text("Prove $x^2 > 0$. Is it true?" * 20) for i in range(12)})
    monkeypatch.setattr("pyterrier_mathamr.model.encoder.batching._NODE_BUDGET", 4_000)
    usual = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model.encode(graphs, device="cpu")
        assert (len(seen) > 1, set(seen), torch.get_num_threads()) == (True, {1}, 2)
    finally:
        torch.set_num_threads(usual)


def test_a_process_with_a_limit_counts_on_so_many_cores_at_most(monkeypatch):
    found = processes.usable_cores()
    monkeypatch.setattr(processes, "_cores_left", None)
    processes.limit_cores(found + 1)
    assert processes.usable_cores() == found
    processes.limit_cores(1)
    assert processes.usable_cores() == 1
