"""The study ``answers/hybrid``."""

from __future__ import annotations

from .definition import AnswerStudy

STUDY = AnswerStudy("answers/hybrid", "ColBERT and structural search, fused", rows=())
