r"""Markdown posts (CommonMark), with their formulas taken out before Markdown is read.

::

    source ──find formulas outside code──▶ `Let x` and $a_1*b*c$  ──▶  `Let x` and ⟨0⟩
           ──CommonMark, in a process with limits──▶ HTML ──each ⟨i⟩ becomes a math-container──▶ post_from_html

Markdown would read ``$a_1*b*c$`` as emphasis and ``\\`` as a backslash; code spans and code blocks hold no formulas.
Definitions of macros are taken out in the same way, and the macros are written out in the formulas.

A file of notes is first cut into units, statements and proofs in all their usual forms::

    **Theorem 3.2 (Cauchy–Schwarz).** …   *Proof.* … ∎     bold or italic first words, up to the next ones or a heading
    ## Theorem 3.2 (Cauchy–Schwarz)       ### Proof        headings
    > [!theorem] Cauchy–Schwarz                            callouts of Obsidian
    ::: {.theorem #cs}  …  :::                             fenced divs of pandoc and Quarto
    ```{prf:theorem} Cauchy–Schwarz  …  ```                directives of MyST
    \begin{theorem}[Cauchy–Schwarz]  …  \end{theorem}      LaTeX
    1.1 Text …    **3.** Text …                            numbered paragraphs, if at least two increase

Labels are ``{#thm:cs}``, ``\label{thm:cs}``, ``:label: cs``, ``(cs)=`` and Obsidian's ``^cs``. Code is never split.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from pyterrier_mathamr._common.running.worker import MEMORY, Worker

from .latex_document import excerpt, unknown_commands
from .math_spans import MARK, SOURCE, clean, mask, math_spans, replaced, source_html, strip_delimiters
from .statements import PROOFS, Draft, Lead, Outline, Unit, kind_of, lead_of, numbered_lead, printed_name, series
from .tex_expansion import Expander, collected
from .tex_macros import DEFINED, Definitions

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_HOLD = "\ue005"
"""Encloses a formula's number while Markdown is read."""
_HOLD_IN_CODE = "\ue007"
_HELD = re.compile(f"[{_HOLD}{_HOLD_IN_CODE}]([0-9]{{1,9}})([{_HOLD}{_HOLD_IN_CODE}])")
_OURS = re.compile(f"[{_HOLD}{_HOLD_IN_CODE}{DEFINED}]")
_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)([^\n]*)", re.M)
_BACKTICKS = re.compile(r"(?<!`)(`+)(?!`)")
_MATH_IN_CODE = re.compile(r"\$`([^`\n]+)`\$|\{math\}`((?:[^`\n]|\n(?![ \t]*\n)){1,4000})`")
_NEW_BLOCK = r"[ \t]*(?:\n|[-+*>#|]|\d{1,9}[.)][ \t]|`{3}|~{3}|=+[ \t]*$|\Z)"
SOFT_BREAK = re.compile(rf"\n(?!{_NEW_BLOCK})", re.M)
FRONT_MATTER = re.compile(
    r"\A(?:---[ \t]*\n|\+\+\+[ \t]*\n(?=\s*[\w-]+[ \t]*=))(.*?)\n(?:---|\.\.\.|\+\+\+)[ \t]*(?:\n|\Z)", re.S
)
"""In YAML, or in TOML between lines of ``+++``."""
_TITLE = re.compile(r"^title[ \t]*+[:=][ \t]*+([^\n]+)", re.M)
_ESCAPED = re.compile(r'\\([\\"])')
_DATE = re.compile(r"^date[ \t]*+[:=][ \t]*+[\"']?(\d{4}-\d\d-\d\d)(?!\d)", re.M)
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]++(.+)")
_SECONDS = 60
_DEEPEST = 40
"""Blocks in blocks, beyond which Markdown is left out."""


