"""``mathamr``: the command line."""

from __future__ import annotations

from .commands import main

__all__ = ["main"]
