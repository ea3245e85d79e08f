"""The model: from graphs to vectors and scores (MathAMR+, 3.3 to 3.5).

::

    MathAMRGraph ──encoding──▶ GraphBatch ──networks──▶ float32 [n, d], unit rows ──exact──▶ score
    pairs of ids ──trainer──▶ TrainingBatch ──networks──▶ rows ──losses──▶ L ──loop──▶ a step of the optimizer

    config          the configuration: the paper's Table 4.5, and groups of options for our additions
    mathamr         `MathAMR`: configuration, vocabulary and weights; saving: its files
    transformers    any model that turns posts into rows as stages of a PyTerrier pipeline
    encoding        graphs to arrays, with features from a text encoder, and these in batches through a network
    networks        the encoder of the paper, our additions, and initial weights; rgcn: its layers
    exact           MaxSim and its weights, as every search and scorer computes them; score_weights: their fit
    text_encoder    a pretrained encoder of text; packed_bert, bert: our forward pass in numpy and torch
    trainer         question-answer pairs to a `MathAMR`; pairs: which of them, and their negatives; losses
    loop            the training loop of every model, its folder and processes; checkpoints: its state on disk
    batching        devices and batches of similar sizes

The text encoders and the training loop are shared by other systems.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
