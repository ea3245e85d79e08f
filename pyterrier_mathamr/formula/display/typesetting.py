"""Formulas as outlines: ``ziamath`` draws MathML in STIX Two Math, so a picture looks the same in every viewer."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import lru_cache

from pyterrier_mathamr._common.drawing import Outlines
from pyterrier_mathamr._common.running.worker import MEMORY, OverLimitError, Worker

from .rendering import formula_html

_LONGEST = 400  # characters of LaTeX; more take long, and too much space
_DEEPEST = 6  # stretched levels, a fifth of a second
_FENCES = frozenset("()[]{}|‖⟨⟩⌈⌉⌊⌋")
_SMALLEST = 0.7  # of the size, in which a wide formula is still legible
_COMPACT = re.compile(r"(?<=[A-Za-z]) | (?=[A-Za-z])|\s+$")
_KEPT = ("x", "y", "width", "height", "d", "stroke-width")


def typeset(latex: str, size: int, room: float) -> Outlines | None:
    """Typeset a formula."""
    drawn = _outlines(latex, size)
    if drawn is None or drawn.width <= room:
        return drawn
    smaller = room / drawn.width
    if smaller < _SMALLEST:
        return None
    body = f'<g transform="scale({smaller:.3f})">{drawn.body}</g>'
    return drawn._replace(width=room, body=body, ascent=drawn.ascent * smaller, descent=drawn.descent * smaller)


@lru_cache(maxsize=4096)
def _outlines(latex: str, size: int) -> Outlines | None:
    mathml = formula_html(latex) if len(latex) <= _LONGEST else ""
    if not mathml.startswith("<math") or _stretched_levels(mathml) > _DEEPEST:
        return None
    try:
        return _set(mathml, latex, size)
    except OverLimitError:
        return None


def outlines_of(mathml: str, latex: str, size: int) -> Outlines | None:
    """Typeset MathML; ``None`` where ``ziamath`` does not know it."""
    from ziamath.zmath import Math

    try:
        formula = Math(mathml, size=size)
        root = ET.Element("g")
        formula.drawon(root)
        box = formula.node.bbox
        body, symbols = _painted(root)
    except Exception:  # whatever its code raises for MathML that it does not know: the LaTeX is shown instead
        return None
    # Italic letters lean out of their boxes, so there is a pixel on each side.
    inside = f'<g transform="translate({1 - box.xmin:.2f} 0)">{body}</g>'
    return Outlines(latex, box.xmax - box.xmin + 2, max(box.ymax, 0.0), max(-box.ymin, 0.0), inside, symbols)


_set = Worker(outlines_of, seconds=5.0, memory=MEMORY)


def _stretched_levels(mathml: str) -> int:
    """Count how deep brackets and tables that grow with their content are nested: each level doubles the time."""
    deepest = 0
    stack = [(ET.fromstring(mathml), 0)]
    while stack:
        element, level = stack.pop()
        grown = any(
            child.tag == "mo" and child.get("stretchy") != "false" and child.text in _FENCES for child in element
        )
        level += grown + (element.tag == "mtable")
        deepest = max(deepest, level)
        stack += [(child, level) for child in element]
    return deepest


def _painted(root: ET.Element) -> tuple[str, dict[str, str]]:
    """Write the elements in the color of their surroundings, each outline once."""
    outlines: dict[str, str] = {}
    scales: dict[str, tuple[float, float]] = {}  # top and height of the box of a symbol
    pieces = []
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag == "symbol":
            name, path = _name(element.attrib["id"]), element.find("path")
            _, top, _, height = map(float, element.attrib["viewBox"].split())
            scales[name] = (top, height)
            if path is not None:
                outlines[name] = _COMPACT.sub("", path.attrib["d"])
        elif element.tag == "use":
            pieces.append(_use(element, outlines, scales))
        elif element.tag in ("rect", "path"):
            pieces.append(_shape(element))
        else:
            stack += reversed(element)
    return "".join(pieces), outlines


def _use(element: ET.Element, outlines: dict[str, str], scales: dict[str, tuple[float, float]]) -> str:
    """Place an outline; nothing for a blank, which has none."""
    name = _name(element.attrib["href"])
    if name not in outlines:
        return ""
    x, y, high = (float(element.attrib[key]) for key in ("x", "y", "height"))
    top, height = scales[name]
    scale = high / height
    return f'<use href="#{name}" transform="translate({x:.2f} {y - top * scale:.2f}) scale({scale:.4g})"/>'


def _shape(element: ET.Element) -> str:
    """Write a rule, such as the line of a fraction, or the frame of a box."""
    fill, stroke = element.get("fill", "black"), element.get("stroke", "none")
    if fill == "yellow":
        raise ValueError("the mark of what is not understood")
    kept = "".join(f' {name}="{element.attrib[name]}"' for name in _KEPT if name in element.attrib)
    painted = (' fill="none"' if fill == "none" else "") + (' stroke="currentColor"' if stroke != "none" else "")
    return f"<{element.tag}{kept}{painted}/>"


def _name(reference: str) -> str:
    """Name an outline by its font and number, so that pictures in one page may share it."""
    return "g-" + re.sub(r"\W", "_", reference.removeprefix("#"))
