"""The systems that Task 2 compares, by the names that tables and ``--systems`` have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyterrier as pt

from mathamr_systems import FormulaFeatures, PairwiseRanker, TangentS
from mathamr_systems.experiments.measuring import (
    TimedPipeline,
    joined,
    means_table,
    measure_by_topic,
    paired_tests,
    run_systems,
)
from mathamr_systems.experiments.ntcir12 import BROWSING_SYSTEMS, run_ntcir12
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import ExperimentError
from mathamr_systems.experiments.systems import ALL, System, Weights
from mathamr_systems.experiments.task2 import (
    FORMULA_ONLY,
    FORMULA_SYSTEMS,
    MATHAMR,
    PATTERNS,
    FormulaParts,
    FormulaSystem,
    SearchedYears,
    by_patterns,
    fused,
    run_task2,
)
from mathamr_systems.experiments.workdir import FORMULA_DEPTH, TANGENT, distinct
from mathamr_systems.formula_trees import CostNames, TreeCombine
from mathamr_systems.in_out import Combine, Scale
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr.arqmath import TASK2_MEASURES

from .indexes import approach0, cft, formula_trees, post_texts, wide_tangent
from .indexes import in_out as in_out_index
from .known_items import with_known_formulas
from .language_models import COLBERT, MARF, SEED, browsing_models, language_models

TANGENT_S, LTR, APPROACH0, IN_OUT, FUSED = "Tangent-S", "LtR", "Approach Zero", "In+Out", "Fused"
TEXT = f"{TANGENT} >> text"
CANDIDATES = 2000
DISTANCE = f"{TANGENT} % {CANDIDATES} >> edit distance"
PARTS = (TANGENT, TANGENT_S, DISTANCE, APPROACH0, IN_OUT, MATHAMR, TEXT)
FUSED_TEXTS = "Fused, with ColBERT and MaRF"
SEEDS = "Means over seeds"
FUSED_PATTERNS = "Fused, with Patterns"
NOTES = (
    "`Fused` sums the standard scores of its systems, with weights fitted on the judgments of the other "
    "years. A formula that a system does not find has this system's lowest score.",
    f"`{TEXT}` re-ranks by the cosine of the question and the post of a formula, both as texts, with the bundled text "
    "encoder; of several posts the best counts. In `Fused` it scores what the other systems find.",
    "`Patterns` ranks formulas that match the query first, also under other letters or as a part; then as Tangent.",
    "`Tangent-S` aligns both trees of the candidates of Tangent; its weights were fitted by its authors on NTCIR-12. "
    f"`edit distance` re-ranks the first {CANDIDATES:,} formulas of Tangent by a weighted sum of tree similarities, "
    "with costs tuned on the topics of 2020.",
)
_WEIGHTS = ("constant", *(f"{tree} {of}" for tree in ("slt", "opt") for of in ("MSS", "precision", "exact recall")))


def edit_distance(
    parts: FormulaParts, combine: TreeCombine = "weighted", costs: CostNames = "swapped"
) -> TimedPipeline:
    """Re-rank candidates of symbol pairs by the edit distance of their trees."""
    reranker = formula_trees(parts.shared).edit_distance(combine=combine, costs=costs, store=parts.trees)
    return TimedPipeline(distinct(parts.shared.tangent.retriever(CANDIDATES, store=parts.trees) >> reranker))


def _wide_tangent(parts: FormulaParts) -> TimedPipeline:
    return TimedPipeline(distinct(wide_tangent(parts.shared).retriever(FORMULA_DEPTH, store=parts.trees)))


def _system(parts: FormulaParts, complete: bool) -> TangentS:
    trees, store = formula_trees(parts.shared), parts.trees
    return TangentS(wide_tangent(parts.shared), trees, num_results=FORMULA_DEPTH, complete=complete, store=store)


def _wide_tangent_s(parts: FormulaParts, complete: bool) -> TimedPipeline:
    """Align the trees of candidates, and weigh their scores as the authors do or as was fitted."""
    system = _system(parts, complete)
    if parts.weights:
        system.weights = tuple(parts.weights[name] for name in _WEIGHTS)
    return TimedPipeline(distinct(system))


def _fitted(years: Sequence[FormulaParts], complete: bool) -> Weights:
    """Fit the weights by least squares on each year, and take their mean."""
    found = []
    for parts in years:
        system = _system(parts, complete)
        system.fit(parts.topics, parts.qrels)
        found.append(system.weights)
    return dict(zip(_WEIGHTS, np.mean(found, axis=0).tolist(), strict=True))


def in_out(parts: FormulaParts, **options: Any) -> TimedPipeline:
    """Rank by the nodes of the formula's graphs."""
    return TimedPipeline(distinct(in_out_index(parts.shared).retriever(FORMULA_DEPTH, store=parts.trees, **options)))


