"""The study ``answers/two-step``."""

from __future__ import annotations

from .definition import AnswerStudy

STUDY = AnswerStudy("answers/two-step", "Questions first, then their answers", rows=())
