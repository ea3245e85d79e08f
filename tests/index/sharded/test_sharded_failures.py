"""A part that dies is searched again; one that is missing, hangs or was changed is named, without any ranking."""

import os
import pickle
import signal
import threading
from pathlib import Path

import pandas as pd
import pytest
from sharded_parts import LIMIT, asked, cut, drawn, index_here
from waiting import until

from pyterrier_mathamr.index import MathAMRIndex, MathAMRIndexError, ShardedIndex
from pyterrier_mathamr.index import places as of_places
from pyterrier_mathamr.index.backend import query_batch
from pyterrier_mathamr.index.places import ProcessPlace

DOCUMENTS = drawn(seed=6, documents=120, copies=60)
QUERIES = asked(seed=7, queries=12)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The ranking of one index."""
    whole = MathAMRIndex(tmp_path_factory.mktemp("whole") / "index").index(DOCUMENTS)
    return whole.colbert(num_results=30)(QUERIES)


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    """Two parts in a process each, which have answered once."""
    paths = cut(tmp_path_factory.mktemp("parts"), DOCUMENTS, [40])
    index = ShardedIndex(paths, time_limit=LIMIT)
    index.colbert()(QUERIES)
    yield index
    index.close()


def processes(index):
    assert index._places is not None
    return [place for place in index._places.places if isinstance(place, ProcessPlace)]


def search(index):
    return index.colbert(num_results=30)(QUERIES)


def test_a_process_that_is_killed_before_or_while_it_searches_is_started_again_and_the_ranking_is_whole(
    sharded, expected
):
    before = [place.pid for place in processes(sharded)]
    os.kill(before[1], signal.SIGKILL)
    os.kill(before[0], signal.SIGSTOP)  # it will have been asked, and cannot answer
    done = []
    searching = threading.Thread(target=lambda: done.append(search(sharded)))
    searching.start()
    os.kill(before[0], signal.SIGKILL)
    searching.join(LIMIT)
    pd.testing.assert_frame_equal(done[0], expected, check_exact=True)
    assert not set(before) & {place.pid for place in processes(sharded)}


def test_a_part_that_does_not_answer_in_time_is_named_and_the_next_search_is_whole(sharded, expected, monkeypatch):
    search(sharded)
    other, hanging = processes(sharded)
    before = other.pid
    os.kill(hanging.pid, signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(sharded._places, "seconds", 2.0)
        with pytest.raises(MathAMRIndexError, match="part-000001: no answer within 2 s"):
            search(sharded)
    assert (other.pid, hanging.pid) == (before, None)
    pd.testing.assert_frame_equal(search(sharded), expected, check_exact=True)


def test_a_process_that_dies_each_time_is_a_named_error(sharded, monkeypatch):
    index = ShardedIndex([path.path for path in sharded.parts()], time_limit=LIMIT)
    tries = [0, 0]

    def dying(number, path):
        place = ProcessPlace({number: path}, 1)
        started = place._worker._started

        def start():
            tries[number] += 1
            child = started()
            child.kill()
            return child

        monkeypatch.setattr(place._worker, "_started", start)
        return place

    monkeypatch.setattr(index, "_spread", lambda paths: [dying(n, path) for n, path in enumerate(paths)])
    with pytest.raises(MathAMRIndexError, match=r"part-000000: .* ended 3 times .*killed by signal 9"):
        search(index)
    assert tries == [of_places.TRIES, of_places.TRIES]
    index.close()


def test_an_interrupt_ends_the_search_and_no_late_answer_is_taken_for_another(sharded, expected, monkeypatch):
    search(sharded)
    before = [place.pid for place in processes(sharded)]

    def interrupted(*given):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(of_places, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search(sharded)
    assert [place.pid for place in processes(sharded)] == [None, None]
    pd.testing.assert_frame_equal(search(sharded), expected, check_exact=True)
    assert not set(before) & {place.pid for place in processes(sharded)}


def test_the_processes_end_with_the_index_and_another_of_it_starts_its_own(sharded, expected):
    again = pickle.loads(pickle.dumps(sharded))
    assert again == sharded
    assert hash(again) == hash(sharded)
    assert again._places is None
    assert again.time_limit == LIMIT
    again.snapshot()
    pids = [place.pid for place in processes(again)]
    assert all(pids)
    del again
    assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    pd.testing.assert_frame_equal(search(sharded), expected, check_exact=True)


def test_a_part_that_changes_during_a_query_is_named(tmp_path):
    index = index_here(cut(tmp_path, DOCUMENTS[:20], [10]))
    snapshot = index.snapshot()
    part = index.parts()[1]
    part.delete([next(part.get_corpus_iter())["docno"]])
    retriever = index.colbert()
    with pytest.raises(MathAMRIndexError, match="part-000001"):
        retriever.best(query_batch(QUERIES, snapshot), snapshot)
    assert len(search(index))


@pytest.mark.slow
def test_processes_that_are_killed_beside_an_update_find_the_old_state_the_new_one_or_a_named_error(tmp_path):
    parts, new = tmp_path / "parts", [{**document, "docno": f"new{i}"} for i, document in enumerate(DOCUMENTS[:20])]
    cut(parts, DOCUMENTS, [40])
    index = ShardedIndex(ShardedIndex.join(parts).path, time_limit=LIMIT)
    whole = MathAMRIndex(tmp_path / "whole").index(DOCUMENTS)
    old = search(whole)

    def kill():
        os.kill(processes(index)[1].pid, signal.SIGKILL)

    def update():
        yield from new[:10]
        kill()
        pd.testing.assert_frame_equal(search(index), old, check_exact=True)
        yield from new[10:]

    pd.testing.assert_frame_equal(search(index), old, check_exact=True)
    MathAMRIndex(parts / "part-000001").indexer("append").index(update())
    kill()
    with pytest.raises(MathAMRIndexError, match="part-000001"):  # it has other documents than the joined folder says
        search(index)
    ShardedIndex.join(parts)
    kill()
    whole.indexer("append").index(new)
    assert not search(whole).equals(old)
    pd.testing.assert_frame_equal(search(index), search(whole), check_exact=True)
    index.close()


def test_an_error_of_a_part_that_is_none_of_the_package_names_the_part(tmp_path):
    index = index_here(cut(tmp_path, DOCUMENTS[:20], [10]))
    snapshot = index.snapshot()
    with pytest.raises(MathAMRIndexError, match=r"part-000001: TypeError: "):
        snapshot._places.ask("texts", {1: (snapshot.states[1].identity,)})
