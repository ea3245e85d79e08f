"""Neural parsers in interpreters of their own: worker processes whose answers are cached.

neural     TransitionAmrParser, AmrlibParser: model and options
│
parser     post -> texts -> those not in the cache ──┐        answers -> parts -> one graph
│                                                  │           ▲
messages   texts with their keys, batches, answers   ▼           │
pool       one worker per device; halves failed batches, restarts broken workers
│                                                  │           ▲
process    a process and its pipes                   ▼  JSON     │
serve      runs alone in the foreign interpreter: load, parse, check
doctor     reports what a foreign environment lacks
"""

from __future__ import annotations

from .doctor import Finding, ForeignParser, examine
from .neural import AmrlibParser, TransitionAmrParser
from .parser import WorkerParser
from .pool import WorkerLimits

__all__ = ["AmrlibParser", "Finding", "ForeignParser", "TransitionAmrParser", "WorkerLimits", "WorkerParser", "examine"]
