r"""LaTeX documents as text with formulas between their delimiters.

::

    source ──tex_expansion──▶ title, body ──find formulas──▶ text and ⟨⟩
           ──one pass over commands and braces──▶ text, with each formula in its place

The pass keeps no state except its position, so nothing nests and every source yields a text. Tables of
pylatexenc map commands to symbols; a command that they lack is left out and reported.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from pyterrier_mathamr._common.running.worker import OverLimitError

from .math_spans import HIDDEN, clean, math_spans, replaced
from .tex_expansion import SHELTER, Expander, collected
from .tex_macros import DEFINED, Definitions, closers, package_macros, text_tables

_UNSHELTER = {
    ord(DEFINED): "",
    **{code: r"\$" if chr(special) == "$" else chr(special) for special, code in SHELTER.items()},
}

_MATH_ENVIRONMENTS = re.compile(r"\\(begin|end)\{(math|displaymath|dmath\*?)\}")
TITLE = re.compile(r"\\title\s*+(?:\[[^\]\n]{0,500}\])?\s*+(?=\{)")
_LABELS = re.compile(r"\\(?:label|tag\*?)\s*+\{[^{}]*\}|\\(?:notag|nonumber)(?![A-Za-z])")
_REFERENCE = r"\\(?:[a-z]{0,8}[Cc]ite[a-z]*\*?|(?:eq|auto|page|name|[cC])?ref\*?)\s*+(?:\[[^\]\n]{0,500}\])*+\{[^{}]*\}"
REFERENCES = re.compile(rf"~?(?:\({_REFERENCE}\)|{_REFERENCE})")
_HEADING = re.compile(
    rf"[\s{DEFINED}]*+\\(?:part|chapter|(?:sub)*section|(?:sub)?paragraph)\*?\s*+(?:\[[^\]\n]{{0,500}}\])?\s*+(?=\{{)"
)
UNCLOSED = "{ is never closed"
_DELIMITERS = {("begin", True): r"\(", ("end", True): r"\)", ("begin", False): r"\[", ("end", False): r"\]"}
_ENSURED = re.compile(r"\\ensuremath(?![A-Za-z])\s*+")
_SOFT_BREAK = re.compile(r"\n(?![^\S\n]*+\n)")
_NOT_FOLLOWED = frozenset(["input", "include", "subfile", "import", "subimport"])
_HOLD = "\ue005"
"""Each character of a formula, while the text around it is read."""
_OURS = dict.fromkeys(range(0xE000, 0xE200))

_TOKEN = re.compile(rf"\\([A-Za-z@]+)\*?|\\([^{_HOLD}])|[{{}}~&{_HOLD}]|---?|``|''|[!?]`", re.DOTALL)
_OPTION = re.compile(r"[^\S\n]*+\[([^\[\]\n]{0,200})\]")
_OVERLAY = re.compile(r"<[\d.,+|@a-z:-]{1,40}>")
"""The slides of beamer on which something is shown."""
_MARKS = {"``": "“", "''": "”", "--": "–", "---": "—", "!`": "¡", "?`": "¿", "~": " ", "&": " "}
_ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", '"': "\u0308", "H": "\u030b", "r": "\u030a",
    "v": "\u030c", "u": "\u0306", "=": "\u0304", ".": "\u0307", "d": "\u0323", "c": "\u0327", "k": "\u0328",
    "b": "\u0331",
}  # fmt: skip
_ACCENTED = re.compile(r"\s*+(?:\{\s*+(?:\\([ij])(?![A-Za-z])|([^\W\d_]))\s*+\}|\\([ij])(?![A-Za-z])|([^\W\d_]))")
_CHARACTERS = {"$": r"\$", "\\": "\n", "(": r"\(", ")": r"\)", "[": r"\[", "]": r"\]", "-": "", "/": "", "@": ""}
_BREAKS = frozenset(["par", "newpage", "clearpage", "bigskip", "medskip", "smallskip", "item"])
_HEADINGS = frozenset(
    ["part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph", "caption"]
)
_AROUND = {
    **dict.fromkeys(_HEADINGS, ("", "\n\n")),
    **dict.fromkeys(["footnote", "footnotetext"], (" (", ")")),
}  # the text before and after the first argument
_MATH = {
    "frac": "{{", "dfrac": "{{", "tfrac": "{{", "cfrac": "{{", "nicefrac": "{{", "binom": "{{", "sqrt": "[{",
    "overline": "{", "hat": "{", "widehat": "{", "vec": "{", "bar": "{", "tilde": "{", "widetilde": "{", "dot": "{",
    "ddot": "{", "mathbb": "{", "mathcal": "{", "mathfrak": "{", "mathscr": "{",
}  # fmt: skip
"""Commands of formulas, which are kept if a formula has no delimiters."""

_ENVIRONMENTS = {
    "tabular": "[{", "tabular*": "{[{", "tabularx": "{[{", "array": "[{", "longtable": "[{", "figure": "[",
    "figure*": "[", "table": "[", "table*": "[", "minipage": "[[[{", "wrapfigure": "[{[{", "multicols": "{",
    "thebibliography": "{", "itemize": "[", "enumerate": "[", "description": "[", "list": "{{", "adjustwidth": "{{",
    "frame": "[",
}  # fmt: skip
_SILENT = {
    "includegraphics": "[[{", "hspace": "{", "vspace": "{", "bibliography": "{", "bibliographystyle": "{",
    "footnotemark": "[", "author": "[{", "date": "{", "thanks": "{", "affil": "[{", "address": "{", "email": "{",
    "color": "[{", "pagecolor": "[{", "nocite": "{", "index": "{", "href": "{", "hyperref": "[", "hypertarget": "{",
    "hyperlink": "{", "textcolor": "[{", "colorbox": "[{", "fcolorbox": "[{[{", "fontsize": "{{", "rule": "[{{",
    "raisebox": "{[[", "parbox": "[[[{", "makebox": "[[", "framebox": "[[", "resizebox": "{{", "scalebox": "{[",
    "rotatebox": "[{", "cline": "{", "cmidrule": "[{", "multicolumn": "{{", "multirow": "{[{", "selectlanguage": "{",
    "addcontentsline": "{{{", "bibitem": "[{", "phantom": "{", "hphantom": "{", "vphantom": "{", "linespread": "{",
    "setcounter": "{{", "label": "{", "ref": "{", "begingroup": "", "foreignlanguage": "{", "markboth": "{{",
    "stepcounter": "{", "refstepcounter": "{", "newline": "[", "linebreak": "[", "pagebreak": "[", "title": "[{",
    "input": "{", "include": "{", "subfile": "{", "import": "{{", "subimport": "{{", "tikzset": "{", "shortstack": "[",
}  # fmt: skip
_LAYOUT = """
    noindent indent centering raggedright raggedleft maketitle tableofcontents listoffigures listoftables appendix
    frontmatter mainmatter backmatter hfill vfill hline toprule midrule bottomrule small footnotesize scriptsize tiny
    normalsize large Large LARGE huge Huge bf it rm sl sc tt sf em bfseries itshape slshape scshape ttfamily sffamily
    rmfamily upshape mdseries normalfont selectfont protect relax null ignorespaces unskip makeatletter makeatother
    and begin end left right qed qedhere footnote footnotetext emph textnormal mbox fbox hbox vbox underline uline
    doublespacing onehalfspacing singlespacing sloppy fussy flushbottom raggedbottom nopagebreak allowbreak break
    pagestyle printbibliography printindex makeindex onecolumn twocolumn textsuperscript textsubscript enquote
    quote LaTeX TeX dots ldots endgroup bgroup egroup nolinkurl path centerline leavevmode strut newblock
    allowdisplaybreaks displaystyle textstyle limits nolimits big Big bigg Bigg acute grave nobreak vskip hskip
    texttt textquotesingle
