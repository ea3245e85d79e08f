r"""LaTeX to its tokens in one spelling, without layout: what the words of sparse and of dense retrieval begin with."""

from __future__ import annotations

import re
import unicodedata

from .symbols import COMMAND_ALIASES, LAYOUT

TEXT = re.compile(r"\\(?:text(?:rm|bf|it|sf|tt|normal|up)?|mbox|hbox)\s*\{([^{}]*)\}")
r"""Words in a formula: ``\text{if}``; group 1 has the words."""

NUMBER = re.compile(r"\d+(?:\.\d+)?")
"""A number as one token."""

_TOKEN = re.compile(rf"\\[a-zA-Z]+|\\[^a-zA-Z]|{NUMBER.pattern}|[^\s]")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{[a-zA-Z*]*\}(?:\s*\{[lcr|\s]*\})?")
_OPERATOR = re.compile(r"\\(?:operatorname\*?|mathrm|mathop)\s*\{\s*(?:\\mathrm\s*\{\s*)?([a-zA-Z]{2,})\s*(?:\}\s*)?\}")
_PRIMES = re.compile(r"'+")


def lex_latex(latex: str, *, braces: bool = False) -> list[str]:
    r"""Cut a formula into its LaTeX tokens, each in one of its spellings, without what only lays out."""
    latex = _ENVIRONMENT.sub(" ", unicodedata.normalize("NFKC", latex))
    form = "^{{{}}}" if braces else "^{}"
    latex = _PRIMES.sub(lambda marks: form.format(r"\prime" * len(marks.group())), latex)
    latex = _OPERATOR.sub(r"\\\1 ", latex)
    kept = LAYOUT - {"{", "}"} if braces else LAYOUT
    return [COMMAND_ALIASES.get(token, token) for token in _TOKEN.findall(latex) if token not in kept]
