"""The Penman codec against penman itself, and beyond what penman can take."""

import json
import logging
import pickle
import re
from dataclasses import replace

import penman
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.amr import AmrError, AmrGraph, PenmanError, decode_penman, encode_penman
from pyterrier_mathamr.amr.graph import spell

logging.getLogger("penman").setLevel(logging.ERROR)
INDENTS = (None, -1, 0, 2, 6)


def triples_in_penmans_words(graph):
    """The graph as penman sees it: variables and raw atoms."""
    text = encode_penman(graph)
    assert decode_penman(text) == graph
    spelled = dict(graph.spellings)

    def atom(node, variables=()):
        raw = spelled.get(node, spell(graph.labels[node], variables))
        return (raw[: raw.rindex('"') + 1] if raw.startswith('"') else raw.partition("~")[0]) or None

    def name(node):
        return graph.variables[node] or atom(node, graph.variables)

    instances = [(variable, ":instance", atom(node)) for node, variable in enumerate(graph.variables) if variable]
    return sorted(map(str, instances + [(name(s), role, name(t)) for s, role, t in graph.triples()]))


def assert_same_as_penman(text):
    graph, judge = decode_penman(text), penman.decode(text)
    assert graph.variables[0] == judge.top
    assert list(graph.metadata) == list(judge.metadata.items())
    assert triples_in_penmans_words(graph) == sorted(map(str, judge.triples))
    for indent in INDENTS:
        assert encode_penman(graph, indent) == penman.encode(judge, indent=indent)
        assert decode_penman(encode_penman(graph, indent)) == graph
    assert graph.arranged() == graph
    made = graph.to_penman()
    assert (made.top, made.triples, made.metadata) == (judge.top, judge.triples, judge.metadata)
    assert penman.encode(made) == penman.encode(judge)
    if all(target for _, role, target in judge.triples if role == ":instance"):  # else penman closes nodes too early
        assert repr(made.epidata.items()) == repr(judge.epidata.items())
    assert AmrGraph.from_penman(made) == AmrGraph.from_penman(judge) == graph


CASES = [
    "(a)",
    "(W1 / )",
    "(a / )",
    '(a / "")',
    '(a / b :op1 "")',
    "(a :ARG0 (b) :ARG1 b)",
    "(a :ARG0 b :ARG1 (b / boy))",
    "(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-01 :ARG0 b))",
    "(w / want-01 :ARG1 (g / go-01 :ARG0 b) :ARG0 (b / boy :mod (y / young)))",
    "(b / boy :ARG0-of (g / go-01 :polarity -) :quant 3 :ARG1-of g)",
    "(a / x :consist-of (b / y) :domain (c / z) :mod 4 :prep-of q)",
    '(n / name :op1 "GMT" :op2 "a b" :op3 "a\\"b\\\\" :op4 "http://a.b/c~d")',
    '(n / "a/b" :op1 "\\nu" :op2 "x\\y")',
    '(a / x~e.1,2 :ARG0~e.03 b~7 :ARG1 (b / "y z"~e.4 :op1 3~1 :op2 "q"~2))',
    "(a / x :ARG0 :ARG1 (b / y) :ARG2 )",
    "(a / x : b :ARG0 (b / y))",
    '(i / i :op1 i2 :ARG0 i :op3 "i")',
    "# ::id 7 ::snt A sentence: with colons \n# ::tok\n# plain\n(a / b)\n# end",
    "(a :instance b :ARG0 c)",
    "(x / é :op1 Ω :op2 a#b :op3 -1.5e3 :op4 $x$)",
    "(a\n / b\n\t:c\n (d / e\n))",
]


@pytest.mark.parametrize("text", CASES)
def test_graph_and_text_equal_penman_s(text):
    assert_same_as_penman(text)


@pytest.mark.parametrize("name", ["qald9_train", "massive_nc_train"])
def test_graph_and_text_equal_penman_s_on_hand_made_graphs(shared_data, name):
    lines = (shared_data / "amr-free" / f"{name}.jsonl").read_text().splitlines()
    assert len(lines) > 300
    for line in lines[::4]:
        assert_same_as_penman(json.loads(line)["amr"])


LABELS = st.one_of(
    st.sampled_from(["U!plus", "V!x", "M!()1x1", "O!interval(O-O)", ":=", '"', " ", "\\", "\\nu", "i", "n0", "#",
                     "a\nb", "\u2028", "\ud800", "é", "N!1/2", "a~e.1", "", "-", "+!", "\\\"", "\\u000a", "C!∈"]),
    st.text(max_size=6),
)  # fmt: skip
ROLES = st.sampled_from([":ARG0", ":ARG1-of", ":op1", ":mod", ":polarity", ":slt-n", ":"])


