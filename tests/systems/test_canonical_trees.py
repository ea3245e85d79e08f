"""Canonical trees follow the specification's rules, whatever the depth."""

import pytest

from mathamr_systems.approach0.tree import OperatorTree, canonical_tree, formula_paths, path_names
from pyterrier_mathamr.formula import FormulaTree, opt_from_latex, opt_from_mathml


def shown(tree: OperatorTree) -> str:
    """Spell a tree: a variable as its letter, without SUBSUP and BASE where it has no scripts."""
    kids: dict[int, list[int]] = {}
    for node, parent in enumerate(tree.parents):
        kids.setdefault(parent, []).append(node)

    def spell(node: int) -> str:
        sign = "-" if tree.signs[node] < 0 else ""
        if node not in kids:
            return sign + tree.symbols[node][2:]
        inner = ", ".join(map(spell, kids[node]))
        if tree.tokens[node] == "BASE" or (tree.tokens[node] == "SUBSUP" and len(kids[node]) == 1):
            return sign + inner
        mark = "!" if any(tree.ranks[kid] for kid in kids[node]) else ""
        return f"{sign}{tree.tokens[node]}{mark}({inner})"

    return spell(0).translate({ord(a): b for a, b in zip("𝑥𝑦𝑧𝑎𝑏𝑐𝑑𝑖𝑛", "xyzabcdin", strict=True)})


@pytest.mark.parametrize(
    ("latex", "form"),
    [
        ("x", "x"),
        ("2", "2"),
        ("x_i^2", "SUBSUP(x, SUBSCRIPT(i), SUPSCRIPT(2))"),
        ("x^2-1", "ADD(SUBSUP(x, SUPSCRIPT(2)), -1)"),
        ("-x", "ADD(-x)"),
        ("a-(b-c)-d", "ADD(a, -b, c, -d)"),
        ("a=b=c", "REL(a, b, c)"),
        (r"a<b\le c", "SEP(REL(a, b), REL(b, c))"),
        ("a=b, c=d", "SEP(REL(a, b), REL(c, d))"),
        (r"(a=b) \wedge (c=d)", "SEP(REL(a, b), REL(c, d))"),
        (r"x\in a", "REL(x, a)"),
        (r"2\sin x", "TIMES(2, sin, x)"),
        (r"\sin^2 x", "TIMES(SUBSUP(sin, SUPSCRIPT(2)), x)"),
        (r"a \cdot b c", "TIMES(a, b, c)"),
        (r"\sum_{i=1}^n i^2", "TIMES(SUBSUP(sum, SUBSCRIPT(REL(i, 1)), SUPSCRIPT(n)), SUBSUP(i, SUPSCRIPT(2)))"),
        (r"\sum x", "TIMES(sum, x)"),
        (r"\int x\,dx", "TIMES(int, TIMES(x, differential-d!(x)))"),
        (r"\sin(ab)", "TIMES(sin, TIMES(a, b))"),
        (r"2\sum_{i} ab", "TIMES(2, SUBSUP(sum, SUBSCRIPT(i)), TIMES(a, b))"),
        (r"\frac{a}{b}", "divide!(a, b)"),
        (r"\binom{n}{2}", "binomial!(n, 2)"),
        ("(x,y)", "GROUP(SEP(x, y))"),
        ("(x,y,z)", "GROUP(SEP(x, y, z))"),
        (r"\{x\}", "GROUP(x)"),
        (r"\begin{pmatrix}1&2\\x&y\end{pmatrix}", "TAB_ROW(TAB_COL(1, 2), TAB_COL(x, y))"),
        (r"a \cup b", "union(a, b)"),
    ],
)
def test_each_rule_has_its_form(latex: str, form: str) -> None:
    assert shown(canonical_tree(opt_from_latex(latex))) == form


def test_an_operand_that_a_chain_of_2020_repeats_is_one() -> None:
    chain = "<apply><eq/>{}<ci>{}</ci></apply>"
    both = chain.format("<ci>a</ci>", "b") + chain.format("<share/>", "c")
    tree = opt_from_mathml(f"<math><apply><and/>{both}</apply></math>")
    assert tree.nodes.count("V!b") == 2
    assert shown(canonical_tree(tree)) == "REL(a, b, c)"


def test_tokens_do_not_distinguish_numbers_or_relations_but_symbols_do() -> None:
    one, other = (canonical_tree(opt_from_latex(latex)) for latex in ("x<3", "x>7"))
    assert one.tokens == other.tokens
    assert one.symbols != other.symbols
    assert [canonical_tree(opt_from_latex(number)).tokens for number in "013"] == [["ZERO"], ["ONE"], ["NUM"]]


def test_paths_are_the_prefixes_that_end_at_nodes() -> None:
    tree = canonical_tree(opt_from_latex("x^2+x"))
    found = formula_paths(tree)
    keys = {key for root in found.roots for key in root.sectors}
    names = path_names(tree, keys)
    spelled = [
        {names[key]: [leaves.width for leaves in of] for key, of in root.sectors.items()} for root in found.roots
    ]
    assert spelled == [
        {"VAR/BASE/SUBSUP/ADD": [2], "NUM/SUPSCRIPT/SUBSUP/ADD": [1]},
        {"VAR/BASE/SUBSUP": [1], "NUM/SUPSCRIPT/SUBSUP": [1]},
        {"VAR/BASE": [1]},
        {"NUM/SUPSCRIPT": [1]},
        {"VAR/BASE/SUBSUP": [1]},
        {"VAR/BASE": [1]},
    ]
    assert [root.leaves for root in found.roots] == [3, 2, 1, 1, 1, 1]
    ranked = canonical_tree(opt_from_latex(r"\frac{1}{x}"))
    root = formula_paths(ranked).roots[0]
    assert sorted(path_names(ranked, root.sectors).values()) == ["ONE/RANK_1/divide", "VAR/BASE/SUBSUP/RANK_2/divide"]


def test_paths_above_few_leaves_can_be_left_out() -> None:
    tree = canonical_tree(opt_from_latex("a+b+c+d+e+f^2"))
    assert {root.leaves for root in formula_paths(tree).roots} == {1, 2, 7}
    assert {root.leaves for root in formula_paths(tree, 0.2).roots} == {2, 7}


def test_deep_and_long_formulas_have_paths_of_their_first_64_leaves() -> None:
    deep = FormulaTree(("O!root",) * 1000 + ("V!x",), tuple((i, i + 1, "0") for i in range(1000)), kind="opt")
    tree = canonical_tree(deep)
    assert len(formula_paths(tree).roots) == 1002  # and its BASE and SUBSUP
    left = FormulaTree(
        (*("O!minus", "V!x") * 600, "N!1"),
        tuple(edge for i in range(0, 1200, 2) for edge in ((i, i + 1, "0"), (i, i + 2, "1"))),
        kind="opt",
    )
    tree = canonical_tree(left)
    assert (len(tree.leaves), tree.size) == (64, 601)
    chains = opt_from_latex("=".join("x" * 600))
    assert canonical_tree(chains).size == 600
