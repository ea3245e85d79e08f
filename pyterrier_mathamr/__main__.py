"""``python -m pyterrier_mathamr``: the command line, also for launchers such as ``torchrun -m``."""

from __future__ import annotations

from .cli import main

main(prog_name="mathamr")
