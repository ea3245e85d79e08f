"""The study ``formula/mathamr-sbert``: formulas by their sentences, linearized MathAMR graphs and Sentence-BERT.

::

    FormulaContexts ──▶ a text for each formula ──▶ MathAMRSentenceBERT, untrained and trained on the other years
                                                      ├──▶ all formulas that look like a judged one, ranked
                                                      └──▶ the first formulas of Tangent and Approach Zero, re-ranked
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

from mathamr_systems import FitOptions, FormulaContexts, MathAMRSentenceBERT, judged_triples
from mathamr_systems.experiments.measuring import FLOOR, measure_by_topic, random_floor, rounded
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import write_atomically
from mathamr_systems.experiments.workdir import (
    DISTINCT_FORMULAS,
    TANGENT,
    Artifacts,
    formula_topics,
    visual_judgments,
)
from pyterrier_mathamr._common.frames import ordered_by_score
from pyterrier_mathamr.arqmath import VisualIdDeduplication, parse_measure
from pyterrier_mathamr.fusion import ModifiedRRF
from pyterrier_mathamr.posts import post_from_html
from pyterrier_mathamr.store import replace_file
from studies.study import Condition, Outcome, Setting, Study, condition
from studies.tables import MAIN, VALUES, Key, Results

from .indexes import approach0

_NAMES = {
    "amr+opt": "AMRText w. OPTText",
    "amr+latex": "AMRText w. LaTeX",
    "text+opt": "RawText w. OPTText",
    "text+latex": "RawText w. LaTeX",
}


def _conditions() -> tuple[Condition, ...]:
    found = [
        condition(f"{name}, {window} sentence{'s' * (window > 1)}", representation=representation, window=window)
        for window in (1, 3)
        for representation, name in _NAMES.items()
    ]
    return (*found, condition("OPTText", representation="opt", window=1))


STUDY = Study(
    "formula/mathamr-sbert",
    "MathAMR with Sentence-BERT",
    "contexts",
    _conditions(),
    seeds=(42, 43, 44),
)
MATHAMR = STUDY.conditions[0].name
UNTRAINED, TRAINED = "untrained", "trained"
APPROACH0 = "Approach Zero"
INSTANCES = 5
"""Instances of a judged formula that are ranked, as many as the organizers' assessors saw at most."""
MEASURES = {name: parse_measure(name) for name in ("nDCG'", "nDCG'@5", "nDCG'@10", "P'@5", "P'@10")}


class Recipe(NamedTuple):
    """The scale of a run."""

    backbone: str
    options: FitOptions
    depth: int  # formulas of other systems that are re-ranked


RECIPES = {
    "mini": Recipe("all-MiniLM-L6-v2", FitOptions(epochs=2, batch_size=16, learning_rate=1e-4, layers=2), 50),
    "full": Recipe("hf:sentence-transformers/all-distilroberta-v1", FitOptions(epochs=50, batch_size=16), 1000),
}


def recipe_of(setting: Setting) -> Recipe:
    """Return the recipe of a preset with what was set by hand: ``depth``, or options of the training."""
    recipe, changes = RECIPES[setting.preset.name], dict(setting.changes)
    depth = changes.pop("depth", recipe.depth)
    return recipe._replace(depth=depth, options=FitOptions.from_dict({**recipe.options.to_dict(), **changes}))


JUDGED, RERANKED = "Judged formulas", "The first formulas of other systems, re-ranked"
FIRST, COSINE, RRF, SCALED = "first stage", "re-ranked", "modified RRF", "modified RRF, scaled"

NOTES = (
    "Rankings are of visually distinct formulas, judged by visual ids if the collection has such judgments; the "
    "best of up to five instances of each counts. Only topics with a relevant formula in the collection are used.",
    "`trained` models were trained on the judgments, by formula ids, of the other years; `untrained` is the "
    "published language model. Re-ranking is by the first condition, trained with the first seed.",
    "`modified RRF` sums score / (60 + rank) of both rankings as printed; `scaled` first rescales the scores of each "
    "topic to 0 … 1.",
)


@dataclass(frozen=True, eq=False)
class _Year:
    """The topics of a year, their judgments, and the formulas ranked for them."""

    name: str
    topics: pd.DataFrame  # all of the year: qid, title, body, formula_id, latex
    measured: pd.DataFrame  # the topics with a relevant formula
    qrels: pd.DataFrame  # by visual id
    graded: pd.DataFrame  # by formula id, of all topics: qid, docno, label
    judged: pd.DataFrame  # qid, docno, visual_id: formulas that look like a judged one


