"""The study ``answers/colbert``."""

from __future__ import annotations

from .definition import AnswerStudy

STUDY = AnswerStudy("answers/colbert", "ColBERT on math text", rows=())