""".split()  # noqa: SIM905


def read_latex(source: str, known: Definitions | None = None) -> tuple[str, str, dict[str, str]]:
    """Read a LaTeX document, or a part of one: title and text with formulas between delimiters, faults by place.

    Raises:
        OverLimitError: its macros write too much.
    """
    source = cleaned(source)
    expanded = Expander(known, collected(source).macros).read("", source)
    if expanded.error:
        raise OverLimitError(expanded.error)
    problems = {what: excerpt(source, at) for what, at in expanded.problems.items()}
    source = expanded.text

    def group(start: int) -> tuple[str, int]:
        """Return the content of the group in braces at a place and its end; nothing if it does not end."""
        end = closers(source).get(start)
        return ("", start) if end is None else (source[start + 1 : end], end + 1)

    titled = TITLE.search(source)
    title, after = group(titled.end()) if titled else ("", 0)
    _, begun, body = source.partition(r"\begin{document}")
    if begun:
        source = body.partition(r"\end{document}")[0]
    elif titled:
        source = source[: titled.start()] + source[after:]
    if not titled and (heading := _HEADING.match(source)):
        title, after = group(heading.end())
        source = source[after:]
    return _text(title, problems), _text(source, problems), problems


def read_latex_parts(parts: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Read parts of an expanded document: the text of each, with formulas between delimiters; the faults."""
    problems: dict[str, str] = {}
    return [_text(part, problems) for part in parts], problems


