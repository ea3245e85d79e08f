r"""LaTeX as people type it to MathML with ``math-core``, safely for any text.

Rules prepare a formula: a substring that it must contain, a pattern and its replacement. Six private characters keep
what MathML would lose: a superscript written before its subscript, an ``array`` (as opposed to a ``matrix``), ``\iff``,
``\ast``, ``\not\mid`` and the query variable ``\qvar{x}``. First, commands of LaTeX packages, MathJax and plain TeX
that ``math-core`` does not know are written as ones that it does; what only changes the look of a page is left out::

    \smallsetminus   \setminus          \hbox{if}         \text{if}         \bbox[5px]{x}     {x}
    \root 3 \of{x}   \sqrt[3]{x}        \substack{a\\b}   a matrix          \eqalign{a\cr b}  aligned
    \\[2pt]          \\                 \intertext{so}    a line of text    \delta*x          \delta *x

LaTeX that it refuses is repaired, or given to ``latex2mathml``; the tree is then ``partial``.

::

    short, shallow, without definitions ──────────▶ in this thread, some microseconds
    any other one up to LONGEST characters ───────▶ in a child that ends after a second
    longer, or not done by then ──────────────────▶ FormulaError; after three from one text its others are not tried

``math-core`` is native code that cannot be interrupted. It needs time 2ⁿ for n unclosed fences, so a formula with many
fences gets fences of a fixed size, which are not paired; a definition may expand to as many fences or to a
thousand times its length; and it recurses over depth (1 to 2 KB a level), where an overflow ends the process.
"""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

import math_core

from pyterrier_mathamr._common.running.worker import MEMORY, OverLimitError, Worker
from pyterrier_mathamr.formula import mathml
from pyterrier_mathamr.formula.tree import FormulaError
from pyterrier_mathamr.posts import latex_of_unicode
from pyterrier_mathamr.posts.tex_expansion import Expander, collected

from .atoms import AST, IFF, NOT_MID, WILDCARD

_GROUP = r"\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\}"
_SIZE = r"(?:-\s*)?[\d.]+\s*(?:pt|em|ex|mm|cm|in|px|mu|pc|bp)"

_ALIASES = {
    "smallsetminus": r"\setminus", "centerdot": r"\cdot", "hbox": r"\text", "scr": r"\mathscr", "mathds": r"\mathbb",
    "mathbbm": r"\mathbb", "intop": r"\int", "varinjlim": r"\injlim", "varprojlim": r"\projlim",
    "varliminf": r"\liminf", "varlimsup": r"\limsup", "cr": r"\\", "LaTeX": r"\text{LaTeX}", "TeX": r"\text{TeX}",
    **dict.fromkeys(["smash", "rlap", "llap", "vcenter", "ensuremath", "strut", "hfil", "hfill", "qed"], ""),
}  # fmt: skip
_ENVIRONMENTS = {
    "substack": "matrix", "eqalign": "aligned", "eqalignno": "aligned", "displaylines": "gathered", "cases": "cases",
}  # fmt: skip
_ALIAS = re.compile(rf"\\({'|'.join(_ALIASES)})(?![a-zA-Z])(?:(?<=\\smash)\s*\[[tb]\])?")
_ENVIRONMENT = re.compile(rf"\\({'|'.join(_ENVIRONMENTS)})\s*({_GROUP})")
_LAYOUT = re.compile(
    rf"\\(?:bbox\s*(?:\[[^\[\]]*\])?|(?:require|class|cssId|style|href|enclose|ref|vspace\*?)\s*\{{[^{{}}]*\}}"
    rf"|(?:raise|lower)\s*{_SIZE}|multicolumn\s*\{{\d+\}}\s*\{{[^{{}}]*\}})"
)
_STARRED = re.compile(r"(\\(?!(?:operatorname|tag|hspace|vspace|begin|end|(?:re)?newcommand)\*)[a-zA-Z]+)\*")
_LINE_END = re.compile(rf"(?<!\\)((?:\\\\)*\\\\)(?:\*|\s*\[\s*{_SIZE}\s*\])+")
_BACKSLASH = re.compile(r"(?<!\\)((?:\\\\)*)\\(?=[\n\r\t]|$)")
_ROOT = re.compile(r"\\root\s*(\{[^{}]*\}|\\?[a-zA-Z0-9]+)\s*\\of(?![a-zA-Z])")
_INTERTEXT = re.compile(r"\\(?:short)?intertext\s*(\{(?:[^{}]|\{[^{}]*\})*\})")


