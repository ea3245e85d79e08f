"""Against the reference converter, on the official topic formulas (skipped where the data is absent)."""

import pytest
from formula_helpers import conformance_rows

from pyterrier_mathamr.formula import FormulaError, opt_from_latex, opt_from_mathml, slt_from_latex, slt_from_mathml

ROWS = conformance_rows()
BY_ID = {(row["year"], row["id"]): row for row in ROWS}


def cases(kind):
    return [pytest.param(row, id=f"{row['year']}-{row['id']}") for row in ROWS if "error" not in row[kind]]


def equal(tree, expected):
    return list(tree.nodes) == expected["nodes"] and [list(edge) for edge in tree.edges] == expected["edges"]


@pytest.mark.parametrize("row", cases("slt"))
def test_layout_tree_from_mathml_equals_the_reference(row):
    assert equal(slt_from_mathml(row["pmml"]), row["slt"])


@pytest.mark.parametrize("row", cases("opt"))
def test_operator_tree_from_mathml_equals_the_reference(row):
    assert equal(opt_from_mathml(row["cmml"]), row["opt"])


def test_where_the_reference_fails_on_mathml_there_is_a_tree(shared_data):
    failed = [row for row in ROWS if "error" in row["opt"] and row["cmml"]]
    assert len(failed) == 52
    assert all(opt_from_mathml(row["cmml"]).nodes for row in failed)


def test_tuples_equal_the_reference(shared_data):
    rows = conformance_rows("tuples")
    assert len(rows) == 200
    for expected in rows:
        row = BY_ID[expected["year"], expected["id"]]
        for kind, tree in (("slt", slt_from_mathml), ("opt", opt_from_mathml)):
            if "error" not in row[kind]:
                source = row["pmml" if kind == "slt" else "cmml"]
                assert [list(pair) for pair in tree(source).tuples(2, eob=True)] == expected[f"{kind}_tuples"]


def matches(convert, row, kind):
    try:
        return equal(convert(row["latex"]), row[kind])
    except FormulaError:
        return False


@pytest.mark.parametrize(
    ("kind", "convert", "clean_target", "target"),
    [("slt", slt_from_latex, 0.96, 0.92), ("opt", opt_from_latex, 0.92, 0.86)],
)
def test_trees_from_latex_match_the_reference_as_often_as_promised(shared_data, kind, convert, clean_target, target):
    rows = [row for row in ROWS if row["year"] == 2022 and "error" not in row[kind]]
    same = [(matches(convert, row, kind), bool(row["flags"])) for row in rows]
    clean = [match for match, flagged in same if not flagged]
    assert sum(clean) / len(clean) >= clean_target
    assert sum(match for match, _ in same) / len(same) >= target