class _Materials:
    """The data shared by all conditions."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.shared = setting, setting.shared

    @cached_property
    def formulas(self) -> pd.DataFrame:
        """All formulas: ``docno``, ``post_id``, ``visual_id``."""
        return pd.DataFrame(self.shared.tangent.get_corpus_iter())

    @cached_property
    def years(self) -> dict[str, _Year]:
        """The data to measure on, by year."""
        return {name: self._year(name) for name in self.setting.years}

    def _year(self, name: str) -> _Year:
        shared = self.shared
        kinds = visual_judgments(shared.collection, name, shared.formulas, shared.visual_ids)
        qrels = kinds.get("visual ids", next(iter(kinds.values())))
        topics = formula_topics(shared.collection, name)
        rows = [(row.query_id, row.doc_id, row.relevance) for row in shared.collection.qrels(name, 2)]
        graded = pd.DataFrame(rows, columns=["qid", "docno", "label"])
        judged = qrels.rename(columns={"docno": "visual_id"}).merge(self.formulas, on="visual_id")
        names = pd.MultiIndex.from_frame(judged[["qid", "docno"]])
        unseen = ~names.isin(pd.MultiIndex.from_frame(graded[["qid", "docno"]]))  # the assessed instances come first
        judged = judged.assign(_unseen=unseen).sort_values(["qid", "visual_id", "_unseen", "docno"])
        judged = judged.groupby(["qid", "visual_id"]).head(INSTANCES).reset_index(drop=True)
        return _Year(
            name,
            topics,
            topics[topics["qid"].isin(qrels["qid"])].reset_index(drop=True),
            qrels,
            graded,
            judged[["qid", "docno", "visual_id"]],
        )

    @cached_property
    def first_stages(self) -> dict[tuple[str, str], pd.DataFrame]:
        """The first results of other systems, by system and year."""
        depth = recipe_of(self.setting).depth
        indexes = {TANGENT: self.shared.tangent, APPROACH0: approach0(self.shared)}
        return {
            (system, name): index.retriever(depth, store=self.shared.topic_formulas(name))(year.measured)
            for system, index in indexes.items()
            for name, year in self.years.items()
        }

    def wanted(self, *, candidates: bool) -> set[str]:
        """Name the formulas that are trained on and ranked."""
        frames = [frame for year in self.years.values() for frame in (year.graded, year.judged)]
        frames += self.first_stages.values() if candidates else ()
        return set(pd.concat([frame["docno"] for frame in frames]))


@dataclass(frozen=True, eq=False)
class _Run:
    """One condition: its texts and models."""

    materials: _Materials
    one: Condition

    @property
    def folder(self) -> Path:
        options = dict(self.one.changes)
        return self.shared.workdir / "mathamr-sbert" / f"{options['representation']}-{options['window']}"

    @property
    def shared(self) -> Artifacts:
        return self.materials.shared

    @property
    def is_mathamr(self) -> bool:
        """Whether this is the condition that re-ranks."""
        return self.one.name == MATHAMR

    @property
    def is_trained(self) -> bool:
        """Whether models of the condition are trained."""
        setting = self.materials.setting
        return all(other_years(setting, year) for year in setting.years)

    @property
    def recipe(self) -> Recipe:
        """The scale of the run."""
        return recipe_of(self.materials.setting)

    @cached_property
    def texts(self) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        """The texts of formulas by id, and of the topics of each year by qid."""
        years, depth = list(self.materials.years), self.recipe.depth if self.is_mathamr else 0
        path = self.folder / f"texts-{depth}.json.gz"
        settings = {**self.shared.origin, **dict(self.one.changes), "years": years, "depth": depth}
        self.shared.stages.run(
            f"contexts of {self.one.name}, {depth} re-ranked", path, settings, lambda: self._write(path)
        )
        formulas, topics = json.loads(gzip.decompress(path.read_bytes()))
        return formulas, topics

    def _write(self, path: Path) -> None:
        shared, changes = self.shared, dict(self.one.changes)
        wanted = self.materials.wanted(candidates=self.is_mathamr)
        of = self.materials.formulas
        posts = set(of["post_id"][of["docno"].isin(wanted)])
        contexts = FormulaContexts(**changes, store=shared.formulas)
        read = {
            post.id: post_from_html(post.body, post.title).with_formula_ids(post.id)
            for post in shared.collection.posts()
            if post.id in posts
        }
        formulas = {docno: text for docno, _, text in contexts.of_posts(read, wanted)}
        topics = {}
        for name, year in self.materials.years.items():
            asked = FormulaContexts(**changes, store=shared.topic_formulas(name))(year.topics)
            topics[name] = dict(zip(asked["qid"], asked["query_formula_text"], strict=True))
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, gzip.compress(json.dumps([formulas, topics]).encode(), compresslevel=1, mtime=0))

    def _new(self) -> MathAMRSentenceBERT:
        setting = self.materials.setting
        return MathAMRSentenceBERT.new(self.recipe.backbone, **dict(self.one.changes), device=setting.device)

    def triples(self, years: Sequence[str]) -> list[tuple[str, str, float]]:
        """Make the triples of the judgments of some years."""
        formulas, topics = self.texts
        of_formulas = pd.DataFrame({"docno": list(formulas), "formula_text": list(formulas.values())})
        found = []
        for name in years:
            queries = pd.DataFrame({"qid": list(topics[name]), "query_formula_text": list(topics[name].values())})
            found += judged_triples(queries, of_formulas, self.materials.years[name].graded)
        return found

    def options(self, seed: int) -> FitOptions:
        """Return the options of training."""
        return replace(self.recipe.options, seed=seed)

    def model(self, year: str, seed: int) -> MathAMRSentenceBERT:
        """Train the model for a year on the judgments of the others; without others it is untrained."""
        setting = self.materials.setting
        if not (others := other_years(setting, year)):
            return self._new()
        options = self.options(seed)
        path = self.folder / f"for-{year}-{seed}"

        def train() -> None:
            model, checkpoint = self._new(), path.with_suffix(".training")
            model.fit(self.triples(others), options, checkpoint=checkpoint, verbose=self.shared.verbose)
            model.save(path)
            shutil.rmtree(checkpoint, ignore_errors=True)

        name = f"{self.one.name}, seed {seed}, for {year}"
        self.shared.stages.run(name, path, {**self.shared.origin, **options.to_dict(), "trained on": others}, train)
        return MathAMRSentenceBERT.from_pretrained(path, device=setting.device)

    def rank(self, model: MathAMRSentenceBERT, year: _Year, candidates: pd.DataFrame) -> pd.DataFrame:
        """Score candidates by cosine."""
        formulas, topics = self.texts
        left, right = candidates["qid"].map(topics[year.name]), candidates["docno"].map(formulas).fillna("")
        codes, distinct = pd.factorize(pd.concat([left, right]))
        vectors = model.encode(list(distinct), verbose=self.shared.verbose)
        rows, columns = np.split(codes, 2)
        blocks = np.array_split(np.arange(len(candidates)), max(1, len(candidates) // 4096))
        scores = [(vectors[rows[some]] * vectors[columns[some]]).sum(axis=1) for some in blocks]
        return ordered_by_score(candidates, np.concatenate(scores).astype(np.float64))

    def values(self, seeds: Sequence[int]) -> pd.DataFrame:
        """Measure the language model, untrained and trained with each seed, on judged formulas."""

        def compute() -> pd.DataFrame:
            found = []
            for year in self.materials.years.values():
                rankings = {(UNTRAINED, seeds[0]): self.rank(self._new(), year, year.judged)}
                for seed in seeds if self.is_trained else ():
                    rankings[TRAINED, seed] = self.rank(self.model(year.name, seed), year, year.judged)
                for (system, seed), ranking in rankings.items():
                    own = _measured({self.one.name: ranking}, year).rename(columns={"name": "condition"})
                    found.append(own.assign(system=system, seed=seed))
            return pd.concat(found)[VALUES]

        return self._kept(f"{self.one.name}, judged formulas", f"judged-{'-'.join(map(str, seeds))}.csv", compute)

    def reranked(self, seed: int) -> pd.DataFrame:
        """Re-rank the first results of other systems, and fuse both rankings."""

        def compute() -> pd.DataFrame:
            found = []
            for year in self.materials.years.values():
                firsts = {system: self.materials.first_stages[system, year.name] for system in (TANGENT, APPROACH0)}
                every = pd.concat([first[["qid", "docno"]] for first in firsts.values()]).drop_duplicates()
                scored = self.rank(self.model(year.name, seed), year, every)[["qid", "docno", "score"]]
                for system, first in firsts.items():
                    joined = first.drop(columns="score").merge(scored, on=["qid", "docno"])
                    cosine = ordered_by_score(joined, joined["score"].to_numpy())
                    ways = {
                        FIRST: first,
                        COSINE: cosine,
                        RRF: ModifiedRRF([first, cosine])(year.measured),
                        SCALED: ModifiedRRF([first, cosine], normalise="min-max")(year.measured),
                    }
                    values = _measured(ways, year).rename(columns={"name": "system"})
                    found.append(values.assign(condition=system, seed=seed))
            return pd.concat(found)[VALUES]

        depth = self.recipe.depth
        return self._kept(f"other systems, {depth} re-ranked", f"reranked-{depth}-{seed}.csv", compute)

    def _kept(self, stage: str, name: str, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Compute values once."""
        file = self.folder / name
        settings = {**self.shared.origin, "years": list(self.materials.years), **self.options(0).to_dict()}
        self.shared.stages.run(stage, file, settings, lambda: write_atomically(file, compute().to_csv(index=False)))
        return pd.read_csv(file, dtype={"qid": str, "topics": str}).fillna({"system": ""})


