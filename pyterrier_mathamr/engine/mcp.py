"""An engine as tools for assistants and provers, over the Model Context Protocol.

::

    assistant ──stdin──▶ make_server ──▶ the methods of Tools ──▶ SearchEngine
              ◀─stdout── text of at most 4,000 tokens, with docnos, files, lines and LaTeX

A docno stays the same as long as its post does, so it can be kept and cited. A wrong call (an unknown
docno, an argument out of its range) is answered with a result that names the fault and is marked as an error, which
the assistant can read and correct.
"""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning, listed, require
from pyterrier_mathamr._common.feedback import ignored_warnings
from pyterrier_mathamr._common.ids import visible
from pyterrier_mathamr._common.private import lowlevel_server
from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.posts import Document, Origin, plain_text, post_from_html
from pyterrier_mathamr.store import StoreError, UnavailableError, UnknownIdError

from .citations import LONGEST, cited
from .origins import Filter
from .ranking import GOOD, percent
from .reader import EngineSnapshot
from .search_engine import SearchEngine
from .snippets import substitution_text

try:
    from pydantic import Field
except ImportError:  # without the extra, of which `make_server` tells
    Field = dict  # type: ignore[assignment]

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp_types import JSONRPCError

TOKENS, FEWEST_TOKENS, MOST_TOKENS = 4_000, 200, 100_000
"""Tokens of an answer by default, and the limits of ``max_tokens``."""

DECLARATION_TOKENS = 60
"""Tokens of a result that is a declaration of Lean, if its name and file leave room for the signature."""

