"""The page's answers: results, explanations, and text that stays text whatever it holds."""

import re

import pytest

from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine.page import Answers, answers
from tests.engine.conftest import POSTS, QUERY, built, client_of, get, written

HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(2)> \"'> $<b>x</b>$ \\(a\\) </textarea>"


def test_search_answers_with_each_system_and_what_moved(client, engine) -> None:
    answer = get(client, "/api/search", q=QUERY)
    assert [system["name"] for system in answer["systems"]] == ["BM25", "BM25 + MathAMR+"]
    blend = answer["systems"][1]["results"]
    assert [result["docno"] for result in blend] == engine.search(QUERY)["docno"].tolist()
    first = [result["docno"] for result in answer["systems"][0]["results"]]
    for result in blend:
        assert result["rank_in_first"] == (first.index(result["docno"]) + 1 if result["docno"] in first else None)


def test_each_part_of_a_question_has_one_color_in_question_and_answer(client) -> None:
    answer = get(client, "/api/search", q="diverges $\\sum 1/n$ rings", weak="1")
    harmonic = next(each for each in answer["systems"][1]["results"] if each["docno"] == "harmonic")
    words = next(each for each in answer["systems"][1]["results"] if each["docno"] == "words")
    assert 'class="formula part-0"' in answer["query_html"]
    shown = harmonic["title_html"] + harmonic["snippet_html"]  # a post without a title has its beginning as one
    assert 'class="formula part-0 equal"' in shown
    color = re.search('<mark class="(part-.)">diverges</mark>', answer["query_html"])[1]
    other = re.search('<mark class="(part-.)">rings</mark>', answer["query_html"])[1]
    assert len({"part-0", color, other}) == 3
    assert f'<mark class="{color}">diverge</mark>' in shown
    assert f'<mark class="{other}">rings</mark>' in words["title_html"] + words["snippet_html"]


def test_of_many_words_the_rarest_have_colors_and_the_others_a_quiet_mark(client) -> None:
    q = "show why compare post words only groups rings integral series unbounded harmonic"
    html = get(client, "/api/preview", q=q)["html"]
    colors = re.findall('class="(part-.)"', html)
    assert sorted(set(colors) - {"part-w"}) == [f"part-{i}" for i in range(8)]
    assert "part-w" in colors


def test_an_explanation_adds_up_and_colors_what_matches(client, engine) -> None:
    answer = get(client, "/api/explain", q=QUERY, docno="basel")
    assert answer["score"] == pytest.approx(engine.search(QUERY)["score"].iloc[0], abs=1e-4)
    assert sum(part["contribution"] for part in answer["parts"]) == pytest.approx(answer["score"], abs=1e-6)
    assert "part-0" in answer["query_html"]
    assert "part-0" in answer["document"]["html"]
    assert '<p class="title">Basel problem</p>' in answer["document"]["html"]
    assert "converges</mark>" in answer["document"]["html"]
    sentences = [part for part in answer["parts"] if part["part"] == "sentence"]
    assert sentences
    assert all("\\" not in re.sub('(data-latex|alttext)="[^"]*"', "", part["query_html"]) for part in sentences)
    assert "<math" in sentences[0]["query_html"]


@pytest.mark.parametrize("system", ["bm25", "mathamr"])
def test_the_score_of_each_system_is_explained_including_omitted_parts(client, engine, system, monkeypatch) -> None:
    monkeypatch.setattr(answers, "_ROWS", 2)
    ranking = {"bm25": engine.bm25, "mathamr": engine.mathamr}[system]()(engine.frame(QUERY))
    omitted = 0
    for docno, score in zip(ranking["docno"], ranking["score"], strict=True):
        answer = get(client, "/api/explain", q=QUERY, docno=docno, system=system)
        assert answer["score"] == pytest.approx(score, abs=1e-4)
        assert len(answer["parts"]) <= 2
        total = sum(part["contribution"] for part in answer["parts"]) + answer["rest"]["contribution"]
        assert total == pytest.approx(answer["score"], abs=1e-6)
        omitted += answer["rest"]["parts"]
    assert omitted > 0