def read_markdown(
    *sources: str, known: Definitions | None = None, expander: Expander | None = None
) -> tuple[list[str], dict[str, str]]:
    r"""Convert the parts of a document to HTML for `post_from_html`, and return the errors by place.

    Parts are CommonMark with formulas as ``$..$``, ``$$..$$``, ``\(..\)``, ``\[..\]``, environments or GitLab's
    ``$`..`$``. A title block between lines of ``---`` is left out, and so are definitions of macros, which hold for all
    parts; if an ``expander`` is given, it knows all macros. Each formula becomes
    ``<span class="math-container">LaTeX</span>``, its macros written out.

    Raises:
        OverLimitError: it needs more than a minute, or its macros write more than a million characters and ten times
            its length.
    """
    parts = [_OURS.sub("", clean(FRONT_MATTER.sub("", part.replace("\r\n", "\n"), count=1))) for part in sources]
    masked = [without_code(part) for part in parts]
    defined = []
    for text, _ in masked:
        defined.append(new := collected(text, known))
        known = new
    expander = expander or Expander(known, length=sum(map(len, parts)))
    problems: dict[str, str] = {}
    texts: list[str] = []
    held: list[list[tuple[str, str]]] = []  # what Markdown must not read: the source, and LaTeX for a formula
    for part, (shadow, given), definitions in zip(parts, masked, defined, strict=True):
        spans = [(definition.start, definition.end) for definition in definitions.found]
        plain = mask(part, spans, DEFINED)
        joined = SOFT_BREAK.sub(" ", mask(shadow, spans, DEFINED))  # a formula may go on in the next line
        formulas = ((start, end, plain[start:end].replace(DEFINED, "")) for start, end, _ in math_spans(joined))
        held_spans = [(start, end, strip_delimiters(latex)) for start, end, latex in formulas]
        held_spans += [(match.start(), match.end(), match[1] or match[2]) for match in given.values()]
        held_spans += [(start, end, "") for start, end in spans]
        pieces, items, at = list[str](), list[tuple[str, str]](), 0
        for start, end, latex in sorted(held_spans):
            if start < at:
                continue  # a definition within a formula
            pieces += [part[at:start], f"{_HOLD}{len(items)}{_HOLD}"]
            problems.update(unknown_commands(shadow[at:start]))
            latex = "" if latex == r"\empty" else latex  # which TeX expands to nothing
            items.append((part[start:end], expander.formula(latex)))
            at = end
        problems.update(unknown_commands(shadow[at:]))
        texts.append("".join([*pieces, part[at:]]))
        held.append(items)
    problems.update(expander.problems)
    expander.problems.clear()
    htmls, whole = _guarded(texts)
    if not whole:
        problems[f"blocks more than {_DEEPEST} deep are left out"] = excerpt(parts[-1], 0)
    for i, items in enumerate(held):
        left = dict(enumerate(items))  # each once: an entity may be one of our marks

        def put_back(mark: re.Match[str], left: dict[int, tuple[str, str]] = left) -> str:
            source, latex = left.pop(int(mark[1]), ("", ""))
            if mark[2] == _HOLD_IN_CODE:
                return escape(source)
            if SOURCE.search(latex):
                return source_html(source)
            return f'<span class="math-container">{escape(latex)}</span>' if latex else ""

        htmls[i] = _HELD.sub(put_back, htmls[i])
    return htmls, problems


def title_of_markdown(source: str) -> tuple[str, str]:
    front = FRONT_MATTER.match(source)
    body = source[front.end() :] if front else source
    title, _ = title_of_front_matter(front[1]) if front else ("", "")
    if title:
        return title, body
    begun = body.lstrip("\n")
    if heading := _HEADING.match(begun):
        return unclosed(heading[2]), begun[heading.end() :]
    return "", body


def unclosed(heading: str) -> str:
    """Take the number signs off that may end a heading."""
    title = heading.rstrip(" \t")
    bare = title.rstrip("#")
    return title if bare and bare[-1] not in " \t" else bare.rstrip(" \t")


def title_of_front_matter(front: str) -> tuple[str, str]:
    """Read the title and the date, such as 2026-01-31, of front matter."""
    titled, dated = _TITLE.search(front), _DATE.search(front)
    title = titled[1].strip(" \t") if titled else ""
    if len(title) > 1 and title[0] in "\"'" and title[-1] == title[0]:
        title = _ESCAPED.sub(r"\1", title[1:-1]) if title[0] == '"' else title[1:-1]
    return title, dated[1] if dated else ""


