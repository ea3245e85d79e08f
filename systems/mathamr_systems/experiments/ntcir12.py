"""NTCIR-12 MathWiki formula browsing: the systems of Task 2 that need no text around formulas, by bpref.

Each formula of the corpus is a document with a distinct appearance, since the judgments are of instances. Concrete
topics and topics with wildcards are two sets of topics, like the years of Task 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from mathamr_systems import NTCIR12Folder
from pyterrier_mathamr.arqmath import NTCIR12_MEASURES
from pyterrier_mathamr.graph import GraphBuilder, GraphStore, build_store
from pyterrier_mathamr.model import DEFAULT_MODEL, MathAMR
from pyterrier_mathamr.posts import PostFormula
from pyterrier_mathamr.store import file_fingerprint

from .measuring import not_measured, stars
from .report import Report, published
from .stages import ExperimentError, to_stderr
from .systems import Weights
from .task2 import (
    FORMULA_ONLY,
    FORMULA_SYSTEMS,
    OTHER_SYSTEMS,
    PATTERNS,
    POOLED,
    TIME,
    FormulaParts,
    FormulaSystem,
    about_times,
    by_patterns,
    chosen_formulas,
    fused,
    search_years,
    tables_of,
    values_of,
)
from .workdir import FORMULA_DEPTH, TANGENT, FormulaArtifacts

CONCRETE, WILDCARDS, ALL_TOPICS = "concrete", "wildcards", "all topics"
BROWSING = "Formula browsing"
DIFFERENCES = f"Differences from {TANGENT} over all topics"
_JUDGED = "grades"

BROWSING_SYSTEMS: Mapping[str, FormulaSystem] = MappingProxyType(
    {
        system.name: system
        for system in (
            FORMULA_SYSTEMS[TANGENT],
            FormulaSystem(PATTERNS, by_patterns),
            FORMULA_SYSTEMS[FORMULA_ONLY],
            fused(f"{TANGENT} + {FORMULA_ONLY}", (TANGENT, FORMULA_ONLY)),
        )
    }
)
"""The systems of Task 2 that need no text around the query's formula, the baseline first."""

NOTES = (
    "bpref over the first 1000 formulas: in `Bpref partial` grades of 1 and more are relevant, in `Bpref full` grades "
    "of 3 and more; all other judged formulas are not relevant. A topic without a relevant formula scores 0, and one "
    "without judgments is left out.",
    "The published figures are for the 20 topics without wildcards.",
    f"In `{PATTERNS}` a wildcard matches any sub-expression, and equal wildcards match equal ones. In the other "
    "systems it is a distinct symbol, which matches no symbol of a formula.",
    "The random order is the mean of 200 shuffles of the judged formulas of each topic, with a fixed seed. It has "
    "every judged formula, a system only the ones among its first 1000.",
)


class _Itself(Mapping[str, str]):
    """The visual id of each formula is its own id; it has no entries to list."""

    def __getitem__(self, formula: str) -> str:
        return formula

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class BrowsingArtifacts(FormulaArtifacts):
    """The shared artifacts of searches for the formulas of a folder."""

    APPEARANCES = _Itself()

    def __init__(self, folder: NTCIR12Folder, workdir: Path, **options: Any) -> None:
        super().__init__(folder.path, workdir, **options)
        self.folder = folder
        self.origin |= {"corpus": file_fingerprint(folder.corpus_file)}

    @cached_property
    def graphs(self) -> GraphStore:
        """The graphs of all formulas, each without a word around it."""
        store = GraphStore(self.workdir / "graphs.mathamr")
        options: dict[str, Any] = {"sources": self.origin, "mode": "overwrite", "verbose": self.verbose}
        documents = self.counted(self.documents(), self.count)
        self.stages.run(
            "graphs", store.path, self.origin, lambda: build_store(documents, GraphBuilder(), store, **options)
        )
        return store

    def documents(self) -> Iterator[dict[str, Any]]:
        """Read each formula as a document, empty if it has no LaTeX."""
        for formula, latex in self.folder.formulas():
            yield {"docno": formula, "html": PostFormula(latex, formula).html if latex else ""}

    def count(self) -> int:
        return self.folder.count()

    @cached_property
    def _topics(self) -> pd.DataFrame:
        return self.folder.topics()

    @cached_property
    def _qrels(self) -> pd.DataFrame:
        return self.folder.qrels()

    def sets(self) -> list[str]:
        """Name the sets of topics that have judgments."""
        judged = self._topics[self._topics["qid"].isin(self._qrels["qid"])]
        return [name for name, of in ((CONCRETE, False), (WILDCARDS, True)) if (judged["wildcards"] == of).any()]

    def formula_topics(self, topics: str) -> pd.DataFrame:
        kept = self._topics[self._topics["wildcards"] == (topics == WILDCARDS)]
        return kept[["qid", "latex"]].reset_index(drop=True)

    def formula_judgments(self, topics: str) -> dict[str, pd.DataFrame]:
        qrels = self._qrels
        return {_JUDGED: qrels[qrels["qid"].isin(self.formula_topics(topics)["qid"])].reset_index(drop=True)}

    def lost(self) -> list[str]:
        """List the judged formulas that the corpus does not have; none is an error."""
        judged = dict.fromkeys(self._qrels["docno"])
        left = dict(judged)
        for formula, _ in self.folder.formulas():
            left.pop(formula, None)
        if len(left) == len(judged):
            raise ExperimentError(
                f"{self.path}: the corpus has none of the judged formulas, such as {next(iter(judged))}. Name its "
                "formulas as in the judgments, article:index."
            )
        return list(left)


