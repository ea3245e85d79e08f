"""Figures that cannot flatter: whatever is chosen is chosen on other topics than those that are measured.

::

    definition ─┐    a system: its settings, or how it is fitted
                ▼
    material ──▶ systems/ ────┐    all by their names, from the artifacts of a work folder; fusions, ensembles
                              ▼
    folds ──▶ nested ──▶ protocol_run ──▶ tables, overview (costs), pictures
      who is chosen on, who is measured

    beyond/: other collections than ARQMath, by the same means
"""

from __future__ import annotations

from pyterrier_mathamr.experiments.beir import run_beir
from pyterrier_mathamr.experiments.choosing.definition import (
    Choice,
    Fitted,
    Learned,
    ProtocolSystem,
    Questions,
    Training,
)
from pyterrier_mathamr.experiments.choosing.folds import Fold, crossed_years, pooled_folds
from pyterrier_mathamr.experiments.choosing.fused import Fused
from pyterrier_mathamr.experiments.choosing.nested import Nested
from pyterrier_mathamr.experiments.mteb_search import MTEBSearch

from .domains import run_domains
from .protocol_run import run_protocol
from .systems.catalogue import LEARNED

__all__ = [
    "LEARNED",
    "Choice",
    "Fitted",
    "Fold",
    "Fused",
    "Learned",
    "MTEBSearch",
    "Nested",
    "ProtocolSystem",
    "Questions",
    "Training",
    "crossed_years",
    "pooled_folds",
    "run_beir",
    "run_domains",
    "run_protocol",
]