def _environment(match: re.Match[str]) -> str:
    name = _ENVIRONMENTS[match[1]]
    return rf"\begin{{{name}}}{match[2][1:-1]}\end{{{name}}}"


def known_commands(latex: str) -> str:
    """Write the commands of a formula as ones that the converter knows; others stay."""
    if "\\" not in latex or not _has_foreign(latex):
        return latex
    latex = _LINE_END.sub(r"\1 ", _BACKSLASH.sub(r"\1 ", latex))
    latex = _LAYOUT.sub(" ", _STARRED.sub(r"\1 *", latex))
    latex = _INTERTEXT.sub(r"\\text\1\\\\ ", latex)
    latex = _ROOT.sub(r"\\sqrt[\1]", latex)
    latex = _ENVIRONMENT.sub(_environment, latex)
    return _ALIAS.sub(lambda match: _ALIASES[match[1]] + " ", latex).replace("{smallmatrix}", "{matrix}")


_LAYOUT_WORDS = (
    "require class cssId style href enclose ref vspace raise lower multicolumn intertext shortintertext "
    "DeclareMathOperator"
)
_FOREIGN = frozenset([*_LAYOUT_WORDS.split(), *_ALIASES, *_ENVIRONMENTS])
_FOREIGN_SIGNS = ("*", "\\\\", "\\\n", "\\\r", "\\\t", r"\bbox", r"\root", "{smallmatrix}")
_COMMAND = re.compile(r"\\([a-zA-Z]+)")


def _has_foreign(latex: str) -> bool:
    """Return whether a formula may need rewriting, which nine of ten do not."""
    has_signs = latex[-1] == "\\" or any(sign in latex for sign in _FOREIGN_SIGNS)
    return has_signs or not _FOREIGN.isdisjoint(_COMMAND.findall(latex))


SUPER_FIRST = "\ue000"
"""Mark at the beginning of a superscript that was written before the subscript."""

ARRAY = "\ue001"
"""Mark in the first cell of an ``array``, and of a ``multline``."""

_MOST_REPEATED = 100  # columns of an array

Replacement = str | Callable[[re.Match[str]], str]

_FONT_SIZE = re.compile(r"\\(?:tiny|scriptsize|footnotesize|small|normalsize|large|Large|LARGE|huge|Huge)(?![a-zA-Z])")
_REPEATED = re.compile(r"\*\s*\{(\d+)\}\s*\{([^{}]*)\}")
_DEFINES = re.compile(r"\\def|command|\\DeclareMath")


def _super_first(match: re.Match[str]) -> str:
    """Mark a superscript before a subscript: the operator tree nests them in the order of writing."""
    body = match[1][1:-1] if match[1][0] == "{" else match[1]
    return match[0] if body.startswith(SUPER_FIRST) else f"^{{{SUPER_FIRST}{body}}}"


_DERIVATION = re.compile(
    r"\\(begin|end)\s*\{(?:(align|gather|multline|eqnarray|flalign|split|dcases|aligned|gathered)|(align(?:ed)?at))\*?\}"
    r"(?(3)(?:\s*\{\d*\})?)(?:\s*\[[tcb]\])?"
)
_DERIVATIONS = {
    "gather": "gather*", "split": "aligned", "alignedat": "aligned", "aligned": "aligned",
    "gathered": "gathered", "dcases": "cases",
}  # fmt: skip


def _derivation(match: re.Match[str]) -> str:
    """Write a derivation in lines in an unnumbered form that math-core knows; mark the one that is broken anywhere."""
    if match[2] == "multline":
        return r"\begin{gather*}" + ARRAY if match[1] == "begin" else r"\end{gather*}"
    return rf"\{match[1]}{{{_DERIVATIONS.get(match[2] or match[3], 'align*')}}}"


def _array(match: re.Match[str]) -> str:
    """Mark an array, and expand its repeated columns: ``*{3}{c}`` is ``ccc``."""
    columns = _REPEATED.sub(lambda repeat: repeat[2] * min(int(repeat[1][:9]), _MOST_REPEATED), match[1])
    return rf"\begin{{array}}{{{columns}}}{ARRAY}"


def _math_in_text(match: re.Match[str]) -> str:
    r"""Move formulas out of text: ``\text{if $x$ is}`` becomes ``\text{if }x\text{ is}``."""
    if "$" not in match[1]:
        return match[0]
    parts = match[1].split("$")
    return "".join(part if i % 2 else rf"\text{{{part}}}" for i, part in enumerate(parts) if part)


_TEXT = re.compile(r"\\(?:text|mbox|textrm|textit|textbf)\s*\{([^{}]*)\}")


