"""The neural parsers as workers, proved with interpreters that only behave like theirs, and misbehave."""

import ast
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.amr import (
    AmrlibParser,
    DependencyAmrParser,
    TransitionAmrParser,
    WorkerLimits,
    WorkerSetupError,
    WorkerStoppedError,
    decode_penman,
    encode_penman,
    get_parser,
)
from pyterrier_mathamr.amr.worker.process import SERVE, environment
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.posts import PLACEHOLDER, post_from_text

LIMITS = WorkerLimits(batch_seconds=20.0, load_seconds=60.0)
TEXTS = [f"{word} holds for $x_{i}$." for i, word in enumerate(["Alpha", "Beta", "Gamma", "Delta", "Epsilon"])]


def posts_of(texts):
    return [post_from_text(text) for text in texts]


def penman(parser, texts):
    return [encode_penman(graph) for graph in parser.parse_posts(posts_of(texts))]


def lines(marks, name):
    path = marks / name
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def transition(foreign_python):
    made = []

    def make(**options):
        made.append(TransitionAmrParser(foreign_python, **{"limits": LIMITS, **options}))
        return made[-1]

    yield make
    for parser in made:
        parser.close()


def test_the_worker_is_python_3_8_and_needs_the_standard_library_only():
    tree = ast.parse(SERVE.read_text(), feature_version=(3, 8))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]


def test_a_post_is_parsed_as_one_document_and_nothing_but_the_graph_is_left(transition, marks):
    parser = transition()
    graph = parser.parse_post(post_from_text("Let $x$ be odd. Then $y$ and $x$ hold."))
    assert encode_penman(graph) == (
        "(m / multi-sentence :snt1 (l / let-01 :op2 (f0 / FORMULA_0) :quant 5) "
        ":snt2 (t / then-01 :op2 (f1 / FORMULA_1) :op4 (f2 / FORMULA_2) :quant 6))"
    )
    assert graph.texts == ("Let FORMULA_0 be odd.", "Then FORMULA_1 and FORMULA_2 hold.")
    assert lines(marks, "parsed") == ["Let FORMULA_0 be odd . | Then FORMULA_1 and FORMULA_2 hold ."]
    assert parser.embedded_count == 0


def test_long_posts_are_passages_of_at_most_500_tokens(transition, marks):
    transition().parse_post(post_from_text(" ".join(f"We know {word} is so." for word in "abcdefghij" * 20)))
    sizes = [len(line.replace("|", "").split()) for line in lines(marks, "parsed")]
    assert sizes == [498, 498, 204]


def test_sentences_are_parsed_one_by_one(transition, marks):
    parser = transition(unit="sentence")
    assert parser.parse_sentences(["Take FORMULA_7.", "So."]) == [
        "(t / take-01 :op2 (f7 / FORMULA_7) :quant 3)",
        "(s / so-01 :quant 2)",
    ]
    parser.parse_post(post_from_text("One is odd. Two is even."))
    assert sorted(lines(marks, "parsed")) == ["One is odd .", "So .", "Take FORMULA_7 .", "Two is even ."]


def test_placeholders_of_three_digits_stay_whole(transition):
    text = "See " + " and ".join(f"$x_{{{i}}}$" for i in range(120))
    graph = transition().parse_post(post_from_text(text))
    assert sorted(label for label in graph.labels if "FORMULA" in label) == sorted(f"FORMULA_{i}" for i in range(120))


HOSTILE = [
    "", "  ", "?!", "...", "FORMULA_0", "FORMULA_0-module FORMULA_1's", "a\u00a0b\u3000c \x1c d\u2028e", "\ufffd",
    "x\ufffdy", "\x00\ud800 half", "::snt ~e.1 / :ARG0 (", '"', "Empty",
    "não é möglich 数学", "a" * 3000, "FORMULA_3 " * 200,
]  # fmt: skip


