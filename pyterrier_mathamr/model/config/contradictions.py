"""Options of a configuration that contradict each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyterrier_mathamr._common.errors import ConfigError

if TYPE_CHECKING:
    from .config import MathAMRConfig


def check_together(config: MathAMRConfig) -> None:
    """Refuse options that contradict each other: name one of the two and what the other leaves to choose."""
    text, training, nodes = config.text, config.training, f"virtual_nodes={config.virtual_nodes!r}"
    width = text.text_dimension
    none, hierarchy = config.virtual_nodes == "none", config.virtual_nodes == "hierarchy"
    bags, text_rows = text.word_residual, text.features == "text" and text.text_residual
    contradictions = (
        (none and training.beta != 1, "beta", f"1 with {nodes}, which has no document vector"),
        (none and config.score.document_blend != "none", "document_blend", f"'none' with {nodes}"),
        (config.auxiliary != "none" and not hierarchy, "auxiliary", f"'none' with {nodes}"),
        (bags and text.features != "words", "word_residual", f"False with features={text.features!r}"),
        (bags and not hierarchy, "word_residual", f"False with {nodes}"),
        (text.formula_vectors != "none" and not bags, "formula_vectors", "'none' without word_residual"),
        (
            text.text_context != "windows" and text.features != "text",
            "text_context",
            f"'windows' with features={text.features!r}",
        ),
        (text_rows and config.projection > width, "projection", f"at most text_dimension={width}"),
        (training.min_learning_rate > training.learning_rate, "min_learning_rate", "at most learning_rate"),
    )
    for wrong, name, allowed in contradictions:
        if wrong:
            raise ConfigError(name, getattr(config, name), allowed)