def without_code(text: str) -> tuple[str, dict[int, re.Match[str]]]:
    """Put a `MARK` in the place of each character of code, and find the formulas that GitLab writes in code."""
    blocks: list[tuple[int, int]] = []  # between fences; one that nothing closes goes on to the end
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opened is None:
            opened = None if line[1][0] == "`" and "`" in line[2] else line
        elif line[1].startswith(opened[1]) and not line[2].strip(" \t"):
            blocks.append((opened.start(), line.end()))
            opened = None
    masked = mask(text, [*blocks, *([(opened.start(), len(text))] if opened else [])])
    given = {match.start(): match for match in _MATH_IN_CODE.finditer(masked)}
    masked = mask(masked, (match.span() for match in given.values()))
    return mask(masked, _code_spans(masked)), given


def fence_around(code: str) -> str:
    """Return a fence for a block of code: longer than any run of backquotes in it."""
    return "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", code))])


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find code spans: from a run of backticks to the next run of the same length in the same paragraph."""
    runs = list(_BACKTICKS.finditer(text))
    starts = [run.start() for run in runs]
    paragraphs = accumulate(text.count("\n\n", start, end) for start, end in pairwise([0, *starts]))
    kinds = list(zip(paragraphs, (len(run[1]) for run in runs), strict=True))
    following: dict[tuple[int, int], int] = {}  # by paragraph and length
    closers: list[int] = []
    for i in reversed(range(len(runs))):
        closers.append(following.get(kinds[i], 0))
        following[kinds[i]] = i
    done = -1
    for i, closer in enumerate(reversed(closers)):
        if closer and i > done and text[starts[i] - 1 : starts[i]] != "\\":
            done = closer
            yield starts[i], runs[done].end()


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable(["table", "strikethrough"])


def rendered(texts: list[str]) -> tuple[list[str], bool]:
    """Render Markdown, and report whether no nesting was too deep; formulas in code get separate marks."""
    parser, out, deepest = _parser(), [], 0
    for text in texts:
        tokens = parser.parse(text)
        for block in tokens:
            deepest = max(deepest, block.level)
            for token in (block, *(block.children or ())):
                token.attrs = {}  # a long address that many links refer to would be written for each
                if token.type in ("code_inline", "code_block", "fence"):
                    token.info, token.content = "", token.content.replace(_HOLD, _HOLD_IN_CODE)
        out.append(parser.renderer.render(tokens, parser.options, {}))
    return out, deepest < _DEEPEST - 1


_guarded = Worker(rendered, seconds=_SECONDS, memory=MEMORY)


# ---- units

_UNDERLINE = re.compile(r" {0,3}(=+|-{3,})[ \t]*")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_CALLOUT = re.compile(r" {0,3}((?:>[ \t]?){1,9})\[!([^\W\d_]{1,30})(?:\|([^\]\n]{0,200}))?\][+-]?[ \t]*(.*)")
_INNER_CALLOUT = re.compile(r"^([ \t>]*)\[!([^\W\d_]{1,30})(?:\|[^\]\n]{0,200})?\][+-]?[ \t]*", re.M)
_DIV = re.compile(r" {0,3}:{3,}[ \t]*(.*)")
_ENVIRONMENT = re.compile(r"[ \t]*\\(begin|end)\{([^\W\d_]{1,40}\*?)\}(?:\[([^\[\]\n]{0,300})\])?")
_BOLD = re.compile(r"[ \t]{0,3}(\*{1,3}|_{1,3})(?![ \t*_])([^\n]{1,700}?)\1(?![*_])(.*)")
_NOTE = re.compile(r"[ \t]*\(((?:[^()\n]|\([^()\n]{0,100}\)){1,300})\)[ \t]*[.:]?")
_PLAIN_NUMBER = re.compile(r"[ \t]{0,3}(?:§[ \t]?)?(\d{1,3}(?:\.\d{1,3}){1,4})\.?[ \t]+(?=\S)")
_TARGET = re.compile(r"\(([^()\s]{1,200})\)=[ \t]*")
_ATTRIBUTES = re.compile(r"[ \t]*\{([^{}\n]*#[^{}\n]*)\}")
_ID = re.compile(r"#([^\s#{}]{1,200})")
_BLOCK_ID = re.compile(r"(?:^|[ \t]+)\^([A-Za-z][\w-]{0,100})[ \t]*$")
_LABEL = re.compile(r"\\label\{([^{}\n]{1,200})\}")
_OPTION = re.compile(r"[ \t]*:([a-z-]{1,30}):[ \t]*(.*)")
_END_OF_PROOF = re.compile(r"(?:[□∎■◻▪◼]|\\(?:qed|square|blacksquare|Box)\b|\bQ\.?E\.?D)[ \t$\\)\]}*_.]*$")
_OPENED_DIV = re.compile(
    r"(?P<word>[\w:-]*)[ \t]*(?:\[(?P<note>[^\[\]]*)\])?[ \t]*(?:\{(?P<in>[^{}]*)\})?[ \t]*(?P<rest>.*)"
)
_DIV_NAME = re.compile(r"^[\w:-]*[ \t]*(?:\{[^{}]*\})?[ \t]*")
_DIRECTIVE = re.compile(r"\{([\w:-]{1,40})\}[ \t]*(.*)")
_FENCE_OR_DIV = re.compile(r" {0,3}(`{3,}+|~{3,}+|:{3,}+)([^\n]*)")
_ROW_OR_EDGE = re.compile(r"\\(?:begin|end)(?![A-Za-z])|\\.|&", re.DOTALL)
_QUARTO = {
    "thm": "theorem", "lem": "lemma", "cor": "corollary", "prp": "proposition", "cnj": "conjecture",
    "def": "definition", "exm": "example", "exr": "exercise", "sol": "solution", "rem": "remark",
}  # fmt: skip
ADMONITIONS = frozenset(
    "admonition note tip warning important hint attention caution danger seealso sidebar epigraph topic".split()  # noqa: SIM905
)
"""Directives that hold running text, in MyST as in reStructuredText."""
_FIGURES = frozenset(["figure", "figure-md"])
_TEXT_DIRECTIVES = ADMONITIONS | _FIGURES | {"dropdown", "margin"}
_GATE = re.compile(r"(\w+)-(start|end)")
"""A pair of directives around a statement with directives in it, ``{exercise-start}``."""


class Notes(NamedTuple):
    """A text that is split as Markdown.

    Attributes:
        text: Markdown.
        lines: the line number in the file of each of its lines, from 1.
        title: of the whole text.
        date: the date of writing, or empty.
        pieces: lines that begin a further part, such as a cell of a notebook, and the part's fragment.
    """

    text: str
    lines: Sequence[int]
    title: str = ""
    date: str = ""
    pieces: Mapping[int, str] = {}


_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^\n]*$", re.M)
_UNSHOWN = re.compile(
    r"%%(?:[^%]|%(?!%))*%%|^\+{3}(?:[ \t][^\n]*)?$"
    r"|(?P<embedded>!?)\[\[(?P<target>[^\[\]|\n\\]{1,300})(?:\\?\|(?P<text>[^\[\]\n]{1,500}))?\]\]"
    rf"|(?P<display>{MARK})[ \t]*(?:\([\w:.-]{{1,100}}\)|\{{#[^{{}}\n]{{1,200}}\}})[ \t]*$"
    rf"|(?P<role>\{{(?!math\}})[a-z][\w:-]{{0,40}}\}})(?={MARK})",
    re.M,
)
_EQUATION_LABEL = re.compile(r"\(\\#[a-z]{2,4}:[\w-]{1,100}\)")
r"""The label of bookdown in a formula, ``(\#eq:mean)``."""
_IMAGE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|bmp|pdf|excalidraw|canvas|mp[34])\Z", re.IGNORECASE)


