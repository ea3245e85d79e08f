"""Read documents and formulas that are damaged or hostile, and print the outcomes.

::

    python benchmarks/fuzzing.py --posts ../shared/arqmath-mini            60,000 documents and formulas, and growth
    python benchmarks/fuzzing.py --tries 5000 --families 0                 a part, of the posts of the sample

The documents are real posts, as Markdown, LaTeX, HTML, MathML, plain text, queries and formulas, with pieces
removed, doubled, exchanged or replaced by hostile ones; and families of texts that repeat such a piece. Each is read
in a process with a limit of time. The columns ``unnamed`` and ``aborted`` (it took too long, or crashed) must be 0, or
the exit code is 1. Growth is the ratio of the CPU time at 1 MB to that at 256 KB, 4 if linear.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.running.worker import MEMORY, OverLimitError, Worker
from pyterrier_mathamr.arqmath import read_dump
from pyterrier_mathamr.arqmath.collection import SAMPLE
from pyterrier_mathamr.formula import (
    opt_from_latex,
    opt_from_mathml,
    slt_from_latex,
    slt_from_mathml,
)
from pyterrier_mathamr.formula.display.typesetting import formula_html
from pyterrier_mathamr.posts import DocumentError, markdown, plain_text, post_from_any, post_from_html, read_posts

SECONDS = 90
"""CPU time after which reading counts as aborted: more than a reader's own limit."""

FORMS = {"Markdown": "markdown", "LaTeX": "latex", "HTML": "html", "plain": "text"}
KINDS = (*FORMS, "MathML", "query", "formula")
SIZES = (64_000, 256_000, 1_000_000)

FAMILIES = [  # before, repeated, after
    ("# a", " ", "b"), ("---\ntitle: a", " ", "b\n---\nx"), ("\\section", " ", "x"), ("\\title", " ", "x"),
    ("\\newcommand", " ", "x"), ("\\def\\a", "{", ""), ("", "\\begin{comment}", ""),
    ("", "\\begin{itemize}\\item a ", ""), ("", "{", ""), ("", "(", ""), ("", "[", ""), ("", "![", ""),
    ("", "](", ""), ("", "[a](", ""), ("", "[[]", ""), ("", "*a ", ""), ("", "a** ", ""), ("", "_a", ""),
    ("", "*_", ""), ("", "<", ""), ("", "`", ""), ("", "` ", ""), ("", "```\n", "x"), ("", "> ", "a"),
    ("", "- ", "a"), ("", "- a\n", ""), ("", "| a ", "|\n|-|\n"), ("", "|-", "|\n" * 50), ("", "[a]: x\n\n", "[a]"),
    ("", "a", ""), ("", "a ", ""), ("", "a\n", ""), ("", "\n", "a"), ("", " ", "a"), ("a ", "\\frac{e^{-1/x^{2}", ""),
    ("", "\\href{x}_{", ""), ("", "a \\sqrt[b", ""), ("", "x_{", ""), ("", "x^(", ""), ("", "\\", ""), ("", "$", ""),
    ("", "$$a ", ""), ("", "$a ", ""), ("", "${", ""), ("", "\\(", ""), ("", "\\[", ""), ("", "\\begin{align}", ""),
    ("$", "\\left(", "$"), ("", "$(", ""), ("", "√(", ""), ("$", "√(", "$"), ("", "f(x)+", "1"), ("", "∑ ", ""),
    ("", "FORMULA_1", ""), ("", "a. ", ""), ("", "...", "a"), ("", "&lt;", ""), ("", "&#xe005;0", ""),
    ("", "<p>", ""), ("", "<a ", ""), ("", "<!--", ""), ("", "<span class='math-container'>", ""), ("", "<code>", ""),
    ("<math>", "<mrow>", ""), ("", "<math><msup><mi>x</mi><mn>2</mn></msup></math>", ""), ("", "<script>", ""),
    ("", "\\newcommand{\\a}{b}", ""), ("\\newcommand{\\a}[1]{#1}", "\\a{", ""), ("", "\\emph{a} ", ""),
    ("", "\\verb", ""), ("", "\\cite[", ""), ("", "%\n", ""), ("", "a%", ""), ("", "\\unknown ", ""), ("", "é", ""),
    ("", "a@", ""),
]  # fmt: skip
WORDS = r"""
\frac \sqrt[ \begin{array}{ \end{array} \left( \right. \\ & % # ~ ' \text{ \def\a{\a\a} \let\a\b \input{x} &#0; &#xD800;
&#99999999999; <![CDATA[ ]]> <?xml <!DOCTYPE x[<!ENTITY a 'b'>]> &a; </math> </p> | --- ~~~ ⁄ ² ½"""
PIECES = [
    *dict.fromkeys(piece for family in FAMILIES for piece in family),
    *WORDS.split(),
    *"\x00\x0b\x1b\x85\u2028\ue000\ue005\ue006\ue007\ufeff\ud800\U0010ffff",
]


