"""MathML text → elements, and elements → tree: what Presentation and Content MathML have in common.

A table maps each tag to the function that makes the symbol of an element. Elements are visited in reverse document
order: all children of an element have their symbols before the element itself, at any depth and without recursion.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from html.entities import html5
from typing import TypeVar
from xml.parsers import expat

from lxml import etree

from .tree import FormulaError

S = TypeVar("S")

Rule = Callable[[etree._Element, list[S | None]], S | None]
"""Builds the symbol of an element from it and the symbols of its children."""

_NAMESPACES = ("", "{http://www.w3.org/1998/Math/MathML}", "{http://search.mathweb.org/ns}")
_DEEPEST = 2048  # levels that libxml2 reads
_DECLARATION = "<?xml"
_ENTITY = re.compile(r"&(\w+);")
_REFERENCE = re.compile(r"&#(?:x0*([\da-fA-F]+)|0*(\d+));?")
_XML_ENTITIES = frozenset({"amp", "lt", "gt", "quot", "apos"})
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML does not allow."""
_ESCAPES = str.maketrans(
    {"\t": r"\t", "\n": r"\n", "\r": r"\r", "?": "&quest;", ",": "&comma;", "[": "&lsqb;", "]": "&rsqb;"}
)
_INVISIBLE = frozenset("\u2061\u2062\u2063\u2064")
_ATTRIBUTE = re.compile(r"""=\s*("[^"]*"|'[^']*')""")

_BARE = re.compile(r"<(?![/a-zA-Z!?])")


def _parser(recover: bool) -> etree.XMLParser:
    """Make a parser that reads nothing but the text: no network, no document type, no entity."""
    return etree.XMLParser(
        recover=recover,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )


_PARSER, _RECOVERING = _parser(False), _parser(True)


def clean(text: str | None) -> str:
    """Strip the text of a token and escape the characters of the tuple format, as in a label."""
    if not text:
        return ""
    text = text.strip()
    if text.isalnum():  # nearly always
        return text
    return "" if text in _INVISIBLE else text.translate(_ESCAPES)


def table(rules: Mapping[str, Rule[S]]) -> dict[str, Rule[S]]:
    """Make a table of rules that also finds the tags with their namespaces."""
    return {namespace + tag: rule for tag, rule in rules.items() for namespace in _NAMESPACES}


def parse(source: str) -> etree._Element:
    """Parse MathML, with recovery, without network, document types or custom entities."""
    text = source
    while text.lstrip().startswith(_DECLARATION):  # lxml refuses a declared encoding in text that is decoded already
        _, _, text = text.partition("?>")
    try:
        return etree.fromstring(text, _PARSER)
    except (etree.XMLSyntaxError, ValueError):
        return _parse_broken(text, source)


def _parse_broken(text: str, source: str) -> etree._Element:
    """Parse MathML that is not well-formed, with named characters or a bare ``<`` (33 official cells), or too deep."""

    def named(entity: re.Match[str]) -> str:
        """Spell out a named character (``&ApplyFunction;``) that XML does not know."""
        return entity[0] if entity[1] in _XML_ENTITIES else html5.get(f"{entity[1]};", entity[0])

    text = NOT_XML.sub("", _REFERENCE.sub(_allowed, _ENTITY.sub(named, text)))
    text = _BARE.sub("&lt;", _ATTRIBUTE.sub(lambda match: match[0].replace("<", "&lt;"), text))
    if text.count("</") > _DEEPEST and (root := _parse_deep(text)) is not None:
        return root
    try:
        root = etree.fromstring(text, _RECOVERING) if text.strip() else None
    except (etree.XMLSyntaxError, ValueError) as error:
        raise FormulaError(f"not MathML: {error}", source) from error
    if root is None:
        raise FormulaError("no MathML", source)
    etree.strip_tags(root, etree.Entity)  # unknown entities
    return root


def _allowed(match: re.Match[str]) -> str:
    """Drop a character reference that XML does not allow: libxml2 reads half a surrogate, lxml fails."""
    number = int(match[1][:7], 16) if match[1] else int(match[2][:8])
    return match[0] if number <= sys.maxunicode and not NOT_XML.match(chr(number)) else ""


def _parse_deep(text: str) -> etree._Element | None:
    """Parse text that may nest deeper than libxml2 reads; ``None`` when it is not well-formed."""
    builder = etree.TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def start(name: str, attributes: dict[str, str]) -> None:
        builder.start("{" + name if "}" in name else name, dict(attributes.items()))

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: builder.end("{" + name if "}" in name else name)
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(text, True)
    except expat.ExpatError:
        return None
    return builder.close()


def fold(root: etree._Element, rules: Mapping[str, Rule[S]], unknown: Rule[S]) -> tuple[S | None, bool]:
    """Build the symbol of an element from the leaves up."""
    made: list[S | None] = []
    known = True
    for element in reversed(list(root.iter())):
        rule = rules.get(element.tag)
        if rule is None:
            rule, known = unknown, False
        count = len(element)
        if count:
            children = made[: -count - 1 : -1]
            del made[-count:]
            made.append(rule(element, children))
        else:
            made.append(rule(element, []))
    return made[0], known