def notes_of(text: str) -> Notes:
    """Read a Markdown file: its front matter, and its text as it is shown.

    Links and roles become their text, without comments of Obsidian and the labels of displays.
    """
    front = FRONT_MATTER.match(text)
    title, date = title_of_front_matter(front[1]) if front else ("", "")
    begun = front.end() if front else 0
    first = text.count("\n", 0, begun) + 1
    body = _EQUATION_LABEL.sub("", "\n".join(_with_divs(clean(text[begun:]).split("\n"))))
    spans: list[tuple[int, int, str]] = []
    if any(mark in body for mark in ("[[", "%%", "$$", "+++", "}`")):
        masked, _ = without_code(body)
        masked = mask(masked, [(start, end) for start, end, _ in math_spans(SOFT_BREAK.sub(" ", masked))])
        for unshown in _UNSHOWN.finditer(masked):
            start, end = unshown.span()
            if unshown["display"]:
                if body[start - 1 : start + 1] == "$$":
                    spans.append((start + 1, end, ""))
            elif unshown["role"]:
                spans += [(start, end, "")] if body[end] == "`" else []
            elif unshown["target"] is None:
                spans.append((start, end, "\n" * body.count("\n", start, end)))
            elif unshown["embedded"] and _IMAGE.search(unshown["target"].strip()):
                spans.append((start, end, ""))
            else:
                link = unshown["target"].strip().replace("#", " ").replace("^", "").strip()
                spans.append((start, end, body[slice(*unshown.span("text"))] if unshown["text"] else link))
        body = replaced(body, spans)
    return Notes(body, range(first, first + body.count("\n") + 1), title, date)


