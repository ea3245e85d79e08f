"""Drawings of graphs, read back as XML."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pytest

from mathamr_systems import save
from pyterrier_mathamr._common.drawing import (
    ROW,
    Palette,
    TreeNode,
    flow,
    palette,
    shortened,
    spread,
    text_width,
)
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.explain import Picture, draw_graph
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph
from pyterrier_mathamr.graph.structure import layout_of, virtual_part

NS = {"s": "http://www.w3.org/2000/svg"}
TEXT = """(m / multi-sentence
   :snt1 (s / solve-01 :ARG0 (w / we)
      :ARG1 (f / FORMULA_0 :opt (o / U!eq :op0 (o1 / V!x) :op0 (o2 / N!2))
                           :slt (t / V!x :slt-a (t1 / N!2) :slt-n (t2 / "=" :slt-n (t3 / N!2)))))
   :snt2 (k / know-01 :polarity - :ARG0 w)
   :math (g / FORMULA_1))"""
GRAPH = MathAMRGraph(
    decode_penman(TEXT), ("7", "8"), "154", sentence_texts=("Solve FORMULA_0.", "We <do> & know"), latex=("x<2", "y")
)


def nodes(picture: Picture, kind: str) -> list[str]:
    """The texts in the nodes of a kind, in writing order."""
    found = ET.fromstring(picture.svg).findall(".//s:g", NS)
    return [" ".join(str(t.text) for t in g.findall("s:text", NS)) for g in found if kind in g.get("class", "").split()]


def words(picture: Picture) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(picture.svg).findall("s:text", NS)]


def formulas(picture: Picture) -> list[str]:
    """The LaTeX of the formulas that are drawn as outlines."""
    found = ET.fromstring(picture.svg).findall("s:g[@class='outlines']/s:title", NS)
    return [str(title.text) for title in found]


def rectangle(rect: ET.Element) -> tuple[float, float, float, float]:
    left, top, width, height = (float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
    return left, top, left + width, top + height


def line_of(text: ET.Element) -> tuple[float, float, float, float]:
    """The room of a line of text: three quarters of its size above the base line."""
    x, y, size = float(text.get("x", "")), float(text.get("y", "")), int(text.get("font-size", "11"))
    return x, y - 0.75 * size, x + text_width(str(text.text), size) - 0.5, y


def graph_of(text: str) -> MathAMRGraph:
    graph: MathAMRGraph = GraphBuilder()(pd.DataFrame([{"docno": "d", "text": text}])).graph[0]
    return graph


def test_each_node_is_drawn_once_and_a_second_mention_as_a_dashed_leaf() -> None:
    picture = draw_graph(GRAPH)
    assert nodes(picture, "concept") == ["multi-sentence", "solve-01", "w / we", "know-01", "-", "w / we"]
    assert nodes(picture, "placeholder") == ["FORMULA_1", "FORMULA_0"]
    assert nodes(picture, "dashed") == ["w / we"]
    assert nodes(picture, "opt") == ["U =", "V x", "N 2"]
    assert nodes(picture, "slt") == ["V x", "N 2", "=", "N 2"]

    drawn = ET.fromstring(picture.svg)
    assert len(drawn.findall(".//s:rect[@class='formula dashed']", NS)) == 2
    assert len(drawn.findall(".//s:path[@class='link']", NS)) == 2
    assert formulas(picture) == ["y", "x<2", "x<2"], "in both boxes and in the sentence"
    assert " ".join(words(picture)).count("We <do> & know :snt2") == 1
    assert "154: 14 nodes, 2 sentences, 2 formulas" in words(picture)
    key = " ".join(words(picture)[1:])
    for meaning in (
        "V variable", "N number", "U operator, operands in any order", "edge a above", "drawn elsewhere",
        "number of an operand", "relation of the AMR graph",
    ):  # fmt: skip
        assert meaning in key
    for absent in ("function", "not understood", "matrix", "within"):
        assert absent not in key


def test_labels_cannot_break_out_of_the_picture() -> None:
    hostile = 'a"<script>alert(1)</script>&\x00\x1b'
    graph = MathAMRGraph(decode_penman("(a / x :ARG0 (b / FORMULA_0))"), ("",), hostile, latex=(hostile,))
    picture = draw_graph(graph)
    assert "<script>" not in picture.svg
    assert any("<script>" in word for word in words(picture)), "it is shown as text"
    assert {element.tag.rpartition("}")[2] for element in ET.fromstring(picture.svg).iter()} <= {
        "svg", "title", "defs", "rect", "g", "text", "tspan", "path", "use"
    }  # fmt: skip


def test_a_picture_needs_nothing_from_outside() -> None:
    picture = draw_graph(GRAPH)
    without_namespace = picture.svg.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|href=\"[^#]|@import|url\(|<script|<image|<style", without_namespace)
    used = set(re.findall('href="#([^"]*)"', picture.svg))
    assert used
    assert used == set(re.findall('<path id="([^"]*)"', picture.svg)), "each outline that is used, and no other"


def test_a_long_label_is_cut_and_shown_whole_on_demand() -> None:
    long = "antidisestablishmentarianism-" * 4
    graph = MathAMRGraph(decode_penman(f"(a / {long})"), (), "d")
    picture = draw_graph(graph, label_length=20)
    assert nodes(picture, "concept")[0].endswith(shortened(long, 20))
    assert long in picture.svg
    assert draw_graph(graph, label_length=200).width > picture.width


def test_no_two_nodes_of_a_real_post_overlap_and_all_lie_in_the_picture() -> None:
    formulas = r"$\sum_{n=1}^\infty \frac{1}{n^2} = \frac{\pi^2}{6}$, $\begin{pmatrix} a & b \\ c & d \end{pmatrix}$"
    graph = graph_of(
        f"Why does {formulas} and ${'+'.join(f'x_{i}^2' for i in range(30))}=1$ hold? I tried $x$ and $y$."
    )
    assert len(graph.amr.labels) > 200
    picture = draw_graph(graph)
    boxes = [rectangle(rect) for rect in ET.fromstring(picture.svg).findall(".//s:g[@class]/s:rect", NS)]
    for left, top, right, bottom in boxes:
        assert 0 <= left <= right <= picture.width
        assert 0 <= top <= bottom <= picture.height
    assert len(boxes) >= len(graph.amr.labels)
    boxes += [line_of(text) for text in ET.fromstring(picture.svg).findall("s:text", NS)]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (a, b)


def test_a_long_row_of_symbols_is_broken_and_a_deep_one_grows_downward() -> None:
    chain = [TreeNode("x", i - 1, "n" if i else "") for i in range(10_000)]
    placed = flow(chain, 400)
    assert placed.width <= 400
    assert len({*zip(placed.x, placed.y, strict=True)}) == 10_000
    deep = flow([TreeNode("x", i - 1, "a" if i else "") for i in range(10_000)], 400)
    assert deep.height == 10_000 * ROW
    assert spread(chain).height == ROW
    tree = spread([TreeNode(name, parent, "") for name, parent in (("a", -1), ("b", 0), ("c", 1), ("d", 1), ("e", 0))])
    assert [y / ROW for y in tree.y] == [0.5, 0.5, 0.5, 1.5, 2.5], "the first child is next to its parent"
    assert tree.x[2] == tree.x[3] > tree.x[1] == tree.x[4] > tree.x[0]
    row = [TreeNode("abc", i - 1, "n" if i else "") for i in range(6)]
    wide = text_width("abc") + 12
    placed = flow(row, 3 * wide + 20)
    assert [y / ROW for y in placed.y] == [0.5, 0.5, 0.5, 1.5, 1.5, 1.5]
    hung = flow([TreeNode("x", -1, ""), TreeNode("2", 0, "a"), TreeNode("=", 0, "n")], 400)
    assert hung.y == [ROW / 2, 3 * ROW / 2, ROW / 2]
    assert hung.x[2] > hung.x[1] > hung.x[0]


def test_virtual_nodes_are_drawn_with_all_their_edges() -> None:
    layout = layout_of(GRAPH.amr, 2)
    edges = virtual_part(layout, "both", "hierarchy", "none").edges
    picture = draw_graph(GRAPH)
    root = ET.fromstring(picture.svg)
    assert nodes(picture, "virtual") == ["document", "formula 1", "sentence 1", "formula 0", "sentence 2"]
    lines = root.findall("s:path[@class='virtual']", NS)
    assert len(lines) == sum(role == ":virtual_document" for _, role, _ in edges), "one to each of its neighbors"
    titles = [str(g.find("s:title", NS).text) for g in root.findall("s:g", NS) if "virtual" in g.get("class", "")]  # type: ignore[union-attr]
    counted = [
        int(found[1]) for text in titles if (found := re.search(r":virtual_(?:sentence|formula) to (\d+)", text))
    ]
    assert sum(counted) == sum(role != ":virtual_document" for _, role, _ in edges)


def test_the_frame_of_a_virtual_node_holds_its_nodes_and_no_other() -> None:
    root = ET.fromstring(draw_graph(GRAPH).svg)
    frames = [rectangle(rect) for rect in root.findall("s:rect[@class='members dashed']", NS)]
    chips = {
        kind: [rectangle(g.find("s:rect", NS)) for g in root.findall("s:g", NS) if kind in g.get("class", "").split()]  # type: ignore[arg-type]
        for kind in ("concept", "placeholder", "opt")
    }
    inside = [[inner for inner in chips["concept"] + chips["placeholder"] if within(inner, frame)] for frame in frames]
    assert [len(found) for found in inside] == [3, 3], "sentence 2 mentions a node of sentence 1"
    assert not any(within(inner, frame) for inner in chips["opt"] for frame in frames)
    boxes = [rectangle(rect) for rect in root.findall("s:rect[@class='formula dashed']", NS)]
    assert [sum(within(inner, box) for inner in chips["opt"]) for box in boxes] == [0, 3]


def within(inner: tuple[float, ...], outer: tuple[float, ...]) -> bool:
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def test_a_large_post_is_drawn_by_sentences_or_without_trees() -> None:
    second = draw_graph(GRAPH, sentences=[2])
    assert nodes(second, "concept") == ["multi-sentence", "know-01", "-", "w / we"]
    assert "1 of the sentences shown" in words(second)[0]
    bare = draw_graph(GRAPH, formulas="none")
    assert not nodes(bare, "opt") + nodes(bare, "slt")
    assert "7 nodes of trees not shown" in words(bare)
    assert bare.height < draw_graph(GRAPH).height
    with pytest.raises(ConfigError, match="1 to 2"):
        draw_graph(GRAPH, sentences=[3])
    with pytest.raises(ConfigError, match="'slt'"):
        draw_graph(GRAPH, formulas="all")  # type: ignore[arg-type]


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colors", [palette("light"), palette("dark")], ids=["light", "dark"])
def test_text_contrasts_with_its_background(colors: Palette) -> None:
    kinds = (colors.concept, colors.placeholder, colors.opt, colors.slt, colors.virtual)
    pairs = [(paint.fill, paint.text) for paint in kinds]
    pairs += [(ground, text) for ground in (colors.ground, colors.panel) for text in (colors.text, colors.quiet)]
    for ground, text in pairs:
        lower, higher = sorted((luminance(ground), luminance(text)))
        assert (higher + 0.05) / (lower + 0.05) >= 4.5


def test_a_theme_changes_only_colors(tmp_path: Path) -> None:
    light, dark = draw_graph(GRAPH), draw_graph(GRAPH, theme="dark")
    assert re.sub(r"#\w{6}", "", light.svg) == re.sub(r"#\w{6}", "", dark.svg)
    assert light.svg != dark.svg
    with pytest.raises(ConfigError, match="'light', 'dark'"):
        draw_graph(GRAPH, theme="grey")  # type: ignore[arg-type]
    assert save(light, tmp_path / "g.svg").read_text(encoding="utf-8") == light.svg == light._repr_svg_()
