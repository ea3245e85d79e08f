r"""How folders of notes are read: the posts, statements, formulas and faults of each format.

    python benchmarks/reading.py FOLDER…

A formula is *partial* if a part of it is not understood, *unreadable* if no tree can be made of it. A scan of each file
that shares no code with the readers also finds the formulas between delimiters, except in comments, code, drawings and
definitions; a file has *lost* as many as the scan finds more than the reader, which may have put some into the post of
another file. The clock runs while files are read as for ``mathamr build``, but not while trees are made of formulas.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr._common.feedback import Problems, gathered, report_problem
from pyterrier_mathamr.engine.sources import counts_of
from pyterrier_mathamr.posts import DocumentError, ReadingOptions, document_post, source_entries
from pyterrier_mathamr.posts.files import SUFFIXES

CAUSES = 20
"""Causes of faults that are printed, the most frequent first."""

_COUNTED = ("files", "posts", "formulas", "unknown commands", "partial", "unreadable", "lost", "seconds a MB")
_UNKNOWN = re.compile(r"the command (\\\S+) is unknown")


class FileReading(NamedTuple):
    """How a file was read.

    Attributes:
        name: its path in the folder.
        form: its format.
        counts: ``posts``, ``formulas``, ``partial``, ``unreadable``, and ``lost`` against the count by delimiters.
        kinds: the posts of each kind, such as ``theorem`` or ``section``.
        unknown: commands without a meaning, in formulas and in text.
        seconds: to read it.
        size: its bytes.
    """

    name: str
    form: str
    counts: Counter[str]
    kinds: Counter[str]
    unknown: frozenset[str]
    seconds: float
    size: int


def readings(folder: Path, problems: Problems) -> list[FileReading]:
    """Read the files of a folder, whose problems are gathered in ``problems``."""
    files: list[FileReading] = []
    missing: list[Counter[str]] = []  # formulas of the scan that the reader does not have as they are, by file
    others: list[Counter[str]] = []  # formulas of the reader that the scan does not have
    start = time.perf_counter()
    for entry in source_entries(folder, ReadingOptions(bare_formulas=False)):
        if isinstance(entry, DocumentError):
            report_problem(entry.place, entry.reason, "")
            continue
        before = len(problems)
        documents = list(entry.documents())
        seconds = time.perf_counter() - start
        counts, kinds, read = Counter[str](), Counter[str](), Counter[str]()
        for document in documents:
            if isinstance(document, DocumentError):
                report_problem(document.place, document.reason, "")
            else:
                counts += counts_of(document)
                kinds[document.origin.kind] += 1
                read.update(_squeezed(of.latex) for of in document_post(document.record()).formulas)
        path = Path(entry.place)
        form = SUFFIXES[path.suffix.lower()]
        scanned = Counter(map(_squeezed, delimited(form, path.read_text(errors="replace"))))
        missing.append(scanned - read)
        others.append(read - scanned)
        found = (_UNKNOWN.fullmatch(problem.what) for problem in islice(problems, before, None))
        unknown = frozenset(command[1] for command in found if command)
        files.append(FileReading(entry.key, form, counts, kinds, unknown, seconds, path.stat().st_size))
        start = time.perf_counter()
    elsewhere = sum(others, Counter[str]())
    for file, unread, other in zip(files, missing, others, strict=True):
        moved = unread & elsewhere
        elsewhere -= moved
        file.counts["lost"] = max(0, (unread - moved).total() - other.total())
    return files


def _squeezed(latex: str) -> str:
    return "".join(latex.split())


_ENVIRONMENT = r"(?:equation|align|alignat|gather|multline|eqnarray|flalign|displaymath|math|dmath)\*?"
_OPENER = re.compile(rf"\\begin\{{({_ENVIRONMENT})\}}|\\[(\[]|\$\$?|\\.", re.DOTALL)
_CLOSERS = {r"\(": r"\)", r"\[": r"\]", "$": "$", "$$": "$$"}
_DEFINES = re.compile(r"\s*\\(?:newcommand|def|DeclareMathOperator)(?![A-Za-z])")
_MARKED = {
    "latex": r"""\A.*?\\begin\{document\} | \\(?:end\{document\}|endinput(?![A-Za-z])).*\Z | (?<!\\)%[^\n]*
        | \\verb\*?([^\w\s*])[^\n]*?\1 | \\iffalse.*?\\fi(?![a-z]) | \\Axiom.*?\\DisplayProof
        | \\begin\{((?:verbatim|lstlisting|minted|comment|tikzpicture|tikzcd|CD|asy|algorithmic|prooftree)\*?)\}
            .*?\\end\{\2\}
        | ^[ \t]*\\(?:(?:re)?newcommand|providecommand|[gex]?def|let|new\w+|New\w+|Declare\w+)(?![A-Za-z])[^\n]*""",
    "markdown": r"""\A---\n.*?\n---$ | %%.*?%% | <!--.*?--> | \{math\}`(?P<role>[^`]+)` | \$`(?P<tick>[^`]+)`\$
        | ^[ >]*(`{3,}|~{3,}|:{3,})[ \t]*\{?math\}?[ \t]*$(?P<block>.*?)^[ >]*\3[ \t]*$
        | ^[ >]*(`{3,}|~{3,})[^\n]*\n.*?^[ >]*\5[ \t]*$
        | (?<!`)(`+)(?!`)[^\n]*?(?<!`)\6(?!`)""",
    "rst": r"""``[^\n]+?``+ | :math:`(?P<role>[^`]+)`
        | ^([ \t]*)\.\.[ ]math::(?P<block>[^\n]*(?:\n(?:\2[ \t]+[^\n]*|[ \t]*$))*)
        | ^([ \t]*)(?:(?!\.\.[ ])\S[^\n]*::$|\.\.[ ](?:code|sourcecode)[^\n]*)(?:\n(?:\4[ \t]+[^\n]*|[ \t]*$))*""",
    "org": r"""^[ \t]*\#\+(?i:begin_(src|example|comment|export).*?^[ \t]*\#\+end_\1) | ^[ \t]*\#[ ][^\n]*
        | (?<!\w)([=~])\S[^\n]*?\2(?!\w)""",
    "html": r"""<(pre|code|style|script(?![^>]*math/tex))\b.*?</\1[^>]*> | <!--.*?-->
        | (?P<mathml><math\b.*?</math>) | <script[^>]*math/tex[^>]*>(?P<script>.*?)</script>
        | <span[ ]class="math[^>]*>(?P<span>.*?)</span>""",
}
"""For each format what is no formula, and, in groups with a name, what the markup marks as one."""
_DIRECTIVE = re.compile(r"^([ >]*)(`{3,}|~{3,})\{(?!math|code|r\b|python|julia)[^\n]*\n(.*?)^\1\2[ \t]*$", re.S | re.M)
_OPTION = re.compile(r"^[ \t]*:[a-z-]+:[^\n]*", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def delimited(form: str, source: str) -> Iterator[str]:
    """Find the formulas between delimiters in a file of a format."""
    if form == "notebook":
        cells = json.loads(source)["cells"]
        form, source = "markdown", "\n\n".join("".join(of["source"]) for of in cells if of["cell_type"] == "markdown")
    if form == "markdown":  # text in directives of MyST
        while (shown := _DIRECTIVE.sub(r"\3", source)) != source:
            source = shown
    marked = re.compile(_MARKED.get(form, "(?!)"), re.DOTALL | re.MULTILINE | re.VERBOSE)
    for found in marked.finditer(source):
        for part in _BLANK_LINE.split(_OPTION.sub("", "".join(filter(None, found.groupdict().values())))):
            yield from [part] * bool(part.strip())
    yield from _between(marked.sub("", source), loose=form == "latex")


def _between(text: str, *, loose: bool) -> Iterator[str]:
    """Find formulas between delimiters; within single dollars no blank comes first or last, unless they are loose."""
    at = 0
    while opener := _OPENER.search(text, at):
        at = opener.end()
        closer = rf"\end{{{opener[1]}}}" if opener[1] else _CLOSERS.get(opener[0], "")
        end = _end(text, at, closer, loose) if closer else -1
        if end >= 0:
            after = end + len(closer)
            if text[at:end].strip() and not _DEFINES.match(text, at):
                yield text[opener.start() : after] if opener[1] else text[at:end]
            at = after


def _end(text: str, at: int, closer: str, loose: bool) -> int:
    """Return where the closer of a formula is that is in none of its braces, or -1."""
    if closer == "$" and not loose and text[at : at + 1].isspace():
        return -1
    depth = 0
    for stop in _stops(closer, loose).finditer(text, at):
        if stop[0] == closer and depth <= 0:
            return stop.start()
        if stop[0].isspace():
            return -1
        depth += {"{": 1, "}": -1}.get(stop[0], 0)
    return -1


@cache
def _stops(closer: str, loose: bool) -> re.Pattern[str]:
    """Match a closer and braces; for a dollar also the end of a paragraph. A dollar before a digit is an amount."""
    stops = [re.escape(closer), r"\\.", r"[{}]"]
    if closer == "$":
        stops = [r"\$" if loose else r"(?<![\s$])\$(?![\d$])", *stops[1:], _BLANK_LINE.pattern]
    return re.compile("|".join(stops), re.DOTALL)


def table(found: Iterable[FileReading]) -> str:
    """Write the counts of each format in a column, and of all in the last one."""
    columns: dict[str, list[FileReading]] = {}
    for file in found:
        columns.setdefault(file.form, []).append(file)
    columns = dict(sorted(columns.items())) | {"all": [file for files in columns.values() for file in files]}
    kinds = sum((file.kinds for file in columns["all"]), Counter[str]())
    names = [*_COUNTED[:2], *(f"  {kind}" for kind, _ in kinds.most_common()), *_COUNTED[2:]]
    rows = [["", *columns], *([name, *(_cell(name, files) for files in columns.values())] for name in names)]
    return "\n".join(f"{name:18s}" + "".join(f"{cell:>11s}" for cell in cells) for name, *cells in rows)


def _cell(name: str, files: list[FileReading]) -> str:
    if name == "files":
        return f"{len(files):,}"
    if name == "unknown commands":
        return f"{len(frozenset().union(*(file.unknown for file in files))):,}"
    if name == "seconds a MB":
        return f"{sum(file.seconds for file in files) / max(sum(file.size for file in files), 1) * 1e6:.2f}"
    return f"{sum((file.counts + file.kinds)[name.strip()] for file in files):,}"


def main() -> None:
    """Read the command line and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    folders = parser.parse_args().folders
    with gathered() as problems:
        found = [file for folder in folders for file in readings(folder, problems)]
    print(table(found))
    lost = [file for file in found if file.counts["lost"]]
    for file in sorted(lost, key=lambda file: -file.counts["lost"])[:CAUSES]:
        print(f"\nlost in {file.name}: {file.counts['lost']:,}", end="")
    print("\n", *problems.causes()[:CAUSES], sep="\n")


if __name__ == "__main__":
    main()
