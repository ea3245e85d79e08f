"""Posts to one graph: sentences under multi-sentence, placeholders exactly once, whatever a parser answers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.amr import AmrParser, DependencyAmrParser, decode_penman, encode_penman, get_parser
from pyterrier_mathamr.amr.parsing import PartParser, part_of
from pyterrier_mathamr.posts import MathPost, post_from_text


class Told(PartParser):
    """Answers with given texts."""

    name = "told"

    def __init__(self, *answers, unit="sentence"):
        self.answers, self.unit, self.asked = answers, unit, []

    def parse_units(self, units, unit):
        self.asked += map(" ".join, units)
        return [part_of(decode_penman(answer)) for answer in self.answers]


def graph_of(text, *answers):
    return encode_penman(Told(*answers).parse_post(post_from_text(text)))


CASES = [
    ("", [], "(a / amr-empty)"),
    ("Go.", ["(x / go-02)"], "(g / go-02)"),
    ("Go. Run.", ["(x / go-02)", "(x / run-02)"], "(m / multi-sentence :snt1 (g / go-02) :snt2 (r / run-02))"),
    ("$x$.", ["(f / FORMULA_0)"], "(f0 / FORMULA_0)"),
    ("Go $x$.", ["(x / go-02)"], "(g / go-02 :math (f0 / FORMULA_0))"),
    ("Go $x$.", ["(x / go-02 :ARG0 FORMULA_0)"], "(g / go-02 :ARG0 (f0 / FORMULA_0))"),
    ("Go $x$.", ['(x / name :op1 "FORMULA_0")'], "(n / name :op1 (f0 / FORMULA_0))"),
    ("Go $x$.", ["(x / go-02 :ARG0 (a / FORMULA_0 :mod (b / big)) :ARG1 (c / FORMULA_0 :mod (d / dog)))"],
     "(g / go-02 :ARG0 (f0 / FORMULA_0 :mod (b / big) :mod (d / dog)) :ARG1 f0)"),
    ("Go.", ["(x / go-02 :ARG0 (f / FORMULA_7))"], "(g / go-02 :ARG0 (ff / FORMULA-7))"),
    ("Go.", ["(m / multi-sentence :snt1 (a / b) :snt2 (c / d))"],
     "(m / multi-sentence :snt1 (b / b) :snt2 (d / d))"),
    ("Go.", ['(x / name :op1 "GMT" :op2 "x" :op3 y)'], '(n / name :op1 "GMT" :op2 x :op3 y)'),
    ("Go.", ["(x / Ω :ARG0 (y / Ω :ARG1 x))"], "(x / Ω :ARG0 (x2 / Ω :ARG1 x))"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "answers", "penman"), CASES)
def test_answers_are_merged_and_repaired(text, answers, penman):
    assert graph_of(text, *answers) == penman


def test_passages_have_at_most_500_tokens_and_end_with_sentences():
    parser = Told("(a / a)", "(b / b)", unit="passage")
    parser.parse_post(MathPost("\n".join(["Word " * 99 + "."] * 6), ()))
    assert [len(text.split()) for text in parser.asked] == [500, 100]


def test_parsers_are_known_by_name_or_by_what_they_can():
    assert isinstance(get_parser("dependency"), DependencyAmrParser)
    parser = Told()
    assert get_parser(parser) is parser
    assert isinstance(parser, AmrParser)
    for wrong in ("other", 3, object()):
        with pytest.raises(ConfigError, match="parser="):
            get_parser(wrong)


ATOMS = st.sampled_from(["FORMULA_0", "FORMULA_1", "FORMULA_9", "go-02", '"a b"', "Ω", '"FORMULA_1"', "-"])


@given(st.lists(st.tuples(ATOMS, st.booleans(), st.integers(0, 3)), min_size=1, max_size=8), st.integers(0, 3))
@settings(max_examples=80)
def test_whatever_is_answered_each_placeholder_is_one_node_of_a_graph_that_is_read_back(nodes, count):
    text = "".join(f" :r{role} ({'v' if named else 'w'}{i} / {atom}" if named else f" :r{role} (w{i} / n :c {atom}"
                   for i, (atom, named, role) in enumerate(nodes))  # fmt: skip
    answer = f"(top / top{text}{')' * len(nodes)})"
    graph = Told(answer).parse_post(MathPost("Go.", tuple(post_from_text("$x$ " * count).formulas)))
    assert decode_penman(encode_penman(graph)) == graph
    labels = [label for label in graph.labels if label.startswith("FORMULA_")]
    assert sorted(labels) == [f"FORMULA_{i}" for i in range(count)]
