"""Train and measure one model of a study; what is finished is not repeated."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import pandas as pd

from pyterrier_mathamr.arqmath import read_documents
from pyterrier_mathamr.experiments.artifacts import Artifacts
from pyterrier_mathamr.experiments.measuring import (
    KNOWN_ITEM_MEASURES,
    Way,
    measure_by_topic,
    measured_formulas,
)
from pyterrier_mathamr.experiments.search import FORMULA_DEPTH, distinct
from pyterrier_mathamr.experiments.stages import Stages, write_atomically
from pyterrier_mathamr.formula import FormulaPair
from pyterrier_mathamr.systems import FormulaTrees, InOut, InOutIndex, InOutOptions

from .definition import FormulaStudy
from .known_items import search_known_formulas

KNOWN = "known"
ALONE = "one graph"
_KNOWN_DEPTH = 200  # formulas before those that look the same are left out


@dataclass(frozen=True)
class FormulaRun:
    """A model to train and measure.

    Attributes:
        shared: the artifacts of the collection.
        options: of the model.
        study: which combinations are measured, and on how many formulas it is trained.
        years: of the topics.
    """

    shared: Artifacts
    options: InOutOptions
    study: FormulaStudy
    years: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where model and values are kept, by the options; studies share the models that they have in common."""
        text = json.dumps([asdict(self.options), self.study.formulas], sort_keys=True)
        return self.shared.workdir / "in-out" / hashlib.sha256(text.encode()).hexdigest()[:12]

    def values(self, known: pd.DataFrame) -> pd.DataFrame:
        """Train and measure, or read what was measured."""
        stages = Stages(self.folder)
        settings = {**self.shared.origin, **asdict(self.options), "formulas": self.study.formulas}
        model = self.folder / "model"
        stages.run("model", model, settings, lambda: self._train(model))
        names = "-".join([*self.study.combinations, *self.years])
        file = self.folder / f"{names}.csv"
        stages.run(names, file, {"years": list(self.years), "known": len(known)}, lambda: self._measure(file, known))
        return pd.read_csv(file, dtype={"qid": str, "topics": str})

    def _train(self, path: Path) -> None:
        trees = self.shared.formula_trees
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
        combinations = {name: name for name in self.study.combinations} if len(model.kinds) > 1 else {ALONE: "max"}
        parts = []
        for year in self.years:
            found, store = shared.formula_topics(year), shared.topic_formulas(year)
            rankings = {
                name: distinct(index.retriever(FORMULA_DEPTH, combine=combine, store=store))(found.topics)
                for name, combine in combinations.items()
            }
            parts.append(measured_formulas(rankings, found).assign(topics=year))
        ways = {
            name: Way(distinct(index.retriever(_KNOWN_DEPTH, combine=combine)))
            for name, combine in combinations.items()
        }
        qrels = known[["qid", "docno"]].assign(label=1)
        by_query = measure_by_topic(search_known_formulas(ways, known), known, qrels, KNOWN_ITEM_MEASURES)
        parts.append(by_query.rename(columns={"name": "system"}).assign(topics=KNOWN))
        write_atomically(file, pd.concat(parts, ignore_index=True).to_csv(index=False))
        shutil.rmtree(index.path)
