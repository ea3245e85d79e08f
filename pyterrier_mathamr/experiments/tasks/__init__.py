"""Task 1, Task 2 and the demo as declarations: which systems on which topics, and what the report says."""

from __future__ import annotations

from .demo import run_demo
from .presets import TRAINING_PRESETS
from .task1 import run_arqmath
from .task2 import run_task2

__all__ = ["TRAINING_PRESETS", "run_arqmath", "run_demo", "run_task2"]
