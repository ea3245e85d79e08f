"""Random text, elements and trees: a sound tree or a named error, whatever the converters are given."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.formula import (
    FormulaError,
    FormulaTree,
    opt_from_latex,
    opt_from_mathml,
    slt_from_latex,
    slt_from_mathml,
)
from pyterrier_mathamr.formula.formula_store import decode, encode, tree_number

CONVERTERS = [slt_from_mathml, opt_from_mathml, slt_from_latex, opt_from_latex]
PIECES = r"""a b x y 1 2 + - = < , ; : ! | ( ) [ ] ' _ ^ & # % ~ $ \{ \} { } \\ \left( \right) \frac \sqrt \sum \int
\sin \text \begin{cases} \end{cases} \mathbb \over \big \not \limits \newcommand \prime d dx \quad ∈ ≤"""
SOME_LATEX = st.lists(st.sampled_from(PIECES.split()), max_size=25).map(" ".join)
TAGS = """mrow mi mo mn msup msub msubsup mfrac msqrt mroot mtable mtr mtd mmultiscripts mprescripts munderover mstyle
mfenced menclose apply ci cn csymbol plus times set list interval matrix matrixrow share cerror root degree semantics
nonsense"""
PRESENTATION = "mrow msup msub msubsup mfrac msqrt mroot mtable mtr mtd munderover mstyle mfenced menclose nonsense"
CONTENT = "apply plus times set list interval matrix matrixrow cerror degree semantics nonsense"


def check(tree):
    assert tree.nodes
    assert [child for _, child, _ in tree.edges] == list(range(1, len(tree.nodes)))
    assert all(parent < child for parent, child, _ in tree.edges)
    assert decode(encode(tree), tree_number(encode(tree))) == tree


def check_tree_or_error(convert, source):
    """Either a sound tree, or an error with a place in the text that was read."""
    try:
        tree = convert(source)
    except FormulaError as refused:
        error = refused
    else:
        return check(tree)
    assert error.message
    assert 0 <= error.position <= len(error.source)


@pytest.mark.parametrize("convert", CONVERTERS)
@settings(max_examples=50)
@given(source=st.one_of(st.text(), st.binary().map(lambda b: b.decode("latin-1")), SOME_LATEX))
def test_any_text_gives_a_tree_or_an_error_with_its_place(convert, source):
    check_tree_or_error(convert, source)


@settings(max_examples=50)
@given(source=st.text().filter(lambda text: "<" not in text))
def test_text_without_an_element_gives_an_error(source):
    for convert in (slt_from_mathml, opt_from_mathml):
        with pytest.raises(FormulaError):
            convert(source)


def nested(tags, depth, leaf="x"):
    inner = "".join(f"<{tag}>{leaf}</{tag}>" for tag in tags[:depth])
    opened, closed = "".join(f"<{tag}>" for tag in tags[depth:]), "".join(f"</{tag}>" for tag in reversed(tags[depth:]))
    return f"<math>{opened}{inner}{closed}</math>"


@settings(max_examples=80)
@given(tags=st.lists(st.sampled_from(TAGS.split()), max_size=15), depth=st.integers(0, 15))
def test_any_nesting_of_elements_gives_a_tree_or_an_error_with_its_place(tags, depth):
    for convert in (slt_from_mathml, opt_from_mathml):
        check_tree_or_error(convert, nested(tags, depth))


@pytest.mark.parametrize(
    ("convert", "tags", "leaf"),
    [(slt_from_mathml, PRESENTATION, "<mi>x</mi>"), (opt_from_mathml, CONTENT, "<ci>x</ci>")],
)
@settings(max_examples=60)
@given(data=st.data())
def test_any_nesting_of_elements_around_a_symbol_gives_a_tree(convert, tags, leaf, data):
    chosen = data.draw(st.lists(st.sampled_from(tags.split()), min_size=1, max_size=15))
    check(convert(nested(chosen, data.draw(st.integers(1, len(chosen))), leaf)))


LETTERS = st.sampled_from(string.ascii_letters)


@st.composite
def layouts(draw, depth=0):
    """A random layout: a row of letters with scripts and fractions, as MathML, LaTeX, and label and children."""
    row = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["letter", "power", "fraction"] if depth < 3 else ["letter"]))
        letter = draw(LETTERS)
        if kind == "letter":
            row.append((f"<mi>{letter}</mi>", letter, f"V!{letter}", {}))
        elif kind == "power":
            xml, latex, script = draw(layouts(depth=depth + 1))
            row.append((f"<msup><mi>{letter}</mi>{xml}</msup>", f"{letter}^{{{latex}}}", f"V!{letter}", {"a": script}))
        else:
            (over, above, o), (under, below, u) = draw(layouts(depth=depth + 1)), draw(layouts(depth=depth + 1))
            latex = f"\\frac{{{above}}}{{{below}}}"
            row.append((f"<mfrac>{over}{under}</mfrac>", latex, "O!divide", {"o": o, "u": u}))
    node = None
    for _, _, label, children in reversed(row):
        node = (label, children if node is None else {**children, "n": node})
    xml, latex = ("".join(part) for part in list(zip(*row, strict=True))[:2])
    return f"<mrow>{xml}</mrow>", latex, node


@st.composite
def operations(draw, depth=0):
    """A random operator tree, as MathML and as label and children."""
    name = draw(st.sampled_from(["ci", "plus", "minus", "set"] if depth < 4 else ["ci"]))
    if name == "ci":
        letter = draw(LETTERS)
        return f"<ci>{letter}</ci>", (f"V!{letter}", [])
    operands = [draw(operations(depth=depth + 1)) for _ in range(draw(st.integers(1, 3)))]
    inner, nodes = "".join(source for source, _ in operands), [node for _, node in operands]
    if name == "set":
        return f"<set>{inner}</set>", (f"M!S-{len(nodes)}", nodes)
    return f"<apply><{name}/>{inner}</apply>", (("U!" if name == "plus" else "O!") + name, nodes)


def numbered(node, pairs_of):
    """Number a tree depth first by recursion: the judge of the converters' own numbering."""
    nodes, edges = [], []

    def visit(node, parent, label):
        index = len(nodes)
        nodes.append(node[0])
        if parent >= 0:
            edges.append((parent, index, label))
        for edge, child in pairs_of(node):
            visit(child, index, edge)

    visit(node, -1, "")
    return FormulaTree(tuple(nodes), tuple(edges))


