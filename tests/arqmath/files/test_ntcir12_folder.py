"""Folders of NTCIR-12 formula browsing: both layouts of topics, decimal grades, and what breaks them."""

import gzip
import shutil
from pathlib import Path

import ir_measures
import pandas as pd
import pytest

from mathamr_systems import NTCIR12Folder
from pyterrier_mathamr.arqmath import NTCIR12_MEASURES, ARQMathError, MissingFileError
from pyterrier_mathamr.formula import trees_from_latex

EXAMPLE = Path(__file__).parents[2] / "data" / "ntcir12"
MATH = (
    '<topics xmlns="http://ntcir-math.nii.ac.jp/" xmlns:m="http://www.w3.org/1998/Math/MathML" '
    'xmlns:mws="http://search.mathweb.org/ns"><topic><num>T-1</num><query>\n<formula id="f.0">{}</formula></query>'
    "</topic></topics>"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "ntcir"
    shutil.copytree(EXAMPLE, path)
    return path


def test_both_layouts_have_the_same_topics(folder: Path) -> None:
    from_xml = NTCIR12Folder(folder).topics()
    (folder / "topics.xml").unlink()
    from_table = NTCIR12Folder(folder).topics()
    assert from_xml["qid"].tolist() == [f"NTCIR12-MathWiki-{number}" for number in (1, 2, 3, 21, 22)]
    assert from_table["qid"].tolist() == from_xml["qid"].tolist()
    assert from_table["wildcards"].tolist() == from_xml["wildcards"].tolist() == [False, False, False, True, True]
    for one, other in zip(from_xml["latex"], from_table["latex"], strict=True):
        assert trees_from_latex(one) == trees_from_latex(other)  # topic 21 has no LaTeX in the XML


def test_grades_are_decimal_and_formulas_are_read_in_order(folder: Path) -> None:
    read = NTCIR12Folder(folder)
    qrels = read.qrels()
    assert list(qrels.columns) == ["qid", "docno", "label"]
    assert qrels.iloc[0].tolist() == ["NTCIR12-MathWiki-1", "Quadratic_equation:2", 4]
    formulas = list(read.formulas())
    assert formulas[0] == ("Quadratic_equation:0", "ax^2+bx+c=0")
    assert ("Empty_formula:0", "") in formulas
    assert len(formulas) == read.count() == 32
    (folder / "qrels").write_text("1\txxx\tA:1\t2.9\r\n\n1 xxx B\u00a0C:1 0.0\n1 xxx A:1 2.9\n")
    assert NTCIR12Folder(folder).qrels().to_numpy().tolist() == [["1", "A:1", 2], ["1", "B\u00a0C:1", 0]]


def test_files_may_be_gzipped_and_a_missing_one_is_named(folder: Path) -> None:
    before = list(NTCIR12Folder(folder).formulas())
    with gzip.open(folder / "corpus.tsv.gz", "wb") as packed:
        packed.write((folder / "corpus.tsv").read_bytes())
    (folder / "corpus.tsv").unlink()
    assert list(NTCIR12Folder(folder).formulas()) == before
    (folder / "qrels").unlink()
    with pytest.raises(
        MissingFileError, match=r"ntcir: there are no judgments\. Looked for qrels, .*Ask the organizers"
    ):
        NTCIR12Folder(folder)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("qrels", "1 xxx A:1 0.0\n1 xxx A:2\n", r"qrels:2: '1 xxx A:2\\n' does not have the four columns"),
        ("qrels", "1 xxx A:1 nan\n", "qrels:1: the grade 'nan' of A:1 is not a number from 0 to 4"),
        ("qrels", "1 xxx A:1 5.0\n", "qrels:1: the grade '5.0'"),
        ("qrels", "1 xxx A:1 1.0\n1 xxx A:1 3.0\n", "qrels:2: A:1 has the grades 1 and 3 for 1; remove one"),
        ("qrels", "\n", "qrels:1: it holds no judgment"),
        ("corpus.tsv", "A:1\tx\nA:2 y\n", r"corpus.tsv:2: 'A:2 y\\n' is not a name and LaTeX, separated by a tab"),
        ("corpus.tsv", "A:1\tx\n\tx\n", "corpus.tsv:2: "),
        ("corpus.tsv", "A:1\tx\nA:2\ty\nA:1\tz\n", "corpus.tsv:3: formula A:1 comes twice; remove one"),
        ("topics.tsv", "T-1\tx\nT-1\ty\n", "topics.tsv:2: topic T-1 comes twice"),
        ("topics.tsv", "T-1\t\n", "topics.tsv:1: topic T-1 has no formula"),
        ("topics.tsv", "", "topics.tsv:1: it has no topic"),
        ("topics.xml", "<topics>\n<topic>\n</topics>", "topics.xml:3: this is not well-formed XML"),
        ("topics.xml", "", "topics.xml:1: this is not well-formed XML"),
        ("topics.xml", "<topics>\n<topic/></topics>", "topics.xml:2: the topic has no <num>; add it"),
        ("topics.xml", "<t><topic><num>M-1</num></topic></t>", "topics.xml:1: topic M-1 has 0 formulas"),
        ("topics.xml", MATH.format("<m:math><m:semantics><m:ci>x</m:ci></m:semantics></m:math>"), "has neither LaTeX"),
        ("topics.xml", '<!DOCTYPE t [<!ENTITY e SYSTEM "/etc/passwd">]>' + MATH.format("&e;"), "has neither LaTeX"),
    ],
)
def test_an_error_names_file_and_line_and_what_to_do(folder: Path, name: str, text: str, message: str) -> None:
    if name == "topics.tsv":
        (folder / "topics.xml").unlink()
    (folder / name).write_text(text)
    read = NTCIR12Folder(folder)
    with pytest.raises(ARQMathError, match=message):
        _ = read.topics(), read.qrels(), list(read.formulas())


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        ("x^2", "x^2"),
        ('<m:math alttext="x^{2}"/>', "x^{2}"),
        ("<m:math><m:msup><mws:qvar>x</mws:qvar><m:mn>2</m:mn></m:msup></m:math>", r"\qvar{x}^{2}"),
        (  # an annotation without the wildcards
            '<m:math><m:semantics><m:csymbol/><m:annotation-xml encoding="MathML-Presentation"><mws:qvar name="y"/>'
            '</m:annotation-xml><m:annotation encoding="application/x-tex">y</m:annotation></m:semantics></m:math>',
            r"\qvar{y}",
        ),
        ('<m:math><m:annotation encoding="application/x-tex">50\\%\n x%\n y</m:annotation></m:math>', r"50\% xy"),
    ],
)
def test_the_formula_of_a_topic_is_latex_or_mathml(folder: Path, formula: str, latex: str) -> None:
    (folder / "topics.xml").write_text(MATH.format(formula))
    assert NTCIR12Folder(folder).topics()["latex"].tolist() == [latex]


def test_bpref_counts_judged_formulas_below_the_grade_as_not_relevant() -> None:
    qrels = pd.DataFrame({"query_id": "1", "doc_id": list("abcde"), "relevance": [4, 3, 1, 0, 0]})
    run = pd.DataFrame({"query_id": "1", "doc_id": ["c", "x", "a", "d", "b"], "score": [5.0, 4.0, 3.0, 2.0, 1.0]})
    found = ir_measures.calc_aggregate(list(NTCIR12_MEASURES.values()), qrels, run)
    partial, full = (found[measure] for measure in NTCIR12_MEASURES.values())
    # relevant a, b, c (R = 3), not relevant d, e (N = 2), divided by min(R, N) = 2: c and a have none above, b has d
    assert partial == pytest.approx((1 + 1 + (1 - 1 / 2)) / 3)
    # relevant a, b (R = 2), not relevant c, d, e, divided by 2: a is below c; b is below c and d
    assert full == pytest.approx(((1 - 1 / 2) + (1 - 2 / 2)) / 2)
