"""MathAMR with Sentence-BERT: formulas ranked by the text around them (Mansouri, dissertation, 2022, section 4.4).

::

    posts, topics ──contexts──▶ a text for each formula ──model──▶ one vector ──▶ MathAMRIndex.scorer()
"""

from __future__ import annotations

from .contexts import FormulaContexts as FormulaContexts
from .model import MathAMRSentenceBERT as MathAMRSentenceBERT
from .model import judged_triples as judged_triples
