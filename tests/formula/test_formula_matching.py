"""Matching is compared with definitions: terms are substituted and compared, and renamings are tried one by one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.formula import FormulaTree, opt_from_latex
from pyterrier_mathamr.formula.located import find_part, line_trees, lines_of, locate, write_term, write_value
from pyterrier_mathamr.formula.matching import (
    MOST_STEPS,
    Substitution,
    Terms,
    is_letter,
    parts,
    read_terms,
    unify,
    with_wildcards,
)


def terms(latex: str) -> Terms:
    return read_terms(opt_from_latex(with_wildcards(latex), lines="all"))


def formula(latex: str) -> Terms:
    tree = opt_from_latex(latex, lines="all")
    return read_terms(tree, line_trees(tree))


def matched(pattern: str, latex: str) -> dict[str, str] | None:
    """Substitutes that turn a pattern into a whole formula."""
    asked, of = terms(pattern), terms(latex)
    found = unify(asked, of, of.root).substitution
    if found is None:
        return None
    values = {name: write_value(of, value) for name, value in found.wildcards.items()}
    return values | {name: write_term(of, letter) for name, letter in found.letters.items()}


SAME = [
    ("a+b", "b+a"), ("a-b+c", "c+a-b"), ("2xy", r"y\cdot x\cdot 2"), ("a>b", "b<a"), (r"a\geq b", r"b\le a"),
    ("x=y", "y=x"), ("a=b=c", "c=a=b"), ("x_i^2", "x^2_i"), (r"\sum_{i=1}^n i", r"\sum^n_{i=1} i"),
    ("(a+b)+c", "a+(b+c)"), ("+x", "x"),
]  # fmt: skip
OTHER = [
    ("a-b", "b-a"), ("a/b", "b/a"), ("x^y", "y^x"), ("a<b", "b<a"), ("a-(b+c)", "a-b+c"), ("x^2", "x^3"), ("a", "A")
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "same"), [(*c, True) for c in SAME] + [(*c, False) for c in OTHER])
def test_forms_have_the_same_key_if_they_mean_the_same(one: str, other: str, same: bool) -> None:
    left, right = terms(one), terms(other)
    assert (left.keys[left.root] == right.keys[right.root]) is same
    assert (left.identity(left.root) == right.identity(right.root)) is same


@pytest.mark.parametrize(
    ("pattern", "latex", "expected"),
    [
        (r"Bx=\mu x", r"Av=\lambda v", {"V!𝐵": "A", "V!𝑥": "v", "V!𝜇": "λ"}),
        (r"Bx=\mu x+1", r"1+\lambda v=vA", {"V!𝐵": "A", "V!𝑥": "v", "V!𝜇": "λ"}),
        (r"Bx=\mu x", r"Av=\lambda w", None),  # v is not w
        ("a+b", "x+x", None),  # one to one
        ("a+a", "x+y", None), ("x^2", "y^3", None), (r"\pi r^2", r"\pi s^2", {"V!𝑟": "s"}),
        (r"\pi r^2", "as^2", None),  # a constant is not a letter
        ("e^x", "a^x", None), (r"x\in\mathbb{R}", r"y\in\mathbb{C}", None),
        ("?a^2+?b^2=?c^2", "x^2+(y+1)^2=3^2", {"?a": "x", "?b": "y+1", "?c": "3"}),
        ("?a=?a", "2+x=x+2", {"?a": "x+2"}), ("?a=?a", "x=y", None), ("?a+?a", r"x^2+x^2", {"?a": "x^{2}"}),
        ("?a^2+?a", "(x+y)^2+y+x", {"?a": "x+y"}),  # two operands of the sum
        ("?a+1", "x+y+1", {"?a": "x+y"}), ("?a+?b=0", "x+y+z=0", {"?a": "x", "?b": "y+z"}),
        (r"\frac{?a}{?b}", r"\frac{1}{x+1}", {"?a": "1", "?b": "x+1"}),
        (r"x+\qvar{rest}", "y+z^2", {"V!𝑥": "y", "?rest": "z^{2}"}), ("?a", "x", {"?a": "x"}),
        ("?f(x)", "g(t)", {"?f": "g", "V!𝑥": "t"}), ("?a ?b", "x+y", None),
    ],
)  # fmt: skip
def test_letters_are_renamed_one_to_one_and_wildcards_take_sub_expressions(pattern, latex, expected):
    assert matched(pattern, latex) == expected


def test_a_question_mark_is_a_wildcard_only_before_a_letter() -> None:
    assert with_wildcards(r"?a+?_2=?\alpha") == r"\qvar{a}+?_2=?\alpha"
    assert with_wildcards(r"\?a") == r"\?a"
    assert not any(terms("x=?").is_open)


def places(latex: str) -> dict[str, str]:
    of = formula(latex)
    return {write_term(of, term): place.name for term, place in parts(of).items() if place}


def test_lines_relations_and_sides_have_their_places() -> None:
    derivation = r"\begin{align}(a-b)^2&=(a-b)(a-b)\\&=a^2-2ab+b^2\\c&<d\end{align}"
    found = places(derivation)
    whole = found.pop(next(latex for latex, place in found.items() if place == "WHOLE"))
    assert whole == "WHOLE"
    square, product, long = r"\left(a-b\right)^{2}", r"\left(a-b\right)\left(a-b\right)", "a^{2}-2ab+b^{2}"
    statements = {latex for latex, place in found.items() if place == "STATEMENT"}
    assert {f"{square}={product}", f"{product}={long}", f"{square}={long}", "c<d"} <= statements
    assert {latex for latex, place in found.items() if place == "SIDE"} == {square, product, long, "c", "d"}
    # a line that is not a statement leaves the others readable
    assert places(r"\begin{align}x&=(y\\z^2&=w\end{align}")["z^{2}=w"] == "STATEMENT"


def test_lines_are_cut_at_the_environments_own_line_ends() -> None:
    lines = r"\label{one} a &= \begin{pmatrix}1\\2\end{pmatrix} \\[2pt] b &= {x \\ y} \nonumber\\ "
    latex = rf"\begin{{align*}}{lines}\end{{align*}}"
    assert lines_of(latex) == [r"a  = \begin{pmatrix}1\\2\end{pmatrix}", r"b  = {x \\ y}"]
    assert lines_of("a=b") == lines_of(r"\begin{align}a=b\end{align}") == []
    assert lines_of(r"\begin{align}a\\") == ["a"]


def test_runs_of_operands_are_sub_expressions_in_the_order_of_writing() -> None:
    of = formula("a+b+c")
    assert {write_term(of, term) for term in parts(of)} == {"a", "b", "c", "a+b", "b+c", "a+b+c"}
    many = formula("+".join("abcdfghijklm"))
    sums = [term for term in parts(many) if many.labels[term] == "U!plus"]
    assert sorted(len(many.args[term]) for term in sums) == [2] * 11 + [3] * 10 + [4] * 9 + [12]


LETTERS = ["V!𝑎", "V!𝑏", "V!𝑐"]


@st.composite
def trees(draw: st.DrawFn, leaves: tuple[str, ...] = (*LETTERS, "N!1"), depth: int = 3) -> FormulaTree:
    """An operator tree of sums, differences, products, powers and quotients."""
    nodes, edges = list[str](), list[tuple[int, int, str]]()

    def grow(level: int) -> int:
        number = len(nodes)
        if level == 0 or draw(st.booleans()):
            nodes.append(draw(st.sampled_from(leaves)))
            return number
        label = draw(st.sampled_from(["U!plus", "O!minus", "U!times", "O!SUP", "O!divide", "U!eq"]))
        nodes.append(label)
        many = draw(st.integers(2, 3)) if label in ("U!plus", "U!times") else 2
        for place in range(many):
            child = grow(level - 1)
            edges.append((number, child, "0" if label[0] == "U" else str(place)))
        return number

    grow(depth)
    return FormulaTree(tuple(nodes), tuple(sorted(edges, key=lambda edge: edge[1])), kind="opt")


def relabeled(tree: FormulaTree, names: Mapping[str, str]) -> FormulaTree:
    return FormulaTree(tuple(names.get(label, label) for label in tree.nodes), tree.edges, kind="opt")


def substituted(pattern: Terms, of: Terms, found: Substitution) -> Terms:
    """The pattern with what is substituted, term by term."""
    made = Terms()
    copied = [made.add(of.labels[0])] if len(of) else []
    for term in range(1, len(of)):
        copied.append(made.add(of.labels[term], [copied[arg] for arg in of.args[term]]))
    numbers = list[list[int]]()  # the values of the pattern's terms: several operands for a run
    for term, label in enumerate(pattern.labels):
        if label in found.wildcards:
            value = found.wildcards[label]
            runs = [copied[each] for each in value.written]
            numbers.append([-1, *runs, made.add(value.label, runs)] if value.label else runs)
        elif label in found.letters:
            numbers.append([copied[found.letters[label]]])
        else:
            args = list[int]()
            for arg in pattern.args[term]:
                of_arg = numbers[arg]
                flat = of_arg[0] == -1 and made.labels[of_arg[-1]] == label
                args += of_arg[1:-1] if flat else of_arg[-1:]
            numbers.append([made.add(label, args)])
    made.root = numbers[pattern.root][-1]
    return made


@settings(max_examples=40)
@given(trees(), st.permutations(LETTERS))
def test_a_renamed_formula_is_found_to_be_one(tree: FormulaTree, others: list[str]) -> None:
    new = relabeled(tree, dict(zip(LETTERS, others, strict=True)))
    asked, of = read_terms(tree), read_terms(new)
    assert asked.shapes[asked.root] == of.shapes[of.root]
    found = unify(asked, of, of.root, 10**6).substitution
    assert found is not None
    assert not found.wildcards


@settings(max_examples=60)
@given(trees(), trees())
def test_formulas_are_equal_up_to_renaming_if_some_renaming_makes_their_keys_equal(one, other):
    asked, of = read_terms(one), read_terms(other)
    renamings = [dict(zip(LETTERS, letters, strict=True)) for letters in permutations(LETTERS)]
    keys = {(made := read_terms(relabeled(one, names))).keys[made.root] for names in renamings}
    found = unify(asked, of, of.root, 10**6).substitution
    assert (found is not None) == (of.keys[of.root] in keys)


@settings(max_examples=60)
@given(trees(leaves=(*LETTERS[:2], "?p", "?q", "N!1"), depth=2), trees(depth=3))
def test_a_substitution_makes_the_pattern_the_term(pattern: FormulaTree, tree: FormulaTree) -> None:
    asked, of = read_terms(pattern), read_terms(tree)
    for term in parts(of):
        found = unify(asked, of, term).substitution
        if found is not None:
            made = substituted(asked, of, found)
            assert made.keys[made.root] == of.keys[term]
            assert len(set(found.letters.values())) == len(found.letters)


@settings(max_examples=40)
@given(trees(), st.data())
def test_a_formula_is_an_instance_of_itself_with_a_wildcard_for_a_sub_tree(tree, data):
    gone = data.draw(st.integers(0, len(tree.nodes) - 1))
    below, last = {gone}, gone
    for parent, child, _ in tree.edges:
        if parent in below:
            below.add(child)
            last = child
    kept = [*range(gone + 1), *range(last + 1, len(tree.nodes))]
    number = {old: new for new, old in enumerate(kept)}
    nodes = tuple("?w" if old == gone else tree.nodes[old] for old in kept)
    edges = tuple((number[parent], number[child], label) for parent, child, label in tree.edges if child in number)
    asked, of = read_terms(FormulaTree(nodes, edges, kind="opt")), read_terms(tree)
    # for a sum within a sum, or a negative one, the normal form has no separate term
    found = [unify(asked, of, term, 10**6).substitution for term in parts(of)]
    assert any(found)


def test_depth_and_width_are_unlimited() -> None:
    depth = 5_000
    nodes = tuple(["O!SUP"] * depth + ["V!𝑥"] + ["N!2"] * depth)
    edges = [(i, i + 1, "0") for i in range(depth)] + [(depth - 1 - i, depth + 1 + i, "1") for i in range(depth)]
    deep = read_terms(FormulaTree(nodes, tuple(edges), kind="opt"))
    assert unify(deep, deep, deep.root, 10**6).substitution is not None
    assert write_term(deep, deep.root)
    assert len(parts(deep)) == len(deep) == depth + 2
    wide = FormulaTree(
        ("U!plus", *["V!𝑥", "N!2"] * depth), tuple((0, i + 1, "0") for i in range(2 * depth)), kind="opt"
    )
    began = perf_counter()
    of = read_terms(wide)
    assert len(parts(of)) < 20
    assert perf_counter() - began < 20


def test_a_unification_stops_at_its_limit() -> None:
    many = "+".join(f"{a}{b}" for a, b in zip("abcdfghjklmn", "bcdfghjklmna", strict=True))
    other = "+".join(f"{a}{b}" for a, b in zip("abcdfghjklmn", "bcdfghjklman", strict=True))
    found = unify(terms(other), of := terms(many), of.root)
    assert found.substitution is None
    assert found.steps <= MOST_STEPS + 1


@pytest.mark.parametrize(
    ("label", "expected"),
    [("V!𝑥", True), ("V!x", True), ("V!𝐱", True), ("V!𝜆", True), ("V!italic-ϕ", True), ("V!𝜋", False), ("V!ℝ", False),
     ("V!′", False), ("V!&quest;", False), ("N!1", False), ("F!sin", False), ("?a", False), ("V!ab", False)],
)  # fmt: skip
def test_letters_are_single_and_latin_or_greek(label: str, expected: bool) -> None:
    assert is_letter(label) == expected


@pytest.mark.parametrize(
    "latex",
    ["x^{2}+y", r"\frac{a+b}{c}", r"\sqrt{x+1}", r"\sin \left(x+y\right)", "-a+b", r"2\cdot 3", r"\left(a+b\right)c",
     r"\int _{0}^{1}x^{2}\,dx", r"\left|x\right|", "n!", r"a\leq b", r"x\in A", "x_{i}^{2}"],
)  # fmt: skip
def test_written_latex_reads_as_the_term(latex: str) -> None:
    of = terms(latex)
    written = write_term(of, of.root)
    again = terms(written)
    assert again.keys[again.root] == of.keys[of.root]
    assert written == latex


@pytest.mark.parametrize(
    ("latex", "part", "expected"),
    [
        (r"\sin(x+y)^2 = z", "x+y", ["x+y"]), (r"a + b  + c", "c+b", ["b  + c"]),
        (r"\frac{x^{2}}{y} = \lambda", r"\lambda", [r"\lambda"]),
        (r"\frac{x^{2}}{y} = \lambda", r"x^2/y", [r"\frac{x^{2}}{y}"]),
        (r"\begin{align}a&=b\\&=c+1\end{align}", "a=c+1", ["a", "c+1"]),  # the ends of a chain
        (r"\begin{align}x&>y\\z&<w\end{align}", "w>z", ["z&<w"]), (r"x_1+x_{12}", "x_{12}", ["x_{12}"]),
    ],
)  # fmt: skip
def test_a_sub_expression_is_located_in_the_latex(latex: str, part: str, expected: list[str]) -> None:
    of, sought = formula(latex), terms(part)
    found = next(term for term in parts(of) if of.keys[term] == sought.keys[sought.root])
    assert [latex[start:end] for start, end in locate(latex, of, found)] == expected


def test_locating_ends_where_there_is_nothing_to_find() -> None:
    of = formula("x^2+" * 300 + "y")
    began = perf_counter()
    assert locate("z+" * 900, of, of.root) == locate("x^2+" * 600, of, of.root) == []
    assert perf_counter() - began < 10


def test_a_part_of_a_formula_is_found_in_its_latex_by_its_identity() -> None:
    def found(part: str, latex: str) -> list[str]:
        wanted = formula(part)
        return [latex[start:end] for start, end in find_part(latex, wanted.identity(wanted.root))]

    cases = {
        ("a+b", "x+y = (a+b)c"): "a+b",
        ("(x+1)^2", "x^2+(x+1)^2"): "(x+1)^2",
        ("x<y", r"\begin{align}c&=d\\x&<y\end{align}"): "x&<y",
        ("b+a", "c+a+b+d"): "a+b",  # some operands of a sum
        ("x+y", "x+y"): "x+y",
        (r"\sqrt{2}", r"\sqrt{2}+1"): r"\sqrt{2}",  # whose tree has the degree 2
        (r"\sqrt{x^2}", r"1=\sqrt{x^2}"): r"\sqrt{x^2}",
        (r"\sqrt[3]{2}", r"\sqrt[3]{2}+1"): r"\sqrt[3]{2}",
    }
    assert {case: found(*case) for case in cases} == {case: [part] for case, part in cases.items()}
    assert found("a+b", "xy") == found("a+b", "x+y") == found("a+b", r"\frac{") == []
