"""The network of a configuration: the paper's encoder, or one whose rows are text vectors or bags of words.

::

    features   word_residual   text_residual   layers   network
    lookup     no              –               any      Encoder, Figure 3.3
    words      no              –               any      Encoder, whose labels start from word vectors
    words      yes             –               ≥ 1      BagEncoder
    words      yes             –               0        BagsAlone (both: with FormulaVectors, if ``formula_vectors``)
    text       –               yes             0        TextAlone
    text       –               otherwise                TextRowEncoder
"""

from __future__ import annotations

from torch import nn

from pyterrier_mathamr.model.config.config import MathAMRConfig
from pyterrier_mathamr.model.encoder.encoder import Encoder

from .bags import BagEncoder, BagsAlone
from .text_rows import TextAlone, TextRowEncoder


def network(config: MathAMRConfig, num_labels: int, num_relations: int) -> nn.Module:
    """Build the network that a configuration asks for, with random weights."""
    text = config.text
    if text.features == "text":
        alone = text.text_residual and config.layers == 0
        return TextAlone(config) if alone else TextRowEncoder(config, num_labels, num_relations)
    if text.word_residual:
        return BagsAlone(config, num_labels) if config.layers == 0 else BagEncoder(config, num_labels, num_relations)
    return Encoder(config, num_labels, num_relations)
