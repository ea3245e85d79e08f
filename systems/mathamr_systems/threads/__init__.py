"""Threads: the answers to a question, data about them, and rankings of questions turned into answers and back."""

from __future__ import annotations

from .thread_store import ThreadPost as ThreadPost
from .thread_store import ThreadStore as ThreadStore
