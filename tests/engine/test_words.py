"""Words of a question in any script, and words that no post has."""

import json
import random
import re
import time

import pytest
from click.testing import CliRunner

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.mcp import Tools
from pyterrier_mathamr.formula.display.typesetting import text_of
from pyterrier_mathamr.sparse.texts import Texts, nearest_terms
from tests.engine.conftest import built, client_of, get

CHINESE = [
    {"id": "cauchy", "title": "柯西列", "text": "数列称为柯西列,若对任意正数存在一个下标。"},
    {"id": "bolzano", "text": "每个有界实数列都有收敛子列。"},
    {"id": "monotone", "text": "每个数列都有单调子列。"},
    {"id": "compact", "text": "紧集上的连续函数取得最大值和最小值。"},
    {"id": "lagrange", "text": "有限群的子群的阶整除群的阶。"},
    {"id": "korean", "text": "연속함수는 극한을 보존한다."},
    {"id": "hindi", "text": "समूह का प्रत्येक उपसमूह।"},
]


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> SearchEngine:
    return built(tmp_path_factory.mktemp("chinese") / "engine", CHINESE)


@pytest.mark.parametrize(
    ("query", "docno"),
    [
        ("收敛子列", "bolzano"),
        ("什么是柯西列?", "cauchy"),
        ("单调", "monotone"),
        ("连续函数的最大值", "compact"),
        ("群", "lagrange"),  # one character
        ("극한", "korean"),  # without its ending
        ("उपसमूह", "hindi"),
    ],
)
def test_words_of_a_clause_find_its_post(chinese: SearchEngine, query: str, docno: str) -> None:
    assert chinese.bm25()(chinese.frame(query))["docno"].iloc[0] == docno
    assert chinese.search(query)["docno"].iloc[0] == docno


def test_an_explanation_names_the_characters_that_match(chinese: SearchEngine) -> None:
    parts = chinese.explain("收敛数列", "bolzano").parts
    words = parts[parts["part"] == "word"]
    assert set(words["query"]) == set(words["document"]) == {"收", "敛", "收敛", "数", "列", "数列"}


MISSPELLED = [
    {"id": "orbit", "title": "Orbits", "text": "An orbit has as many points as its stabilizer $G_x$ has cosets."},
    {"id": "stable", "text": "Stability of an equilibrium is another thing."},
    {"id": "haus", "text": "In a Hausdorff space a convergent sequence has one limit: convergence is unique."},
    {"id": "center", "text": "The center of a group is the intersection of irrational centralizers."},
    {"id": "russian", "text": "Порядок группы делится на порядок подгруппы."},
]


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> SearchEngine:
    return built(tmp_path_factory.mktemp("notes") / "engine", MISSPELLED)


@pytest.mark.parametrize(
    ("word", "similar"),
    [
        ("stabiliser", ["stabilizer"]),  # whose stem is that of stability, and not near
        ("Hausdorf", ["Hausdorff"]),
        ("cosest", ["cosets"]),
        ("convergense", ["convergence", "convergent"]),
        ("centre", ["center"]),
        ("подгрупа", ["подгруппы"]),
        ("rgoup", ["group"]),
        ("gruop", ["group"]),
        ("zebra", []),
        ("rational", []),  # the opposite of a word
        ("stabilizers", []),  # of the same stem as a word of some post
        ("the", []),
        ("lim", []),  # too short to tell
        ("x" * 3_000, []),
        ("群", []),
    ],
)
def test_a_word_that_no_post_has_gets_similar_words_of_the_posts(notes, word: str, similar: list[str]) -> None:
    assert notes.suggestions(f"is {word} $G_x$?").words == ({word: similar} if similar else {})


def test_a_question_without_a_known_word_is_searched_with_the_nearest_words_and_says_so(notes) -> None:
    with pytest.warns(MathAMRWarning, match="^No post has “stabiliser”. Searched for “stabilizer” instead.$"):
        found = notes.search("What is a stabiliser?", weak=True)
    assert found.equals(notes.search("What is a stabilizer?", weak=True))
    explained = notes.explain("What is a stabiliser?", "orbit")
    assert explained.score == pytest.approx(found.set_index("docno")["score"]["orbit"])
    nearest = "No post has “convergense”. Searched for “convergence” instead."  # and not for another one that is near
    assert str(notes.suggestions("What is convergense?")) == nearest


