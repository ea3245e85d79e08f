"""All studies and presets by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError

from .ablations import ABLATIONS
from .definition import Study
from .paper import PAPER

FULL_PAIRS = 40_000
"""Training pairs from which the paper's settings are chosen. The paper has about 45,000; on 2,669 and on 23,531 pairs
other settings found far more (``docs/studies.md``)."""

STUDIES: Mapping[str, Study] = {study.name: study for study in (*PAPER, *ABLATIONS)}


@dataclass(frozen=True, slots=True)
class Preset:
    """The scale at which a study is run.

    Attributes:
        name: of the preset.
        changes: options that differ from the study's settings.
        seeds: instead of the study's, or ``None``.
        scales_depth: shorten rankings and candidates with the collection in studies of search.
        why: what differs from the paper, for the notes of the report.
    """

    name: str
    changes: tuple[tuple[str, Any], ...]
    seeds: tuple[int, ...] | None
    scales_depth: bool
    why: str


PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("full", (), None, False, "Settings and seeds as in the paper."),
        Preset(
            "mini",
            (("learning_rate", 1e-3),),
            (42, 43, 44),
            True,
            "Scaled down for a small collection: a learning rate of 1e-3 instead of 1e-4, since 7 epochs of 2,700 "
            "pairs are 600 steps where the paper has 9,800; three seeds instead of five; and in the studies of search, "
            "rankings and candidates are the same share of the collection as in the paper, whose index has 33,771 "
            "answers. Everything else is as in Table 4.5 (or 4.18).",
        ),
    )
}


def find_study(name: str) -> Study:
    """Look up a study."""
    for study in STUDIES.values():
        if name == study.name or name in {f"paper/{table}" for table in study.tables}:
            return study
    raise ConfigError("study", name, "one of " + ", ".join(STUDIES))


def find_preset(name: str, pairs: int = 0) -> Preset:
    """Look up a preset."""
    if name == "auto":
        return PRESETS["full" if pairs >= FULL_PAIRS else "mini"]
    if name not in PRESETS:
        raise ConfigError("preset", name, "one of " + ", ".join(map(repr, ("auto", *PRESETS))) + " for a study")
    return PRESETS[name]
