"""Drawings as SVG without any other package: colors, a canvas, and two layouts of trees."""

from __future__ import annotations
