"""The model: from graphs to vectors and scores (MathAMR+, 3.3 to 3.5).

::

    MathAMRGraph  ──features──▶  GraphBatch  ──encoder──▶  float32 [n, d], unit rows  ──encoder.maxsim──▶  score

    config          the configuration: the paper's Table 4.5, and groups of options for our additions
    encoder/        the network of the paper and MaxSim
    features        the arrays of graphs, with vectors of rows from pretrained encoders
    networks        the network of a configuration, and the weights that it starts from
    text_encoder    a pretrained encoder of text
    score_weights   weights in the score; score_fitting: how they are found
    mathamr         `MathAMR`: configuration, vocabulary and weights; saving, weights: its files
    transformers    every model as stages of a PyTerrier pipeline
    loop            the training loop of every model; checkpoints: its state on disk
    trainer         question-answer pairs to a `MathAMR`; pairs: batches of their graphs; losses

The text encoders and the training loop are shared by other systems.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