def _in_out_rows() -> dict[str, FormulaSystem]:
    ways: tuple[tuple[Combine, Scale], ...] = (
        ("max", "mean"),
        ("avg", "sum"),
        ("avg", "mean"),
        ("f1", "sum"),
        ("rrf", "sum"),
    )
    rows: dict[str, dict[str, Any]] = {
        f"In+Out ({combine}{'; mean' * (scale == 'mean')})": {"combine": combine, "scale": scale}
        for combine, scale in ways
    }
    for combine in ("max", "avg"):
        rows[f"In+Out ({combine} at 0.1)"] = {"combine": combine, "temperature": 0.1}
    return {name: System(name, partial(in_out, **options)) for name, options in rows.items()}


def _tangent_s_rows() -> dict[str, FormulaSystem]:
    rows = {}
    for complete, fitted in product((False, True), (False, True)):
        name = "; ".join(["window 4", *["complete"] * complete, *["fitted"] * fitted])
        make, fit = partial(_wide_tangent_s, complete=complete), partial(_fitted, complete=complete)
        rows[f"Tangent-S ({name})"] = System(f"Tangent-S ({name})", make, fit=fit if fitted else None)
    return rows


def _edit_distance_rows() -> dict[str, FormulaSystem]:
    combinations: tuple[TreeCombine, ...] = get_args(TreeCombine)
    of_costs: tuple[CostNames, ...] = get_args(CostNames)
    rows = {}
    for combine, costs in product(combinations, of_costs):
        if (combine, costs) != ("weighted", "swapped"):  # which has another row
            name = f"{DISTANCE} ({combine}; {costs})"
            rows[name] = System(name, partial(edit_distance, combine=combine, costs=costs))
    return rows


VARIANTS: Mapping[str, FormulaSystem] = MappingProxyType(
    {
        f"{TANGENT} (window 4)": System(f"{TANGENT} (window 4)", _wide_tangent),
        **_tangent_s_rows(),
        **_edit_distance_rows(),
        **_in_out_rows(),
    }
)
"""How each is made. ``fitted`` are weights of the other years."""


LTR_C = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""C of the pairwise ranker, chosen by five folds of the topics it is fitted on."""


def aligned(parts: FormulaParts) -> TangentS:
    """Align both trees of candidates by pairs of symbols."""
    shared = parts.shared
    return TangentS(shared.tangent, formula_trees(shared), num_results=FORMULA_DEPTH, complete=True, store=parts.trees)


def fit_ltr(years: Sequence[FormulaParts]) -> Weights:
    """Learn the weight of each feature from the order of pairs."""
    names = _features(years[0]).names
    ranker = PairwiseRanker(LTR_C, names=names).fit_judged(*examples(years, _candidates))
    return dict(zip(names, ranker.weights or (), strict=True))


def ltr(parts: FormulaParts) -> TimedPipeline:
    """Rank the results of Tangent-S by the learned sum of features."""
    names = _features(parts).names
    ranker = PairwiseRanker(names=names, weights=[parts.weights[name] for name in names])
    return TimedPipeline(distinct(_candidates(parts) >> pt.ltr.apply_learned_model(ranker, form="ltr")))


def _features(parts: FormulaParts) -> FormulaFeatures:
    return FormulaFeatures(formula_trees(parts.shared), store=parts.trees)


def _candidates(parts: FormulaParts) -> pt.Transformer:
    return aligned(parts) >> _features(parts)


def examples(
    years: Sequence[FormulaParts], candidates: Callable[[FormulaParts], pt.Transformer]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rank the formulas of topics to fit weights on."""
    for parts in years:
        if candidates not in parts.found:
            parts.found[candidates] = candidates(parts)(parts.topics)
    rankings = {parts.year: parts.found[candidates] for parts in years}
    found = joined({year: ranking.assign(docno=ranking["visual_id"]) for year, ranking in rankings.items()})
    return found.reset_index(drop=True), joined({parts.year: parts.qrels for parts in years})


def _tangent_s(parts: FormulaParts) -> TimedPipeline:
    """Rank by how well trees align."""
    return TimedPipeline(distinct(aligned(parts)))


