"""Take the pictures of the page for the documentation: ``python tools/screenshots.py [FOLDER]``, into ``docs/images``.

Builds an engine of the bundled sample with the bundled model, serves it, and opens the page in Chromium: the first
page, results with an explanation and formulas by a pattern, both in the light and the dark theme, and a telephone.
Needs the extras ``serve`` and ``test``, and Chromium.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.engine import SearchEngine

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "pyterrier_mathamr" / "data" / "sample"
QUESTION = r"How do I compute $\int_0^\infty e^{-x^2}\,dx$ by hand?"
PATTERN = r"\int_?a^?b ?f \,dx"
TITLE, ABOUT = "Sums and integrals", "A sample of questions and answers, written for this package."
SIZE, TELEPHONE = {"width": 1100, "height": 860}, {"width": 390, "height": 780}
PICTURES = (
    ("home", "light", SIZE, ""),
    ("light", "light", SIZE, QUESTION),
    ("dark", "dark", SIZE, QUESTION),
    ("formulas", "light", SIZE, PATTERN),
    ("formulas-dark", "dark", SIZE, PATTERN),
    ("telephone", "dark", TELEPHONE, QUESTION),
)
"""Name, theme, size of the window, and query of each picture."""


def build(path: Path) -> None:
    """Build an engine of the questions and answers of the sample."""
    posts = [{"docno": post.id, "title": post.title, "html": post.body} for post in ARQMathCollection(SAMPLE).posts()]
    SearchEngine.build(posts, path, model="mathamr-plus-mini")


def take(address: str, folder: Path) -> None:
    """Take all pictures."""
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for name, theme, size, query in PICTURES:
            page = browser.new_page(color_scheme=theme, viewport=size, reduced_motion="reduce")
            page.goto(address)
            page.wait_for_selector(".examples")
            if query:
                page.fill("#query", query)
                page.click(".box button[type=submit]")
                page.locator("#query").blur()
                page.wait_for_selector("article")
            if query and size == SIZE:
                page.locator("article button", has_text="Why?").first.click()
                page.wait_for_selector(".explanation")
            page.mouse.move(0, 0)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=folder / f"page-{name}.png")
        browser.close()


def main() -> None:
    """Build, serve, take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "docs" / "images")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "sample.engine"
        build(path)
        command = [
            sys.executable,
            "-m",
            "pyterrier_mathamr",
            "serve",
            str(path),
            "--port",
            "0",
            "--title",
            TITLE,
            "--about",
            ABOUT,
        ]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
            try:
                take(server.stdout.readline().split(": ", 1)[1].split()[0], folder)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
