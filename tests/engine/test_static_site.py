"""The search of a static site: what its pages say, and that the browser's script finds what Python finds.

The script runs in Node.js; those tests are skipped where there is none.
"""

import json
import shutil
import subprocess
import sys
import zlib
from html import escape
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyterrier_mathamr import PatternIndex
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.engine.site import SiteError, write_site
from pyterrier_mathamr.engine.site.writing import sections_of, words_of
from pyterrier_mathamr.formula import trees_of_posts
from pyterrier_mathamr.formula.matching import Terms, read_terms, with_wildcards
from tests.engine.conftest import written

NODE = shutil.which("node")
in_node = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")

FORMULAS = Path(__file__).with_name("site_formulas.txt").read_text(encoding="utf-8").splitlines()
"""LaTeX as people type it, one formula in each line."""

UNKNOWN = [
    r"\foo x", r"\begin{align}a&=b\\c&=d\end{align}", r"a\\b", "x^", "{x", "x}", r"\left(x", "x^2^3", r"\frac{1}",
    "a & b", "{}^2x", r"\mathbf{\alpha}", r"\text{if $x$}", r"\big{\{}x\big{\}}", "(x", "a*", "a..=b",
    r"\operatorname{\mathbb{Z}}",
]  # fmt: skip

PAGES = {
    "index.html": "<title>Notes</title><main><h1 id=notes>Notes on sums</h1><p>Begin with <a href=b.html>squares</a>.",
    "a/sums.html": r"""<title>Sums — Notes</title><nav>\(x^2\) menu</nav><main><section id="sums">
        <h1>Sums<a class="headerlink" href="#sums">¶</a></h1><p>Of the harmonic series, \(\sum_{n=1}^\infty \frac1n\).
        <section id="basel"><h2>The Basel problem</h2>
        <p>Euler: <span class="math">\(\sum_{k=1}^\infty \frac{1}{k^2}=\frac{\pi^2}{6}\)</span>.
        </section></section></main>""",
    "b.html": r"""<title>Squares</title><main><h1 id="squares">Squares of \(x+y\)</h1>
        <p>A triangle has \(a^2+b^2=c^2\), and \((x+y)^2=x^2+2xy+y^2\) holds.</p>
        <h2 id="tri">Triangles</h2><p>Series of right triangles: \(p^2+q^2=r^2\), \(5^2=3^2+4^2\).</main>""",
    "genindex.html": "<h1>Index of squares</h1>",
    "_static/x.html": "<h1>squares</h1>",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "html", PAGES)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with its search."""
    folder = written(tmp_path_factory.mktemp("site") / "html", PAGES)
    assert write_site(folder)[:2] == (5, 7)
    return folder


def asked(folder: Path, **questions: list[str]) -> dict:
    command = [NODE, Path(__file__).with_name("site_in_node.mjs"), folder / "mathamr"]
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def key_of(terms: Terms) -> str:
    """Write a formula in normal form: equal formulas have equal keys, whatever the order of their operands."""
    written: list[str] = []
    for label, args in zip(terms.labels, terms.args, strict=True):
        below = [written[arg] for arg in args]
        if label.startswith("U!"):
            below.sort()
        written.append(f"{label}({','.join(below)})" if below else label)
    return written[terms.root]


# ---- formulas


@in_node
def test_the_script_reads_a_formula_as_python_does_and_says_what_it_cannot_read(site: Path) -> None:
    trees = [trees_of_posts(with_wildcards(latex), "").opt for latex in FORMULAS]
    assert len(FORMULAS) > 250
    assert None not in trees
    found = asked(site, formulas=[*FORMULAS, *UNKNOWN])["formulas"]
    pairs = zip(FORMULAS, found, trees, strict=False)
    assert [latex for latex, each, tree in pairs if each != {"key": key_of(read_terms(tree))}] == []
    unknown = found[len(FORMULAS) :]
    assert [latex for latex, each in zip(UNKNOWN, unknown, strict=True) if not each.get("error")] == []
    assert unknown[0] == {"error": r"\foo is not known here"}


QUERIES = [
    "a^2+b^2=c^2", "?a^2+?b^2=?c^2", "x^2", r"\frac{?a}{?b}", "f(x)", r"\sum_{k=1}^n k", "?x+1", r"\int_?a^?b f(x)dx",
    "u=v", "n!", r"e^{i\pi}", "a<b", r"\sin^2 t+\cos^2 t", "?a=?a", r"\sqrt{?x}", "2ab", r"\lim_{x\to ?c} f(x)", "a_n",
    r"x\in\mathbb{R}", "?f(?x)",
]  # fmt: skip


@in_node
def test_tiers_are_those_of_the_pattern_index(tmp_path: Path) -> None:
    folder, size = tmp_path / "html", 5
    folder.mkdir()
    for number in range(len(FORMULAS) // size):
        some = FORMULAS[size * number : size * (number + 1)]
        spans = (f'<span class="math-container" id="{number}:{i}">{escape(each)}</span>' for i, each in enumerate(some))
        (folder / f"{number:03}.html").write_text("<main><p>" + "<p>".join(spans), encoding="utf-8")
    write_site(folder)
    index = PatternIndex(tmp_path / "patterns")
    index.index({"docno": path.stem, "html": path.read_text("utf-8")} for path in sorted(folder.glob("*.html")))
    answers = asked(folder, queries=[f"${query}$" for query in QUERIES])["answers"]
    for query, answer in zip(QUERIES, answers, strict=True):
        best = index.search(query).drop_duplicates("post_id")
        found = {f"{hit['section']:03}": hit["formulas"][0]["tier"] for hit in answer["hits"]}
        tiers = dict(zip(best["post_id"], best["tier"], strict=True))
        assert found == tiers, query
    assert sum(bool(answer["hits"]) for answer in answers) > 15


# ---- pages, words and answers


@pytest.mark.parametrize(
    "body",
    [
        r'<span class="math notranslate nohighlight">\(x^2\)</span>',  # Sphinx, Jupyter Book
        '<span class="arithmatex">\\(x^2\\)</span>',  # MkDocs
        '<span class="math inline">\\(x^2\\)</span>',  # Quarto, pandoc
        '<img class="math" src="1.png" alt="x^2">',  # Sphinx with pictures
        '<script type="math/tex">x^2</script>',  # MathJax 2
        '<span class="katex"><math><annotation encoding="application/x-tex">x^2</annotation></math></span>',
        "<math><msup><mi>x</mi><mn>2</mn></msup></math>",
        "$x^2$",
    ],
)
def test_formulas_of_each_generator_are_read(body: str) -> None:
    (section,) = sections_of(f"<main><h1 id=top>T</h1><p>So {body} is.</main>", "p.html")
    assert [formula.latex.replace("{2}", "2") for formula in section.post.formulas] == ["x^2"]
    assert section.post.text == "So FORMULA_0 is."


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("<h2 id=b>B</h2>", "b"),
        ("<section id=b><h2>B</h2></section>", "b"),
        ("<div id=c><span><h2>B</h2></span></div>", "c"),
        ("<h2><a name=b></a>B</h2>", "b"),
        ("<h2><span id=b>B</span></h2>", "b"),
        ("<div id=c><h2 id=b>B</h2></div>", "b"),
    ],
)
def test_a_section_is_linked_by_the_id_of_its_heading(heading: str, anchor: str) -> None:
    first, second = sections_of(f"<main><h1 id=a>A</h1><p>one{heading}<p>two</main>", "p.html")
    assert (first.anchor, first.title.text, first.page_title, first.post.text) == ("a", "A", "", "one")
    assert (second.anchor, second.title.text, second.page_title, second.post.text) == (anchor, "B", "A", "two")


@in_node
def test_results_link_to_the_section_of_a_formula_or_word(site: Path) -> None:
    deep = "{" * 200_000 + "x"
    queries = ["u^2+v^2=w^2", "$5^2=?a^2+?b^2$", "triangle", r"series $\frac1n$", r"\foo", f"${deep}$", "", "squares"]
    answers = asked(site, queries=queries)["answers"]
    addresses = [[hit["address"] for hit in answer["hits"]] for answer in answers]
    assert addresses[0] == ["../b.html#squares", "../b.html#tri"]
    assert addresses[1] == ["../b.html#tri"]
    assert addresses[2] == ["../b.html#tri", "../b.html#squares"]
    assert addresses[3] == ["../a/sums.html#sums", "../b.html#tri"]
    assert addresses[4:7] == [[], [], []]
    assert answers[4]["problems"] == [{"latex": r"\foo", "message": r"\foo is not known here"}]
    assert answers[5]["problems"] == [{"latex": deep, "message": "It is nested too deeply"}]
    assert addresses[7] == ["../b.html#squares", "../index.html#notes"]


READ = {
    "prime numbers": (["prime", "number"], []),
    "x^2+1": ([], ["x^2+1"]),
    r"\frac{a}{b}": ([], [r"\frac{a}{b}"]),
    "?a+?b": ([], ["?a+?b"]),
    "why $x$ is $ y$": ([], ["x", "y"]),
    "x": (["x"], []),
}
TEXTS = [
    "The Series of Matrices", "bosses' boxes", "Größe naïve ½ ﬁne", "primes is bus analysis", "数学 x2",
    "theories lies gas",
]  # fmt: skip


@in_node
def test_words_are_cut_alike_in_python_and_in_the_browser_and_a_formula_needs_no_dollars(site: Path) -> None:
    answer = asked(site, texts=TEXTS, queries=list(READ))
    assert answer["words"] == [words_of(text) for text in TEXTS]
    assert words_of("the primes of theories in boxes") == ["prime", "theory", "box"]
    assert answer["read"] == [{"words": words, "formulas": formulas} for words, formulas in READ.values()]


# ---- files


def test_the_scripts_are_small_and_the_page_allows_no_other(site: Path) -> None:
    scripts = [path.read_bytes() for path in (site / "mathamr").glob("*.js")]
    assert sum(len(zlib.compress(script, 9)) for script in scripts) < 40_000
    page = (site / "mathamr" / "index.html").read_text("utf-8")
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in page
    assert page.count("<script") == page.count("<script src=") == 1
    assert "style=" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http.server", "")


def test_a_search_is_replaced_other_files_are_kept_and_it_lies_within_a_site_that_has_pages(
    folder: Path, tmp_path: Path
) -> None:
    write_site(folder)
    (folder / "b.html").unlink()
    (folder / "mathamr" / "words-7.bin").write_bytes(b"")
    assert write_site(folder).sections == 3
    assert not (folder / "mathamr" / "words-7.bin").exists()
    (tmp_path / "empty").mkdir()
    for site, output in ((folder, "html/a"), (folder, "elsewhere"), (folder, "html"), (tmp_path / "empty", None)):
        with pytest.raises(SiteError):
            write_site(site, output and tmp_path / output)
    assert (folder / "a" / "sums.html").exists()
    assert not (tmp_path / "empty" / "mathamr").exists()


def test_the_command_writes_a_search_and_says_what_it_covers(folder: Path) -> None:
    done = CliRunner().invoke(main, ["site", str(folder), "--title", "My <notes>"])
    assert done.exit_code == 0, done.output
    assert "5 sections, 7 formulas" in done.output
    assert "<title>My &lt;notes&gt;</title>" in (folder / "mathamr" / "index.html").read_text("utf-8")
    assert CliRunner().invoke(main, ["site", str(folder), "-o", str(folder / "a")]).exit_code == 1


@in_node
def test_a_sphinx_project_gets_a_search_and_a_box(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    settings = ["extensions = ['pyterrier_mathamr.sphinx', 'sphinx.ext.mathjax']", "html_title = 'Right triangles'"]
    settings.append("html_sidebars = {'**': ['mathamr.html']}")
    index = "Sides\n=====\n\nSee :math:`p^2+q^2=r^2`.\n\nArea\n----\n\n.. math:: pq/2\n"
    source = written(tmp_path / "source", {"conf.py": "\n".join(settings), "index.rst": index})
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "-q", source, tmp_path / "html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'action="mathamr/index.html"' in (tmp_path / "html" / "index.html").read_text("utf-8")
    assert "<title>Right triangles</title>" in (tmp_path / "html" / "mathamr" / "index.html").read_text("utf-8")
    answers = asked(tmp_path / "html", queries=["a^2+b^2=c^2", "$xy/2$"])["answers"]
    addresses = [hit["address"] for answer in answers for hit in answer["hits"]]
    assert addresses == ["../index.html#sides", "../index.html#area"]
