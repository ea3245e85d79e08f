"""Artifacts of studies in a work folder: graphs of files of pairs, formula topics with their graphs, text vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from mathamr_systems.experiments.workdir import Artifacts, TopicSet, formula_topics, require_years, visual_judgments
from pyterrier_mathamr.arqmath import graphs_from_sources
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.model import MathAMRConfig, TextEncoder
from pyterrier_mathamr.store import writer_lock


def prepare(shared: Artifacts, years: Sequence[str], task2: Callable[[str], object] | None = None) -> None:
    """Make everything that runs share; one process at a time."""
    require_years(shared.collection, years)
    if task2 is not None:
        require_years(shared.collection, years, 2)
    with writer_lock(shared.workdir / "materials", wait=True):
        pair_graphs(shared)
        shared.questions("validation")
        shared.questions("test")
        shared.tuned.snapshot()  # the other BM25 is made for the topics
        for year in years:
            shared.floor(year)
            if task2 is not None:
                task2(year)


def pair_graphs(shared: Artifacts) -> list[GraphStore]:
    """Return the graphs of each file of pairs."""
    stores = []
    for file in shared.pairs:
        name = file.name.partition(".")[0]
        path = shared.workdir / "pairs" / f"{name}.mathamr"
        path.parent.mkdir(exist_ok=True)
        shared.stages.run(
            f"pairs-{name}",
            path,
            {"file": str(file.resolve()), "bytes": file.stat().st_size},
            lambda file=file, path=path: graphs_from_sources([file], path, verbose=shared.verbose),  # type: ignore[misc]
        )
        stores.append(GraphStore(path))
    return stores


def judged_formulas(shared: Artifacts, year: int | str) -> TopicSet:
    """Return the formula topics of a year that can be measured on this collection, and their judgments."""

    def read() -> tuple[pd.DataFrame, pd.DataFrame]:
        judged = visual_judgments(shared.collection, year, shared.formulas, shared.visual_ids)
        qrels = judged.get("visual ids", next(iter(judged.values())))
        topics = formula_topics(shared.collection, year)
        return topics[topics["qid"].isin(qrels["qid"])].reset_index(drop=True), qrels

    topics, qrels = shared.kept(f"{year}-formulas", read)
    graphs = shared.graphs_of_topics(f"{year}-formulas", year, topics)
    return TopicSet(topics.assign(query_formula_id=topics["formula_id"]), qrels, graphs)


def text_encoder(shared: Artifacts, config: MathAMRConfig, *, cached: bool = True) -> TextEncoder | None:
    """Return the text encoder of a configuration, with vectors shared by all runs; ``None`` if it has none."""
    if config.text.features == "lookup":
        return None
    cache = shared.workdir / "texts.sqlite" if cached else None
    shown = shared.verbose and cached  # no bar where single queries are timed
    return TextEncoder(config.text.text_model, cache=cache, verbose=shown)
