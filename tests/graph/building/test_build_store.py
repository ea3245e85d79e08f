"""Graphs built over several processes: the bytes of one process, kept after a kill, and no process left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from store_examples import dies_after, files
from waiting import until

from mathamr_systems import TransitionAmrParser
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.amr import AmrGraph
from pyterrier_mathamr.formula import FormulaStore
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, build_store
from pyterrier_mathamr.store import UnfinishedJobError, WriteError

DOCUMENTS = [
    {"docno": f"d{i}", "title": f"Number {i}", "text": f"We know that $x_{i} = {i}$ is odd."} for i in range(140)
]


class Parser:
    """Gives one concept for each post, and knows posts on which it dies."""

    name = "test"

    def __init__(self, dies=()):
        self.dies = dies
        self.parsed = 0

    def parse_sentences(self, sentences):
        return ["(a / b)" for _ in sentences]

    def parse_post(self, post):
        self.parsed += 1
        number = int(post.text.split()[1].rstrip("."))
        if number in self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return AmrGraph((f"thing-{number}",), ("a",), ())

    def parse_posts(self, posts):
        return [self.parse_post(post) for post in posts]


def builder(parser="dependency"):
    return GraphBuilder(parser, batch_size=7)


def contents(store):
    return [(row["docno"], row["graph"]) for row in store.get_corpus_iter()]


def test_any_number_of_processes_gives_the_bytes_and_the_graphs_and_warnings_of_the_pipeline(tmp_path):
    documents = [{**document, "text": 13} if i in (13, 30) else document for i, document in enumerate(DOCUMENTS[:35])]
    piped = GraphStore(tmp_path / "piped.mathamr")
    with pytest.warns(MathAMRWarning):
        (builder() >> piped.indexer(shard_size=20)).index(dict(document) for document in documents)
    stores = []
    for workers in (1, 3):
        store = GraphStore(tmp_path / f"{workers}.mathamr")
        with pytest.warns(MathAMRWarning) as caught:
            assert build_store(documents, builder(), store, workers=workers, shard_size=20) is store
        assert [str(warning.message).partition(":")[0] for warning in caught] == ["post 'd13'", "post 'd30'"]
        assert contents(store) == contents(piped)
        stores.append(files(store.path))
    assert stores[0] == stores[1]
    topics = [{"qid": str(i), "query": f"What is $x^{i}$?"} for i in range(5)]
    store = build_store(topics, builder(), GraphStore(tmp_path / "topics.mathamr"))
    assert store.ids() == ["0", "1", "2", "3", "4"]


def test_nothing_is_read_or_replaced_where_it_must_not_be(tmp_path):
    store = build_store(DOCUMENTS[:3], builder(), GraphStore(tmp_path / "store.mathamr"))
    before = files(store.path)
    with pytest.raises(WriteError, match="already"):
        build_store(DOCUMENTS[3:], builder(), store)
    with pytest.raises(ConfigError, match="workers=0"):
        build_store(DOCUMENTS, builder(), store, mode="overwrite", workers=0)
    with pytest.raises(ConfigError, match="its own processes"):
        build_store(DOCUMENTS, builder(TransitionAmrParser(python=sys.executable)), store, mode="overwrite", workers=2)
    assert files(store.path) == before


def stopped(store, documents=DOCUMENTS, made=None, **options):
    """A job that stops after 100 documents: 98 of them built, 95 stored."""
    with pytest.raises(KeyboardInterrupt):
        build_store(dies_after(documents[:100]), made or builder(Parser()), store, shard_size=5, **options)
    assert store.unfinished() == 95
    return store


def test_another_document_under_the_same_id_or_in_another_place_is_refused(tmp_path):
    store = stopped(GraphStore(tmp_path / "store.mathamr"))
    for number in (0, 3, 93):
        changed = [*DOCUMENTS[:number], {**DOCUMENTS[number], "text": "Other."}, *DOCUMENTS[number + 1 :]]
        with pytest.raises(UnfinishedJobError, match=f"row 'd{number}': one content, not another"):
            build_store(changed, builder(Parser()), store, shard_size=5)
    for moved in (DOCUMENTS[1:], DOCUMENTS[::-1], DOCUMENTS[7:14] + DOCUMENTS[:7] + DOCUMENTS[14:]):
        with pytest.raises(UnfinishedJobError, match="row 'd0'"):
            build_store(moved, builder(Parser()), store, shard_size=5)
    build_store(DOCUMENTS, builder(Parser()), store, shard_size=5)
    assert len(store) == len(DOCUMENTS)


def test_other_makers_and_sources_are_refused_by_name(tmp_path):
    store = stopped(GraphStore(tmp_path / "store.mathamr"), sources={"posts.xml": [3, "abc"]})
    same = {"sources": {"posts.xml": [3, "abc"]}, "shard_size": 5}
    with pytest.raises(UnfinishedJobError, match="formulas: both, not opt"):
        build_store(DOCUMENTS, GraphBuilder(Parser(), "opt", batch_size=7), store, **same)
    with pytest.raises(UnfinishedJobError, match=r"parser: \['test'\], not \['dependency'\]"):
        build_store(DOCUMENTS, builder(), store, **same)
    with pytest.raises(UnfinishedJobError, match=r"posts.xml: \[3, 'abc'\], not \[4, 'def'\]"):
        build_store(DOCUMENTS, builder(Parser()), store, sources={"posts.xml": [4, "def"]}, shard_size=5)
    with pytest.raises(UnfinishedJobError, match=r"parser: .* not None"):
        (builder(Parser()) >> store.indexer()).index(DOCUMENTS)
    build_store(DOCUMENTS, builder(Parser()), store, **same)
    assert len(store) == len(DOCUMENTS)


def test_other_formula_trees_are_refused(tmp_path):
    header = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
    makers = []
    for name in ("one", "two"):
        table = tmp_path / f"{name}.tsv"
        table.write_text(header + f"{len(name)}\t1\t1\tquestion\t\t1\t1\t\t<math><mi>{name}</mi></math>\n")
        made = FormulaStore.build(tmp_path / name, [table], [])
        makers.append(GraphBuilder(Parser(), store=made, batch_size=7))
    store = stopped(GraphStore(tmp_path / "store.mathamr"), made=makers[0])
    with pytest.raises(UnfinishedJobError, match="trees"):
        build_store(DOCUMENTS, makers[1], store, shard_size=5)
    build_store(DOCUMENTS, makers[0], store, shard_size=5)


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = {folders!r}
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
        SCRIPT.format(folders=[*map(str, Path(__file__).parents[:3])], store=str(store), pause=pause, dies=dies),
        encoding="utf-8",
    )
    return subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True, start_new_session=True)


def alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("stop", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL])
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
    done = store.unfinished()
    assert 0 < done < len(DOCUMENTS)
    parser = Parser()
    build_store(DOCUMENTS, builder(parser), store, shard_size=5)
    assert parser.parsed == len(DOCUMENTS) - done // 7 * 7  # whole batches of 7 are not built again
    undisturbed = build_store(DOCUMENTS, builder(Parser()), GraphStore(tmp_path / "whole.mathamr"), shard_size=5)
    assert files(store.path) == files(undisturbed.path)


@pytest.mark.slow
def test_a_killed_process_is_an_error_with_a_remedy(tmp_path):
    process = start(tmp_path, tmp_path / "store.mathamr", dies=(30,))
    error = process.communicate()[1]
    assert "WorkerDiedError: one of 2 worker processes died" in error
    assert "fewer workers" in error
    assert until(lambda: not alive(process.pid))
