"""An engine as tools: asked by the SDK's own client, in this process and over the pipes of another."""

import json
import re
import subprocess
import sys
from contextlib import asynccontextmanager

import anyio
import pytest

from pyterrier_mathamr._common.errors import MissingExtraError
from pyterrier_mathamr.engine import SearchEngine
from pyterrier_mathamr.engine import mcp as engine_mcp
from pyterrier_mathamr.posts import plain_text
from pyterrier_mathamr.store import NotBuiltError
from tests.engine.conftest import POSTS, QUERY, built, written

mcp = pytest.importorskip("mcp", reason="the extra `mcp` is not installed")


async def answer(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    assert [content.type for content in result.content] == ["text"]
    return result.content[0].text, bool(result.is_error)


def call(name, **arguments):
    return lambda client: answer(client, name, **arguments)


def asked(engine, *calls):
    async def run():
        async with mcp.Client(engine_mcp.make_server(engine)) as client:
            return [await one(client) for one in calls]

    return anyio.run(run)


@asynccontextmanager
async def served(path):
    """The tools of an engine in a process of their own, as an assistant starts them."""
    command = mcp.StdioServerParameters(command=sys.executable, args=["-m", "pyterrier_mathamr", "mcp", str(path)])
    async with mcp.Client(command) as client:
        yield client


def test_an_assistant_finds_reads_and_explains_over_pipes(engine) -> None:
    async def run():
        async with served(engine.path) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            found = await answer(client, "search", query=QUERY, k=2)
            formula = await answer(client, "search_formula", latex=r"\sqrt{\pi}", k=1)
            reasons = await answer(client, "explain", query=QUERY, docno="basel")
            text = await answer(client, "read", docno="basel")
            return tools, client.instructions, found, formula, reasons, text

    tools, instructions, found, formula, reasons, text = anyio.run(run)
    assert sorted(tools) == ["cite", "explain", "read", "search", "search_formula"]
    assert all(tool.annotations.read_only_hint and len(tool.description) > 60 for tool in tools.values())
    limits = tools["search"].input_schema["properties"]
    assert (limits["k"]["maximum"], limits["query"]["maxLength"]) == (50, 4000)
    assert "5 posts" in instructions
    assert not any(is_error for _, is_error in (found, formula, reasons, text))
    assert re.findall(r"^\d+\. (\S+)", found[0], re.M) == engine.search(QUERY, k=2)["docno"].tolist()
    assert "**converges**" in found[0]
    assert r"$\sum_{n=1}^\infty \frac{1}{n^2}$" in found[0]
    assert "skip=2" in found[0]
    assert formula[0].startswith("1. gauss#1 ")
    assert r"$\sqrt{π}$" in formula[0]
    numbers = [float(number) for number in re.findall(r"^ *(-?\d+\.\d\d)  ", reasons[0], re.M)]
    assert sum(numbers) == pytest.approx(engine.explain(QUERY, "basel").score, abs=0.005 * len(numbers) + 0.005)
    assert text[0].startswith("Basel problem\n")
    assert r"$\pi^2/6$" in text[0]


WRONG = [
    (call("explain", query="x", docno="no such post"), "no such post"),
    (call("read", docno="no such post"), "no such post"),
    (call("search", query=QUERY, k=51), "k is more than 50"),
    (call("search", query="x" * 4001), "4000"),
    (call("search", query=["not", "text"]), "query is not a string"),
    (call("search"), "query is missing"),
    (call("search", query="x", weak="perhaps"), "weak is neither true nor false"),
    (call("search", query="x", k=2.5), "k is not a whole number"),
    (call("search", query="x", color="red"), "search: 'color' is not an argument; use query, k, skip"),
    (call("search", query="x", since="yesterday"), "since='yesterday' is not accepted; give a day"),
    (call("read", docno="basel", max_tokens=10), "max_tokens is less than 200"),
    (call("cite", docno="basel", quotation=""), "quotation is empty"),
    (
        call("cite", docno="basel", quotation="xylophone"),
        "basel: it does not contain the quotation; the closest sentence is “",
    ),
    (
        call("delete", docno="basel"),
        "There is no tool 'delete'; the tools are cite, explain, read, search, search_formula.",
    ),
]


def test_a_wrong_call_is_answered_with_the_fault(engine) -> None:
    *answers, last = asked(engine, *(wrong for wrong, _ in WRONG), call("search", query="converges"))
    for (text, is_error), (_, reason) in zip(answers, WRONG, strict=True):
        assert is_error
        assert reason in text
        assert len(text.splitlines()) == 1
        assert len(text) < 1000
        assert "Traceback" not in text
    assert last[1] is False


ANY = [
    "$", "$$$", "\\", "$\\frac{1}{$", "{" * 4000, "$" + "x^{" * 1000 + "$", "\0\x1b[31m", "<b>&amp;</b>", "  \n ",
    "求和 ∑", "'; --",
]  # fmt: skip


def test_any_text_is_answered(engine) -> None:
    calls = (pair for query in ANY for pair in (call("search", query=query), call("search_formula", latex=query)))
    for text, is_error in asked(engine, *calls):
        assert not is_error
        assert text


def test_an_answer_has_a_limit_and_explains_how_to_get_the_rest(tmp_path) -> None:
    posts = [{"id": f"p{i}", "title": f"Limit {i}", "text": f"The limit of $x_{i}$. " * 60} for i in range(8)]
    engine = built(tmp_path / "e", posts)
    first, rest, text, page = (
        text
        for text, _ in asked(
            engine,
            call("search", query="limit", k=8, max_tokens=250),
            call("search", query="limit", k=8, skip=2, max_tokens=250),
            call("read", docno="p1", max_tokens=250),
            call("read", docno="p1", start=300, max_tokens=1000),
        )
    )
    assert max(map(engine_mcp.count_tokens, (first, rest, text))) <= 250
    ranks = [re.findall(r"^(\d+)\. ", each, re.M) for each in (first, rest)]
    assert f"skip={len(ranks[0])}" in first
    assert ranks[1][0] == "3"
    whole = plain_text(engine.post("p1"))
    start = int(re.search(r"start=(\d+)\]$", text)[1])
    assert text[:start] == whole[:start]
    assert page[:500] == whole[300:800]


def test_no_answer_has_more_than_4000_tokens_unless_asked_for(tmp_path) -> None:
    words = [f"limit {'word ' * 30} ${'x' * 400}$ √∑∫ {'a' * 9000}" for _ in range(32)]
    posts = [{"id": f"p{i}", "title": text, "text": text * 3} for i, text in enumerate(words)]
    engine = built(tmp_path / "e", posts)
    calls = [
        call("search", query="limit", k=50),
        call("read", docno="p1"),
        call("explain", query="limit word $x$ " * 80, docno="p1"),
        call("search_formula", latex="x" * 400, k=50),
        call("cite", docno="p1", quotation="limit word"),
    ]
    answers = asked(engine, *calls, call("read", docno="p1", max_tokens=20_000))
    assert not any(is_error for _, is_error in answers)
    for text, _ in answers[:-1]:
        assert 0 < engine_mcp.count_tokens(text) <= 4_000
    assert 4_000 < engine_mcp.count_tokens(answers[-1][0]) <= 20_000


def test_a_post_of_any_length_is_read_to_its_end(tmp_path) -> None:
    engine = built(tmp_path / "e", [{"id": "long", "text": f"Word {'a' * 5000} {'x y. ' * 400} " + "∑" * 700}])
    whole, read = plain_text(engine.post("long")), ""

    async def run():
        nonlocal read
        async with mcp.Client(engine_mcp.make_server(engine)) as client:
            while True:
                text, _ = await answer(client, "read", docno="long", start=len(read), max_tokens=300)
                part, _, note = text.partition("\n[")
                assert part
                read += part
                if not note:
                    return

    anyio.run(run)
    assert read == whole


def test_tokens_are_counted_high() -> None:
    count = engine_mcp.count_tokens
    counts = {"": 0, "a": 1, "abc": 1, "abcd": 2, "12": 2, "a b": 2, "\\sum": 2, "∑": 2, "\n": 1}
    assert {text: count(text) for text in counts} == counts
    text = r"Let $x_1^{2} ≤ \frac{1}{2}$ hold.  Then √2 is \emph{irrational}." * 20
    for most in (0, 1, 7, 100, 10_000):
        shown = engine_mcp.within_tokens(text, most)
        assert text.startswith(shown)
        assert count(shown) <= most
        assert shown == text or count(text[: len(shown) + 3]) > most


def test_results_are_short_with_file_line_type_and_neighbors(tmp_path) -> None:
    limits = "# Limits\n\nEvery bounded sequence has a limit point.\n" + "More. " * 300
    root = "# Root\n\nThe number √2\nis *irrational*.\n"
    notes = {"analysis/limits.md": limits, "rings.txt": "Every field $K$ is a ring.", "root.md": root}
    engine = built(tmp_path / "e", written(tmp_path / "notes", notes))
    found, none, filtered, wrong, read, formulas, no_formulas, cited, not_cited = asked(
        engine,
        call("search", query="limit point of a sequence"),
        call("search", query="sourdough bread"),
        call("search", query="ring", within="analysis/", weak=True),
        call("search", query="ring", within="analyses/"),
        call("read", docno="rings.txt", context=2),
        call("search_formula", latex="K", within="rings.txt"),
        call("search_formula", latex="K", within="analysis/"),
        call("cite", docno="root.md", quotation=r"number $\sqrt{2}$ is irrational"),
        call("cite", docno="root.md", quotation="a rational number"),
    )
    assert ("rings.txt" in formulas[0], "rings.txt" in no_formulas[0]) == (True, False)
    lines = found[0].splitlines()
    assert re.match(r"1\. analysis/limits\.md#limits  \(match 9\d\.\d %, analysis/limits\.md:1, section\)", lines[0])
    assert lines[1] == "   Limits"
    assert len(lines[2]) <= 3 + 240
    note = "[The other posts may be no better than random ones; weak=true shows them.]"
    assert none == (f"No good match. {note}", False)
    assert re.findall(r"^\d+\. (\S+)", filtered[0], re.M) == ["analysis/limits.md#limits"]
    assert wrong == ("in='analyses/' is not accepted; give a folder or the beginning of an id: analysis/.", True)
    assert read[0] == "[rings.txt, rings.txt]\nrings\nEvery field $K$ is a ring."
    assert cited == ("root.md, lines 3-4:\nnumber √2\nis *irrational*", False)
    closest = "the closest sentence is “The number $\\sqrt{2}$ is irrational.”"
    assert not_cited == (f"root.md: it does not contain the quotation; {closest}.", True)


def test_the_end_of_the_results_is_reported(engine) -> None:
    [found] = asked(engine, call("search", query=QUERY, k=5, skip=400))
    assert found == ("No further posts were found.", False)


def test_a_changed_engine_is_searched_in_its_current_state(tmp_path) -> None:
    engine = built(tmp_path / "e", POSTS[:2])

    async def run():
        async with mcp.Client(engine_mcp.make_server(SearchEngine(tmp_path / "e"))) as client:
            before = await answer(client, "search", query="groups and rings")
            engine.add([POSTS[4]])
            added = await answer(client, "search", query="groups and rings")
            built(tmp_path / "e", POSTS[2:3], overwrite=True)
            replaced = await answer(client, "search", query="groups and rings")
            return before, added, replaced

    before, added, replaced = anyio.run(run)
    assert "words" not in before[0]
    assert added[0].startswith("1. words ")
    assert "words" not in replaced[0]
    assert not replaced[1]


def test_only_the_protocol_is_written_and_a_bad_line_is_answered_with_an_error(engine) -> None:
    def asking(number: object, name: str, **arguments: object) -> str:
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call"}
        return json.dumps({**request, "params": {"name": name, "arguments": arguments}})

    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "this is no JSON",
        asking(2, "search", query="\ud800"),
        asking(3, "read", docno="a\udfff"),
        asking("\ud800", "read", docno="basel"),
        "[" * 50_000,
        asking(4, "read", docno="basel"),
        asking(5, "search", query="   "),
    ]
    command = [sys.executable, "-m", "pyterrier_mathamr", "mcp", str(engine.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        process.stdin.write("".join(f"{line}\n" for line in lines))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(8)]
        process.stdin.close()
        assert process.wait(timeout=60) == 0
        assert process.stdout.read() == ""
        assert "Traceback" not in process.stderr.read()
    errors = [each for each in answers if "error" in each]
    assert [each["id"] for each in errors] == [None, 2, 3, None, None]
    assert all("\n" not in each["error"]["message"] for each in errors)
    texts = {each["id"]: each["result"]["content"][0]["text"] for each in answers if each.get("id") in (4, 5)}
    assert texts[4].startswith("Basel problem")
    assert texts[5].startswith("No posts were found.")


def test_without_an_engine_or_the_extra_nothing_is_served(tmp_path, engine, monkeypatch) -> None:
    with pytest.raises(NotBuiltError, match="no search engine"):
        engine_mcp.serve_tools(tmp_path)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtraError, match=r"pyterrier-mathamr\[mcp\]"):
        engine_mcp.make_server(engine)
