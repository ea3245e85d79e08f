"""Systems measured on the collections of :mod:`.folders`.

Collections with the same documents share one index: their queries are searched together, each with the name of its
collection in front.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import RR, nDCG

from mathamr_systems import InOutIndex
from mathamr_systems.experiments.beir import TextArtifacts, TextCollection
from mathamr_systems.experiments.measuring import means_table, measure_by_topic
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import Stages, to_stderr
from mathamr_systems.experiments.systems import BM25, STRUCTURED, TUNED
from mathamr_systems.experiments.task2 import PATTERNS
from mathamr_systems.experiments.workdir import TANGENT
from mathamr_systems.in_out import InOut
from pyterrier_mathamr.arqmath import TASK1_MEASURES, ARQMathCollection, BeirDataset, read_run
from pyterrier_mathamr.fusion import ZScoreFusion
from pyterrier_mathamr.fusion.fusions import ranked, standard_scores
from pyterrier_mathamr.model import DEFAULT_MODEL, MathAMR
from pyterrier_mathamr.sparse import PatternIndex, TangentIndex
from pyterrier_mathamr.store import file_fingerprint
from studies.protocol.judges import names_of, searched
from studies.protocol.parts import parts_of

from .folders import Order, folders_of, outside, read_twins
from .letters import canonical

MODELS = (DEFAULT_MODEL, "mathamr-plus-mini")
YEARS = ("2020", "2022")
_NAMES = "names.json"
IN_OUT, DEPTH = "In+Out", 1000
SHARES = (0.5, 1.0)
"""Weights of the reading with canonical letters, where the one as written has 1."""
RANKED, ORDERED = "Rankings", "The right one above its twin"
NOTES = (
    "Everything is measured as it comes: nothing is trained or tuned on these collections.",
    "A renamed query has other letters for its variables, the same throughout it. In known-items-others it is as "
    "written, and each document has letters of its own.",
    "A twin is a copy of the right answer in which one formula is changed: an operator, a relation, a script, the "
    "order of a difference or a quotient, or a bound variable. Of a formula the right one has other letters, the wrong "
    "one the same letters and one change. A tie, or two documents that are not found, count one half.",
)


@dataclass(frozen=True)
class Searched:
    """A collection, read from its folder."""

    folder: BeirDataset
    topics: pd.DataFrame  # qid and query
    qrels: Mapping[str, pd.DataFrame]  # by split
    twins: list[Order]

    @classmethod
    def read(cls, path: Path) -> Searched:
        dataset = BeirDataset(path)
        qrels = {split: dataset.get_qrels(split) for split in dataset.folder.splits}
        asked = {qid for own in qrels.values() for qid in own["qid"]}
        topics = pd.DataFrame(dataset.folder.queries(), columns=["qid", "query"], dtype=str)
        return cls(dataset, topics[topics["qid"].isin(asked)], qrels, read_twins(path))

    @property
    def name(self) -> str:
        return self.folder.folder.path.name

    @property
    def of_formulas(self) -> bool:
        """Whether each query and each document is one formula."""
        return self.name.startswith("formulas")

    @property
    def prefix(self) -> str:
        """What its queries have in front where several collections are searched together."""
        return f"{self.name}/"

    def named(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(qid=self.prefix + frame["qid"])

    @property
    def measure(self) -> Any:
        if self.name.startswith("judged"):
            return TASK1_MEASURES[0]
        return RR @ 10 if self.name.startswith(("known-items", "twins", "formulas")) else nDCG @ 10


def run_notation(
    path: str | Path,
    workdir: str | Path,
    *,
    years: Sequence[str] = YEARS,
    others: Sequence[Path] = (),
    models: Sequence[str] = MODELS,
    runs: Sequence[Path] = (),
    controls: bool = False,
    verbose: bool = True,
) -> Report:
    """Measure systems as queries are written and with other letters, and by twins.

    Args:
        path: an ARQMath folder.
        workdir: where collections (``collections/``), indexes, tables and ``report.md`` are kept; finished stages are
            not repeated.
        years: of the judged topics.
        others: folders in BEIR's layout whose queries are renamed, too.
        models: names or folders of trained models.
        runs: folders of other systems' rankings, each with a file ``COLLECTION.run`` in TREC's format for some of the
            collections; the row has the folder's name.
        controls: also measure the models with canonical letters in all formulas, and with both readings.
        verbose: report each stage on stderr, with progress bars.
    """
    work, parent = Path(workdir), Path(workdir) / "collections"
    stages = Stages(work, to_stderr if verbose else None)
    collection = ARQMathCollection(path)
    origin = {
        "posts": file_fingerprint(collection.posts_file),
        "years": list(years),
        "others": {one.name: [file_fingerprint(file) for file in BeirDataset(one).folder.files()] for one in others},
    }

    def write() -> None:
        made = chain(folders_of(collection, years), *map(outside, others))
        names = [folder.write(parent).name for folder in made]
        (parent / _NAMES).write_text(json.dumps(names))

    stages.run("collections", parent / _NAMES, origin, write)
    found = [Searched.read(parent / name) for name in json.loads((parent / _NAMES).read_text())]
    rankings: dict[str, dict[str, pd.DataFrame]] = {one.name: {} for one in found}
    for same in _by_documents(found):
        for name, of_all in _rankings(same, models, stages, work, controls, verbose).items():
            for one in same:
                own = of_all[of_all["qid"].str.startswith(one.prefix)]
                rankings[one.name][name] = own.assign(qid=own["qid"].str.removeprefix(one.prefix))
    for one in found:
        if one.of_formulas:
            rankings[one.name] |= _formula_rankings(one, stages, work, verbose)
    for run in runs:
        for one in found:
            if (file := run / f"{one.name}.run").is_file():
                rankings[one.name][run.name] = read_run(file)
    return _report(found, rankings, stages).write(work)


def _by_documents(found: Sequence[Searched]) -> list[list[Searched]]:
    """Group collections with the same documents."""
    groups: dict[str, list[Searched]] = {}
    for one in found:
        corpus = (one.folder.folder.path / "corpus.jsonl").read_bytes()
        groups.setdefault(hashlib.sha256(corpus).hexdigest(), []).append(one)
    return list(groups.values())


def _rankings(
    same: Sequence[Searched], models: Sequence[str], stages: Stages, work: Path, controls: bool, verbose: bool
) -> dict[str, pd.DataFrame]:
    """Search collections with the same documents in all ways."""
    named = [one.named(one.topics) for one in same]
    judged = [one.named(qrels) for one in same for qrels in one.qrels.values()]
    whole = TextCollection(
        same[0].name,
        same[0].folder.folder.documents,
        pd.concat(named, ignore_index=True),
        pd.concat(judged, ignore_index=True),
        {one.name: [file_fingerprint(file) for file in one.folder.folder.files()] for one in same},
    )
    own = Stages(work / "indexes" / same[0].name, to_stderr if verbose else None)
    own.records = stages.records
    found: dict[str, pd.DataFrame] = {}
    for model in models:
        name = Path(model).name
        artifacts = TextArtifacts(whole, MathAMR.from_pretrained(model), own, verbose, suffix=f"-{name}")
        if BM25 not in found:
            found[BM25] = artifacts.bm25.retriever()(whole.topics)
        of_model = searched(parts_of(artifacts), name)
        found |= {row: of_model[row] for row in (TUNED, STRUCTURED, *names_of(name)[:2])}
        if controls:
            found |= _controls(whole, artifacts.model, name, found[name], stages, work, verbose)
    return found


def canonical_ranking(
    whole: TextCollection, model: MathAMR, name: str, own: Stages, depth: int, verbose: bool
) -> pd.DataFrame:
    """Rank documents by a model, with canonical letters in all formulas of a collection.

    Args:
        whole: the collection as written.
        model: the model.
        name: of the model, in names of files.
        own: the stages of the collection with canonical letters.
        depth: documents of each query.
        verbose: show progress.
    """

    def documents() -> Iterator[dict[str, str]]:
        return ({**row, "text": canonical(row["text"])} for row in whole.documents())

    topics = whole.topics.assign(query=[canonical(query) for query in whole.topics["query"]])
    other = TextCollection(f"{whole.name}-canonical", documents, topics, whole.qrels, whole.origin)
    artifacts = TextArtifacts(other, model, own, verbose, suffix=f"-{name}")
    encode = artifacts.topics.graphs.loader(side="query") >> model.query_encoder()
    ranked: pd.DataFrame = artifacts.index.colbert(num_results=depth)(encode(artifacts.topics.topics))
    return ranked


def _controls(
    whole: TextCollection,
    model: MathAMR,
    name: str,
    written: pd.DataFrame,
    stages: Stages,
    work: Path,
    verbose: bool,
) -> dict[str, pd.DataFrame]:
    """Search with canonical letters, and by the sums of the standard scores of both readings."""
    own = Stages(work / "indexes" / f"{whole.name}-canonical", to_stderr if verbose else None)
    own.records = stages.records
    other = canonical_ranking(whole, model, name, own, DEPTH, verbose)
    both = standard_scores([written, other])
    return {
        f"{name}, canonical letters": other,
        **{f"{name}, and canonical letters at {w:g}": ranked(both, (1.0, w), DEPTH) for w in SHARES},
    }


def _formula_rankings(one: Searched, stages: Stages, work: Path, verbose: bool) -> dict[str, pd.DataFrame]:
    """Search a collection of formulas by systems that search for formulas."""
    folder = work / "indexes" / one.name
    origin = [file_fingerprint(file) for file in one.folder.folder.files()]
    indexes = {
        TANGENT: TangentIndex(folder / "tangent"),
        PATTERNS: PatternIndex(folder / "patterns"),
        IN_OUT: InOutIndex(folder / "in-out", InOut.from_pretrained("in-out-mini")),
    }
    topics = one.topics.assign(latex=one.topics["query"].str.strip("$"))
    found = dict[str, pd.DataFrame]()
    for name, index in indexes.items():
        build = partial(
            index.indexer("overwrite", verbose=verbose).index, list(one.folder.get_corpus_iter(verbose=False))
        )
        stages.run(f"{one.name}, {name}", index.path, {"posts": origin}, build)
        ranked = index.retriever(DEPTH)(topics)
        found[name] = ranked.assign(docno=ranked["post_id"])[["qid", "query", "docno", "score", "rank"]]
    fused = ZScoreFusion(*(pt.Transformer.from_df(found[name]) for name in (TANGENT, PATTERNS)))
    found[f"{TANGENT} and {PATTERNS}"] = fused(topics[["qid", "query"]])
    return found


def share_above(ranking: pd.DataFrame, twins: Sequence[Order]) -> pd.DataFrame:
    """Return for each query 1 if the right document has the higher score, 0 if its twin has, 0.5 if neither."""
    scores = ranking.set_index(["qid", "docno"])["score"]

    def value(qid: str, right: str, wrong: str) -> float:
        one, other = (float(scores.get((qid, docno), -np.inf)) for docno in (right, wrong))
        return 0.5 if one == other else float(one > other)

    return pd.DataFrame([(order.qid, value(*order)) for order in twins], columns=["qid", "value"])


def _report(found: Sequence[Searched], rankings: Mapping[str, Mapping[str, pd.DataFrame]], stages: Stages) -> Report:
    rows = list(dict.fromkeys(name for of in rankings.values() for name in of))
    ranked, ordered = pd.DataFrame({"name": rows}), pd.DataFrame({"name": rows})
    values: dict[str, pd.DataFrame] = {}
    for one in found:
        for split, qrels in one.qrels.items() if not one.twins else ():
            column = one.name if len(one.qrels) == 1 else f"{one.name}, {split}"
            topics = one.topics[one.topics["qid"].isin(qrels["qid"])]
            own = measure_by_topic(rankings[one.name], topics, qrels, [one.measure]).fillna({"value": 0.0})
            values[column] = own
            means = means_table(own, rows, [str(one.measure)])
            ranked[column], ranked[f"{column} error"] = means[str(one.measure)], means[f"{one.measure} error"]
        if one.twins:
            above = {name: share_above(ranking, one.twins) for name, ranking in rankings[one.name].items()}
            values[f"{one.name}, twins"] = pd.concat([frame.assign(name=name) for name, frame in above.items()])
            ordered[one.name] = [above[name]["value"].mean() if name in above else np.nan for name in rows]
    return Report(
        title="Other letters, and other formulas with the same letters",
        settings={"collections": [one.name for one in found]},
        stages=stages.records,
        tables={RANKED: ranked, ORDERED: ordered},
        about={
            RANKED: "Known items MRR@10, judged topics nDCG', collections of others nDCG@10; ± is the standard error.",
            ORDERED: "The share of the queries for which the right document has a higher score than its twin.",
        },
        notes=NOTES,
        values={f"{name.replace(', ', '-')}-by-query": own for name, own in values.items()},
    )
