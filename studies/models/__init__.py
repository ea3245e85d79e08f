"""Ways to train MathAMR+, compared: the tables of the paper, and ablations and best models of our own."""

from __future__ import annotations

from mathamr_systems.experiments.systems import DEPTH, Depth
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model import MathAMRConfig
from studies.artifacts import prepare
from studies.study import Condition, Outcome, Setting
from studies.tables import formula_references

from .jobs import Job, read_results, run_jobs
from .reporting import systems_of
from .ways import WAYS

PAPER_ANSWERS = 33_771
"""Answers in the index of the paper's experiments, which its numbers of candidates refer to."""


def scaled_depth(answers: int) -> Depth:
    """Shorten rankings and candidates to the share of the collection that they are in the paper."""
    scale = min(1.0, max(0.01, answers / PAPER_ANSWERS))
    return Depth(round(DEPTH * scale), scale)


def config_of(setting: Setting, condition: Condition, seed: int) -> MathAMRConfig:
    """Return the configuration of one training run; the condition's options override the preset."""
    benchmark = setting.study.settings == "benchmark"
    make = MathAMRConfig.paper_benchmark if benchmark else MathAMRConfig.paper_experiments
    return make(**{**dict(setting.preset.changes), **setting.changes, **dict(condition.changes), "seed": seed})


def jobs_of(setting: Setting) -> dict[tuple[str, int], Job]:
    """List the runs of a study, by condition and seed."""
    study, shared = setting.study, setting.shared
    if unknown := [row.system for row in study.rows if row.system not in WAYS]:
        raise ConfigError("rows", unknown, f"some of: {'; '.join(WAYS)}")
    if not shared.pairs and any(one.recipe.pairs != "all" for one in study.conditions):
        raise ConfigError("pairs", [], f"at least one file of pairs, which {study.name} is about")
    depth = Depth()
    if study.scales_depth and setting.preset.scales_depth:
        depth = scaled_depth(sum(1 for _ in shared.collection.answers()))
    return {
        (one.name, seed): Job(
            collection=shared.collection.path,
            workdir=shared.workdir,
            config=config_of(setting, one, seed),
            recipe=one.recipe,
            pairs=shared.pairs if one.recipe.pairs != "collection" else (),
            years=setting.years,
            ways=systems_of(study),
            depth=depth,
            device=setting.device,
            task2=study.task2,
        )
        for seed in setting.seeds
        for one in study.conditions
    }


def measure(setting: Setting) -> Outcome:
    """Train and measure each condition with each seed; finished runs are not repeated, killed runs continue."""
    jobs, shared = jobs_of(setting), setting.shared
    task2 = (lambda year: formula_references(shared, year)) if setting.study.task2 else None
    prepare(shared, setting.years, task2)
    failed = run_jobs(jobs, setting.workers, setting.executor, setting.say, verbose=shared.verbose)
    return Outcome(setting, read_results(jobs), failed=failed, extra=jobs)
