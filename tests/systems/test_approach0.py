"""Approach Zero: canonical trees by the rules, scores by hand and by a plain scorer, pruning, the index."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from approach0_plain import PlainScorer

from mathamr_systems import ApproachZeroIndex
from mathamr_systems.approach0.index import Constants, PathSearch, score_expressions
from mathamr_systems.approach0.path_lists import PathLists, indexed_paths, path_query
from mathamr_systems.approach0.tree import OperatorTree, canonical_tree, formula_paths, path_names
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.formula import (
    FormulaPair,
    FormulaTree,
    opt_from_latex,
    opt_from_mathml,
    slt_from_latex,
    trees_from_latex,
)
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.store import DamagedError


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


def test_paths_are_the_prefixes_that_end_at_nodes_without_those_above_few_leaves() -> None:
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


PRINTED = Constants()
WORKED = ("x^2+1", "y^2+1", "x^2+x", "y^3", "z")
VARIED = (
    *WORKED,
    r"\frac{x+1}{x^2-1}",
    r"\sum_{i=1}^n i^2 = \frac{n(n+1)(2n+1)}{6}",
    r"\int_0^1 x^2 \sin(2x)\,dx",
    r"a=b=c",
    r"a<b\le c",
    r"x_i^2+x_j^2+2x_ix_j",
    r"\begin{pmatrix}1&x\\0&1\end{pmatrix}",
    r"(x,y)\in A",
    r"\{x, y, z\}",
    "7",
    r"\sqrt{a^2+b^2}+\sqrt{b^2+a^2}",
    r"\lim_{x\to 0}\frac{\sin x}{x}=1",
    "x+x+x+y",
    r"x^{x^{x^x}}",
    "-x-1",
)


def tree_of(latex: str) -> OperatorTree:
    opt = trees_from_latex(latex).opt
    assert opt is not None
    return canonical_tree(opt)


def index_of(formulas: Sequence[str]) -> PathLists:
    return PathLists.of_paths(indexed_paths(trees_from_latex(latex)) for latex in formulas)


def scores(index: PathLists, latex: str, constants: Constants = PRINTED) -> list[float]:
    query = path_query(formula_paths(tree_of(latex)), index)
    found = score_expressions(query, index.of, np.arange(len(index.of.leaves)), constants)
    return (found.structure * found.symbols * constants.penalties(index.of.leaves)).tolist()


def test_scores_are_those_worked_by_hand() -> None:
    index = index_of(WORKED)
    assert len(index.roots) == 28  # N
    assert scores(index, "x^2+1") == pytest.approx([6.5122, 6.5050, 3.6844, 3.3589, 1.7278], abs=5e-5)
    assert scores(index, "y^2")[:4] == pytest.approx([3.1869, 3.1949, 3.1869, 3.3840], abs=5e-5)


@pytest.mark.parametrize(
    "constants", [Constants(), Constants(eta=0.0), Constants(eta=1.0, b1=0.8, b2=0.2), Constants(b1=0.0, b2=0.0)]
)
def test_scores_equal_a_plain_scorer_s(constants: Constants) -> None:
    index = index_of(VARIED)
    plain = PlainScorer([tree_of(latex) for latex in VARIED], constants.eta, constants.b1, constants.b2)
    for latex in (*VARIED, r"\frac{y}{y+1}", "t", r"q^2=q\cdot q", "+"):
        assert scores(index, latex, constants) == pytest.approx(plain.scores(tree_of(latex))), latex


def test_a_formula_of_one_leaf_is_raised_and_one_without_leaves_is_accepted() -> None:
    assert Constants().penalties(np.array([0, 1, 5], dtype=np.int32)) == pytest.approx(
        [1.13281, 1.13281, 0.867433], abs=5e-6
    )
    index = PathLists.of_paths(map(indexed_paths, (FormulaPair(None, None), trees_from_latex("x"))))
    assert scores(index, "x")[0] == 0


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.feedback.PostWarning")
def test_pruning_gives_the_ranking_of_scoring_everything(shared_data: Path) -> None:
    from pyterrier_mathamr.arqmath import ARQMathCollection
    from pyterrier_mathamr.posts import document_post

    latex: dict[str, None] = {}
    for post in ARQMathCollection(shared_data / "arqmath-mini").posts():
        found = document_post({"docno": post.id, "html": post.body})
        latex |= dict.fromkeys(formula.latex for formula in found.formulas)
        if len(latex) > 500:
            break
    pairs = [pair for pair in map(trees_from_latex, latex) if pair.opt is not None]
    index, constants = PathLists.of_paths(map(indexed_paths, pairs)), Constants()
    penalties = constants.penalties(index.of.leaves)
    sizes = np.random.default_rng(3).integers(1, 4, len(pairs))
    for pair in pairs[:: len(pairs) // 40]:
        query = path_query(formula_paths(canonical_tree(pair.opt)), index)
        for count in (10, 200):
            found = PathSearch(query, index, sizes, penalties, constants, count).run()
            every = score_expressions(query, index.of, np.arange(len(pairs)), constants)
            exact = every.structure * every.symbols * penalties
            order = np.argsort(-exact, kind="stable")
            least = exact[order[np.searchsorted(np.cumsum(sizes[order]), count)]]
            np.testing.assert_array_equal(found[exact >= least], exact[exact >= least])
            assert np.all(found[exact < least] <= exact[exact < least])


LATEX = ["x^2+1", "y^2+1", "x^2+x", "y^3", "z", "x^2+1", r"\frac{a}{b}", "7", r"\int_0^1 x^2\,dx"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]


def queries(*latex: object, column: str = "latex") -> pd.DataFrame:
    return pd.DataFrame({"qid": [str(number) for number in range(1, len(latex) + 1)], column: list(latex)})


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ApproachZeroIndex:
    return ApproachZeroIndex(tmp_path_factory.mktemp("a0") / "f.a0").index(POSTS)


def test_scorer_and_retriever_agree_and_explain_common_paths(index: ApproachZeroIndex, tmp_path: Path) -> None:
    topics = queries("x^2+1", "y^2")
    whole = index.retriever(b1=0.8, b2=0.2, eta=0.1)(topics)
    again = index.scorer(b1=0.8, b2=0.2, eta=0.1)(whole[::-1])
    assert again["qid"].drop_duplicates().tolist() == ["2", "1"]
    scores = whole.set_index(["qid", "docno"])["score"].to_dict()
    assert again.set_index(["qid", "docno"])["score"].to_dict() == pytest.approx(scores)
    pipeline = TangentIndex(tmp_path / "t").index(POSTS) >> index.scorer()
    assert pipeline(topics)["docno"].iloc[0] == "p0#0"
    assert pt.inspect.transformer_outputs(pipeline, ["qid", "latex"]) == list(pipeline(topics).columns)

    retriever = index.retriever()
    for row in retriever(queries("x^2+1", r"\frac{y}{b}")).to_dict("records"):
        assert index.scorer().explain(row).score == pytest.approx(row["score"])
    explained = retriever.explain({"latex": "x^2+1"}, "p3#0")
    assert set(explained.parts["part"]) == {"path VAR/BASE/SUBSUP", "path NUM/SUPSCRIPT/SUBSUP"}
    assert retriever.explain({"latex": "7"}, "p0#0").score == 0
    assert retriever.explain({"latex": " "}, "p0#0").parts.empty


def test_formulas_without_operator_tree_are_kept_and_never_found(tmp_path: Path) -> None:
    class Store:
        path = tmp_path / "formulas"

        def get_many(self, ids: list[str]) -> dict[str, FormulaPair]:
            return {name: FormulaPair(slt_from_latex("x"), None) for name in ids if name in ("1", "q")}

        def visual_ids(self, ids: list[str]) -> dict[str, str]:
            return {}

    span = '<span class="math-container" id="{}">{}</span>'
    store = Store()
    posts = [{"docno": "p", "html": span.format(1, "") + span.format(2, "x")}]
    index = ApproachZeroIndex(tmp_path / "f").indexer(store=store).index(posts)  # type: ignore[arg-type]
    assert len(index) == 2
    assert index.search("x")["docno"].tolist() == ["2"]
    asked = queries("").assign(formula_id="q")
    with pytest.warns(MathAMRWarning, match="without an operator tree find nothing: '1'"):
        assert index.retriever(store=store)(asked).empty  # type: ignore[arg-type]


def test_damage_is_reported(index: ApproachZeroIndex) -> None:
    part = index.snapshot().parts[0]
    whole = PathLists.of_part(part).arrays()
    for name, values in (("path_keys", whole["path_keys"][::-1]), ("firsts", whole["firsts"] + 64)):
        arrays = {**whole, name: values}
        changed = type("Changed", (), {"path": part.path, "__getitem__": lambda self, of, arrays=arrays: arrays[of]})()
        with pytest.raises(DamagedError, match=name):
            PathLists.of_part(changed)