def cleaned(source: str) -> str:
    """Drop the carriage returns, control characters and marks of our own from a source."""
    return HIDDEN.sub("", clean(source.replace("\r\n", "\n")).translate(_OURS))


def _text(source: str, problems: dict[str, str]) -> str:
    """Read a part of a document, whose commands end in it."""
    source = _MATH_ENVIRONMENTS.sub(lambda edge: _DELIMITERS[edge[1], edge[2] == "math"], source)
    source = REFERENCES.sub("", _LABELS.sub("", source))
    spans = [(start, end) for start, end, _ in math_spans(_SOFT_BREAK.sub(" ", source))]  # over the ends of lines
    formulas: dict[int, tuple[int, str]] = {}
    for start, end in spans:
        formula = _ENSURED.sub("", source[start:end])
        if HIDDEN.search(formula):
            formula = "".join(HIDDEN.findall(formula))
        is_defining = DEFINED in formula and not formula.replace(DEFINED, "").strip("$ \\()[]\n")
        if is_defining or formula.strip("$ ") == r"\empty":  # which TeX expands to nothing
            formula = ""
        formulas[start] = end, formula
    masked = replaced(source, ((start, end, _HOLD * (end - start)) for start, end in spans))
    return _Reader(masked, source, formulas, problems).text().translate(_UNSHELTER).strip()


_OPTIONAL = re.compile(r"\[([^\[\]]{0,1000})\]")
_BLANKS = re.compile(r"[^\S\n]*+\n?[^\S\n]*+")


def _after(pattern: re.Pattern[str], source: str, at: int) -> int:
    """Return the place after a match, or the same place."""
    match = pattern.match(source, at)
    return match.end() if match else at


def after_blanks(source: str, at: int) -> int:
    """Return the place after blanks and at most one line end: an empty line ends a paragraph."""
    return _after(_BLANKS, source, at)


