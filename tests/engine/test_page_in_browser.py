"""The page in a real browser: Chromium of the system, driven by Playwright; nothing leaves localhost."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest

from pyterrier_mathamr._common.feedback import PostWarning
from tests.engine.chromium import IN_CHROMIUM, NEEDED, PATIENCE, sync_api
from tests.engine.conftest import POSTS, QUERY, built

if not NEEDED:
    pytest.importorskip("uvicorn")
SCREENSHOTS = os.environ.get("MATHAMR_SCREENSHOTS")  # a folder, in which CI keeps the pictures of a run
WIDE = "+".join(f"x_{{{i}}}" for i in range(80))
MORE = [
    {"id": "hostile", "title": "<script>document.title='broken'</script>",
     "text": "<img src=x onerror=alert(1)> words"},
    {"id": "arabic", "title": "نظرية فيثاغورس", "text": "في المثلث القائم الزاوية $a^2+b^2=c^2$."},
    {"id": "titled", "title": r"Is $u^5+v^5=w^5$ solvable where $u^5+v^5>0$?", "text": r"Not if $r^5+s^5=t^5$ is not."},
    {"id": "wide", "title": "A wide sum", "text": f"The sum is ${WIDE}$."},
    {"id": "drawing", "title": "A drawing",
     "text": r"The path $\begin{tikzpicture}\draw (0,0)--(1,1);\end{tikzpicture}$ and $\nosuch x$ here."},
]  # fmt: skip

pytestmark = IN_CHROMIUM


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server in a separate process, and its address."""
    path = tmp_path_factory.mktemp("browser") / "my.engine"
    with pytest.warns(PostWarning, match="nosuch"):
        built(path, [*POSTS, *MORE])
    command = [sys.executable, "-m", "pyterrier_mathamr", "serve", str(path), "--port", "0"]
    command += ["--system", "bm25", "--system", "blend", "--title", "Sums", "--about", "Some posts on sums."]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as process:
        line = process.stdout.readline()
        assert "http://" in line
        yield line.split(": ", 1)[1].split()[0]
        process.terminate()


@pytest.fixture
def page(page):
    page.wait_for_selector(".examples")
    return page


def ask(page, query: str) -> None:
    page.locator("#results").evaluate("results => results.replaceChildren()")  # of an earlier query
    page.fill("#query", query)
    page.keyboard.press("Enter")
    page.wait_for_url("**q=**")
    page.wait_for_selector("#results:not([aria-busy]) article")


def shown_tab(page) -> str:
    return page.locator("#tabs [aria-current]").inner_text().split()[0]


def opened(page, name: str, place: str) -> None:
    """Open what a button of the first result shows."""
    page.locator("article button", has_text=name).first.click()
    page.wait_for_selector(place)


def focused(page) -> str:
    return page.evaluate("document.activeElement.textContent")


