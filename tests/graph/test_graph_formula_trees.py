"""Trees put into the AMR by node, and taken out again."""

import pickle

import pytest
from graph_examples import BOTH, OPT, PAIRS, SLT, SLT_PAIR, whole
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.amr import AmrError, AmrGraph, decode_penman, encode_penman
from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.graph.mathamr import attach_formulas
from pyterrier_mathamr.graph.structure import MissingPlaceholderError, placeholder_number


def attached(amr, pairs):
    return MathAMRGraph(attach_formulas(amr, pairs), ("",) * len(pairs))


SLT_TEXT = ":slt (t{} / V!x :slt-n (t{} / = :slt-n (t{} / N!2)))"
OPT_TEXT = ":opt (t0 / U!eq :op0 (t1 / V!𝑥) :op0 (t2 / N!2))"
SLT_ONLY = FormulaPair(slt=SLT, opt=None)
ALIGNED = '(m / multi-sentence~e.1 :snt1 (a / and :op1 b :op2 (f / FORMULA_0{}) :name "ok"~e.3) :snt2 (b / be-01))'


@pytest.mark.parametrize(
    ("text", "pairs", "mode", "expected"),
    [
        ("(e / equal-01 :ARG1 (f / FORMULA_0 :mod (g / good)))", [BOTH], "both",
         f"(e / equal-01 :ARG1 (f / FORMULA_0 :mod (g / good) {OPT_TEXT} {SLT_TEXT.format(3, 4, 5)}))"),
        ("(a / amr-empty)", [BOTH, BOTH], "none", "(a / amr-empty :math (f0 / FORMULA_0) :math (f1 / FORMULA_1))"),
        ("(e / equal-01 :ARG1 FORMULA_0)", [SLT_ONLY], "both",
         f"(e / equal-01 :ARG1 (f0 / FORMULA_0 {SLT_TEXT.format(0, 1, 2)}))"),
        ("(a / and :op1 (f / FORMULA_0) :op2 (g / FORMULA_0))", [BOTH], "opt",
         f"(a / and :op1 (f / FORMULA_0 {OPT_TEXT}) :op2 (g / FORMULA_0))"),
        (ALIGNED.format(""), [SLT_ONLY], "both", ALIGNED.format(" " + SLT_TEXT.format(0, 1, 2))),
        ("(t0 / thing :quant t1 :ARG0 (f0 / FORMULA_0))", [BOTH, BOTH], "opt",
         "(t0 / thing :quant t1 :ARG0 (f0 / FORMULA_0 :opt (t2 / U!eq :op0 (t3 / V!𝑥) :op0 (t4 / N!2)))"
         " :math (f1 / FORMULA_1 :opt (t5 / U!eq :op0 (t6 / V!𝑥) :op0 (t7 / N!2))))"),
    ],
    ids=["below the placeholder", "dropped by the parser", "a constant", "first mention", "spellings", "new variables"],
)  # fmt: skip
def test_each_tree_hangs_below_its_placeholder_by_opt_and_slt(text, pairs, mode, expected):
    amr = attach_formulas(decode_penman(text), pairs, mode)
    assert encode_penman(amr) == expected
    assert decode_penman(expected) == amr


@pytest.mark.parametrize(("mode", "labels"), [("opt", OPT.nodes), ("slt", SLT.nodes), ("none", ())])
def test_a_mode_leaves_the_other_trees_out(mode, labels):
    amr = attach_formulas(decode_penman("(f / FORMULA_0)"), (BOTH,), mode)
    assert amr.labels == ("FORMULA_0", *labels)
    with pytest.raises(ConfigError):
        attach_formulas(amr, (BOTH,), "all")


def test_labels_that_occur_twice_on_a_path_stay_where_their_own_parent_is():
    assert whole().trees() == PAIRS
    assert whole().trees()[1].slt == SLT_PAIR  # nesting by label would hang the comma below the outer f


def test_trees_of_a_graph_without_the_placeholder_are_refused_by_its_name():
    with pytest.raises(MissingPlaceholderError, match="FORMULA_1") as caught:
        MathAMRGraph(decode_penman("(f / FORMULA_0)"), ("", "")).trees()
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


CHAIN = FormulaTree(("V!x",) * 10_000, tuple((i, i + 1, "n") for i in range(9_999)))
# operand labels go on through the character table: 0-9, A-Z, a-z, then characters that no role may hold
OPERANDS = [*map(chr, (*range(0x30, 0x100), 0x2028, 0x1D465)), *map(chr, range(0x100, 0x180))]
WIDE = FormulaTree(("E!", *["N!1"] * len(OPERANDS)), tuple((0, i, label) for i, label in enumerate(OPERANDS, 1)))


