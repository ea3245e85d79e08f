"""Against the reference converter, on the official topic formulas (skipped where the data is absent)."""

from functools import cache

import pytest
from formula_helpers import conformance_rows

from pyterrier_mathamr.formula import FormulaError, opt_from_latex, opt_from_mathml, slt_from_latex, slt_from_mathml

pytestmark = pytest.mark.usefixtures("shared_data")
MATHML = {"slt": ("pmml", slt_from_mathml), "opt": ("cmml", opt_from_mathml)}
topics = cache(conformance_rows)


def equal(tree, expected):
    return list(tree.nodes) == expected["nodes"] and [list(edge) for edge in tree.edges] == expected["edges"]


@pytest.mark.parametrize("kind", MATHML)
def test_trees_from_mathml_equal_the_reference(kind):
    source, convert = MATHML[kind]
    rows = [row for row in topics() if "error" not in row[kind]]
    assert len(rows) > 1_400
    assert [(row["year"], row["id"]) for row in rows if not equal(convert(row[source]), row[kind])] == []


def test_where_the_reference_fails_on_mathml_there_is_a_tree():
    failed = [row for row in topics() if "error" in row["opt"] and row["cmml"]]
    assert len(failed) == 52
    assert all(opt_from_mathml(row["cmml"]).nodes for row in failed)


def test_tuples_equal_the_reference():
    rows, by_id = conformance_rows("tuples"), {(row["year"], row["id"]): row for row in topics()}
    assert len(rows) == 200
    for expected in rows:
        row = by_id[expected["year"], expected["id"]]
        for kind, (source, convert) in MATHML.items():
            if "error" not in row[kind]:
                tuples = convert(row[source]).tuples(2, eob=True)
                assert [list(pair) for pair in tuples] == expected[f"{kind}_tuples"]


@pytest.mark.parametrize(
    ("kind", "convert", "clean_target", "target"),
    [("slt", slt_from_latex, 0.96, 0.92), ("opt", opt_from_latex, 0.92, 0.86)],
)
def test_trees_from_latex_match_the_reference_as_often_as_promised(kind, convert, clean_target, target):
    same, clean = [], []
    for row in topics():
        if row["year"] == 2022 and "error" not in row[kind]:
            try:
                same.append(equal(convert(row["latex"]), row[kind]))
            except FormulaError:
                same.append(False)
            if not row["flags"]:
                clean.append(same[-1])
    assert sum(clean) / len(clean) >= clean_target
    assert sum(same) / len(same) >= target
