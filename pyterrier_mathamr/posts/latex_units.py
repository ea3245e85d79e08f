r"""LaTeX files as units: statements, proofs and sections, numbered as LaTeX prints them, over all files of a document.

::

    main.tex ──\input──▶ chapters/ch1.tex ──\input──▶ …        one document: its files in reading order
       macros, \newtheorem, counters, sections go on from file to file; a unit belongs to the file in which it begins

A file that is included in a statement or proof is part of it. A file that also belongs to another document, such as
a preamble that several documents share, contributes only its definitions. Nothing here recurses, and each file is read
once: comments and code are blanked in a copy of the same length, so a position in the copy is one in the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from pyterrier_mathamr._common.feedback import report_problem

from .latex_document import REFERENCES, SHELTERED, TITLE, code_hidden, verbatim_spans
from .latex_macros import BRACE, Macro, after_blanks, closers, definitions
from .math_spans import clean, replaced
from .statements import PRINTED, PROOFS, Draft, Lead, Outline, Unit, kind_of, lead_of, numbered_lead, references, series

_ANY = re.compile(r"[^\n]")
_LEVELS = {
    "part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5, "paragraph": 6, "subparagraph": 7,
}  # fmt: skip
_DEPTH_0 = 2  # the level whose depth LaTeX counts as 0
_TOKENS = (
    rf"\\(?P<heading>{'|'.join(_LEVELS)})(?P<star>\*?)(?![A-Za-z@])"
    r"|\\(?P<edge>begin|end)[^\S\n]*+\{(?P<name>[^{}\n]{1,80})\}"
    r"|\\(?P<input>input|include|subfile|subfileinclude)(?![A-Za-z@])\s*+(?:\{(?P<file>[^{}\n#]{1,300})\}|(?P<bare>[\w./-]{1,300}))"
    r"|\\(?:sub)?import\*?\s*+\{(?P<folder>[^{}\n#]{0,300})\}\s*+\{(?P<imported>[^{}\n#]{1,300})\}"
    r"|(?m:^)[^\S\n]*+(?:\\(?:noindent|par|(?:small|med|big)skip)(?![A-Za-z])[^\S\n]*+\n?[^\S\n]*+){0,4}+(?P<par>)"
    r"(?:(?:\\(?:textbf|textsc|textit|emph)\s*+\{|\{\s*+\\(?:bf|bfseries|it|itshape|sc|em)(?![A-Za-z])\s*+)"
    r"(?P<words>[^{}\n]{1,300})\}|(?:\\S\s*+|§\s*+)?(?P<number>\d{1,3}(?:\.\d{1,3}){1,4})(?=\.?[^\S\n]))"
    r"|\\(?P<matter>appendix|frontmatter|mainmatter|backmatter)(?![A-Za-z@])"
)
_DECLARING = re.compile(
    r"\\(?P<by>newtheorem|spnewtheorem|newmdtheoremenv|newframedtheorem|newshadedtheorem|declaretheorem|newtcbtheorem"
    r"|newaliascnt|numberwithin|counterwithin|setcounter|addtocounter|documentclass|usepackage|RequirePackage)"
    r"(?![A-Za-z])(?P<star>\*?)"
)
_SETTING_COUNTERS = ("setcounter", "addtocounter")
_OPTION = re.compile(r"\s*+\[([^\[\]]{0,1000})\]")
_STRUCTURE = re.compile(rf"\s*+\\(?:{'|'.join(_LEVELS)}|label|begin|end)(?![A-Za-z])")
_LABELLED = re.compile(r"\s*+\\label\s*+\{([^{}\n]{1,200})\}")
_OVERLAY = re.compile(r"<[^<>\n]{0,40}>")
_NOTE = re.compile(r"[\]{]")
_SETTING = re.compile(r"([a-z ]{1,30})=\s*(\{[^{}]*\}|[^,{}]*)")
_LABEL = re.compile(r"\\(?P<edge>begin|end)\{(?P<name>[^{}\n]{1,40})\}|\\label\s*+\{(?P<label>[^{}\n]{1,200})\}")
_MATH = re.compile(r"(?:equation|align|alignat|gather|multline|eqnarray|flalign|subequations|figure|table)\*?")
_BOOKS = re.compile(r"book|report|scrbook|scrreprt|memoir|thesis|amsbook|svmono|tufte-book")
_THE = re.compile(r"\\the([A-Za-z]{1,40})(?![A-Za-z])\s*")
_PRINTED = re.compile(r"\\(arabic|Alph|alph|Roman|roman)\s*\{([A-Za-z*]{1,40})\}")
_UNSEEN = re.compile(
    r"\\(?:label|author|date|vspace|hspace|bibliography|bibliographystyle|thispagestyle|pagestyle|addcontentsline|index"
    r"|markboth|thanks|pagenumbering|title|printbibliography|input|include|phantomsection)\*?\s*+(?:\{[^{}]*\})*"
    r"|\\(?:begin|end)\s*+\{[^{}]*\}|\\[A-Za-z@]+\*?|[\s{}~]+"
)
_LONGEST_NOTE = 400
_ROMAN = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
          (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]  # fmt: skip


class _Theorem(NamedTuple):
    """A kind of statement that a document declares."""

    name: str  # as printed
    counter: str  # empty for one without numbers
    titled: bool = False  # its title and label are arguments in braces, the label after this prefix
    prefix: str = ""


class LatexFile:
    """A LaTeX file, with the places where it is split.

    Attributes:
        text: its source without control characters.
        blank: the same with comments, code and definitions blanked.
        ends: the brace that closes each brace.
        spans: the places of the definitions.
    """

    def __init__(self, text: str) -> None:
        self.text = clean(text)
        hidden = SHELTERED.sub(lambda found: found[0] if found["kept"] else _ANY.sub(" ", found[0]), self.text)
        spans = verbatim_spans(hidden)
        self._hidden = replaced(hidden, ((a, b, _ANY.sub(" ", hidden[a:b])) for a, b in spans))
        self.defined, self.spans = definitions(self._hidden)
        blanked = ((a, b, _ANY.sub(" ", self._hidden[a:b])) for a, b in self.spans)
        self.blank = replaced(self._hidden, blanked)
        self.ends = closers(self.blank)
        self._lines = list(accumulate((len(line) + 1 for line in self.text.split("\n")), initial=0))

    def line(self, place: int) -> int:
        """Return the line of a place, from 1."""
        return bisect_right(self._lines, place)

    @cached_property
    def macros(self) -> dict[str, Macro]:
        """The macros that it defines."""
        return definitions(code_hidden(self.text))[0]

    @property
    def balanced(self) -> bool:
        """Whether each brace is closed."""
        return len(self.ends) == sum(brace[0] == "{" for brace in BRACE.finditer(self.blank))

    @cached_property
    def declarations(self) -> list[tuple[int, re.Match[str], str]]:
        """Declarations of statements and counters: place, head and the text after it."""
        texts = ((start, self._hidden[start:end]) for start, end in self.spans)
        heads = ((start, text, _DECLARING.match(text)) for start, text in texts)
        return [(start, head, text[head.end() :]) for start, text, head in heads if head]

    @cached_property
    def tokens(self) -> list[re.Match[str]]:
        """Find headings, begins and ends of environments, and files that are included."""
        found = re.finditer(_TOKENS, self.blank)
        return [token for token in found if token["par"] is None or self._begins_paragraph(token.start())]

    def _begins_paragraph(self, start: int) -> bool:
        """Return whether the line before a place is blank."""
        before = self.blank[self.blank.rfind("\n", 0, max(start - 1, 0)) + 1 : start]
        return not before.strip() or _STRUCTURE.match(before) is not None

    def aliases(self, macros: Mapping[str, Macro]) -> list[re.Match[str]]:
        r"""Find the macros that do nothing but begin or end an environment: ``\def\bt{\begin{theorem}}``."""
        edge = re.compile(r"\s*\\(?P<edge>begin|end)\s*\{[^{}\n]{1,80}\}\s*")
        names = [
            name
            for name, macro in macros.items()
            if not macro.arguments and len(macro.meaning) == 1 and edge.fullmatch(macro.meaning[0])
        ]
        if not names:
            return []
        return list(re.finditer(rf"\\(?P<alias>{'|'.join(map(re.escape, names))})(?![A-Za-z@])", self.blank))

    def included(self) -> list[tuple[int, str]]:
        """List the files that it names: where, and how."""
        found = [(token.start(), _named(token)) for token in self.tokens if _named(token)]
        for start, head, rest in self.declarations:
            if head["by"] in ("usepackage", "RequirePackage", "documentclass"):
                names = re.match(r"(?:\s*\[[^\[\]]*\])?\s*\{([^{}]*)\}", rest)
                ending = ".cls" if head["by"] == "documentclass" else ".sty"
                found += [(start, name.strip() + ending) for name in (names[1] if names else "").split(",")]
        return sorted(found)


def _named(token: re.Match[str]) -> str:
    if token["imported"]:
        return f"{token['folder']}/{token['imported']}".replace("//", "/").strip()
    return (token["file"] or token["bare"] or "").strip()


class _Counters:
    r"""The counters of a document, and what ``\the…`` prints of them."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.within: dict[str, list[str]] = {}
        self.printed: dict[str, str] = {}
        self.given: dict[str, str] = {}  # by the document
        self.deepest = 3
        self.numbered = True  # chapters are
        for inner, outer in (
            ("subsection", "section"),
            ("subsubsection", "subsection"),
            ("paragraph", "subsubsection"),
        ):
            self.put_within(inner, outer)

    def book(self) -> None:
        self.put_within("section", "chapter")
        self.deepest = 2

    def put_within(self, inner: str, outer: str) -> None:
        self.within.setdefault(outer, []).append(inner)
        self.printed.setdefault(inner, rf"\the{outer}.\arabic{{{inner}}}")

    def step(self, counter: str) -> None:
        self.values[counter] = self.values.get(counter, 0) + 1
        self.reset(counter)

    def reset(self, counter: str) -> None:
        """Reset the counters within one."""
        waiting, seen = [counter], {counter}
        while waiting:
            for inner in self.within.get(waiting.pop(), ()):
                if inner not in seen:
                    seen.add(inner)
                    waiting.append(inner)
                    self.values[inner] = 0

    def _format(self, found: re.Match[str]) -> str:
        return self.given.get(found[1]) or self.printed.get(found[1]) or rf"\arabic{{{found[1]}}}"

    def the(self, counter: str) -> str:
        """Print a counter; its bare value where its format is not known."""
        text = rf"\the{counter} "
        for _ in range(8):
            text = _THE.sub(self._format, text[:200])
        text = _PRINTED.sub(lambda found: _written(self.values.get(found[2], 0), found[1]), text)
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
    return _UNSEEN.sub("", SHELTERED.sub(lambda found: found[0] if found["kept"] else "", text))