LONGEST_QUERY = 4_000
MOST_RESULTS = 50
MOST_SKIPPED = 450
MOST_NEIGHBORS = 20
_LONGEST_TITLE, _LONGEST_LINE = 120, 240  # of an entry of a result
_LONGEST_PART = 300
_PARTS = 30
_KEPT = "\n\t"  # of the text of a post
_NOTES = 80  # tokens reserved for the last line, which explains how to get the rest
_INSTRUCTIONS = (
    "Searches {count:,} posts about mathematics by words and formulas. `search` lists docnos with file, line, title "
    "and one line of text; `read` gives one post by its docno, with its neighbors in the file if asked; `cite` gives "
    "the exact source span of a quotation, with file and lines; `search_formula` finds formulas like a given one; "
    "`explain` shows why a post was found. Formulas in answers are LaTeX between dollars. An answer has at most "
    "{tokens:,} tokens unless max_tokens asks for more. If `search` reports no good match, the posts do not answer "
    "the question."
)
_PIECE = re.compile(r"[A-Za-z]+|\n|[ \t]+|.", re.DOTALL)


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text, rather high: one for 3 letters, for a digit or a sign, and two beyond ASCII."""
    return sum(map(_cost, _PIECE.findall(text)))


def _cost(piece: str) -> int:
    if not piece.isascii():
        return 2
    if piece.isalpha():
        return (len(piece) + 2) // 3
    return (len(piece) + 3) // 4 if piece.isspace() and piece != " " else int(piece != " ")


def _end_within_tokens(text: str, most: int) -> str:
    """Return as much of the end of a text, where a theorem has its claim, as has at most so many tokens."""
    pieces = _PIECE.findall(text)
    left = most - _cost("…") * (sum(map(_cost, pieces)) > most)
    start = len(pieces)
    while start and (left := left - _cost(pieces[start - 1])) >= 0:
        start -= 1
    return ("…" if start else "") + "".join(pieces[start:])


def within_tokens(text: str, most: int) -> str:
    """Return as much of the beginning of a text as has at most so many tokens."""
    left = most
    for match in _PIECE.finditer(text):
        cost = _cost(match[0])
        if cost > left:
            return text[: match.start() + (3 * left if match[0].isascii() and match[0].isalpha() else 0)]
        left -= cost
    return text


# ---- arguments, with their descriptions for the assistant


def _text(longest: int, description: str, least: int = 1) -> Any:
    return Field(min_length=least or None, max_length=longest, description=description)


def _number(least: int, most: int | None, description: str) -> Any:
    return Field(ge=least, le=most, description=description)


_Query = Annotated[
    str, _text(LONGEST_QUERY, r"Words, and formulas in LaTeX between dollars: 'Why does $\sum 1/n$ diverge?'")
]
_Formula = Annotated[str, _text(LONGEST_QUERY, r"One formula, in LaTeX or Unicode: '\int_0^1 x^2 dx', '∫x² dx'")]
_Docno = Annotated[str, _text(1_000, "The id of a post, as search gives it")]
_Quotation = Annotated[str, _text(LONGEST, "Words of the post, as shown by read or as in its file")]
_K = Annotated[int, _number(1, MOST_RESULTS, "Maximum number of results")]
_Skip = Annotated[int, _number(0, MOST_SKIPPED, "Number of best results to skip")]
_Weak = Annotated[bool, Field(description="Also list posts that are not a good match")]
_Within = Annotated[str, _text(1_000, "Only posts of this folder or file, such as 'analysis/'", 0)]
_Kind = Annotated[str, _text(1_000, "Only posts of this type, such as 'theorem'", 0)]
_Since = Annotated[str, _text(1_000, "Only posts changed on this day or later: '2026-03-01', '2026-03' or '2026'", 0)]
_Until = Annotated[str, _text(1_000, "Only posts changed on this day or earlier", 0)]
_Start = Annotated[int, _number(0, None, "Character at which to start, to continue a long post")]
_Context = Annotated[int, _number(0, MOST_NEIGHBORS, "Number of posts before and after it in its file to include")]
_MaxTokens = Annotated[int, _number(FEWEST_TOKENS, MOST_TOKENS, "Maximum number of tokens of the answer")]


class Tools:
    """The tools; their docstrings are for the assistant."""

    def __init__(self, engine: SearchEngine) -> None:
        self.engine = engine
        self._lock = threading.Lock()

    @contextmanager
    def _one_at_a_time(self) -> Iterator[EngineSnapshot]:
        """Answer one call at a time, from one state; warnings about a query are part of the answer."""
        with self._lock, ignored_warnings(MathAMRWarning):
            yield self.engine.snapshot()

    def search(
        self,
        query: _Query,
        k: _K = 10,
        skip: _Skip = 0,
        weak: _Weak = False,
        within: _Within = "",
        kind: _Kind = "",
        since: _Since = "",
        until: _Until = "",
        max_tokens: _MaxTokens = TOKENS,
    ) -> str:
        """Find posts that answer a question about mathematics.

        Give the question as a person would ask it, with its formulas. Each result has the docno of a post, its match
        (the percentage of unrelated posts that score lower), its file and line, its title, and one line of it in which
        **words and formulas of the query** are between asterisks; a declaration of Lean has its signature instead, of a
        long one the end. Posts no better than a random one are left out.
        """
        chosen = Filter(within, kind, since, until)
        with self._one_at_a_time() as engine:
            suggestions = engine.suggestions(query)
            words = visible(str(suggestions))
            question = engine.question(suggestions.searched)
            results = engine.shown(question, engine.found(question, skip + k, chosen=chosen, part=slice(skip, None)))
            good = results if weak else results[results["match"] >= GOOD]
            posts = engine.indexes.posts.get_many(good["docno"].tolist())
            rows = zip(good.to_dict("records"), posts, strict=True)
            entries = [_entry(rank, row, post) for rank, (row, post) in enumerate(rows, start=skip + 1)]
        words = f"[{within_tokens(words, max_tokens // 4)}]\n" if words else ""
        tokens = max_tokens - count_tokens(words)
        if len(good) < len(results):
            note = "[The other posts may be no better than random ones; weak=true shows them.]"
            listed = _listed(entries, "posts", "", 0, skip, tokens, note) if entries else f"No good match. {note}"
        else:
            listed = _listed(entries, "posts", "Ask with words, or with formulas between dollars.", k, skip, tokens)
        return words + listed

    def search_formula(
        self,
        latex: _Formula,
        k: _K = 10,
        skip: _Skip = 0,
        within: _Within = "",
        kind: _Kind = "",
        since: _Since = "",
        until: _Until = "",
        max_tokens: _MaxTokens = TOKENS,
    ) -> str:
        """Find formulas that match a given one, and the posts that contain them.

        Give one formula without words; for a question with words use search. ?a matches any sub-expression, as in
        ?a^2+?b^2=?c^2; letters may have other names. Equal formulas come first, then renamed ones, instances, formulas
        that contain the given one, and similar ones.
        """
        places = {"within": within, "kind": kind, "since": since, "until": until}
        with self._one_at_a_time() as engine:
            results = engine.search_formula(latex, k=skip + k, **places)[skip:]
            entries = []
            for rank, row in enumerate(results.to_dict("records"), start=skip + 1):
                place = f"   in {visible(row['post_id'])}  {_line(row['title'], _LONGEST_TITLE)}".rstrip()
                latex = _line(row["latex"], _LONGEST_LINE)
                changed = _line(substitution_text(row["substitution"]), _LONGEST_LINE)
                changed = f"\n   with {changed}" if changed else ""
                entries.append(f"{rank}. {visible(row['docno'])}  ({row['tier']})\n   ${latex}${changed}\n{place}")
        return _listed(entries, "formulas", "Give one formula in LaTeX, without words around it.", k, skip, max_tokens)

    def read(self, docno: _Docno, start: _Start = 0, context: _Context = 0, max_tokens: _MaxTokens = TOKENS) -> str:
        """Read one post: its title and text, formulas in LaTeX between dollars.

        With context, also returns that many posts before and after it from the same file, each under its docno.
        """
        with self._one_at_a_time() as engine:
            docno = _named(engine, docno)
            text = plain_text(engine.post(docno))
            if context:
                origin, around = engine.origins[docno], [docno]
                if origin.kind:  # it is of a file
                    of_file = [name for name, other in engine.origins.items() if other[:2] == origin[:2]]
                    of_file.sort(key=lambda name: engine.origins[name].line)
                    at = of_file.index(docno)
                    around = of_file[max(at - context, 0) : at + context + 1]
                posts = ((name, plain_text(engine.post(name))) for name in around)
                text = "\n\n".join(f"[{visible(name)}{_place(engine.origins[name])}]\n{post}" for name, post in posts)
        text = visible(text, _KEPT)
        shown = within_tokens(text[start:], max_tokens - _NOTES)
        end = start + len(shown)
        again = f", context={context}" if context else ""
        note = f"\n[{len(text):,} characters; for the rest: read with start={end}{again}]"
        return shown + (note if end < len(text) else "")

    def cite(self, docno: _Docno, quotation: _Quotation, max_tokens: _MaxTokens = TOKENS) -> str:
        """Give the exact source span of a quotation: the file, its first and last line, and the text as it is there.

        White space, delimiters and spelling in LaTeX or Unicode may differ. If the post does not contain the quotation,
        the answer is an error with the closest sentence. If its file is gone or has changed, the answer is the post as
        it was indexed, with a note.
        """
        with self._one_at_a_time() as engine:
            citation = cited(engine.indexes.posts, _named(engine, docno), quotation)
        file, first, last = citation.file, citation.first, citation.last
        lines = f"line {first}" if first == last else f"lines {first}-{last}"
        place = visible(f"{file}, {lines}" if first else f"{file} ({citation.note})")
        return within_tokens(f"{place}:\n{visible(citation.text, _KEPT)}", max_tokens)

    def explain(self, query: _Query, docno: _Docno, max_tokens: _MaxTokens = TOKENS) -> str:
        """Explain why a post was found by a query: the contribution and the match of each word and each formula.

        Any post can be explained, whether the query finds it or not. The contributions add up to its points.
        """
        with self._one_at_a_time() as engine:
            explanation = engine.explain(query, _named(engine, docno))
        lines = [f"{visible(docno)} has {explanation.score:.2f} points for this query, the sum of:"]
        for part in explanation.parts.head(_PARTS).to_dict("records"):
            texts = dict.fromkeys(_line(part[side], _LONGEST_PART) for side in ("query", "document") if part[side])
            lines.append(f"{part['contribution']:8.2f}  {part['system']}, {part['part']}: {'  ~  '.join(texts)}")
        shown, last = _fitting(lines, max_tokens - _NOTES), ""
        rest = explanation.parts[len(shown) - 1 :]
        if len(rest):
            last = f"\n{rest['contribution'].sum():8.2f}  {len(rest)} further parts"
        return "\n".join(shown) + last


def _named(engine: EngineSnapshot, given: str) -> str:
    """Return the docno that an answer showed as the one given."""
    if given in engine or "\\" not in given:
        return given
    return next((docno for docno in engine.docnos() if visible(docno) == given), given)


def _entry(rank: int, row: Mapping[Any, Any], post: Document) -> str:
    """Write a result of a search: of a declaration the signature, of another post its title and best line."""
    how_good = f"{'named, ' * row['named']}match {percent(row['match'])}"
    if not post.origin.file.endswith(".lean") or post.origin.kind in ("module", "file"):
        return (
            f"{rank}. {visible(row['docno'])}  ({how_good}{_place(post.origin)})\n"
            f"   {_line(row['title'], _LONGEST_TITLE)}\n   {_line(row['snippet'], _LONGEST_LINE)}"
        )
    kind, _, *signature = visible(plain_text(post_from_html(post.html)).partition("\n")[0]).split(" ", 2)
    head = f"{rank}. {visible(row['docno'])}  ({how_good}, line {post.origin.line})\n   {kind}"
    return f"{head} {_end_within_tokens(' '.join(signature), DECLARATION_TOKENS - count_tokens(head))}".rstrip()


def _place(origin: Origin) -> str:
    """Write where a post is, as far as that is known: its file and line, its type and section."""
    if not origin.kind:
        return ""
    where = visible(f"{origin.file}:{origin.line}" if origin.line else origin.file)
    kind = "" if origin.kind == "file" else f", {visible(origin.kind)}"
    return f", {where}{kind}" + (f", in {_line(origin.section, _LONGEST_TITLE)}" if origin.section else "")


def _fitting(entries: Sequence[str], tokens: int) -> list[str]:
    """Return as many entries as fit, of the first one at least a part."""
    shown: list[str] = []
    for entry in entries:
        tokens -= count_tokens(entry) + 1
        if tokens < 0:
            break
        shown.append(entry)
    return shown or [within_tokens(entries[0], tokens + count_tokens(entries[0]))]


def _listed(
    entries: Sequence[str], things: str, advice: str, k: int, skip: int, tokens: int, last_note: str = ""
) -> str:
    """Join results as far as they fit, and explain how to get more."""
    if not entries:
        return f"No further {things} were found." if skip else f"No {things} were found. {advice}"
    shown = _fitting(entries, tokens - _NOTES)
    last = skip + len(shown)
    more = len(shown) < len(entries) or len(entries) == k
    note = [f"[For further results: the same call with skip={last}.]"] if more and last <= MOST_SKIPPED else []
    return "\n".join([*shown, *(note or ([last_note] if last_note else []))])


def _line(text: str, longest: int) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"


def make_server(engine: SearchEngine) -> "MCPServer[Any]":
    """Make the server of an engine, which may change while it is served.

    Raises:
        MissingExtraError: the extra ``mcp`` is not installed. NotBuiltError: there is no engine.
    """
    require("mcp", "mcp")
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations
    from pydantic import ValidationError

    class Server(MCPServer[Any]):
        """A server that names the fault of a call in one line."""

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            known = {tool.name: tool for tool in self._tool_manager.list_tools()}
            if name not in known:
                raise ToolError(f"There is no tool {name!r:.80}; the tools are {', '.join(sorted(known))}.")
            of_tool = known[name].parameters["properties"]
            if unknown := [argument for argument in arguments if argument not in of_tool]:
                raise ToolError(f"{name}: {unknown[0]!r:.80} is not an argument; use {', '.join(of_tool)}.")
            try:
                return await super().call_tool(name, arguments, context)
            except ToolError as error:
                cause = error.__cause__
                if isinstance(cause, MathAMRError | OSError):
                    raise ToolError(visible(_told(cause))) from cause
                if isinstance(cause, ValidationError):
                    faults = "; ".join(map(_fault, cause.errors(include_url=False)))
                    raise ToolError(f"{name}: {faults}") from cause.__cause__
                raise

    instructions = _INSTRUCTIONS.format(count=len(engine), tokens=TOKENS)
    server = Server("mathamr", version=__version__, instructions=instructions, log_level="WARNING")
    tools, harmless = Tools(engine), ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    for tool in (tools.search, tools.search_formula, tools.explain, tools.read, tools.cite):
        server.tool(annotations=harmless, structured_output=False)(tool)
    return server


def _fault(error: Mapping[str, Any]) -> str:
    name, limits = ".".join(map(str, error["loc"])), error.get("ctx", {})
    kind: str = error["type"]
    faults = {
        "missing": "is missing",
        "string_type": "is not a string",
        "string_unicode": "is not Unicode text",
        "string_too_short": "is empty",
        "string_too_long": f"has more than {limits.get('max_length')} characters",
        "greater_than_equal": f"is less than {limits.get('ge')}",
        "less_than_equal": f"is more than {limits.get('le')}",
        "int": "is not a whole number",
        "bool": "is neither true nor false",
    }
    return f"{name} {faults.get(kind) or faults.get(kind.partition('_')[0], 'cannot be read')}"


def _told(error: MathAMRError | OSError) -> str:
    """Describe an error to an assistant, for whom the files of the engine are nothing."""
    if isinstance(error, UnknownIdError):
        return f"There is no post {listed(error.ids)}."
    if isinstance(error, OSError):
        return f"The engine cannot be read now ({error.strerror or type(error).__name__})."
    if isinstance(error, UnavailableError):
        return f"The engine cannot be read now: {error.reason}."
    if isinstance(error, StoreError):
        return "The engine cannot be read: `mathamr verify` names the reason."
    return str(error)


def serve_tools(path: Path) -> None:
    """Serve an engine over stdin and stdout until the client ends; raises what :func:`make_server` raises."""
    server = make_server(SearchEngine(path))
    import anyio

    anyio.run(_serve, server)


async def _serve(server: "MCPServer[Any]") -> None:
    """Serve over stdin and stdout; a line that is not a message is answered with an error."""
    import anyio
    from mcp.server.stdio import stdio_server
    from mcp.shared.message import SessionMessage

    lowlevel = lowlevel_server(server)
    async with stdio_server() as (received, replies), anyio.create_task_group() as tasks:
        send, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def pass_on() -> None:
            async with send, replies.clone() as refusals:
                async for item in received:
                    if isinstance(item, Exception):
                        await refusals.send(SessionMessage(_refusal(item)))
                    else:
                        await send.send(item)

        tasks.start_soon(pass_on)
        await lowlevel.run(messages, replies, lowlevel.create_initialization_options())


def _refusal(error: Exception) -> "JSONRPCError":
    """Answer a line that is not a message, or has text that is not Unicode."""
    from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError

    line = next((str(each["input"]) for each in getattr(error, "errors", list)()), "")
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        given = None
    number = given.get("id") if isinstance(given, dict) else None
    known = isinstance(number, int | str) and str(number).isprintable()
    fault = "The line is not a request of JSON-RPC in Unicode; a lone surrogate such as \\ud800 is not a character."
    return JSONRPCError(
        jsonrpc="2.0", id=number if known else None, error=ErrorData(code=INVALID_REQUEST, message=fault)
    )