def other_years(setting: Setting, year: str) -> list[str]:
    """List the years that the models of a year are trained on."""
    return [name for name in setting.years if name != year]


def _measured(rankings: Mapping[str, pd.DataFrame], year: _Year) -> pd.DataFrame:
    """Measure rankings of formulas: ``name``, ``topics``, ``qid``, ``measure``, ``value``."""
    distinct = VisualIdDeduplication() >> pt.RankCutoff(DISTINCT_FORMULAS)
    ranked = {name: distinct(ranking) for name, ranking in rankings.items()}
    values = measure_by_topic(ranked, year.measured, year.qrels, list(MEASURES.values()))
    return values.fillna({"value": 0.0}).assign(topics=year.name)


def measure(setting: Setting) -> Outcome:
    """Write the texts, train and measure each condition; finished work is not repeated."""
    materials = _Materials(setting)
    floor = [
        random_floor(year.qrels, list(MEASURES.values())).assign(topics=name) for name, year in materials.years.items()
    ]
    values = [pd.concat(floor).assign(condition=FLOOR, system="", seed=setting.seeds[0])[VALUES]]
    for one in setting.study.conditions:
        run = _Run(materials, one)
        values.append(run.values(setting.seeds if run.is_mathamr else setting.seeds[:1]))
    values.append(_Run(materials, setting.study.conditions[0]).reranked(setting.seeds[0]))
    return Outcome(setting, Results(pd.concat(values, ignore_index=True)), extra=_lengths(materials))


