"""Threads: which answers a question has, their data in the collection, and rankings of one turned to the other."""

from __future__ import annotations

from .thread_store import ThreadPost as ThreadPost
from .thread_store import ThreadStore as ThreadStore
