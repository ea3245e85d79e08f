"""Colours of the pictures: the eight of Okabe and Ito, which are distinct with every colour vision.

Kinds of nodes differ in shape and place, too, never by colour alone. In each theme text has a contrast of at least 4.5
to its background.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from pyterrier_mathamr._common.errors import ConfigError

Theme = Literal["light", "dark"]
"""The background of a picture."""

BETTER, WORSE = "#0072B2", "#D55E00"
"""Blue and vermilion of Okabe and Ito."""


class Paint(NamedTuple):
    """The colours of a kind of node: fill, border, text."""

    fill: str
    border: str
    text: str


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of a theme.

    Attributes:
        ground: behind everything.
        panel: behind a group.
        line: edges and the borders of groups.
        text: headings.
        quiet: roles, edge labels.
        concept: of concepts and constants.
        placeholder: of formulas in a sentence.
        opt: of operator trees.
        slt: of symbol layout trees.
        virtual: of virtual nodes and their edges: the inverse of the ground.
    """

    ground: str
    panel: str
    line: str
    text: str
    quiet: str
    concept: Paint
    placeholder: Paint
    opt: Paint
    slt: Paint
    virtual: Paint


_PALETTES = {
    "light": Palette(
        ground="#ffffff",
        panel="#f5f6f8",
        line="#7d8894",
        text="#16191d",
        quiet="#545d68",
        concept=Paint("#ddeefa", "#0072B2", "#0b2a3f"),
        placeholder=Paint("#E69F00", "#8a5f00", "#1a1200"),
        opt=Paint("#d6f2e8", "#009E73", "#06332a"),
        slt=Paint("#f7e3ee", "#b0608c", "#45132f"),
        virtual=Paint("#2f3640", "#2f3640", "#ffffff"),
    ),
    "dark": Palette(
        ground="#14171b",
        panel="#1e2329",
        line="#6b7683",
        text="#eceff2",
        quiet="#a9b3be",
        concept=Paint("#0f3a57", "#56B4E9", "#e3f3fd"),
        placeholder=Paint("#E69F00", "#ffcf66", "#1a1200"),
        opt=Paint("#0a4235", "#2fc79c", "#dcfaf0"),
        slt=Paint("#54233f", "#e39ac2", "#fde8f3"),
        virtual=Paint("#e6eaee", "#e6eaee", "#14171b"),
    ),
}


def mixed(ground: str, color: str, share: float) -> str:
    """Mix a share of a color, 0 to 1, into a ground."""
    pairs = zip(_channels(ground), _channels(color), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def text_on(color: str) -> str:
    """Return black or white, whichever stands out more from a color."""
    red, green, blue = ((channel / 255) ** 2.2 for channel in _channels(color))
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 else "#ffffff"


def _channels(color: str) -> list[int]:
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]


def palette(theme: Theme) -> Palette:
    """Return the colours of a theme."""
    if theme not in _PALETTES:
        raise ConfigError("theme", theme, "one of " + ", ".join(map(repr, get_args(Theme))))
    return _PALETTES[theme]