def math_apart(latex: str) -> str:
    r"""Move the formulas in texts, ``\text{if $x$ is}``, out of them."""
    return _TEXT.sub(_math_in_text, latex) if "$" in latex else latex


_ANGLES = re.compile(r"\\(left|right|[bB]igg?[lr])\s*([<>])")  # delimiters, as TeX reads them after these commands


_RULES: tuple[tuple[str, re.Pattern[str], Replacement], ...] = (
    # &lt; from the HTML of a page
    ("&", re.compile(r"&(?:[a-zA-Z]+|#\d+|#x[\da-fA-F]+);"), lambda match: f" {html.unescape(match[0])} "),
    ("\\qvar", re.compile(rf"\\qvar(?![a-zA-Z])\s*({_GROUP}|\\[a-zA-Z]+|[a-zA-Z0-9])"),
     lambda match: "".join([r"{\text{", WILDCARD, *filter(str.isalnum, match[1]), "}}"])),
    ("\\tag", re.compile(r"\\tag\*?\s*(?:\{[^{}]*\}|\S)"), ""),
    ("\\label", re.compile(r"\\label\s*\{[^{}]*\}"), ""),
    ("$", _TEXT, _math_in_text),
    ("$", re.compile(r"(?<!\\)\$"), ""),
    ("equation", re.compile(r"\\(?:begin|end)\s*\{equation\*?\}"), ""),
    # derivations in lines that math-core does not know or would number
    ("\\begin", _DERIVATION, _derivation),
    ("_", re.compile(r"(?<!')('+)\s*(?=_)"),
     lambda match: "^{" + SUPER_FIRST + r"\prime" * len(match[1]) + "}"),
    ("^", re.compile(rf"\^\s*({_GROUP}|\\[a-zA-Z]+|[^\s\\{{}}])\s*(?=_)"), _super_first),
    ("array", re.compile(r"\\begin\s*\{array\}\s*(?:\[\w?\]\s*)?\{((?:[^{}]|\{[^{}]*\})*)\}"), _array),
    ("ig", _ANGLES, lambda match: rf"\{match[1]}\{'l' if match[2] == '<' else 'r'}angle "),
    ("ig", re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])\s*(?:\{\s*(\\[a-zA-Z]+|\\?[^\sa-zA-Z{}])\s*\})?"),
     lambda match: f"{match[1] or ''} "),
    ("\\operatorname", re.compile(r"\\operatorname\*?\s*\{\s*(\\[a-zA-Z]+(?:\s*\{[^{}]*\})?)\s*\}"), r"{\1}"),
    ("\\ast", re.compile(r"\\ast(?![a-zA-Z])"), AST),
    ("\\not", re.compile(r"\\not\s*\\mid(?![a-zA-Z])"), NOT_MID),
    ("\\iff", re.compile(r"\\iff(?![a-zA-Z])"), IFF),
    ("\\dots", re.compile(r"\\dots[bmi](?![a-zA-Z])"), r"\\cdots "),
    ("\\dots", re.compile(r"\\dots[co](?![a-zA-Z])"), r"\\ldots "),
    ("\\mbox", re.compile(r"\\mbox(?![a-zA-Z])"), r"\\text"),
    ("\\", _FONT_SIZE, " "),
    ("#", re.compile(r"(?<!\\)#(?!\d)"), r"\\#{}"),
)  # fmt: skip


def prepare(latex: str) -> str:
    """Remove what HTML, web pages and typing habits add to LaTeX."""
    latex = known_commands(latex)
    for needle, pattern, replacement in _RULES:
        if needle in latex:
            latex = pattern.sub(replacement, latex)
    return latex


def definitions(formulas: Iterable[str]) -> str:
    r"""Collect the commands that the formulas of one post define.

    Args:
        formulas: LaTeX in the order of the post.

    Returns:
        Their ``\newcommand`` and ``\def``: the ``macros`` of the post's other formulas.
    """
    defining = (latex for latex in formulas if _DEFINES.search(latex))
    return "".join(latex[macro.start : macro.end] for latex in defining for macro in collected(latex).found)


_known = lru_cache(maxsize=16)(collected)  # the macros of a post, for each of its formulas


def expanded(latex: str, macros: str) -> str:
    """Expand the macros that a formula or its post defines.

    Raises:
        FormulaError: they write too much.
    """
    if not macros and not _DEFINES.search(latex):
        return latex
    try:
        return Expander(_known(macros), packages=False).formula(latex)
    except OverLimitError as error:
        raise FormulaError(str(error), latex) from error


