"""The part that a standard score has in a weighted sum: z = (score - mean) / standard deviation, taken apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyterrier as pt

from pyterrier_mathamr.explain import Explanation, Part, name_of


def distinct_names(systems: Sequence[pt.Transformer]) -> list[str]:
    """Name systems; those of one name have numbers, too."""
    names = [name_of(system) for system in systems]
    numbers = (f" {names[:place].count(name) + 1}" if names.count(name) > 1 else "" for place, name in enumerate(names))
    return [name + number for name, number in zip(names, numbers, strict=True)]


def sole_name(found: Explanation, system: str) -> str | None:
    """Return the name of a system for all parts of its score; ``None`` for a fusion, whose parts keep their names."""
    return system if len({part.system for part in found.rows}) == 1 else None


def explain_standard(
    docno: str, system: str, scores: npt.NDArray[np.float64], found: Explanation | None, weight: float
) -> Explanation:
    """Explain the weighted standard score of a document."""
    if not len(scores):
        return Explanation.of(docno, [])
    mean, spread = float(scores.mean()), float(scores.std()) or 1.0
    if found is None:
        lowest = weight * (float(scores.min()) - mean) / spread
        return Explanation.of(docno, [Part(system, "not found: lowest score", contribution=lowest)])
    shift = Part(system, f"mean of {len(scores)} scores", contribution=-weight * mean / spread)
    return found.scaled(weight / spread, sole_name(found, system)).plus(shift)