def _approach0(parts: FormulaParts) -> TimedPipeline:
    return TimedPipeline(distinct(approach0(parts.shared).retriever(FORMULA_DEPTH, store=parts.trees)))


def _text(parts: FormulaParts) -> TimedPipeline:
    return TimedPipeline(FORMULA_SYSTEMS[TANGENT].make(parts).search >> post_texts(parts.shared))


def _cft2(parts: FormulaParts) -> TimedPipeline:
    """Rank by vectors that fastText learns from pairs of symbols."""
    return TimedPipeline(distinct(cft(parts.shared).retriever(FORMULA_DEPTH, mode="cft2", store=parts.trees)))


def _cft2ted(parts: FormulaParts) -> TimedPipeline:
    """Re-rank candidates by vectors by the edit distance of their trees."""
    reranker = formula_trees(parts.shared).edit_distance(combine="rrf", store=parts.trees)
    return TimedPipeline(distinct(cft(parts.shared).retriever(CANDIDATES, mode="cft2", store=parts.trees) >> reranker))


ALL_SYSTEMS: Mapping[str, FormulaSystem] = MappingProxyType(
    {
        system.name: system
        for system in (
            FORMULA_SYSTEMS[TANGENT],
            System(TANGENT_S, _tangent_s),
            System(DISTANCE, edit_distance),
            System(LTR, ltr, fit=fit_ltr),
            System("CFT2", _cft2),
            System("CFT2TED", _cft2ted),
            System(APPROACH0, _approach0),
            System(PATTERNS, by_patterns),
            System(IN_OUT, in_out),
            *language_models().values(),
            System(TEXT, _text, known=False, scorer=lambda parts: post_texts(parts.shared)),
            *list(FORMULA_SYSTEMS.values())[1:],
            fused(FUSED, PARTS, fitted=True),
            fused(FUSED_PATTERNS, (*PARTS[:-1], PATTERNS, TEXT), fitted=True),
            fused(FUSED_TEXTS, (*PARTS[:-1], COLBERT, MARF, TEXT), fitted=True),
        )
    }
)
"""The baseline first, fusions last."""


def task2_systems(
    names: Sequence[str] | None, models: Mapping[str, FormulaSystem] = MappingProxyType({})
) -> list[FormulaSystem] | None:
    """Choose the systems of a table: names, ``all``, or ``variants``; ``models`` replace models with the same name."""
    if names is None:
        return None
    known = {**ALL_SYSTEMS, **models, **VARIANTS}
    groups: dict[str, Sequence[str]] = {ALL: tuple(ALL_SYSTEMS), "variants": tuple(VARIANTS)}
    chosen = {TANGENT}
    for name in names:
        found = groups.get(name.lower()) or [each for each in known if each.lower() == name.lower()]
        if not found:
            raise ConfigError("systems", name, f"{', '.join(groups)}, or some of: {'; '.join(known)}")
        chosen.update(found)
        chosen.update(part for each in found for part in known[each].fuses)
    return [system for name, system in known.items() if name in chosen]


def compare_formulas(
    path: str | Path,
    years: Sequence[str] | str,
    workdir: str | Path,
    *,
    systems: Sequence[str] | None = None,
    known_items: bool = False,
    seeds: Sequence[int] = (SEED,),
    **options: Any,
) -> Report:
    """Compare systems by name on Task 2; with ``known_items``, also with altered formulas of the collection.

    Trained systems use the first seed; with several, a further table has the means over all.
    """
    if not seeds:
        raise ConfigError("seeds", seeds, "at least one")

    def more(report: Report, searched: SearchedYears) -> Report:
        if len(seeds) > 1:
            report = _with_seeds(report, searched, seeds, of_seed)
        if not known_items:
            return report
        first = searched.years[0]  # without systems that read a formula's question, which these formulas lack
        kept = {
            name: pipeline
            for name, pipeline in first.pipelines.items()
            if rows[name].known and not rows[name].fuses and name != MATHAMR
        }
        return with_known_formulas(report, first.parts.shared, kept)

    of_seed = partial(language_models, preset="full" if options.get("model") == "full" else "mini")
    chosen = task2_systems(systems, of_seed(seeds[0]))
    rows = {**FORMULA_SYSTEMS, **{system.name: system for system in chosen or ()}}
    notes = NOTES if chosen and len(chosen) > len(FORMULA_SYSTEMS) else ()
    return run_task2(path, years, workdir, systems=chosen, weights=shipped_weights(), more=more, notes=notes, **options)


