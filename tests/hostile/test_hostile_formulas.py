"""Any text of a formula gives a tree or a `FormulaError`."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from pyterrier_mathamr.formula import (
    FormulaError,
    one_text,
    opt_from_latex,
    opt_from_mathml,
    slt_from_latex,
    slt_from_mathml,
    trees_from_latex,
)
from pyterrier_mathamr.formula.display.typesetting import formula_html
from pyterrier_mathamr.formula.tex import converter
from pyterrier_mathamr.graph import GraphBuilder

READERS = [slt_from_mathml, opt_from_mathml, slt_from_latex, opt_from_latex]
WORDS = r"""
<?xml version="1.0"?> <?xml-stylesheet <?xml ?> <!DOCTYPE [ ]> &a; %a; &bogus; &lt &amp; <![CDATA[ ]]> <!-- --> &#0;
&#xD800; &#xDFFF; &#x110000; &#55296 <m:mi> </m:mi> <mi> </mi> <mo> <mrow> </mrow> <mfrac> <msup> <mtable> <mtr> <mtd>
<apply> <plus/> </apply> <ci> <csymbol> <mmultiscripts> <mprescripts/> \frac \left \right \def\a \newcommand{\a}[
\begin{array} { } ^ _ & % $ # ~ ' < > = / ( x 1"""
PIECES = [
    *WORDS.split(),
    '<?xml version="1.0" encoding="UTF>8"?>',
    '<?xml version="1.0" encoding="UTF-16"?>',
    "<?xml version='1.0' encoding='latin-1'",
    '<!ENTITY a "b">',
    '<!ENTITY % a SYSTEM "file:///etc/passwd">',
    '<math xmlns="http://www.w3.org/1998/Math/MathML">',
    '<mi mathvariant="',
    '<mtable columnspan="9',
    *"\x00\x1b\x85\u2028\ue000\ue001\ue004\ufeff\ufffe\uffff\ud800\udfff\U0010ffff\t\n\r ",
]


@pytest.mark.parametrize("read", READERS)
@settings(deadline=None, max_examples=100)
@given(
    head=st.sampled_from(["", "<math>", *PIECES[:8]]),
    source=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=15).map("".join),
)
@example(head='<?xml version="1.0" encoding="UTF>8"?>', source="<math><mi>x</mi></math>")
@example(head='<?xml version="1.0"?>', source='<?xml version="1.0" encoding="UTF-8"?><math><mi>x</mi></math>')
@example(head="<math><mi>", source="x&#xD800;")
def test_nothing_else_comes_out(read, head, source):
    try:
        tree, message = read(head + source), ""
    except FormulaError as error:
        tree, message = None, str(error)
    assert tree.nodes if tree else message


@pytest.mark.parametrize(
    "declaration", ['<?xml version="1.0" encoding="UTF>8"?>', ' <?xml version="1.0"?>' * 2, "<?xml"]
)
def test_a_declaration_is_passed_over_or_is_all_there_is(declaration):
    if "?>" in declaration:
        assert slt_from_mathml(f"{declaration}<math><mi>x</mi></math>").nodes == ("V!x",)
    else:
        with pytest.raises(FormulaError):
            slt_from_mathml(f"{declaration}<math><mi>x</mi></math>")


def test_a_character_that_xml_does_not_allow_is_left_out_and_another_is_read():
    assert slt_from_mathml("<math><mi>a&#xD800;&#0;&#x110000;</mi><mo>&#x2b;</mo").nodes == ("V!a", "+")
    assert slt_from_mathml(f"<math><mi>a&#{'9' * 5000};</mi").nodes == ("V!a",)


@pytest.mark.parametrize(
    "place", ["<mi>&l9;</mi>", '<mi mathvariant="&l9;">x</mi>', '<mfenced open="&l9;">x</mfenced>']
)
def test_entities_that_a_text_declares_are_not_expanded(place):
    declared = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "ha" * 10}">' for i in range(10))
    labels: list[str] = []
    refused = 0
    for deep in ("", "<mrow>" * 3000):
        source = f"<!DOCTYPE math [{declared}]>{deep}{place}{deep.replace('<', '</')}"
        for read in (slt_from_mathml, opt_from_mathml):
            try:
                labels += read(source).nodes
            except FormulaError:
                refused += 1
    assert "ha" not in "".join(labels)
    assert refused < 4  # some are read


BOMB = r"\def\a{\b\b}\def\b{\c\c}\def\c{\d\d}\def\d{\e\e}\def\e{((}\a\a\a\a"
NEVER = [  # inputs for which math-core would need ages
    "(" * 40, "⟨" * 40, "⦅" * 40, r"\lAngle " * 40, r"\sin(" * 40, "((]" * 40, r"\mathopen{(}" * 40, r"\bigl(" * 40,
    r"\pmod\sqrt " * 40, r"\def\a{(}" + r"\a" * 40, r"\newcommand\a[1]{[#1}" + r"\a x" * 40, BOMB, r"\bra_a" * 40,
    r"\prescript\wedge&a\braket" * 33,
    r"\left(" + "(" * 40 + r"\right)", "(^2" * 40, r"\def\a{" + "x" * 20_000 + "}" + r"\a" * 900,
]  # fmt: skip


