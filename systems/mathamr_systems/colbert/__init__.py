"""ColBERT on math text: token rows of questions and answers, compared by MaxSim.

::

    network      a post's text, its tokens, their rows [n, d], [CLS] last; checkpoints of others, in four forms
    training     pairs and wrong answers, losses, all layers or the last
    model        `ColBERT`: all of this; `LateInteraction`: a checkpoint and an index of its vectors, in one line
"""

from __future__ import annotations

from .model import PRESETS as PRESETS
from .model import ColBERT as ColBERT
from .model import LateInteraction as LateInteraction
from .network import ColBERTOptions as ColBERTOptions
from .training import ColBERTTraining as ColBERTTraining
