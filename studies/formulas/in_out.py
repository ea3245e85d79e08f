"""Studies of In+Out: models that are trained on formulas only, compared in one table on Task 2."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import get_args

import pandas as pd

from mathamr_systems import FormulaTrees, InOut, InOutIndex, InOutOptions
from mathamr_systems.experiments.measuring import (
    FLOOR,
    KNOWN_ITEM_MEASURES,
    TimedPipeline,
    measure_by_topic,
    rounded,
)
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import Stages, write_atomically
from mathamr_systems.experiments.workdir import FORMULA_DEPTH, TANGENT, Artifacts, distinct
from mathamr_systems.in_out import Combine
from mathamr_systems.in_out.graphs import PAIRINGS
from pyterrier_mathamr.arqmath import TASK2_MEASURES, read_documents
from pyterrier_mathamr.arqmath.measures import PAPER_NAMES
from pyterrier_mathamr.formula import FormulaPair
from studies.artifacts import judged_formulas
from studies.study import Outcome, Setting, Study, condition
from studies.tables import KNOWN, MAIN, VALUES, Key, Results, formula_references, measured_formulas

from .indexes import formula_trees
from .known_items import KNOWN_FORMULAS, draw_known_formulas, search_known_formulas

_NAMES = {"slg": "SLG", "opg": "OPG", "slg+opg": "SLG+OPG", "inner": "Inner", "outer": "Outer"}

IN_OUT = Study(
    "formula/in-out",
    "In+Out: which graphs are paired in training, and how both scores are combined",
    "formulas",
    tuple(condition(_NAMES.get(pairing, "Inner+Outer"), condition=pairing) for pairing in PAIRINGS),
    combinations=get_args(Combine),
    seeds=(42,),
)

MESSAGE_PASSING = Study(
    "formula/message-passing",
    "In+Out with and without message passing",
    "formulas",
    tuple(condition(f"{layers} layers" if layers != 1 else "1 layer", layers=layers, epochs=3) for layers in range(4)),
    against="0 layers",
    combinations=("max", "avg"),
    formulas=8000,
)

NOTES = (
    "Rankings are of visually distinct formulas, judged by visual ids if the collection has such judgments. "
    "Only topics with a relevant formula in the collection are used; nothing was fitted to any of them.",
    "`known RR@10`: queries are formulas of the collection in which one variable was renamed throughout or one piece "
    "was cut, and the right answer is the formula itself.",
    "Figures are means over seeds; `std` is the standard deviation over the seeds. The test is the two-sided paired "
    "t-test over the topics of all years.",
)
KNOWN_NAME = "known"
ONE_GRAPH = "one graph"
_KNOWN_DEPTH = 200  # formulas before equal-looking ones are left out


def measure(setting: Setting) -> Outcome:
    """Train and measure each model, Tangent and a random order; finished work is not repeated."""
    study, shared = setting.study, setting.shared
    options = {
        (one.name, seed): InOutOptions(**{**setting.changes, **dict(one.changes), "seed": seed})
        for one in study.conditions
        for seed in setting.seeds
    }
    with shared.stages.timed("known formulas"):
        queries = draw_known_formulas(shared, KNOWN_FORMULAS)
        values = [_references(setting, queries)]
    for (name, seed), one in options.items():
        with shared.stages.timed(f"{name}, seed {seed}"):
            found = FormulaRun(shared, one, study, setting.years).values(queries)
        values.append(found.assign(condition=name, seed=seed)[VALUES])
    return Outcome(setting, Results(pd.concat(values, ignore_index=True)), extra=len(queries))


def _references(setting: Setting, queries: pd.DataFrame) -> pd.DataFrame:
    shared = setting.shared
    parts = pd.concat([formula_references(shared, year).assign(topics=year) for year in setting.years])
    pipeline = TimedPipeline(distinct(shared.tangent.retriever(_KNOWN_DEPTH)))
    qrels = queries[["qid", "docno"]].assign(label=1)
    rankings = search_known_formulas({TANGENT: pipeline}, queries)
    known = measure_by_topic(rankings, queries, qrels, KNOWN_ITEM_MEASURES)
    both = pd.concat([parts, known.rename(columns={"name": "system"}).assign(topics=KNOWN_NAME)])
    return both.assign(condition=both["system"], system="", seed=0)[VALUES]


def report(outcome: Outcome) -> Report:
    """Make the report: one table."""
    setting, values = outcome.setting, outcome.results.values
    study, years = setting.study, setting.years
    keys: list[Key] = [(FLOOR, ""), (TANGENT, "")]
    keys += [key for key in dict.fromkeys(zip(values["condition"], values["system"], strict=True)) if key not in keys]
    against: dict[Key, Key] = {}
    for condition_name, combination in keys:
        other = (TANGENT, "") if study.against is None else (study.against, combination)
        if condition_name not in (FLOOR, TANGENT, study.against) and other in keys:
            against[condition_name, combination] = other
    return Report(
        title=f"{study.title}, on {setting.shared.collection.path.name}",
        settings={
            "study": study.name,
            "years": ", ".join(years),
            "formulas trained on": study.formulas or "all",
            "known items": outcome.extra,
        },
        stages=tuple(setting.shared.stages.records),
        tables={study.title: _table(outcome.results, keys, against, years)},
        about={
            study.title: f"Topics of {', '.join(years)}. A star: nDCG' differs from that of {study.against or TANGENT} "
            f"(p < 0.05 after Bonferroni over the {len(against)} tests of the table)."
        },
        notes=NOTES,
        values={"by-topic": values},
    )


def _table(results: Results, keys: list[Key], against: Mapping[Key, Key], years: tuple[str, ...]) -> pd.DataFrame:
    """Average over seeds and topics, and test over the topics of all years."""
    means = results.means(keys, years, list(map(str, TASK2_MEASURES)), years=True)
    known = results.means(keys, [KNOWN_NAME], KNOWN[:1])
    values = results.values
    seeds = [values[(values["condition"] == key[0]) & (values["system"] == key[1])]["seed"].nunique() for key in keys]
    table = means[["condition", "system"]].rename(columns={"system": "combination"}).assign(seeds=seeds)
    main = results.means(keys, years[:1], [MAIN])[MAIN]
    table = table.assign(**({f"{PAPER_NAMES[MAIN]} {years[0]}": main} if len(years) == 1 else {}))
    others = [name for name in means.columns[2:] if not name.endswith(" std")]
    table = table.join(means[others])
    table[f"{MAIN} std"] = means[f"{MAIN} std"].astype(float)
    table["known RR@10"] = known[KNOWN[0]]
    if against:
        tests = rounded(results.tests(list(against.items()), years, [MAIN], len(against)))
        own = tests.set_index(["condition", "system"])
        asked = pd.MultiIndex.from_tuples(keys)
        table["difference"], table["p"] = (own[name].reindex(asked).to_numpy() for name in ("difference", "p"))
        table[f"{MAIN} reject"] = own["significant"].reindex(asked).to_numpy()
    return table


@dataclass(frozen=True)
class FormulaRun:
    """A model to train and measure."""

    shared: Artifacts
    options: InOutOptions
    study: Study  # which combinations are measured, and on how many formulas it is trained
    years: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where model and values are kept, by the options; studies share the models that they have in common."""
        text = json.dumps([asdict(self.options), self.study.formulas], sort_keys=True)
        return self.shared.workdir / "in-out" / hashlib.sha256(text.encode()).hexdigest()[:12]

    def values(self, known: pd.DataFrame) -> pd.DataFrame:
        """Train and measure, or read the measurements."""
        stages = Stages(self.folder)
        settings = {**self.shared.origin, **asdict(self.options), "formulas": self.study.formulas}
        model = self.folder / "model"
        stages.run("model", model, settings, lambda: self._train(model))
        names = "-".join([*self.study.combinations, *self.years])
        file = self.folder / f"{names}.csv"
        stages.run(names, file, {"years": list(self.years), "known": len(known)}, lambda: self._measure(file, known))
        return pd.read_csv(file, dtype={"qid": str, "topics": str})

    def _train(self, path: Path) -> None:
        trees = formula_trees(self.shared)
        model = InOut.new(trees, self.options)
        formulas: FormulaTrees | list[FormulaPair] = trees
        if self.study.formulas is not None:
            both = trees.snapshot().expressions.payload  # in the order of their digests, which is none
            numbers = islice(range(len(both.slt)), self.study.formulas)
            formulas = [FormulaPair(both.slt.tree(number), both.opt.tree(number)) for number in numbers]
        epochs = model.fit(formulas, verbose=self.shared.verbose)
        shutil.rmtree(path, ignore_errors=True)
        model.save(path)
        write_atomically(self.folder / "epochs.csv", pd.DataFrame(map(asdict, epochs)).to_csv(index=False))

    def _measure(self, file: Path, known: pd.DataFrame) -> None:
        shared, model = self.shared, InOut.from_pretrained(self.folder / "model")
        index = InOutIndex(self.folder / "index", model)
        index.indexer("overwrite", store=shared.formulas, resume=True, verbose=shared.verbose).index(
            read_documents(shared.collection.path)
        )
        combinations = {name: name for name in self.study.combinations} if len(model.kinds) > 1 else {ONE_GRAPH: "max"}
        parts = []
        for year in self.years:
            found, store = judged_formulas(shared, year), shared.topic_formulas(year)
            rankings = {
                name: distinct(index.retriever(FORMULA_DEPTH, combine=combine, store=store))(found.topics)
                for name, combine in combinations.items()
            }
            parts.append(measured_formulas(rankings, found).assign(topics=year))
        ways = {
            name: TimedPipeline(distinct(index.retriever(_KNOWN_DEPTH, combine=combine)))
            for name, combine in combinations.items()
        }
        qrels = known[["qid", "docno"]].assign(label=1)
        by_query = measure_by_topic(search_known_formulas(ways, known), known, qrels, KNOWN_ITEM_MEASURES)
        parts.append(by_query.rename(columns={"name": "system"}).assign(topics=KNOWN_NAME))
        write_atomically(file, pd.concat(parts, ignore_index=True).to_csv(index=False))
        shutil.rmtree(index.path)