def attempt(kind: str, text: str) -> tuple[str, float]:
    """Read a text as each kind: whether it was read, refused by name or raised another error, and seconds."""
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    try:
        outcome = _attempt(kind, text)
    except MathAMRError:
        outcome = "refused"
    except Exception as error:
        outcome = f"{type(error).__name__}: {error!s:.100}"
    return outcome, time.perf_counter() - start


def attempt_here(kind: str, text: str) -> tuple[str, float]:
    """Read a text in this process; the seconds are CPU time."""
    markdown._guarded = markdown.rendered  # type: ignore[assignment]
    start = time.process_time()
    outcome, _ = attempt(kind, text)
    return outcome, time.process_time() - start


def _attempt(kind: str, text: str) -> str:
    if kind == "query":
        post_from_any(text, bare_formulas=True)
    elif kind == "formula":
        formula_html(text)
        for read in (slt_from_latex, opt_from_latex):
            read(text)
    elif kind == "MathML":
        for read in (slt_from_mathml, opt_from_mathml):
            read(text)
    else:
        ((_, found),) = read_posts([{"docno": "a", FORMS[kind]: text}])
        if isinstance(found, DocumentError):
            return str(found) if "it cannot be read (" in str(found) else "refused"
        again = post_from_html(found.html, found.title)
        list(again.sentences)
    return "read"


def real_posts(folder: Path, count: int) -> list[dict[str, str]]:
    """Read posts in each form."""
    bodies = islice((post.body for post in read_dump(folder / "Posts.V1.3.xml")), count)
    posts = []
    for body in bodies:
        post = post_from_html(body)
        text = plain_text(post)
        latex = next((formula.latex for formula in post.formulas), "x^2")
        document = f"\\title{{{text[:30]}}}\\begin{{document}}\n\\section{{A}}{text}\n\\end{{document}}"
        markdown = f"# {text[:30]}\n\n- {text}\n\n> [a](b) *{text[:99]}*\n"
        texts = dict.fromkeys(KINDS, text)
        texts |= {
            "HTML": body,
            "LaTeX": document,
            "Markdown": markdown,
            "formula": latex,
            "MathML": formula_html(latex),
        }
        posts.append(texts)
    return posts


def mutated(chance: random.Random, text: str, others: str) -> str:
    """Damage a text in one to five places."""
    for _ in range(chance.randint(1, 5)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.choice((1, 3, 10, 100)))
        piece = chance.choice(PIECES)
        change = chance.randrange(7)
        if change == 0:
            text = text[:start] + text[end:]
        elif change == 1:
            text = text[:end] + text[start:end] * chance.randint(1, 30) + text[end:]
        elif change == 2:
            text = text[:start] + piece + text[end:]
        elif change == 3:
            text = text[:start] + piece * chance.choice((1, 2, 20, 300)) + text[start:]
        elif change == 4:
            text = text[:start]
        elif change == 5:
            place = chance.randint(0, len(others))
            text = text[:start] + others[place : place + 200] + text[end:]
        else:
            text = text[:start] + "".join(chance.choices(PIECES, k=chance.randint(1, 12))) + text[start:]
    return text