@settings(max_examples=60)
@given(layouts())
def test_a_random_layout_tree_survives_the_way_through_mathml_and_latex(layout):
    xml, latex, node = layout
    expected = numbered(node, lambda n: [(e, n[1][e]) for e in "aocnbudew" if e in n[1]])
    assert slt_from_mathml(f"<math>{xml}</math>") == slt_from_latex(latex) == expected


@settings(max_examples=60)
@given(operations())
def test_a_random_operator_tree_survives_the_way_through_mathml(operation):
    source, node = operation
    expected = numbered(node, lambda n: [("0" if n[0][0] == "U" else str(i), c) for i, c in enumerate(n[1])])
    assert opt_from_mathml(f"<math>{source}</math>") == expected


@pytest.mark.parametrize(
    ("convert", "begin", "end", "leaf"),
    [
        (slt_from_mathml, "<mrow><mi>a</mi>", "</mrow>", "<mi>x</mi>"),
        (slt_from_mathml, "<mrow>", "<mi>a</mi></mrow>", "<mi>x</mi>"),
        (slt_from_mathml, "<msup><mi>a</mi>", "</msup>", "<mi>x</mi>"),
        (opt_from_mathml, "<apply><minus/>", "</apply>", "<ci>x</ci>"),
    ],
)
def test_3000_levels_of_mathml_do_not_overflow(convert, begin, end, leaf):
    tree = convert("<math>" + begin * 3_000 + leaf + end * 3_000 + "</math>")
    assert len(tree.nodes) == 3_001
    assert len(tree.tuples(1)) == 3_000


def test_entities_of_a_document_type_are_not_expanded():
    bomb = '<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><math><mi>&b;</mi></math>'
    assert not any("aaaa" in label for label in slt_from_mathml(bomb).nodes)
    outside = '<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/hostname">]><math><mi>&x;</mi><mi>y</mi></math>'
    assert set(slt_from_mathml(outside).nodes) <= {"V!y", "W!"}


def test_named_characters_and_a_bare_less_than_are_read():
    assert slt_from_mathml("<math><mi>&alpha;</mi></math>").nodes == ("V!α",)
    cell = '<math alttext="a<b"><mrow><mi>a</mi><mo><</mo><mi>b</mi></mrow></math>'
    assert slt_from_mathml(cell).nodes == ("V!a", "<", "V!b")
