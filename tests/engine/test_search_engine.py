"""An engine over a person's own posts: one call to build, one to ask, and a score that is the sum of its parts."""

import pickle
import shutil
import warnings
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import PostWarning
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.ranking import fitted_weights
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.graph import GraphBuilder
from tests.engine.conftest import POSTS, QUERY, built, written


def test_search_finds_posts_and_marks_what_they_share_with_the_question(engine) -> None:
    found = engine.search(QUERY, k=3)
    columns = ["docno", "score", "match", "named", "title", "snippet", "file", "line", "section", "kind"]
    assert list(found.columns) == columns
    assert found["docno"].tolist()[:2] == ["basel", "harmonic"]
    assert found["score"].is_monotonic_decreasing
    assert found["title"].iloc[0] == "Basel problem"
    assert "**converges**" in found["snippet"].iloc[0]
    assert r"**$\sum 1/n$**" in found["snippet"].iloc[1]


def test_formulas_are_found_in_plain_posts_whatever_way_they_are_typed(engine) -> None:
    assert engine.read_query(r"$\foo$").formulas[0].latex == r"\foo"
    typed = engine.search_formula("√π", k=2)
    assert typed.iloc[0][["docno", "post_id"]].tolist() == ["gauss#1", "gauss"]
    assert typed.equals(engine.search_formula(r"$\sqrt{\pi}$", k=2))
    assert engine.search_formula("A", k=1)["docno"].tolist() == ["m1"]


@pytest.mark.parametrize("query", [QUERY, "groups and rings", "$A$", r"$\int e^{-x^2}$ and √π", "x^2"])
def test_the_parts_of_an_explanation_add_up_to_the_score(engine, query) -> None:
    found = engine.search(query, k=10, weak=True)
    assert len(found) == len(POSTS)
    for docno, score in zip(found["docno"], found["score"], strict=True):
        explanation = engine.explain(query, docno)
        assert explanation.score == pytest.approx(score, abs=1e-4)
        assert explanation.parts["contribution"].sum() == pytest.approx(score, abs=1e-4)


def test_its_retriever_explains_each_of_its_results_and_any_other_post(engine) -> None:
    retriever, frame = engine.retriever(num_results=2), engine.frame(QUERY)
    found = retriever(frame)
    scores = engine.retriever()(frame).set_index("docno")["score"]
    for row in (found.iloc[0], found.iloc[1]):
        assert retriever.explain(row).score == pytest.approx(row["score"], rel=1e-5)
    for docno in scores.index:
        assert retriever.explain(frame, docno).score == pytest.approx(scores[docno], rel=1e-5, abs=1e-5)
    with pytest.raises(AskedError, match="has no query"):
        retriever.explain({"qid": "1"}, "basel")


def test_an_explanation_names_words_symbols_and_vectors_and_shows_itself_without_script(engine) -> None:
    explanation = engine.explain(QUERY, "basel")
    parts = dict(iter(explanation.parts.groupby(["system", "part"])))
    assert sorted(parts["BM25", "word"]["query"]) == ["converges", "show"]
    assert parts["BM25", "symbols"]["document"].tolist() == [r"\sum_{n=1}^\infty \frac{1}{n^2}"]
    assert {("MathAMR+", kind) for kind in ("document", "sentence", "formula")} <= set(parts)
    html = explanation._repr_html_()
    assert "<math" in html
    assert "<script" not in html


def test_the_weights_come_from_the_model(engine) -> None:
    assert engine.retriever().weights == fitted_weights("mathamr-plus-mini") == (0.5, 0.5, 0.7)
    assert fitted_weights("mathamr-plus-text") == (0.26, 0.74, 0.7)
    assert fitted_weights("mathamr-plus-text-large") == (0.08, 0.92, 0.87)
    assert fitted_weights("/my/model") == (0.5, 0.5, 0.7)


def test_what_the_model_does_not_read_of_a_graph_is_built_when_it_is_asked_for(tmp_path) -> None:
    posts = [{"docno": "a", "title": "Primes", "text": "Is $2$ prime?"}]
    engine = SearchEngine.build(posts, tmp_path / "e", model="mathamr-plus-text", verbose=False)
    assert set(engine.snapshot().indexes.graphs["a"].amr.labels) == {"multi-sentence", "sentence", "FORMULA_0"}
    [expected] = GraphBuilder().build_rows(posts)
    assert engine.graph("a").amr == expected["graph"].amr
    assert engine.explain("Is $2$ prime?", "a").score > 0
    with pytest.warns(PostWarning, match=r"The question: the command \\nosuch is unknown"):
        engine.search(r"$\nosuch 2$")


def test_its_transformers_make_pipelines(engine) -> None:
    topics = pd.DataFrame([["1", QUERY, "en"], ["2", "", "en"]], columns=["qid", "query", "lang"])
    with pytest.warns(MathAMRWarning):
        found = engine.retriever(num_results=2)(topics)
    assert found["qid"].tolist() == ["1", "1"]
    assert found["docno"].tolist() == engine.search(QUERY, k=2)["docno"].tolist()
    assert set(found["lang"]) == {"en"}
    assert (engine.retriever() % 2).compile() == engine.retriever(num_results=2)
    outputs = pt.inspect.transformer_outputs(engine.retriever(), ["qid", "query"])
    assert outputs == ["qid", "query", "docno", "score", "rank"]
    assert engine.bm25().search("groups and rings")["docno"].tolist() == ["words"]
    again = pickle.loads(pickle.dumps(engine.retriever()))
    assert again(topics[:1])["docno"].iloc[0] == "basel"


