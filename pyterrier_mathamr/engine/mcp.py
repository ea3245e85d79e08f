"""An engine as tools for assistants and provers, over the Model Context Protocol.

::

    assistant ──stdin──▶ make_server ──▶ Tools ──▶ SearchEngine
              ◀─stdout── text of at most LONGEST_ANSWER characters, with docnos and LaTeX

What is wrong with a call (an unknown docno, an argument out of its range) is a result that says so and is marked as an
error, which the assistant can read and mend.
"""

import json
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning, require
from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.posts import plain_text

from .filters import EVERYTHING, Filter
from .matches import percent
from .reader import is_good
from .search_engine import SearchEngine

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp_types import JSONRPCError, ToolAnnotations

LONGEST_ANSWER = 20_000
"""Characters of an answer, its last line with what to ask for the rest included."""

LONGEST_QUERY = 4_000
MOST_RESULTS = 50
MOST_SKIPPED = 450
_LONGEST_TEXT = 1_200  # of one snippet, formula or part; a post has 500 characters or so
_PARTS = 30
_ABOUT_QUERY = r"Words, and formulas in LaTeX between dollars: 'Why does $\sum 1/n$ diverge?'"
_INSTRUCTIONS = (
    "Searches {count:,} posts about mathematics by words and formulas. `search` answers a question with docnos and "
    "snippets; `read` gives a whole post by its docno; `search_formula` finds formulas like a given one; `explain` "
    "says why a post has its score. Formulas in answers are LaTeX between dollars."
)


class Tools:
    """The tools' answers, as text.

    Args:
        engine: what is searched.
    """

    def __init__(self, engine: SearchEngine) -> None:
        self.engine = engine
        self._lock = threading.Lock()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Answer one call at a time; what a warning would say of a query is in the answer."""
        with self._lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", MathAMRWarning)
            yield

    def search(self, query: str, k: int, skip: int, weak: bool, chosen: Filter) -> str:
        """List posts, the best first."""
        with self._alone():
            found = self.engine.search(query, k=skip + k, weak=True, **chosen._asdict())[skip:]
        good = found if weak else found[is_good(found)]
        entries = [
            f"{rank}. {row['docno']}  (match {percent(row['match'])})\n"
            f"   {_line(row['title'])}\n   {_line(row['snippet'])}"
            for rank, row in enumerate(good.to_dict("records"), start=skip + 1)
        ]
        if len(good) < len(found):
            note = "[The other posts match no better than a random one may; weak=true shows them.]"
            return "\n".join([*entries, note]) if entries else f"No good match. {note}"
        return _listed(entries, "posts", "Ask with words, or with formulas between dollars.", k, skip)

    def search_formula(self, latex: str, k: int, skip: int) -> str:
        """List formulas, the most similar first."""
        with self._alone():
            engine = self.engine.snapshot()
            found = engine.search_formula(latex, k=skip + k)[skip:]
            entries = []
            for rank, row in enumerate(found.to_dict("records"), start=skip + 1):
                title, _ = engine.title_and_body(row["post_id"])
                place = f"   in {row['post_id']}  {_line(engine.text_of(title))}".rstrip()
                entries.append(
                    f"{rank}. {row['docno']}  (score {row['score']:.3f})\n   ${_line(row['latex'])}$\n{place}"
                )
        return _listed(entries, "formulas", "Give one formula in LaTeX, without words around it.", k, skip)

    def read(self, docno: str, start: int) -> str:
        """Write a post, from a character on."""
        with self._alone():
            text = plain_text(self.engine.post(docno))
        room = LONGEST_ANSWER - 200
        note = f"\n[{len(text):,} characters; for the rest: read with start={start + room}]"
        return text[start : start + room] + (note if start + room < len(text) else "")

    def explain(self, query: str, docno: str) -> str:
        """List the parts of a score, the greatest first."""
        with self._alone():
            found = self.engine.explain(query, docno)
        lines = [f"{docno} has score {found.score:.2f} for this query, the sum of:"]
        for part in found.parts.head(_PARTS).to_dict("records"):
            texts = dict.fromkeys(_line(part[side], 300) for side in ("query", "document") if part[side])
            lines.append(f"{part['contribution']:8.2f}  {part['system']}, {part['part']}: {'  ~  '.join(texts)}")
        rest = found.parts[_PARTS:]
        if len(rest):
            lines.append(f"{rest['contribution'].sum():8.2f}  {len(rest)} further parts")
        return "\n".join(lines)


def _listed(entries: Sequence[str], things: str, advice: str, k: int, skip: int) -> str:
    """Join results as far as they fit, and say how to get more."""
    if not entries:
        return f"No further {things} were found." if skip else f"No {things} were found. {advice}"
    shown, length = [], 200  # of the notes
    for entry in entries:
        length += len(entry) + 1
        if length > LONGEST_ANSWER:
            break
        shown.append(entry)
    last = skip + len(shown)
    more = len(shown) < len(entries) or len(entries) == k
    note = [f"[For further results: the same call with skip={last}.]"] if more and last <= MOST_SKIPPED else []
    return "\n".join([*shown, *note])


def _line(text: str, longest: int = _LONGEST_TEXT) -> str:
    """Write a text in one line, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def make_server(engine: SearchEngine) -> "MCPServer[Any]":
    """Make the server.

    Args:
        engine: what it searches; it may change while it is served.

    Raises:
        MissingExtraError: the extra ``mcp`` is not installed. NotBuiltError: there is no engine.
    """
    require("mcp", "mcp")
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from pydantic import ValidationError

    class Server(MCPServer[Any]):
        """A server that says in one line what is wrong with arguments."""

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            """Call a tool."""
            try:
                return await super().call_tool(name, arguments, context)
            except ToolError as error:
                if not isinstance(error.__cause__, ValidationError):
                    raise
                faults = "; ".join(map(_fault, error.__cause__.errors(include_url=False)))
                raise ToolError(f"{name}: {faults}") from error.__cause__.__cause__

    instructions = _INSTRUCTIONS.format(count=len(engine))
    server = Server("mathamr", version=__version__, instructions=instructions, log_level="WARNING")
    tools = Tools(engine)
    _offer_searching(server, tools)
    _offer_reading(server, tools)
    return server


