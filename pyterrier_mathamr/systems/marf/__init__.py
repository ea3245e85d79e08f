"""MaRF: the vectors of a text's tokens, into which those of its formulas are fused (Wang, Zheng and Kani).

::

    context       options, what is read of a post, the frozen language model      network   what is trained
    training      pairs of formulas, then pairs of posts                          model     `MaRF`: all of this
    index         `MaRFIndex`: every view of every document; ranks by the mean over views
"""

from __future__ import annotations

from .context import MaRFConfig as MaRFConfig
from .index import MaRFIndex as MaRFIndex
from .model import PRESETS as PRESETS
from .model import MaRF as MaRF
from .training import MaRFTraining as MaRFTraining