def _lengths(materials: _Materials) -> dict[str, Any]:
    """Count topics and triples of each year."""
    return {
        name: {"topics": len(year.measured), "judged": len(year.judged), "triples": len(year.graded)}
        for name, year in materials.years.items()
    }


def report(outcome: Outcome) -> Report:
    """Make the report: judged formulas, and rankings of other systems."""
    setting, results = outcome.setting, outcome.results
    recipe = recipe_of(setting)
    measured = results.measured
    own: list[Key] = [(FLOOR, "")]
    own += [(one.name, system) for one in setting.study.conditions for system in (UNTRAINED, TRAINED)]
    others = [(system, way) for system in (TANGENT, APPROACH0) for way in (FIRST, COSINE, RRF, SCALED)]
    main = (MATHAMR, TRAINED)
    against = {key: main for key in own[1:] if key != main}
    firsts = {key: (key[0], FIRST) for key in others if key[1] != FIRST}
    tested = "(p < 0.05 after Bonferroni over the {} tests of the table, two-sided paired t-test)"
    return Report(
        title=f"{setting.study.title}, on {setting.shared.collection.path.name}",
        settings={
            "study": setting.study.name,
            "years": ", ".join(setting.years),
            "seeds": ", ".join(map(str, setting.seeds)),
            "training": recipe.options.to_dict(),
            "language model": recipe.backbone,
            "depth": recipe.depth,
            **{f"{name}": found for name, found in outcome.extra.items()},
        },
        stages=tuple(setting.shared.stages.records),
        tables={
            JUDGED: _table(outcome, [key for key in own if key in measured], against),
            RERANKED: _table(outcome, [key for key in others if key in measured], firsts),
        },
        about={
            JUDGED: f"A star: nDCG' differs from that of {MATHAMR}, trained {tested.format(len(against))}. The first "
            f"condition is the mean of {len(setting.seeds)} seeds.",
            RERANKED: f"The first {recipe.depth} formulas. A star: nDCG' differs from that of the first stage "
            f"{tested.format(len(firsts))}.",
        },
        notes=NOTES,
        values={"by-topic": results.values},
    )


def _table(outcome: Outcome, keys: Sequence[Key], against: Mapping[Key, Key]) -> pd.DataFrame:
    """Average over seeds and topics, and test over the topics of all years."""
    years, results = outcome.setting.years, outcome.results
    table = results.means(keys, years, [str(one) for one in MEASURES.values()], years=len(years) > 1)
    pairs = [(key, other) for key, other in against.items() if key in keys]
    tests = rounded(results.tests(pairs, years, [MAIN], len(pairs))).set_index(["condition", "system"])
    asked = pd.MultiIndex.from_tuples(keys)
    table["difference"], table["p"] = (tests[name].reindex(asked).to_numpy() for name in ("difference", "p"))
    table[f"{MAIN} reject"] = tests["significant"].reindex(asked).to_numpy()
    names = {str(one): name for name, one in MEASURES.items() if str(one) != MAIN}
    return table.rename(columns={**names, **{f"{one} std": f"{name} std" for one, name in names.items()}})
