"""The page in a real browser: Chromium of the system, driven by Playwright; nothing leaves localhost."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.engine.conftest import POSTS, QUERY, built

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("uvicorn")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
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
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
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


def test_results_show_formulas_as_formulas(page) -> None:
    ask(page, QUERY)
    assert page.evaluate("document.fonts.ready.then(() => document.fonts.check('16px \"STIX Two Math\"'))")
    heights = page.evaluate(
        "() => { const f = document.querySelector('article mfrac');"
        " return [f.getBoundingClientRect().height, f.children[0].getBoundingClientRect().height]; }"
    )
    assert heights[0] > 1.5 * heights[1]
    assert page.locator("section").count() == 2
    assert "part-0" in page.locator("#preview").inner_html()


def test_search_and_explanation_by_keyboard_alone(page, address) -> None:
    page.keyboard.press("/")
    page.keyboard.type(QUERY)
    page.keyboard.press("Enter")
    page.wait_for_selector("article")
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Why?":
            break
    page.keyboard.press("Enter")
    page.wait_for_selector(".explanation .bar")
    numbers = [
        float(text)
        for text in page.locator(".explanation td.number")
        .first.locator("xpath=ancestor::table")
        .locator("td.number")
        .all_inner_texts()
    ]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.1)


def test_a_formula_of_a_result_searches_for_it_and_the_state_is_in_the_address(page) -> None:
    ask(page, QUERY)
    page.locator("article .formula").first.click()
    page.wait_for_url("**mode=formulas**")
    page.wait_for_selector("article .snippet math")
    page.go_back()
    sync_api.expect(page.locator("#query")).to_have_value(QUERY)
    assert "q=How" in page.url


def test_what_a_person_wrote_is_shown_as_text(page) -> None:
    ask(page, "words <script>document.title='broken'</script>")
    page.wait_for_selector("article[data-docno=hostile]")
    assert page.title() != "broken"
    assert "<script>" in page.locator("article[data-docno=hostile] h3").first.inner_text()
    assert page.locator("article img").count() == 0


def test_the_graph_is_drawn_and_buttons_insert_symbols(page) -> None:
    page.click("#symbols button[title='\\\\sqrt{}']")
    assert page.input_value("#query") == r"$\sqrt{}$"
    ask(page, QUERY)
    page.locator("article button", has_text="Graph").first.click()
    page.wait_for_selector(".graph img")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.querySelector('.graph img').naturalWidth") > 100


def test_the_page_fits_a_telephone(page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    ask(page, QUERY)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
