"""Neural parsers in interpreters of their own: workers that are fed, watched, restarted, and whose answers are kept."""

from __future__ import annotations

from .doctor import Finding, ForeignParser, examine
from .neural import AmrlibParser, TransitionAmrParser
from .parser import WorkerParser
from .pool import WorkerLimits

__all__ = ["AmrlibParser", "Finding", "ForeignParser", "TransitionAmrParser", "WorkerLimits", "WorkerParser", "examine"]
