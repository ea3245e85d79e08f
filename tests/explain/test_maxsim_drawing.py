"""The picture of a score: its numbers, colors and texts, read back from the SVG."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr._common.drawing import mixed, palette
from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.explain import ExplainError, Picture, draw_maxsim, explain_maxsim, similarities
from pyterrier_mathamr.explain.drawings import rounded
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph
from pyterrier_mathamr.model import MathAMR

NS = {"s": "http://www.w3.org/2000/svg"}
QUERY = MathAMRGraph(
    decode_penman("(f / find-01 :ARG1 (m / FORMULA_0))"), ("q_1",), "A.301",
    sentence_texts=("Find FORMULA_0 & <b>more</b>.",), latex=("x^2",),
)  # fmt: skip
DOCUMENT = MathAMRGraph(
    decode_penman("(m / multi-sentence :snt1 (s / see-01 :ARG1 (f / FORMULA_0)) :snt2 (h / hold-01))"), ("",), "154",
    sentence_texts=("See FORMULA_0.", "It holds."), latex=("a+b",),
)  # fmt: skip
QUERY_EMBS = np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)  # formula, sentence, document
DOC_EMBS = np.array([[0, 1], [1, 0], [0.8, 0.6], [-1, 0]], dtype=np.float32)  # formula, two sentences, document
WEIGHTS = {"query_weights": [0.5, 2.0, 1.0], "query_document_weight": 0.25}


def texts(picture: Picture, kind: str) -> list[str]:
    """The texts in the chips of a kind, in the order of painting."""
    found = ET.fromstring(picture.svg).findall("s:g", NS)
    return [str(g.find("s:text", NS).text) for g in found if kind in g.get("class", "").split()]  # type: ignore[union-attr]


def words(picture: Picture) -> list[str]:
    return [str(text.text) for text in ET.fromstring(picture.svg).findall("s:text", NS)]


def last_row(picture: Picture) -> tuple[list[float], float]:
    """The numbers of the terms, and the sum."""
    after = words(picture)[words(picture).index("in the score") + 1 :]
    return [float(number) for number in after[:-1]], float(after[-1].removeprefix("= "))


def test_the_numbers_of_the_last_row_are_the_weighted_terms_and_add_up_to_the_score() -> None:
    picture = draw_maxsim(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS, **WEIGHTS)
    terms, score = last_row(picture)
    assert terms == pytest.approx([0.5, 2.0, 0.96, 0.25 * -0.6])
    assert score == pytest.approx(sum(terms)) == pytest.approx(3.31)
    assert words(picture)[0] == "A.301 and 154: score 3.310"
    short = draw_maxsim(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS, **WEIGHTS, parts=2)  # further parts are one column
    terms, score = last_row(short)
    assert terms == pytest.approx([2.0, 0.96, 0.5, 0.25 * -0.6])
    assert score == pytest.approx(3.31)
    assert "others" in words(short)


def test_each_cell_shows_weight_times_cosine_and_the_best_of_a_column_is_framed() -> None:
    picture = draw_maxsim(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS, **WEIGHTS)
    root = ET.fromstring(picture.svg)
    cells = [rect for rect in root.findall("s:rect", NS) if "cell" in rect.get("class", "").split()]
    shown = words(picture)
    numbers = [float(word) for word in shown[: shown.index("in the score")] if re.fullmatch(r"-?\d+\.\d\d", word)]
    cosines = QUERY_EMBS @ DOC_EMBS.T * np.array([[0.5], [2.0], [1.0]])
    assert numbers == pytest.approx([*cosines.T.ravel(), 0.25 * -0.6], abs=0.005), "row by row, then the product"
    best = [i for i, cell in enumerate(cells) if "best" in cell.get("class", "")]
    assert best == [1, 3, 8, 12], "sentence 1, formula, sentence 2, and the product"


def test_a_part_of_the_query_and_its_match_have_one_number_and_color() -> None:
    picture = draw_maxsim(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS, **WEIGHTS)
    # The sentence contributes most (2.0), then the document (0.96 - 0.15), then the formula (0.5).
    assert texts(picture, "badge") == ["2", "1", "3", "2", "3", "1", "2"], "query: whole, sentence, formula; document"
    assert texts(picture, "column") == ["3", "1", "2", "2 × 2"]
    root = ET.fromstring(picture.svg)
    fills = {
        g.find("s:text", NS).text: g.find("s:rect", NS).get("fill")  # type: ignore[union-attr]
        for g in root.findall("s:g", NS)
        if "badge" in g.get("class", "")
    }
    assert len(set(fills.values())) == 3
    marked = [rect.get("fill") for rect in root.findall("s:rect", NS) if "part" in rect.get("class", "").split()]
    of_query, of_document = (mixed(palette("light").panel, str(fills[number]), 0.35) for number in "31")
    assert marked == [of_query, of_document], "the formula of the query, and that of the document"
    assert not re.search("#[0-9a-fA-F]{8}", picture.svg), "translucent colors are painted as full ones in PNG and PDF"


def test_both_texts_are_shown_with_their_formulas_typeset_and_hostile_text_as_text() -> None:
    picture = draw_maxsim(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS)
    drawn = [str(title.text) for title in ET.fromstring(picture.svg).findall("s:g[@class='outlines']/s:title", NS)]
    assert drawn == ["x^2", "a+b", "a+b", "a+b"], "in both texts, and in the table as itself and in its sentence"
    assert "<b>more</b>." in words(picture)
    assert not {"FORMULA_0", "A.301", "154"} & set(words(picture))
    assert "<b>" not in picture.svg


def test_no_number_of_the_table_leaves_its_cell_and_no_cell_the_picture() -> None:
    picture = draw_maxsim(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS, query_weights=[100.0, 2.0, 1.0])
    rects = [r for r in ET.fromstring(picture.svg).findall("s:rect", NS) if "cell" in r.get("class", "").split()]
    boxes = [tuple(float(rect.get(name, "")) for name in ("x", "y", "width", "height")) for rect in rects]
    for i, (x, y, width, height) in enumerate(boxes):
        assert x + width <= picture.width
        assert y + height <= picture.height
        assert all(x + width <= a or a + c <= x or y + height <= b or b + d <= y for a, b, c, d in boxes[:i])


def test_a_real_score_is_the_sum_of_what_is_shown() -> None:
    frame = pd.DataFrame({"docno": ["1", "2"], "text": ["Why is $x^2 \\geq 0$? I tried $x=1$.", "A square $a^2$."]})
    graphs = GraphBuilder()(frame).graph.tolist()
    model = MathAMR.from_pretrained("mathamr-plus-mini")
    query, document = model.encode(graphs)
    encoded = model.query_encoder()(pd.DataFrame({"qid": ["1"], "query_graph": graphs[:1]})).iloc[0]
    of_rows, blend = encoded["query_weights"], encoded["query_document_weight"]
    by_hand = float((of_rows * (query @ document.T).max(axis=1)).sum() + blend * query[-1] @ document[-1])
    options = {"query_weights": of_rows, "query_document_weight": blend}
    terms, score = last_row(draw_maxsim(graphs[0], query, graphs[1], document, **options))
    assert explain_maxsim(graphs[0], query, graphs[1], document, **options).score == pytest.approx(by_hand)
    assert score == pytest.approx(sum(terms), abs=1e-9) == pytest.approx(by_hand, abs=6e-4)


def test_rounded_numbers_add_up_to_the_rounded_sum() -> None:
    assert rounded([0.3333, 0.3333, 0.3334], 2) == [0.33, 0.33, 0.34]
    assert rounded([-0.126, 0.004], 2) == [-0.12, 0.0]
    assert rounded([], 3) == []
    for total in (2.6745, 0.0005, 1.0015, -3.0005):
        assert f"{sum(rounded([total, 0.0], 3)):.3f}" == f"{total:.3f}", "as the score is printed"
    numbers = np.random.default_rng(0).normal(size=50).tolist()
    assert sum(rounded(numbers, 3)) == pytest.approx(round(sum(numbers), 3))
    assert np.abs(np.array(rounded(numbers, 3)) - numbers).max() <= 0.001


def test_the_table_of_cosines_has_a_row_for_each_part_of_the_query_and_other_vectors_are_refused() -> None:
    table = similarities(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS)
    assert table.to_numpy() == pytest.approx(QUERY_EMBS @ DOC_EMBS.T)
    assert table.index.get_level_values("kind").tolist() == ["formula", "sentence", "document"]
    with pytest.raises(ExplainError, match="do not fit"):
        similarities(QUERY, QUERY_EMBS, DOCUMENT, np.zeros((4, 3), dtype=np.float32))
    with pytest.raises(ExplainError, match="weights of shape"):
        draw_maxsim(QUERY, QUERY_EMBS, DOCUMENT, DOC_EMBS, query_weights=[1.0])
