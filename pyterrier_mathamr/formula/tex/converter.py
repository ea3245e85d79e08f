r"""LaTeX to MathML with ``math-core``, and the repair of LaTeX that it refuses.

``math-core`` recurses over depth in native code (1 to 2 KB a level), where an overflow ends the process. Each level
takes a brace or a command; a formula with many of them is converted on a thread with a large enough stack.
"""

from __future__ import annotations

import re
import threading

import math_core

from pyterrier_mathamr.formula.errors import FormulaError

_STRUCTURE = re.compile(r"\\(?:left|right|begin|end|middle)\b|\\.|[{}&]|\$", re.DOTALL)
_DANGLING = re.compile(r"(?:[\^_]|\\)\s*$")
_EMPTY_SCRIPT = re.compile(r"[\^_]\s*(?=[\^_}&]|$)")
_AND = re.compile(r"(?<!\\)&")
_TABLE = re.compile(r"\\begin\b|\\cr\b|matrix")


def repair(latex: str) -> str:
    r"""Repair what keeps a formula from being read: unpaired braces and fences, scripts without content.

    An unclosed ``{`` is closed at the end, a ``}`` too many is dropped, ``\left`` and ``\right`` get an invisible
    partner, a ``&`` outside a table is dropped.
    """
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


_SHALLOW = 200  # braces and commands that any thread's stack has room for; macOS gives 512 KB
_MOST = 100_000
_STACK = 512 << 20  # bytes of address space; memory is used only where the depth needs it
_APPLY = ("&ApplyFunction;", "\u2061")  # the one entity that it writes and XML does not know


class _Local(threading.local):
    """One converter for each thread, since a converter serves one call at a time."""

    def __init__(self) -> None:
        self.converter = math_core.LatexToMathML(
            ignore_unknown_commands=True, fancy_error=False, allow_unreliable_rendering=True
        )


_LOCAL = _Local()
_STARTING = threading.Lock()


def to_mathml(latex: str) -> str:
    """Convert LaTeX to Presentation MathML.

    Raises:
        math_core.LatexError: ``math-core`` does not accept the LaTeX.
        FormulaError: it has more braces and commands than any formula.
    """
    levels = latex.count("{") + latex.count("\\")
    if levels <= _SHALLOW:
        return _convert(latex)
    if levels > _MOST:
        raise FormulaError(f"{levels:,} braces and commands, more than the {_MOST:,} of the longest formula", latex)
    return _on_large_stack(latex)


def _convert(latex: str) -> str:
    """Convert on the stack of this thread."""
    source: str = _LOCAL.converter.convert_with_local_state(latex, displaystyle=True)
    return source.replace(*_APPLY)


def _on_large_stack(latex: str) -> str:
    """Convert on a thread of its own with a large stack."""
    made: list[str] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            made.append(_convert(latex))
        except Exception as error:  # raised again in the calling thread
            failed.append(error)

    with _STARTING:  # the stack size is a setting of the process
        usual = threading.stack_size(_STACK)
        try:
            thread = threading.Thread(target=run)
            thread.start()
        except RuntimeError as error:
            raise FormulaError("no memory for the stack of so deep a formula", latex) from error
        finally:
            threading.stack_size(usual)
    thread.join()
    if failed:
        raise failed[0]
    return made[0]