class _Open(NamedTuple):
    """A file that is being read."""

    name: str
    file: LatexFile
    tokens: Iterator[tuple[int, int, re.Match[str] | None]]
    matched: Mapping[int, int]
    settings: Mapping[int, tuple[re.Match[str], str]]
    numbered: frozenset[int]
    end: int


class LatexDocument:
    """The files of a document, split.

    Args:
        root: the file that includes the others.
        files: the files of the document by name, including the root.
        shared: files that contribute only their definitions.
        found: the file that an inclusion at a place names, or the error.
        everywhere: files whose definitions apply to all.
        known: macros that are defined elsewhere.
    """

    def __init__(
        self,
        root: str,
        files: Mapping[str, LatexFile],
        shared: Mapping[str, LatexFile],
        found: Mapping[tuple[str, int], tuple[str, str]],
        everywhere: Sequence[LatexFile] = (),
        known: Mapping[str, Macro] | None = None,
    ) -> None:
        self.files, self._root, self._found = files, root, found
        self.outline = Outline()
        self.macros: dict[str, Macro] = dict(known or {})
        self._counters = _Counters()
        self._theorems: dict[str, _Theorem] = {}
        self._frames: list[_Open] = []
        self._at: list[int] = []
        self._silent: list[bool] = []
        self._draft: Draft | None = None  # the statement or proof that is open
        self._until = -1  # where it ends in its file; -1 where nothing ends it
        self._depth = 0  # of the frames, where it began
        for file in (*everywhere, *shared.values(), *files.values()):
            self.macros.update(file.macros)
            for _, head, rest in file.declarations:
                if head["by"] not in _SETTING_COUNTERS:
                    self._declare(head, rest)
        if any(token["heading"] == "chapter" for file in files.values() for token in file.tokens):
            self._counters.book()
        for name, macro in self.macros.items():
            if name.startswith("the") and len(macro.meaning) == 1:
                self._counters.given[name[3:]] = macro.meaning[0]
        self._seen: set[str] = set()
        for name in (root, *files):  # a file that is named where nothing is read follows at the end
            if name not in self._seen:
                self._seen.add(name)
                self._push(name, silent=False)
                while self._frames:
                    self._next()

    def is_part(self, file: str) -> bool:
        """Return whether a file is included by another one."""
        return file != self._root

    def units(self, file: str, plain: Callable[[str], str], whole: bool) -> list[Unit]:
        """Return the units of one of its files."""
        return self.outline.units(file, shown, plain, whole)

    def _push(self, name: str, *, silent: bool) -> None:
        file = self.files[name]
        tokens: list[tuple[int, int, re.Match[str] | None]] = [
            (token.start(), token.end(), token) for token in (*file.tokens, *file.aliases(self.macros))
        ]
        tokens += [(start, end, None) for start, end in file.spans]
        tokens.sort(key=lambda token: token[0])
        begun = file.blank.find(r"\begin{document}")
        ended = file.blank.find(r"\end{document}", max(begun, 0))
        end = ended if ended >= 0 else len(file.text)
        settings = {start: (head, rest) for start, head, rest in file.declarations if head["by"] in _SETTING_COUNTERS}
        paragraphs = [token for token in file.tokens if token["par"] is not None]
        numbers = [token["number"] or numbered_lead(token["words"] or "")[1] for token in paragraphs]
        numbered = frozenset(paragraphs[i].start() for i in series(numbers))
        self._frames.append(_Open(name, file, iter(tokens), self._matched(file, tokens), settings, numbered, end))
        self._at.append(0)
        self._silent.append(silent or begun >= 0)
        title = TITLE.search(file.blank)
        closer = file.ends.get(title.end()) if title else None
        written = file.text[title.end() + 1 : closer] if title and closer else ""
        if self._draft is None:
            self.outline.begin_file(name, written, file.line(begun if begun >= 0 else 0))

    def _environment(self, file: LatexFile, token: re.Match[str]) -> tuple[str, str]:
        """Return begin or end, and the name of the environment."""
        names = token.groupdict()
        if alias := names.get("alias"):
            meaning = self.macros[alias].meaning[0].strip()
            edge, _, name = meaning[1:].partition("{")
            return edge.strip(), name.rstrip("}").strip()
        return names.get("edge") or "", (names.get("name") or "").strip()

    def _matched(self, file: LatexFile, tokens: Sequence[tuple[int, int, re.Match[str] | None]]) -> dict[int, int]:
        """Find where each statement and proof ends that has an end."""
        matched: dict[int, int] = {}
        opened: list[tuple[str, int]] = []
        counts: dict[str, int] = {}
        for start, _, token in tokens:
            edge, name = self._environment(file, token) if token else ("", "")
            if edge == "begin" and self._kind(name):
                opened.append((name, start))
                counts[name] = counts.get(name, 0) + 1
            elif edge == "end" and counts.get(name):
                while True:
                    last, place = opened.pop()
                    counts[last] -= 1
                    if last == name:
                        matched[place] = start
                        break
        return matched

    def _kind(self, name: str) -> str:
        if name.rstrip("*") == "restatable":
            return "theorem"
        theorem = self._theorems.get(name)
        if theorem:
            return kind_of(theorem.name) or theorem.name.lower()
        return kind_of(name) if re.fullmatch(r"[^\W\d_]+\*?", name) else ""

    def _next(self) -> None:
        """Read up to the next token of the innermost file."""
        frame = self._frames[-1]
        start, _, token = next(frame.tokens, (frame.end, frame.end, None))
        if start < self._at[-1] < frame.end:
            return
        if start >= frame.end:
            self._write(frame.end)
            if self._draft is not None and self._depth == len(self._frames):
                self._close()
            self._frames.pop()
            self._at.pop()
            self._silent.pop()
            return
        if token is None:
            if setting := frame.settings.get(start):
                self._declare(*setting)
            return  # the reader removes definitions
        names = token.groupdict()
        if names.get("heading"):
            self._heading(token)
        elif names.get("matter"):
            self._matter(token["matter"])
        elif names.get("par") is not None:
            self._paragraph(token)
        elif names.get("edge") or names.get("alias"):
            self._edge(token)
        else:
            self._include(token)

    def _write(self, end: int) -> None:
        """Append the text up to a place to the open drafts."""
        frame, start = self._frames[-1], self._at[-1]
        if end > start:
            if not self._silent[-1]:
                draft = self._draft if self._draft is not None else self.outline.prose(frame.name)
                self.outline.write(draft, frame.file.text[start:end], frame.name)
            self._at[-1] = end

    def _close(self) -> None:
        self._draft, self._until = None, -1

    def _heading(self, token: re.Match[str]) -> None:
        frame = self._frames[-1]
        file, level = frame.file, _LEVELS[token["heading"]]
        option = _OPTION.match(file.blank, token.end())
        opener = after_blanks(file.blank, option.end() if option else token.end())
        if opener not in file.ends:
            return
        title = " ".join(file.text[opener + 1 : file.ends[opener]].split())
        numbered = self._counters.numbered or token["heading"] != "chapter"
        if not token["star"] and numbered and level - _DEPTH_0 <= self._counters.deepest:
            self._counters.step(token["heading"])
        if self._silent[-1] or (self._draft is not None and self._until >= 0):
            return  # a step of a proof
        self._write(token.start())
        self._close()
        line = file.line(token.start())
        end = file.ends[opener] + 1
        label = _LABELLED.match(file.blank, end)
        lead = lead_of(title.rstrip(".:")) if level >= _LEVELS["paragraph"] else None
        self._at[-1] = label.end() if label else end
        if lead is None:
            self.outline.heading(frame.name, level, title, line, label[1] if label else "")
            return
        if lead.kind in PROOFS:
            self._draft = self.outline.proof(frame.name, lead, line, references(title))
        else:
            self._draft = self.outline.statement(frame.name, lead, line, label[1] if label else "")
        self._until, self._depth = -1, len(self._frames)

    def _matter(self, name: str) -> None:
        counters = self._counters
        if name == "appendix":
            top = "chapter" if "section" in counters.within.get("chapter", ()) else "section"
            counters.values[top] = 0
            counters.reset(top)
            counters.printed[top] = rf"\Alph{{{top}}}"
        counters.numbered = name in ("appendix", "mainmatter")

    def _edge(self, token: re.Match[str]) -> None:
        frame = self._frames[-1]
        edge, name = self._environment(frame.file, token)
        if name == "document":
            if edge == "begin" and not any(self._silent[:-1]):
                self._silent[-1], self._at[-1] = False, token.end()
            return
        kind = self._kind(name)
        if edge == "end":
            if self._draft is not None and self._depth == len(self._frames) and token.start() == self._until:
                self._write(token.start())
                self._close()
                self._at[-1] = token.end()
            return
        if not kind or self._silent[-1]:
            return
        lead, label, end, printed = self._lead(frame.file, token.end(), name, kind)
        if self._draft is not None and (self._until >= 0 or self._depth != len(self._frames)):
            return  # a claim within a proof
        self._write(token.start())
        self._close()
        line = frame.file.line(token.start())
        until = frame.matched.get(token.start(), -1)
        if until < 0:
            what = rf"\begin{{{name}}} is never closed"
            report_problem(frame.name, what, " ".join(frame.file.text[token.start() : token.start() + 60].split()))
        if kind in PROOFS:
            self._draft = self.outline.proof(frame.name, lead, line, references(lead.note))
        else:
            label = label or _label_in(frame.file.blank, end, until)
            self._draft = self.outline.statement(frame.name, lead, line, label, printed)
        self._until, self._depth = until, len(self._frames)
        self._at[-1] = end

    def _lead(self, file: LatexFile, at: int, name: str, kind: str) -> tuple[Lead, str, int, str]:
        """Read the arguments of a statement: its name and note, its label, where its text begins, and its number."""
        theorem, note, label = self._theorems.get(name), "", ""
        if overlay := _OVERLAY.match(file.blank, at):
            at = overlay.end()
        bracket = after_blanks(file.blank, at)
        if (end := _bracketed(file, bracket)) is not None:
            note, at = file.text[bracket + 1 : end], end + 1
        if name.rstrip("*") == "restatable":
            group = after_blanks(file.blank, at)
            if group in file.ends:
                name, at = file.text[group + 1 : file.ends[group]].strip(), file.ends[group] + 1
                group = after_blanks(file.blank, at)
                at = file.ends[group] + 1 if group in file.ends else at
                theorem, kind = self._theorems.get(name), self._kind(name) or kind
        if theorem and theorem.titled:
            groups: list[str] = []
            while len(groups) < 2 and (group := after_blanks(file.blank, at)) in file.ends:
                groups.append(file.text[group + 1 : file.ends[group]].strip())
                at = file.ends[group] + 1
            note = groups[0] if groups else ""
            label = f"{theorem.prefix}:{groups[1]}" if len(groups) > 1 and groups[1] else ""
        elif re.match(r"\s*(?:name|label|note|title|restate)\s*=", note):
            settings = {key.strip(): value.strip("{} ") for key, value in _SETTING.findall(note)}
            note = settings.get("name") or settings.get("note") or settings.get("title") or ""
            label = settings.get("label", "")
        note = " ".join(REFERENCES.sub("", note).split()) if kind not in PROOFS else " ".join(note.split())
        bare = name.rstrip("*").lower()
        printed = theorem.name if theorem else (bare if bare in PRINTED else kind).capitalize()
        return Lead(kind, printed, "", note.strip(" ;,")), label, at, self._number(name, kind)

    def _number(self, name: str, kind: str) -> str:
        """Step the counter of a statement, and print it."""
        if kind in PROOFS or name.endswith("*"):
            return ""
        theorem = self._theorems.get(name)
        counter = theorem.counter if theorem else f"{name} "
        if not counter:
            return ""
        self._counters.step(counter)
        return self._counters.the(counter) if theorem else str(self._counters.values[counter])

    def _paragraph(self, token: re.Match[str]) -> None:
        """Begin a numbered paragraph, or a statement or proof whose first words are bold."""
        frame = self._frames[-1]
        if self._silent[-1] or (self._draft is not None and self._until >= 0):
            return
        words, line = (token["words"] or "").strip(), frame.file.line(token.start("par"))
        lead, number = numbered_lead(words)
        if lead is None and token.start() not in frame.numbered:
            return
        self._write(token.start())
        self._close()
        self._at[-1] = token.end()
        if lead is None:
            number = number or token["number"]
            title = words.rstrip(" .:") or number
            self.outline.paragraph(frame.name, number, title, line)
        elif lead.kind in PROOFS:
            self._draft = self.outline.proof(frame.name, lead, line, references(lead.note))
        else:
            self._draft = self.outline.statement(frame.name, lead, line, _label_in(frame.file.blank, token.end(), -1))
        self._until, self._depth = -1, len(self._frames)

    def _include(self, token: re.Match[str]) -> None:
        frame = self._frames[-1]
        name, problem = self._found.get((frame.name, token.start()), ("", ""))
        if any(name == other.name for other in self._frames):
            problem = f"{name} includes itself, which is not followed"
        if problem:
            report_problem(frame.name, problem, token[0])
        self._write(token.start())
        self._at[-1] = token.end()
        if name in self.files and name not in self._seen:
            if self._draft is not None and self._until < 0:
                self._close()
            self._seen.add(name)
            self._push(name, silent=self._silent[-1])

    def _declare(self, head: re.Match[str], rest: str) -> None:
        """Read a declaration of statements or counters."""
        by, counters = head["by"], self._counters
        groups = re.findall(r"\[([^\[\]]*)\]|\{([^{}]*)\}", rest[:2_000])
        braces = [brace for option, brace in groups if not option]
        if by == "documentclass" and braces and _BOOKS.search(braces[0]):
            counters.book()
        elif by in ("numberwithin", "counterwithin") and len(braces) > 1:
            counters.printed.pop(braces[0], None)
            counters.put_within(braces[0], braces[1])
        elif by in ("setcounter", "addtocounter") and len(braces) > 1 and re.fullmatch(r"-?\d{1,6}", braces[1]):
            old = counters.values.get(braces[0], 0) if by == "addtocounter" else 0
            if braces[0] == "secnumdepth":
                counters.deepest = int(braces[1])
            counters.values[braces[0]] = old + int(braces[1])
        elif by == "newaliascnt" and len(braces) > 1:
            self._theorems.setdefault(f"{braces[0]} ", _Theorem("", self._counter_of(braces[1])))
        elif by == "declaretheorem" and braces:
            self._declare_by_settings(rest, braces, bool(head["star"]))
        elif by == "newtcbtheorem" and len(braces) > 3:
            self._declare_box(rest, braces)
        elif by.endswith(("theorem", "theoremenv")):
            self._declare_theorem(rest, bool(head["star"]))

    def _counter_of(self, name: str) -> str:
        alias = self._theorems.get(f"{name} ")
        theorem = alias or self._theorems.get(name)
        return theorem.counter or name if theorem else name

    def _declare_theorem(self, rest: str, starred: bool) -> None:
        declared = re.match(
            r"(?:\s*\[[^\[\]]*\])?\s*\{(?P<env>[^{}]{1,60})\}\s*(?:\[(?P<shared>[^\[\]]{1,60})\])?"
            r"\s*\{(?P<name>(?:[^{}]|\{[^{}]*\}){1,200})\}\s*(?:\[(?P<within>[^\[\]]{1,60})\])?",
            rest,
        )
        if declared is None:
            return
        env, shared, within = declared["env"].strip(), declared["shared"], declared["within"]
        counter = "" if starred else self._counter_of(shared.strip()) if shared else env
        if not starred and not shared:
            alias = self._theorems.get(f"{env} ")
            counter = alias.counter if alias else env
            self._counters.values.setdefault(counter, 0)
        if within and counter:
            self._counters.put_within(counter, within.strip())
        self._theorems[env] = _Theorem(" ".join(declared["name"].split()), counter)

    def _declare_by_settings(self, rest: str, braces: Sequence[str], starred: bool) -> None:
        settings: dict[str, str] = {}
        for options in re.findall(r"\[([^\[\]]{0,1000})\]", rest):
            settings |= {key.strip(): value.strip("{} ") for key, value in _SETTING.findall(options)}
        env = braces[-1].split(",")[0].strip()
        shared = settings.get("sibling") or settings.get("numberlike") or settings.get("sharenumber")
        counter = "" if starred or settings.get("numbered") == "no" else self._counter_of(shared) if shared else env
        within = settings.get("numberwithin") or settings.get("within") or settings.get("parent")
        if counter and not shared:
            self._counters.values.setdefault(counter, 0)
            if within:
                self._counters.put_within(counter, within)
        name = settings.get("name") or settings.get("title") or settings.get("heading") or env.capitalize()
        self._theorems[env] = _Theorem(name, counter)

    def _declare_box(self, rest: str, braces: Sequence[str]) -> None:
        options = dict(_SETTING.findall(" ".join(re.findall(r"\[([^\[\]]{0,1000})\]", rest))))
        options = {key.strip(): value.strip("{} ") for key, value in options.items()}
        counter = self._counter_of(options["use counter from"]) if "use counter from" in options else braces[0]
        if "number within" in options:
            self._counters.put_within(counter, options["number within"])
        self._theorems[braces[0]] = _Theorem(braces[1], counter, titled=True, prefix=braces[-1])


def _bracketed(file: LatexFile, start: int) -> int | None:
    """Return where the note in brackets ends that begins at a place."""
    if file.blank[start : start + 1] != "[":
        return None
    at = start + 1
    while found := _NOTE.search(file.blank, at, start + _LONGEST_NOTE):
        if found[0] == "]":
            return found.start()
        at = file.ends.get(found.start(), found.start()) + 1
    return None


def _label_in(blank: str, start: int, end: int) -> str:
    """Return the label of a statement: the first that is none of an equation."""
    depth = 0
    for found in _LABEL.finditer(blank, start, end if end >= 0 else start + 200):
        if found["label"]:
            if not depth:
                return found["label"]
        elif _MATH.fullmatch(found["name"]):
            depth += 1 if found["edge"] == "begin" else -1
    return ""
