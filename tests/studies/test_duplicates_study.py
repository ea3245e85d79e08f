"""Duplicate pairs: copies with other letters, and a fit that separates them."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.arqmath.collection import SAMPLE
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.duplicates import similarities
from studies.__main__ import main
from studies.protocol.duplicates import COPIED, FITTED, LINKED, fitted, renamed


def test_letters_are_renamed_in_formulas_only_and_everywhere_alike() -> None:
    html = r'<p>a b <span class="math-container" id="1">a+\sin(b)=\text{if }A+a</span> x</p>'
    copy = renamed(html, random.Random(3))
    assert copy.startswith('<p>a b <span class="math-container" id="1">')
    assert copy.endswith(" x</p>")
    formula = copy[copy.index(">", 10) + 1 : copy.index("</span>")]
    a, b = formula[0], formula[formula.index("(") + 1]
    assert formula == rf"{a}+\sin({b})=\text{{if }}{a.upper()}+{a}"
    assert len({"a", "b", a, b}) == 4


def test_the_fit_separates_what_can_be_separated_and_its_similarities_are_shares() -> None:
    apart = np.array([[0.9, 0.8], [0.95, 0.9], [0.3, 0.0], [0.5, 0.1]] * 50)
    same = np.array([True, True, False, False] * 50)
    assert (similarities(apart, fitted(apart, same)) > 0.95).tolist() == same.tolist()
    alike = np.tile([[0.7, 0.5]], (200, 1))
    found = similarities(alike, fitted(alike, np.arange(200) < 50))
    assert abs(float(found[0]) - 0.25) < 0.01


def test_the_command_measures_copies(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "sample")
    one, other = [post.id for post in ARQMathCollection(SAMPLE).questions()][:2]
    lines = ["question_id\trelated_question_id\ttype\trelated_title", f"{one}\t{other}\tduplicate\tx"]
    (tmp_path / "sample" / "links.tsv").write_text("\n".join(lines) + "\n")
    SearchEngine.build(ARQMathCollection(SAMPLE).documents(), tmp_path / "e", model="mathamr-plus-mini", verbose=False)
    options = [str(tmp_path / "e"), str(tmp_path / "sample"), "--workdir", str(tmp_path / "work"), "-q"]
    done = CliRunner().invoke(main, ["duplicates", *options])
    assert done.exit_code == 0, done.output
    tables = json.loads((tmp_path / "work" / "report.json").read_text())["tables"]
    assert set(tables) == {LINKED, COPIED, FITTED}
    assert [row["pairs"] for row in tables[COPIED]] == sorted(row["pairs"] for row in tables[COPIED])
    assert all(row["right"] == row["pairs"] for row in tables[COPIED])