_STRUCTURE = re.compile(r"\\(?:left|right|begin|end|middle)\b|\\.|[{}&]|\$", re.DOTALL)
_DANGLING = re.compile(r"(?:[\^_]|\\)\s*$")
_EMPTY_SCRIPT = re.compile(r"[\^_]\s*(?=[\^_}&]|$)")
_AND = re.compile(r"(?<!\\)&")
_TABLE = re.compile(r"\\begin\b|\\cr\b|matrix")


def repair(latex: str) -> str:
    r"""Repair faults that prevent a formula from being read: unpaired braces and fences, scripts without content."""
    text = _DANGLING.sub("", latex.strip())
    if not _TABLE.search(text):
        text = _AND.sub(" ", text)
    parts: list[str] = []
    stack: list[str] = []
    open_of = {"{": 0, r"\left": 0}  # how many of each are on the stack
    unmatched = 0  # closing fences that were never opened
    end = 0
    for match in _STRUCTURE.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        token = match[0]
        if token == "$":
            continue
        if token == "{" or token == r"\left":
            stack.append(token)
            open_of[token] += 1
        elif token == "}" or token == r"\right":
            opener = "{" if token == "}" else r"\left"
            if not open_of[opener]:
                if token == "}":
                    continue
                unmatched += 1
                parts.append(token)
                continue
            while (closed := stack.pop()) != opener:
                open_of[closed] -= 1
                parts.append("}" if closed == "{" else r"\right.")
            open_of[opener] -= 1
        parts.append(token)
    parts.append(text[end:])
    parts += ["}" if opener == "{" else r"\right." for opener in reversed(stack)]
    return _EMPTY_SCRIPT.sub("", r"\left." * unmatched + "".join(parts))


LONGEST = 200_000
"""Characters of a formula that is converted, with the definitions of its post; one of 1,000 is rare."""

_SHORT = 2_000  # characters; even work that grows with their square is some milliseconds
_SHALLOW = 200  # braces and commands that any thread's stack has room for; macOS gives 512 KB
_SECONDS = 1.0
_GROWTH = 100  # characters of MathML for each of LaTeX; real formulas have up to 40
_STACK = 512 << 20  # bytes of address space; memory is used only where the depth needs it
_APPLY = ("&ApplyFunction;", "\u2061")  # the one entity that it writes and XML does not know
_DEFINITION = re.compile(r"def(?![a-z])|command|\\let(?![a-z])|\\Declare")

_MANY = 12  # fences
_OPEN = "(\\[⁅⌈⌊⌜⌞⎰❨❪❬❮❰❲❴⟅⟦⟨⟪⟬⟮⦃⦅⦇⦉⦋⦍⦏⦑⦓⦕⦗⧘⧚⧼〈〈"
_OPENS = re.compile(rf"[{_OPEN}\\]")
_DELIMITER = r"\s*(?:\\[a-zA-Z]+|\\.|.)"
_FENCE = re.compile(
    rf"""(?P<mod>\\pmod(?![a-zA-Z]|\s*(?:\{{[^{{}}\\]*\}}|[a-zA-Z0-9])))
      |(?P<size>\\[bB]igg?)l(?={_DELIMITER})
      |\\(?:left|right|middle|[bB]igg?[rm]?)(?![a-zA-Z]){_DELIMITER}
      |\\(?:sqrt|x[a-z]+|\\(?=\s*\[[^\[\]]*\]))\s*\[|\\(?:begin|def|text\w*)\s*\{{[^{{}}]*\}}\s*\[?
      |(?P<open>[{_OPEN}]|\\\{{|\\l(?:paren|brack|brace|angle|floor|ceil|vert|Vert|group|moustache|lbracket|ang|Angle|Brace
        |langle|lparenthesis)(?![a-zA-Z])|\\(?:ulcorner|llcorner)(?![a-zA-Z]))
      |(?P<pair>\\(?:bra|ket|braket|pod)(?![a-zA-Z])(?P<bare>(?!\s*[\\{{a-zA-Z0-9]))?)|\\[^a-zA-Z]""",
    re.VERBOSE | re.DOTALL,
)
_BIG = r"\Bigg"
_SIZED = re.compile(r'<mo([^<>]*) minsize="2\.470em" maxsize="2\.470em">')  # of ``_BIG``
_STRETCHY = ' stretchy="true" symmetric="true"'

_PATIENCE = 3  # formulas of one text that may take too long
_OVER: ContextVar[list[str] | None] = ContextVar("formulas of a text that took too long", default=None)


