r"""Where formulas are in text: ``$..$``, ``$$..$$``, ``\(..\)``, ``\[..\]`` and environments such as ``\begin{align}``.

A dollar is a currency sign when it is escaped, when nothing closes it in its block, or when the enclosed text reads as
prose after an amount: ``$5 and $10``. Unpaired delimiters are text.

Formulas are also typed without dollars: ``x^2+1=0``, ``∑ 1/n²``, ``f(x) = sin(2x)``. A run of text is a formula if it
reads as terms joined by operators and contains something that occurs only in mathematics::

    tokens     x  ^  2  +  1  =  0        letters, numbers, functions, operators, brackets
    run        term (operator term)*      terms may touch (``2x``, ``f(x)``), but words end a run
    evidence   a power, an index, a relation or a sum with a letter, a symbol of mathematics, a function of something

So ``a``, ``I``, ``1/2``, ``w/o``, ``C++`` and ``foo_bar`` remain text.

Mathematics typed in Unicode becomes equivalent LaTeX: ``x²`` is ``x^{2}``, ``√(a+1)`` is ``\sqrt{a+1}``.
Only characters that a LaTeX converter misreads are rewritten: superscripts, subscripts, fractions, roots, accents,
degrees, the middle dot, and italic or wide forms of plain letters. Operators, letters and relations (``∑ ≤ ℝ α ∈``)
already give the tree of their command.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from html import escape, unescape

MARK = "\ue000"
"""Private-use character in the place of a formula that is already known."""

CODE_DOLLAR, CODE_BACKSLASH = "\ue001", "\ue002"
"""Private-use characters for a dollar and a backslash in code, where they delimit nothing."""

CODE_START, CODE_END = "\ue003", "\ue004"
"""Enclose code while formulas without delimiters are searched for; code contains none."""

LONGEST_DISPLAY = 20_000
LONGEST_INLINE = 4_000
_NESTED = 8  # formulas in the text of a formula

DISPLAYS = "equation|align|alignat|gather|multline|eqnarray|flalign"
"""Environments that are formulas, also with a star."""
_OPENER = re.compile(rf"\\\\[(\[]?|\\\$|\$\$?|\\\(|\\\[|\\begin\{{(?:{DISPLAYS})\*?\}}")
_CLOSER = {"$$": "$$", "\\(": "\\)", "\\[": "\\]", "\\\\(": "\\\\)", "\\\\[": "\\\\]"}  # two backslashes: for kramdown
_INLINE_STOP = re.compile(rf"\\.|[{{}}$\n{MARK}]", re.DOTALL)
_AMOUNT_AND_WORDS = re.compile(r"\d[\d.,]*(?![\d.,])(?:(?<=[.,])[\s,;.)]*|\w?[\s,;.)]+)[A-Za-z]{2}")
_AMOUNT_AND_SPACE = re.compile(r"\d[\d.,]*\s+")
_OPENED = re.compile(r"[A-Za-z\\({\[|]|[^\s$]{0,40}[\\^_=]")  # text after a dollar that opens a formula
_TEX = re.compile(r"[\\^_={}<>+*/|]")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BRACE_OR_DOLLAR = re.compile(r"\\.|[{}$]", re.DOTALL)
_PROSE = re.compile(r"(?:[^\W\d_]|[\s.,;:?!'’\"-])*")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_FUNCTIONS = frozenset(["arccos", "arcsin", "arctan", "cosh", "coth", "limsup", "liminf", "sinh", "sqrt", "tanh"])
_CONTROL = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ue000-\ue005\ufeff\ufff9-\uffff\ud800-\udfff]"
)


def clean(text: str) -> str:
    """Drop control characters, invisible ones, lone surrogates and our own marks."""
    return _CONTROL.sub("", text)


def replaced(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """Put a text in the place of each span, which are in order and do not overlap."""
    pieces, at = [], 0
    for start, end, by in spans:
        pieces += [text[at:start], by]
        at = end
    return "".join([*pieces, text[at:]])


def mask(text: str, spans: Iterable[tuple[int, int]], mark: str = MARK) -> str:
    """Put a mark in the place of each character of some spans, which are in order and do not overlap."""
    return replaced(text, ((start, end, mark * (end - start)) for start, end in spans))


def strip_delimiters(latex: str) -> str:
    r"""Remove the delimiters of LaTeX: ``$x$``, ``$$x$$``, ``\(x\)``, ``\[x\]`` and ``\\(x\\)`` are ``x``."""
    latex = latex.strip()
    for opening, closing in (*_CLOSER.items(), ("$", "$")):
        if len(latex) >= len(opening + closing) and latex.startswith(opening) and latex.endswith(closing):
            if closing == "$" and latex.endswith("\\$"):
                continue
            return latex[len(opening) : -len(closing)].strip()
    opened = latex.lstrip("$")  # a truncated formula without its closing dollars
    return latex if "$" in opened else opened.strip()


def is_formula(latex: str) -> bool:
    r"""Return whether a typed text is a formula.

    Args:
        latex: LaTeX, with or without delimiters.

    Returns:
        ``False`` for blank text, for braces that do not pair (``\frac{a``) and, without delimiters, for prose.
    """
    depth = 0
    for brace in _BRACE.findall(latex):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if depth < 0:
            return False
    if depth or not strip_delimiters(latex):
        return False
    if not _PROSE.fullmatch(latex):
        return True
    words = [word for word in _WORDS.findall(latex) if word.lower() not in _FUNCTIONS]
    return len(words) < 3 and not any(len(word) > 3 and word[1:].islower() for word in words)


def has_dollar(latex: str) -> bool:
    r"""Return whether a formula has dollars outside of braces, as of several formulas; ``\text{if $x$}`` is one."""
    depth = 0
    for sign in _BRACE_OR_DOLLAR.findall(latex) if "$" in latex else ():
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "$" and depth <= 0:
            return True
    return False


def math_spans(text: str, unclosed: list[int] | None = None) -> Iterator[tuple[int, int, str]]:
    """Find the formulas of a text."""
    at = 0
    while opener := _OPENER.search(text, at):
        at = opener.end()
        delimiter = opener[0]
        if delimiter in ("\\$", "\\\\"):
            continue
        if delimiter == "$":
            end = _inline_end(text, at)
            if end < 0 and unclosed is not None and _OPENED.match(text, at):
                unclosed.append(opener.start())
            if end < 0 or _is_prose(text[at:end], text[end + 1 : end + 2]):
                continue
            latex, after = text[at:end], end + 1
        else:
            closer = _CLOSER.get(delimiter) or delimiter.replace("begin", "end")
            end = _display_end(text, at, delimiter, closer)
            if end < 0:
                if unclosed is not None and text[at : at + 1].strip() and not delimiter.startswith("\\\\"):
                    unclosed.append(opener.start())
                continue
            after = end + len(closer)
            latex = text[opener.start() : after] if delimiter.startswith("\\b") else text[at:end]
        if latex.strip():
            yield opener.start(), after, latex.strip()
            at = after


def _display_end(text: str, start: int, opener: str, closer: str) -> int:
    """Find the closer of a display formula, or -1; the search ends at the next opener, so it is linear overall."""
    limit = start + LONGEST_DISPLAY
    if opener != closer:
        following = text.find(opener, start, limit)
        limit = following if following >= 0 else limit
    first = end = text.find(closer, start, limit)
    for _ in range(_NESTED if closer == "$$" else 0):  # two dollars in braces are of formulas in text
        braces = _BRACE.findall(text[start:end]) if end >= 0 else []
        if braces.count("{") <= braces.count("}"):
            break
        end = text.find(closer, end + 1, limit)
    else:
        end = first
    end = first if end < 0 else end
    return -1 if end < 0 or MARK in text[start:end] else end


def _inline_end(text: str, start: int) -> int:
    """Find the dollar that closes an inline formula, or -1; dollars in braces belong to the formula."""
    depth, inner = 0, []
    for stop in _INLINE_STOP.finditer(text, start, start + LONGEST_INLINE):
        what = stop[0]
        if what == "{":
            depth += 1
        elif what == "}":
            depth -= 1
        elif what == "$":
            if depth <= 0:
                return stop.start()
            inner.append(stop.start())
            if len(inner) == 8:
                break
        elif what in ("\n", MARK):
            break
    return inner[0] if inner else -1


def _is_prose(content: str, following: str) -> bool:
    """Whether dollars that pair are amounts of money."""
    if not content.strip():
        return True
    spaced = content[0].isspace() or content[-1].isspace()
    if spaced and (following.isdigit() or _AMOUNT_AND_SPACE.fullmatch(content)):
        return True
    if _TEX.search(content):
        return False
    return bool(_AMOUNT_AND_WORDS.match(content)) or (spaced and len(content.split()) > 1 and content[-1:].isspace())


# ---- formulas without delimiters

LONGEST = 200
"""Characters of the longest run."""

_FUNCTION_NAMES = (
    "arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|log|ln|exp|lim|max|min|gcd|lcm|det|dim|ker|mod"
)
_TOKEN = re.compile(
    rf"""
      (?P<address>(?<![\w.+-])[\w.+-]{{1,64}}@[\w.-]+|(?:https?://|www\.)[^\s<>"]+)
    | (?P<number>\d+(?:\.\d+)?)
    | (?P<function>(?<![A-Za-z])(?:{_FUNCTION_NAMES})(?![A-Za-z]))
    | (?P<command>\\[A-Za-z]+)
    | (?P<letters>[A-Za-z]+)
    | (?P<relation><=|>=|!=|==|:=|=>|->|[=<>])
    | (?P<sum>[+*])
    | (?P<other>[-−/!,'′|:])
    | (?P<script>[\^_])
    | (?P<open>[(\[{{])
    | (?P<close>[)\]}}])
    | (?P<space>[^\S\n]+)
    | (?P<any>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_STRUCTURE = frozenset(
    [r"\begin", r"\end", r"\left", r"\right", r"\ref", r"\eqref", r"\cite", r"\label", r"\tag", r"\hline", r"\item"]
)
_ARROWS = {"<=": r"\le ", ">=": r"\ge ", "!=": r"\ne ", "==": "=", "=>": r"\Rightarrow ", "->": r"\to ", "*": r"\cdot "}
_OPERATORS = frozenset({"relation", "sum", "other", "script"})
_TERMS = frozenset({"number", "function", "command", "letters", "symbol", "big", "close"})
_RELATIONS = frozenset("≤≥≠≈≡∼≃≅∝∈∉∋⊂⊆⊃⊇→↦⇒⇔⟹⟺↔∣∥⊥≪≫≺≻±∓×÷·⋅∘∪∩∧∨⊕⊗∖")


@dataclass(slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def _tokens(text: str) -> Iterator[_Token]:
    """Find the tokens of a text; an edge comes before and after all, so that each other token has neighbors."""
    yield _Token("edge", "\n", 0, 0)
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup or "", match[0]
        if kind == "any":
            symbol = "symbol" if _is_mathematical(token) else "word"
            kind = "operator" if token in _RELATIONS else "big" if token in "∑∏∫∬∭∮∂∇√∛∜∀∃¬" else symbol
        elif kind == "command" and token in _STRUCTURE:
            kind = "word"
        yield _Token(kind, token, match.start(), match.end())
    yield _Token("edge", "\n", len(text), len(text))


def _is_mathematical(character: str) -> bool:
    """Whether a character is a symbol, a letter or a script of mathematics, Greek letters included."""
    name = unicodedata.name(character, "")
    if name.startswith(("GREEK SMALL LETTER", "GREEK CAPITAL LETTER", "MATHEMATICAL", "DOUBLE-STRUCK")):
        return "WITH" not in name
    decomposition = unicodedata.decomposition(character)
    return character in "∞∅ℓℏ…⋯°" or (decomposition.startswith(("<super>", "<sub>")) and character not in "™℠ªº")


def bare_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Find the formulas of a text that has no delimiters."""
    tokens = list(_tokens(text))
    closed: dict[int, int] = {}  # the bracket that closes each bracket
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(at)
        elif token.kind == "close" and opened:
            closed[opened.pop()] = at
    at = 1
    while at < len(tokens) - 1:
        end = _run(tokens, at, closed)
        if end > at and _has_evidence(tokens[at:end]):
            start, stop = tokens[at].start, tokens[end - 1].end
            yield start, stop, _latex(tokens[at:end])
        at = max(end, at + 1)


def _run(tokens: list[_Token], start: int, closed: dict[int, int]) -> int:
    """Where the longest run of terms and operators ends that begins at a token; ``start`` where there is none."""
    if not _begins(tokens, start):
        return start
    brackets: list[int] = []
    scope = False  # of an operator such as ∑, where a space is a product
    at, end, joined = start, start, True  # joined: a term may follow here
    while tokens[at].end - tokens[start].start <= LONGEST:
        token, kind = tokens[at], tokens[at].kind
        if kind == "space":
            before, after = tokens[at - 1], tokens[at + 1]
            is_differential = after.kind == "letters" and len(after.text) == 2 and after.text[0] == "d"
            joined = joined or scope or is_differential or after.kind == "function"
            joined = joined or before.kind in ("function", "big", "command")
        elif kind == "open":
            if (
                (not joined and tokens[at - 1].kind == "space")
                or at not in closed
                or tokens[closed[at]].end - tokens[start].start > LONGEST
            ):
                break
            brackets.append(at)
            joined = True
        elif kind == "close":
            if not brackets:
                break
            brackets.pop()
            joined = False
        elif kind in _OPERATORS or kind == "operator":
            if kind in ("relation", "operator", "sum") and at == start:
                break
            joined, scope = True, scope and kind != "relation"
        elif (
            (not joined and tokens[at - 1].kind == "space")
            or kind in ("word", "address", "edge")
            or (kind == "letters" and not _is_term(tokens, at))
        ):
            break
        else:
            joined = kind in ("big", "function", "command")
            scope = scope or token.text in "∑∏∫∬∭∮"
        at += 1
        if not brackets and (kind in _TERMS or token.text in "!'′"):
            end = at
    return end


def _begins(tokens: list[_Token], at: int) -> bool:
    """Whether a formula may begin here: not within a word, and with a term."""
    before, token = tokens[at - 1], tokens[at]
    if before.text not in (",", ":", "'"):
        glued = before.kind in ("letters", "number", "address", "script", "other")
        if glued or (before.kind == "word" and (before.text.isalnum() or before.text in "@#&_\\")):
            return False
    if before.text in "'’" and tokens[at - 2].kind in ("letters", "word"):
        return False  # the end of "it's"
    if token.text in ("-", "−"):
        return tokens[at + 1].kind in ("number", "symbol") or _is_term(tokens, at + 1)
    return token.kind in ("number", "function", "command", "symbol", "big", "open") or _is_term(tokens, at)


def _is_term(tokens: list[_Token], at: int) -> bool:
    """Whether letters are variables: one letter, or a few that a number, a power or an index belongs to."""
    token = tokens[at]
    if token.kind != "letters":
        return False
    if len(token.text) == 1 or token.text in ("dx", "dy", "dz", "dt", "dr", "ds", "du", "dv"):
        return True
    before, after = tokens[at - 1], tokens[at + 1]
    scripted = after.kind == "script" or (after.kind == "symbol" and not after.text.isalpha())
    return len(token.text) <= 3 and (scripted or before.kind == "number")


def _has_evidence(run: list[_Token]) -> bool:
    """Whether a run contains something that occurs only in mathematics."""
    tokens = [token for token in run if token.kind != "space"]
    variables = any(token.kind in ("letters", "symbol", "command") for token in tokens)
    several = len(tokens) > 1
    for i, token in enumerate(tokens):
        inner = 0 < i < len(tokens) - 1
        if token.kind == "command" or (token.kind in ("big", "operator") and several):
            return True
        if token.kind == "symbol" and (several or token.text in "∞∅" or token.text.isalpha()):
            return True
        if inner and (token.kind == "script" or (token.kind in ("relation", "sum") and variables)):
            return True
        if token.kind == "function" and i + 1 < len(tokens) and tokens[i + 1].kind != "relation":
            return True
        if token.text == "(" and i and tokens[i - 1].kind == "letters" and len(tokens[i - 1].text) == 1:
            kinds = [token.kind for token in tokens[i + 1 :]]  # the arguments of a function: ``f(x)``, ``P(x, 2)``
            if "close" in kinds and "letters" in kinds[: kinds.index("close")]:
                return True
    return False


def _latex(run: list[_Token]) -> str:
    """Write a run as LaTeX: the text after ``^`` or ``_`` becomes its argument, digits after a letter its index."""
    pieces: list[str] = []
    grouping = any(token.kind == "command" for token in run)  # braces group as in LaTeX; otherwise they enclose a set
    at = 0
    while at < len(run):
        token = run[at]
        if token.kind == "script":
            argument, at = _argument(run, at + 1)
            pieces.append(f"{token.text}{{{argument}}}")
            continue
        before = run[at - 1].kind if at else ""
        if token.kind == "function" and token.text not in ("lcm", "mod"):
            pieces.append(f"\\{token.text} ")
        elif token.text in "{}" and not grouping:
            pieces.append(f"\\{token.text}")
        elif token.kind == "number" and before == "letters" and len(run[at - 1].text) == 1:
            pieces.append(f"_{{{token.text}}}")
        else:
            pieces.append(_ARROWS.get(token.text, token.text))
        at += 1
    return "".join(pieces).strip()


def _argument(run: list[_Token], at: int) -> tuple[str, int]:
    """Return the content of a power or an index, and its end: a group in brackets, or a sign and a term."""
    first = at
    if run[at : at + 1] and run[at].kind == "open":
        depth = 0
        while at < len(run) and (depth or at == first):
            depth += (run[at].kind == "open") - (run[at].kind == "close")
            at += 1
        return _latex(run[first + 1 : at if depth else at - 1]), at
    while at < len(run) and run[at].text in ("-", "−", "+"):
        at += 1
    at = min(at + 1, len(run))
    return "".join(token.text for token in run[first:at]), at


_ROOTS = {"√": r"\sqrt", "∛": r"\sqrt[3]", "∜": r"\sqrt[4]"}
_ACCENTS = {
    "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0305": "overline", "\u0307": "dot", "\u0308": "ddot",
    "\u030c": "check", "\u0306": "breve", "\u20d7": "vec",
}  # fmt: skip
_PLAIN = "\U0001d434-\U0001d467\u210eµ\uff08\uff09\uff0b-\uff0f\uff10-\uff1e\uff21-\uff3a\uff41-\uff5a"
_SKIPPED = re.compile(r"\\(?:text\w*|mbox|operatorname\*?)\s*\{[^{}]*\}|\\.", re.DOTALL)
_LONGEST_RADICAND = 400  # also the bound of the depth of roots in roots
_MORE_ROOTS = re.compile(r"\s*(?:[√∛∜]\s*){0,20}")
_RADICAND = re.compile(rf"(?:\d+(?:[.,]\d+)?|\\[A-Za-z]+|[^\W_²³¹⁰-₟][{''.join(_ACCENTS)}]?)")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


@cache
def _pattern() -> re.Pattern[str]:
    """Characters to rewrite or to skip; made when the first formula needs it."""
    kinds = {"<super>": "", "<sub>": "", "<fraction>": "", "accented": ""}
    for character in map(chr, range(0x80, 0x10000)):
        kind = unicodedata.decomposition(character).partition(" ")[0]
        parts = unicodedata.normalize("NFD", character)
        if len(parts) == 2 and parts[0].isalpha() and parts[1] in _ACCENTS and character < "\u1f00":
            kind = "accented"
        if kind in kinds and character not in "™℠ªº⅟":
            kinds[kind] += character
    return re.compile(
        rf"(?P<skip>{_SKIPPED.pattern})|(?P<super>[{kinds['<super>']}]+)|(?P<sub>[{kinds['<sub>']}]+)"
        rf"|(?P<fraction>[{kinds['<fraction>']}])|(?P<root>[{''.join(_ROOTS)}])|(?P<dot>·)|(?P<degree>°)"
        rf"|(?P<accent>[A-Za-zͰ-Ͽ][{''.join(_ACCENTS)}]|[{kinds['accented']}])|(?P<plain>[{_PLAIN}])",
        re.DOTALL,
    )


def latex_of_unicode(source: str) -> str:
    r"""Rewrite Unicode characters for which LaTeX has notation.

    Args:
        source: LaTeX without delimiters. The arguments of ``\text`` and escaped characters stay as they are.

    Returns:
        LaTeX; the same text if nothing needed rewriting.
    """
    if source.isascii():
        return source
    pieces: list[str] = []
    at = 0
    for match in _pattern().finditer(source):
        kind = match.lastgroup
        if match.start() < at or kind == "skip":  # inside the radicand of a root, or passed over
            continue
        pieces.append(source[at : match.start()])
        at = match.end()
        plain = unicodedata.normalize("NFKC", match[0]).replace("−", "-")
        if kind == "root":
            radicand, at = _radicand(source, at)
            plain = f"{_ROOTS[match[0]]}{{{latex_of_unicode(radicand)}}}"
        elif kind in ("dot", "degree"):
            plain = r"\cdot " if kind == "dot" else r"^{\circ}"
        elif kind == "accent":
            letter = unicodedata.normalize("NFD", match[0])  # and its accent
            plain = rf"\{_ACCENTS[letter[1]]}{{{letter[0]}}}"
        elif kind == "fraction":
            above, _, below = plain.partition("⁄")
            plain = rf"\frac{{{above}}}{{{below}}}"
        elif kind != "plain":
            plain = f"{'^' if kind == 'super' else '_'}{{{plain}}}"
        pieces.append(plain)
    return "".join(pieces) + source[at:]


def _radicand(source: str, start: int) -> tuple[str, int]:
    """Return the radicand and its end: a group in brackets without them, a number, a command or a letter."""
    roots = _MORE_ROOTS.match(source, start)
    opened = roots.end() if roots else start
    closer = _BRACKETS.get(source[opened : opened + 1])
    if closer is not None:
        depth = 0
        for i in range(opened, min(len(source), opened + _LONGEST_RADICAND)):
            depth += (source[i] == source[opened]) - (source[i] == closer)
            if depth == 0:
                whole = roots and roots[0].strip()  # the root of a root keeps the brackets of the inner one
                return (source[start : i + 1], i + 1) if whole else (source[opened + 1 : i], i + 1)
        return "", start
    match = _RADICAND.match(source, opened)
    return (source[start : match.end()].strip(), match.end()) if match else ("", start)


# ---- material that is neither words nor formulas, kept as source: drawings, diagrams, programs, proof trees, chemistry
#
#     \begin{tikzcd} A \arrow[r] & B \end{tikzcd}  ──hidden──▶  the same, each character in a private plane of Unicode
#         ──▶  <pre class="latex-source">\begin{tikzcd} …</pre>    which readers of HTML leave out
#
# Hidden characters are neither letters nor blanks nor signs, so every later step passes them on as they are.

_CODE = "verbatim verbatim* Verbatim BVerbatim LVerbatim lstlisting minted alltt sagesilent sageblock luacode pycode"
_DRAWINGS = (
    "tikzpicture tikzcd tikzcd* CD circuitikz pgfpicture picture pspicture asy asydef forest feynman quantikz mpost "
    "algorithmic algorithmic* algorithm2e pseudocode prooftree scprooftree mathpar xy chemfig scheme reaction"
)
SOURCES = frozenset(f"{_CODE} {_DRAWINGS}".split())
"""Environments that are kept as source."""
SOURCE = re.compile(
    rf"\\begin\s*\{{({'|'.join(re.escape(name) for name in sorted(SOURCES))})\}}|\\(?:ce|chemfig|xymatrix)(?![A-Za-z])"
)
"""The beginning of material that is kept as source."""

_HIDDEN = 0xF0000
HIDDEN = re.compile("[\U000f0000-\U000ffffd]+")
"""Characters of material that is kept as source."""
SOURCE_CLASS = "latex-source"
"""The class of an element of HTML that shows source."""
_WRITTEN = re.compile(rf'<pre class="{SOURCE_CLASS}">([^<>]*)</pre>')


def hidden(source: str) -> str:
    """Hide text from all readers of words and formulas, character by character."""
    return "".join(chr(_HIDDEN + ord(character)) for character in source if ord(character) < 0xFFFE)


def shown(source: str) -> str:
    return "".join(chr(ord(character) - _HIDDEN) for character in source)


def source_html(source: str) -> str:
    """Write source as HTML that is shown, but is neither text nor a formula of a post."""
    return f'<pre class="{SOURCE_CLASS}">{escape(source)}</pre>'


def with_hidden(html: str) -> str:
    """Hide the source in HTML of our own, so that a post that is read of it keeps it."""
    return _WRITTEN.sub(lambda source: hidden(unescape(source[1])), html)


def source_texts(html: str) -> list[str]:
    """List the source in HTML of our own."""
    return [unescape(source) for source in _WRITTEN.findall(html)]