def markdown_units(file: str, notes: Notes, *, whole: bool) -> tuple[list[Unit], Definitions]:
    """Split a text; returns its units and what it defines."""

    def shown(text: str) -> str:
        """Return the visible text of a piece: without blanks, comments, fences and definitions."""
        before, *comments = _FENCE_LINE.sub("", text).split("<!--")
        text = "".join([before, *(each.partition("-->")[2] if "-->" in each else each for each in comments)])
        text = replaced(text, ((of.start, of.end, "") for of in collected(text).found))
        return "".join(text.split()).replace("$$$$", "")

    splitter = _Splitter(file, notes)
    splitter.split()
    return splitter.outline.units(file, shown, lambda title: title, whole), splitter.defined


class _Splitter:
    """Walks over the lines of a text."""

    def __init__(self, file: str, notes: Notes) -> None:
        self._file, self._notes = file, notes
        self.outline = Outline()
        self._lines = clean(notes.text).split("\n")
        text = "\n".join(self._lines)
        masked, _ = without_code(text)
        self.defined = collected(masked)
        starts = list(accumulate((len(line) + 1 for line in self._lines), initial=0))
        self._kept = [masked[start : start + 1] == MARK for start in starts[:-1]]  # code, formulas and definitions
        formulas = [(start, end) for start, end, _ in math_spans(SOFT_BREAK.sub(" ", masked))]
        for start, end in (*formulas, *((of.start, of.end) for of in self.defined.found)):
            for i in range(bisect_right(starts, start), bisect_right(starts, end - 1)):
                self._kept[i] = True
        self._ends = self._matched()
        self._numbers = self._numbered()
        self._last: Draft | None = None  # the last statement, which a label after it may name
        self._target = ""  # a label for the next unit
        self._held: list[str] = []

    def split(self) -> None:
        first = next((i for i, line in enumerate(self._lines) if line.strip()), 0)
        self.outline.begin_file(self._file, self._notes.title, self._line(first))
        i = 0
        while i < len(self._lines):
            if i in self._notes.pieces:
                self._end()
                self.outline.part(self._file, "section", self._notes.pieces[i], "", self._line(i))
            line = self._lines[i]
            mark = line.lstrip(" \t")[:1]
            after = None if self._kept[i] or not mark else self._structure(i, line, mark)
            if after is None:
                self._text(line, kept=self._kept[i])
                after = i + 1
            i = after
        self._end()

    def _line(self, i: int) -> int:
        lines = self._notes.lines
        return lines[min(i, len(lines) - 1)] if lines else 1

    def _structure(self, i: int, line: str, mark: str) -> int | None:
        """Read a unit that begins at a line, if one does; return the line after it."""
        if mark == "#" and (heading := _HEADING.fullmatch(line)):
            self._heading(i, len(heading[1]), unclosed(heading[2]))
            return i + 1
        if mark == ">" and (callout := _CALLOUT.match(line)):
            return self._callout(i, callout)
        if mark == ":" and (div := _DIV.fullmatch(line)):
            return self._div(i, div[1].strip())
        if mark == "\\" and (environment := _ENVIRONMENT.match(line)):
            return self._environment(i, environment)
        if mark == "(" and (target := _TARGET.fullmatch(line)):
            self._target = target[1]
            return i + 1
        if mark == "^" and (block := _BLOCK_ID.fullmatch(line)):
            if self._last is not None:
                self.outline.label(self._last, f"^{block[1]}")
            return i + 1
        if mark in "-*_" and _RULE.fullmatch(line):
            self._end()
            return i + 1
        if i and self._lines[i - 1].strip() and not self._begun(i - 1):
            return None
        if mark in "*_" and (bold := _BOLD.match(line)):
            return self._bold(i, bold)
        if i in self._numbers and (plain := _PLAIN_NUMBER.match(line)):
            self._paragraph(i, plain[1], "", line[plain.end() :])
            return i + 1
        following = self._lines[i + 1] if i + 1 < len(self._lines) and not self._kept[i + 1] else ""
        if (under := _UNDERLINE.fullmatch(following)) and mark not in ">|-+*:" and not line.startswith("    "):
            self._heading(i, 1 if under[1][0] == "=" else 2, line.strip())
            return i + 2
        return None

    def _begun(self, i: int) -> bool:
        """Return whether a paragraph begins after a line."""
        line = self._lines[i]
        return bool(
            not self._kept[i] and (_HEADING.fullmatch(line) or _RULE.fullmatch(line) or _TARGET.fullmatch(line))
        )

    def _text(self, line: str, *, kept: bool = False) -> None:
        if not kept and "^" in line and (block := _BLOCK_ID.search(line)):
            line = line[: block.start()]
            if self._last is not None and self._last is self.outline.open and not self._last.label:
                self.outline.label(self._last, f"^{block[1]}")
        if not kept and "[!" in line:
            line = _INNER_CALLOUT.sub(r"\1", line)
        self._held.append(line)
        if line.strip():
            self._target = ""
            if self.outline.open is None:
                self._last = None
            elif self.outline.open is not self._last and _END_OF_PROOF.search(line):
                self._end()

    def _end(self) -> None:
        """End the statement or proof that is open."""
        self._flush()
        self.outline.open = None

    def _flush(self) -> None:
        self.outline.write(self._file, "\n".join(self._held))
        self._held = []

    def _label(self, given: str = "") -> str:
        label, self._target = given or self._target, ""
        return label

    def _heading(self, i: int, level: int, title: str) -> None:
        self._end()
        label, title = _without_label(title)
        lead, _ = numbered_lead(title.strip(" *_"))
        if lead is not None:
            self.outline.end_sections(level)
            self._begin(i, lead, label)
        else:
            self._last = None
            self.outline.heading(self._file, level, title.strip(), self._line(i), self._label(label))

    def _begin(self, i: int, lead: Lead, label: str = "") -> None:
        self._end()
        is_proof = lead.kind in PROOFS
        self.outline.begin(self._file, lead, self._line(i), "" if is_proof else self._label(label))
        self._last = None if is_proof else self.outline.open

    def _whole(self, i: int, lead: Lead, label: str, content: Sequence[str]) -> None:
        """Add a statement or proof whose end is known."""
        self._begin(i, lead, label)
        inner = None
        for line in content:
            if inner is not None and _OPTION.fullmatch(line):
                continue
            inner = _DIV.fullmatch(line)
            if inner is None:
                self._text(line)
            else:
                within, _ = _of_div(inner[1].strip())
                note = f" ({within.note})" if within and within.note else ""
                self._text(f"*{within.name}{note}.*" if within else _DIV_NAME.sub("", inner[1]))
        last = self._last
        self._end()
        self._last = last

    def _callout(self, i: int, callout: re.Match[str]) -> int | None:
        kind = kind_of(callout[2])
        quoted = re.compile(rf"[ \t]*(?:>[ \t]?){{{callout[1].count('>')}}}")
        end = i + 1
        while end < len(self._lines) and quoted.match(self._lines[end]):
            end += 1
        title = callout[4].strip()
        label = ""
        if block := _BLOCK_ID.search(title):
            label, title = f"^{block[1]}", title[: block.start()]
        lead = lead_of(title.strip(" *_")) if title else None
        if lead is None and kind:
            meta = (callout[3] or "").strip()
            lead = Lead(
                kind, printed_name(callout[2], kind), meta if re.fullmatch(r"[\dA-Z][\d.]{0,10}", meta) else "", title
            )
        if lead is None:
            return None
        self._whole(i, lead, label, [quoted.sub("", line, count=1) for line in self._lines[i + 1 : end]])
        return end

    def _div(self, i: int, opened: str) -> int:
        lead, label = _of_div(opened) if i in self._ends else (None, "")
        start, end = i + 1, self._ends.get(i, i)
        while start < end and (option := _OPTION.fullmatch(self._lines[start])):
            label = option[2].strip() if option[1] in ("label", "name") else label
            start += 1
        if lead is None:  # a div of another kind, or an end
            self._flush()
            if i in self._ends:
                self._text(_DIV_NAME.sub("", opened))
            return start
        while start < end and not self._lines[start].strip():
            start += 1
        if not lead.note and start < end and (heading := _HEADING.fullmatch(self._lines[start])):
            lead, start = lead._replace(note=heading[2].strip(" #")), start + 1
        self._whole(i, lead, label, self._lines[start:end])
        return end + 1

    def _environment(self, i: int, environment: re.Match[str]) -> int | None:
        name = environment[2].rstrip("*")
        kind = kind_of(name)
        if not kind:
            return None
        if environment[1] == "end":
            self._end()
            rest = self._lines[i][environment.end() :]
            if rest.strip():
                self._text(rest)
            return i + 1
        lead = Lead(kind, printed_name(name, kind), "", " ".join((environment[3] or "").split()))
        end = self._ends.get(i, i)
        content = [self._lines[i][environment.end() :], *self._lines[i + 1 : end + 1]]
        after = ""
        if i in self._ends:
            content[-1], _, after = content[-1].rpartition(rf"\end{{{environment[2]}}}")
        label = next((match[1] for match in map(_LABEL.search, content[:2]) if match), "")
        content = [_LABEL.sub("", line) for line in content]
        if i in self._ends:
            self._whole(i, lead, label, content)
        else:  # never closed: up to the next statement or heading
            self._begin(i, lead, label)
            self._text(content[0])
        if after.strip():
            self._text(after)
        return end + 1

    def _bold(self, i: int, bold: re.Match[str]) -> int | None:
        """Read a paragraph whose first words are bold or italic."""
        words, rest = bold[2].strip(), bold[3]
        lead, number = numbered_lead(words)
        if lead is None:
            if i in self._numbers:
                self._paragraph(i, number, words.strip(" .:"), rest)
                return i + 1
            return None
        if not lead.note and (note := _NOTE.match(rest)):
            lead, rest = lead._replace(note=note[1]), rest[note.end() :]
        label, rest = _without_label(rest)
        self._begin(i, lead, label)
        self._text(rest.lstrip(" \t.:"))
        return i + 1

    def _paragraph(self, i: int, number: str, title: str, rest: str) -> None:
        self._end()
        self._last = None
        self.outline.part(self._file, "paragraph", number, title or number, self._line(i), self._label())
        self._text(rest)

    def _numbered(self) -> frozenset[int]:
        numbers: dict[int, str] = {}
        for i, line in enumerate(self._lines):
            if self._kept[i] or (i and self._lines[i - 1].strip() and not self._begun(i - 1)):
                continue
            bold = _BOLD.match(line) if line.lstrip(" \t")[:1] in ("*", "_") else None
            plain = None if bold else _PLAIN_NUMBER.match(line)
            lead, number = numbered_lead(bold[2]) if bold else (None, plain[1] if plain else "")
            if number and lead is None and not (bold and len(bold[1]) == 1):
                numbers[i] = number
        return series(numbers)

    def _matched(self) -> dict[int, int]:
        """Find where each div and each environment of a statement ends that has an end."""
        ends: dict[int, int] = {}
        divs: list[int] = []
        environments: dict[str, list[int]] = {}
        for i, line in enumerate(self._lines):
            mark = line.lstrip(" \t")[:1]
            if self._kept[i] or mark not in (":", "\\"):
                continue
            if mark == ":" and (div := _DIV.fullmatch(line)):
                if div[1].strip():
                    divs.append(i)
                elif divs:
                    ends[divs.pop()] = i
            elif (environment := _ENVIRONMENT.match(line)) and kind_of(environment[2]):
                opened = environments.setdefault(environment[2], [])
                closer = rf"\end{{{environment[2]}}}"
                if environment[1] == "begin":
                    if closer in line:
                        ends[i] = i
                    else:
                        opened.append(i)
                elif opened:
                    ends[opened.pop()] = i
        return ends