def test_hostile_sentences_give_as_many_graphs_that_decode_with_their_placeholders(transition):
    parser = transition()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MathAMRWarning)
        answers = parser.parse_sentences(HOSTILE)
        assert transition().parse_sentences(HOSTILE[::-1]) == answers[::-1]
    assert len(answers) == len(HOSTILE)
    for sentence, answer in zip(HOSTILE, answers, strict=True):
        labels = [label for label in decode_penman(answer).labels if label.startswith("FORMULA_")]
        assert sorted(labels) == sorted({f"FORMULA_{number}" for number in PLACEHOLDER.findall(sentence)})
    assert [answers[i] for i in (0, 1, 7, 12)] == ["(a / amr-empty)"] * 4
    assert parser.embedded_count == 0


def test_what_the_parser_prints_is_no_answer(transition):
    assert penman(transition(), ["Noise is all around. Yes."])[0].startswith("(m / multi-sentence :snt1 (n / noise-01")


@pytest.mark.parametrize(
    ("word", "reason"),
    [("Crash", "signal 11"), ("Hang", "no answer within 3 seconds"), ("Fail", "IndexError: index 7 is out of bounds"),
     ("Memory Alone", "CUDA out of memory"), ("Broken", "line 1")],
)  # fmt: skip
def test_a_bad_text_goes_to_the_embedded_parser_and_costs_no_other(transition, marks, tmp_path, word, reason):
    limits = WorkerLimits(batch_seconds=3.0, token_seconds=0.0, load_seconds=60.0)
    texts = [*TEXTS[:2], f"{word} is $y$."]
    parser = transition(limits=limits, cache=tmp_path / "kept")
    with pytest.warns(MathAMRWarning, match=reason) as told:
        graphs = parser.parse_posts(posts_of(texts))
    assert len(told) == 1
    assert f"{word} is FORMULA_0." in str(told[0].message)
    instead = DependencyAmrParser().parse_post(post_from_text(texts[2]))
    assert graphs[2] == instead.with_metadata((("parser", "dependency"),))
    assert encode_penman(graphs[2]).startswith("# ::parser dependency\n(")
    assert [graph.metadata for graph in graphs[:2]] == [(), ()]
    assert penman(parser, TEXTS[:2]) == [encode_penman(graph) for graph in graphs[:2]]
    assert parser.embedded_count == 1
    assert sorted(set(lines(marks, "parsed")) - {f"{word} is FORMULA_0 ."}) == sorted(
        f"{text.split()[0]} holds for FORMULA_0 ." for text in texts[:2]
    )
    loaded = lines(marks, "loaded")
    again = transition(limits=limits, cache=tmp_path / "kept")
    with pytest.warns(MathAMRWarning, match=reason):
        assert again.parse_posts(posts_of(texts)) == graphs
    assert lines(marks, "loaded") == loaded  # it is kept as bad: no worker is broken by it a second time


def test_a_passage_of_a_long_post_that_goes_to_the_embedded_parser_is_noted(transition):
    text = "This is good. " * 140 + "Fail is $y$."
    with pytest.warns(MathAMRWarning):
        graph = transition().parse_post(post_from_text(text))
    assert graph.metadata == (("parser", "transition, dependency"),)


def test_the_note_reaches_the_graph_of_the_post(transition):
    with pytest.warns(MathAMRWarning):
        (graph,) = GraphBuilder(transition()).build({"7": post_from_text("Fail is $y$.")})
    assert "# ::parser dependency\n" in graph.to_penman()


def test_a_worker_that_died_once_is_started_again(transition, marks):
    assert penman(transition(), [*TEXTS, "Exit is $y$."]) == penman(transition(), [*TEXTS, "Exit is $y$."])
    assert len(lines(marks, "loaded")) == 3


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


WAYS = ["other-number", "other-ids", "too-few", "half-a-line", "no-json"]


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_that_breaks_the_agreement_once_is_replaced_and_nothing_is_lost(broken_python, marks, way):
    with TransitionAmrParser(broken_python(f"{way}-once"), limits=LIMITS) as parser:
        assert penman(parser, ["One. Two.", "Three."]) == ["(t / text :quant 2)", "(t / text :quant 1)"]
    assert len(lines(marks, "loaded")) == 2