class _Reader:
    """The pass over a part of a document whose formulas are masked."""

    def __init__(
        self, masked: str, source: str, formulas: Mapping[int, tuple[int, str]], problems: dict[str, str]
    ) -> None:
        self._masked, self._source, self._formulas, self._problems = masked, source, formulas, problems
        self._ends = closers(masked)
        self._after: dict[int, str] = {}  # the text that replaces a closing brace
        self._out: list[str] = []

    def text(self) -> str:
        masked, at = self._masked, 0
        while token := _TOKEN.search(masked, at):
            self._out.append(masked[at : token.start()])
            start, at, mark, character = token.start(), token.end(), token[0], token[2]
            if mark == _HOLD:
                at, formula = self._formulas[start]
                self._out.append(formula)
            elif token[1]:
                at = self._command(token[1], start, at)
            elif character and (end := self._accented(character, at)):
                at = end
            elif character:
                if character == "\\":
                    at = _after(_OPTION, masked, at + masked.startswith("*", at))
                self._out.append(_CHARACTERS.get(character, " " if character in ",;:! \n\t" else character))
            else:
                self._out.append(self._brace(start) if mark in "{}" else _MARKS[mark])
        self._out.append(masked[at:])
        return "".join(self._out)

    def _brace(self, at: int) -> str:
        """Return the text for a brace: empty, except in powers, indices and at the end of arguments with an ending."""
        if self._masked[at] == "{" and at not in self._ends:
            self._problems.setdefault(UNCLOSED, excerpt(self._source, at))
        if at in self._ends and self._masked[at - 1 : at] in ("^", "_"):
            self._after[self._ends[at]] = "}"
            return "{"
        return self._after.get(at, "")

    def _accented(self, accent: str, at: int) -> int:
        """Write the letter that follows with an accent; return its end, or 0 if it is no accent or none follows."""
        letter = _ACCENTED.match(self._masked, at) if accent in _ACCENTS else None
        if letter is None:
            return 0
        self._out.append(unicodedata.normalize("NFC", letter[letter.lastindex or 0] + _ACCENTS[accent]))
        return letter.end()

    def _command(self, name: str, start: int, at: int) -> int:
        """Write the meaning of a command; return where reading continues."""
        if name in ("begin", "end"):
            group_end = self._ends.get(at)
            environment, at = ("", at) if group_end is None else (self._masked[at + 1 : group_end], group_end + 1)
            self._out.append("\n\n")
            at = _after(_OVERLAY, self._masked, at)
            return self._skipped(at, _ENVIRONMENTS.get(environment, "")) if name == "begin" else at
        if problem := _problem(name):
            self._problems.setdefault(problem, excerpt(self._source, start))
        if end := self._accented(name, at):
            return end
        if name in _MATH and (after := self._skipped(at, _MATH[name])) > at:
            self._out.append(self._source[start:after])
            return after
        if name in _SILENT:
            return self._skipped(at, _SILENT[name])
        if name in _BREAKS or name in _HEADINGS:
            self._out.append("\n\n")
            at = _after(_OVERLAY, self._masked, at)
        if name in _HEADINGS or name == "footnote":
            at = _after(_OPTION, self._masked, at)
        group_at = after_blanks(self._masked, at)
        closer = self._ends.get(group_at)
        if name == "ensuremath" and closer is not None:
            self._out.append(f"${self._source[group_at + 1 : closer]}$")
            return closer + 1
        if closer is not None and name in _AROUND:
            before, self._after[closer] = _AROUND[name]
            self._out.append(before)
        symbol = _symbols().get(name, "")
        self._out.append(symbol)
        return group_at if symbol.isalpha() else at

    def _skipped(self, at: int, kinds: str) -> int:
        """Return where the arguments of a command end, if it has them all."""
        start = at
        for kind in kinds:
            next_at = after_blanks(self._masked, at)
            if kind == "[":
                optional = _OPTIONAL.match(self._masked, next_at)
                at = optional.end() if optional else at
            elif next_at in self._ends:
                at = self._ends[next_at] + 1
            else:
                return start
        return at


@cache
def _symbols() -> dict[str, str]:
    macros = text_tables()[0].iter_macro_specs()
    texts = {macro.macroname: macro.simplify_repl for macro in macros if macro.macroname.isalpha()}
    symbols = {name: text for name, text in texts.items() if isinstance(text, str) and "%" not in text}
    escaped = {name: text.replace("$", r"\$") for name, text in symbols.items() if name != "today"}
    return {**escaped, "LaTeX": "LaTeX", "TeX": "TeX", "dots": "…", "ldots": "…"}


def _problem(command: str) -> str:
    if command in _NOT_FOLLOWED:
        return rf"\{command} is not followed, index that file too"
    is_known = command in _known() or command in package_macros()
    return "" if is_known else rf"the command \{command} is unknown"


@cache
def _known() -> frozenset[str]:
    names = {macro.macroname for table in text_tables() for macro in table.iter_macro_specs()}
    return frozenset({*names, *_LAYOUT, *_SILENT, *_BREAKS, *_HEADINGS, *_AROUND, *_ACCENTS, *_MATH})


def unknown_commands(text: str) -> Iterator[tuple[str, str]]:
    """Find commands that LaTeX does not have for text, and included files: faults, by place."""
    for command in re.finditer(r"(?<![\w\\:/.])\\([A-Za-z]{2,})", text):
        if problem := _problem(command[1]):
            yield problem, excerpt(text, command.start())


def excerpt(text: str, start: int) -> str:
    """Return the text from a place on in one line."""
    return " ".join(HIDDEN.sub("…", text[start : start + 60]).replace(DEFINED, "").replace(_HOLD, "").split())
