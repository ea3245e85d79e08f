"""In+Out (Amador and Zanibbi, ICTIR 2025): a vector for each symbol of a formula, learned only from formulas.

::

    trees ──graphs──▶ SLG, OPG ──network──▶ a unit vector for each node ──model──▶ `InOut`, in memory and on disk
              └─subexpressions─▶ parts ──┘      └─loss, pairings─▶ training: graphs of one formula against others

Searching by these vectors is ``systems/in_out``.
"""

from __future__ import annotations

from .graphs import InOutOptions as InOutOptions
from .model import InOut as InOut
from .model import train_in_out as train_in_out
