"""The files of a site's search, which a browser reads without a server.

::

    index.html, *.js, *.css, fonts    the page; its script names no other site
    index.json                        what the others hold: the first word or section of each; and the number of the
                                      build, with which they are asked for, so that no cache mixes two of them
    formulas.bin                      all formulas as terms, each once; occurrences by section
    words-3.bin                       for some words, in order, the sections that have them
    texts-7.bin                       for some sections, title, address, and text with formulas in MathML

A ``.bin`` file is JSON, compressed with zlib. Formulas are read as :class:`~pyterrier_mathamr.sparse.PatternIndex`
reads them, so both find the same.
"""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from pyterrier_mathamr.formula import definitions, one_text, trees_of_posts
from pyterrier_mathamr.formula.display.typesetting import formula_html
from pyterrier_mathamr.formula.located import line_trees
from pyterrier_mathamr.formula.matching import Terms, read_terms
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, plain_text
from pyterrier_mathamr.sparse.tokens import STOP_WORDS

from .pages import Section, SiteError, read_sections
from .symbols import symbols_script

_STATIC = Path(str(resources.files(__package__) / "static"))
_PAGE = Path(str(resources.files("pyterrier_mathamr.engine.page") / "static"))
_FROM_PAGE = ("page.css", "inter.woff2", "stix-two-math.woff2", "icon.svg", "commands.js")
_WORD = re.compile(r"[^\W_]+")
_SHARD = 60_000  # characters of JSON before compression


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
    tokens = list(map(_tokens, sections))
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
    (new / "symbols.js").write_text(symbols_script(), encoding="utf-8")
    (new / "index.json").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")
    for file, content in packed.items():
        (new / f"{file}.bin").write_bytes(content)
    if output.exists():
        shutil.rmtree(output)
    new.rename(output)
    count = sum(len(numbers) for numbers in formulas["sections"])
    return SiteReport(len(sections), count - len(unread), tuple(unread))


def _packed(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 9)


# ---- formulas


class _Expressions:
    """The distinct terms of all formulas as they are written, operands before operators, and the distinct formulas."""

    def __init__(self) -> None:
        self.labels: dict[str, int] = {}
        self.terms: list[int] = []
        self.numbers: dict[tuple[str, tuple[int, ...]], int] = {}
        self.expressions: dict[tuple[int, ...], int] = {}

    def add(self, terms: Terms) -> int:
        """Return the number of a formula."""
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
            found = [formula.latex for formula in (*section.title.formulas, *section.post.formulas)]
            macros = definitions(found)
            numbers = list[int]()
            for latex in found:
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
    found = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    return [singular(word) for word in found if word not in STOP_WORDS]


def singular(word: str) -> str:
    """Remove the ending of an English plural; ``matrices`` and ``series`` stay."""
    if len(word) < 4 or word.endswith(("ss", "us", "is", "ices", "series")) or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


def _tokens(section: Section) -> list[str]:
    text = f"{section.title.text}\n{section.title.text}\n{section.post.text}"  # words of a title count more
    return words_of(PLACEHOLDER.sub(" ", text))


def _words(tokens: Iterable[list[str]]) -> tuple[dict[str, Any], list[str]]:
    """Shard the words of all sections: each with its sections, ascending, as distances, and its counts in them."""
    found: dict[str, list[int]] = {}
    last: dict[str, int] = {}
    for number, of_section in enumerate(tokens):
        for word, count in Counter(of_section).items():
            found.setdefault(word, []).extend([number - last.get(word, 0), count])
            last[word] = number
    shards, firsts, size = list[dict[str, list[int]]](), list[str](), _SHARD
    for word in sorted(found, key=lambda word: word.encode("utf-16-be")):  # the order of JavaScript
        if size >= _SHARD:
            shards.append({})
            firsts.append(word)
            size = 0
        shards[-1][word] = found[word]
        size += len(word) + 4 * len(found[word])
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
