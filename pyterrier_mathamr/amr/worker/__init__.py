"""Neural parsers in interpreters of their own: workers that are fed, watched, restarted, and whose answers are kept."""

from __future__ import annotations

from .amrlib_parser import AmrlibParser
from .doctor import Finding, ForeignParser, examine
from .limits import WorkerLimits
from .parser import WorkerParser
from .transition import TransitionAmrParser

__all__ = ["AmrlibParser", "Finding", "ForeignParser", "TransitionAmrParser", "WorkerLimits", "WorkerParser", "examine"]
