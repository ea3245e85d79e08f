"""MaRF: the vectors of a text's tokens, fused with the vectors of its formulas (Wang, Zheng and Kani).

::

    network       options, how a post is read, the frozen language model, the trained part
    training      pairs of formulas, then pairs of posts                            model     `MaRF`: all of this
    index         `MaRFIndex`: every view of every document; ranks by the mean over views
"""

from __future__ import annotations

from .index import MaRFIndex as MaRFIndex
from .model import PRESETS as PRESETS
from .model import MaRF as MaRF
from .network import MaRFConfig as MaRFConfig
from .training import MaRFTraining as MaRFTraining
