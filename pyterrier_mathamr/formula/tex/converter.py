r"""LaTeX to MathML with ``math-core``, safely for any text.

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

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import math_core

from pyterrier_mathamr._common.running.worker import MEMORY, OverLimitError, Worker
from pyterrier_mathamr.formula import mathml
from pyterrier_mathamr.formula.tree import FormulaError
from pyterrier_mathamr.posts import latex_of_unicode

from .source import prepare

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