@st.composite
def graphs(draw):
    size = draw(st.integers(1, 8))
    labels, variables, edges = [draw(LABELS)], ["n0"], []
    for node in range(1, size):
        constant = draw(st.booleans())
        labels.append(draw(LABELS))
        variables.append("" if constant else f"n{node}")
        sources = [i for i, name in enumerate(variables[:node]) if name]
        edges.append((draw(st.sampled_from(sources)), draw(ROLES), node))
    named = [i for i, name in enumerate(variables) if name]
    for _ in range(draw(st.integers(0, 3))):
        source, target = draw(st.sampled_from(named)), draw(st.sampled_from(named))
        if source != target:  # penman writes a loop with its role turned round
            edges.append((source, draw(ROLES), target))
    return AmrGraph(tuple(labels), tuple(variables), tuple(edges), metadata=(("id", "7"),)).arranged()


@given(graphs(), st.sampled_from(INDENTS))
@settings(max_examples=120)
def test_output_is_read_back_whatever_the_labels_are_and_penman_writes_the_same(graph, indent):
    text = encode_penman(graph, indent)
    assert decode_penman(text) == graph
    text.encode()
    text = encode_penman(replace(graph, labels=tuple(label or "none" for label in graph.labels)), -1)
    judge = penman.decode(text)
    assert judge.top == graph.variables[0]
    if len(set(judge.triples)) == len(judge.triples):  # penman confuses an edge with its double
        assert penman.encode(judge) == text


def test_a_constant_that_looks_like_a_variable_is_quoted_and_inverted_roles_are_turned_round():
    inverted = decode_penman("(b / boy :ARG0-of (g / go-01 :polarity-of -))")
    assert inverted.triples() == ((1, ":ARG0", 0), (1, ":polarity-of", 2)), "but not on constants"
    assert inverted.edges == ((0, ":ARG0-of", 1), (1, ":polarity-of", 2))
    graph = AmrGraph(("name", "i", "I"), ("n", "", "i"), ((0, ":op1", 1), (0, ":ARG0", 2)))
    assert encode_penman(graph) == '(n / name :op1 "i" :ARG0 (i / I))'
    assert decode_penman(encode_penman(graph)) == graph


@pytest.mark.parametrize("indent", [None, 0])
def test_five_thousand_levels_are_read_and_written(indent):
    depth = 5_000
    text = "".join(f"(x{i} / V!x :n " for i in range(depth)) + "(y / V!y" + ")" * (depth + 1)
    graph = decode_penman(text)
    assert len(graph.labels) == depth + 1
    assert graph.edges[-1] == (depth - 1, ":n", depth)
    written = encode_penman(graph, indent)
    assert written.split() == text.split()
    assert decode_penman(written) == graph
    assert graph.arranged() == graph


@pytest.mark.parametrize(
    ("text", "line", "offset", "message"),
    [
        ("", 1, 0, "ends here"),
        ("# ::id 3", 1, 8, "ends here"),
        ("(a / b", 1, 6, "ends here"),
        ("a / b)", 1, 0, "expected '('"),
        ("()", 1, 1, "expected a symbol"),
        ("(a / b\n :ARG0 /)", 2, 7, "expected a symbol"),
        ("(a / b c)", 1, 7, "expected a role"),
        ("(a / b) (c / d)", 1, 8, "after the end"),
        ("(a / b :ARG0 (a / c))", 1, 14, "defined twice"),
        ("(a / b :instance c)", 1, 7, "two concepts"),
        ('(a / "b)', 1, 5, "expected a role"),
    ],
)
def test_malformed_text_is_refused_with_its_place(text, line, offset, message):
    with pytest.raises(PenmanError, match=re.escape(message)) as caught:
        decode_penman(text)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.line, error.offset) == (line, offset)
    assert message in error.reason
    shown = str(error).splitlines()
    assert shown[-1] == "  " + " " * offset + "^"


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (AmrGraph(("a", "b"), ("a", "a"), ((0, ":r", 1),)), "two nodes have the variable 'a'"),
        (AmrGraph(("a", "b"), ("a", "b"), ()), "cannot be reached"),
        (AmrGraph(("a", "b"), ("a", "b"), ((0, "ARG0", 1),)), "cannot be a role"),
        (AmrGraph(("a", "b"), ("a", "b c"), ((0, ":r", 1),)), "cannot be a variable"),
        (AmrGraph(("a",), ("a",), (), (("snt", "two\nlines"),)), "does not fit on a line"),
        (AmrGraph(("a",), ("a",), (), (("snt", "a ::b"),)), "does not fit on a line"),
        (AmrGraph(("a",), ("a",), (), (("id", "1"), ("id", "2"))), "occurs twice"),
    ],
)
def test_a_graph_that_would_not_be_read_back_is_refused(graph, message):
    with pytest.raises(AmrError, match=re.escape(message)):
        encode_penman(graph)
