"""Formulas as outlines, and sentences with formulas in lines of a known width."""

import xml.etree.ElementTree as ET

import pytest

from pyterrier_mathamr._common.drawing import Canvas, Outlines
from pyterrier_mathamr.formula.display.typesetting import formula_html, inline_html, paragraph, typeset
from pyterrier_mathamr.posts import post_from_any


def drawn(latex: str, room: float = 1_000.0) -> Outlines:
    formula = typeset(latex, 14, room)
    assert formula is not None
    return formula


def test_a_fraction_is_higher_and_deeper_than_its_numerator() -> None:
    fraction, letter = drawn(r"\frac{a}{b}"), drawn("a")
    assert fraction.ascent > letter.ascent
    assert fraction.descent > letter.descent
    assert "<rect" in fraction.body
    assert len(fraction.symbols) == 2
    assert len(drawn("aaa").symbols) == 1, "each outline once"


def test_a_formula_without_room_is_set_smaller_and_not_below_what_is_legible() -> None:
    wide = drawn("a+b+c+d")
    smaller = drawn("a+b+c+d", 0.8 * wide.width)
    assert smaller.width == pytest.approx(0.8 * wide.width)
    assert smaller.ascent == pytest.approx(0.8 * wide.ascent)
    assert typeset("a+b+c+d", 14, 0.5 * wide.width) is None


@pytest.mark.parametrize(
    "latex",
    ["\\", r"\unknown{x}", "a&b&&", "x" * 5_000, r"\left(" * 40 + "x" + r"\right)" * 40,
     r"\begin{pmatrix}" * 9 + "x" + r"\end{pmatrix}" * 9, r"\binom{1}{" * 30 + "x" + "}" * 30],
)  # fmt: skip
def test_a_formula_that_is_slow_to_typeset_stays_latex(latex: str) -> None:
    assert typeset(latex, 14, 1e9) is None


def test_outlines_are_well_formed_and_hold_no_text_of_the_formula() -> None:
    canvas = Canvas()
    canvas.outlines(0, 20, drawn(r"\text{<script>alert(1)</script>} < \sqrt{2}"), "#000000")
    root = ET.fromstring(canvas.picture(100, 40, "#ffffff", "").svg)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {
        "svg", "title", "defs", "path", "rect", "g", "use"
    }  # fmt: skip


def test_lines_are_no_wider_than_their_room_and_nothing_in_them_overlaps() -> None:
    text = (
        "For every FORMULA_0, and (by induction) FORMULA_1: there is FORMULA_2 such that antidisestablishmentarianism."
    )
    written = paragraph(text, [r"\epsilon>0", r"\sum_{i=0}^n i", "N"], 150.0)
    assert len(written.lines) > 3
    assert [piece.text for line in written.lines for _, piece in line.pieces if piece.drawn] == [
        r"\epsilon>0", r"\sum_{i=0}^n i", "N"
    ]  # fmt: skip
    for line in written.lines:
        ends = [at + piece.width for at, piece in line.pieces]
        assert ends[-1] <= 160.0, "punctuation may hang over by a letter"
        assert all(end <= at for end, (at, _) in zip(ends, line.pieces[1:], strict=False))
        assert line.ascent >= max([9.0, *(piece.drawn.ascent for _, piece in line.pieces if piece.drawn)])
    # punctuation stays next to the formula that it follows
    room = drawn("x+y+z").width + 2
    written = paragraph("FORMULA_0, FORMULA_0.", ["x+y+z"], room)
    assert [[piece.text for _, piece in line.pieces] for line in written.lines] == [["x+y+z", ","], ["x+y+z", "."]]
    written = paragraph("word " * 100, (), 200.0, lines=2)  # a long text ends in an ellipsis
    assert len(written.lines) == 2
    assert written.lines[1].pieces[-1][1].text == "…"
    assert written.width <= 200.0


def test_a_part_of_a_formula_is_marked_in_each_cell_and_nothing_else_is() -> None:
    assert '<mfrac><mrow class="matched"><mi>a</mi>' in formula_html(r"\frac{a+b}{2}", parts=[(6, 9)])
    latex = r"\begin{align}x&>y\\z&<w\end{align}"
    start = latex.index("z")
    marked = formula_html(latex, parts=[(start, start + 4)])
    assert marked.count('<mrow class="matched">') == 2
    assert "mathcolor" not in marked
    assert formula_html(r"\frac{a+b}{2}", parts=[(3, 9)]) == formula_html(r"\frac{a+b}{2}")
    colored = r"\textcolor{Mulberry}{x}+y"
    assert formula_html(colored, parts=[(24, 25)]) == formula_html(colored)


def test_an_eqnarray_is_set_as_the_lines_that_it_aligns_and_a_formula_in_a_text_as_a_formula() -> None:
    for name in ("eqnarray", "eqnarray*"):
        written = formula_html(rf"\begin{{{name}}} a&=&b+c\\ &\le& d \end{{{name}}}")
        assert written.startswith("<math")
        assert (written.count("<mtr"), written.count("<mtd")) == (2, 4)
    shown = formula_html(r"f(x) = 1 \quad \text{when $x$ is large}")
    assert "<mtext>when " in shown.replace("\N{NO-BREAK SPACE}", " ")
    assert "<code" not in shown


def test_punctuation_is_in_one_span_with_the_formula_before_it_and_other_text_is_not() -> None:
    post = post_from_any("So $x$, $y$ and $z$).")
    html = inline_html(post.text, post)
    assert html.count('<span class="joined">') == 2
    assert "</math></span>,</span> <span" in html
    assert "</math></span> and" in html
    assert html.endswith("</math></span>).</span>")
