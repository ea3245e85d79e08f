"""ColBERT on math text: token rows of questions and answers, compared by MaxSim.

::

    posts ─▶ texts ─▶ encoding ─▶ rows [n, d], [CLS] last ─▶ encoders ─▶ MathAMRIndex
              │          │
              │          └ network      language model, projection, mask, unit length
              └ formulas as math tokens

    checkpoints   of others, in four forms       files     what save() adds
    start         math tokens, projection        options   of model and training, presets
    training_data ─▶ training ◀─ losses          model     `ColBERT`: all of this
"""

from __future__ import annotations

from .encoders import ColBERTDocEncoder as ColBERTDocEncoder
from .encoders import ColBERTQueryEncoder as ColBERTQueryEncoder
from .encoders import ColBERTTextScorer as ColBERTTextScorer
from .model import ColBERT as ColBERT
from .options import PRESETS as PRESETS
from .options import ColBERTOptions as ColBERTOptions
from .options import ColBERTTraining as ColBERTTraining