@pytest.mark.parametrize(
    "pairs",
    [(FormulaPair(slt=CHAIN, opt=None),), (FormulaPair(slt=None, opt=WIDE),), (BOTH,) * 300],
    ids=["deep", "wide", "many"],
)
def test_large_trees_are_written_and_read_back(pairs):
    graph = attached(decode_penman("(a / and :op1 (f / FORMULA_0))"), pairs)
    again = MathAMRGraph.from_penman(graph.to_penman())
    assert again == graph
    assert again.trees() == pairs


@st.composite
def trees(draw, edge_labels):
    """A tree in depth-first order with hostile labels."""
    size = draw(st.integers(1, 12))
    path, edges = [0], []
    for node in range(1, size):
        path = path[: draw(st.integers(1, len(path)))]
        edges.append((path[-1], node, draw(st.sampled_from(edge_labels))))
        path.append(node)
    labels = st.text(alphabet='V!x()":/\\ ~#é𝑥&;-', min_size=1, max_size=5).filter(lambda t: t == t.strip())
    return FormulaTree(tuple(draw(labels) for _ in range(size)), tuple(edges))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.none() | trees("anbuowecd"), st.none() | trees("019Az")), max_size=4))
def test_attach_write_read_detach_is_the_identity(drawn):
    pairs = tuple(FormulaPair(slt=slt, opt=opt) for slt, opt in drawn)
    full = attached(decode_penman("(a / and :op1 (b / be-01))"), pairs)
    read = MathAMRGraph.from_penman(full.to_penman())
    assert (read, read.trees()) == (full, pairs)


def edge_by_edge(amr, pairs):
    """Attach by adding every node and edge at the end and then bringing the whole graph into writing order."""
    labels, variables, edges = list(amr.labels), list(amr.variables), list(amr.edges)
    used = {*variables, *labels}

    def fresh(letter):
        name = next(name for name in (f"{letter}{i}" for i in range(10_000)) if name not in used)
        used.add(name)
        return name

    for i, pair in enumerate(pairs):
        node = next((node for node, label in enumerate(amr.labels) if placeholder_number(label) == i), -1)
        if node < 0:
            node = len(labels)
            labels.append(f"FORMULA_{i}")
            variables.append(fresh("f"))
            edges.append((0, ":math", node))
        elif not variables[node]:
            variables[node] = fresh("f")
        for role, prefix, tree in ((":opt", ":op", pair.opt), (":slt", ":slt-", pair.slt)):
            if tree is not None:
                base = len(labels)
                labels += tree.nodes
                variables += [fresh("t") for _ in tree.nodes]
                edges += [(node, role, base), *((base + p, prefix + label, base + c) for p, c, label in tree.edges)]
    return AmrGraph(
        tuple(labels), tuple(variables), tuple(edges), spellings=amr.spellings, mentions=amr.mentions,
        alignments=amr.alignments,
    ).arranged()  # fmt: skip


AMRS = [
    "(f / FORMULA_1)",
    "(f / FORMULA_0 :mod (t0 / thing :ARG0 (g / FORMULA_1 :ARG1 f)) :ARG1 (h / FORMULA_0))",
    '(m / multi-sentence~e.1 :snt1 (a / and :op1 b :op2 (f / FORMULA_0) :name "ok"~e.3) :snt2 (b / be :op FORMULA_2))',
    "(a / and :op1 c :op2 (c / FORMULA_1 :mod (d / dog :quant 2 :ARG0 c)) :op3 d)",
]


@settings(max_examples=40)
@given(st.sampled_from(AMRS), st.lists(st.tuples(st.none() | trees("anbuow"), st.none() | trees("019")), max_size=4))
def test_whole_trees_are_attached_as_edge_by_edge(text, drawn):
    pairs = tuple(FormulaPair(slt=slt, opt=opt) for slt, opt in drawn)
    assert attach_formulas(decode_penman(text), pairs) == edge_by_edge(decode_penman(text), pairs)


def test_a_node_that_is_never_reached_is_named():
    lost = AmrGraph(("and", "dog", "cat"), ("a", "d", "c"), ((0, ":op1", 1),))
    with pytest.raises(AmrError, match="cat"):
        attach_formulas(lost, (BOTH,))
