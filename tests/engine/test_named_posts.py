"""A question that is a post's printed name, title, label or number finds that post first, and says so."""

from pathlib import Path

import numpy as np
import pytest

from pyterrier_mathamr.cli.engine import results_table
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.mcp import Tools
from pyterrier_mathamr.engine.page import Answers
from pyterrier_mathamr.engine.posts import PostStore, normalized
from pyterrier_mathamr.posts import Document
from tests.engine.conftest import built, written

LONG = "It is used again and again in what follows, and each time in another way. " * 30
CHAPTER = rf"""\section{{Fatou and Lebesgue}}
The lemma of Fatou, Fatou's lemma, is needed for Fatou's theorem and many a lemma. {LONG}
\begin{{lemma}}[Fatou's lemma]\label{{lem:lower}}
For $f_n \ge 0$ the integral of the lower limit is at most the lower limit of the integrals.
\end{{lemma}}
\begin{{theorem}}[Hurewicz]\label{{thm:hurewicz}} The first groups agree, where $\pi_1$ is abelian.\end{{theorem}}
\begin{{theorem}}[Dirichlet's theorem on primes] There are infinitely many of them in each class.\end{{theorem}}
{LONG}
"""
NOTE = f"# Cauchy's integral formula\n\n**Theorem 3.2 (Heine–Borel).** Compact means closed and bounded.\n\n{LONG}\n"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> SearchEngine:
    folder = tmp_path_factory.mktemp("named")
    fatou = "Fatou's lemma, Fatou's lemma and Fatou's lemma: a lemma of Fatou."
    notes = written(folder / "notes", {"chapter.tex": CHAPTER, "note.md": NOTE, "fatou.md": fatou})
    return built(folder / "engine", notes)


@pytest.mark.parametrize(
    ("query", "docno"),
    [
        ("Fatou's lemma", "chapter.tex#lemma-fatou-s-lemma"),
        ("the Fatou lemma", "chapter.tex#lemma-fatou-s-lemma"),
        ("What is Fatou’s Lemma?", "chapter.tex#lemma-fatou-s-lemma"),
        ("Hurewicz", "chapter.tex#thm:hurewicz"),
        ("Hurewicz theorem", "chapter.tex#thm:hurewicz"),
        ("thm:hurewicz", "chapter.tex#thm:hurewicz"),
        ("Theorem 3.2", "note.md#theorem-3.2"),
        ("heine borel", "note.md#theorem-3.2"),
        ("Heine-Borel Theorem", "note.md#theorem-3.2"),
    ],
)
def test_a_name_a_label_and_a_number_find_their_statement_first(engine, query: str, docno: str) -> None:
    [first, *others] = engine.search(query, weak=True).itertuples()
    assert (first.docno.replace("lem:lower", "lemma-fatou-s-lemma"), first.named) == (docno, True)
    assert not any(other.named for other in others)
    assert first.score > 100 >= max((other.score for other in others), default=0)


def test_a_statement_precedes_the_section_and_the_file_of_its_name(tmp_path) -> None:
    text = "Burnside's lemma counts orbits: Burnside's lemma is a lemma of Burnside."
    section = rf"\section{{Burnside's lemma}} {text} {LONG} \begin{{theorem}}[Burnside's lemma] $|X/G|$ \end{{theorem}}"
    notes = written(tmp_path / "notes", {"action.tex": section, "burnside.md": f"# Burnside's lemma\n\n{text}"})
    found = built(tmp_path / "e", notes).search("Burnside's lemma", weak=True)
    assert found["named"].tolist() == [True] * 3
    assert found["kind"].tolist()[0] == "theorem"
    assert found["score"][0] > 200 >= found["score"][1] > 100


def test_words_that_are_no_name_rank_as_before(engine) -> None:
    found = engine.search("a lemma of Fatou about integrals", weak=True)
    assert not found["named"].any()
    assert found["score"].max() <= 100


def test_the_pipeline_and_the_explanation_have_the_same_score(engine) -> None:
    found = engine.search("Hurewicz", weak=True)
    frame = engine.retriever()(engine.frame("Hurewicz"))
    assert frame["docno"].tolist()[: len(found)] == found["docno"].tolist()
    np.testing.assert_allclose(frame["score"][: len(found)], found["score"])
    first = engine.explain("Hurewicz", found["docno"][0])
    assert first.score == pytest.approx(found["score"][0])
    assert first.parts[["system", "part", "contribution"]].values.tolist()[0] == ["names", "name", 200.0]
    other = engine.explain("Hurewicz", found["docno"][1])
    assert other.score == pytest.approx(found["score"][1])


def test_a_named_post_passes_no_filter_that_excludes_it(engine) -> None:
    assert "chapter.tex#thm:hurewicz" not in engine.search("Hurewicz", weak=True, kind="lemma")["docno"].tolist()
    assert engine.search("Hurewicz", kind="theorem")["named"].tolist()[0]


def test_every_face_says_that_the_question_is_the_name(engine) -> None:
    assert " named  Theorem 1 (Hurewicz)" in results_table(engine.search("Hurewicz"), formula=False)
    assert "(named, match 9" in Tools(engine).search("Hurewicz", 1, max_tokens=400)
    page = Answers(engine)
    [first, *_] = page.search("Hurewicz")["systems"][0]["results"]
    assert first["named"]
    assert page.explain("Hurewicz", first["docno"])["parts"][0]["part"] == "name"


def test_a_name_follows_its_post(tmp_path: Path) -> None:
    zorn = {"docno": "a", "title": "Zorn's lemma", "text": "Chains."}
    engine = built(tmp_path / "e", [zorn, {"docno": "b", "text": "x"}])
    assert engine.search("Zorn lemma")["named"].tolist()[:1] == [True]
    engine.update([{**zorn, "title": "Well-ordering"}])
    assert not engine.search("Zorn lemma", weak=True)["named"].any()
    assert engine.search("well ordering")["named"].tolist()[:1] == [True]
    engine.delete("b")
    engine.compact()
    assert engine.search("well ordering")["named"].tolist()[:1] == [True]
    engine.delete("a")
    assert engine.snapshot().indexes.posts.called("well ordering") == {}


def test_names_are_found_without_reading_posts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = PostStore(tmp_path / "posts")
    store.write((Document(f"d{i}", f"The {i}-th of many" if i % 3 else "Twins", "text") for i in range(5)), "create")
    store.delete(["d3"])
    monkeypatch.setattr(PostStore, "get_many", None)
    for opened in (store, PostStore(store.path)):
        assert list(opened.called("the 4-th of many")) == ["d4"]
        assert list(opened.called("Twin")) == ["d0"]
        assert opened.called("2-th") == opened.called("the") == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("The Cauchy–Schwarz Inequality", "cauchy schwarz inequality"),
        ("Green's functions", "green function"),
        ("Stokes’ theorem", "stoke theorem"),
        ("Gauss's law", "gauss law"),
        ("Théorème de Bézout", "theoreme de bezout"),
        ("x" * 200, ""),
    ],
)
def test_names_are_compared_without_case_accents_articles_and_endings(name: str, expected: str) -> None:
    assert normalized(name) == expected
