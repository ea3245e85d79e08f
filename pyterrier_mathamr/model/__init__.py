"""The model: from graphs to vectors and scores (MathAMR+, 3.3 to 3.5).

::

    MathAMRGraph  ──inputs──▶  GraphBatch  ──encoder──▶  float32 [n, d], unit rows  ──encoder.maxsim──▶  score

    config/           what a model is: the paper's Table 4.5, and groups of options for what is added to it
    inputs/           graphs to arrays, as the configuration asks for; batches of similar sizes; the device
    encoder/          the network of the paper and MaxSim
    variants/         what goes beyond the paper: text and bags as rows, weights in the score
    mathamr           `MathAMR`: configuration, vocabulary and weights
    saving/           models on disk: their files, where they are, equality by identity
    transformers      the same as stages of a PyTerrier pipeline
    in_out/           In+Out, a model of formulas alone: trees to a vector for each symbol
    training/         pairs and graphs to a `MathAMR`
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