@contextmanager
def one_text() -> Iterator[None]:
    """A context for the formulas of one text: after a few formulas that need too long, others like them are skipped."""
    if _OVER.get() is not None:
        yield
        return
    token = _OVER.set([])
    try:
        yield
    finally:
        _OVER.reset(token)


class _Local(threading.local):
    """One converter for each thread, since a converter serves one call at a time."""

    def __init__(self) -> None:
        self.converter = math_core.LatexToMathML(
            ignore_unknown_commands=True, fancy_error=False, allow_unreliable_rendering=True
        )


_LOCAL = _Local()


def to_mathml(latex: str) -> str:
    """Convert LaTeX to Presentation MathML."""
    if len(latex) > LONGEST:
        raise FormulaError(f"{len(latex):,} characters, more than the {LONGEST:,} that are converted", latex)
    defines = _DEFINITION.search(latex) is not None
    many = len(latex) > _MANY and has_many_fences(latex, 0 if defines else _MANY)
    levels = latex.count("{") + latex.count("\\")
    if not many and not defines and levels <= _SHALLOW and len(latex) <= _SHORT:
        return _convert(latex)
    over_limit = _OVER.get()
    if over_limit is not None and len(over_limit) >= _PATIENCE:
        message = f"it is not converted, since {_PATIENCE} others of its text took too long"
        raise FormulaError(message, latex, tried=False)
    try:
        written, error = _elsewhere(sized(latex) if many else latex)
    except OverLimitError as over:
        if over_limit is not None:
            over_limit.append(latex)
        raise FormulaError(f"it cannot be converted: {over.reason}", latex) from over
    if error:
        raise math_core.LatexError(error)
    if not many or _BIG in latex:
        return written
    return _SIZED.sub(lambda fence: f'<mo stretchy="false"{fence[1].replace(_STRETCHY, "")}>', written)


def _convert(latex: str) -> str:
    """Convert on the stack of this thread."""
    source: str = _LOCAL.converter.convert_with_local_state(latex, displaystyle=True)
    return source.replace(*_APPLY)


def convert_deep(latex: str) -> tuple[str, str]:
    """Convert on a thread with a large stack: return the MathML, and the error in the LaTeX."""
    made: list[tuple[str, str]] = []

    def run() -> None:
        try:
            made.append((_convert(latex), ""))
        except math_core.LatexError as error:
            made.append(("", str(error)))

    threading.stack_size(_STACK)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if not made or len(made[0][0]) > _GROWTH * max(len(latex), _SHORT):
        raise OverLimitError("its definitions expand to too much")
    return made[0]


_elsewhere = Worker(convert_deep, seconds=_SECONDS, memory=MEMORY)


def has_many_fences(latex: str, most: int = _MANY) -> bool:
    """Whether a formula may have too many fences for ``math-core`` to pair: more than ``most`` in its text."""
    if len(_OPENS.findall(latex)) <= _MANY:
        return False
    return sum(1 for fence in _FENCE.finditer(latex) if fence.lastgroup) > most


def sized(latex: str) -> str:
    r"""Write a size before each opening fence, and ``\bmod`` for ``\pmod``; a fence with a size is kept."""
    size = r"\big" if _BIG in latex else _BIG

    def written(match: re.Match[str]) -> str:
        if match["mod"]:
            return r"\bmod "
        if match["bare"] is not None:
            raise FormulaError(f"{match[0]} has no argument", latex, match.start())
        return match["size"] or (size + match[0] if match["open"] else match[0])

    return _FENCE.sub(written, latex)


def presentation(text: str, latex: str) -> tuple[str, bool]:
    """Convert LaTeX to Presentation MathML; return it and whether it was repaired."""
    if not text.strip():
        raise FormulaError("the formula is empty", latex)
    text = prepare(latex_of_unicode(mathml.NOT_XML.sub(" ", text)))
    try:
        return to_mathml(text), False
    except math_core.LatexError as error:
        first = error
    try:
        return to_mathml(repair(text)), True
    except math_core.LatexError:
        pass
    try:
        source = _other_converter(text)
    except OverLimitError:
        source = None
    if source is None:
        place, _, message = str(first).partition(": ")
        raise FormulaError(message or str(first), text, int(place) if place.isdecimal() else 0) from first
    return source, True


def other_mathml(text: str) -> str | None:
    """Convert with ``latex2mathml``; ``None`` when it refuses the formula."""
    import latex2mathml.converter  # few formulas need it

    try:
        source: str = latex2mathml.converter.convert(text)
    except Exception:  # it has no base class of errors and leaks errors of its parser
        return None
    return source


_other_converter = Worker(other_mathml, seconds=1.0, memory=MEMORY)
