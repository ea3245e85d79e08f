r"""A folder of NTCIR-12 MathWiki formula browsing: topics of one formula, judgments, and the formulas of Wikipedia.

::

    topics.xml    <topic><num>NTCIR12-MathWiki-1</num><query><formula><m:math>…    or
    topics.tsv    NTCIR12-MathWiki-1 ⇥ LaTeX
    qrels         NTCIR12-MathWiki-1 xxx Active_contour_model:1 0.0                or qrels.txt
    corpus.tsv    Active_contour_model:1 ⇥ LaTeX

Each may be gzipped (``corpus.tsv.gz``). A document is a formula, named by its article and its place there. Topics 1 to
20 are concrete; 21 to 40 have wildcards, ``\qvar{x}`` in LaTeX and ``mws:qvar`` in MathML.

Zanibbi, Aizawa, Kohlhase, Ounis, Topić and Davila, "NTCIR-12 MathIR Task Overview", NTCIR-12, 2016. The organizers
distribute the corpus.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from lxml import etree

from pyterrier_mathamr.arqmath import ARQMathError, MissingFileError
from pyterrier_mathamr.extending import ByPath, SeenIds, latex_of_mathml, open_binary, open_text, read_chunks

_NAMES = {"topics": ("topics.xml", "topics.tsv"), "judgments": ("qrels", "qrels.txt"), "corpus": ("corpus.tsv",)}
_ASK = "Ask the organizers of NTCIR-12 MathIR for the collection, and write the file as described for NTCIR12Folder."
_GRADES = (0.0, 4.0)
_SPACES = re.compile(r"[ \t]+")
_COMMENT = re.compile(r"(?<!\\)%[ \t]*\r?\n[ \t]*")  # how LaTeXML breaks lines
_WILDCARD = re.compile(r"\\qvar(?![a-zA-Z])")


class BrowsedFormula(NamedTuple):
    """A formula of the corpus."""

    id: str  # article:index
    latex: str


class NTCIR12Folder(ByPath):
    r"""The topics, judgments and formulas of NTCIR-12 MathWiki formula browsing, or of a collection in its layout.

    Args:
        path: the folder, with ``topics.xml`` or ``topics.tsv``, ``qrels``, and ``corpus.tsv``, plain or gzipped.

    Raises:
        MissingFileError: there is no such file.

    Example::

        folder = NTCIR12Folder("NTCIR-12")
        topics, qrels = folder.topics(), folder.qrels()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._files = dict[str, Path]()
        for what, plain in _NAMES.items():
            names = tuple(name + ending for name in plain for ending in ("", ".gz"))
            files = [file for name in names if (file := self.path / name).is_file()]
            if not files:
                raise MissingFileError(what, self.path, names, _ASK)
            self._files[what] = files[0]

    def topics(self) -> pd.DataFrame:
        r"""Read the topics.

        Of MathML, the LaTeX annotation is read; if there is none, or it lacks the wildcards, Presentation MathML is
        converted to LaTeX.

        Returns:
            ``qid``, ``latex`` (LaTeX without dollars, wildcards as ``\qvar{x}``) and ``wildcards``, whether it has any;
            in the order of the file.

        Raises:
            ARQMathError: the file cannot be read, or a topic has no number, no formula or several, or comes twice.
        """
        file = self._files["topics"]
        read = _xml_topics if ".xml" in file.suffixes else _rows
        found: dict[str, str] = {}
        for line, qid, latex in read(file):
            if qid in found:
                raise ARQMathError(f"{file}:{line}: topic {qid} comes twice; remove one of them")
            if not latex:
                raise ARQMathError(f"{file}:{line}: topic {qid} has no formula; add its LaTeX")
            found[qid] = latex
        if not found:
            raise ARQMathError(f"{file}:1: it has no topic; each is a <topic> in XML, or a line: topic, tab, LaTeX")
        table = pd.DataFrame({"qid": list(found), "latex": list(found.values())}, dtype=str)
        return table.assign(wildcards=[bool(_WILDCARD.search(latex)) for latex in found.values()])

    def qrels(self) -> pd.DataFrame:
        """Read the judgments.

        Returns:
            ``qid``, ``docno`` and ``label``, the grade from 0 to 4, rounded down, which preserves each threshold; in
            the order of the file.

        Raises:
            ARQMathError: a line lacks a column, its grade is not a number from 0 to 4, or a formula has two grades for
                one topic.
        """
        file = self._files["judgments"]
        found: dict[tuple[str, str], float] = {}
        with open_text(file, newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                cells = _SPACES.split(line.strip(" \t\r\n"))
                if cells == [""]:
                    continue
                if len(cells) != 4:
                    raise ARQMathError(
                        f"{file}:{number}: {line[:60]!r} does not have the four columns topic, iteration, "
                        "article:index, grade; correct or remove the line"
                    )
                qid, _, docno, text = cells
                try:
                    grade = float(text)
                except ValueError:
                    grade = math.nan
                if not _GRADES[0] <= grade <= _GRADES[1]:
                    raise ARQMathError(
                        f"{file}:{number}: the grade {text[:20]!r} of {docno} is not a number from 0 to 4. Correct or "
                        "remove the line"
                    )
                if found.setdefault((qid, docno), grade) != grade:
                    raise ARQMathError(
                        f"{file}:{number}: {docno} has the grades {found[qid, docno]:g} and {grade:g} for {qid}; "
                        "remove one of the lines"
                    )
        if not found:
            raise ARQMathError(f"{file}:1: it holds no judgment; each line is: topic, iteration, article:index, grade")
        rows = [(qid, docno, math.floor(grade)) for (qid, docno), grade in found.items()]
        return pd.DataFrame(rows, columns=["qid", "docno", "label"])

    def formulas(self) -> Iterator[BrowsedFormula]:
        """Read the corpus, a line at a time.

        Yields:
            The formulas in the order of the file. One without LaTeX is yielded, too.

        Raises:
            ARQMathError: a line has no tab or no ``article:index`` before it, or a formula comes twice.
        """
        file, seen = self._files["corpus"], SeenIds()
        for number, name, latex in _rows(file):
            if not seen.add(name):
                raise ARQMathError(f"{file}:{number}: formula {name} comes twice; remove one of the lines")
            yield BrowsedFormula(name, latex)

    def count(self) -> int:
        """Count the lines of the corpus without reading them as formulas, for the total of a progress bar."""
        return sum(chunk.count(b"\n") for chunk in read_chunks(self._files["corpus"]))

    @property
    def corpus_file(self) -> Path:
        """Return the file of the formulas."""
        return self._files["corpus"]


def _rows(file: Path) -> Iterator[tuple[int, str, str]]:
    """Read lines of a name, a tab and LaTeX: the number of the line, the name and the LaTeX."""
    with open_text(file, newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            name, tab, latex = line.rstrip("\r\n").partition("\t")
            if not name.strip() and not latex.strip():
                continue
            if not tab or not name.strip():
                raise ARQMathError(
                    f"{file}:{number}: {line[:60]!r} is not a name and LaTeX, separated by a tab. Correct or remove it"
                )
            yield number, name.strip(), _one_line(latex)


def _one_line(latex: str) -> str:
    return " ".join(_COMMENT.sub("", latex).split())


# Topics in XML -------------------------------------------------------------------------------------------------------


def _xml_topics(file: Path) -> Iterator[tuple[int, str, str]]:
    """Read the line, number and LaTeX of each ``<topic>``; tags are read in any namespace."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    with open_binary(file) as stream:
        data = stream.read()
    try:
        root: Any = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ARQMathError(f"{file}:{line}: this is not well-formed XML ({error}). Correct it there") from error
    for topic in root.iter("{*}topic"):
        qid = (topic.findtext("{*}num") or "").strip()
        if not qid:
            raise ARQMathError(f"{file}:{topic.sourceline}: the topic has no <num>; add it")
        formulas = list(topic.iter("{*}formula"))
        if len(formulas) != 1:
            raise ARQMathError(
                f"{file}:{topic.sourceline}: topic {qid} has {len(formulas)} formulas, and formula browsing has one; "
                "use the topics of the task MathWiki-Formula"
            )
        latex = _latex_of(formulas[0])
        if latex is None:
            raise ARQMathError(
                f"{file}:{formulas[0].sourceline}: the formula of topic {qid} has neither LaTeX nor Presentation "
                'MathML that can be written as LaTeX; add <annotation encoding="application/x-tex">'
            )
        yield topic.sourceline, qid, latex


def _latex_of(formula: Any) -> str | None:
    """Return the LaTeX of a formula: its annotation, or LaTeX written from its Presentation MathML."""
    if len(formula) == 0:
        return _one_line(formula.text or "")
    given = next((note.text or "" for note in _annotations(formula, "annotation", "application/x-tex")), "")
    latex = _one_line(given or next((one.get("alttext", "") for one in formula.iter("{*}math")), ""))
    lost = not _WILDCARD.search(latex) and next(formula.iter("{*}qvar"), None) is not None
    if latex and not lost:
        return latex
    shown = next(_annotations(formula, "annotation-xml", "MathML-Presentation"), None)
    if shown is None:
        shown = next(formula.iter("{*}math"), formula)
    inner = "".join(etree.tostring(child, encoding="unicode", with_tail=False) for child in shown)
    return latex_of_mathml(f"<math>{inner}</math>") or None


def _annotations(formula: Any, tag: str, encoding: str) -> Iterator[Any]:
    return (note for note in formula.iter(f"{{*}}{tag}") if note.get("encoding") == encoding)
