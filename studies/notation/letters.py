r"""Other letters for the variables of a text, the same throughout it.

::

    Let $f(x) = e^{ix}$, and $\int f\,dx$.    ──▶    Let $h(k) = e^{ik}$, and $\int h\,dk$.

Letters are exchanged within an alphabet: small and capital Latin, small Greek. A letter that the text uses with a fixed
meaning keeps its name: d of differentials, e of exponentials, i of complex numbers, π. No variable gets one of these.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from string import ascii_lowercase, ascii_uppercase

from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.posts import PLACEHOLDER

FORMULA = re.compile(r"(?<!\\)(\$\$?)((?:[^$\\]|\\.)+)\1", re.DOTALL)
"""A formula of a text, between dollars."""

TOKEN = re.compile(
    r"\\(?:begin|end)\s*\{[^}]*\}"
    r"|\\(?:text\w*|mbox|hbox|operatorname\*?|label|tag|ref|math(?:rm|bb|bf|sf)|bm|boldsymbol|[hv]space\*?|color)\s*\{[^{}]*\}"
    r"|\\[A-Za-z]+|\\.|\s+|.",
    re.DOTALL,
)
"""A piece of LaTeX; the argument of a command that is no variable belongs to its command."""

_GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi chi psi omega"
_ALPHABETS = (tuple(ascii_lowercase), tuple(ascii_uppercase), tuple("\\" + name for name in _GREEK.split(" ")))
_FIXED = {
    "d": re.compile(r"\\(?:int|oint|iint|iiint)(?![a-z])|\\d?frac\s*\{?\s*d\b|(?<![A-Za-z\\])d\s*/\s*d"),
    "e": re.compile(r"(?<![A-Za-z\\])e\s*\^|\\(?:ln|log)\s*\(?\s*e(?![A-Za-z])"),
    "i": re.compile(
        r"(?<![A-Za-z\\])e\s*\^\s*\{[^{}]*i|(?<![A-Za-z\\])i\s*\^\s*\{?2|\\sqrt\s*\{\s*-|[+-]\s*\w?\s*i\s*(?:$|[)=.,])"
    ),
    r"\pi": re.compile(r"\\pi(?![A-Za-z])(?!\s*[(_:^])"),
}
"""What shows that a letter has its fixed meaning, in any formula of the text."""


def formulas_of(text: str) -> list[str]:
    """List the formulas of a text, as LaTeX without dollars."""
    return [match[2] for match in FORMULA.finditer(text)]


def letters_of(latex: str) -> Iterator[str]:
    """Yield the letters of a formula, each as often as it has them."""
    known = {letter for alphabet in _ALPHABETS for letter in alphabet}
    return (token for token in TOKEN.findall(latex) if token in known)


def fixed_letters(text: str) -> frozenset[str]:
    """Return the letters with a fixed meaning in a text."""
    formulas = formulas_of(text)
    return frozenset(letter for letter, sign in _FIXED.items() if any(map(sign.search, formulas)))


def renaming(text: str, seed: str) -> dict[str, str]:
    """Draw another letter for each variable of a text, no two the same."""
    draw, fixed = random.Random(seed), fixed_letters(text)
    used = dict.fromkeys(letter for latex in formulas_of(text) for letter in letters_of(latex))
    names = dict[str, str]()
    for alphabet in _ALPHABETS:
        own = [letter for letter in alphabet if letter in used and letter not in fixed]
        others = [letter for letter in draw.sample(alphabet, len(alphabet)) if letter not in _FIXED]
        for letter in own:  # the first that is another one; where none is left it keeps its name
            new = next((other for other in others if other != letter), letter)
            names[letter] = new
            others = [other for other in others if other != new]
    return names


def renamed(text: str, seed: str) -> str:
    """Write a text with other letters for its variables.

    Args:
        text: formulas are between dollars.
        seed: another one gives other letters.
    """
    names = renaming(text, seed)

    def of_formula(match: re.Match[str]) -> str:
        dollars = match[1]
        return f"{dollars}{with_letters(match[2], names)}{dollars}"

    return FORMULA.sub(of_formula, text)


_CANONICAL = (tuple("xyzabcuvwpqrstmnkljghfoied"), tuple("ABCDEFGHKLMNPQRSTUVWXYZIJO"))
"""Names of small Latin and Greek letters, and of capitals, in the order in which they are given."""


def canonical(text: str) -> str:
    """Name the letters of each formula of a text x, y, z, … and A, B, … in the order of their first occurrence."""

    def of_formula(match: re.Match[str]) -> str:
        small, capital = map(iter, _CANONICAL)
        names = dict[str, str]()
        for letter in letters_of(match[2]):
            if letter not in names and letter != r"\pi":
                names[letter] = next(capital if letter in _ALPHABETS[1] else small, letter)
        return f"{match[1]}{with_letters(match[2], names)}{match[1]}"

    return FORMULA.sub(of_formula, text)


def renamed_graph(graph: MathAMRGraph) -> MathAMRGraph:
    """Return a graph with other letters in its LaTeX, drawn by its id; its trees keep theirs."""
    text = PLACEHOLDER.sub(lambda formula: f"${graph.latex[int(formula[1])]}$", graph.text)
    names = renaming(text, graph.id)
    return replace(graph, latex=tuple(with_letters(latex, names) for latex in graph.latex))


def with_letters(latex: str, names: dict[str, str]) -> str:
    """Write a formula with other letters."""
    tokens, made = TOKEN.findall(latex), list[str]()
    for token in tokens:
        name = names.get(token, token)
        if made and made[-1].startswith("\\") and made[-1][-1:].isalpha() and name[:1].isalpha():
            made.append(" ")  # \alpha followed by a letter, where there was none
        made.append(name)
    return "".join(made)
