"""The collection of any size that the benchmarks of growth are made on, and what they conclude from measurements."""

from __future__ import annotations

import html
import sys
from pathlib import Path
from typing import Any

import pytest
from folder_bytes import folder_bytes

from mathamr_systems import verify
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.formula import FormulaRow, opt_from_mathml, read_formula_table, slt_from_mathml
from pyterrier_mathamr.posts import document_post

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts, not a part of the package

from growing import figure, release, report, running, series, templates

MATH = '<math xmlns="http://www.w3.org/1998/Math/MathML"'
HEADER = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\r\n"
FORMULAS = [  # id, post, type, LaTeX, Presentation MathML, Content MathML
    ("7", "2", "question", r"x^{2}", "<msup><mi>x</mi><mn>2</mn></msup>", "<cn>2</cn><ci>𝑥</ci>"),
    ("8", "2", "question", r"a<\mathrm{b}%", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>", "<lt/><ci>𝑎</ci><ci>b</ci>"),
    ("9", "5", "answer", "h", "<mi>h</mi>", "<ci>ℎ</ci>"),
]
WORDS = " ".join(a + b for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrst")  # once: many of a copy are new


def span(name: str, latex: str) -> str:
    return f'<span class="math-container" id="{name}">{html.escape(latex, quote=False)}</span>'


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A question and its answer with three formulas, in the official layout."""
    monkeypatch.setattr(templates, "FUNCTION_WORDS", 1)  # "the"
    folder = tmp_path / "small"
    body = f"<p>the the the &amp; 50% {span('7', 'x^{2}')} {WORDS}</p>\n{span('8', FORMULAS[1][3])}"
    answer = f'<a href="x>y">the</a> Matrix {span("9", "h")}'
    rows = [f'<row Id="2" PostTypeId="1" Title="the Sum" Body="{html.escape(body)}" Tags="&lt;sums&gt;"/>']
    rows += [f'<row Id="5" PostTypeId="2" ParentId="2" Body="{html.escape(answer)}"/>']
    for kind in templates.KINDS:
        (folder / f"{kind}_representation_v3").mkdir(parents=True)
    (folder / "Posts.V1.3.xml").write_text("<posts>\n" + "\n".join(rows).replace("\n</", "&#xA;</") + "\n</posts>\n")
    for place, kind in enumerate(templates.KINDS):
        with open(folder / f"{kind}_representation_v3" / "1.tsv", "w", newline="") as table:
            table.write(HEADER)
            for name, post, of, latex, *trees in FORMULAS:
                alt = f' alttext="{html.escape(latex)}"' if kind == "slt" else ""
                cell = latex if not place else f"{MATH}{alt}>{trees[place - 1]}</math>".replace('"', '""')
                cell = f'"{cell}"' if place else cell
                table.write(f"{name}\t{post}\t2\t{of}\t\t4\t4\t\t{cell}\r\n")
    return folder


def tables(folder: Path) -> dict[str, list[FormulaRow]]:
    of = ARQMathCollection(folder)
    found = {"latex": of.latex_tables, "slt": of.slt_tables, "opt": of.opt_tables}
    return {kind: [row for table in some for row in read_formula_table(table)] for kind, some in found.items()}


def test_copies_after_the_first_have_distinct_formulas_on_which_tables_agree(small: Path, tmp_path: Path) -> None:
    made = release.multiply(small, tmp_path / "first", 4)
    before, after = list(ARQMathCollection(small).posts()), list(ARQMathCollection(made).posts())
    assert after[:2] == before
    for kind, rows in tables(small).items():
        assert tables(made)[kind][:3] == rows

    made = release.multiply(small, tmp_path / "made", 40)
    posts, rows = list(ARQMathCollection(made).posts()), tables(made)
    assert [int(post.id) for post in posts] == sorted({int(post.id) for post in posts})
    assert len(posts) == 40
    assert {post.parent_id for post in posts if post.kind == "answer"} == {
        post.id for post in posts if post.kind == "question"
    }
    latex = {row.id: row for row in rows["latex"]}
    assert len(latex) == len(rows["latex"]) == 20 * round(2 * release.FORMULAS_PER_POST)
    assert [row.id for row in rows["slt"]] == [row.id for row in rows["opt"]] == list(latex)
    for post in posts:
        for formula in document_post({"docno": post.id, "html": post.body}).formulas:
            row = latex.pop(formula.id)
            assert (formula.latex, post.id, post.kind) == (row.formula, row.post_id, row.type)
    assert {row.type for row in latex.values()} == {"comment"}
    for row in rows["slt"]:
        assert slt_from_mathml(row.formula).nodes
    for row in rows["opt"]:
        assert opt_from_mathml(row.formula).nodes
    assert all(finding.good for finding in verify(made))


def test_the_trees_of_a_formula_have_the_same_new_symbols(small: Path, tmp_path: Path) -> None:
    rows = tables(release.multiply(small, tmp_path / "made", 60))
    powers = set()
    for latex, slt, opt in zip(rows["latex"], rows["slt"], rows["opt"], strict=True):
        if "^" in latex.formula:
            base, power = latex.formula.rstrip("}").split("^{")
            assert f"<mi>{base}</mi><mn>{power}</mn>" in slt.formula
            assert f'alttext="{base}^{{{power}}}"' in slt.formula
            assert f"<cn>{power}</cn><ci>{templates.italic(base)}</ci>" in opt.formula
            powers.add((base, power))
        elif "<" in latex.formula:
            assert latex.formula.endswith(r"<\mathrm{b}%")  # an upright name is not a variable
    assert len({base for base, _ in powers}) > 1
    assert len({power for _, power in powers}) > 3


def test_the_vocabulary_grows_and_the_most_frequent_words_keep_their_place(small: Path, tmp_path: Path) -> None:
    posts = list(ARQMathCollection(release.multiply(small, tmp_path / "made", 60)).posts())
    questions = [post.body.split("<span")[1].split("</span>")[1].split() for post in posts if post.kind == "question"]
    sizes = [len({word for words in questions[:count] for word in words}) for count in (1, 10, 30)]
    assert sizes[0] < sizes[1] < sizes[2]
    assert all(post.body.startswith("<p>the the the &amp; 50% ") for post in posts if post.kind == "question")
    assert all(post.title.split()[1].istitle() for post in posts if post.kind == "question")


def test_equal_arguments_give_equal_bytes_and_other_seeds_others(small: Path, tmp_path: Path) -> None:
    first, again, other = (release.multiply(small, tmp_path / str(i), 21, seed) for i, seed in enumerate((0, 0, 1)))
    assert folder_bytes(first) == folder_bytes(again)
    assert folder_bytes(first)["Posts.V1.3.xml"] != folder_bytes(other)["Posts.V1.3.xml"]


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_run_that_was_killed_goes_on(
    small: Path, tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "_TABLE_ROWS", 70)  # three copies
    whole = release.multiply(small, tmp_path / "whole", 20)
    killed, written, write = tmp_path / "killed", 0, release._write_state

    def kill(target: Path, done: Any) -> None:
        nonlocal written
        if written == after:  # its files are written and not yet noted
            raise KeyboardInterrupt
        written += 1
        write(target, done)

    monkeypatch.setattr(release, "_write_state", kill)
    with pytest.raises(KeyboardInterrupt):
        release.multiply(small, killed, 20)
    monkeypatch.setattr(release, "_write_state", write)
    assert folder_bytes(release.multiply(small, killed, 20)) == folder_bytes(whole)
    assert len(list((whole / "slt_representation_v3").iterdir())) > 2


def test_exponents_equal_the_measured_power_and_parts_are_expected_to_grow_so(tmp_path: Path) -> None:
    rows = [{"posts": n, "part": "bm25", "cpu": 3 * n**1.5, "files": 7} for n in (10, 100, 1000)]
    found = {of.quantity: of for of in report.growth(rows)}
    assert found["cpu"].exponent == pytest.approx(1.5)
    assert found["cpu"].last == pytest.approx(1.5)
    assert found["files"].exponent == pytest.approx(0)
    assert set(found) == {"cpu", "files"}

    rows = [{"posts": n, "part": "bm25", "seconds": float(n**2)} for n in (10, 20)]
    assert series.expected(rows, "bm25", 40) == pytest.approx(1600)
    assert series.expected([], "bm25", 40) == 0
    assert series.with_needs(["encoding"]) == ["release", "formulas", "share", "graphs", "encoding"]


def test_the_figure_shows_what_has_two_sizes_with_plain_numbers(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra plots is not installed")
    rows = [
        {"posts": posts, "part": part, "cpu": cpu, "disk": 2_000 * posts, "query_ms": cpu}
        for part, posts, cpu in (("bm25", 1_000, 40.0), ("bm25", 30_000, 900.0), ("tangent", 1_000, 0.1))
    ]
    panels = figure.growth_figure(rows).axes
    assert [panel.get_title() for panel in panels] == ["CPU of the build, s", "disk, MB", "a query, CPU ms"]
    assert [line.get_label() for line in panels[2].lines] == ["bm25"]
    assert panels[1].lines[0].get_ydata().tolist() == [2, 60]
    for panel, expected in zip(panels, ({"50", "500"}, {"2", "50"}, {"50", "500"}), strict=True):
        shown = panel.yaxis.get_major_formatter().format_ticks(panel.yaxis.get_majorticklocs())
        assert expected <= set(shown)
        assert all(set(text) <= set("0123456789.,") for text in shown)
        assert not any(panel.yaxis.get_minor_formatter().format_ticks(panel.yaxis.get_minorticklocs()))
    assert panels[0].xaxis.get_major_formatter()(10_000, 0) == "10,000"
    assert figure.draw(rows, tmp_path / "growth.svg").stat().st_size > 1_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at processes as Linux shows them")
def test_a_series_kills_resumes_and_repeats_nothing(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of = series.Series(small, tmp_path / "series", [4], ["formulas"], 1000.0, kill_after=0.2, keep=True)
    rows = series.run(of)
    assert [(row["part"], row["units"], row["kills"]) for row in rows] == [("release", 4, 1), ("formulas", 46, 1)]
    assert all(row["private"] > 1 and row["cpu"] > 0 and row["disk"] > 0 for row in rows)
    assert rows[1]["query_ms"] > 0
    shown = capsys.readouterr().out
    monkeypatch.setattr(running, "measure", None)
    assert series.run(of) == rows
    assert capsys.readouterr().out == shown
