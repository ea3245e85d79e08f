"""The files of a site's search, which a browser reads without a server.

::

    index.html, *.js, *.css, fonts    the page; its script names no other site
    symbols.js                        the symbols of LaTeX: what a command means is decided in ``formula.tex``, by which
                                      each command, character and font is converted here; the browser looks it up
    index.json                        what the others hold: the first word or section of each; and the number of the
                                      build, with which they are asked for, so that no cache mixes two of them
    formulas.bin                      all formulas as terms, each once; occurrences by section
    words-3.bin                       for some words, in order, the sections that have them
    texts-7.bin                       for some sections, title, address, and text with formulas in MathML

A ``.bin`` file is JSON, compressed with zlib. Formulas are read as :class:`~pyterrier_mathamr.sparse.PatternIndex`
reads them, so both find the same.

A result of the search links to a section of a page, which begins at each heading. Its anchor is the id of the heading,
else that of the ``section`` or ``div`` that the heading opens. Navigation, scripts and code that shows no formulas are
not searched.
"""

from __future__ import annotations

import json
import re
import shutil
import string
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from lxml import etree, html

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.formula import definitions, mathml, one_text, opt_from_latex, trees_of_posts
from pyterrier_mathamr.formula.display.typesetting import formula_html
from pyterrier_mathamr.formula.located import line_trees
from pyterrier_mathamr.formula.matching import Terms, read_terms
from pyterrier_mathamr.formula.opt import RELATIONS
from pyterrier_mathamr.formula.tex.atoms import FUNCTIONS, LIMITS, OPERATORS, Atom, Role, identifier, operator
from pyterrier_mathamr.formula.tex.converter import presentation
from pyterrier_mathamr.formula.tex.elements import RULES
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, plain_text, post_from_html
from pyterrier_mathamr.sparse.tokens import STOP_WORDS

_STATIC = Path(str(resources.files(__package__) / "static"))
_PAGE = Path(str(resources.files("pyterrier_mathamr.engine.page") / "static"))
_FROM_PAGE = ("page.css", "inter.woff2", "stix-two-math.woff2", "icon.svg", "commands.js")
_WORD = re.compile(r"[^\W_]+")
_SHARD = 60_000  # characters of JSON before compression


_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_MAIN = (
    "//*[@role='main']", "//main", "//article", "//*[@id='content' or contains(concat(' ', @class, ' '), ' content ')]",
    "//body",
)  # fmt: skip
_DROPPED = (
    ".//nav | .//header | .//footer | .//aside | .//style | .//noscript | .//form | .//button | .//template"
    " | .//*[@role='navigation' or @role='search']"
    " | .//a[contains(@class, 'headerlink') or contains(@class, 'anchor')]"
    " | .//*[contains(@class, 'toctree-wrapper') or contains(@class, 'sidebar') or contains(@class, 'toc-')]"
    " | .//script[not(contains(@type, 'math/tex'))]"
)
_NAMED = ".//*[@id] | .//a[@name]"
_GENERATED = re.compile(r"genindex(?:-\w+)?|py-modindex|search|404")
_CUT = "\ue010"  # before each heading, in the page as text
_BLANKS = re.compile(r"\s+")


class SiteError(MathAMRError):
    """A folder holds no pages with text."""


class SiteReport(NamedTuple):
    """What a search of a site covers.

    Attributes:
        sections: how many sections it has.
        formulas: how many formulas are found by their structure.
        unread: LaTeX of the other formulas, which are found by words around them only.
    """

    sections: int
    formulas: int
    unread: tuple[str, ...]


