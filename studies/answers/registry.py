"""All studies of answer retrieval by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pyterrier_mathamr._common.errors import ConfigError

from . import colbert, extract, hybrid, marf, two_step
from .definition import AnswerStudy

ANSWER_STUDIES: Mapping[str, AnswerStudy] = MappingProxyType(
    {module.STUDY.name: module.STUDY for module in (colbert, hybrid, marf, two_step, extract)}
)
"""All studies of answer retrieval by name."""


def find_answer_study(name: str) -> AnswerStudy:
    """Look up a study."""
    if name not in ANSWER_STUDIES:
        raise ConfigError("study", name, "one of " + ", ".join(ANSWER_STUDIES))
    return ANSWER_STUDIES[name]
