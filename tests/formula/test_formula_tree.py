"""Trees by themselves: symbol pairs worked by hand, identity, and how they are shown."""

import pickle
import xml.etree.ElementTree as ET

import pytest

from pyterrier_mathamr.explain import draw_formula
from pyterrier_mathamr.formula import FormulaError, FormulaTree
from pyterrier_mathamr.formula.tree import readable

# x^2+1: x carries 2 above; then +, then 1
SLT = FormulaTree(("V!x", "N!2", "+", "N!1"), ((0, 1, "a"), (0, 2, "n"), (2, 3, "n")), kind="slt")
OPT = FormulaTree(
    ("U!plus", "O!SUP", "V!𝑥", "N!2", "N!1"), ((0, 1, "0"), (1, 2, "0"), (1, 3, "1"), (0, 4, "0")), kind="opt"
)


def row_of(symbols):
    return FormulaTree(tuple(symbols), tuple((i, i + 1, "n") for i in range(len(symbols) - 1)), kind="slt")


def test_pairs_of_window_1_are_the_edges_each_before_the_pairs_below_it():
    assert SLT.tuples(1) == (("V!x", "N!2", "a", "-"), ("V!x", "+", "n", "-"), ("+", "N!1", "n", "n"))
    assert OPT.tuples(1) == (
        ("U!plus", "O!SUP", "0", "-"), ("O!SUP", "V!𝑥", "0", "0"), ("O!SUP", "N!2", "1", "0"),
        ("U!plus", "N!1", "0", "-"),
    )  # fmt: skip


def test_pairs_of_window_2_reach_grandchildren_last_child_first():
    assert SLT.tuples(2)[1:3] == (("V!x", "+", "n", "-"), ("V!x", "N!1", "nn", "-"))
    assert OPT.tuples(2)[:3] == (
        ("U!plus", "O!SUP", "0", "-"), ("U!plus", "N!2", "01", "-"), ("U!plus", "V!𝑥", "00", "-")
    )  # fmt: skip


def test_end_of_baseline_pairs_close_rows_and_leaves():
    ends = [pair for pair in SLT.tuples(1, eob=True) if pair[1] == "0!"]
    assert ends == [("N!2", "0!", "n", "a"), ("N!1", "0!", "n", "nn")]
    assert [pair[0] for pair in OPT.tuples(1, eob=True) if pair[1] == "0!"] == ["V!𝑥", "N!2", "N!1"]


def test_long_paths_are_run_length_encoded_and_long_pairs_dropped():
    row = row_of("abcdefgh")
    assert row.tuples(1)[5:] == (("f", "g", "n", "nnnnn"), ("g", "h", "n", "6n"))
    assert ("a", "h", "7n", "-") in row.tuples(0)
    # label + tab + N!1 + tab + n + tab + -
    assert [len(row_of(["V!" + "x" * (length - 2), "N!1"]).tuples(1)) for length in (192, 193)] == [1, 0]
    deep = row_of(["V!x"] * 3_000)
    assert deep.tuples(1)[-1] == ("V!x", "V!x", "n", "2998n")
    assert len(str(deep).splitlines()) == 3_000


def test_unified_keeps_types_and_untyped_operators():
    assert SLT.unified().nodes == ("V!", "N!", "+", "N!")
    assert SLT.unified().edges == SLT.edges


def test_digest_is_the_same_for_the_same_tree_and_differs_by_label_edge_or_shape():
    assert SLT.digest() == FormulaTree(SLT.nodes, SLT.edges, source="elsewhere").digest()
    others = [
        FormulaTree(("V!y", *SLT.nodes[1:]), SLT.edges),
        FormulaTree(SLT.nodes, ((0, 1, "b"), *SLT.edges[1:])),
        FormulaTree(SLT.nodes, ((0, 1, "a"), (1, 2, "n"), (2, 3, "n"))),
    ]
    assert len({SLT.digest(), *(tree.digest() for tree in others)}) == 4


def test_repr_rebuilds_source_is_not_compared_and_the_kind_is_inferred():
    tree = FormulaTree(("V!x",), (), source="x", kind="slt")
    assert eval(repr(tree)) == tree == FormulaTree(("V!x",), ()) == pickle.loads(pickle.dumps(tree))
    assert hash(tree) == hash(FormulaTree(("V!x",), ()))
    assert [FormulaTree(tree.nodes, tree.edges).is_slt for tree in (SLT, OPT)] == [True, False]


def test_a_tree_prints_one_node_a_line_and_is_drawn_with_every_label_escaped():
    assert str(SLT) == "V!x\n  a N!2\n  n +\n    n N!1"
    picture = row_of(["<", "N!1", "&comma;"])._repr_html_()
    shown = [text.text for text in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in shown if text != "n"] == ["<", "N", "1", ",", "N  number"]


@pytest.mark.parametrize(
    ("label", "shown"),
    [("V!𝑥", "V x"), ("V!𝛼", "V α"), ("V!ℝ", "V ℝ"), ("U!eq", "U ="), ("O!SUP", "O superscript"), ("M!L-3", "M list 3"),
     ("M!M-2x3", "M matrix 2×3"), ("M!(&rsqb;1x2", "M (] 1×2"), ("&comma;", " ,"), ("!", " !"), ("=", " ="),
     ("+!O!SUB", "+ subscript"), ("F!ln", "F ln"), ("N!", "N "), ("", " "), ("Q!x", " Q!x")],
)  # fmt: skip
def test_labels_are_shown_for_people(label, shown):
    assert " ".join(readable(label)) == shown


def test_a_formula_without_trees_is_an_error_and_not_an_empty_picture() -> None:
    for latex in (r"\sqrt", "", "  "):
        with pytest.raises(FormulaError):
            draw_formula(latex)
    assert "operator tree" in draw_formula("x^2").svg