def test_an_engine_is_an_artifact(engine, tmp_path) -> None:
    package = tmp_path / "my.tar.lz4"
    engine.build_package(str(package))
    assert package.stat().st_size > 0
    loaded = pt.Artifact.load(str(engine.path))
    assert loaded == engine
    assert len(loaded) == 5
    assert "basel" in loaded


MACROS = r"\newcommand{\Rls}{\mathbb{R}} \DeclareMathOperator{\Spec}{Spec} \newcommand{\sq}[1]{#1^2}"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with notes that have macros, and an engine of them."""
    squares, schemes = "The square $\\sq{x} = 2$ of a number.", "The points of $\\Spec A$ are its prime ideals."
    folder = tmp_path_factory.mktemp("macros")
    written(folder / "notes", {"preamble.sty": MACROS, "squares.md": squares, "schemes.md": schemes})
    built(folder / "e", folder / "notes")
    return folder


def test_questions_and_formulas_may_have_the_macros_of_the_notes(base) -> None:
    engine = SearchEngine(base / "e")
    assert engine.read_query(r"what is $\Spec \Rls$?").formulas[0].latex == r"\operatorname{Spec}\mathbb{R}"
    assert engine.search_formula(r"\sq{y}=2").iloc[0].post_id == "squares.md"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine.search(r"$\Spec B$", weak=True).iloc[0].docno == "schemes.md"
    engine.verify()


@pytest.mark.parametrize("form", ["query", "body"])
def test_retrievers_of_an_engine_write_out_the_macros_of_the_notes(base, form) -> None:
    engine = SearchEngine(base / "e")
    texts = [r"what is $\sq{x}$?", r"what is $x^2$?", "a square, without formulas"]
    queries = pd.DataFrame({"qid": ["macro", "written", "plain"], form: texts})
    for retriever in (engine.retriever(), engine.bm25(), engine.mathamr()):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = dict(list(retriever(queries).groupby("qid")))
        assert found["macro"]["docno"].tolist() == found["written"]["docno"].tolist()
        assert found["macro"]["score"].tolist() == pytest.approx(found["written"]["score"].tolist())
        assert (found["macro"]["query"] == "what is $x^2$?").all()
        assert (found["plain"]["query"] == texts[2]).all()
    formulas = engine.formulas()(pd.DataFrame({"qid": ["1"], "latex": [r"\sq{y}=2"]}))
    assert formulas.iloc[0]["post_id"] == "squares.md"


@pytest.fixture
def notes(base, tmp_path) -> Path:
    return shutil.copytree(base / "notes", tmp_path / "notes")


def test_an_update_keeps_the_macros_current_even_if_no_post_changes(notes, tmp_path) -> None:
    engine = built(tmp_path / "e", notes)
    (notes / "preamble.sty").write_text(MACROS.replace("R}}", "Q}}"))
    assert engine.update()[:3] == (0, 0, 0)
    assert engine.read_query(r"$\Rls$").formulas[0].latex == r"\mathbb{Q}"
    state = engine.snapshot().identity
    engine.update()
    assert engine.snapshot().identity == state


def test_macros_of_different_meaning_are_unknown_to_a_question_and_the_warning_says_where_they_are(
    notes, tmp_path
) -> None:
    written(notes, {"other.sty": r"\newcommand{\Rls}{\mathbf{R}}", "reals.md": "Of $\\Rls$ and $\\Rls^2$."})
    with pytest.warns(PostWarning) as caught:
        engine = built(tmp_path / "e", notes)
    [warning] = [str(one.message) for one in caught]
    assert warning == (
        r"2 problems in 1 post: the command \Rls is unknown (defined differently in other.sty, preamble.sty), "
        r"in 2 places of 1 file, first 'reals.md': “\Rls”"
    )
    with pytest.warns(PostWarning, match=r"^The question: the command .Rls is unknown, in “.Rls”$"):
        engine.search(r"$\Rls$")


def test_a_report_counts_each_format_and_names_every_fault(notes, tmp_path) -> None:
    written(notes, {"a.tex": r"A $\nosuch x$ and $\frac{1$ and $y$.", "scan.pdf": "%PDF"})
    with pytest.warns(MathAMRWarning):
        engine = built(tmp_path / "e", notes)
    report = engine.report()
    columns = ("files", "posts", "formulas", "partial")
    assert {name: [counts[column] for column in columns] for name, counts in report.formats.items()} == {
        "markdown": [2, 2, 2, 0],
        "latex": [1, 1, 3, 2],
    }
    assert (r"a.tex", r"the command \nosuch is unknown", r"\nosuch x") in report.problems
    assert any("PDF is not read" in problem.what for problem in report.problems)
