"""The study ``answers/marf``."""

from __future__ import annotations

from .definition import AnswerStudy

STUDY = AnswerStudy("answers/marf", "MaRF: formulas fused into the tokens of the text", rows=())