def _fault(error: Mapping[str, Any]) -> str:
    """Say what is wrong with an argument."""
    name, limits = ".".join(map(str, error["loc"])), error.get("ctx", {})
    kind: str = error["type"]
    told = {
        "missing": "is missing",
        "string_type": "is no string",
        "string_unicode": "is no Unicode text",
        "string_too_short": "is empty",
        "string_too_long": f"has more than {limits.get('max_length')} characters",
        "greater_than_equal": f"is less than {limits.get('ge')}",
        "less_than_equal": f"is more than {limits.get('le')}",
    }
    return f"{name} {told.get(kind, 'is no whole number' if kind.startswith('int_') else 'cannot be read')}"


def _offer_searching(server: "MCPServer[Any]", tools: Tools) -> None:
    """Offer the tools that give ranked results."""
    about_query = _text(_ABOUT_QUERY)
    about_formula = _text(r"One formula, in LaTeX or Unicode: '\int_0^1 x^2 dx', '∫x² dx'")
    about_k = _number("Results at most", 1, MOST_RESULTS)
    about_skip = _number("Leave out so many of the best results", 0, MOST_SKIPPED)
    about_weak = _flag("Also list posts that are no good match")

    @server.tool(annotations=_harmless(), structured_output=False)
    def search(
        query: Annotated[str, about_query],
        k: Annotated[int, about_k] = 10,
        skip: Annotated[int, about_skip] = 0,
        weak: Annotated[bool, about_weak] = False,
    ) -> str:
        """Find posts that answer a question about mathematics.

        Give the question as a person would ask it, with its formulas. Each result has the docno of a post, its match
        (the percentage of unrelated posts that score lower), its title and a snippet in which **what the query says,
        too** is between asterisks. Posts that match no better than a random one may are left out.
        """
        with _told():
            return tools.search(query, k, skip, weak, EVERYTHING)

    @server.tool(annotations=_harmless(), structured_output=False)
    def search_formula(
        latex: Annotated[str, about_formula], k: Annotated[int, about_k] = 10, skip: Annotated[int, about_skip] = 0
    ) -> str:
        """Find formulas that look like a given one, and the posts that they are in.

        Takes one formula without words; for a question with words use search. A score of 1 is the same formula.
        """
        with _told():
            return tools.search_formula(latex, k, skip)


def _offer_reading(server: "MCPServer[Any]", tools: Tools) -> None:
    """Offer the tools that are about one post."""
    about_query = _text(_ABOUT_QUERY)
    about_docno = _text("The id of a post, as search gives it", 1_000)
    about_start = _number("Character to begin at, to go on with a long post", 0)

    @server.tool(annotations=_harmless(), structured_output=False)
    def explain(query: Annotated[str, about_query], docno: Annotated[str, about_docno]) -> str:
        """Say why a post has its score for a query: what each word and each formula contributes, with what it met.

        Any post can be explained, found by the query or not. The contributions add up to the score of search.
        """
        with _told():
            return tools.explain(query, docno)

    @server.tool(annotations=_harmless(), structured_output=False)
    def read(docno: Annotated[str, about_docno], start: Annotated[int, about_start] = 0) -> str:
        """Read a whole post: title and text, formulas in LaTeX between dollars."""
        with _told():
            return tools.read(docno, start)


def _text(description: str, longest: int = LONGEST_QUERY) -> Any:
    """Describe an argument that is text."""
    from pydantic import Field

    return Field(min_length=1, max_length=longest, description=description)


def _number(description: str, least: int, most: int | None = None) -> Any:
    """Describe an argument that is a whole number."""
    from pydantic import Field

    return Field(ge=least, le=most, description=description)


def _flag(description: str) -> Any:
    """Describe an argument that is true or false."""
    from pydantic import Field

    return Field(description=description)


def _harmless() -> "ToolAnnotations":
    """Say of a tool that it changes nothing and asks nobody else."""
    from mcp_types import ToolAnnotations

    return ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


@contextmanager
def _told() -> Iterator[None]:
    """Turn what is wrong with a call into a result that says so."""
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        yield
    except MathAMRError as error:
        raise ToolError(str(error)) from error


def serve_tools(path: Path) -> None:
    """Serve an engine over stdin and stdout until the client ends.

    Args:
        path: the engine.

    Raises:
        MissingExtraError: the extra ``mcp`` is not installed. NotBuiltError: there is no engine.
    """
    server = make_server(SearchEngine(path))
    import anyio

    anyio.run(_serve, server)


async def _serve(server: "MCPServer[Any]") -> None:
    """Serve over stdin and stdout; a line that is no message is answered with an error."""
    import anyio
    from mcp.server.stdio import stdio_server
    from mcp.shared.message import SessionMessage

    lowlevel = server._lowlevel_server
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
    """Answer a line that is no message, or has text that is not Unicode."""
    from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError

    line = next((str(each["input"]) for each in getattr(error, "errors", list)()), "")
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        given = None
    number = given.get("id") if isinstance(given, dict) else None
    known = isinstance(number, int | str) and str(number).isprintable()
    said = "The line is no request of JSON-RPC in Unicode; a lone surrogate such as \\ud800 is no character."
    return JSONRPCError(
        jsonrpc="2.0", id=number if known else None, error=ErrorData(code=INVALID_REQUEST, message=said)
    )
