"""Addresses that the package gives to others."""

from __future__ import annotations

HELP_URL = "https://pypi.org/project/pyterrier-mathamr/"
"""Where a drawn pipeline points; stated at each stage, so that drawing asks no network for it."""