def _of_div(opened: str) -> tuple[Lead | None, str]:
    r"""Read the first line of a div: ``theorem``, ``{.theorem #cs name="…"}``, ``{prf:theorem} Title``."""
    match = _OPENED_DIV.match(opened)
    if match is None:
        return None, ""
    inner = match["in"] or ""
    label, _ = _without_label(f"{{{inner}}}")
    names = [match["word"], *re.findall(r"\.([\w-]+)", inner), *re.findall(r"^\s*([\w:-]+)\s*$", inner)]
    names = [name.rpartition(":")[2] for name in names] + ([_QUARTO.get(label[:3], "")] if label[3:4] == "-" else [])
    name = next(filter(kind_of, names), "")
    if not name:
        return (lead_of(match["rest"]) if names[-1] in _TEXT_DIRECTIVES else None), label
    quoted = re.search(r"""(?:name|title)=["']([^"']*)["']""", inner)
    note = quoted[1] if quoted else match["note"] or match["rest"]
    return Lead(kind_of(name), printed_name(name, kind_of(name)), "", note.strip()), label


def _without_label(text: str) -> tuple[str, str]:
    """Take the attributes ``{#label …}`` out of a text; return the label and the rest."""
    attributes = _ATTRIBUTES.search(text)
    if attributes is None:
        return "", text
    match = _ID.search(attributes[1])
    return match[1] if match else "", text[: attributes.start()] + text[attributes.end() :]