def texts(posts: list[dict[str, str]], tries: int, seed: int) -> Iterator[tuple[str, str]]:
    """Make damaged texts, each with its kind; every tenth is of a family."""
    chance = random.Random(seed)
    for i in range(tries):
        kind = KINDS[i % len(KINDS)]
        if chance.random() < 0.1:
            before, repeated, after = chance.choice(FAMILIES)
            yield kind, before + repeated * (chance.choice((10, 300, 4000)) // len(repeated)) + after
        else:
            other = chance.choice(posts)[chance.choice(KINDS)]
            yield kind, mutated(chance, chance.choice(posts)[kind], other)


class Tally:
    """The outcomes of the texts of a kind."""

    def __init__(self) -> None:
        self.tried = self.refused = 0
        self.unnamed: list[str] = []
        self.aborted: list[str] = []
        self.slowest = 0.0

    def add(self, outcome: str, seconds: float, text: str) -> None:
        """Count one."""
        self.tried += 1
        self.slowest = max(self.slowest, seconds)
        if outcome == "refused":
            self.refused += 1
        elif outcome == "aborted":
            self.aborted.append(f"{text[:200]!r}")
        elif outcome != "read":
            self.unnamed.append(f"{outcome}: {text[:200]!r}")


def fuzz(posts: list[dict[str, str]], tries: int, seed: int, seconds: float = SECONDS) -> dict[str, Tally]:
    """Read damaged texts."""
    guarded = Worker(attempt, seconds=seconds, memory=MEMORY)
    tallies = {kind: Tally() for kind in KINDS}
    for kind, text in texts(posts, tries, seed):
        tallies[kind].add(*_tried(guarded, kind, text), text)
    return tallies


def _tried(guarded: Worker[[str, str], tuple[str, float]], kind: str, text: str) -> tuple[str, float]:
    start = time.perf_counter()
    try:
        return guarded(kind, text)
    except OverLimitError:
        return "aborted", time.perf_counter() - start


def table(tallies: dict[str, Tally]) -> str:
    """Return a Markdown table: a row for each kind."""
    lines = ["| kind | tried | unnamed | aborted | refused by name | slowest, s |", "|---|" + "---:|" * 5]
    for kind, of in tallies.items():
        counts = f"{of.tried:,} | {len(of.unnamed)} | {len(of.aborted)} | {of.refused:,} | {of.slowest:.2f}"
        lines.append(f"| {kind} | {counts} |")
    total = [sum(column) for column in zip(*map(_counts, tallies.values()), strict=True)]
    cells = " | ".join(f"{count:,}" for count in total)
    return "\n".join([*lines, f"| all | {cells} | {max(of.slowest for of in tallies.values()):.2f} |"])


def _counts(of: Tally) -> tuple[int, ...]:
    return of.tried, len(of.unnamed), len(of.aborted), of.refused


def growth(kinds: list[str], families: int) -> tuple[str, list[str]]:
    """Measure families as they grow: a Markdown table of the slowest, and the aborted ones."""
    guarded = Worker(attempt_here, seconds=SECONDS, memory=MEMORY)
    rows, faults = [], []
    for kind in kinds:
        for before, repeated, after in FAMILIES[:families]:
            times = []
            for size in SIZES:
                text = before + repeated * (size // len(repeated)) + after
                outcome, seconds = _tried(guarded, kind, text)
                times.append(seconds)
                if outcome not in ("read", "refused"):
                    faults.append(f"{kind}, {before!r} + {repeated!r} * n, {size:,} characters: {outcome}")
                    break
            name = f"`{before!r} + {repeated!r}·n + {after[:9]!r}`".replace("|", "\\|")
            ratio = times[-1] / max(times[-2], 1e-3) if len(times) > 1 else float("nan")
            cells = " | ".join(f"{seconds:.2f}" for seconds in times)
            rows.append((times[-1], f"| {kind} | {name} | {outcome} | {cells} | {ratio:.1f} |"))
    rows.sort(reverse=True)
    head = [
        "| kind | family | outcome | 64 KB, s | 256 KB, s | 1 MB, s | 1 MB to 256 KB |",
        "|---|---|---|" + "---:|" * 4,
    ]
    return "\n".join([*head, *(row for _, row in rows)]), faults


def main() -> None:
    """Read all, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--posts", type=Path, default=SAMPLE, help="a folder with Posts.V1.3.xml; by default the bundled sample"
    )
    parser.add_argument("--tries", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", type=int, default=len(FAMILIES), help="so many of them; 0 for no growth")
    parser.add_argument("--kinds", nargs="+", default=list(FORMS), help="kinds of text to measure growth for")
    options = parser.parse_args()
    tallies = fuzz(real_posts(options.posts, 2000), options.tries, options.seed)
    print(table(tallies), flush=True)
    faults = [f"{kind}: {fault}" for kind, of in tallies.items() for fault in of.unnamed + of.aborted]
    if options.families:
        rows, slow = growth(options.kinds, options.families)
        print(f"\n{rows}")
        faults += slow
    print("\n".join(faults), file=sys.stderr)
    sys.exit(bool(faults))


if __name__ == "__main__":
    from fuzzing import main as run  # the child of a guarded call imports this module by its name

    run()
