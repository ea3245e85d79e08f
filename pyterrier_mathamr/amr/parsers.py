"""Parsers by name, and two kinds beside the embedded one: with processes of its own, and none at all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.errors import INSTALL_SYSTEMS, OF_SYSTEMS, ConfigError
from pyterrier_mathamr.posts import PLACEHOLDER

from .dependency import DependencyAmrParser
from .graph import AmrError
from .parsing import AmrParser, ParsedPart, PartParser


class ParserUnavailableError(AmrError):
    """A parser cannot parse any text: it cannot be loaded, or its worker fails repeatedly.

    Attributes:
        reason: the cause, as the parser reports it.
        parser: name of the parser.
        remedy: what to do.
    """

    parser: str
    remedy: str
    template = "parser {parser} {reason}. {remedy}"


class WorkerParser(PartParser):
    """A parser that starts processes of its own, one on each device.

    Attributes:
        model: the parser's checkpoint.
        devices: a process for each, such as ``cuda:0`` or ``cpu``.
        cache: a file that keeps parsed texts for further runs; ``None`` for none.
        embedded_count: number of texts that the embedded parser has parsed so far, since this one could not.
    """

    model: str
    devices: tuple[str, ...]
    cache: Path | None
    embedded_count: int

    @property
    @abstractmethod
    def options(self) -> Mapping[str, Any]:
        """Return the options that the parser is loaded with."""

    @property
    def batch_posts(self) -> int:
        """Return how many posts keep all processes busy when they are parsed together."""
        return 128 * max(1, len(self.devices))


class SentenceParser(PartParser):
    """No parser: a sentence is a node with its formulas below, ``(s / sentence :math (f0 / FORMULA_0))``."""

    name = "sentences"

    def parse_units(self, units: Sequence[Sequence[str]], unit: str) -> list[ParsedPart]:
        """Make the parts of texts.

        Args:
            units: the texts, each of one sentence.
            unit: ``sentence``.
        """
        parts = []
        for [sentence] in units:
            placeholders = [match[0] for match in PLACEHOLDER.finditer(sentence)]
            edges = [(0, ":math", node) for node in range(1, 1 + len(placeholders))]
            parts.append(ParsedPart(["sentence", *placeholders], edges=edges, roots=[0]))
        return parts


REGISTERED = "mathamr_parsers"
"""The entry points by which other distributions register parsers."""


def get_parser(name_or_parser: str | AmrParser, **options: Any) -> AmrParser:
    """Return the parser of a name, made with ``options``, or ``name_or_parser`` itself where it is a parser.

    Raises:
        ConfigError: there is no such parser, or it does not accept an option.
    """
    if isinstance(name_or_parser, str):
        make: Callable[..., AmrParser] | None = DependencyAmrParser
        if name_or_parser != DependencyAmrParser.name:
            make = next((entry.load() for entry in entry_points(group=REGISTERED, name=name_or_parser)), None)
        if make is not None:
            return make(**options) if options else _shared(make)
    elif isinstance(name_or_parser, AmrParser):
        return name_or_parser
    others = entry_points(group=REGISTERED)
    names = ", ".join(map(repr, [DependencyAmrParser.name, *(entry.name for entry in others)]))
    advice = "" if others else f"; {' and '.join(map(repr, OF_SYSTEMS['parsers']))} need: {INSTALL_SYSTEMS}"
    raise ConfigError("parser", name_or_parser, f"{names} or an object with the methods of AmrParser{advice}")


@cache
def _shared(make: Callable[[], AmrParser]) -> AmrParser:
    return make()
