"""Which options of a configuration do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyterrier_mathamr._common.errors import ConfigError

if TYPE_CHECKING:
    from .config import MathAMRConfig


def check_together(config: MathAMRConfig) -> None:
    """Refuse options that contradict each other.

    Args:
        config: each of its options has an allowed value.

    Raises:
        ConfigError: names one of the two and what the other leaves to choose.
    """
    _check_virtual_nodes(config)
    _check_features(config)
    _check_further_training(config)
    if config.min_learning_rate > config.learning_rate:
        raise ConfigError("min_learning_rate", config.min_learning_rate, "at most learning_rate")


def _check_virtual_nodes(config: MathAMRConfig) -> None:
    if config.virtual_nodes == "none" and config.beta != 1:
        raise ConfigError("beta", config.beta, "1 with virtual_nodes='none', which has no document vector")
    if config.virtual_nodes == "none" and config.document_blend != "none":
        raise ConfigError("document_blend", config.document_blend, "'none' with virtual_nodes='none'")
    if config.aggregation == "attention" and config.initialisation != "mean":
        allowed = f"'mean' with initialisation={config.initialisation!r}, where virtual nodes begin without members"
        raise ConfigError("aggregation", config.aggregation, allowed)
    if config.auxiliary != "none" and config.virtual_nodes != "hierarchy":
        raise ConfigError("auxiliary", config.auxiliary, f"'none' with virtual_nodes={config.virtual_nodes!r}")


def _check_features(config: MathAMRConfig) -> None:
    if config.word_residual and (config.features != "words" or config.virtual_nodes != "hierarchy"):
        raise ConfigError("word_residual", True, "False without features='words' and virtual_nodes='hierarchy'")
    if config.text_passages and config.features != "text":
        raise ConfigError("text_passages", True, f"False with features={config.features!r}")
    if config.features == "text" and config.text_residual and config.projection > config.text_dimension:
        raise ConfigError("projection", config.projection, f"at most text_dimension, {config.text_dimension}")


def _check_further_training(config: MathAMRConfig) -> None:
    for name, needs_formulas in (("formula_contrast", True), ("subexpression", True), ("sentence_dropout", False)):
        value = getattr(config, name)
        if value > 0 and (config.virtual_nodes != "hierarchy" or (needs_formulas and config.formulas == "none")):
            raise ConfigError(name, value, "0 without the virtual nodes that it is about")
    if config.subexpression > 0 and config.features == "text" and config.text_residual:
        raise ConfigError("subexpression", config.subexpression, "0 with text_residual: sub-expressions have no text")
    if config.subexpression > 0 and config.word_residual:
        raise ConfigError("subexpression", config.subexpression, "0 with word_residual: a single node is no bag")