def tab_to(page, name: str) -> None:
    """Press Tab until an element with a text has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if focused(page) == name:
            return
    raise AssertionError(f"{name} cannot be reached by the keyboard")


def only_blend(page) -> None:
    """Leave one of the two systems in answers to searches."""

    def answer(route) -> None:
        given = route.fetch()
        found = given.json()
        route.fulfill(response=given, json={**found, "systems": found["systems"][-1:]})

    page.route("**/api/search?*", answer)


def test_words_that_no_post_has_are_named_with_the_question_to_search_instead(page) -> None:
    ask(page, "harmonik")
    assert page.inner_text("#suggested") == "No post has “harmonik”. Searched for harmonic instead."
    ask(page, "harmonik series")
    assert page.inner_text("#suggested") == "No post has “harmonik”. Search for harmonic series"
    page.click("#suggested a")
    page.wait_for_selector("#results:not(:has(#suggested)) article")
    assert page.input_value("#query") == "harmonic series"


def test_two_systems_are_shown_side_by_side_with_formulas_as_formulas(page) -> None:
    ask(page, QUERY)
    left, right = page.locator("main section").all()
    assert left.bounding_box()["y"] == right.bounding_box()["y"]
    assert left.locator(".moved").count() == 0
    assert right.locator(".moved").count() == right.locator("article").count()
    loaded = "document.fonts.ready.then(() => [...document.fonts].map((font) => font.family + ' ' + font.status))"
    assert page.evaluate(loaded) == ["Inter loaded", "STIX Two Math loaded"]
    heights = page.evaluate(
        "() => { const f = document.querySelector('article mfrac');"
        " return [f.getBoundingClientRect().height, f.children[0].getBoundingClientRect().height]; }"
    )
    assert heights[0] > 1.5 * heights[1]
    page.emulate_media(media="print")
    assert page.locator("article .snippet").first.is_visible()
    controls = (".tools", "#symbols", "#help", "footer", "#choice")
    assert not any(page.locator(name).first.is_visible() for name in controls)


def test_search_and_explanation_with_only_the_keyboard(page) -> None:
    page.keyboard.press("/")
    page.keyboard.type(QUERY)
    page.keyboard.press("Enter")
    page.wait_for_selector("article")
    tab_to(page, "Why?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".explanation .reasons")
    tab_to(page, "How the score adds up")
    page.keyboard.press("Enter")
    page.wait_for_selector(".explanation .bar")
    numbers = [float(text) for text in page.locator(".explanation .number").all_text_contents()]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.1)
    assert page.locator("button[aria-expanded=true]").count() == 1
    assert page.locator(".explanation td math").count() > 0
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.tagName") == "ARTICLE"
    second = focused(page)
    page.keyboard.press("k")
    assert focused(page) != second


def test_a_formula_is_searched_and_symbols_are_reached_by_keyboard(page) -> None:
    page.keyboard.press("/")
    page.keyboard.press("Tab")
    for _ in range(3):  # after dollars, a wildcard and a root
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.input_value("#query") == r"$\frac{}{}$"
    page.keyboard.type("1")
    assert page.input_value("#query") == r"$\frac{1}{}$"
    ask(page, QUERY)
    page.locator("article").first.press("j")
    page.locator("article .formula").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#tabs a:last-child[aria-current]")
    assert shown_tab(page) == "Formulas"


def test_a_part_of_the_question_has_one_color_everywhere_and_why_begins_with_a_sentence(page) -> None:
    ask(page, "diverges $\\sum 1/n$")
    opened(page, "Why?", ".explanation")
    color = "(place) => getComputedStyle(document.querySelector(place)).backgroundColor"
    for part in (".part-0 > math", "mark.part-1"):
        shown = {
            page.evaluate(color, f"{place} {part}") for place in ("#preview", ".explanation", ".explanation table")
        }
        assert len(shown) == 1
        assert shown != {"rgba(0, 0, 0, 0)"}
    ask(page, "why diverges $\\sum 1/n$")
    page.locator("article[data-docno=harmonic] button", has_text="Why?").first.click()
    reasons = page.locator(".reasons")
    sync_api.expect(reasons).to_contain_text("In both: the same formula")
    sync_api.expect(reasons).to_contain_text("the word diverges.")
    assert not page.locator(".explanation table").first.is_visible()


def test_a_formula_of_a_result_searches_for_it_and_the_state_is_in_the_address(page) -> None:
    page.set_viewport_size({"width": 1000, "height": 150})  # so that the formula is below
    ask(page, QUERY)
    page.locator("article .snippet .formula").last.click()
    page.wait_for_selector("article .snippet .part-0.equal math")
    assert shown_tab(page) == "Formulas"
    page.go_back()
    sync_api.expect(page.locator("#query")).to_have_value(QUERY)
    sync_api.expect(page.locator("#results")).not_to_have_attribute("aria-busy", "true")
    for _ in range(100):
        if page.evaluate("scrollY") > 0:
            break
        page.wait_for_timeout(100)
    assert page.evaluate("scrollY") > 0
    assert "q=How" in page.url
    page.reload()
    page.wait_for_selector("article")
    assert page.input_value("#query") == QUERY


def test_texts_of_posts_are_shown_as_text_or_source_in_their_direction_and_long_formulas_scroll(page) -> None:
    ask(page, "words <script>document.title='broken'</script>")
    page.wait_for_selector("article[data-docno=hostile]")
    assert page.title() != "broken"
    assert "<script>" in page.locator("article[data-docno=hostile] h3").first.inner_text()
    assert page.locator("article img").count() == 0
    ask(page, "drawing path")
    shown = page.locator("article[data-docno=drawing] .snippet").first
    assert r"\begin{tikzpicture}" in shown.inner_text()
    assert r"\nosuch" in shown.inner_text()
    assert page.locator("merror").count() == 0
    ask(page, "المثلث القائم الزاوية $a^2+b^2=c^2$")
    article = page.locator("article[data-docno=arabic]").first
    assert article.locator(".title").evaluate("node => getComputedStyle(node).direction") == "rtl"
    assert article.locator("math").first.evaluate("node => getComputedStyle(node).direction") == "ltr"
    ends = "all => [all[0], all.at(-1)].map(each => each.getBoundingClientRect().left)"
    left, right = article.locator(".snippet mi").evaluate_all(ends)
    assert left < right  # a² + b² = c²
    page.fill("#query", r"المثلث $\frac{a$ هنا")
    source = page.locator("#preview code").first
    style = source.evaluate("node => [getComputedStyle(node).direction, getComputedStyle(node).unicodeBidi]")
    assert style == ["ltr", "isolate"]
    page.set_viewport_size({"width": 390, "height": 900})
    ask(page, "wide sum")
    formula = page.locator("article[data-docno=wide] .snippet .formula").first
    assert formula.evaluate("node => node.scrollWidth > node.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.fill("#query", 600 * "words ")
    assert page.locator("#query").bounding_box()["height"] <= 301


def test_weak_matches_are_shown_by_a_button_and_filters_are_in_the_address(page) -> None:
    page.fill("#query", "zzz qqq")
    page.keyboard.press("Enter")
    page.wait_for_selector(".nothing")
    assert "No good match" in page.inner_text("main")
    assert page.inner_text("#status").startswith("0 posts")
    assert page.locator("article").count() == 0
    page.get_by_role("button", name="Show the closest").first.click()
    page.wait_for_url("**weak=1**")
    page.wait_for_selector("article")
    assert "weak match, 0.0 %" in page.locator("article .context").first.inner_text()
    page.locator("#filters summary").click()
    page.fill("input[name=in]", "basel")
    page.get_by_role("button", name="Apply").click()
    ask(page, "converges")
    page.wait_for_url("**in=basel**")
    sync_api.expect(page.locator("article")).to_have_count(2)  # of both systems
    page.reload()
    page.wait_for_selector("article")
    assert page.input_value("input[name=in]") == "basel"


def test_filters_apply_to_formulas_too(page, address) -> None:
    page.goto(f"{address}?q=%5Cfrac%7B1%7D%7Bn%5E2%7D&in=basel")
    page.wait_for_selector("article")
    assert shown_tab(page) == "Formulas"
    assert all(article.get_attribute("data-docno").startswith("basel") for article in page.locator("article").all())
    assert page.locator("#filters summary").inner_text() == "Filter: basel"


def test_the_page_fits_a_telephone_and_the_graph_is_drawn(page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    ask(page, QUERY)
    opened(page, "Why?", ".explanation")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    opened(page, "Graph of the post", ".graph img")
    assert page.evaluate("document.querySelector('.graph img').naturalWidth") > 100


def test_the_api_is_described_on_a_page(page, address) -> None:
    page.goto(f"{address}api")
    page.wait_for_selector("#Explanation")
    shown = page.locator("main").inner_text()
    for text in ("GET /api/search", "GET /api/graph/{docno}.svg", "at most 4,000 characters", "503"):
        assert text in shown


def test_the_first_page_shows_what_can_be_asked_and_one_box_finds_posts_and_formulas(page, address) -> None:
    assert page.locator("h1").inner_text() == "Sums"
    assert page.locator("#about").inner_text() == "Some posts on sums."
    assert page.locator("#updated").inner_text().startswith("Updated ")
    page.locator(".examples a").last.click()
    page.wait_for_selector("article")
    assert page.input_value("#query") != ""
    page.goto(address)
    page.wait_for_selector(".examples")
    asked = []
    page.on("request", lambda sent: asked.append(sent.url) if "api/search" in sent.url else None)
    ask(page, "groups and rings")
    page.wait_for_timeout(300)
    assert page.locator("#tabs a").count() == 1
    assert not any("mode=formulas" in url for url in asked)
    ask(page, "?a/?b")
    sync_api.expect(page.locator("#tabs [aria-current]")).to_contain_text("Formulas")
    sync_api.expect(page.locator("#tabs")).not_to_contain_text("…")  # both have their counts
    assert [url.split("mode=")[1].split("&")[0] for url in asked[1:]] == ["formulas", "posts"]
    page.locator("#tabs a", has_text="Posts").click()
    page.wait_for_url("**mode=posts**")
    page.reload()
    page.wait_for_selector("#tabs [aria-current]")
    assert shown_tab(page) == "Posts"


def test_results_of_a_formula_are_one_card_for_each_post_with_a_note_before_similar_ones(page) -> None:
    ask(page, r"\frac{?a}{?b^2}")
    posts = page.locator("article").evaluate_all("all => all.map(each => each.dataset.docno.split('#')[0])")
    assert len(set(posts)) == len(posts)
    legend = page.locator("#legend > span").evaluate_all("all => all.map(each => each.className)")
    assert legend == ["formula part-0 equal has-matched", "formula part-0 similar"]  # only what occurs
    card = page.locator("article", has_text="Gaussian integral")
    shown = card.locator(".formula").evaluate_all("all => all.map((each) => each.dataset.latex)")
    assert len(shown) == len(set(shown)) == card.locator(".formula.similar").count() == 3
    items = page.locator("ol.results > li").all()
    noted = [place for place, item in enumerate(items) if "No other formula matches" in item.inner_text()]
    similar = [item.locator(".context .note").inner_text() == "similar" for item in items]
    assert noted == [similar.index(True)]
    assert similar == sorted(similar)
    assert page.locator("#tabs [aria-current] .count").inner_text() == str(similar.index(True))
    opened(page, "Why?", ".substitution")  # what the wildcards stand for
    substitution = page.locator(".substitution").first
    assert substitution.inner_text().split()[:4] == ["in", "the", "query", "here"]
    assert "?a" in substitution.inner_text()
    page.set_viewport_size({"width": 390, "height": 800})
    assert all(head.is_visible() for head in substitution.locator("th").all())


def test_the_formulas_of_a_title_are_marked_in_it_and_only_others_are_listed_below(page) -> None:
    ask(page, "?a^5+?b^5=?c^5")
    shown = page.locator("article[data-docno^=titled] .formula.instance")
    assert shown.evaluate_all("all => all.map((each) => each.dataset.latex)") == ["u^5+v^5=w^5", "r^5+s^5=t^5"]
    assert page.locator("article[data-docno^=titled] .title .formula.instance").count() == 1
    ask(page, "?a^5+?b^5")
    title = page.locator("article[data-docno^=titled] .title .formula.instance")
    assert title.evaluate_all("all => all.map((each) => each.dataset.latex)") == ["u^5+v^5=w^5", "u^5+v^5>0"]
    page.locator("article[data-docno^=titled]").get_by_text("Why?").click()
    assert page.locator("article[data-docno^=titled] .found .formula").get_attribute("data-latex") == "u^5+v^5>0"


def test_going_back_asks_the_server_for_nothing(page) -> None:
    ask(page, QUERY)
    sync_api.expect(page.locator("#tabs")).not_to_contain_text("…")  # both have their counts
    page.locator("article .tools a, article .title a").first.click()
    page.wait_for_selector("article.post")
    assert "post=" in page.url
    asked = []
    page.on("request", lambda sent: asked.append(sent.url) if "/api/" in sent.url else None)
    page.go_back()
    page.wait_for_selector("ol.results")
    page.wait_for_timeout(200)
    assert asked == []


def test_commands_are_suggested_and_a_typed_closing_sign_takes_the_place_of_the_inserted_one(page) -> None:
    page.keyboard.press("/")
    page.keyboard.type(r"$\appr")
    page.wait_for_selector("#commands li")
    page.keyboard.press("Tab")
    assert page.input_value("#query") == r"$\approx "
    page.keyboard.type(r"\fr")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("1")
    assert page.input_value("#query") == r"$\approx \frac{1}{}"
    page.keyboard.type(r"\bet")
    page.keyboard.press("Escape")
    assert page.locator("#commands").is_hidden()
    page.fill("#query", "")
    page.get_by_role("button", name="√").click()
    page.keyboard.type("2}$ is")
    assert page.input_value("#query") == r"$\sqrt{2}$ is"
    page.fill("#query", "$x^{}$")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type("{a}")  # which has to be closed itself
    assert page.input_value("#query") == "$x^{{a}}$"


SOURCE = r"{\displaystyle x^{2}}"
PASTED = [
    (
        "text/html",
        f'Let <span class="mwe-math-element"><math alttext="{SOURCE}"><mi>x</mi></math><img alt="{SOURCE}"></span> be.',
        "Let $x^{2}$ be.",
    ),
    ("text/html", f'<p>As <img class="mwe-math-fallback-image-inline" alt="{SOURCE}"></p>', "As $x^{2}$"),
    ("text/plain", "<math><mfrac><mn>1</mn><mi>n</mi></mfrac></math>", r"$\frac{1}{n}$"),
    ("text/plain", "Is x² ≤ 4 here?", r"Is $x^{2} \le 4$ here?"),
    ("text/plain", "only words", "only words"),
    ("text/html", "<b>bold</b>", "bold"),
]
PASTE = """([kind, text]) => {
  const data = new DataTransfer();
  data.setData(kind, text);
  const plain = kind === "text/html" ? new DOMParser().parseFromString(text, kind).body.textContent : text;
  data.setData("text/plain", plain);
  const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
  if (document.activeElement.dispatchEvent(event)) document.execCommand("insertText", false, plain);
}"""


def test_what_is_pasted_becomes_latex(page) -> None:
    for kind, text, expected in PASTED:
        page.fill("#query", "")
        page.locator("#query").focus()
        page.evaluate(PASTE, [kind, text])
        sync_api.expect(page.locator("#query")).to_have_value(expected)


def test_the_preview_points_at_errors_and_sets_roots_scripts_and_punctuation_well(page) -> None:
    page.fill("#query", r"Is $\frac{1}{n$ small?")
    page.wait_for_selector(".problem")
    assert "a } is missing" in page.locator(".problem").inner_text()
    page.get_by_role("button", name="Go there").click()
    assert page.evaluate("document.activeElement.selectionStart") == len(r"Is $\frac{1}{n")
    page.fill("#query", r"Is $\frac{1}{n}$ small?")
    sync_api.expect(page.locator(".problem")).to_have_count(0)
    page.fill("#query", r"$\sqrt{2}+\sqrt{n^2}+\sqrt{\frac{a}{b}}+\sqrt[3]{2}$")
    page.wait_for_selector("#preview mroot")
    page.evaluate("document.fonts.ready")
    behind = (
        "all => all.map(root => root.getBoundingClientRect().right - root.children[0].getBoundingClientRect().right)"
    )
    holes = page.locator("#preview :is(msqrt, mroot)").evaluate_all(behind)
    assert len(holes) == 4
    assert max(holes) < 1
    page.fill("#query", r"$a^2 b^2 h^2 p^2 A^2 (c)^2 + x_1 y_1 g_1$")
    page.wait_for_selector("#preview msub")
    for scripts, level in (("msup", 0.5), ("msub", 1)):
        bottoms = page.locator(f"#preview {scripts} > :last-child").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect().bottom)"
        )
        assert max(bottoms) - min(bottoms) <= level
    page.fill("#query", "some words before the formula $a^2+b^2=c^2$. And on.")
    page.wait_for_selector("#preview .joined")
    below = page.evaluate("""() => Array.from({ length: 320 }, (_, i) => {
      document.querySelector("#preview > div").style.width = `${100 + i}px`;
      const range = document.createRange(), joined = document.querySelector("#preview .joined");
      range.selectNode(joined.lastChild);
      return range.getBoundingClientRect().left < joined.querySelector("math").getBoundingClientRect().left;
    })""")
    assert below == [False] * 320


def test_the_source_of_a_post_is_copied_and_similar_posts_have_an_address_and_a_chip(page, address) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address.rstrip("/"))
    ask(page, QUERY)
    page.locator("article[data-docno=basel] button", has_text="Copy LaTeX").first.click()
    page.wait_for_selector("text=Copied")
    assert r"$\sum_{n=1}^\infty \frac{1}{n^2}$" in page.evaluate("navigator.clipboard.readText()")
    ask(page, QUERY)
    page.locator("article[data-docno=basel] a", has_text="Similar").first.click()
    page.wait_for_url("**?like=basel")
    sync_api.expect(page.locator("#like")).to_contain_text("Posts like Basel problem")
    assert page.input_value("#query") == ""
    sync_api.expect(page.locator("article[data-docno=basel]")).to_have_count(0)
    page.locator("#like [data-home]").click()
    page.wait_for_selector(".examples")


def test_six_results_are_in_view_on_a_small_screen(page, address) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    only_blend(page)
    page.goto(f"{address}?{urlencode({'q': QUERY, 'weak': 1})}")
    page.wait_for_selector("article")
    bottoms = page.locator("article").evaluate_all("all => all.map(each => each.getBoundingClientRect().bottom)")
    assert len([bottom for bottom in bottoms if bottom <= 800]) >= 6


def test_after_an_error_nothing_is_dimmed_and_retry_asks_again(browser, address) -> None:
    page, failures = browser.new_page(), [503]
    page.set_default_timeout(PATIENCE)
    page.route(
        "**/api/search?*",
        lambda route: route.fulfill(status=failures.pop(), json={"error": "busy"}) if failures else route.continue_(),
    )
    page.goto(f"{address}?q=sum")
    page.get_by_role("button", name="Retry").wait_for()
    page.wait_for_timeout(300)
    assert page.locator("[aria-busy]").count() == 0
    page.get_by_role("button", name="Retry").click()
    page.wait_for_selector("article")
    page.close()


def test_a_slow_first_answer_is_announced(page, address) -> None:
    held = []
    page.route("**/api/search?*", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/api/search?*"):  # after the preview
        page.goto(f"{address}?q=sum")
    page.wait_for_selector("text=Searching …")
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    page.wait_for_selector("article")
    assert page.locator("text=Searching …").count() == 0


def test_an_empty_engine_shows_how_to_fill_it(page, address) -> None:
    def empty(route) -> None:
        given = route.fetch()
        route.fulfill(response=given, json={**given.json(), "size": 0, "examples": []})

    page.route("**/api/settings?*", empty)
    page.goto(address)
    page.wait_for_selector("text=mathamr update")


def test_without_javascript_the_form_finds_posts(browser, address) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.fill("#query", QUERY)
    page.locator("button[type=submit]").first.click()
    page.locator("article .title a", has_text="Basel problem").first.click()  # each system has found it
    assert page.locator(".whole math").count() > 0
    page.locator("a.back").click()
    page.wait_for_selector("ol.results")
    assert page.input_value("#query") == QUERY
    context.close()


def test_enter_opens_the_result_and_its_formulas_are_one_stop(page, address) -> None:
    only_blend(page)
    page.goto(f"{address}?{urlencode({'q': QUERY, 'weak': 1})}")
    page.wait_for_selector("article")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.querySelectorAll('article')[2].contains(document.activeElement)"):
            break
    else:
        raise AssertionError("30 tabs do not reach the third result")
    formulas = page.locator("article[data-docno=basel] .snippet .formula[tabindex]")
    assert [each.get_attribute("tabindex") for each in formulas.all()].count("0") == 1
    formulas.first.focus()
    page.keyboard.press("ArrowRight")
    assert formulas.nth(1).evaluate("node => node === document.activeElement && node.tabIndex === 0")
    page.keyboard.press("j")
    name = page.evaluate("document.activeElement.dataset.docno")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**post={name}**")
    page.wait_for_selector("article.post")


def test_help_is_at_the_box_and_the_first_symbols_fit_a_telephone(page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.locator("#help summary").click()
    for text in ("$x^2+1$", "?a", "other letters", "next and previous result"):
        sync_api.expect(page.locator("#help .panel")).to_contain_text(text)
    page.keyboard.press("Escape")
    assert not page.locator("#help .panel").is_visible()
    bar = page.locator("#symbols").bounding_box()
    for name in ("$ $", "?a"):
        button = page.locator("#symbols button", has_text=name).bounding_box()
        assert button["x"] + button["width"] <= bar["x"] + bar["width"]


AXE = """axe.run(document, {
  rules: Object.fromEntries(axe.getRules().map((rule) => [rule.ruleId, { enabled: true }])),
})"""
STATES = {
    "home": [],
    "results": [("ask", QUERY)],
    "why": [("ask", QUERY), ("open", "Why?", ".explanation")],
    "formulas": [("ask", r"\frac{?a}{?b^2}"), ("open", "Why?", ".explanation")],
    "post": [("ask", QUERY), ("click", "article .title a", "article.post")],
    "nothing": [("nothing",)],
    "similar": [("ask", QUERY), ("click", "article a:text('Similar')", "#like")],
    "help": [("click", "#help summary", ".panel")],
    "error": [("error",)],
}


@pytest.mark.parametrize("state", STATES)
def test_every_page_is_accessible_at_all_levels(page, state) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    page.emulate_media(reduced_motion="reduce")
    for name, *places in STATES[state]:
        if name == "ask":
            ask(page, *places)
        elif name == "open":
            opened(page, *places)
        elif name == "click":
            page.locator(places[0]).first.click()
            page.wait_for_selector(places[1])
        else:
            if name == "error":  # of an answer with status 200, since others are errors of the console
                page.route("**/api/search?*", lambda route: route.fulfill(json={}))
            page.fill("#query", "xylophone")
            page.keyboard.press("Enter")
            page.wait_for_selector(".error button" if name == "error" else ".nothing")
            page.wait_for_timeout(300)
    theme = "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text())
    for width in (1280, 768, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(200)
        if SCREENSHOTS:
            page.screenshot(path=Path(SCREENSHOTS) / f"{state}-{width}-{theme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if width == 768:
            continue  # its layout is between the two others, and axe needs seconds
        found = page.evaluate(AXE)
        assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []
