"""The interface for other programs: its requests, their parameters and answers, declared once.

::

    PARAMETERS, REQUESTS ──read_parameters──▶ the values of a request; anything else is refused by name
             │
    ANSWERS ─┴──description──▶ OpenAPI 3.1 at ``/api/openapi.json``, which the page ``/api`` shows

A parameter is declared by its JSON schema, which also validates its values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any, NamedTuple

from pyterrier_mathamr._common.errors import MathAMRError

SYSTEMS: Mapping[str, str] = {"blend": "BM25 + MathAMR+", "bm25": "BM25", "mathamr": "MathAMR+"}
"""The systems that can be shown: name on the command line to name on the page."""
SECONDS = 10.0
"""CPU time that a request may take."""
WAITING = 200
"""Requests of a client that may wait, half of them with the same question; further ones get status 503."""
LONGEST_QUERY, LONGEST_DOCNO = 4_000, 1_000
MOST_RESULTS, MOST_SKIPPED = 100, 1_000
Schema = Mapping[str, Any]
_LONGEST_NUMBER = 11  # digits


class BadRequestError(MathAMRError):
    """A parameter of a request is missing or wrong."""

    reason: str
    template = "{reason}"


# ---- requests


def _text(about: str, longest: int = LONGEST_DOCNO, *, required: bool = False) -> Schema:
    return {"description": about, "required": required, "schema": {"type": "string", "maxLength": longest}}


def _number(about: str, least: int, most: int = 10**9, default: int | None = None) -> Schema:
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return {"description": about, "schema": schema if default is None else {**schema, "default": default}}


def _choice(about: str, *values: str) -> Schema:
    return {"description": about, "schema": {"type": "string", "enum": values, "default": values[0]}}


PARAMETERS: Mapping[str, Schema] = {
    "q": _text(r"Words and formulas between $…$, \(…\) or \[…\].", LONGEST_QUERY),
    "docno": _text("The id of a post.", required=True),
    "mode": _choice("What is searched.", "posts", "formulas"),
    "k": _number("The number of results of each system.", 1, MOST_RESULTS, 10),
    "offset": _number("The number of best results to skip.", 0, MOST_SKIPPED, 0),
    "weak": _choice("1 also returns weak matches, which may be no better than random posts.", "0", "1"),
    "in": _text("A folder or file, such as analysis/; for records, the beginning of their ids."),
    "kind": _text("The type of unit, such as theorem."),
    "since": _text("The day, month or year of the last change, or later: 2026-03-01, 2026-03, 2026."),
    "until": _text("The day, month or year of the last change, or earlier."),
    "system": _choice("The system whose score is explained.", *SYSTEMS),
    "start": _number("The first character of the piece, such as the end of the previous one; by default the piece "
                     "that answers q best.", 0),
    "theme": _choice("The background.", "light", "dark"),
    "sentence": _number("One sentence, by its number; by default the whole post, or the first sentences of a large "
                        "one, without the trees of their formulas.", 1),
    "format": _choice("text returns plain text with formulas in LaTeX between dollars: title instead of title_html, "
                      "and text instead of html.", "html", "text"),
}  # fmt: skip


class Request(NamedTuple):
    """A request."""

    summary: str  # its purpose
    about: str  # further sentences
    parameters: str  # names in :data:`PARAMETERS`, separated by blanks
    answer: str  # a name in :data:`ANSWERS`; nothing for a drawing


REQUESTS: Mapping[str, Request] = {
    "/api/search": Request(
        "Search posts or formulas",
        "The good matches among the results offset + 1 to offset + k of each system that the server was started with. "
        "A question without words and formulas finds nothing; one of words that no post has is searched with the "
        "nearest words of the posts, see suggestions. mode=formulas searches for the first formula between "
        "delimiters, or for all of q if there is none; each result is a post with its best formula.",
        "q mode k offset weak in kind since until format",
        "Found",
    ),
    "/api/explain": Request(
        "Why a post has its score",
        "The contributions of parts and rest add up to score.",
        "q docno system format",
        "Explanation",
    ),
    "/api/preview": Request("A question as it is read", "", "q mode format", "Preview"),
    "/api/post": Request(
        "A post, or a piece of a long one",
        "At most 50,000 characters, or one formula. Words and formulas of the question q are marked.",
        "docno q start format",
        "Post",
    ),
    "/api/graph/{docno}.svg": Request("The drawing of a post's graph", "", "theme sentence", ""),
    "/api/settings": Request("What is served", "", "format", "Settings"),
}


def read_parameters(path: str, given: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Read the parameters of a request, a key of :data:`REQUESTS`; missing ones have their defaults.

    Raises:
        BadRequestError: a name is unknown or repeated, a value is missing or wrong.
    """
    names, values = REQUESTS[path].parameters.split(), dict(given)
    if unknown := [name for name in values if name not in names]:
        raise BadRequestError(f"{unknown[0][:80]!r} is not a parameter; use {', '.join(names)}")
    if len(values) < len(given):
        raise BadRequestError("a parameter is given twice")
    return {name: _value(name, values.get(name)) for name in names}