@pytest.mark.parametrize("latex", NEVER, ids=range(len(NEVER)))
def test_no_formula_exceeds_its_time_limit(latex):
    start = time.monotonic()
    shown = formula_html(latex)
    trees_from_latex(latex)
    assert time.monotonic() - start < 60  # it would be years
    assert shown.startswith(("<math", "<code"))


def test_formulas_with_many_fences_and_with_definitions_are_read_as_others():
    many = "+".join("(a+b)" for _ in range(20))
    assert opt_from_latex(many).nodes == ("U!plus", *("U!plus", "V!𝑎", "V!𝑏") * 20)
    assert slt_from_latex("(" * 40).nodes == ("(",) * 40
    assert opt_from_latex(r"\R+1", macros=r"\newcommand{\R}{\mathbb{R}}").nodes == opt_from_latex(r"\mathbb{R}+1").nodes
    assert opt_from_latex(r"\def\a{(}\a x)" + "+y" * 20).nodes == opt_from_latex("x" + "+y" * 20).nodes


def test_many_fences_are_shown_in_their_usual_size():
    shown = formula_html("(" * 13 + "x" + ")" * 13)
    assert shown.count('<mo stretchy="false">(</mo>') == shown.count('<mo stretchy="false">)</mo>') == 13
    assert formula_html(r"\lvert x" * 13).count('stretchy="false"') == 13
    assert "minsize" in formula_html(r"\Bigg(" + "(" * 13)


def test_a_formula_over_the_limit_is_refused_by_name_and_one_at_the_limit_is_read(monkeypatch):
    monkeypatch.setattr(converter, "LONGEST", 30)
    assert slt_from_latex("x" * 30).nodes
    with pytest.raises(FormulaError, match="31 characters, more than the 30"):
        slt_from_latex("x" * 31)
    with pytest.raises(FormulaError, match="more than"):  # what the macros of its post write counts
        slt_from_latex("x" * 20 + r"\a", macros=r"\newcommand{\a}{abcabcabcabc}")


def test_a_conversion_that_is_ended_is_a_named_error(monkeypatch):
    def over(latex):
        raise converter.OverLimitError("it needs more than 1 s")

    monkeypatch.setattr(converter, "_elsewhere", over)
    assert formula_html("x(" * 20) == f'<code class="tex">{"x(" * 20}</code>'
    assert trees_from_latex("x(" * 20).slt is None
    with pytest.raises(FormulaError, match="cannot be converted: it needs more than 1 s"):
        slt_from_latex("x(" * 20)


TEX = r"""
\frac \sqrt \sqrt[ \left \right \left( \right) \big \bigl \not \pmod \text{ \mathbb \over \limits \def\a{ \a \\ \\[
\begin{array} \begin{matrix} \end{matrix} \end{array} \color \href{javascript:x} \label{ \tag{
{ } ( ) [ ] | ^ _ & # ' $ % < > " / 1"""


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.one_of(st.sampled_from([*TEX.split(), *PIECES]), st.text(max_size=3)), max_size=12).map("".join),
    st.sampled_from([1, 1, 2, 20]),
)
def test_any_text_is_shown_as_safe_html(piece, times):
    shown = formula_html(piece * times)
    assert shown.encode().startswith((b"<math", b"<code"))
    parsed = etree.fromstring(shown, etree.XMLParser(huge_tree=True))
    assert not any(
        name.startswith("on") or name in ("href", "src", "style") for node in parsed.iter() for name in node.attrib
    )
    assert all(node.tag.startswith("m") or node.tag == "code" for node in parsed.iter())


def test_after_a_few_formulas_of_a_text_that_took_too_long_no_other_of_it_is_tried(monkeypatch) -> None:
    tried = []

    def over(latex):
        tried.append(latex)
        raise converter.OverLimitError("it needs more than 1 s")

    monkeypatch.setattr(converter, "_elsewhere", over)
    hostile = [rf"x_{{{i}}}" + "+y" * 1_000 for i in range(10)]
    with one_text():
        assert all(formula_html(latex).startswith("<code") for latex in hostile)
        assert tried == hostile[:3]
        assert formula_html("x+y").startswith("<math")
    assert formula_html(hostile[9]).startswith("<code")
    assert tried == [*hostile[:3], hostile[9]]  # untried formulas were not remembered
    tried.clear()
    text = " ".join(f"${latex}$" for latex in hostile)
    graph = next(iter(GraphBuilder().transform_iter([{"docno": "d", "text": f"{text} and $x+y$"}])))["graph"]
    assert graph.n_formulas == 11
    assert len(tried) == 3
