r"""LaTeX files as units: statements, proofs and sections, numbered as LaTeX prints them, over all files of a document.

::

    main.tex ──\input──▶ chapters/ch1.tex ──\input──▶ …        one document: its files in reading order
       macros, \newtheorem, counters, sections go on from file to file; a unit belongs to the file in which it begins

A file that is included in a statement or proof is part of it. A file that also belongs to another document, such as
a preamble that several documents share, contributes only its definitions. Nothing here recurses, and each file is read
once, after its macros were expanded (`tex_expansion`), which tells the line in the file of each place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from pyterrier_mathamr._common.feedback import report_problem

from .latex_document import REFERENCES, TITLE, after_blanks, excerpt, read_latex_parts
from .math_spans import DISPLAYS
from .statements import PROOFS, Lead, Outline, Unit, kind_of, lead_of, numbered_lead, printed_name, series
from .tex_expansion import Expander
from .tex_machine import Expanded
from .tex_macros import BRACE, Definition, closers

_LEVELS = {
    "part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5, "paragraph": 6, "subparagraph": 7,
}  # fmt: skip
_DEPTH_0 = 2  # the level whose depth LaTeX counts as 0
INPUT = (
    r"\\(?P<input>input|include|subfile|subfileinclude)(?![A-Za-z@])"
    r"\s*+(?:\{(?P<file>[^{}\n#]{1,300})\}|(?P<bare>[\w./-]{1,300}))"
    r"|\\(?:sub)?import\*?\s*+\{(?P<folder>[^{}\n#]{0,300})\}\s*+\{(?P<imported>[^{}\n#]{1,300})\}"
)
"""Matches a command that includes a file."""
_TOKENS = (
    rf"\\(?P<heading>{'|'.join(_LEVELS)})(?P<star>\*?)(?![A-Za-z@])"
    r"|\\(?P<edge>begin|end)[^\S\n]*+\{(?P<name>[^{}\n]{1,80})\}"
    rf"|{INPUT}"
    r"|(?m:^)[^\S\n]*+(?:\\(?:noindent|par|(?:small|med|big)skip)(?![A-Za-z])[^\S\n]*+\n?[^\S\n]*+){0,4}+(?P<par>)"
    r"(?:(?:\\(?:textbf|textsc|textit|emph)\s*+\{|\{\s*+\\(?:bf|bfseries|it|itshape|sc|em)(?![A-Za-z])\s*+)"
    r"(?P<words>[^{}\n]{1,300})\}|(?:\\S\s*+|§\s*+)?(?P<number>\d{1,3}(?:\.\d{1,3}){1,4})(?=\.?[^\S\n]))"
    r"|\\(?P<matter>appendix|frontmatter|mainmatter|backmatter)(?![A-Za-z@])"
)
_SETTING_COUNTERS = ("setcounter", "addtocounter")
_OPTION = re.compile(r"\s*+\[([^\[\]]{0,1000})\]")
_STRUCTURE = re.compile(rf"\s*+\\(?:{'|'.join(_LEVELS)}|label|begin|end)(?![A-Za-z])")
_LABELLED = re.compile(r"\s*+\\label\s*+\{([^{}\n]{1,200})\}")
_OVERLAY = re.compile(r"<[^<>\n]{0,40}>")
_NOTE = re.compile(r"[\[\]{]")
_SETTING = re.compile(r"([a-z ]{1,30})=\s*(\{[^{}]*\}|[^,{}]*)")
_LABEL = re.compile(r"\\(?P<edge>begin|end)\{(?P<name>[^{}\n]{1,40})\}|\\label\s*+\{(?P<label>[^{}\n]{1,200})\}")
_MATH = re.compile(rf"(?:{DISPLAYS}|subequations|figure|table)\*?")
_BOOKS = re.compile(r"book|report|scrbook|scrreprt|memoir|thesis|amsbook|svmono|tufte-book")
_THE = re.compile(r"\\the([A-Za-z]{1,40})(?![A-Za-z])\s*")
_PRINTED = re.compile(r"\\(arabic|Alph|alph|Roman|roman)\s*\{([A-Za-z*]{1,40})\}")
_UNSEEN = re.compile(
    r"\\(?:label|author|date|vspace|hspace|bibliography|bibliographystyle|thispagestyle|pagestyle|addcontentsline|index"
    r"|markboth|thanks|pagenumbering|title|printbibliography|input|include|phantomsection)\*?\s*+(?:\{[^{}]*\})*"
    r"|\\(?:begin|end)\s*+\{[^{}]*\}|\\[A-Za-z@]+\*?|[\s{}~]+"
)
_BABEL = re.compile(r"\\([a-z]{3,20})name(?![A-Za-z])")
r"""A name that a package for languages defines, such as ``\theoremname``."""
_PRINTS = re.compile(r"[\w\\]")
_LONGEST_NOTE = 400
_ROMAN = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
          (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]  # fmt: skip


class _Theorem(NamedTuple):
    """A kind of statement that a document declares."""

    name: str  # as printed
    counter: str  # empty for one without numbers
    titled: bool = False  # its title and label are arguments in braces, the label after this prefix
    prefix: str = ""


Token: TypeAlias = re.Match[str] | Definition


class LatexFile:
    """A LaTeX file after expansion, and how far it was read.

    Attributes:
        name: the file's.
        expanded: the file as TeX reads it.
        text: its text after expansion.
        ends: the brace that closes each brace.
        matches: headings, begins and ends of environments, paragraphs and files that are included.
    """

    def __init__(self, name: str, expanded: Expanded) -> None:
        self.name, self.expanded, self.text = name, expanded, expanded.text
        self.ends = closers(self.text)
        self.matches: list[re.Match[str]] = []
        for match in re.finditer(_TOKENS, self.text):
            start = match.start()
            if match["par"] is not None:
                before = self.text[self.text.rfind("\n", 0, max(start - 1, 0)) + 1 : start]
                if before.strip() and not _STRUCTURE.match(before):
                    continue  # no blank line before it
            self.matches.append(match)
        tokens: list[tuple[int, Token]] = [(match.start(), match) for match in self.matches]
        tokens += ((setting.start, setting) for setting in expanded.definitions)
        self.tokens = iter(sorted(tokens, key=itemgetter(0)))
        self.begun = self.text.find(r"\begin{document}")
        ended = self.text.find(r"\end{document}", max(self.begun, 0))
        self.end = ended if ended >= 0 else len(self.text)
        pars = {match.start(): match for match in self.matches if match["par"] is not None}
        numbers = {at: par["number"] or numbered_lead(par["words"] or "")[1] for at, par in pars.items()}
        self.numbered = series({at: number for at, number in numbers.items() if number})
        self.statement_ends: dict[int, int] = {}  # where each statement and proof ends that has an end
        self.silent = False  # its text is not read, as before the begin of the document
        self.at = 0

    def line(self, place: int) -> int:
        """Return the line in the file of a place in the text, from 1."""
        return self.expanded.position(place)[0]

    @property
    def is_balanced(self) -> bool:
        return len(self.ends) == sum(brace[0] == "{" for brace in BRACE.finditer(self.text))


class _Counters:
    r"""The counters of a document, and what ``\the…`` prints of them."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.within: dict[str, list[str]] = {}
        self.printed: dict[str, str] = {}
        self.deepest = 3
        self.numbered = True  # chapters are
        for outer, inner in pairwise(["section", "subsection", "subsubsection", "paragraph"]):
            self.put_within(inner, outer)

    def put_within(self, inner: str, outer: str) -> None:
        self.within.setdefault(outer, []).append(inner)
        self.printed.setdefault(inner, rf"\the{outer}.\arabic{{{inner}}}")

    def book(self) -> None:
        self.put_within("section", "chapter")
        self.deepest = 2

    def set(self, counter: str, value: int) -> None:
        """Set a counter, and reset the counters within it."""
        self.values[counter] = value
        waiting, seen = [counter], {counter}
        while waiting:
            for inner in self.within.get(waiting.pop(), ()):
                if inner not in seen:
                    seen.add(inner)
                    waiting.append(inner)
                    self.values[inner] = 0

    def step(self, counter: str) -> None:
        self.set(counter, self.values.get(counter, 0) + 1)

    def the(self, counter: str) -> str:
        """Print a counter; its bare value where its format is not known."""
        text = rf"\the{counter} "
        for _ in range(8):
            text = _THE.sub(lambda name: self.printed.get(name[1], rf"\arabic{{{name[1]}}}"), text[:200])
        text = _PRINTED.sub(lambda name: _written(self.values.get(name[2], 0), name[1]), text)
        text = re.sub(r"[{}\s]", "", text)
        return text if re.fullmatch(r"[\w.'()-]{1,40}", text) else str(self.values.get(counter, 0))