def _with_seeds(
    report: Report,
    searched: SearchedYears,
    seeds: Sequence[int],
    of_seed: Callable[[int], Mapping[str, FormulaSystem]],
) -> Report:
    """Add a table of the systems that are trained, with the means over several seeds."""
    names = [name for name, of in of_seed(seeds[0]).items() if of.trained and name in searched.years[0].rankings]
    if not names:
        return report
    found: dict[str, list[pd.DataFrame]] = {}
    for seed, year in product(seeds, searched.years):
        rankings = {name: year.rankings[name] for name in (TANGENT, *names)}
        if seed != seeds[0]:
            others = {name: of_seed(seed)[name].make(year.parts).whole for name in names}
            rankings |= run_systems(others, year.parts.topics)[0]
        for kind, qrels in year.parts.judged.items():
            values = measure_by_topic(rankings, year.parts.topics, qrels, TASK2_MEASURES).fillna({"value": 0.0})
            found.setdefault(kind, []).append(values.assign(qid=f"{year.parts.year} " + values["qid"], seed=seed))
    tables, measures = [], list(map(str, TASK2_MEASURES))
    for kind, of_kind in found.items():
        together = pd.concat(of_kind)
        tests = paired_tests(together, [(name, TANGENT) for name in names], measures[0])
        table = means_table(together, names, measures, years=[year.parts.year for year in searched.years])
        table.insert(0, "judged", kind)
        tables.append(table.assign(p=tests["p"], **{f"{measures[0]} reject": tests["significant"]}))
    about = (
        f"Means and standard deviations of trained systems over the seeds {', '.join(map(str, seeds))}, over the "
        f"topics of all years. p: two-sided paired t-test of nDCG' against {TANGENT}, on each topic's mean over seeds; "
        "a star: p < 0.05 after Bonferroni over the systems of the block."
    )
    return replace(
        report,
        settings={**report.settings, "seeds": list(seeds)},
        stages=tuple(searched.years[0].parts.shared.stages.records),
        tables={**report.tables, SEEDS: pd.concat(tables, ignore_index=True)},
        about={**report.about, SEEDS: about},
    )


def compare_browsing(
    path: str | Path,
    workdir: str | Path,
    *,
    systems: Sequence[str] | None = None,
    trained: Sequence[Path] = (),
    **options: Any,
) -> Report:
    """Compare systems by name on NTCIR-12 formula browsing; systems that read a question get only the formula.

    ``trained`` are folders of a ColBERT or MaRF, whose rows are added: the collection has no pairs to train on.
    """
    named = browsing_systems(BROWSING_SYSTEMS if systems is None else systems)
    chosen = [*named.values(), *browsing_models(trained).values()]
    return run_ntcir12(path, workdir, systems=chosen, weights=shipped_weights(), **options)


def browsing_systems(names: Iterable[str]) -> dict[str, FormulaSystem]:
    """Choose the systems of a table by their names, or ``all``; the parts of fusions are included."""
    left_out = {MATHAMR, TEXT, FUSED_TEXTS, *language_models()}  # they need a question, or pairs of posts to train on
    own = {name: of for name, of in ALL_SYSTEMS.items() if name not in left_out and MATHAMR not in of.fuses}
    parts = tuple(FORMULA_ONLY if part == MATHAMR else part for part in ALL_SYSTEMS[FUSED].fuses if part != TEXT)
    known = {**own, **BROWSING_SYSTEMS} | {FUSED: fused(FUSED, parts, fitted=True)}
    chosen = {TANGENT}
    for name in names:
        found = [each for each in known if name.lower() in (ALL, each.lower())]
        if not found:
            raise ConfigError("systems", name, f"{ALL}, or some of: {'; '.join(known)}")
        chosen.update(part for each in found for part in (*known[each].fuses, each))
    return {name: system for name, system in known.items() if name in chosen}


def shipped_weights(path: Path | None = None) -> dict[str, Weights]:
    """Read weights of systems, of a year without others to fit on: ``weights.json`` of a run."""
    path = path or Path(str(files("mathamr_systems").joinpath("data/fitted/formula-systems.json")))
    try:
        content: Any = parse_json(path.read_bytes())
        if content["format"] != 1:
            raise ExperimentError(f"{path}: format {content['format']!r}, but this release reads 1.")
        found = {
            str(name): {str(of): float(value) for of, value in own.items()} for name, own in content["weights"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExperimentError(f"{path}: no weights of systems ({error}).") from error
    if not all(math.isfinite(value) for own in found.values() for value in own.values()):
        raise ExperimentError(f"{path}: a weight is not a finite number.")
    return dict(found)