@pytest.mark.parametrize("way", WAYS)
def test_after_five_restarts_without_a_parse_the_job_ends_and_says_why(broken_python, marks, way, tmp_path):
    with (
        TransitionAmrParser(broken_python(way), limits=LIMITS, cache=tmp_path / "kept") as parser,
        pytest.raises(WorkerStoppedError, match="after 5 restarts") as raised,
    ):
        GraphBuilder(parser).build({text: post_from_text(text) for text in TEXTS})
    assert len(lines(marks, "loaded")) == 6
    assert pickle.loads(pickle.dumps(raised.value)).args == raised.value.args
    assert not list((tmp_path / "kept").iterdir())  # it is not the texts that are bad


def test_an_answer_that_comes_in_drops_is_waited_for(broken_python):
    with TransitionAmrParser(broken_python("in-drops"), limits=LIMITS) as parser:
        assert penman(parser, ["One."]) == ["(t / text :quant 1)"]


def test_slow_answers_are_waited_for_in_proportion_to_their_size(transition, monkeypatch):
    monkeypatch.setenv("FAKE_SECONDS", "1.5")
    limits = WorkerLimits(batch_seconds=0.5, token_seconds=2.0, load_seconds=60.0)
    assert penman(transition(limits=limits), ["Slow but sure it is."]) == ["(s / slow-01 :quant 6)"]


def test_a_parser_that_cannot_be_loaded_says_so_at_once(transition, tmp_path, marks):
    with pytest.raises(WorkerSetupError, match=r"not in our library.*mathamr doctor --parser transition"):
        GraphBuilder(transition(model="none")).build({"1": post_from_text("One.")})
    with pytest.raises(WorkerSetupError, match="No such file"):
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
    with pytest.raises(WorkerSetupError, match="Name or service not known"):
        transition().parse_sentences(["One."])
    (tmp_path / "hub/pytorch_fairseq_main").mkdir(parents=True)
    assert transition().parse_sentences(["One."]) == ["(o / one-01 :quant 2)"]


