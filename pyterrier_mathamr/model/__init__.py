"""The model: R-GCN encoder, MaxSim, losses, training, checkpoints and transformers (MathAMR+, 3.3 to 3.5)."""

from __future__ import annotations

from .attention import MemberAttention
from .augment import augment, drop_sentences
from .bags import WordBags
from .config import MathAMRConfig
from .encoder import Encoder, ProjectionHead, RelationalLayer
from .encoders import DocEncoder, QueryEncoder, TextScorer
from .errors import (
    MissingFeaturesError,
    MissingGraphError,
    ModelError,
    ModelFileError,
    ModelFormatError,
    ModelHubError,
    ModelNotFoundError,
    NonFiniteLossError,
    ShapeError,
    TrainingError,
    UnknownOptionError,
    UnsafeModelError,
)
from .fit import fit_score_weights, kind_sums
from .formula_contrast import formula_contrast
from .history import EpochRecord
from .identity import vectors_by
from .initial import InitialState
from .losses import ContrastiveLoss, info_nce, normalise
from .mathamr import MathAMR
from .maxsim import best_matches, maxsim, maxsim_matrix
from .plan import RelationPlan
from .ranks import is_first
from .rgcn import RelationalGraphConv
from .text import TextEncoder
from .trainer import Trainer
from .weights import ScoreWeights

__all__ = [
    "ContrastiveLoss",
    "DocEncoder",
    "Encoder",
    "EpochRecord",
    "InitialState",
    "MathAMR",
    "MathAMRConfig",
    "MemberAttention",
    "MissingFeaturesError",
    "MissingGraphError",
    "ModelError",
    "ModelFileError",
    "ModelFormatError",
    "ModelHubError",
    "ModelNotFoundError",
    "NonFiniteLossError",
    "ProjectionHead",
    "QueryEncoder",
    "RelationPlan",
    "RelationalGraphConv",
    "RelationalLayer",
    "ScoreWeights",
    "ShapeError",
    "TextEncoder",
    "TextScorer",
    "Trainer",
    "TrainingError",
    "UnknownOptionError",
    "UnsafeModelError",
    "WordBags",
    "augment",
    "best_matches",
    "drop_sentences",
    "fit_score_weights",
    "formula_contrast",
    "info_nce",
    "is_first",
    "kind_sums",
    "maxsim",
    "maxsim_matrix",
    "normalise",
    "vectors_by",
]
