"""Workers that die, hang or break the agreement, and killed jobs: nothing is lost and nothing is blamed wrongly."""

import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from worker_examples import LIMITS, TEXTS, lines, penman, posts_of

from mathamr_systems import TransitionAmrParser, WorkerLimits
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.amr import ParserUnavailableError
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.posts import post_from_text
from pyterrier_mathamr.store import Cache, OtherArtifactError

DATA = Path(__file__).parents[2] / "data"


def test_a_worker_that_ended_between_two_texts_is_replaced_and_the_text_not_blamed(transition, marks):
    parser = transition()
    penman(parser, ["One."])
    worker = int(lines(marks, "loaded")[0].split()[0])
    os.kill(worker, signal.SIGKILL)
    os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)  # until its last thread has ended, too
    assert penman(parser, ["Two."]) == ["(t / two-01 :quant 2)"]


def test_several_texts_that_kill_workers_do_not_end_the_job(transition):
    bad = [f"Crash {word}." for word in ("one", "two", "three", "four")]
    texts = [text for i in range(4) for text in (bad[i], f"Good {i}.", *(f"Fine {i} {j}." for j in range(6)))]
    parser = transition()
    with pytest.warns(MathAMRWarning):
        graphs = parser.parse_posts(posts_of(texts))
    assert [bool(graph.metadata) for graph in graphs] == [text in bad for text in texts]
    assert parser.embedded_count == 4


def test_out_of_memory_halves_the_batch(transition, marks):
    texts = [f"Memory {word}." for word in ("a", "b", "c", "d", "e")]
    parser = transition()
    assert not any(graph.metadata for graph in parser.parse_posts(posts_of(texts)))
    assert len(lines(marks, "parsed")) == 5
    assert len(lines(marks, "loaded")) == 1


@pytest.mark.parametrize(
    "way", ["other-number", "other-ids", "too-few", "half-a-message", "no-json", "nested", "long-number"]
)
def test_a_worker_that_breaks_the_agreement_once_is_replaced_and_nothing_is_lost(broken_python, marks, way):
    with TransitionAmrParser(broken_python(f"{way}-once"), limits=LIMITS) as parser:
        assert penman(parser, ["One. Two.", "Three."]) == ["(t / text :quant 2)", "(t / text :quant 1)"]
    assert len(lines(marks, "loaded")) == 2


@pytest.mark.parametrize("way", ["other-ids", "half-a-message"])
def test_after_five_restarts_without_a_parse_the_job_ends_with_the_reason(broken_python, marks, way, tmp_path):
    with (
        TransitionAmrParser(broken_python(way), limits=LIMITS, cache=tmp_path / "kept") as parser,
        pytest.raises(ParserUnavailableError, match="after 5 restarts") as raised,
    ):
        GraphBuilder(parser).build({text: post_from_text(text) for text in TEXTS})
    assert len(lines(marks, "loaded")) == 6
    assert pickle.loads(pickle.dumps(raised.value)).args == raised.value.args
    assert len(Cache(tmp_path / "kept")) == 0  # it is not the texts that are bad


def test_slow_answers_and_those_in_drops_are_waited_for_in_proportion_to_their_size(
    transition, broken_python, monkeypatch
):
    with TransitionAmrParser(broken_python("in-drops"), limits=LIMITS) as parser:
        assert penman(parser, ["One."]) == ["(t / text :quant 1)"]
    monkeypatch.setenv("FAKE_SECONDS", "1.0")
    limits = WorkerLimits(batch_seconds=0.5, token_seconds=2.0, load_seconds=60.0)
    assert penman(transition(limits=limits), ["Slow but sure it is."]) == ["(s / slow-01 :quant 6)"]


def test_a_parser_that_cannot_be_loaded_fails_at_once(transition, tmp_path, marks):
    with pytest.raises(ParserUnavailableError, match=r"not in our library.*mathamr doctor --parser transition"):
        GraphBuilder(transition(model="none")).build({"1": post_from_text("One.")})
    with pytest.raises(ParserUnavailableError, match="No such file"):
        TransitionAmrParser(tmp_path / "nowhere").parse_sentences(["One."])
    assert lines(marks, "loaded") == []


TORCH_1_13 = """
class hub:
    get_dir = staticmethod(lambda: {folder!r})

    @staticmethod
    def load(repository, model, source="github"):
        if source != "local" or not repository.endswith("/pytorch_fairseq_main") or model != "bart.large":
            raise OSError("<urlopen error [Errno -2] Name or service not known>")
"""


def test_without_a_network_the_cached_code_of_the_hub_is_enough(transition, tmp_path):
    (tmp_path / "packages/torch.py").write_text(TORCH_1_13.format(folder=str(tmp_path / "hub")))
    with pytest.raises(ParserUnavailableError, match="Name or service not known"):
        transition().parse_sentences(["One."])
    (tmp_path / "hub/pytorch_fairseq_main").mkdir(parents=True)
    assert transition().parse_sentences(["One."]) == ["(o / one-01 :quant 2)"]


