"""The search of a static site in Chromium: size, what it downloads for a result, renamed formulas, time of a query.

    python benchmarks/static_site.py ARQMATH_FOLDER --pages 1000 --formulas 20000

Each thread of ARQMath becomes a page as Sphinx writes it. Queries are formulas of the pages whose letters all have
other names, and the same with a wildcard in the place of one letter; formulas that Python reads in part are left out.
The time of a query is processor time of the page, the average of three calls.
"""

from __future__ import annotations

import argparse
import functools
import random
import re
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from html import escape, unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.engine.site import write_site
from pyterrier_mathamr.engine.site.writing import read_sections
from pyterrier_mathamr.formula import trees_of_posts

FLAGS = ["--no-sandbox", "--disable-gpu"]
SPAN = re.compile(r'<span class="math-container"[^>]*>(.*?)</span>', re.DOTALL)
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)
LETTERS = "abcfghijklmnopqrstuvwxyz"  # not d and e, which have meanings of their own
WORDS = re.compile(r"\\(?:begin|text\w*|mbox|operatorname|mathrm|rm|color|hskip|mathop)(?![a-zA-Z])")


def write_pages(collection: ARQMathCollection, folder: Path, pages: int, formulas: int) -> None:
    """Write threads as pages until there are enough formulas or pages."""
    answers: dict[str, list[str]] = {}
    for answer in collection.answers():
        answers.setdefault(str(answer.parent_id), []).append(f'<section id="a{answer.id}"><h2>Answer</h2>{answer.body}')
    written = count = 0
    for question in collection.questions():
        parts = [question.title, question.body, *(text + "</section>" for text in answers.get(str(question.id), []))]
        found = sum(len(SPAN.findall(part)) for part in parts)
        if not answers.get(str(question.id)) or found > 5 * formulas / pages:
            continue
        text = f'<section id="q"><h1>{parts[0]}</h1>{"".join(parts[1:])}</section>'
        text = SPAN.sub(lambda formula: rf'<span class="math notranslate nohighlight">\({formula[1]}\)</span>', text)
        title = escape(re.sub("<[^>]*>", "", unescape(question.title)))
        (folder / f"{question.id}.html").write_text(f"<title>{title}</title><main>{text}</main>", encoding="utf-8")
        written, count = written + 1, count + found
        if written == pages or count >= formulas:
            return


def renamed(latex: str, generator: random.Random) -> str | None:
    """Give all letters of a formula other names; ``None`` if it has none, or words."""
    tokens = TOKEN.findall(latex)
    used = sorted({token for token in tokens if token in LETTERS})
    free = [letter for letter in LETTERS if letter not in used]
    if not used or WORDS.search(latex) or len(used) > len(free):
        return None
    names = dict(zip(used, generator.sample(free, len(used)), strict=True))
    return "".join(names.get(token, token) for token in tokens)


def queries(folder: Path, count: int) -> list[tuple[str, str]]:
    """Return pairs of a renamed formula and a pattern."""
    generator, made = random.Random(0), list[tuple[str, str]]()
    sections = read_sections(folder, folder / "mathamr")
    every = sorted({formula.latex for section in sections for formula in section.post.formulas})
    generator.shuffle(every)
    for latex in every:
        tree, query = trees_of_posts(latex, "").opt, renamed(latex, generator)
        if query is None or tree is None or tree.partial or len(tree.nodes) < 3 or "E!" in tree.nodes:
            continue
        tokens = TOKEN.findall(query)
        letter = generator.choice([token for token in tokens if token in LETTERS])
        made.append((query, "".join(f"?{token}" if token == letter else token for token in tokens)))
        if len(made) == count:
            break
    return made


LOAD = """async () => {
  const { Site } = await import("./search.js");
  window.site = new Site((name) => fetch(name));
  await Promise.all([site.file("formulas"), site.file("index")]);
}"""
ASK = """async (query) => {
  const { TIERS } = await import("./matching.js");
  let answer;
  for (let i = 0; i < 3; i++) answer = await site.search(`$${query}$`);
  const { hits, problems } = answer;
  return [hits.length ? TIERS[hits[0].formulas[0].tier] : "", problems[0]?.message ?? ""];
}"""


def serving(folder: Path) -> Iterator[str]:
    """Serve a folder, and yield its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/mathamr/"
    server.shutdown()


def downloaded(page: Page, address: str, query: str) -> int:
    """Count the bytes of data that a first result needs."""
    sizes = list[int]()
    page.on(
        "response", lambda answer: sizes.append(len(answer.body())) if answer.url[-4:] in (".bin", "json") else None
    )
    page.goto(address)
    page.fill("#query", query)
    page.keyboard.press("Enter")
    page.wait_for_selector("article")
    page.wait_for_load_state("networkidle")
    return sum(sizes)


def ask(page: Page, queries: list[str]) -> tuple[float, list[tuple[float, str, str]]]:
    """Return the milliseconds of loading, and of each query its milliseconds, first tier and problem."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime"))

    begin, answers = spent(), list[tuple[float, str, str]]()
    page.evaluate(LOAD)
    loaded = spent() - begin
    for query in queries:
        begin = spent()
        tier, problem = page.evaluate(ASK, query)
        answers.append(((spent() - begin) / 3, tier, problem))
    return loaded, answers


def report(name: str, answers: list[tuple[float, str, str]], whole: set[str]) -> None:
    times = sorted(milliseconds for milliseconds, _, _ in answers)
    first = sum(tier in whole for _, tier, _ in answers) / len(answers)
    unread = sum(bool(problem) for _, _, problem in answers)
    late, latest, last = times[int(0.95 * len(times))], times[int(0.99 * len(times))], times[-1]
    print(f"{name}: first {first:.1%}, unread {unread}")
    print(f"median {statistics.median(times):.1f} ms, 95 % {late:.1f}, 99 % {latest:.1f}, at most {last:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="a local ARQMath folder")
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--formulas", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_pages(ARQMathCollection(options.folder), folder, options.pages, options.formulas)
        start = time.process_time()
        covered = write_site(folder)
        pages = len(list(folder.glob("*.html")))
        print(f"{pages:,} pages, {covered.sections:,} sections, {covered.formulas:,} formulas")
        size = sum(path.stat().st_size for path in (folder / "mathamr").glob("*.bin"))
        print(f"written in {time.process_time() - start:.0f} CPU s; data {size / 1e6:.2f} MB")
        asked = queries(folder, options.queries)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            for address in serving(folder):
                for query in (f"${asked[0][0]}$", "convergence of a series"):
                    page = browser.new_page()
                    print(f"downloaded for {query}: {downloaded(page, address, query) / 1e6:.2f} MB")
                for name, number, whole in (("renamed", 0, {"equal", "renamed"}), ("patterns", 1, {"instance"})):
                    loaded, answers = ask(page, [pair[number] for pair in asked])
                    print(f"loaded in {loaded:.0f} ms")
                    report(name, answers, whole)
            browser.close()


if __name__ == "__main__":
    main()
