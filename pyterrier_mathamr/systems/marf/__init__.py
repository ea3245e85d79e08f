"""MaRF: the vectors of a text's tokens, into which those of its formulas are fused (Wang, Zheng and Kani).

::

    post ──reading──▶ text ────context─────────▶ E_c [n, d]  ┐
                  └─▶ formulas ──formula_encoder─▶ E_f [m, f] ┴─fusion──▶ O [n, d] ──▶ MaxSim
                                                     one O, a view, for each of up to six formulas

    config       what a model is, and how it is trained
    networks/    the trained parts: formula encoder, fusion, two linear maps and where they start
    model        `MaRF`: the network and its context encoder; files writes it to a folder
    training     pairs of formulas, then pairs of posts; losses
    encoding     many formulas and posts, those of similar lengths together
    transformers doc_encoder, query_encoder, text_scorer
    index        `MaRFIndex`: every view of every document; searching ranks by the mean over views
"""

from __future__ import annotations

from .config import MaRFConfig as MaRFConfig
from .config import MaRFTraining as MaRFTraining
from .index import MaRFIndex as MaRFIndex
from .index import MaRFIndexer as MaRFIndexer
from .model import MaRF as MaRF
from .searching import MaRFRetriever as MaRFRetriever
from .searching import MaRFScorer as MaRFScorer
from .transformers import MaRFDocEncoder as MaRFDocEncoder
from .transformers import MaRFQueryEncoder as MaRFQueryEncoder
from .transformers import MaRFTextScorer as MaRFTextScorer