def test_several_workers_share_the_work_and_the_result_is_that_of_one(transition, marks, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    monkeypatch.setenv("FAKE_SECONDS", "0.05")
    texts = [f"Slow {'very ' * (i % 7)}number {i}. Yes $x$." for i in range(40)]
    small = WorkerLimits(batch_tokens=30, batch_seconds=60.0, load_seconds=60.0)
    by_one_worker = penman(transition(limits=small), texts)
    (marks / "loaded").unlink()
    (marks / "parsed").unlink()
    assert penman(transition(limits=small, devices=["cuda:0", "cuda:1", "cpu"]), texts) == by_one_worker
    assert sorted(line.partition(" ")[2] for line in lines(marks, "loaded")) == ["", "4", "7"]
    assert len(lines(marks, "parsed")) == 40


def test_one_bad_worker_ends_the_job_of_all_without_waiting_for_a_hanging_one(transition):
    limits = WorkerLimits(batch_tokens=1, batch_seconds=600.0, load_seconds=60.0, restarts=0)
    parser = transition(limits=limits, devices=["cpu", "cpu"])
    with pytest.raises(ParserUnavailableError):
        parser.parse_posts(posts_of(["Hang for ever and ever and ever.", "Crash."]))


def test_a_text_is_parsed_once_for_all_posts_and_runs(transition, marks, tmp_path):
    once = penman(transition(cache=tmp_path / "kept"), [*TEXTS, *TEXTS])
    assert once[:5] == once[5:]
    again = transition(cache=tmp_path / "kept", devices=["cuda:1"])
    assert penman(again, TEXTS[::-1]) == once[4::-1]
    assert len(lines(marks, "parsed")) == 5
    assert len(lines(marks, "loaded")) == 1
    other = transition(cache=tmp_path / "kept", beam=2)  # other options, other answers
    penman(other, TEXTS[:1])
    assert len(lines(marks, "parsed")) == 6


def test_an_answer_that_was_changed_is_parsed_again(transition, marks, tmp_path):
    whole = penman(transition(cache=tmp_path / "kept"), TEXTS)
    data = (tmp_path / "kept").read_bytes()
    place = data.index(b"graph:") + 9
    (tmp_path / "kept").write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    with pytest.warns(MathAMRWarning, match="1 values were changed"):
        assert penman(transition(cache=tmp_path / "kept"), TEXTS) == whole
    assert penman(transition(cache=tmp_path / "kept"), TEXTS) == whole
    assert len(lines(marks, "parsed")) == 5 + 1


def test_a_folder_of_an_earlier_release_is_refused_by_name(transition):
    with pytest.raises(OtherArtifactError, match=r"parses-format-1.*folder.*a cache can be removed"):
        penman(transition(cache=DATA / "parses-format-1"), TEXTS)


JOB = """
import sys
from mathamr_systems import TransitionAmrParser
from pyterrier_mathamr.amr import encode_penman
from pyterrier_mathamr.posts import post_from_text
from mathamr_systems import WorkerLimits
python, cache = sys.argv[1:]
posts = [post_from_text(f"Slow is number {i}. It is $x_{i}$. Fail it may." if i % 7 == 0 else f"Slow is {i} of $y$.")
         for i in range(40)]
limits = WorkerLimits(batch_tokens=20, batch_seconds=60, load_seconds=60)
with TransitionAmrParser(python, cache=cache, limits=limits, devices=["cpu", "cpu"]) as parser:
    for graph in parser.parse_posts(posts):
        print(encode_penman(graph))
"""


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_job_that_is_killed_goes_on_where_it_was_and_ends_with_the_same_bytes(
    foreign_python, marks, tmp_path, monkeypatch
):
    monkeypatch.setenv("FAKE_SECONDS", "0.1")

    def job(cache):
        command = [sys.executable, "-W", "ignore", "-c", JOB, str(foreign_python), str(tmp_path / cache)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    undisturbed, _ = job("undisturbed").communicate()
    assert undisturbed.count(b"# ::parser dependency") == 6
    (marks / "parsed").unlink()
    killed = job("killed")
    while len(lines(marks, "parsed")) < 10:
        assert killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    workers = [int(line.split()[0]) for line in lines(marks, "loaded")]
    give_up = time.monotonic() + 60
    while any(map(is_running, workers)):  # they end by themselves
        assert time.monotonic() < give_up
        time.sleep(0.05)
    before = set(lines(marks, "parsed"))
    with sqlite3.connect(tmp_path / "killed") as file:
        kept = file.execute("SELECT count(*) FROM entry WHERE hex(value) LIKE '67726170683A%'").fetchone()[0]  # graph:
    assert 0 < kept < 34
    (marks / "parsed").unlink()
    resumed, _ = job("killed").communicate()
    assert resumed == undisturbed
    assert len(lines(marks, "parsed")) + kept == 34  # nothing lost, nothing twice
    assert before | set(lines(marks, "parsed")) >= {f"Slow is {i} of FORMULA_0 ." for i in range(40) if i % 7}