def test_formulas_previews_posts_and_graphs_are_answered(client) -> None:
    found = get(client, "/api/search", q="√π", mode="formulas")["systems"][0]["results"]
    assert found[0]["docno"] == "gauss#1"
    assert found[0]["post_id"] == "gauss"
    assert found[0]["snippet_html"].startswith("The integral")  # inside its sentence
    assert 'class="formula part-0 equal"' in found[0]["snippet_html"]
    assert (found[0]["tier"], found[0]["substitution"]) == ("equal", [])
    found = get(client, "/api/search", q="?a = 1", mode="formulas")["systems"][0]["results"]
    inside = next(result for result in found if result["tier"] == "contains, instance")
    assert 'class="formula part-0 instance has-matched"' in inside["snippet_html"]
    assert '<mrow class="matched"><mi>n</mi><mo' in inside["snippet_html"]  # the bound of a sum
    assert inside["substitution"][0]["name_html"] == "<code>?a</code>"
    assert 'data-latex="n"' in inside["substitution"][0]["value_html"]
    assert "<math" in get(client, "/api/preview", q="$x^2$")["html"]
    assert "integral" in get(client, "/api/post", docno="gauss")["html"]
    graph = client.get("/api/graph/gauss.svg")
    assert graph.headers["content-type"].startswith("image/svg+xml")
    assert graph.text.startswith("<svg")
    assert client.get("/api/graph/gauss.svg?sentence=1").text.startswith("<svg")
    assert client.get("/api/graph/gauss.svg?sentence=99").status_code == 400


def test_formulas_are_grouped_by_post_in_the_order_of_the_best_ones(client, engine) -> None:
    whole = get(client, "/api/search", q="n", mode="formulas", k=100)["systems"][0]["results"]
    ranking = engine.search_formula("n", 100)
    assert [result["post_id"] for result in whole] == ranking["post_id"].drop_duplicates().tolist()
    for result in whole:
        others = ranking["docno"][ranking["post_id"] == result["post_id"]].tolist()[1:]
        assert [other["docno"] for other in result["others"]] == others
    assert any(result["others"] for result in whole)


def test_only_filters_that_posts_can_pass_are_offered(tmp_path, client) -> None:
    assert get(client, "/api/settings")["filters"] == ["in"]
    notes = written(tmp_path / "notes", {"a.md": "# Roots\n\nThe root of $x^2-2$ is irrational.\n"})
    of_files = client_of(built(tmp_path / "e", notes))
    assert get(of_files, "/api/settings")["filters"] == ["in", "kind", "since", "until"]


def test_a_formula_that_the_title_shows_is_marked_there_and_not_repeated_below_it(tmp_path) -> None:
    posts = [
        {"title": "Basel", "text": "We have $x=y^2$ here."},
        {"title": "The sum $a+b$", "text": "The sum $p-q$ is larger."},
        {"text": "Always $u^2=v+1$ holds. It is large."},  # its beginning is its title
    ]
    engine = built(tmp_path / "e", [{"id": str(number), **post} for number, post in enumerate(posts)])
    client = client_of(engine)
    marked = '<span class="formula part-0 equal"'
    for q, title, sentence in (
        ("x=y^2", "Basel", f"We have {marked}"),
        ("a+b", f"The sum {marked}", None),
        ("u^2=v+1", f"Always {marked}", None),
    ):
        [found, *_] = get(client, "/api/search", q=q, mode="formulas")["systems"][0]["results"]
        assert found["title_html"].startswith(title)
        assert found["snippet_html"].startswith(sentence) if sentence else not found["snippet_html"]
    found = get(client, "/api/search", q="large sum", weak="1")["systems"][0]["results"]
    snippets = {each["docno"]: each["snippet_html"] for each in found}
    assert "<mark" in snippets["2"]
    assert "Always" not in snippets["2"]
    assert 'data-latex="p-q"' in snippets["1"]  # the title has another formula


def test_a_formula_of_a_title_is_colored_by_how_it_matches(tmp_path) -> None:
    titles = {"equal": "Why is $a+b=c$?", "renamed": "Why is $a+b=d$?", "similar": "Why is $a+b=5$?"}
    engine = built(tmp_path / "e", [{"id": kind, "title": title, "text": "So."} for kind, title in titles.items()])
    client = client_of(engine)
    found = get(client, "/api/search", q="Why is $a+b=c$?", weak="1")["systems"][0]["results"]
    assert sorted(each["docno"] for each in found) == sorted(titles)
    assert all(f"part-0 {each['docno']}" in each["title_html"] for each in found)


