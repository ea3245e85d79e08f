"""`Picture`: an SVG file as a value, and `Canvas`, on which it is painted.

Text is monospaced, so that its width is known without the font and the layout fits in every viewer; formulas are
outlines. The picture needs no script, style sheet or font file.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import NamedTuple

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.extras import require

from .palette import Paint

FONT_SIZE = 11
_SYMBOLS = 0x2070  # from here on a monospaced font may lack a character
_ADVANCE = 0.61  # of the font size: DejaVu Sans Mono, Menlo and Liberation Mono are between 0.600 and 0.602
_FONT = "'DejaVu Sans Mono', Menlo, 'Liberation Mono', Consolas, monospace"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # by XML 1.0, escaped or not


def picture_path(path: str | Path, endings: tuple[str, ...]) -> Path:
    """Check the name of a picture's file and create its folder."""
    path = Path(path)
    if path.suffix.lower() not in endings:
        raise ConfigError("path", str(path), f"a name that ends in {' or '.join(endings)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as SVG; notebooks show it.

    Attributes:
        svg: the whole file.
        width: in pixels.
        height: in pixels.
    """

    svg: str = field(repr=False)
    width: int
    height: int

    def save(self, path: str | Path) -> Path:
        """Write the picture and return its path.

        Args:
            path: the file, ``.svg``, or with the extra ``plots`` ``.png`` or ``.pdf``; its folder is created if
                necessary.

        Raises:
            ConfigError: the name has another ending.
            MissingExtraError: the form is not SVG, and CairoSVG is not installed.
        """
        path = picture_path(path, (".svg", ".png", ".pdf"))
        if path.suffix.lower() == ".svg":
            path.write_text(self.svg, encoding="utf-8")
            return path
        converter = require("cairosvg", "plots")
        if path.suffix.lower() == ".png":
            converter.svg2png(self.svg.encode(), write_to=str(path), scale=2)
        else:
            converter.svg2pdf(self.svg.encode(), write_to=str(path))
        return path

    def __str__(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg


class Outlines(NamedTuple):
    """A line of outlines, such as a formula, from the left end of its base line.

    Attributes:
        text: what it says.
        width: in pixels.
        ascent: above the base line.
        descent: below it.
        body: SVG elements that use the symbols.
        symbols: the outline of each symbol as an SVG path, by a name that is the same in every picture.
    """

    text: str
    width: float
    ascent: float
    descent: float
    body: str
    symbols: dict[str, str]


class Canvas:
    """SVG elements in the order in which they are painted."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._symbols: dict[str, str] = {}

    def outlines(self, x: float, y: float, drawn: Outlines, color: str) -> None:
        """Paint outlines whose base line begins at ``x``, ``y``."""
        self._symbols |= drawn.symbols
        self._parts.append(
            f'<g class="outlines" transform="translate({x:.1f} {y:.1f})" fill="{color}" color="{color}">'
            f"<title>{xml_text(drawn.text)}</title>{drawn.body}</g>"
        )

    def chip(
        self, x: float, y: float, width: float, text: str, paint: Paint, title: str, *, marks: str, letter: str = ""
    ) -> None:
        """Paint a node."""
        words = marks.split()
        radius = 8 if "round" in words else 2
        dash = ' stroke-dasharray="3 2"' if "dashed" in words else ""
        weight = ' font-weight="bold"' if "strong" in words else ""
        # Two elements, since CairoSVG centers the pieces of one element by themselves.
        lead = text_width(f"{letter} ") if letter else 0.0
        before = (
            f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" font-size="9" fill="{paint.text}" opacity="0.75">'
            f"{xml_text(letter)}</text>"
        )
        self._parts.append(
            f'<g class="node {marks}"><title>{xml_text(title)}</title>'
            f'<rect x="{x:.1f}" y="{y - 8:.1f}" width="{width:.1f}" height="16" rx="{radius}" fill="{paint.fill}"'
            f' stroke="{paint.border}"{dash}/>{before if letter else ""}'
            f'<text x="{x + (width + lead) / 2:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{paint.text}"{weight}>'
            f"{xml_text(text)}</text></g>"
        )

    def panel(
        self, x: float, y: float, width: float, height: float, fill: str, border: str, marks: str, *, radius: int = 6
    ) -> None:
        """Paint the background of a group; ``dashed`` among the marks changes its border."""
        dash = ' stroke-dasharray="4 3"' if "dashed" in marks.split() else ""
        self._parts.append(
            f'<rect class="{marks}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}"'
            f' fill="{fill}" stroke="{border}"{dash}/>'
        )

    def line(self, path: str, colour: str, marks: str = "edge", *, width: float = 1.0) -> None:
        """Paint a line along an SVG path."""
        self._parts.append(f'<path class="{marks}" d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')

    def text(
        self,
        x: float,
        y: float,
        text: str,
        colour: str,
        *,
        title: str = "",
        strong: bool = False,
        size: int = FONT_SIZE,
    ) -> None:
        """Write a line of text whose left end of the base line is at ``x``, ``y``."""
        weight = ' font-weight="bold"' if strong else ""
        tip = f"<title>{xml_text(title)}</title>" if title else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}"{weight}>{tip}{xml_text(text)}</text>'
        )

    def picture(self, width: float, height: float, ground: str, title: str) -> Picture:
        """Return the picture of the elements on a background."""
        across, down = int(width + 0.999), int(height + 0.999)
        symbols = "".join(f'<path id="{name}" d="{path}"/>' for name, path in self._symbols.items())
        defined = f"<defs>{symbols}</defs>" if symbols else ""
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {down}" width="{across}" height="{down}"'
            f' font-family="{_FONT}" font-size="{FONT_SIZE}" role="img" xml:space="preserve">'
            f"<title>{xml_text(title)}</title>{defined}"
            f'<rect width="{across}" height="{down}" fill="{ground}"/>' + "".join(self._parts) + "</svg>\n"
        )
        return Picture(svg, across, down)


def xml_text(text: str) -> str:
    """Escape text for XML; characters that XML forbids become �."""
    return escape(_FORBIDDEN.sub("\ufffd", text))


def columns(text: str) -> int:
    """Count the columns that a text takes at most."""
    return sum(0 if unicodedata.combining(sign) else 2 if _wide(sign) else 1 for sign in text)


def _wide(sign: str) -> bool:
    return ord(sign) >= _SYMBOLS or unicodedata.east_asian_width(sign) in "WF"


def text_width(text: str, size: int = FONT_SIZE) -> float:
    """Compute the width of a line of text in pixels."""
    return columns(text) * size * _ADVANCE


def shortened(text: str, limit: int) -> str:
    """Cut a text to at most ``limit`` characters, with an ellipsis; white space becomes one blank."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
