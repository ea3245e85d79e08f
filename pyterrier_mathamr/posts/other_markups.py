r"""Notebooks, reStructuredText and Org as Markdown, line by line, so that one splitter and one reader serve all.

::

    .ipynb   the cells of Markdown, without code and output; a cell without a heading is a piece, ``#cell-a1b2``
    .rst     underlined headings, ``:math:`x``` ▶ ``$x$``, ``.. math::`` ▶ ``$$``, ``.. prf:theorem::`` ▶ ``:::``
    .org     ``* heading`` ▶ ``# heading``, ``#+begin_theorem`` ▶ ``:::``, ``#+begin_src`` ▶ a fence

Only content that a search reads is translated: headings, formulas, lists, code, links and blocks. Each line keeps its
number in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import count

from pyterrier_mathamr._common.records import parse_json

from .markdown import ADMONITIONS, Notes, display_marks, fence_around, notes_of
from .post import DocumentError
from .statements import kind_of, lead_of

_DEEPEST_HEADING = 6
_SMALL_CELL = 100  # characters, below which a cell belongs to the one before
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?!\d)")


class Lines(list[tuple[str, int]]):
    """Lines of Markdown with their numbers in the file."""

    def notes(self, title: str = "", date: str = "", pieces: Mapping[int, str] | None = None) -> Notes:
        return Notes("\n".join(text for text, _ in self), [number for _, number in self], title, date, pieces or {})


# ---- notebooks


def notes_of_notebook(text: str) -> Notes:
    """Read the cells of Markdown of a Jupyter notebook.

    Raises:
        DocumentError: it is not a notebook.
    """
    try:
        notebook = parse_json(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise DocumentError("", f"it is not a notebook ({error})") from error
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise DocumentError("", "it is not a notebook of version 4, it has no cells; open and save it in Jupyter")
    lines, pieces = Lines(), dict[int, str]()
    title = date = ""
    at, number_at, misses = 0, 1, 0  # where the last line was found in the file, and the number of its line there

    def number_of(line: str) -> int:
        """Return the line of the file that has the next line of a cell; the last one where it is not found."""
        nonlocal at, number_at, misses
        written = json.dumps(line, ensure_ascii=False)[1:-1]
        if not written.strip() or misses > 100:  # a file that is written otherwise is not searched forever
            return number_at
        start = text.find(f'"{written}', at)
        if start < 0:
            start = text.find(f'"{json.dumps(line)[1:-1]}', at)
        misses += start < 0
        if start >= 0:
            number_at += text.count("\n", at, start)
            at = start
        return number_at

    for number, cell in enumerate(cells, start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "markdown":
            continue
        source = cell.get("source", "")
        source = "".join(map(str, source)) if isinstance(source, list) else str(source)
        notes = notes_of(source)
        title, date = title or notes.title, date or notes.date
        begins_with_heading = re.match(r"\s*(?:#{1,6}\s|[^\n]+\n(?:=+|-{3,})\s*(?:\n|\Z))", notes.text)
        if lines and not begins_with_heading and len("".join(notes.text.split())) >= _SMALL_CELL:
            name = cell.get("id")  # since version 4.5
            named = isinstance(name, str) and re.fullmatch(r"[\w-]{1,64}", name)
            pieces[len(lines)] = f"cell-{name if named else number}"
        lines += [(line, number_of(line)) for line in notes.text.split("\n")]
        lines.append(("", lines[-1][1]))
    return lines.notes(title, date, pieces)


# ---- reStructuredText

_ADORNMENT = re.compile(r"([=\-`:.'\"~^_*+#<>!$%&(),/;?@\[\]{|}\\])\1{2,}[ \t]*")
_MATH_ROLE = re.compile(r"``[^\n]+?``|:math:`((?:[^`\n]|\n(?![ \t]*\n)){1,4000})`")
_ROLE = re.compile(r":[a-zA-Z][\w:.+-]{0,40}:`(?:([^`<>\n]{1,300}?)[ \t]*<[^`<>\n]{1,300}>|[~!]?([^`\n]{1,300}))`")
_LINK = re.compile(r"`([^`<>\n]{1,300}?)[ \t]*<[^`<>\n]{1,1000}>`__?")
_PLAIN_LINK = re.compile(r"`([^`\n]{1,300})`__?(?!\w)|(?<!\w)([^\W_]{1,60})__?(?![\w_])")
_RST_KEPT = re.compile(r"(``[^\n]+?``|\$[^$\n]{1,2000}\$)")
_RST_DIRECTIVE = re.compile(r"([ \t]*)\.\.[ \t]+(?:\|[^|\n]{1,100}\|[ \t]+)?([\w:.-]{1,60})::[ \t]*(.*)")
_RST_TARGET = re.compile(r"[ \t]*\.\.[ \t]+_`?([^`:\n]{1,200})`?:[ \t]*")
_RST_FIELD = re.compile(r"[ \t]*:([\w -]{1,40}):[ \t]*(.*)")
_SUBSTITUTION = re.compile(r"^\.\.[ ]+\|([^|\n]{1,100})\|[ ]+replace::[ ]*([^\n]{0,500})", re.M)
_SUBSTITUTED = re.compile(
    r"``[^\n]+?``|:math:`[^`]{1,4000}`|^([ ]*)\.\.[ ](?:math::[^\n]*(?:\n(?:\1[ ]+[^\n]*|[ ]*$))*|\|[^\n]*)"
    r"|\|([^|\s][^|\n]{0,99})\|",
    re.M,
)
"""Matches what has no substitutions in it, or the name of one in its second group."""
_RST_TEXT = ADMONITIONS | {
    "error", "topic", "rubric", "highlights", "pull-quote", "compound", "container", "line-block", "versionadded"
}  # fmt: skip


def notes_of_rst(text: str) -> Notes:
    text = text.expandtabs(8)
    texts = {substitution[1]: substitution[2] for substitution in _SUBSTITUTION.finditer(text)}
    if texts:
        text = _SUBSTITUTED.sub(lambda name: texts.get(name[2] or "", name[0]), text)

    def in_dollars(role: re.Match[str]) -> str:
        """Write a formula between dollars, on the first of its lines; the others keep their indents."""
        if role[1] is None:
            return role[0]  # a literal
        first, *others = role[1].split("\n")
        indents = ["\n" + line[: len(line) - len(line.lstrip())] for line in others]
        return "".join(["$", " ".join(map(str.strip, [first, *others])), "$", *indents])

    source = _MATH_ROLE.sub(in_dollars, text).split("\n")
    lines, levels = Lines(), list[str]()
    date = ""

    def add_heading(mark: str, title: str, number: int) -> None:
        """Write a heading; its level is the order in which its kind of underline first occurs."""
        if mark not in levels:
            levels.append(mark)
        hashes = "#" * min(levels.index(mark) + 1, _DEEPEST_HEADING)
        lines.append((f"{hashes} {_rst_inline(title.strip())}", number))

    i = 0
    while i < len(source):
        line, number = source[i], i + 1
        following = source[i + 1] if i + 1 < len(source) else ""
        third = source[i + 2] if i + 2 < len(source) else ""
        title = line.strip()
        if _ADORNMENT.fullmatch(line) and following.strip() and third.strip() == title:
            add_heading(line[0] * 2, following, number + 1)
            i += 3
        elif (
            title and line == line.lstrip() and not (i and source[i - 1].strip()) and _ADORNMENT.fullmatch(following)
            and len(following.rstrip()) + 2 >= min(len(title), 40) and not _ADORNMENT.fullmatch(line)
        ):  # fmt: skip
            add_heading(following[0], line, number)
            i += 2
        elif target := _RST_TARGET.fullmatch(line):
            lines.append((f"({target[1].strip()})=".replace(" ", "-"), number))
            i += 1
        elif directive := _RST_DIRECTIVE.fullmatch(line):
            i = _rst_directive(source, i, directive, lines)
        elif line.lstrip().startswith("..") and (title == ".." or line.lstrip()[2:3] == " "):
            i = _block_end(source, i, _indent(line))  # a comment
        elif (field := _RST_FIELD.fullmatch(line)) and field[1].lower() == "date" and (day := _DAY.search(field[2])):
            date = day[1]
            i += 1
        elif line.rstrip().endswith("::") and not title.startswith(">"):
            lines.append((_rst_inline(line.rstrip()[:-1] if title != "::" else ""), number))
            end = _block_end(source, i, _indent(line))
            _add_code(source[i + 1 : end], number + 1, lines)
            i = end
        else:
            lines.append((_rst_inline(line), number))
            i += 1
    return lines.notes(date=date)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _block_end(source: list[str], i: int, indent: int) -> int:
    """Return the line after the block that is indented below a line."""
    end = i + 1
    last = end
    while end < len(source) and (not source[end].strip() or _indent(source[end]) > indent):
        end += 1
        last = end if source[end - 1].strip() else last
    return last


def _rst_directive(source: list[str], i: int, directive: re.Match[str], lines: Lines) -> int:
    """Translate a directive; return the line after it."""
    end = _block_end(source, i, len(directive[1]))
    name, argument = directive[2].rpartition(":")[2].lower(), directive[3].strip()
    start, label = i + 1, ""
    while start < end and (option := _RST_FIELD.fullmatch(source[start])):
        label = option[2].strip() if option[1] in ("label", "name") else label
        start += 1
    block = source[start:end]
    indent = min((_indent(line) for line in block if line.strip()), default=0)
    block = [line[indent:] for line in block]
    if name == "math":
        lines.append(("", i + 1))
        formulas = "\n".join([argument, *block]).strip()
        for formula in filter(None, map(str.strip, re.split(r"\n[ \t]*\n", formulas))):
            begin, end_of = display_marks(formula)
            lines += [(line, i + 1) for line in (begin, *formula.split("\n"), end_of, "")]
    elif kind_of(name) or name in _RST_TEXT:
        lines.append(("", i + 1))
        marker = f":::{{{name}}} " if kind_of(name) or (block and lead_of(argument)) else ""
        shown = f"**{argument}**" if name == "rubric" else _rst_inline(argument)
        lines.append((marker + shown, i + 1))
        if marker and label:
            lines.append((f":label: {label}", i + 1))
        if all(_indent(line) < 4 for line in block if _RST_DIRECTIVE.fullmatch(line)):  # read only once more
            inner = notes_of_rst("\n".join(block))
        else:
            inner = Lines(((_rst_inline(line), k) for k, line in enumerate(block, 1))).notes()
        for k, line in zip(inner.lines, inner.text.split("\n"), strict=False):
            lines.append((re.sub(r"^#+ ", "", line), start + k))
        if marker:
            lines.append((":::", end))
        lines.append(("", end))
    elif name in ("code", "code-block", "sourcecode", "parsed-literal", "doctest", "ipython"):
        _add_code(block, start + 1, lines)
    elif name in ("figure", "table", "list-table", "csv-table"):
        lines += [(_rst_inline(line), number) for number, line in enumerate(block, start + 1)]
    return end


def _add_code(block: list[str], number: int, lines: Lines) -> None:
    fence = fence_around("\n".join(block))
    end = number + len(block)
    lines += [("", number), (fence, number), *zip(block, count(number)), (fence, end), ("", end)]


def _rst_inline(line: str) -> str:
    """Translate inline markup; literals stay unchanged."""
    if "`" not in line and "_" not in line and "|" not in line and "#." not in line:
        return line
    line = re.sub(r"^([ \t]*)#\.[ \t]", r"\g<1>1. ", line)
    pieces = _RST_KEPT.split(line)  # text, and between it literals and formulas
    for i in range(0, len(pieces), 2):
        text = _ROLE.sub(lambda found: found[1] or found[2], pieces[i].replace("\\ ", ""))
        pieces[i] = _PLAIN_LINK.sub(lambda found: found[1] or found[2], _LINK.sub(r"\1", text)) if "_" in text else text
    return "".join(pieces)


# ---- Org

_ORG_HEADING = re.compile(r"(\*{1,40})[ \t]+(?:(?:TODO|DONE|NEXT|WAITING|CANCELLED)[ \t]+)?(?:\[#[A-Z]\][ \t]+)?(.*)")
_ORG_TAGS = re.compile(r"[ \t]+:[\w@#%:]{1,200}:[ \t]*$")
_ORG_KEYWORD = re.compile(r"[ \t]*#\+([\w]{1,40}):[ \t]*(.*)")
_ORG_BLOCK = re.compile(r"[ \t]*#\+(begin|end)_([\w*-]{1,40})[ \t]*(.*)", re.IGNORECASE)
_ORG_DRAWER = re.compile(r"[ \t]*:([\w-]{1,40}):[ \t]*(.*)")
_ORG_LINK = re.compile(r"\[\[([^\[\]\n]{1,1000})\](?:\[([^\[\]\n]{1,1000})\])?\]")
_ORG_SHOWN = re.compile(r"(?<![\w*/])([*/])(?=\S)([^\n*]{1,300}?\S|\S)\1(?![\w*/])")
_ORG_RULE = re.compile(r"[ \t]*\|[-+]+\|[ \t]*")
_ORG_MARKS = {"*": "**", "/": "*"}
_ORG_CODE_BLOCKS = frozenset(["src", "example", "comment", "export"])
_ORG_NOTE = re.compile(r"\[([^\[\]]{1,300})\]|:name[ \t]+([^:\n]{1,300})|^([^:\[\n]{1,300})$")
_ORG_KEPT = re.compile(
    r"(?<![\w=~])([=~])(?=\S)([^\n]{1,300}?\S|\S)\1(?!\w)"
    r"|\$\$?[^$\n]{1,2000}\$\$?|\\\([^\n]{1,2000}?\\\)|\\\[[^\n]{1,2000}?\\\]"
)


def notes_of_org(text: str) -> Notes:
    lines = Lines()
    title = date = label = ""
    code = drawer = ""
    opened: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        block, drawn = _ORG_BLOCK.fullmatch(line), _ORG_DRAWER.fullmatch(line)
        begins, name = (block[1].lower() == "begin", block[2].lower()) if block else (False, "")
        if code:
            ended = block and not begins and name == code
            lines.append(("~~~~~~" if ended else line, number))
            code = "" if ended else code
        elif begins and name in _ORG_CODE_BLOCKS:
            lines.append(("~~~~~~", number))
            code = name
        elif block and kind_of(name):
            if begins:
                note = _ORG_NOTE.search(block[3].strip())
                words = (note[1] or note[2] or note[3]).strip(" \"'") if note else ""
                labeled = re.search(r":label[ \t]+(\S{1,200})", block[3])
                option = f":label: {labeled[1]}" if labeled else ""
                lines += [("", number), (f":::{{{name}}} {words}", number), (option, number)]
                opened.append(name)
            elif name in opened:
                opened.remove(name)
                lines.append((":::", number))
        elif block:
            continue
        elif drawer:
            if drawn and drawn[1].upper() == "END":
                drawer = ""
            elif drawn and drawn[1].upper() == "CUSTOM_ID" and lines and lines[-1][0].startswith("#"):
                lines[-1] = (f"{lines[-1][0]} {{#{drawn[2].strip()}}}", lines[-1][1])
        elif drawn and not drawn[2] and drawn[1].upper() in ("PROPERTIES", "LOGBOOK"):
            drawer = drawn[1]
        elif heading := _ORG_HEADING.fullmatch(line):
            level = min(len(heading[1]), _DEEPEST_HEADING)
            lines.append((f"{'#' * level} {_org_inline(_ORG_TAGS.sub('', heading[2]))}", number))
        elif keyword := _ORG_KEYWORD.fullmatch(line):
            name, value = keyword[1].lower(), keyword[2].strip()
            title = value if name == "title" and not title else title
            date = day[1] if name == "date" and (day := _DAY.search(value)) else date
            if name in ("name", "label"):
                label = value
            if name in ("latex_header", "latex_header_extra", "latex", "macro"):
                lines.append((value if name != "macro" else "", number))
        elif _ORG_RULE.fullmatch(line):
            lines.append((line.replace("+", "|"), number))
        elif not line.lstrip().startswith("# ") and line.strip() != "#":
            if label:
                lines.append((f"({label.replace(' ', '-')})=", number))
                label = ""
            lines.append((_org_inline(line), number))
    return lines.notes(title, date)


def _org_inline(line: str) -> str:
    """Translate inline markup; formulas stay unchanged."""
    pieces: list[str] = []
    at = 0
    for kept in [*_ORG_KEPT.finditer(line), None]:
        text = line[at : kept.start() if kept else None]
        text = _ORG_LINK.sub(lambda found: found[2] or found[1].rpartition(":")[2], text)
        pieces.append(_ORG_SHOWN.sub(lambda found: f"{_ORG_MARKS[found[1]]}{found[2]}{_ORG_MARKS[found[1]]}", text))
        if kept:
            pieces.append(f"`{kept[2]}`" if kept[1] else kept[0])
            at = kept.end()
    return "".join(pieces)