def test_a_formula_is_searched_whole_with_or_without_delimiters(client) -> None:
    formulas_only = get(client, "/api/search", q=r"\frac{1}{n^2}", mode="formulas")
    for q in (r"$\frac{1}{n^2}$", r"\(\frac{1}{n^2}\)", r"$$\frac{1}{n^2}$$"):
        answer = get(client, "/api/search", q=q, mode="formulas")
        assert answer["query_html"] == formulas_only["query_html"]
        assert answer["systems"][0]["results"] == formulas_only["systems"][0]["results"]
    assert get(client, "/api/search", q=" ", mode="formulas")["systems"] == []


def test_an_engine_that_changes_is_followed(tmp_path) -> None:
    engine = built(tmp_path / "e", [{"id": "a", "text": "words of one post"}])
    client = client_of(SearchEngine(tmp_path / "e"))

    def found() -> list[str]:
        return [each["docno"] for each in get(client, "/api/search", q="words")["systems"][0]["results"]]

    assert found() == ["a"]
    engine.add([{"id": "b", "text": "words of another post"}])
    assert sorted(found()) == ["a", "b"]
    assert get(client, "/api/settings")["size"] == 2
    engine.delete(["a"])
    assert found() == ["b"]
    built(tmp_path / "e", [{"id": "c", "text": "words of a new engine"}], overwrite=True)
    assert found() == ["c"]
    assert get(client, "/api/explain", q="words", docno="c")["score"] > 0


def test_user_text_is_never_html(tmp_path) -> None:
    posts = [
        {"docno": HOSTILE, "title": HOSTILE, "text": HOSTILE + " words"},
        {"docno": "b", "html": f"<p>{HOSTILE}</p>"},
    ]
    client = client_of(built(tmp_path / "e", posts))
    answers = [
        get(client, "/api/search", q=f"words {HOSTILE}"),
        get(client, "/api/explain", q=f"words {HOSTILE}", docno=HOSTILE),
        get(client, "/api/post", docno="b"),
        get(client, "/api/preview", q=HOSTILE),
        get(client, "/api/settings"),
    ]
    for html in _html_of(answers):
        assert not any(tag in html for tag in ("<script", "<img", "<b>"))
    assert "<script" not in client.get("/api/graph/b.svg").text


def _html_of(value) -> list[str]:
    if isinstance(value, dict):
        return [text for name, of in value.items() for text in ([of] if name.endswith("html") else _html_of(of))]
    return [text for of in value for text in _html_of(of)] if isinstance(value, list) else []


def test_drawings_are_shown_as_source_and_their_words_are_not_found(tmp_path) -> None:
    source = r"A square \begin{tikzcd} A \arrow[r, \"secret\"] & B<C \end{tikzcd} of $f$ commutes."
    engine = built(tmp_path / "e", [{"id": "square", "latex": source}, *POSTS])
    page = Answers(engine)
    post = page.post("square", "square $f$")
    drawing = r"\begin{tikzcd} A \arrow[r, \&quot;secret\&quot;] &amp; B&lt;C \end{tikzcd}"
    assert f'<code class="tex">{drawing}</code>' in post["html"]
    assert r"\begin{tikzcd} A \arrow[r," in post["latex"]
    assert "tikzcd" not in post["similar"]
    [found] = page.search("secret", weak=True)["systems"]
    assert not any("secret" in row["snippet_html"] for row in found["results"])


def test_the_preview_knows_the_macros_of_the_notes(tmp_path) -> None:
    files = {"preamble.sty": r"\newcommand{\Rls}{\mathbb{R}}", "a.md": r"Let $x \in \Rls$ and $y \in \Rls$."}
    page = Answers(built(tmp_path / "e", written(tmp_path / "notes", files)))
    for mode in ("posts", "formulas"):
        preview = page.preview(r"$z\in\Rls$", mode)
        assert preview["problems"] == []
        assert "ℝ" in preview["html"]
    assert [each["message"] for each in page.preview(r"$\Rls\foo$")["problems"]] == ["This command is not known."]
    [found] = page.search(r"z\in\Rls", "formulas")["systems"]
    assert {row["post_id"] for row in found["results"]} == {"a.md"}
