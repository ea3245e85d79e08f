"""The model: from graphs to vectors and scores (MathAMR+, 3.3 to 3.5).

::

    MathAMRGraph  ──inputs──▶  GraphBatch  ──encoder──▶  float32 [n, d], unit rows  ──encoder.maxsim──▶  score

    config/           what a model is: the paper's Table 4.5, and groups of options for what is added to it
    inputs/           graphs to arrays, as the configuration asks for; batches of similar sizes; the device
    encoder/          the network of the paper and MaxSim
    variants/         what goes beyond the paper: text and bags as rows, weights in the score
    mathamr           `MathAMR`: configuration, vocabulary and weights
    saving/           models on disk: their files, where they are, equality by identity
    joined/           several models as one, their rows side by side
    transformers      the same as stages of a PyTerrier pipeline
    in_out/           In+Out, a model of formulas alone: trees to a vector for each symbol
    training/         pairs and graphs to a `MathAMR`
"""

from __future__ import annotations

from .config.config import MathAMRConfig
from .config.options import ScoreOptions, TextOptions, TrainingOptions, VocabularyOptions
from .encoder.encoder import Encoder, ProjectionHead, RelationalLayer
from .encoder.initial import InitialState
from .encoder.maxsim import best_matches, exact_maxsim, maxsim, maxsim_matrix
from .encoder.plan import RelationPlan
from .encoder.rgcn import RelationalGraphConv
from .errors import (
    ModelError,
    ModelFileError,
    ModelNotFoundError,
    ShapeError,
    TrainingError,
    UnsafeModelError,
)
from .joined.model import JoinedMathAMR
from .mathamr import MathAMR, vectors_by
from .training.augment import augment
from .training.distributed import is_first
from .training.history import EpochRecord
from .training.losses import ContrastiveLoss, info_nce, normalise
from .training.score_weight_fitting import fit_score_weights, kind_sums
from .training.trainer import Trainer
from .transformers import DocEncoder, QueryEncoder, TextScorer
from .variants.bags import WordBags
from .variants.score_weights import ScoreWeights
from .variants.text import TextEncoder

__all__ = [
    "ContrastiveLoss",
    "DocEncoder",
    "Encoder",
    "EpochRecord",
    "InitialState",
    "JoinedMathAMR",
    "MathAMR",
    "MathAMRConfig",
    "ModelError",
    "ModelFileError",
    "ModelNotFoundError",
    "ProjectionHead",
    "QueryEncoder",
    "RelationPlan",
    "RelationalGraphConv",
    "RelationalLayer",
    "ScoreOptions",
    "ScoreWeights",
    "ShapeError",
    "TextEncoder",
    "TextOptions",
    "TextScorer",
    "Trainer",
    "TrainingError",
    "TrainingOptions",
    "UnsafeModelError",
    "VocabularyOptions",
    "WordBags",
    "augment",
    "best_matches",
    "exact_maxsim",
    "fit_score_weights",
    "info_nce",
    "is_first",
    "kind_sums",
    "maxsim",
    "maxsim_matrix",
    "normalise",
    "vectors_by",
]