def run_ntcir12(
    path: str | Path,
    workdir: str | Path,
    *,
    systems: Sequence[str | FormulaSystem] | None = None,
    weights: Mapping[str, Weights] = MappingProxyType({}),
    model: str = DEFAULT_MODEL,
    verbose: bool = True,
) -> Report:
    """Compare systems on NTCIR-12 MathWiki formula browsing, by bpref at 1,000.

    Finished stages are kept in ``workdir`` and not repeated, so a run that was stopped continues.

    Args:
        path: the folder; see :class:`~mathamr_systems.NTCIR12Folder`.
        workdir: where indexes are kept, and the report in ``ntcir12``.
        systems: names as in the table, ``all``, and your own :class:`System` objects; by default all names. The
            baseline, Tangent, is always included.
        weights: of fitted systems, for a single set of topics; with two sets, each one's are fitted on the other.
        model: name or folder of a trained model.
        verbose: report each stage on stderr, with progress bars.

    Returns:
        The report, which is written as ``report.json``, ``report.md`` and CSV files.

    Raises:
        ARQMathError: a file is missing, or a line of it cannot be read; the message names it.
        ExperimentError: no topic is judged, the corpus has none of the judged formulas, or ``workdir`` has a finished
            stage with other settings.
        ConfigError: there is no such system.
    """
    chosen = chosen_formulas(systems, BROWSING_SYSTEMS, OTHER_SYSTEMS.format(task="ntcir12"))
    say = to_stderr if verbose else None
    shared = BrowsingArtifacts(NTCIR12Folder(path), Path(workdir), say=say, verbose=verbose)
    sets = shared.sets()
    if not sets:
        raise ExperimentError(f"{shared.path}: no topic is judged. The topics and the judgments need the same names.")
    lost, encoder = shared.lost(), MathAMR.from_pretrained(model)
    index = shared.vectors(encoder, shared.stages, shared.origin, verbose=verbose)
    parts = [FormulaParts(shared, encoder, index, of) for of in sets]
    measures = list(NTCIR12_MEASURES.values())
    searched, compared = search_years(parts, chosen, weights, "formula browsing", measures)
    tables = tables_of(searched, compared, [system.name for system in chosen], measures[0])
    measured, differences, speed, values = map(_named, (*tables, values_of(compared)))
    formulas = len(shared.visual_ids)
    counts = "; ".join(f"{one.topics} {_SETS.get(of, of)}, {one.judgments:,} judgments" for of, _, one in compared)
    return Report(
        title=f"NTCIR-12 MathWiki formula browsing on {shared.path.name}",
        settings={"collection": str(shared.path), "formulas": formulas, "model": model},
        stages=tuple(shared.stages.records),
        tables={BROWSING: measured, **({DIFFERENCES: differences} if len(differences) else {}), TIME: speed},
        about={
            BROWSING: f"Topics: {counts}. {formulas:,} formulas with a tree, each ranked by itself; rankings of 1000, "
            f"of {FORMULA_DEPTH:,} found. Model {model}. {stars(TANGENT, 'the systems of the same topics')}",
            DIFFERENCES: "Mean difference in partial bpref, and p of the two-sided paired t-test, before and after "
            "Bonferroni over the systems.",
            TIME: about_times(speed, "each set"),
        },
        remarks={
            BROWSING: [
                *(
                    f"{len(lost):,} judged formulas are not in the corpus, such as {one}; relevant ones count as not "
                    "found."
                    for one in lost[:1]
                ),
                *not_measured(searched.missing),
            ]
        },
        notes=NOTES,
        published={**published("amador").captioned(["2", "5"]), **published("wang").captioned(["6"])},
        values={"ntcir12-by-topic": values},
    ).write(shared.workdir / "ntcir12")


_SETS = {POOLED: ALL_TOPICS}
_MEASURES = {str(measure): name for name, measure in NTCIR12_MEASURES.items()}


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Name measures as the papers do, and sets of topics instead of years; there is one kind of judgments."""
    columns = {"topics": "number", "year": "topics"}
    for column in table.columns:
        measure, space, rest = column.partition(" ")
        columns.setdefault(column, _MEASURES.get(measure, measure) + space + rest)
    named = table.drop(columns="judged", errors="ignore").rename(columns=columns)
    return named.replace({"topics": _SETS, "measure": _MEASURES})
