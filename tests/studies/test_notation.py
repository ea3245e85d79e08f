"""Other letters and twins: what is renamed, what is changed, and the study on the sample."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.arqmath.collection import SAMPLE
from pyterrier_mathamr.formula import opt_from_latex
from pyterrier_mathamr.posts import BeirFolder
from studies.__main__ import main
from studies.formulas.patterns import tree_of
from studies.notation.folders import Folder, Order, contrast, folders_of, outside, read_twins
from studies.notation.formula_topics import renamed_topics, run_formula_topics
from studies.notation.letters import canonical, fixed_letters, formulas_of, letters_of, renamed, renaming
from studies.notation.measuring import share_above
from studies.notation.twins import LEAST_NODES, changes, twin_of


def answers() -> Iterator[str]:
    return (text for folder in folders_of(ARQMathCollection(SAMPLE), []) for text in folder.documents.values())


def test_renaming_changes_letters_in_formulas_and_nothing_else() -> None:
    text = r"Let $x_1 + \alpha Y = x_2$ for $x \in \mathbb{R}$, with $\operatorname{rank} Y = n$."
    names = renaming(text, "seed")
    assert set(names) == {"x", r"\alpha", "Y", "n"}
    assert all(new != old for old, new in names.items())
    assert len(set(names.values())) == len(names)
    x, alpha, big, n = (names[letter] for letter in ("x", r"\alpha", "Y", "n"))
    other = renamed(text, "seed")
    assert other == (
        rf"Let ${x}_1 + {alpha} {big} = {x}_2$ for ${x} \in \mathbb{{R}}$, with $\operatorname{{rank}} {big} = {n}$."
    )
    assert renamed(text, "seed") == other != renamed(text, "another")

    text = r"Costs \$5. $$\text{if } a \begin{cases} a & b \\ \label{a} 1 \end{cases}$$ but not a or b."
    other = renamed(text, "seed")
    a, b = (renaming(text, "seed")[letter] for letter in "ab")
    assert (
        other
        == rf"Costs \$5. $$\text{{if }} {a} \begin{{cases}} {a} & {b} \\ \label{{a}} 1 \end{{cases}}$$ but not a or b."
    )


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        (r"$\int f(x)\,dx$ and $d$", {"d"}),
        (r"$\frac{d}{dt} y$", {"d"}),
        (r"a metric $d(x, y) \le 1$", set()),
        (r"$e^{x}$", {"e"}),
        (r"an edge $e \in E$", set()),
        (r"$e^{i t}$", {"e", "i"}),
        (r"$z = a + bi$", {"i"}),
        (r"$\sum_{i=1}^n a_i$", set()),
        (r"$2\pi r$", {r"\pi"}),
        (r"a permutation $\pi(k)$", set()),
    ],
)
def test_a_letter_with_a_fixed_meaning_keeps_its_name(text: str, fixed: set[str]) -> None:
    assert fixed_letters(text) == fixed
    names = renaming(text, "seed")
    assert fixed.isdisjoint(names)
    assert not {"d", "e", "i", r"\pi"} & set(names.values())


def test_canonical_letters_are_the_same_for_all_forms_of_a_formula() -> None:
    text = r"Let $b_n = \alpha M^b$ and $\pi$, $\exists\epsilon$."
    assert canonical(text) == r"Let $x_y = z A^x$ and $\pi$, $\exists x$."
    for written in (text, *itertools.islice(answers(), 20)):
        assert canonical(canonical(written)) == canonical(written)
        assert canonical(renamed(written, "seed")).count("$") == written.count("$")


def test_a_renamed_formula_has_the_same_tree_but_for_its_letters() -> None:
    read = 0
    for latex in {latex for text in answers() for latex in formulas_of(text)}:
        source, other = tree_of(latex), tree_of(formulas_of(renamed(f"${latex}$", latex))[0])
        if source is None or other is None or not list(letters_of(latex)):
            continue
        read += 1
        assert source.edges == other.edges, latex
        pairs = set(zip(source.nodes, other.nodes, strict=True))
        assert all(old == new or old[:2] == new[:2] == "V!" for old, new in pairs), latex
        assert len(pairs) == len({old for old, _ in pairs}) == len({new for _, new in pairs}), latex
    assert read > 200


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("a + b = c", {("operator", "a - b = c"), ("relation", r"a + b \ne c")}),
        (r"x^2 \le y", {("script", r"x_2 \le y"), ("relation", r"x^2 \ge  y")}),
        (r"a - b \to c", {("operator", r"a + b \to c"), ("order", r"b- a\to c")}),
        (r"f(x) \to \frac{a}{b}", {("order", r"f(x) \to \frac{b}{a}")}),
        (r"\sum_{i=1}^n a_i", {("bound", r"\sum_{k=1}^n a_i"), ("script", r"\sum_{i=1}^n a^i")}),
    ],
)
def test_a_formula_is_changed_in_one_place(latex: str, expected: set[tuple[str, str]]) -> None:
    found = {(change.how, change.changed) for change in changes(latex, "seed")}
    assert {(how, changed.replace(" ", "")) for how, changed in found} == {
        (how, changed.replace(" ", "")) for how, changed in expected
    }


def test_a_twin_differs_in_one_formula_which_has_another_tree() -> None:
    made = 0
    for text in answers():
        if (twin := twin_of(text, "seed")) is None:
            continue
        made += 1
        before, after = formulas_of(text), formulas_of(twin.text)
        changed = {(old, new) for old, new in zip(before, after, strict=True) if old != new}
        assert changed == {(twin.change.latex, twin.change.changed)}
        source, other = opt_from_latex(twin.change.latex, lines="all"), opt_from_latex(twin.change.changed, lines="all")
        assert (source.nodes, source.edges) != (other.nodes, other.edges)
        assert len(source.nodes) >= LEAST_NODES
    assert made > 100


def test_the_contrast_and_twins_change_the_right_formula() -> None:
    text = "First $a + b = c$, then $a + b + c + d + e = f$."
    assert twin_of(text, "seed", ["a + b = c"]).change.latex == "a + b = c"  # type: ignore[union-attr]
    assert twin_of(text, "seed").change.latex == "a + b + c + d + e = f"  # type: ignore[union-attr]
    assert twin_of("no formula, or $x$", "seed") is None

    folder = contrast(["If $x^2 + y = 1$, then $n$."])
    ((qid, right, wrong),) = folder.twins
    assert folder.queries[qid] == "$x^2 + y = 1$"
    assert set(letters_of(folder.documents[right])).isdisjoint({"x", "y"})
    assert set(letters_of(folder.documents[wrong])) == {"x", "y"}

    ranking = pd.DataFrame(
        [("a", "r", 2.0), ("a", "w", 1.0), ("b", "r", 1.0), ("b", "w", 1.0), ("c", "w", 1.0)],
        columns=["qid", "docno", "score"],
    )
    found = share_above(ranking, [Order(qid, "r", "w") for qid in "abcd"])
    assert found["value"].tolist() == [1.0, 0.5, 0.0, 0.5]


def test_a_folder_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    made = Folder("f", {"d": "$a$"}, {"q": "$b$"}, {"test": [("q", "d", 2)]}, [Order("q", "d", "twin-of-d")])
    folder = made.write(tmp_path)
    assert list(BeirFolder(folder).documents()) == [{"docno": "d", "text": "$a$"}]
    assert read_twins(folder) == made.twins
    as_written, others = outside(folder)
    assert as_written.queries == {"q": "$b$"} != others.queries
    assert (as_written.judgments, others.name) == (made.judgments, "f-renamed")


def test_the_study_measures_bundled_systems_and_runs_of_others(tmp_path: Path) -> None:
    work, runs = tmp_path / "w", tmp_path / "mine"
    command = ["notation", str(SAMPLE), "--years", "sample", "--workdir", str(work), "--quiet"]
    command += ["--model", "mathamr-plus-mini"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    twins = read_twins(work / "collections" / "formulas")
    runs.mkdir()
    (runs / "formulas.run").write_text("".join(f"{qid} Q0 {right} 1 1.0 mine\n" for qid, right, _ in twins))
    done = CliRunner().invoke(main, [*command, "--runs", str(runs), "--controls"])
    assert done.exit_code == 0, done.output
    table = pd.read_json(work / "report.json", typ="series")["tables"]["The right one above its twin"]
    shares = {row["name"]: row["formulas"] for row in table}
    assert shares["mine"] == 1.0
    assert shares.keys() >= {"BM25", "BM25, with structures of formulas", "mathamr-plus-mini", "Tangent and Patterns"}
    assert shares["mathamr-plus-mini, canonical letters"] > 0.9 > shares["mathamr-plus-mini"]
    assert shares["Patterns"] > 0.9 > shares["Tangent"]


def test_a_formula_topic_has_the_same_other_letters_in_its_formula_and_its_question() -> None:
    span = '<span class="math-container" id="{}">${}$</span>'
    body = f"<p>If {span.format('q_1', 'n &lt; m')}, is {span.format('q_2', 'x_n^2')} bounded?</p>"
    topics = pd.DataFrame({"qid": ["B.1"], "title": ["A bound"], "body": [body], "latex": ["x_n^2"]})
    (other,) = renamed_topics(topics).to_dict("records")
    x, n = re.fullmatch(r"(\w)_(\w)\^2", other["latex"]).groups()
    assert {x, n}.isdisjoint("xn")
    m = re.search(rf'id="q_1">\${n} &lt; (\w)\$</span>', other["body"])[1]
    assert m not in {"m", x, n}
    assert f'id="q_2">${x}_{n}^2$</span>' in other["body"]
    assert other["title"] == "A bound"


def test_formula_search_is_measured_with_other_letters(tmp_path: Path) -> None:
    report = run_formula_topics(SAMPLE, ["sample"], tmp_path, systems=["Tangent", "Patterns"], verbose=False)
    table = report.tables["Task 2"].set_index("name")
    assert list(table.index) == ["Tangent", "Patterns"]
    assert table["sample, renamed"].between(0.8, 1).all()
    assert (table["sample, renamed"] != table["sample, as written"]).any()
