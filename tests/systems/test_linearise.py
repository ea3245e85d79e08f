"""Linearized graphs: the worked example, strings that the authors of MathAMR published, and deep graphs."""

import pytest

from mathamr_systems.two_step.similarity import linearise
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.amr import AmrGraph
from pyterrier_mathamr.graph import MathAMRGraph

WORKED = """(s / solve-01 :mode imperative :ARG1 (e / equation :mod (t / this) :ARG0 (p / FORMULA_0
    :opt (u / U!plus :op0 (a / O!SUP :op0 (x / V!x) :op1 (n / V!n)) :op0 (y / V!y)))))"""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "solve-01 equation math plus y SUP x n this imperative"),
        ({"order": "written"}, "solve-01 imperative equation this math plus SUP x n y"),
        ({"math_word": False}, "solve-01 equation plus y SUP x n this imperative"),
    ],
)
def test_the_worked_example(options: dict[str, object], words: str) -> None:
    assert linearise(MathAMRGraph.from_penman(WORKED), **options) == words  # type: ignore[arg-type]


# Graphs and strings that accompany the dissertation, with formulas below `:math` and without the types of labels.
PUBLISHED = {
    "B.2": (
        """(t / thing :manner-of (s / solve-01 :arg1 (e / equation :mod (d / differential) :mod (f / form
        :arg1-of (f2 / follow-01) :mod (s2 / string-entity :math (U1 / eq :op0 (O1 / divide :op0 (U2 / times
        :op0 (V1 / d) :op0 (V2 / f)) :op1 (U3 / times :op0 (V3 / d) :op0 (V4 / x))) :op0 (U4 / times :op0 (V5 / f)
        :op0 (U5 / plus :op0 (V6 / x) :op0 (N1 / 1)))))))))""",
        "thing solve-01 equation form follow-01 string-entity eq times plus 1 x f divide times f d times x "
        "d differential",
    ),
    "B.6, second sentence": (
        r"""(n / notice-01 :arg0 (ii2 / i) :arg1 (s2 / string-entity :math (U2 / eq :op0 (U3 / times
        :op0 (O2 / SUP :op0 (N4 / 5) :op1 (V1 / n)) :op0 (T2 / \mod) :op0 (N5 / 8)) :op0 (N6 / 5)))
        :condition (a / and :op1 (e / even-02 :polarity - :arg1 (s3 / string-entity :math (V2 / n)))
        :op2 (h / have-polarity-91 :arg2 - :arg1 s3) :arg0-of (l / lead-03 :arg1 ii2 :arg2 (s4 / say-01 :arg0 ii2
        :arg1 (s5 / string-entity :math (U4 / eq :op0 (U5 / times :op0 (O3 / SUP :op0 (N7 / 5) :op1 (N8 / 133))
        :op0 (T3 / \mod) :op0 (N9 / 8)) :op0 (N10 / 5)))))))""",
        r"notice-01 i string-entity eq 5 times 8 \mod SUP 5 n and lead-03 say-01 string-entity eq 5 times 8 \mod "
        "SUP 5 133 even-02 string-entity n - have-polarity-91 -",
    ),
    "B.12": (
        """(m / multi-sentence :snt1 (a / ask-02 :arg0 (ii / it) :arg1 (a2 / and :op1 (f / find-01 :arg0 (ii2 / i)
        :arg1 (r / root :mod (a3 / all))) :op2 (s / sketch-01 :arg0 ii2 :arg1 (ii3 / it) :time (t / then))) :arg2 ii2)
        :snt2 (p / proceed-01 :arg0 (w / we) :manner (a4 / amr-unknown)))""",
        "multi-sentence ask-02 it and find-01 i root all sketch-01 it then proceed-01 we amr-unknown",
    ),
}


@pytest.mark.parametrize("topic", PUBLISHED)
def test_published_graphs_give_the_published_strings(topic: str) -> None:
    graph, words = PUBLISHED[topic]
    assert linearise(MathAMRGraph.from_penman(graph)) == words


def test_a_node_reached_twice_is_written_once_and_its_children_with_it() -> None:
    graph = MathAMRGraph.from_penman("(a / and :op2 (b / big :mod x) :op1 (x / ex :mod (y / why)))")
    assert linearise(graph) == "and ex why big"
    assert linearise(graph, order="written") == "and big ex why"


def test_op10_comes_before_op2_and_case_does_not_matter() -> None:
    graph = MathAMRGraph.from_penman("(a / and :op2 (b / two) :op10 (c / ten) :ARG1 (d / one) :arg0 (e / zero))")
    assert linearise(graph) == "and zero one ten two"


def test_labels_lose_their_type_only_in_trees_and_layout_trees_are_left_out() -> None:
    graph = MathAMRGraph.from_penman(
        "(p / FORMULA_0 :mod (w / U!word) :opt (f / O!factorial :op0 (m / V!!)) :slt (v / V!q))"
    )
    assert linearise(graph) == "math U!word factorial !"


def test_a_placeholder_without_a_tree_is_only_the_word() -> None:
    graph = MathAMRGraph.from_penman('# ::formula_map {"FORMULA_0": "7"}\n(e / equal-01 :ARG1 (f / FORMULA_0))')
    assert linearise(graph) == "equal-01 math"
    assert linearise(graph, math_word=False) == "equal-01"


def test_a_graph_of_depth_2000_needs_no_recursion() -> None:
    depth = 2_000
    edges = tuple((node, ":op0", node + 1) for node in range(depth - 1))
    graph = MathAMRGraph(AmrGraph(tuple(f"n{i}" for i in range(depth)), tuple(f"v{i}" for i in range(depth)), edges))
    assert linearise(graph) == " ".join(f"n{i}" for i in range(depth))


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ConfigError, match="order"):
        linearise(MathAMRGraph.from_penman("(a / and)"), order="breadth")  # type: ignore[arg-type]
