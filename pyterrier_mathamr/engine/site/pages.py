"""The pages of a folder of HTML as sections: what a result of the search links to.

A section begins at each heading. Its anchor is the id of the heading, else that of the ``section`` or ``div`` that the
heading opens. Navigation, scripts and code that shows no formulas are not searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from lxml import etree, html

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.posts import MathPost, plain_text, post_from_html

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


class Section(NamedTuple):
    """A part of a page.

    Attributes:
        page: path of the page in the site, with slashes.
        anchor: id of the place in the page; empty for its beginning.
        title: the heading, with its formulas.
        page_title: the first heading of the page; empty where ``title`` is that.
        post: the text below the heading.
    """

    page: str
    anchor: str
    title: MathPost
    page_title: str
    post: MathPost


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
    main = next((found[0] for path in _MAIN if (found := _all(root, path))), root)
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
    yield from _section(page, "", escape(title), "", before)
    page_title = ""
    for heading, anchor, piece in zip(headings, anchors, pieces, strict=True):
        above, _, below = piece.partition(f"</{heading.tag}>")
        yield from _section(page, anchor, above, page_title, below)
        page_title = page_title or plain_text(post_from_html(above))


def _section(page: str, anchor: str, title: str, page_title: str, body: str) -> Iterator[Section]:
    post = post_from_html(body)
    if post.text or anchor:
        yield Section(page, anchor, post_from_html(title), page_title, post)


def _all(element: html.HtmlElement, path: str) -> list[html.HtmlElement]:
    found: list[html.HtmlElement] = element.xpath(path)
    return found


def _anchor(heading: html.HtmlElement, main: html.HtmlElement) -> str:
    """Return the id that leads to a heading; empty if there is none."""
    named = heading.get("id") or next((each.get("id") or each.get("name") for each in _all(heading, _NAMED)), None)
    above = heading.getparent()
    while not named and above is not None and above is not main:
        if next(above.iter(*_HEADINGS)) is not heading:
            break
        named, above = above.get("id"), above.getparent()
    return named or ""
