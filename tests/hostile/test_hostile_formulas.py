"""Whatever the text of a formula is, a tree or a `FormulaError` comes out."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.formula import FormulaError, opt_from_latex, opt_from_mathml, slt_from_latex, slt_from_mathml

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
@settings(deadline=None, max_examples=300)
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
    assert tree.nodes if tree else message.endswith("^")


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
