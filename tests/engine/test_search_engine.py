"""An engine over a person's own posts: one call to build, one to ask, and a score that is the sum of its parts."""

import pickle
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import PostWarning
from pyterrier_mathamr._common.running import processes
from pyterrier_mathamr.engine import SearchEngine, building
from pyterrier_mathamr.engine.generations import Indexes
from pyterrier_mathamr.engine.posts import PostStore
from pyterrier_mathamr.engine.ranking import fitted_weights
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.posts import DocumentError
from pyterrier_mathamr.store import (
    DamagedError,
    DuplicateIdError,
    NotBuiltError,
    OtherArtifactError,
    UnfinishedJobError,
    UnknownIdError,
    WriteError,
)
from tests.engine.conftest import POSTS, QUERY, built


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


def test_posts_are_added_and_deleted_everywhere(tmp_path) -> None:
    engine = built(tmp_path / "e")
    engine.add([{"id": "new", "text": "On ∑ 1/n² again"}])
    assert engine.search(QUERY, k=2)["docno"].tolist() == ["new", "basel"]
    assert engine.search_formula("∑ 1/n²", k=1)["docno"].tolist() == ["new#0"]
    engine.delete(["basel"])
    assert "basel" not in engine.search(QUERY)["docno"].tolist()
    assert "basel" not in engine.search_formula(r"\pi^2/6")["post_id"].tolist()
    assert len(engine) == 5
    with pytest.raises(DuplicateIdError):
        engine.add([{"id": "new", "text": "x"}])
    with pytest.raises(UnknownIdError):
        engine.delete(["basel"])
    engine.add(POSTS[:1])
    assert engine.search(QUERY, k=2)["docno"].tolist() == ["new", "basel"]
    fresh = built(tmp_path / "f", [*POSTS[1:], {"id": "new", "text": "On ∑ 1/n² again"}, POSTS[0]])
    both = [each.search(QUERY).set_index("docno")["score"] for each in (engine, fresh)]
    assert np.allclose(both[0][both[1].index], both[1], atol=1e-4)


@pytest.mark.parametrize("step", ["_graphs_in_one_pass", "_index_formulas"])
def test_a_build_that_stops_anywhere_goes_on_to_the_same_engine(engine, tmp_path, monkeypatch, step) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(building, step, _stop)
        with pytest.raises(KeyboardInterrupt):
            built(tmp_path / "e")
    unfinished = SearchEngine(tmp_path / "e")
    assert not unfinished.built()
    with pytest.raises(NotBuiltError):
        unfinished.search("x")
    for posts, options in (
        (POSTS[1:], {}),
        (POSTS, {"bare_formulas": False}),
        ([*POSTS, {"id": "x", "text": "y"}], {}),
    ):
        with pytest.raises(UnfinishedJobError):
            built(tmp_path / "e", posts, **options)
    again = built(tmp_path / "e")
    pd.testing.assert_frame_equal(again.search(QUERY), engine.search(QUERY))


@pytest.fixture
def batches_of_two(monkeypatch) -> None:
    """Batches, and parts of the graphs, of two posts; several processes for any number of them."""
    monkeypatch.setattr(building, "GraphBuilder", partial(GraphBuilder, batch_size=2))
    monkeypatch.setattr(building, "begun_store", partial(building.begun_store, shard_size=2))
    monkeypatch.setattr(processes, "_FEW", 1)


@pytest.mark.usefixtures("batches_of_two")
@pytest.mark.parametrize("many", [3, 100])
def test_several_processes_make_the_engine_of_one(engine, tmp_path, monkeypatch, many) -> None:
    monkeypatch.setattr(building, "_MANY", many)  # of three they start before the posts are stored
    again = built(tmp_path / "e", workers=2)
    assert_same_engine(again, engine)


@pytest.mark.usefixtures("batches_of_two")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_pass_that_is_stopped_is_completed_by_one_index_after_the_other(
    engine, tmp_path, monkeypatch, workers
) -> None:
    with monkeypatch.context() as patch:
        graphs = iter(range(3))
        read = building.graph_of
        patch.setattr(building, "graph_of", lambda text: read(text) if next(graphs, -1) >= 0 else _stop())
        with pytest.raises(KeyboardInterrupt):
            built(tmp_path / "e")
    stopped = Indexes.of(tmp_path / "e" / "generation-1")
    assert stopped.graphs.unfinished() == 2
    assert not any(index.built() for index in stopped[1:])
    with monkeypatch.context() as patch:
        patch.setattr(building, "_graphs_in_one_pass", _stop)
        again = built(tmp_path / "e", workers=workers)
    assert_same_engine(again, engine)


def assert_same_engine(ours: SearchEngine, theirs: SearchEngine) -> None:
    """Compare the indexes of two engines; of those without floats, all bytes."""
    for one, other in zip(ours.snapshot().indexes, theirs.snapshot().indexes, strict=True):
        assert list(one.snapshot()) == list(other.snapshot())
    for name in ("bm25", "tangent"):
        one, other = (
            {
                file.name: file.read_bytes()
                for file in (getattr(each.snapshot().indexes, name).path / "part-000000").iterdir()
            }
            for each in (ours, theirs)
        )
        assert one
        assert one == other
    docnos = [post.get("docno", post.get("id")) for post in POSTS]
    assert ours.snapshot().indexes.graphs.get_many(docnos) == theirs.snapshot().indexes.graphs.get_many(docnos)
    pd.testing.assert_frame_equal(ours.search(QUERY), theirs.search(QUERY))


@pytest.mark.parametrize("step", ["build_store", "_index_vectors", "_index_formulas"])
def test_an_addition_that_is_stopped_shows_the_old_state_and_the_same_call_completes_it(
    tmp_path, monkeypatch, step
) -> None:
    engine, new = built(tmp_path / "e"), [{"id": "new", "text": "On ∑ 1/n² again"}]
    with monkeypatch.context() as patch:
        patch.setattr(building, step, _stop)
        with pytest.raises(KeyboardInterrupt):
            engine.add(new)
    assert "new" not in engine
    assert "new" not in engine.search(QUERY)["docno"].tolist()
    with monkeypatch.context() as patch:
        patch.setattr(PostStore, "write", _once(PostStore.write))  # those that are read; they are stored already
        engine.add(new)
    assert engine.search(QUERY, k=1)["docno"].tolist() == ["new"]
    assert engine.search_formula("∑ 1/n²", k=1)["docno"].tolist() == ["new#0"]


def test_a_change_other_than_the_stopped_one_starts_over(tmp_path, monkeypatch) -> None:
    engine = built(tmp_path / "e")
    with monkeypatch.context() as patch:
        patch.setattr(building, "_index_vectors", _stop)
        with pytest.raises(KeyboardInterrupt):
            engine.add([{"id": "new", "text": "On ∑ 1/n² again"}])
    engine.delete("basel")
    assert sorted(engine.docnos()) == ["gauss", "harmonic", "matrix", "words"]
    engine.verify()


@pytest.mark.parametrize("step", ["remove_posts", "Generations.publish"])
def test_a_deletion_that_is_stopped_shows_the_old_state_and_the_same_call_completes_it(
    tmp_path, monkeypatch, step
) -> None:
    engine = built(tmp_path / "e")
    with monkeypatch.context() as patch:
        patch.setattr(f"pyterrier_mathamr.engine.search_engine.{step}", _stop)
        with pytest.raises(KeyboardInterrupt):
            engine.delete(["basel"])
    assert engine.search(QUERY)["docno"].iloc[0] == "basel"
    engine.delete(["basel"])
    assert "basel" not in engine.search(QUERY)["docno"].tolist()
    engine.verify()


def test_a_change_that_another_process_made_and_did_not_report_succeeds_when_it_is_repeated(tmp_path) -> None:
    path = tmp_path / "e"
    built(path)
    for change in ("engine.delete(['basel'])", "engine.add([{'id': 'new', 'text': 'so $x$'}])"):
        code = f"from pyterrier_mathamr import SearchEngine; engine = SearchEngine({str(path)!r}); {change}"
        for _ in range(2):
            subprocess.run([sys.executable, "-c", code], check=True)
    assert sorted(SearchEngine(path).docnos()) == ["gauss", "harmonic", "matrix", "new", "words"]


