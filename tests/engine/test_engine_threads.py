"""Posts that answer others: the title of the question is read before the answer, and is not part of its text."""

import pytest

from pyterrier_mathamr.cli.engine import results_table
from pyterrier_mathamr.engine.mcp import Tools
from pyterrier_mathamr.engine.page import Answers
from pyterrier_mathamr.engine.posts import PostStore
from pyterrier_mathamr.posts import TITLE_FORMULA, Document, Origin
from tests.engine.conftest import built

QUESTION = {"docno": "q", "title": "Is $z!$ prime?", "text": "I ask."}
ANSWER = {"docno": "a", "text": "Never, by $y$.", "parent": "q"}
BARE = {"docno": "b", "text": "No.", "parent": "q"}
OTHER = {"docno": "c", "text": "Groups.", "parent": "nobody"}
THREAD = [ANSWER, BARE, OTHER, QUESTION]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return built(tmp_path_factory.mktemp("threads") / "engine", THREAD)


def test_an_answer_begins_with_the_title_of_its_question_wherever_that_comes(engine) -> None:
    assert engine.graph("a").text == "Is FORMULA_1 prime?\nNever, by FORMULA_0."
    assert engine.graph("a").formula_ids == ("a#0", TITLE_FORMULA)
    assert engine.graph("b").text == "Is FORMULA_0 prime?\nNo."
    assert engine.graph("c").text == "Groups."


def test_only_an_answer_s_own_text_is_shown(engine) -> None:
    found = engine.search("Is $z!$ prime?", k=4).set_index("docno")
    assert found.loc["b", ["title", "snippet"]].tolist() == ["Answer to: Is $z!$ prime?", "No."]
    assert engine.post("b").text == "No."


def test_no_result_is_a_bare_id(engine) -> None:
    answer, first = "Answer to: Is $z!$ prime?", "Groups."
    titles = engine.search("groups, never prime", k=4, weak=True).set_index("docno")["title"]
    assert titles.to_dict() == {"a": answer, "b": answer, "c": first, "q": "Is $z!$ prime?"}
    [formula] = engine.search_formula("y", k=1).itertuples()
    assert (formula.post_id, formula.title) == ("a", answer)
    assert answer in Tools(engine).search_formula("y", 1, max_tokens=400)
    page = Answers(engine)
    for mode, q in (("posts", "never"), ("formulas", "y")):
        result = page.search(q, mode, weak=True)["systems"][0]["results"][0]
        assert result["title_html"].startswith("Answer to: Is <span")
        assert (result["docno"].removesuffix("#0"), result["parent"]) == ("a", "q")
    assert page.post("a")["title_html"].startswith("Answer to: Is <span")
    assert (page.post("a")["parent"], page.post("c")["parent"]) == ("q", "")
    assert f"a  {answer}" in results_table(engine.search_formula("y", k=1), formula=True)


def test_the_first_words_of_a_post_without_a_title_are_a_line(tmp_path) -> None:
    engine = built(tmp_path / "e", [{"docno": "7", "text": "Rings of integers " * 20 + "are Dedekind."}])
    [title] = engine.search("rings", weak=True)["title"]
    assert title == "Rings of integers Rings of integers Rings of integers Rings of integers Rings …"


def test_the_formulas_of_a_title_are_found_in_the_question_only(engine) -> None:
    found = engine.search_formula("z!")
    assert found[found["tier"] != "similar"]["post_id"].tolist() == ["q"]
    vectors = engine.snapshot().indexes.formulas
    assert sorted(row["docno"] for row in vectors.get_corpus_iter()) == ["a#0", "q#0"]


@pytest.mark.parametrize("docno", ["a", "b"])
@pytest.mark.parametrize("system", ["blend", "bm25", "mathamr"])
def test_the_parts_of_an_explanation_name_the_title_s_sentence(engine, docno, system) -> None:
    answer = Answers(engine).explain("Is $z!$ prime?", docno, system)
    assert sum(part["contribution"] for part in answer["parts"]) == pytest.approx(answer["score"])
    assert "prime" not in answer["document"]["html"]
    if system == "mathamr":
        assert any("prime" in part["document_html"] for part in answer["parts"])


def test_a_title_that_is_given_needs_no_question(tmp_path) -> None:
    engine = built(tmp_path / "e", [{"docno": "a", "text": "No.", "parent_title": "Is $z!$ prime?"}])
    assert engine.graph("a").text == "Is FORMULA_0 prime?\nNo."


def test_a_title_is_looked_up_when_the_answer_is_added_and_goes_with_its_question(tmp_path) -> None:
    engine = built(tmp_path / "e", [QUESTION])
    engine.add([ANSWER])
    assert engine.graph("a").text.startswith("Is FORMULA_1 prime?")
    engine.delete(["q"])
    assert engine.graph("a").text == "Never, by FORMULA_0."
    engine.delete(["a"])
    engine.add([ANSWER])
    engine.add([QUESTION])
    assert engine.graph("a").text == "Never, by FORMULA_0."
    assert len(engine.snapshot().indexes.formulas) == 2


def test_posts_are_stored_with_their_parents_and_origins(tmp_path) -> None:
    origin = Origin("/notes", "a.tex", 12, "Limits › Series", "theorem", "2026-01-31")
    posts = [Document("a", "t", "h", origin=origin), Document("b", "t", "h", "a"), Document("c", "t", "h", "", "p")]
    store = PostStore(tmp_path / "posts")
    store.write(posts, "create")
    assert list(store) == posts
    assert [post.parent_title for post in store.titled(posts)] == ["", "t", "p"]
