"""The search of a static site in Chromium, driven by Playwright over a plain file server; nothing leaves localhost."""

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pyterrier_mathamr.engine.site import write_site
from tests.engine.chromium import IN_CHROMIUM
from tests.engine.test_static_site import PAGES

pytestmark = IN_CHROMIUM


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A site on a plain file server, and the address of its search."""
    folder = tmp_path_factory.mktemp("site")
    for name, text in PAGES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<!doctype html><meta charset=utf-8><link rel=icon href=data:,>{text}", encoding="utf-8")
    hostile = (
        r"<main><h1 id=h>&lt;img src=x onerror=alert(1)&gt;</h1><p>Hostile &lt;script&gt; and \(\text{<b>}x&lt;y\)"
    )
    wide = "+".join(f"x_{{{i}}}" for i in range(80))
    (folder / "hostile.html").write_text(rf"{hostile}<h2 id=wide>Wide</h2><p>A wide \({wide}\).", encoding="utf-8")
    write_site(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/mathamr/"
    server.shutdown()


def ask(page, query: str) -> None:
    page.fill("#query", query)
    page.keyboard.press("Enter")
    page.wait_for_url("**q=**")
    page.wait_for_selector("#results:not([aria-busy]) :is(article, .nothing)")


def test_a_formula_with_other_letters_leads_to_its_section(page) -> None:
    ask(page, "u^2+v^2=w^2")
    assert page.locator("article .title").all_inner_texts()[1] == "Triangles"
    assert page.locator("article").nth(1).locator(".formula.renamed math").count() == 1
    page.locator("article .title a").nth(1).click()
    page.wait_for_url("**/b.html#tri")
    page.go_back()
    page.wait_for_selector("article")
    assert page.input_value("#query") == "u^2+v^2=w^2"


def test_words_are_marked_and_a_pattern_is_found(page) -> None:
    ask(page, "harmonic series")
    assert page.locator("article").first.locator("mark").all_inner_texts() == ["harmonic", "series"]
    ask(page, "?a^2=?b^2+?c^2")
    assert page.locator("article .formula.instance").count() == 2


def test_what_cannot_be_read_is_named(page) -> None:
    ask(page, r"series $\foo x$")
    assert page.inner_text("#preview") == r"\foo x \foo is not known here."
    assert page.locator("article").count() == 2  # by the word
    ask(page, "zzz")
    assert page.inner_text("#results") == "Nothing was found"


def test_symbols_are_inserted_at_the_cursor(page) -> None:
    page.locator("#symbols button", has_text="√").click()
    page.keyboard.type("2")
    assert page.input_value("#query") == r"$\sqrt{2}$"


def test_texts_of_pages_are_shown_as_text_and_wide_formulas_scroll(page) -> None:
    ask(page, "hostile")
    assert page.inner_text("article .title") == "<img src=x onerror=alert(1)>"
    assert "Hostile <script> and" in page.inner_text("article .snippet")
    ask(page, "wide")
    assert page.locator("article .formula.wide").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_page_runs_no_script_but_its_own(browser, address) -> None:
    page = browser.new_page()
    page.goto(address)
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))"
    )
    assert page.evaluate("window.ran") is None
