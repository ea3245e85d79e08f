"""The page in a real browser: Chromium of the system, driven by Playwright; nothing leaves localhost."""

import importlib
import os
import shutil
import subprocess
import sys

import pytest

from tests.engine.conftest import POSTS, QUERY, built

NEEDED = os.environ.get("MATHAMR_BROWSER") == "required"  # .ci/run sets it where it found or installed Chromium
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if not NEEDED:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pytest.importorskip("uvicorn")
sync_api = importlib.import_module("playwright.sync_api")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
HOSTILE = {
    "id": "hostile",
    "title": "<script>document.title='broken'</script>",
    "text": "<img src=x onerror=alert(1)> words",
}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None and not NEEDED, reason="no Chromium on this machine"),
    pytest.mark.enable_socket,
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server of its own process, and its address."""
    path = tmp_path_factory.mktemp("browser") / "my.engine"
    built(path, [*POSTS, HOSTILE])
    command = [sys.executable, "-m", "pyterrier_mathamr", "serve", str(path), "--port", "0"]
    command += ["--system", "bm25", "--system", "blend"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as process:
        line = process.stdout.readline()
        assert "http://" in line
        yield line.split(": ", 1)[1].split()[0]
        process.terminate()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(params=["light", "dark"])
def page(browser, address, request):
    """A page in one of the themes that fails the test on an error or a request to elsewhere."""
    page = browser.new_page(color_scheme=request.param, viewport={"width": 1000, "height": 900})
    page.set_default_timeout(15_000)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda sent: None if sent.url.startswith((address, "data:")) else wrong.append(sent.url))
    page.goto(address)
    page.wait_for_selector(".hint")
    yield page
    page.close()
    assert wrong == []


def ask(page, query: str) -> None:
    page.fill("#query", query)
    page.keyboard.press("Enter")
    page.wait_for_selector("article")


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


def test_results_show_formulas_as_formulas(page) -> None:
    ask(page, QUERY)
    loaded = "document.fonts.ready.then(() => [...document.fonts].map((font) => font.family + ' ' + font.status))"
    assert page.evaluate(loaded) == ["STIX Two Math loaded"]
    heights = page.evaluate(
        "() => { const f = document.querySelector('article mfrac');"
        " return [f.getBoundingClientRect().height, f.children[0].getBoundingClientRect().height]; }"
    )
    assert heights[0] > 1.5 * heights[1]


def test_two_systems_stand_side_by_side_with_what_moved(page) -> None:
    ask(page, QUERY)
    left, right = page.locator("main section").all()
    assert left.bounding_box()["y"] == right.bounding_box()["y"]
    assert left.locator(".moved").count() == 0
    assert right.locator(".moved").count() == right.locator("article").count()


def test_search_and_explanation_by_keyboard_alone(page) -> None:
    page.keyboard.press("/")
    page.keyboard.type(QUERY)
    page.keyboard.press("Enter")
    page.wait_for_selector("article")
    tab_to(page, "Why?")
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
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.input_value("#query") == r"$\frac{}{}$"
    page.keyboard.type("1")
    assert page.input_value("#query") == r"$\frac{1}{}$"
    ask(page, QUERY)
    page.locator("article").first.press("j")
    page.locator("article .formula").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**mode=formulas**")


def test_one_color_tells_a_part_of_the_question_everywhere(page) -> None:
    ask(page, "diverges $\\sum 1/n$")
    opened(page, "Why?", ".explanation")
    color = "(place) => getComputedStyle(document.querySelector(place)).backgroundColor"
    for part in (".part-0 > math", "mark.part-1"):
        shown = {
            page.evaluate(color, f"{place} {part}") for place in ("#preview", ".explanation", ".explanation table")
        }
        assert len(shown) == 1
        assert shown != {"rgba(0, 0, 0, 0)"}


def test_a_formula_of_a_result_searches_for_it_and_the_state_is_in_the_address(page) -> None:
    page.set_viewport_size({"width": 1000, "height": 300})  # so that the last result is below
    ask(page, QUERY)
    page.locator("article .formula").last.click()
    page.wait_for_url("**mode=formulas**")
    page.wait_for_selector("article .snippet .part-0 math")
    page.go_back()
    sync_api.expect(page.locator("#query")).to_have_value(QUERY)
    sync_api.expect(page.locator("#results")).not_to_have_attribute("aria-busy", "true")
    page.wait_for_timeout(100)
    assert page.evaluate("scrollY") > 0
    assert "q=How" in page.url
    page.reload()
    page.wait_for_selector("article")
    assert page.input_value("#query") == QUERY


def test_what_a_person_wrote_is_shown_as_text(page) -> None:
    ask(page, "words <script>document.title='broken'</script>")
    page.wait_for_selector("article[data-docno=hostile]")
    assert page.title() != "broken"
    assert "<script>" in page.locator("article[data-docno=hostile] h3").first.inner_text()
    assert page.locator("article img").count() == 0


def test_a_search_that_finds_nothing_says_so(page) -> None:
    page.locator("input[value=formulas]").check()
    page.fill("#query", "xylophone")
    page.keyboard.press("Enter")
    page.wait_for_selector("main .quiet")
    assert page.inner_text("#status").startswith("0 results")
    assert page.locator("article").count() == 0


def test_weak_matches_are_shown_by_a_button_and_filters_are_in_the_address(page) -> None:
    page.fill("#query", "zzz qqq")
    page.keyboard.press("Enter")
    page.wait_for_selector("main .quiet")
    assert "No good match." in page.inner_text("main")
    assert page.locator("article").count() == 0
    page.get_by_role("button", name="Show the closest").click()
    page.wait_for_url("**weak=1**")
    page.wait_for_selector("article")
    assert "match 0.0 %" in page.locator("article .meta").first.inner_text()
    page.locator("#filters summary").click()
    page.fill("input[name=in]", "basel")
    ask(page, "converges")
    page.wait_for_url("**in=basel**")
    sync_api.expect(page.locator("article")).to_have_count(2)  # of both systems
    page.reload()
    page.wait_for_selector("article")
    assert page.input_value("input[name=in]") == "basel"


def test_the_graph_is_drawn(page) -> None:
    ask(page, QUERY)
    opened(page, "Graph", ".graph img")
    assert page.evaluate("document.querySelector('.graph img').naturalWidth") > 100


def test_the_page_fits_a_telephone(page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    ask(page, QUERY)
    opened(page, "Why?", ".explanation")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_api_is_described_on_a_page(page, address) -> None:
    page.goto(f"{address}api")
    page.wait_for_selector("#Explanation")
    shown = page.locator("main").inner_text()
    for text in ("GET /api/search", "GET /api/graph/{docno}.svg", "at most 4,000 characters", "503"):
        assert text in shown
