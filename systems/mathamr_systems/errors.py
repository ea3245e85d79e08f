"""Errors of the systems that MathAMR+ is compared with or built upon."""

from __future__ import annotations

from pyterrier_mathamr.extending import MathAMRError


class SystemsError(MathAMRError):
    """The base of the errors of this distribution (the plain name is one of Python's own)."""


def nothing_judged(queries: int) -> SystemsError:
    return SystemsError(
        f"no candidate of the queries is judged (queries: {queries:,}). Give judgments of these queries whose docno is "
        "a formula's id or its visual id."
    )
