"""The embedded parser: a dependency tree by a small network, and rules from there to AMR."""

from __future__ import annotations

from .parser import DependencyAmrParser

__all__ = ["DependencyAmrParser"]
