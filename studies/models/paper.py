"""The experiments of the MathAMR+ paper (sections 4.3 to 4.5) as data."""

from __future__ import annotations

from typing import Any

from mathamr_systems.experiments.systems import COLBERT, DOC_VN, SINGLE
from studies.study import Cell, Condition, Row, Study, condition

SEEDS = (42, 43, 44, 45, 46)
"""The paper trains with five seeds and names one of them, 42 (Table 4.15); the others are ours."""

_FORMULAS = (
    condition("None", formulas="none"),
    condition("Both (OPT+SLT)", formulas="both"),
    condition("OPT-only", formulas="opt"),
    condition("SLT-only", formulas="slt"),
)
_STRUCTURE = (
    condition("Full hierarchy"),
    condition("No VNs", virtual_nodes="none"),
    condition("Global VN", virtual_nodes="global"),
    condition("Global VN, document loss only", virtual_nodes="global", beta=0.0),
)
_CONNECTIVITY = (
    condition("None", auxiliary="none"),
    condition("Sequential", auxiliary="sequential"),
    condition("Circular", auxiliary="circular"),
    condition("Fully Connected", auxiliary="full"),
)
_INITIALISATION = (
    condition("Zero, None", initialisation="zero", learned="none"),
    condition("Zero, Embedding", initialisation="zero", learned="embedding"),
    condition("Random, Embedding", initialisation="random", learned="embedding"),
    condition("Mean-pooled, None", initialisation="mean", learned="none"),
    condition("Mean-pooled, Projection", initialisation="mean", learned="projection"),
    condition("Mean-pooled, Typed Proj.", initialisation="mean", learned="typed_projection"),
)
_BETAS = tuple(condition(f"β = {beta:g}", beta=beta) for beta in (1.0, 0.7, 0.5, 0.3, 0.0))


def _tested(conditions: tuple[Condition, ...], table: str) -> tuple[Row, ...]:
    """Make rows of ColBERT-style search, tested against the first, with the paper's names."""
    first = (conditions[0].name, COLBERT)
    return tuple(Row(c.name, COLBERT, None if c.name == first[0] else first, Cell(table, c.name)) for c in conditions)


def _strategy_rows() -> tuple[Row, ...]:
    """Make the rows of Table 4.16, each strategy exact and by HNSW, all tested against ColBERT-style by HNSW."""
    trained, baseline = "β = 1", f"{COLBERT}, HNSW"
    printed = {
        COLBERT: "ColBERT MaxSim",
        "doc-VN + MaxSim (k = 5000)": "Doc-VN + MaxSim (k = 5000)",
        DOC_VN: "Doc-VN + MaxSim (k = 1000)",
        SINGLE: "Single-Vector",
    }
    return tuple(
        Row(
            trained,
            f"{name}{ours}",
            None if f"{name}{ours}" == baseline else (trained, baseline),
            Cell("4.16", f"{label}, {theirs}"),
        )
        for name, label in printed.items()
        for ours, theirs in (("", "exact"), (", HNSW", "HNSW"))
    )


def _loss_rows() -> tuple[Row, ...]:
    """Make the rows of Table 4.17: each strategy is tested against itself without the document loss."""
    printed = {COLBERT: "ColBERT MaxSim", DOC_VN: "Doc-VN + MaxSim (k = 1000)", SINGLE: "Single-Vector"}
    return tuple(
        Row(
            beta.name,
            f"{name}, HNSW",
            None if beta is _BETAS[0] else (_BETAS[0].name, f"{name}, HNSW"),
            Cell("4.17", beta.name, f"{label}, nDCG'"),
        )
        for name, label in printed.items()
        for beta in _BETAS
    )


def _study(
    name: str, title: str, conditions: tuple[Condition, ...], rows: tuple[Row, ...], tables: tuple[str, ...], **own: Any
) -> Study:
    options: dict[str, Any] = {"seeds": SEEDS, "published": (("yoon", tables),), **own}
    return Study(name, title, conditions=conditions, rows=rows, **options)


PAPER = (
    _study("paper/4.6", "Formula representation", _FORMULAS, _tested(_FORMULAS, "4.7"), ("4.6", "4.7", "4.8")),
    _study(
        "paper/4.9",
        "Virtual node structure",
        _STRUCTURE,
        (
            Row("Full hierarchy", COLBERT, None, Cell("4.9", "Full hierarchy, MaxSim")),
            Row("No VNs", COLBERT, ("Full hierarchy", COLBERT), Cell("4.9", "No VNs, MaxSim")),
            Row("Global VN", COLBERT, ("Full hierarchy", COLBERT), Cell("4.9", "Global VN, MaxSim")),
            Row(
                "Global VN, document loss only",
                SINGLE,
                ("Full hierarchy", COLBERT),
                Cell("4.9", "Global VN, Single-vector"),
            ),
        ),
        ("4.9",),
    ),
    _study(
        "paper/4.10",
        "Virtual node connectivity",
        _CONNECTIVITY,
        _tested(_CONNECTIVITY, "4.11"),
        ("4.10", "4.11", "4.12"),
    ),
    _study(
        "paper/4.13", "Virtual node initialization", _INITIALISATION, _tested(_INITIALISATION, "4.13"), ("4.13", "4.14")
    ),
    _study("paper/4.15", "Retrieval strategy", _BETAS[:1], _strategy_rows(), ("4.15", "4.16"), scales_depth=True),
    _study("paper/4.17", "Auxiliary document loss", _BETAS, _loss_rows(), ("4.17",), scales_depth=True),
    _study(
        "paper/4.19",
        "Benchmark",
        (condition("MathAMR+"),),
        (Row("MathAMR+", COLBERT, None, Cell("4.19", "Yoon / MathAMR+")),),
        ("4.19", "4.20", "4.21", "4.22"),
        settings="benchmark",
        seeds=(42,),
        task2=True,
    ),
)