def _value(name: str, given: str | None) -> Any:
    """Read a value by its schema; a missing text is empty."""
    schema, required = PARAMETERS[name]["schema"], PARAMETERS[name].get("required")
    if not given and required:
        raise BadRequestError(f"{name} is missing")
    if given is None:
        return schema.get("default", None if schema["type"] == "integer" else "")
    if schema["type"] == "integer":
        least, most = schema["minimum"], schema["maximum"]
        is_number = given.isascii() and given.isdigit() and len(given) <= _LONGEST_NUMBER
        if not is_number or not least <= int(given) <= most:
            raise BadRequestError(f"{name} is a whole number from {least:,} to {most:,}")
        return int(given)
    if given not in schema.get("enum", (given,)):
        raise BadRequestError(f"{name} is one of {', '.join(schema['enum'])}")
    if len(given) > schema.get("maxLength", len(given)):
        raise BadRequestError(f"{name} is longer than {schema['maxLength']:,} characters")
    return "".join(character for character in given if not 0xD800 <= ord(character) <= 0xDFFF)


# ---- plain text

_BLOCK = re.compile(r"</p>(?=<p)")
_FORMULA = re.compile(r'<span[^<>]* data-latex="([^"<>]*)">.*?</span>', re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")


def as_text(answer: Any) -> Any:
    """Convert the HTML in an answer to text, with formulas as ``$latex$``; ``title_html`` becomes ``title``."""
    if isinstance(answer, list):
        return [as_text(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    converted = {}
    for name, value in answer.items():
        if name.endswith("html"):
            blocks = _BLOCK.sub("</p>\n", value)
            converted[_name_as_text(name)] = unescape(_TAG.sub("", _FORMULA.sub(r"$\1$", blocks)))
        else:
            converted[name] = as_text(value)
    return converted


def _name_as_text(name: str) -> str:
    return "text" if name == "html" else name.removesuffix("_html")


# ---- answers

_STRING: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_HTML: Schema = {"$ref": "#/components/schemas/Html"}
_TEXT: Schema = {"$ref": "#/components/schemas/Text"}


def _of(schema: Schema, about: str, **more: Any) -> Schema:
    return {**schema, **more, "description": about}


def _list(items: Schema | str, about: str = "", **more: Any) -> Schema:
    schema = {"type": "array", "items": _reference(items) if isinstance(items, str) else items, **more}
    return _of(schema, about) if about else schema


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(fields: Mapping[str, Schema], about: str = "") -> Schema:
    """Describe an object; a field whose name ends with ``?`` may be missing, and HTML may be text instead."""
    properties, required = dict[str, Schema](), list[str]()
    for name, schema in fields.items():
        properties[name.rstrip("?")] = schema
        if schema is _HTML:
            properties[_name_as_text(name)] = _TEXT
        elif not name.endswith("?"):
            required.append(name)
    described = {"type": "object", "required": required, "properties": properties, "additionalProperties": False}
    return _of(described, about) if about else described


_TIER: Schema = _of(_STRING, "Of a formula: how it matches the query; the matching part is highlighted.",
                    enum=["equal", "renamed", "instance", "contains", "contains, renamed", "contains, instance",
                          "similar"])  # fmt: skip
_PIECE: Mapping[str, Schema] = {
    "html": _HTML,
    "start": _of(_COUNT, "Its first character; formulas count as their LaTeX between dollars."),
    "end": _of(_COUNT, "The character after its last one."),
    "characters": _of(_COUNT, "The length of the whole post."),
}
ANSWERS: Mapping[str, Schema] = {
    "Error": _object({"error": _of(_STRING, "One line that a person can read.")}),
    "Html": _of(_STRING, "Escaped text, <p>, <mark>, <i>, <code>, <span> and MathML; safe to insert. Classes part-0 to "
                "part-7 and part-w distinguish parts of the question; equal, renamed, instance and similar show how "
                "well a formula matches."),
    "Text": _of(_STRING, "Plain text, with formulas in LaTeX between dollars."),
    "Found": _object({
        "query_html": _HTML,
        "suggestions?": _reference("Suggestions"),
        "systems": _list("System"),
        "milliseconds": _COUNT,
    }),
    "Suggestions": _object({
        "words": _list(_object({
            "word": _STRING,
            "similar": _list(_STRING, "Words of the posts, the nearest first.", minItems=1, maxItems=3),
        }), maxItems=8),
        "corrected": _of(_STRING, "The question with the nearest words, each formula as $LaTeX$."),
        "replaced": _of({"type": "boolean"}, "Whether it was searched, because no post has any word of the question."),
    }, "Of words that no post has, where words of the posts are similar."),
    "System": _object({
        "key": {"type": "string", "enum": [*SYSTEMS, "formulas"]},
        "name": _STRING,
        "milliseconds": _COUNT,
        "results": _list("Result"),
        "more": _of({"type": "boolean"}, "Whether more results follow, from offset + k on."),
        "weak?": _of(_COUNT, "The number of weak matches, which weak=1 would add."),
    }),
    "Result": _object({
        "docno": _of(_STRING, "The post, or in mode=formulas its best formula."),
        "post_id": _of(_STRING, "The post, or the post that contains the formula."),
        "score": _of(_NUMBER, "Orders the posts of one question; not comparable between questions."),
        "match?": _of(_NUMBER, "Of a post: the share of unrelated posts that score lower for a random question; from "
                      "0.9 a good match.", minimum=0, maximum=0.999),
        "named?": _of({"type": "boolean"}, "Of a post: whether the question is its name, title, label or number."),
        "title_html": _HTML,
        "snippet_html": _HTML,
        "file": _of(_STRING, "The file that contains the post; empty for a record."),
        "parent": _of(_STRING, "The post that it answers, if that is in the collection; else empty."),
        "line": _of(_COUNT, "The line where it begins; 0 for a whole file."),
        "section": _of(_STRING, "The headings around it, the outermost first."),
        "kind": _of(_STRING, "theorem and the like, section, paragraph or file; empty for a record."),
        "date": _of(_STRING, "The day of the last change, such as 2026-01-31; may be empty."),
        "link": _of(_STRING, "An address of the file by the server's template; may be empty."),
        "latex?": _of(_STRING, "Of a formula: its source."),
        "tier?": _TIER,
        "substitution?": _list(_object({"name_html": _HTML, "value_html": _HTML}),
                               "Of a formula: the values of letters and wildcards of the query."),
        "others?": _list("Formula", "Of a formula: further formulas of the same post, the best first.", maxItems=9),
        "rank_in_first?": {"type": ["integer", "null"], "minimum": 1, "description":
                           "Of a result of the second system: its rank in the first one; null beyond 1,000."},
    }),
    "Formula": _object({"docno": _STRING, "score": _NUMBER, "html": _HTML, "latex": _STRING, "tier": _TIER}),
    "Explanation": _object({
        "docno": _STRING,
        "system": _STRING,
        "score": _NUMBER,
        "query_html": _HTML,
        "document": _reference("Piece"),
        "parts": _list("Part", maxItems=60),
        "rest": _of(_object({"parts": _COUNT, "contribution": _NUMBER}), "The sum of the smaller parts."),
    }),
    "Part": _object({
        "system": {"type": "string", "enum": ["BM25", "MathAMR+", "names"]},
        "part": {"type": "string", "enum": ["word", "symbols", "formula", "sentence", "document", "name"]},
        "query_html": _HTML,
        "document_html": _HTML,
        "contribution": _NUMBER,
    }),
    "Preview": _object({
        "html": _HTML,
        "kind": _of(_STRING, "Whether it is words, words and formulas, or only a formula.",
                    enum=["words", "mixed", "formula"]),
        "latex": _of(_STRING, "The question as text, each formula as $LaTeX$."),
        "problems": _list("Problem", "The faults of its LaTeX.", maxItems=3),
    }),
    "Problem": _object({
        "latex": _of(_STRING, "The formula, or the text after a delimiter that is never closed."),
        "start": _of(_COUNT, "Its first wrong character."),
        "end": _of(_COUNT, "The character after the last wrong one; equal to start if something is missing."),
        "message": _STRING,
    }),
    "Piece": _object(_PIECE, "The part of a post that is shown: all of it, or at most 50,000 characters."),
    "Post": _object({
        "docno": _STRING,
        "title_html": _HTML,
        **_PIECE,
        "latex": _of(_STRING, "The piece as text, each formula as $LaTeX$."),
        "similar": _of(_STRING, "The beginning of the post: a question that finds posts like it."),
        **dict.fromkeys(("parent", "file", "section", "kind", "date", "link"), _STRING),
        "line": _COUNT,
    }),
    "Settings": _object({
        "title": _of(_STRING, "The name of the collection."),
        "about": _of(_STRING, "A sentence about it; may be empty."),
        "formulas": _COUNT,
        "updated": _of(_STRING, "The day of the last build or update, such as 2026-01-31."),
        "size": _of(_COUNT, "The number of posts."),
        "systems": _list(_object({"key": _STRING, "name": _STRING})),
        "examples": _list(_object({
            "kind": {"type": "string", "enum": ["question", "formula", "pattern"]}, "q": _STRING, "html": _HTML,
        })),
        "folders": _list(_STRING, "The folders of the posts; empty for an engine with more than 100,000 posts.",
                         maxItems=200),
        "kinds": _list(_STRING, "The types of the posts, likewise.", maxItems=200),
        "filters": _list(_STRING, "The filters of use: kind and dates only where posts have them."),
    }),
}  # fmt: skip

_ERRORS = {
    "400": "A parameter is missing, unknown or wrong.",
    "401": "The server has a token; send it as Authorization: Bearer TOKEN.",
    "404": "There is no such post.",
    "500": "The server failed; its log has the reason.",
    "503": f"With Retry-After: {WAITING} requests of this client are waiting; try again after so many seconds. "
    f"Without it: the request took more than {SECONDS:g} s of computing.",
}


def description(root_path: str = "") -> dict[str, Any]:
    """Describe the interface, below a path, in OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mathamr serve",
            "version": "1",
            "description": "Search a person's own posts by words and formulas, and see why a post was found. All "
            "requests are GET and change nothing. No other origin may read the answers, and on localhost only its own "
            "names are accepted.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": root_path or "/"}],
        "security": [{}, {"token": []}],
        "paths": {path: {"get": _operation(path, request)} for path, request in REQUESTS.items()},
        "components": {
            "schemas": dict(ANSWERS),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(path: str, request: Request) -> dict[str, Any]:
    parameters = [{"name": name, "in": "query", **PARAMETERS[name]} for name in request.parameters.split()]
    in_path = [
        {"name": name, "in": "path", "required": True, "description": "The id of a post, in percent encoding.",
         "schema": _STRING}
        for name in re.findall(r"{(\w+)}", path)
    ]  # fmt: skip
    drawn = {"image/svg+xml": {"schema": _STRING}}
    answer = {"application/json": {"schema": _reference(request.answer)}} if request.answer else drawn
    error = {"application/json": {"schema": _reference("Error")}}
    of_post = bool(in_path) or "docno" in request.parameters.split()
    return {
        "summary": request.summary,
        **({"description": request.about} if request.about else {}),
        "parameters": [*in_path, *parameters],
        "responses": {
            "200": {"description": "The answer.", "content": answer},
            **{
                status: {"description": about, "content": error}
                for status, about in _ERRORS.items()
                if of_post or status != "404"
            },
        },
    }