def display_marks(formula: str) -> tuple[str, str]:
    r"""Return the delimiters of a display, in which ``&`` and ``\\`` mean ``split``, as in Sphinx."""
    depth = 0  # of environments
    for token in _ROW_OR_EDGE.findall(formula):
        depth += {r"\begin": 1, r"\end": -1}.get(token, 0)
        if token in ("&", r"\\") and depth <= 0:
            return r"$$\begin{split}", r"\end{split}$$"
    return "$$", "$$"


def _with_divs(lines: Sequence[str]) -> list[str]:
    """Write the directives of MyST that hold text, which are fenced as code is, as divs and formulas."""
    written = list(lines)
    opened: list[tuple[str, str, int]] = []  # the fence, the text for its end ("code" for code), and its line
    for i, line in enumerate(lines):
        if not (line.lstrip(" ")[:3] in ("```", "~~~", ":::") and (match := _FENCE_OR_DIV.match(line))):
            continue
        fence, rest = match[1], match[2]
        is_like_opened = opened and line.strip()[:1] == opened[-1][0][0] and fence.startswith(opened[-1][0])
        if is_like_opened and not rest.strip():
            _, end, begun = opened.pop()
            written[i] = line if end == "code" else end
            if end == "$$":  # a formula, without its options
                start = begun + 1
                while start < i and (_OPTION.fullmatch(written[start]) or not written[start].strip()):
                    written[start] = ""
                    start += 1
                if start < i and written[start].strip() == "---":
                    close = next((k for k in range(start + 1, i) if written[k].strip() == "---"), start)
                    written[start : close + 1] = [""] * (close + 1 - start)
                    start = close + 1
                written[begun] = ""
                written[start - 1], written[i] = display_marks("\n".join(written[start:i]))
            continue
        if opened and opened[-1][1] == "code":
            continue
        directive = _DIRECTIVE.fullmatch(rest.strip())
        name = directive[1].rpartition(":")[2] if directive else ""
        if name == "math":
            opened.append((fence, "$$", i))
        elif (gate := _GATE.fullmatch(name)) and kind_of(gate[1]):
            written[i] = f":::{{{gate[1]}}} {directive[2] if directive else ''}" if gate[2] == "start" else ":::"
            opened.append((fence, "", i))
        elif fence[0] == ":":
            continue
        elif directive and (kind_of(name) or name in _TEXT_DIRECTIVES):
            written[i] = f":::{{{directive[1]}}} {directive[2] if name not in _FIGURES else ''}"
            opened.append((fence, ":::", i))
        elif not (fence[0] == "`" and "`" in rest):
            opened.append((fence, "code", i))
    return written