def _once(real):
    calls = iter([real])
    return lambda *given, **options: next(calls)(*given, **options)


def _stop(*_, **__) -> None:
    raise KeyboardInterrupt


def test_an_engine_is_replaced_only_on_request_and_in_one_step(tmp_path, monkeypatch) -> None:
    engine = built(tmp_path / "e")
    with pytest.raises(WriteError, match=r"mathamr update.*overwrite it"):
        built(tmp_path / "e", POSTS[:2])
    with monkeypatch.context() as patch:
        patch.setattr(building, "_graphs_in_one_pass", _stop)
        with pytest.raises(KeyboardInterrupt):
            built(tmp_path / "e", POSTS[:2], overwrite=True)
    assert len(SearchEngine(tmp_path / "e")) == 5
    assert engine.search(QUERY)["docno"].iloc[0] == "basel"
    assert len(built(tmp_path / "e", POSTS[:2], overwrite=True)) == 2
    assert [path.name for path in (tmp_path / "e").glob("generation-*")] == ["generation-2"]


def test_posts_that_cannot_be_read_are_named_and_none_at_all_is_an_error(tmp_path) -> None:
    with pytest.warns(MathAMRWarning, match="1 of 3 posts were left out: post 2: no id"):
        engine = built(tmp_path / "e", [POSTS[0], {"text": "x"}, POSTS[4]])
    assert len(engine) == 2
    with pytest.raises(DocumentError, match="there are none"):
        built(tmp_path / "f", [])
    with pytest.raises(DocumentError, match="no text; give one of"):
        built(tmp_path / "f", [{"docno": "a", "content": "x"}])
    assert not SearchEngine(tmp_path / "f").built()


def test_posts_without_formulas_make_an_engine_too(tmp_path) -> None:
    engine = built(tmp_path / "e", [POSTS[4]])
    assert engine.search("rings")["docno"].tolist() == ["words"]
    assert engine.search_formula("x^2").empty