def test_a_question_with_a_known_word_is_searched_as_asked_and_gets_similar_words(notes) -> None:
    with pytest.warns(MathAMRWarning, match="^No post has “stabiliser”. Similar words: stabilizer.$"):
        found = notes.search("stabiliser of a group", weak=True)
    scores = notes.retriever()(notes.frame("stabiliser of a group"))
    assert found["score"].tolist() == scores["score"].tolist()[: len(found)]
    suggested = notes.suggestions("stabiliser of a group")
    assert (suggested.corrected.text, suggested.replaced) == ("stabilizer of a group", False)


def test_a_question_of_known_words_or_names_is_searched_as_asked(notes) -> None:
    for question in ("orbit of a point $x$", "Orbits", "$G_x$", "?"):
        assert notes.suggestions(question) == ({}, notes.read_query(question), notes.read_query(question))


def test_formulas_of_a_corrected_question_stay(notes) -> None:
    searched = notes.suggestions("FORMULA stabiliser $G_x$ of $y$").searched
    assert text_of(searched) == "FORMULA stabilizer $G_x$ of $y$"


def test_the_command_line_and_assistants_are_told(notes) -> None:
    told = "No post has “Hausdorf”. Searched for “Hausdorff” instead."
    ran = CliRunner().invoke(main, ["search", str(notes.path), "Hausdorf", "--json"])
    assert json.loads(ran.stdout.splitlines()[0])["docno"] == "haus"
    assert told in ran.stderr
    answer = Tools(notes).search("Hausdorf", 3, max_tokens=400)
    assert answer.startswith(f"[{told}]\n1. haus  ")
    assert Tools(notes).search("zebra", 3, max_tokens=400).startswith("No good match.")


@pytest.mark.parametrize(("q", "replaced"), [("Hausdorf <b>", True), ("Hausdorf space", False)])
def test_the_interface_and_the_page_without_scripts_show_suggestions(notes, q: str, replaced: bool) -> None:
    with client_of(notes) as client:
        answer = get(client, "/api/search", q=q, format="text")
        corrected = q.replace("Hausdorf", "Hausdorff")
        words = [{"word": "Hausdorf", "similar": ["Hausdorff"]}]
        assert answer["suggestions"] == {"words": words, "corrected": corrected, "replaced": replaced}
        assert answer["query"] == (corrected if replaced else q)
        shown = get(client, "/api/explain", q=q, docno="haus", format="text")
        assert shown["query"] == answer["query"]
        assert "suggestions" not in get(client, "/api/search", q="Hausdorff space")
        plain = client.get("/plain", params={"q": q}).text
        [note] = re.findall('<p class="note">(No post has “Hausdorf”.*)</p>', plain)
        assert ("Searched for Hausdorff &lt;b&gt; instead." in note) is replaced
        assert ("plain?q=Hausdorff+space" in note) is not replaced


def edits(one: str, other: str) -> int:
    """The distance by insertions, deletions, changes and swaps of neighbors, by its definition."""
    if not (one and other):
        return len(one or other)
    best = min(edits(one[1:], other) + 1, edits(one, other[1:]) + 1, edits(one[1:], other[1:]) + (one[0] != other[0]))
    return min(best, edits(one[2:], other[2:]) + 1) if one[:2] == other[1::-1] and len(one) > 1 else best


def test_near_terms_are_those_of_few_edits() -> None:
    chooser = random.Random(0)
    terms = sorted({"".join(chooser.choices("abü群", k=chooser.randint(1, 6))) for _ in range(300)})
    for word in ["abab", "aab", "bü群a", "üab"]:
        begun = [term for term in terms if len(term) > 1 and {*term[:2]} & {*word[:2]}]
        for most in (1, 2):
            found = [terms[place] for place in nearest_terms(Texts.of(terms), word, most)]
            wanted = sorted((edits(term, word), term) for term in begun if edits(term, word) <= most)
            assert found == [term for _, term in wanted]
    endings = Texts.of(["stab", "stabil", "stabilis", "stable"])
    assert nearest_terms(endings, "stabilis", 1, ending=2).tolist() == [2, 1]


@pytest.mark.slow
def test_near_terms_of_half_a_million_are_found_in_a_second() -> None:
    chooser = random.Random(0)
    words = {"".join(chooser.choices("etaoinshrdlucmfwypvbgkjqxz", k=chooser.randint(3, 14))) for _ in range(560_000)}
    terms = Texts.of(sorted({*words, "stabil"}))
    start = time.process_time()
    assert terms[nearest_terms(terms, "stabiliser", 2, ending=5)[0]] == "stabil"
    assert time.process_time() - start < 1