def _written(value: int, form: str) -> str:
    if form in ("Alph", "alph"):
        letter = chr(64 + value) if 0 < value < 27 else str(value)
        return letter if form == "Alph" else letter.lower()
    if form == "arabic" or not 0 < value < 4000:
        return str(value)
    digits = ""
    for worth, sign in _ROMAN:
        digits += sign * (value // worth)
        value %= worth
    return digits if form == "Roman" else digits.lower()


def shown(text: str) -> str:
    """Return roughly the visible text of a piece of LaTeX: without commands."""
    return _UNSEEN.sub("", text)


class LatexDocument:
    """The files of a document, split.

    The ``expander`` has read them, and files that contribute only their definitions. The first of the ``members``
    includes the others.
    """

    def __init__(self, members: Sequence[str], expander: Expander, everywhere: Iterable[Definition]) -> None:
        self.root = members[0]
        self.files = {name: LatexFile(name, expander.files[name]) for name in members}
        self._expander = expander
        self._outline = Outline()
        self._counters = _Counters()
        self._theorems: dict[str, _Theorem] = {}
        self._frames: list[LatexFile] = []
        self._until = -1  # where the open statement or proof ends in its file; -1 where nothing ends it
        self._depth = 0  # of the frames, where it began
        settings = [setting for file in expander.files.values() for setting in file.definitions]
        for setting in (*everywhere, *settings):
            if setting.by not in _SETTING_COUNTERS:
                self._declare(setting)
        if any(token["heading"] == "chapter" for file in self.files.values() for token in file.matches):
            self._counters.book()
        for name, macro in expander.macros.items():
            if name.startswith("the") and macro.plain:
                self._counters.printed[name[3:]] = macro.plain
        for name, file in self.files.items():
            for what, place in file.expanded.problems.items():
                report_problem(name, what, excerpt(file.expanded.source, place))
        self._seen: set[str] = set()
        for name in members:  # a file that is named where nothing is read follows at the end
            if name not in self._seen:
                self._push(name, silent=False)
                while self._frames:
                    self._next()

    def units(self, file: str, plain: Callable[[str], str], whole: bool) -> list[Unit]:
        return self._outline.units(file, shown, plain, whole)

    def _push(self, name: str, *, silent: bool) -> None:
        self._seen.add(name)
        file = self.files[name]
        file.silent = silent or file.begun >= 0
        opened: list[tuple[str, int]] = []
        counts: Counter[str] = Counter()
        for token in file.matches:
            environment = (token["name"] or "").strip()
            if token["edge"] == "begin" and self._kind(environment):
                opened.append((environment, token.start()))
                counts[environment] += 1
            elif token["edge"] == "end" and counts[environment]:
                last = ""
                while last != environment:
                    last, place = opened.pop()
                    counts[last] -= 1
                file.statement_ends[place] = token.start()
        self._frames.append(file)
        title = TITLE.search(file.text)
        closer = file.ends.get(title.end()) if title else None
        written = file.text[title.end() + 1 : closer] if title and closer else ""
        if self._outline.open is None:
            self._outline.begin_file(name, written, file.line(max(file.begun, 0)))

    def _kind(self, name: str) -> str:
        if name.rstrip("*") == "restatable":
            return "theorem"
        theorem = self._theorems.get(name)
        if theorem:
            return kind_of(theorem.name) or theorem.name.lower()
        return kind_of(name.removeprefix("my")) if re.fullmatch(r"[^\W\d_]+\*?", name) else ""

    def _next(self) -> None:
        """Read up to the next token of the innermost file."""
        frame, counters = self._frames[-1], self._counters
        start, token = next(frame.tokens, (frame.end, None))
        if start < frame.at < frame.end:
            return
        if start >= frame.end or token is None:
            self._write(frame.end)
            if self._depth == len(self._frames):
                self._outline.open = None
            self._frames.pop()
        elif isinstance(token, Definition):
            if token.by in _SETTING_COUNTERS:
                self._declare(token)
        elif token["edge"]:
            self._edge(token)
        elif token["heading"]:
            self._heading(token)
        elif matter := token["matter"]:
            if matter == "appendix":
                top = "chapter" if "section" in counters.within.get("chapter", ()) else "section"
                counters.set(top, 0)
                counters.printed[top] = rf"\Alph{{{top}}}"
            counters.numbered = matter in ("appendix", "mainmatter")
        elif token["par"] is not None:
            self._paragraph(token)
        else:
            self._include(token)

    def _write(self, end: int) -> None:
        """Pass the text up to a place to the outline."""
        frame = self._frames[-1]
        if end > frame.at:
            if not frame.silent:
                self._outline.write(frame.name, frame.text[frame.at : end])
            frame.at = end

    def _cut(self, start: int, at: int) -> int:
        """End the open unit at a heading or statement, whose text begins at the second place; return its line."""
        self._write(start)
        self._outline.open = None
        self._frames[-1].at = at
        return self._frames[-1].line(start)

    def _begin(self, lead: Lead, line: int, label: str, printed: str = "", until: int = -1) -> None:
        self._outline.begin(self._frames[-1].name, lead, line, label, printed)
        self._until, self._depth = until, len(self._frames)

    @property
    def _is_inner(self) -> bool:
        """Whether text is silent, or in a statement or proof whose end is known."""
        return self._frames[-1].silent or (self._outline.open is not None and self._until >= 0)

    def _heading(self, token: re.Match[str]) -> None:
        file, level = self._frames[-1], _LEVELS[token["heading"]]
        option = _OPTION.match(file.text, token.end())
        opener = after_blanks(file.text, option.end() if option else token.end())
        if opener not in file.ends:
            return
        numbered = self._counters.numbered or token["heading"] != "chapter"
        if not token["star"] and numbered and level - _DEPTH_0 <= self._counters.deepest:
            self._counters.step(token["heading"])
        if self._is_inner:
            return  # a step of a proof
        title = " ".join(file.text[opener + 1 : file.ends[opener]].split())
        end = file.ends[opener] + 1
        label = _LABELLED.match(file.text, end)
        line = self._cut(token.start(), label.end() if label else end)
        lead = lead_of(title.rstrip(".:")) if level >= _LEVELS["paragraph"] else None
        if lead is None:
            self._outline.heading(file.name, level, title, line, label[1] if label else "")
        else:
            self._begin(lead, line, label[1] if label else "")

    def _edge(self, token: re.Match[str]) -> None:
        frame = self._frames[-1]
        begins, name = token["edge"] == "begin", token["name"].strip()
        if name == "document":
            if begins and not any(outer.silent for outer in self._frames[:-1]):
                frame.silent, frame.at = False, token.end()
            return
        is_open, is_here = self._outline.open is not None, self._depth == len(self._frames)
        if not begins:
            if is_open and is_here and token.start() == self._until:
                self._cut(token.start(), token.end())
            return
        kind = self._kind(name)
        if not kind or frame.silent:
            return
        lead, label, end, printed = self._lead(frame, token.end(), name, kind)
        if is_open and (self._until >= 0 or not is_here):
            return  # a claim within a proof
        line = self._cut(token.start(), end)
        until = frame.statement_ends.get(token.start(), -1)
        if until < 0:
            what = rf"\begin{{{name}}} is never closed"
            report_problem(frame.name, what, " ".join(frame.text[token.start() : token.start() + 60].split()))
        if kind not in PROOFS:
            label = label or _label_in(frame.text, end, until)
        self._begin(lead, line, label, printed, until)

    def _lead(self, file: LatexFile, at: int, name: str, kind: str) -> tuple[Lead, str, int, str]:
        """Read the arguments of a statement: its name and note, its label, where its text begins, and its number."""
        theorem, note, label = self._theorems.get(name), "", ""
        if overlay := _OVERLAY.match(file.text, at):
            at = overlay.end()
        bracket = after_blanks(file.text, at)
        if (end := _end_of_note(file, bracket)) is not None:
            note, at = file.text[bracket + 1 : end], end + 1
        if name.rstrip("*") == "restatable":
            groups, at = _groups(file, at)
            name = groups[0] if groups else name
            theorem, kind = self._theorems.get(name), self._kind(name) or kind
        if theorem and theorem.titled:
            groups, at = _groups(file, at)
            note = groups[0] if groups else ""
            label = f"{theorem.prefix}:{groups[1]}" if len(groups) > 1 and groups[1] else ""
        elif re.match(r"\s*(?:name|label|note|title|restate)\s*=", note):
            settings = _settings(note)
            note = _first_of(settings, "name", "note", "title")
            label = settings.get("label", "")
        note = " ".join((note if kind in PROOFS else REFERENCES.sub("", note)).split())
        note = note if _PRINTS.search(note) else ""
        counter, number = theorem.counter if theorem else f"{name} ", ""
        if kind not in PROOFS and not name.endswith("*") and counter:
            self._counters.step(counter)
            number = self._counters.the(counter) if theorem else str(self._counters.values[counter])
        shown_name = theorem.name if theorem else printed_name(name.rstrip("*"), kind)
        return Lead(kind, shown_name, "", note.strip(" ;,")), label, at, number

    def _paragraph(self, token: re.Match[str]) -> None:
        """Begin a numbered paragraph, or a statement or proof whose first words are bold."""
        frame, words = self._frames[-1], (token["words"] or "").strip()
        if self._is_inner:
            return
        lead, number = numbered_lead(words)
        if lead is None and token.start() not in frame.numbered:
            return
        self._cut(token.start(), token.end())
        line = frame.line(token.start("par"))
        if lead is None:
            number = number or token["number"]
            self._outline.part(frame.name, "paragraph", number, words.rstrip(" .:") or number, line)
        else:
            self._begin(lead, line, "" if lead.kind in PROOFS else _label_in(frame.text, token.end(), -1))

    def _include(self, token: re.Match[str]) -> None:
        frame = self._frames[-1]
        name, problem = frame.expanded.inputs.get(token.start(), ("", ""))
        if any(name == other.name for other in self._frames):
            problem = f"{name} includes itself, which is not followed"
        if problem:
            report_problem(frame.name, problem, token[0])
        self._write(token.start())
        frame.at = token.end()
        if name in self.files and name not in self._seen:
            if self._until < 0:
                self._outline.open = None
            self._push(name, silent=frame.silent)

    def _declare(self, setting: Definition) -> None:
        by, counters, given = setting.by, self._counters, [text.strip() for text in setting.arguments]
        if by == "documentclass" and _BOOKS.search(given[1]):
            counters.book()
        elif by in ("numberwithin", "counterwithin"):
            inner, outer = given[-2:]
            counters.printed.pop(inner, None)
            counters.put_within(inner, outer)
        elif by in _SETTING_COUNTERS and re.fullmatch(r"-?\d{1,6}", given[1]):
            old = counters.values.get(given[0], 0) if by == "addtocounter" else 0
            if given[0] == "secnumdepth":
                counters.deepest = int(given[1])
            counters.values[given[0]] = old + int(given[1])
        elif by == "newaliascnt":
            self._theorems.setdefault(f"{given[0]} ", _Theorem("", self._counter_of(given[1])))
        elif by == "declaretheorem":
            options, env = _settings(given[0]), given[1].split(",")[0].strip()
            name = _first_of(options, "name", "title", "heading") or env.capitalize()
            shared = _first_of(options, "sibling", "numberlike", "sharenumber")
            within = _first_of(options, "numberwithin", "within", "parent")
            self._declare_theorem(env, name, shared, within, setting.starred or options.get("numbered") == "no")
        elif by == "newtcbtheorem":
            options, (_, env, name, _, prefix) = _settings(given[0]), given
            shared, within = options.get("use counter from", ""), options.get("number within", "")
            self._declare_theorem(env, name, shared, within, prefix=prefix)
        elif by.endswith(("theorem", "theoremenv")):
            env, shared, name, within = given[by == "newmdtheoremenv" :][:4]
            self._declare_theorem(env, " ".join(name.split()), shared, within, setting.starred)

    def _declare_theorem(
        self, env: str, name: str, shared: str, within: str, bare: bool = False, prefix: str | None = None
    ) -> None:
        """Declare a kind of statement, which may share the counter of another one or have no numbers."""
        if "\\" in name or "{" in name:  # without fonts, colors and macros
            name = _BABEL.sub(lambda name: f" {name[1].capitalize()}", self._expander.text(name))
            [name] = read_latex_parts([name])[0]
        name = " ".join(name.split())
        alias = self._theorems.get(f"{env} ")
        counter = "" if bare else self._counter_of(shared) if shared else alias.counter if alias else env
        if within and counter:
            self._counters.put_within(counter, within)
        self._theorems[env] = _Theorem(name, counter, prefix is not None, prefix or "")

    def _counter_of(self, name: str) -> str:
        theorem = self._theorems.get(f"{name} ") or self._theorems.get(name)
        return theorem.counter or name if theorem else name


def _settings(text: str) -> dict[str, str]:
    return {key.strip(): value.strip("{} ") for key, value in _SETTING.findall(text)}


def _first_of(settings: Mapping[str, str], *keys: str) -> str:
    return next((settings[key] for key in keys if settings.get(key)), "")


def _groups(file: LatexFile, at: int) -> tuple[list[str], int]:
    """Read at most two arguments in braces; return them and where they end."""
    groups: list[str] = []
    while len(groups) < 2 and (start := after_blanks(file.text, at)) in file.ends:
        groups.append(file.text[start + 1 : file.ends[start]].strip())
        at = file.ends[start] + 1
    return groups, at


def _end_of_note(file: LatexFile, start: int) -> int | None:
    """Return where the note in brackets ends that begins at a place; brackets in it pair if they can."""
    if file.text[start : start + 1] != "[":
        return None
    at, depth, first = start + 1, 0, None
    while sign := _NOTE.search(file.text, at, start + _LONGEST_NOTE):
        at = sign.end()
        if sign[0] == "{":
            at = file.ends.get(sign.start(), sign.start()) + 1
        elif sign[0] == "[":
            depth += 1
        elif depth:
            depth -= 1
            first = sign.start() if first is None else first
        else:
            return sign.start()
    return first


def _label_in(blank: str, start: int, end: int) -> str:
    """Return the label of a statement: the first that is none of an equation."""
    depth = 0
    for match in _LABEL.finditer(blank, start, end if end >= 0 else start + 200):
        if match["label"]:
            if not depth:
                return match["label"]
        elif _MATH.fullmatch(match["name"]):
            depth += 1 if match["edge"] == "begin" else -1
    return ""