def test_the_bar_of_a_build_is_not_full_before_the_vectors_are_made(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(MathAMR, "encode", _stop)
    with pytest.raises(KeyboardInterrupt):
        SearchEngine.build((post for post in POSTS), tmp_path / "e", model="mathamr-plus-mini", verbose=True)
    shown = capsys.readouterr().err
    assert "0/5" in shown
    assert "5/5" not in shown


def test_an_engine_finds_its_model_from_any_folder(tmp_path, monkeypatch) -> None:
    MathAMR.from_pretrained("mathamr-plus-mini").save(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    SearchEngine.build(POSTS[:2], "e", model="mine", verbose=False)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert SearchEngine("../e").search(QUERY)["docno"].iloc[0] == "basel"


def test_a_stopped_build_is_discarded_on_request(tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(building, "_graphs_in_one_pass", _stop)
        with pytest.raises(KeyboardInterrupt):
            built(tmp_path / "e")
    with pytest.raises(NotBuiltError, match="is not complete"):
        SearchEngine(tmp_path / "e").search("x")
    assert len(built(tmp_path / "e", POSTS[:2], fresh=True)) == 2


def test_a_foreign_folder_is_not_touched(tmp_path) -> None:
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter.md").write_text("$x$")
    with pytest.raises(OtherArtifactError):
        built(thesis)
    assert [path.name for path in thesis.iterdir()] == ["chapter.md"]
    (thesis / "pt_meta.json").write_text('{"type": "multi_vector_index", "format": "mathamr"}')
    for open_ in (lambda: SearchEngine(thesis).search("x"), lambda: built(thesis, overwrite=True)):
        with pytest.raises(OtherArtifactError, match="multi_vector_index"):
            open_()
    with pytest.raises(OtherArtifactError):
        built(thesis / "chapter.md")


def test_a_change_of_an_engine_that_is_not_there_makes_nothing(tmp_path) -> None:
    engine = SearchEngine(tmp_path / "gone" / "e")
    for change in (engine.update, engine.compact, lambda: engine.delete("a"), lambda: engine.add(POSTS)):
        with pytest.raises(NotBuiltError):
            change()
    assert list(tmp_path.iterdir()) == []


def test_a_byte_that_was_changed_is_found(tmp_path) -> None:
    engine = built(tmp_path / "e", POSTS[:2])
    engine.verify()
    arrays = next((tmp_path / "e" / "generation-1" / "posts").glob("part-*/arrays.safetensors"))
    data = bytearray(arrays.read_bytes())
    data[-3] ^= 1
    arrays.write_bytes(data)
    with pytest.raises(DamagedError):
        SearchEngine(tmp_path / "e").verify()


MACROS = r"\newcommand{\Rls}{\mathbb{R}} \DeclareMathOperator{\Spec}{Spec} \newcommand{\sq}[1]{#1^2}"


@pytest.fixture
def notes_with_macros(tmp_path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "preamble.sty").write_text(MACROS)
    (folder / "squares.md").write_text("The square $\\sq{x} = 2$ of a number.")
    (folder / "schemes.md").write_text("The points of $\\Spec A$ are its prime ideals.")
    return folder


def test_questions_and_formulas_may_have_the_macros_of_the_notes(notes_with_macros, tmp_path) -> None:
    engine = built(tmp_path / "e", notes_with_macros)
    assert engine.read_query(r"what is $\Spec \Rls$?").formulas[0].latex == r"\operatorname{Spec}\mathbb{R}"
    assert engine.search_formula(r"\sq{y}=2").iloc[0].post_id == "squares.md"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine.search(r"$\Spec B$", weak=True).iloc[0].docno == "schemes.md"
    engine.verify()


@pytest.mark.parametrize("form", ["query", "body"])
def test_retrievers_of_an_engine_write_out_the_macros_of_the_notes(notes_with_macros, tmp_path, form) -> None:
    engine = built(tmp_path / "e", notes_with_macros)
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


def test_an_update_keeps_the_macros_current_even_if_no_post_changes(notes_with_macros, tmp_path) -> None:
    engine = built(tmp_path / "e", notes_with_macros)
    (notes_with_macros / "preamble.sty").write_text(MACROS.replace("R}}", "Q}}"))
    assert engine.update()[:3] == (0, 0, 0)
    assert engine.read_query(r"$\Rls$").formulas[0].latex == r"\mathbb{Q}"
    state = engine.snapshot().identity
    engine.update()
    assert engine.snapshot().identity == state


def test_macros_of_different_meaning_are_unknown_to_a_question_and_the_warning_says_where_they_are(
    notes_with_macros, tmp_path
) -> None:
    (notes_with_macros / "other.sty").write_text(r"\newcommand{\Rls}{\mathbf{R}}")
    (notes_with_macros / "reals.md").write_text("Of $\\Rls$ and $\\Rls^2$.")
    with pytest.warns(PostWarning) as caught:
        engine = built(tmp_path / "e", notes_with_macros)
    [warning] = [str(one.message) for one in caught]
    assert warning == (
        r"2 problems in 1 post: the command \Rls is unknown (defined differently in other.sty, preamble.sty), "
        r"in 2 places of 1 file, first 'reals.md': “\Rls”"
    )
    with pytest.warns(PostWarning, match=r"^The question: the command .Rls is unknown, in “.Rls”$"):
        engine.search(r"$\Rls$")


def test_an_engine_without_stored_macros_still_opens(engine) -> None:
    assert engine.snapshot().record.macros == {}
    assert engine.read_query(r"$\foo$").formulas[0].latex == r"\foo"


def test_a_report_counts_each_format_and_names_every_fault(notes_with_macros, tmp_path) -> None:
    (notes_with_macros / "a.tex").write_text(r"A $\nosuch x$ and $\frac{1$ and $y$.")
    (notes_with_macros / "scan.pdf").write_bytes(b"%PDF")
    with pytest.warns(MathAMRWarning):
        engine = built(tmp_path / "e", notes_with_macros)
    found = engine.report()
    assert {
        name: [counts[of] for of in ("files", "posts", "formulas", "partial")] for name, counts in found[0].items()
    } == {
        "markdown": [2, 2, 2, 0],
        "latex": [1, 1, 3, 2],
    }
    assert (r"a.tex", r"the command \nosuch is unknown", r"\nosuch x") in found.problems
    assert any("PDF is not read" in problem.what for problem in found.problems)
