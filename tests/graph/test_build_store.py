"""Graphs built over several processes: the bytes of one process, kept after a kill, and no process left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.amr import AmrGraph, TransitionAmrParser
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, StoreExistsError, build_store

DOCUMENTS = [
    {"docno": f"d{i}", "title": f"Number {i}", "text": f"We know that $x_{i} = {i}$ is odd."} for i in range(140)
]


class Parser:
    """Gives one concept for each post, and knows posts on which it dies."""

    name = "test"

    def __init__(self, dies=()):
        self.dies = dies

    def parse_sentences(self, sentences):
        return ["(a / b)" for _ in sentences]

    def parse_post(self, post):
        number = int(post.text.split()[1].rstrip("."))
        if number in self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return AmrGraph((f"thing-{number}",), ("a",), ())

    def parse_posts(self, posts):
        return [self.parse_post(post) for post in posts]


def files(path):
    return {file.name: file.read_bytes() for file in Path(path).iterdir()}


def builder(parser="dependency"):
    return GraphBuilder(parser, batch_size=7)


def test_any_number_of_processes_gives_the_bytes_and_warnings_of_the_pipeline(tmp_path):
    documents = [{**document, "text": 13} if i in (13, 60) else document for i, document in enumerate(DOCUMENTS[:70])]
    piped = GraphStore(tmp_path / "piped.mathamr")
    with pytest.warns(MathAMRWarning):
        (builder() >> piped.indexer(shard_size=20)).index(dict(document) for document in documents)
    for workers in (1, 3):
        store = GraphStore(tmp_path / f"{workers}.mathamr")
        with pytest.warns(MathAMRWarning) as caught:
            assert build_store(documents, builder(), store, workers=workers, shard_size=20) is store
        assert [str(warning.message).partition(":")[0] for warning in caught] == ["post 'd13'", "post 'd60'"]
        assert files(store.path) == files(piped.path)


def test_topics_are_stored_by_qid(tmp_path):
    topics = [{"qid": str(i), "query": f"What is $x^{i}$?"} for i in range(5)]
    store = build_store(topics, builder(), GraphStore(tmp_path / "topics.mathamr"))
    assert store.ids() == ["0", "1", "2", "3", "4"]


def test_nothing_is_read_or_replaced_where_it_must_not_be(tmp_path):
    store = build_store(DOCUMENTS[:3], builder(), GraphStore(tmp_path / "store.mathamr"))
    before = files(store.path)
    with pytest.raises(StoreExistsError):
        build_store(DOCUMENTS[3:], builder(), store)
    with pytest.raises(ConfigError, match="workers=0"):
        build_store(DOCUMENTS, builder(), store, mode="overwrite", workers=0)
    with pytest.raises(ConfigError, match="processes of its own"):
        build_store(DOCUMENTS, builder(TransitionAmrParser(python=sys.executable)), store, mode="overwrite", workers=2)
    assert files(store.path) == before


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from test_build_store import DOCUMENTS, Parser, builder
from pyterrier_mathamr.graph import GraphStore, build_store

def slowly():
    for i, document in enumerate(DOCUMENTS):
        if {pause} and i > 120:
            Path({store!r} + ".waiting").touch()
            import time
            time.sleep(60)
        yield document

if __name__ == "__main__":
    build_store(slowly(), builder(Parser(dies={dies})), GraphStore({store!r}), workers=2, shard_size=5)
"""


def start(tmp_path, store, *, pause=False, dies=()):
    script = tmp_path / "job.py"
    script.write_text(
        SCRIPT.format(folder=str(Path(__file__).parent), store=str(store), pause=pause, dies=dies), encoding="utf-8"
    )
    return subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True, start_new_session=True)


def alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def until(condition):
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_job_leaves_no_process_and_is_completed_to_the_same_bytes(tmp_path, stop):
    whole_group = stop is signal.SIGINT  # as a terminal sends Ctrl-C
    process = start(tmp_path, tmp_path / "stopped.mathamr", pause=True)
    assert until((tmp_path / "stopped.mathamr.waiting").exists), process.stderr.read()
    (os.killpg if whole_group else os.kill)(process.pid, stop)
    error = process.stderr.read()
    process.wait()
    assert until(lambda: not alive(process.pid))
    assert error.count("KeyboardInterrupt") == (1 if whole_group else 0), error
    store = GraphStore(tmp_path / "stopped.mathamr")
    done = store.unfinished_ids()
    assert 0 < len(done) < len(DOCUMENTS)
    rest = [document for document in DOCUMENTS if document["docno"] not in done]
    build_store(rest, builder(Parser()), store, shard_size=5)
    undisturbed = build_store(DOCUMENTS, builder(Parser()), GraphStore(tmp_path / "whole.mathamr"), shard_size=5)
    assert files(store.path) == files(undisturbed.path)


def test_a_process_that_is_killed_is_an_error_that_says_what_to_do(tmp_path):
    process = start(tmp_path, tmp_path / "store.mathamr", dies=(30,))
    error = process.communicate()[1]
    assert "WorkerDiedError: one of 2 worker processes died" in error
    assert "fewer workers" in error
    assert until(lambda: not alive(process.pid))
