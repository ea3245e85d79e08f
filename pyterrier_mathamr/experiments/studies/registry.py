"""All studies by name, and the settings they can be run at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError

from .ablations import ABLATIONS
from .definition import Study
from .paper import PAPER

STUDIES: Mapping[str, Study] = {study.name: study for study in (*PAPER, *ABLATIONS)}


@dataclass(frozen=True, slots=True)
class Preset:
    """At which scale a study is run.

    Attributes:
        name: by which it is asked for.
        changes: options that differ from the study's settings.
        seeds: in place of the study's, or nothing.
        scales_depth: rankings and candidates of studies of search shrink with the collection.
        why: what differs from the paper, to be read with the tables.
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
            "Scaled down for a small collection: a learning rate of 1e-3 in place of 1e-4, since 7 epochs of 2,700 "
            "pairs are 600 steps and the paper's 9,800; three seeds in place of five; and in the studies of search, "
            "rankings and candidates are the same share of the collection as in the paper, whose index has 33,771 "
            "answers. All else is as in Table 4.5 (or 4.18).",
        ),
    )
}


def find_study(name: str) -> Study:
    """Look a study up.

    Args:
        name: such as ``paper/4.6``; another table of the same experiment (``paper/4.7``) finds it too.

    Raises:
        ConfigError: there is none of that name.
    """
    for study in STUDIES.values():
        if name == study.name or name in {f"paper/{table}" for table in study.tables}:
            return study
    raise ConfigError("study", name, "one of " + ", ".join(STUDIES))


def find_preset(name: str) -> Preset:
    """Look a preset up.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in PRESETS:
        raise ConfigError("preset", name, "one of " + ", ".join(map(repr, PRESETS)))
    return PRESETS[name]
