"""Penman text as others write it: each repair by itself, and nothing repaired that is right."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.amr import PenmanError, decode_penman, encode_penman
from pyterrier_mathamr.amr.lenient import decode_leniently

REPAIRS = [
    ("(a / b", "(a / b)", "a closing bracket added"),
    ("(a / b))", "(a / b)", "a closing bracket too many left out"),
    ("(a / b) :x (c / d))", "(a / b :x (c / d))", "a closing bracket too early moved to the end"),
    ("(a / b) (c / d)", "(a / b)", "text after the graph left out"),
    ("AMR: (a / b)", "(a / b)", "text before the graph left out"),
    ("(a / b :x (/ c))", "(a / b :x (x1 / c))", "a variable made"),
    ("(a / b :x (/ x1))", "(a / b :x (x2 / x1))", "a variable made"),
    ("(a / b :x (a / c) :y a)", "(a / b :x (x1 / c) :y x1)", "a variable defined twice renamed"),
    ("(a b :x c)()", "(a / b :x c)", "a slash before the concept added"),
    ("(a / b (c / d))", "(a / b :mod (c / d))", "a role added"),
    ("(a / b :x/y c)", "(a / b :x-y c)", "a role written with other characters"),
    ('(a / b :x New York :y (c / "d e"))) ', '(a / b :x "New York" :y (c / "d e"))',
     "a label of several words put in quotes"),
    ('(n / name :op1 "Foo :op2 "Bar")', '(n / name :op1 Foo :op2 "Bar")',
     "a quotation mark without its partner left out"),
    ('(u / times :op0(V1 / "))', '(u / times :op0 (V1 / "\\""))', "a label with other characters put in quotes"),
    ("(F1 / : :op0(u / http://x.org/#a))", '(F1 / ":" :op0 (u / "http://x.org/#a"))',
     "a label with other characters put in quotes"),
    ("(a / b\n# a note\n:x c)", "(a / b :x c)", "a comment inside the graph left out"),
    ("(a / b :instance c)", "(a / b :mod c)", "a second concept made a node"),
    ("(c / come-21 :arg0 (i / i) :arg1-of c :ARG2-OF c :OP1 c)",
     "(c / come-21 :ARG0 (i / i) :ARG1-of c :ARG2-of c :op1 c)", "the case of a role"),
    ("(a / and :op1 (f / formula_0) :op2 formula_12)", "(a / and :op1 (f / FORMULA_0) :op2 FORMULA_12)",
     "the case of a placeholder"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "meant", "repair"), REPAIRS, ids=[text for text, _, _ in REPAIRS])
def test_each_repair_is_made_and_counted_by_name(text, meant, repair):
    graph, repairs = decode_leniently("# ::id 1\n" + text)
    assert graph == decode_penman("# ::id 1\n" + meant)
    assert repairs[repair] >= 1
    if repair not in ("the case of a role", "the case of a placeholder"):
        with pytest.raises(PenmanError):
            decode_penman(text)


@pytest.mark.parametrize(
    "text",
    [
        r"(O1 / interval$C-C$$ :op0(T1 / \binom) :op1 (T2 / {align*}a) :op2(F1 / $##$) :op3 (V1 / &comma;))",
        '# ::id 1 ::snt a b\n(a / "and"~e.1 :op1 (b / b~e.4,5) :ARG0-of~e.3 b~e.2 :op3 "x \\" y" :x (E1 / ))',
        "(f / FORMULA_0 :opt (t / V!x :op0 formula_1) :slt (t2 / V!x :slt-n (t3 / V!y :slt-%7E t)))",
        "(x)",
    ],
)
def test_valid_penman_is_read_as_by_the_strict_codec(text):
    assert decode_leniently(text) == (decode_penman(text), {})


@pytest.mark.parametrize("text", ["", "# ::id 1", "no graph", "((", "()", ")(", "# (a / b)"])
def test_a_text_without_a_graph_is_refused(text):
    with pytest.raises(PenmanError) as caught:
        decode_leniently(text, first_line=7)
    assert caught.value.line >= 7
    assert decode_leniently('"(a / b')[1]


PIECES = st.sampled_from(
    [*'()":/~#\\$ \n', " / ", "a", "b", ":ARG0", ":arg1-of", ":instance", '"c d"', "~e.4", "\n# ::id 3\n", "x1", "\x85",
     "\u2028", "\ud835", "\x00", "\xa0", "formula_0", "FORMULA_1", "multi-sentence", ":snt1", ":opt", "(a / b", "::"]
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(PIECES, max_size=40).map("".join) | st.text())
def test_any_text_is_a_graph_that_can_be_written_or_is_refused(text):
    try:
        graph, _ = decode_leniently(text)
    except PenmanError:
        return
    assert decode_penman(encode_penman(graph)) == graph


@pytest.mark.parametrize(
    ("text", "size", "repairs"),
    [
        ("(a / b " * 5_000, 5_000,
         {"a role added": 4_999, "a variable defined twice renamed": 4_999, "a closing bracket added": 1}),
        ("(a / b :x " * 5_000 + ")" * 5_001, 5_001,
         {"a variable defined twice renamed": 4_999, "a closing bracket too many left out": 1}),
        ('(a / " ' + '"\\ ' * 20_000, 1,
         {"a label of several words put in quotes": 1, "a quotation mark without its partner left out": 1,
          "a closing bracket added": 1}),
        ("(a / b" + ") :x c" * 5_000, 5_001,
         {"a closing bracket too early moved to the end": 5_000, "a closing bracket added": 1}),
    ],
    ids=["no role", "open", "quotes", "closed"],
)  # fmt: skip
def test_deep_and_long_damage_is_repaired(text, size, repairs):
    graph, made = decode_leniently(text)
    assert (len(graph.labels), made) == (size, repairs)


def test_all_formulas_as_mathamr_writes_them_are_read(shared_data):
    with gzip.open(shared_data / "formula-conformance" / "amr.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if "amr" in row]
    repaired = {row["id"] for row in rows if decode_leniently(row["amr"])[1]}
    assert len(rows) > 1400
    assert repaired == {row["id"] for row in rows if not row["penman_ok"]}