def write_site(folder: str | Path, output: str | Path | None = None, *, title: str = "") -> SiteReport:
    """Write a search of a folder of HTML pages, by words and formulas, as static files.

    Args:
        folder: the site, as it is published.
        output: a folder of the site for the search, which is replaced; by default ``mathamr`` in ``folder``.
        title: of the search page; by default that of the site's ``index.html``, or the name of the folder.

    Returns:
        What the search covers.

    Raises:
        SiteError: no page of the folder has text, or ``output`` is not in it.
    """
    folder = Path(folder).resolve()
    output = folder / "mathamr" if output is None else Path(output).resolve()
    if output == folder or not output.is_relative_to(folder):
        raise SiteError(f"{output} is not a folder within {folder}; results link to pages by relative addresses")
    if output.exists() and not (output / "index.json").exists() and any(output.iterdir()):
        raise SiteError(f"{output} holds other files; choose another folder")
    sections = list(read_sections(folder, output))
    if not sections:
        raise SiteError(f"{folder} has no HTML pages with text")
    formulas, unread = _formulas(sections)
    home = "../" * len(output.relative_to(folder).parts)
    tokens = [  # words of a title count more
        words_of(PLACEHOLDER.sub(" ", f"{section.title.text}\n{section.title.text}\n{section.post.text}"))
        for section in sections
    ]
    words, first_words = _words(tokens)
    texts, first_sections = _texts(sections, home)
    packed = {file: _packed(value) for file, value in {"formulas": formulas, **words, **texts}.items()}
    build = f"{zlib.crc32(b''.join(packed.values())):x}"
    about = {"build": build, "words": first_words, "texts": first_sections, "lengths": list(map(len, tokens))}
    front = [section for section in sections if section.page == "index.html"]
    name = title or (plain_text(front[0].title) if front else folder.name)
    new = output.with_name(f".{output.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    for source in (*_STATIC.iterdir(), *(_PAGE / file for file in _FROM_PAGE)):
        shutil.copyfile(source, new / source.name)
    page = (_STATIC / "index.html").read_text(encoding="utf-8")
    page = page.replace("<!--name-->", escape(name)).replace('href="./"', f'href="{home}"')
    (new / "index.html").write_text(page, encoding="utf-8")
    (new / "symbols.js").write_text(_symbols_script(), encoding="utf-8")
    (new / "index.json").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")
    for file, content in packed.items():
        (new / f"{file}.bin").write_bytes(content)
    if output.exists():
        shutil.rmtree(output)
    new.rename(output)
    count = sum(len(numbers) for numbers in formulas["sections"])
    return SiteReport(len(sections), count - len(unread), tuple(unread))


def _packed(value: object) -> bytes:
    return zlib.compress(_json(value).encode("utf-8", "surrogatepass"), 9)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---- pages


class Section(NamedTuple):
    """A part of a page."""

    page: str  # path of the page in the site, with slashes
    anchor: str  # id of the place in the page; empty for its beginning
    title: MathPost  # the heading, with its formulas
    page_title: str  # the first heading of the page; empty where `title` is that
    post: MathPost  # the text below the heading


def read_sections(folder: Path, output: Path) -> Iterator[Section]:
    """Read the sections of all pages of a folder, in the order of their paths, except those in ``output``."""
    for path in sorted(folder.rglob("*.html")):
        place = path.relative_to(folder)
        hidden = any(part.startswith((".", "_")) for part in place.parts)
        if not hidden and not path.is_relative_to(output) and not _GENERATED.fullmatch(path.stem):
            yield from sections_of(path.read_text(encoding="utf-8", errors="replace"), place.as_posix())


def sections_of(source: str, page: str) -> Iterator[Section]:
    """Divide a page into its sections; a page without text has none."""
    try:
        root = html.document_fromstring(source.replace(_CUT, "").encode(), parser=html.HTMLParser(encoding="utf-8"))
    except etree.ParserError:
        return
    main = next((elements[0] for path in _MAIN if (elements := _all(root, path))), root)
    for dropped in _all(main, _DROPPED):
        dropped.drop_tree()
    for image in _all(main, ".//img[contains(@class, 'math') and @alt]"):  # of Sphinx's imgmath
        image.tag, image.text = "span", image.get("alt")
        image.set("class", "math-container")
    headings = list(main.iter(*_HEADINGS))
    anchors = [_anchor(heading, main) for heading in headings]
    for heading in headings:
        mark = html.Element("i")
        mark.text = _CUT
        heading.addprevious(mark)
    text = etree.tostring(main, encoding="unicode", method="html", with_tail=False)
    before, *pieces = text.split(f"<i>{_CUT}</i>")
    title = _BLANKS.sub(" ", root.findtext(".//title") or page).strip()
    page_title, parts = "", [("", escape(title), before)]  # anchor, heading and body of each section
    for heading, anchor, piece in zip(headings, anchors, pieces, strict=True):
        above, _, below = piece.partition(f"</{heading.tag}>")
        parts.append((anchor, above, below))
    for number, (anchor, above, below) in enumerate(parts):
        post, section_title = post_from_html(below), post_from_html(above)
        if post.text or anchor:
            yield Section(page, anchor, section_title, page_title, post)
        if number:
            page_title = page_title or plain_text(section_title)


def _all(element: html.HtmlElement, path: str) -> list[html.HtmlElement]:
    elements: list[html.HtmlElement] = element.xpath(path)
    return elements


def _anchor(heading: html.HtmlElement, main: html.HtmlElement) -> str:
    """Return the id that leads to a heading; empty if there is none."""
    named = heading.get("id") or next((each.get("id") or each.get("name") for each in _all(heading, _NAMED)), None)
    above = heading.getparent()
    while not named and above is not None and above is not main:
        if next(above.iter(*_HEADINGS)) is not heading:
            break
        named, above = above.get("id"), above.getparent()
    return named or ""


# ---- formulas


class _Expressions:
    """The distinct terms of all formulas as they are written, operands before operators, and the distinct formulas."""

    def __init__(self) -> None:
        self.labels: dict[str, int] = {}
        self.terms: list[int] = []
        self.numbers: dict[tuple[str, tuple[int, ...]], int] = {}
        self.expressions: dict[tuple[int, ...], int] = {}

    def add(self, terms: Terms) -> int:
        made = list[int]()
        for label, operands in zip(terms.labels, terms.args, strict=True):
            args = tuple(made[operand] for operand in operands)
            number = self.numbers.get((label, args))
            if number is None:
                number = self.numbers[label, args] = len(self.numbers)
                label_number = self.labels.setdefault(label, len(self.labels))
                self.terms += [label_number, len(args), *(number - arg for arg in args)]
            made.append(number)
        roots = {terms.root, *terms.lines, *(arg for args in terms.args for arg in args)}
        others = [number for term, number in enumerate(made) if term not in roots]
        lines = [made[term] for term in terms.lines]
        whole = (len(lines), len(others), *lines, *others, made[terms.root])
        return self.expressions.setdefault(whole, len(self.expressions))


def _formulas(sections: Iterable[Section]) -> tuple[dict[str, Any], list[str]]:
    """Read the formulas of all sections; return also the LaTeX of those without an operator tree."""
    made, of_sections, unread = _Expressions(), list[list[int]](), list[str]()
    with one_text():
        for section in sections:
            latex_of_section = [formula.latex for formula in (*section.title.formulas, *section.post.formulas)]
            macros = definitions(latex_of_section)
            numbers = list[int]()
            for latex in latex_of_section:
                tree = trees_of_posts(latex, macros).opt
                if tree is None:
                    unread.append(latex)
                numbers.append(-1 if tree is None else made.add(read_terms(tree, line_trees(tree))))
            of_sections.append(numbers)
    expressions = [number for expression in made.expressions for number in expression]
    return {
        "labels": list(made.labels), "terms": made.terms, "expressions": expressions, "sections": of_sections
    }, unread  # fmt: skip


# ---- words and texts


def words_of(text: str) -> list[str]:
    """Cut text into words as the browser does: without stop words, in the singular."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    return [singular(word) for word in words if word not in STOP_WORDS]


def singular(word: str) -> str:
    """Remove the ending of an English plural; ``matrices`` and ``series`` stay."""
    if len(word) < 4 or word.endswith(("ss", "us", "is", "ices", "series")) or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


def _words(tokens: Iterable[list[str]]) -> tuple[dict[str, Any], list[str]]:
    """Shard the words of all sections: each with its sections, ascending, as distances, and its counts in them."""
    entries: dict[str, list[int]] = {}
    last: dict[str, int] = {}
    for number, of_section in enumerate(tokens):
        for word, count in Counter(of_section).items():
            entries.setdefault(word, []).extend([number - last.get(word, 0), count])
            last[word] = number
    shards, firsts, size = list[dict[str, list[int]]](), list[str](), _SHARD
    for word in sorted(entries, key=lambda word: word.encode("utf-16-be")):  # the order of JavaScript
        if size >= _SHARD:
            shards.append({})
            firsts.append(word)
            size = 0
        shards[-1][word] = entries[word]
        size += len(word) + 4 * len(entries[word])
    return {f"words-{number}": shard for number, shard in enumerate(shards)}, firsts


def _texts(sections: Iterable[Section], home: str) -> tuple[dict[str, Any], list[int]]:
    """Shard what a result shows of each section: address, titles, text, and formulas in MathML, the title's first."""
    shards, firsts, size = list[list[Any]](), list[int](), _SHARD
    for number, section in enumerate(sections):
        written = [
            home + quote(section.page) + (f"#{quote(section.anchor)}" if section.anchor else ""),
            section.page_title,
            section.title.text,
            _renumbered(section.post, len(section.title.formulas)),
            [formula_html(formula.latex) for formula in (*section.title.formulas, *section.post.formulas)],
        ]
        if size >= _SHARD:
            shards.append([])
            firsts.append(number)
            size = 0
        shards[-1].append(written)
        size += sum(map(len, (*map(str, written[:4]), *written[4])))
    return {f"texts-{number}": shard for number, shard in enumerate(shards)}, firsts


def _renumbered(post: MathPost, first: int) -> str:
    return PLACEHOLDER.sub(lambda mark: f"FORMULA_{first + int(mark[1])}", post.text)


# ---- symbols

_COMMANDS = r"""
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa varkappa lambda mu nu xi pi varpi rho
    varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi
    Omega aleph beth hbar imath jmath ell wp Re Im partial infty prime emptyset varnothing nabla surd top bot angle
    measuredangle triangle forall exists nexists neg lnot flat natural sharp clubsuit diamondsuit heartsuit spadesuit
    complement square Box blacksquare checkmark S P dagger ddagger degree
    sum prod coprod int iint iiint oint bigcap bigcup bigsqcup bigvee bigwedge bigodot bigotimes bigoplus biguplus
    pm mp setminus smallsetminus cdot centerdot times ast star diamond circ bullet div cap cup uplus sqcap sqcup
    triangleleft triangleright wr vee lor wedge land oplus ominus otimes oslash odot amalg bigtriangleup
    bigtriangledown ltimes rtimes curlywedge veebar
    leq le leqslant geq ge geqslant neq ne equiv approx sim simeq cong asymp propto in notin ni owns subset subseteq
    subsetneq supset supseteq supsetneq sqsubset sqsubseteq ll gg prec succ preceq succeq preccurlyeq succcurlyeq
    parallel nparallel perp mid nmid models vdash vDash dashv doteq triangleq trianglelefteq lhd unlhd lesssim gtrsim
    nleq ngeq nless ngtr nsubseteq nsim ncong lt gt bowtie smile frown coloneqq because therefore
    leftarrow gets rightarrow to leftrightarrow Leftarrow Rightarrow Leftrightarrow longleftarrow longrightarrow
    longleftrightarrow Longleftarrow Longrightarrow Longleftrightarrow iff implies impliedby mapsto longmapsto uparrow
    downarrow updownarrow Uparrow Downarrow nearrow searrow swarrow nwarrow hookrightarrow hookleftarrow leadsto
    rightharpoonup rightharpoondown rightleftharpoons twoheadrightarrow rightrightarrows rightsquigarrow upharpoonright
    restriction multimap
    sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan exp log ln lg lim limsup liminf sup inf max min
    arg deg det dim gcd hom ker Pr bmod
    cdots vdots ddots colon backslash langle rangle lfloor rfloor lceil rceil lbrace rbrace lbrack rbrack lvert rvert
    vert lVert rVert Vert
    """
_SIGNS = r"\{ \} \| \% \# \& \_"
_CHARACTERS = "+-=<>*/!?|()[],.;:" + "αβγδεζηθικλμνξπρστυφχψωϵϑϕϖϱΓΔΘΛΞΠΣΥΦΨΩℕℤℚℝℂ∞¬…⋯"
_ACCENT_NAMES = (
    "hat bar tilde vec dot ddot check breve acute grave mathring overline underline widehat widetilde overrightarrow "
    "overleftarrow overbrace underbrace"
)
_FONTS = "mathbb mathcal mathscr mathfrak mathbf mathsf mathtt mathit mathrm boldsymbol Bbb"
_NEGATED = r"= < > \in \ni \subset \subseteq \equiv \sim \simeq \approx \cong \mid \parallel \exists \leq \le \geq \ge"
_LETTERS = string.ascii_letters


@cache
def _symbols_script() -> str:
    """Write the symbols that the browser reads, and its other tables, as a script."""

    def written(atom: Atom) -> list[Any]:
        return [atom.role, atom.node.label, atom.text]

    def converted(names: Iterable[str]) -> dict[str, list[Any]]:
        """Convert the commands and characters that are one symbol."""
        leaves_of = {name: _leaves(name) for name in names}
        leaves = {name: some[0] for name, some in leaves_of.items() if len(some) == 1 and some[0].tag in ("mi", "mo")}
        atoms = {name: RULES[leaf.tag](leaf, []) for name, leaf in leaves.items()}
        return {name: written(atom) for name, atom in atoms.items() if atom is not None}

    commands = [rf"\{name}" for name in _COMMANDS.split()] + _SIGNS.split()
    signs = [sign for sign in OPERATORS if len(sign) == 1 and not "\ue000" <= sign <= "\uf8ff"]
    known = converted((*commands, *signs, *_CHARACTERS))
    known |= {name: written(identifier(name)) for name in (*_LETTERS, *LIMITS, *FUNCTIONS)}
    known |= {name: written(operator(name)) for name in OPERATORS if len(name) == 2}
    known |= converted(rf"\not{name}" for name in _NEGATED.split())
    known["mod"] = known["\\bmod"]
    known["\\ldots"] = known["\\dotsc"] = known["\\dotso"] = known["…"]
    known["\\dotsb"] = known["\\dotsm"] = known["\\dotsi"] = known["\\cdots"]
    roles = {name: value for name, value in vars(Role).items() if name.isupper()}
    accents = {
        rf"\{name}": opt_from_latex(rf"\{name}{{x}}").nodes[0].removeprefix("F!") for name in _ACCENT_NAMES.split()
    }
    letters = {name: [_leaves(rf"\{name}{{{letter}}}")[0].text or "" for letter in _LETTERS] for name in _FONTS.split()}
    fonts = {rf"\{name}": "".join(letter.strip("\ufe00\ufe01") for letter in some) for name, some in letters.items()}
    tables: dict[str, Any] = {
        "ROLE": roles,
        "SYMBOLS": known,
        "ACCENTS": accents,
        "LETTERS": _LETTERS,
        "FONTS": fonts,
        "RELATIONS": sorted(RELATIONS),
        "STOP_WORDS": sorted(STOP_WORDS),
    }
    lines = (f"export const {name} = {_json(value)};\n" for name, value in tables.items())
    return "// Written by `mathamr site` from the tables of pyterrier_mathamr.formula.\n\n" + "".join(lines)


def _leaves(latex: str) -> list[etree._Element]:
    """Return the visible symbols of a formula in MathML."""
    root = mathml.parse(presentation(latex, latex)[0])
    return [each for each in root.iter() if not len(each) and (each.text or "").strip(" \u2061\u2063")]
