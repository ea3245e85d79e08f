"""The neural parsers as workers, proved with interpreters that only behave like theirs, and misbehave."""

import ast
import os
import pickle
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
from worker_examples import LIMITS, TEXTS, lines, penman, posts_of

from mathamr_systems import AmrlibParser, TransitionAmrParser, WorkerLimits
from mathamr_systems.amr.workers import SERVE, environment
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.amr import DependencyAmrParser, ParserUnavailableError, decode_penman, encode_penman, get_parser
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.posts import PLACEHOLDER, post_from_text


def test_the_worker_is_python_3_8_and_needs_the_standard_library_only():
    tree = ast.parse(SERVE.read_text(), feature_version=(3, 8))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]


def test_a_post_is_parsed_as_one_document_and_only_the_graph_is_left(transition, marks):
    parser = transition()
    graph = parser.parse_post(post_from_text("Let $x$ be odd. Then $y$ and $x$ hold."))
    assert encode_penman(graph) == (
        "(m / multi-sentence :snt1 (l / let-01 :op2 (f0 / FORMULA_0) :quant 5) "
        ":snt2 (t / then-01 :op2 (f1 / FORMULA_1) :op4 (f2 / FORMULA_2) :quant 6))"
    )
    assert graph.texts == ("Let FORMULA_0 be odd.", "Then FORMULA_1 and FORMULA_2 hold.")
    assert lines(marks, "parsed") == ["Let FORMULA_0 be odd . | Then FORMULA_1 and FORMULA_2 hold ."]
    assert parser.embedded_count == 0
    assert penman(parser, ["Noise is all around. Yes."])[0].startswith("(m / multi-sentence :snt1 (n / noise-01")
    many = parser.parse_post(post_from_text("See " + " and ".join(f"$x_{{{i}}}$" for i in range(120))))
    assert sorted(label for label in many.labels if "FORMULA" in label) == sorted(f"FORMULA_{i}" for i in range(120))


def test_long_posts_are_passages_of_at_most_500_tokens_or_parsed_sentence_by_sentence(transition, marks):
    transition().parse_post(post_from_text(" ".join(f"We know {word} is so." for word in "abcdefghij" * 20)))
    sizes = [len(line.replace("|", "").split()) for line in lines(marks, "parsed")]
    assert sizes == [498, 498, 204]
    (marks / "parsed").unlink()
    parser = transition(unit="sentence")
    assert parser.parse_sentences(["Take FORMULA_7.", "So."]) == [
        "(t / take-01 :op2 (f7 / FORMULA_7) :quant 3)",
        "(s / so-01 :quant 2)",
    ]
    parser.parse_post(post_from_text("One is odd. Two is even."))
    assert sorted(lines(marks, "parsed")) == ["One is odd .", "So .", "Take FORMULA_7 .", "Two is even ."]


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


@pytest.mark.parametrize(
    ("word", "reason"),
    [("Crash", "signal 11"), ("Hang", "no answer within 3 seconds"), ("Fail", "IndexError: index 7 is out of bounds"),
     ("Memory Alone", "CUDA out of memory"), ("Broken", "line 1")],
)  # fmt: skip
def test_a_bad_text_goes_to_the_embedded_parser_and_costs_no_other(transition, marks, tmp_path, word, reason):
    limits = WorkerLimits(batch_seconds=3.0, token_seconds=0.0, load_seconds=60.0)
    texts = [*TEXTS[:2], f"{word} is $y$."]
    parser = transition(limits=limits, cache=tmp_path / "kept")
    with pytest.warns(MathAMRWarning, match=reason) as caught:
        graphs = parser.parse_posts(posts_of(texts))
    assert len(caught) == 1, [str(one.message)[:300] for one in caught]
    assert f"{word} is FORMULA_0." in str(caught[0].message)
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
        graph, short = GraphBuilder(transition()).build(
            {"long": post_from_text(text), "short": post_from_text("Fail is $y$.")}
        )
    assert graph.amr.metadata == (("parser", "transition, dependency"),)
    assert "# ::parser dependency\n" in short.to_penman()


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
    with pytest.raises(ParserUnavailableError, match="FileNotFoundError"):
        AmrlibParser(foreign_python, model="none").parse_sentences(["One."])


@pytest.mark.skipif(find_spec("amrlib") is not None, reason="amrlib is installed here")
def test_amrlib_that_is_missing_here_is_an_import_error_that_names_the_extra():
    with pytest.raises(
        ImportError, match=r"amrlib is not installed; run: pip install 'pyterrier-mathamr-systems\[amrlib\]'"
    ):
        GraphBuilder("amrlib").build({"1": post_from_text("One."), "2": post_from_text("Two.")})


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
    with pytest.raises(ConfigError, match=r"python=None.*MATHAMR_TRANSITION_PYTHON; see docs/install\.md"):
        TransitionAmrParser()
    monkeypatch.setenv("MATHAMR_TRANSITION_PYTHON", "other/bin/python")
    assert TransitionAmrParser().python == "other/bin/python"


@pytest.mark.parametrize("options", [{"unit": "word"}, {"beam": 0}, {"beam": 1.5}, {"window": (100, 100)}])
def test_impossible_options_are_refused_when_given_and_when_set(options):
    [(name, value)] = options.items()
    with pytest.raises(ConfigError, match=f"{name}="):
        TransitionAmrParser("python", **options)
    with pytest.raises(ConfigError, match=f"{name}="):
        setattr(TransitionAmrParser("python"), name, value)
    with pytest.raises(ConfigError, match="num_beams=0"):
        AmrlibParser(num_beams=0)
    for limit in ({"batch_tokens": 0}, {"restarts": -1}, {"token_seconds": -0.1}):
        with pytest.raises(ConfigError):
            WorkerLimits(**limit)


def test_a_worker_sees_its_own_device_and_not_our_packages_and_its_threads_sleep_while_they_wait(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    ours = {"PYTHONPATH": "/ours", "CUDA_VISIBLE_DEVICES": "2,5", "HOME": "/home/me"}
    foreign, passive = "/env/bin/python", {"OMP_WAIT_POLICY": "PASSIVE"}
    assert environment(foreign, "cuda:1", ours) == {**passive, "CUDA_VISIBLE_DEVICES": "5", "HOME": "/home/me"}
    assert environment(sys.executable, "cpu", ours)["PYTHONPATH"] == "/ours"
    assert environment(foreign, "cuda:3", {}) == {**passive, "CUDA_VISIBLE_DEVICES": "3"}
    assert environment(foreign, "", {"CUDA_VISIBLE_DEVICES": "2"}) == {**passive, "CUDA_VISIBLE_DEVICES": "2"}
    assert environment(foreign, "cpu", dict(os.environ))["CUDA_VISIBLE_DEVICES"] == ""
