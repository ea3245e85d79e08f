"""The study ``answers/extract``."""

from __future__ import annotations

from .definition import AnswerStudy

STUDY = AnswerStudy("answers/extract", "Task 3: extracts of answers", rows=())