def test_several_workers_share_the_work_and_the_result_is_that_of_one(transition, marks, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    monkeypatch.setenv("FAKE_SECONDS", "0.05")
    texts = [f"Slow {'very ' * (i % 7)}number {i}. Yes $x$." for i in range(40)]
    small = WorkerLimits(batch_tokens=30, batch_seconds=60.0, load_seconds=60.0)
    alone = penman(transition(limits=small), texts)
    (marks / "loaded").unlink()
    (marks / "parsed").unlink()
    assert penman(transition(limits=small, devices=["cuda:0", "cuda:1", "cpu"]), texts) == alone
    assert sorted(line.partition(" ")[2] for line in lines(marks, "loaded")) == ["", "4", "7"]
    assert len(lines(marks, "parsed")) == 40


def test_one_bad_worker_ends_the_job_of_all_without_waiting_for_a_hanging_one(transition):
    limits = WorkerLimits(batch_tokens=1, batch_seconds=600.0, load_seconds=60.0, restarts=0)
    parser = transition(limits=limits, devices=["cpu", "cpu"])
    with pytest.raises(WorkerStoppedError):
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


def test_a_torn_last_line_is_cut_and_only_its_text_is_parsed_again(transition, marks, tmp_path):
    first = transition(cache=tmp_path / "kept")
    whole = penman(first, TEXTS)
    first.close()
    (shard,) = (tmp_path / "kept").iterdir()
    bytes_of_all = shard.read_bytes()
    for cut in (1, 2, 40):
        shard.write_bytes(bytes_of_all[:-cut])
        parser = transition(cache=tmp_path / "kept")
        assert penman(parser, TEXTS) == whole
        parser.close()
        assert shard.read_bytes() == bytes_of_all
    assert len(lines(marks, "parsed")) == 5 + 3


def test_two_processes_write_to_shards_of_their_own(transition, tmp_path):
    one, two = transition(cache=tmp_path / "kept"), transition(cache=tmp_path / "kept")
    penman(one, TEXTS[:1])
    penman(two, TEXTS[1:2])
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["shard-00000.jsonl", "shard-00001.jsonl"]


JOB = """
import sys
from pyterrier_mathamr.amr import TransitionAmrParser, encode_penman
from pyterrier_mathamr.posts import post_from_text
from pyterrier_mathamr.amr import WorkerLimits
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
    for some in (5, 15):
        killed = job("killed")
        while len(lines(marks, "parsed")) < some:
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
    kept = b"".join(path.read_bytes() for path in sorted((tmp_path / "killed").iterdir()))
    assert 0 < kept.count(b"\n") < 40
    (marks / "parsed").unlink()
    resumed, _ = job("killed").communicate()
    assert resumed == undisturbed
    assert len(lines(marks, "parsed")) + kept.count(b'"graph"') == 34  # nothing lost, nothing twice
    assert before | set(lines(marks, "parsed")) >= {f"Slow is {i} of FORMULA_0 ." for i in range(40) if i % 7}


def test_sentences_of_amrlib_are_merged_here(foreign_python):
    with AmrlibParser(foreign_python, limits=LIMITS) as parser:
        graph = parser.parse_post(post_from_text("Let $x$ be odd. Then $x$ holds."))
        assert encode_penman(graph) == (
            "(m / multi-sentence :snt1 (l / let :op1 (n / name :op1 (f0 / FORMULA_0))) "
            ":snt2 (t / then :op1 (n2 / name :op1 (f1 / FORMULA_1))))"
        )
        with pytest.warns(MathAMRWarning, match="no graph"):
            graph = parser.parse_post(post_from_text("Well. Fail of $x$. Done."))
        assert graph.metadata == (("parser", "amrlib, dependency"),)
        assert parser.parse_sentences(["", "Yes."]) == ["(a / amr-empty)", "(y / yes.)"]
    with pytest.raises(WorkerSetupError, match="FileNotFoundError"):
        AmrlibParser(foreign_python, model="none").parse_sentences(["One."])


def test_parsers_are_their_parameters_also_in_another_process(foreign_python, tmp_path):
    parser = TransitionAmrParser(foreign_python, devices="cuda:0", cache=tmp_path / "kept", beam=3)
    assert eval(repr(parser), {**globals(), "PosixPath": Path}) == parser
    parser.parse_sentences(["One."])
    copy = pickle.loads(pickle.dumps(parser))
    assert copy == parser
    assert copy.parse_sentences(["One."]) == parser.parse_sentences(["One."])
    parser.close()
    assert GraphBuilder(copy) == GraphBuilder(parser)
    assert parser != TransitionAmrParser(foreign_python)


def test_parsers_are_got_by_name(monkeypatch):
    assert get_parser("transition", python="env/bin/python").python == "env/bin/python"
    assert get_parser("amrlib") is get_parser("amrlib")
    monkeypatch.delenv("MATHAMR_TRANSITION_PYTHON", raising=False)
    with pytest.raises(ConfigError, match=r"python=None.*MATHAMR_TRANSITION_PYTHON; see docs/parsers\.md"):
        TransitionAmrParser()
    monkeypatch.setenv("MATHAMR_TRANSITION_PYTHON", "other/bin/python")
    assert TransitionAmrParser().python == "other/bin/python"


@pytest.mark.parametrize(
    "options", [{"unit": "word"}, {"beam": 0}, {"window": (100, 100)}, {"limits": None, "beam": 0}]
)
def test_impossible_options_are_refused(options):
    with pytest.raises(ConfigError):
        TransitionAmrParser("python", **options)


@pytest.mark.parametrize("limits", [{"batch_tokens": 0}, {"restarts": -1}, {"token_seconds": -0.1}])
def test_impossible_limits_are_refused(limits):
    with pytest.raises(ConfigError):
        WorkerLimits(**limits)


def test_a_worker_sees_its_own_device_and_not_our_packages():
    ours = {"PYTHONPATH": "/ours", "CUDA_VISIBLE_DEVICES": "2,5", "HOME": "/home/me"}
    assert environment("/env/bin/python", "cuda:1", ours) == {"CUDA_VISIBLE_DEVICES": "5", "HOME": "/home/me"}
    assert environment(sys.executable, "cpu", ours)["PYTHONPATH"] == "/ours"
    assert environment("/env/bin/python", "cuda:3", {}) == {"CUDA_VISIBLE_DEVICES": "3"}
    assert environment("/env/bin/python", "", {"CUDA_VISIBLE_DEVICES": "2"}) == {"CUDA_VISIBLE_DEVICES": "2"}
    assert environment("/env/bin/python", "cpu", dict(os.environ))["CUDA_VISIBLE_DEVICES"] == ""
