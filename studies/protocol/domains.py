"""Other kinds of text as a judge: the questions of a file of pairs look for their own answers.

The file that is measured is never trained on: a model is given, or one is trained on all other files for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from ir_measures import RR

from mathamr_systems.experiments.beir import EQUAL, TextArtifacts, TextCollection
from mathamr_systems.experiments.choosing import Nested, choice, chosen_systems, tests_of
from mathamr_systems.experiments.measuring import best_of, means_table, measure_by_topic
from mathamr_systems.experiments.preparing import choose_training
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import Stages, to_stderr
from mathamr_systems.experiments.systems import BASELINES, COLBERT
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.ids import pseudo_random
from pyterrier_mathamr.arqmath import graphs_from_sources, read_pair_file, read_training_pairs, train_on_pairs
from pyterrier_mathamr.graph import GraphStore, JoinedGraphs
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.store import file_fingerprint

QUESTIONS, ANSWERS = 300, 1500
NAMES = (*BASELINES, COLBERT, EQUAL.name)
MEASURE = RR @ 10
FOUND, TESTS = "Questions that find their answers", "Tests"
NOTES = (
    f"Each file contributes the {ANSWERS:,} pairs with the smallest SHA-256 of their question's id, and the first "
    f"{QUESTIONS} questions are queries: each searches for its own answers among the answers of all {ANSWERS:,}.",
    "Nothing is tuned: both BM25s, the model's MaxSim, and the second BM25 and MaxSim fused at equal weights. Each "
    "system is tested against the better BM25 of the file.",
    "± is the standard error of the mean over the questions.",
)


def run_domains(
    pairs: Sequence[str | Path],
    workdir: str | Path,
    *,
    model: str | None = None,
    collection: str | Path | None = None,
    preset: str = "auto",
    changes: Mapping[str, Any] | None = None,
    verbose: bool = True,
) -> Report:
    """Measure a model on kinds of text that it was not trained on: MRR@10 of questions that look for their answers."""
    files = {Path(file).name.partition(".")[0]: Path(file) for file in pairs}
    if len(files) < len(pairs) or not files:
        raise ConfigError("pairs", [str(file) for file in pairs], "at least one file of pairs, each with its own name")
    if model is not None and (collection is not None or changes or preset != "auto"):
        raise ConfigError("model", model, "no --collection, --preset or --set, since nothing is trained with a model")
    if model is None and len(files) == 1 and collection is None:
        raise ConfigError(
            "pairs", [str(file) for file in pairs], "several files or a collection to train on, or a model"
        )
    say, work = to_stderr if verbose else None, Path(workdir)
    stages = Stages(work, say)
    training = _Training(files, work, stages, Path(collection) if collection else None, preset, changes or {}, verbose)
    values, sizes = {}, {}
    for name, file in files.items():
        encoder = MathAMR.from_pretrained(model) if model is not None else training.without(name)
        own = Stages(work / "domains" / name, say)
        own.records = stages.records
        artifacts = TextArtifacts(read_domain(file), encoder, own, verbose)
        values[name] = _measured(artifacts)
        sizes[name] = len(artifacts.collection.topics), len(artifacts.bm25)
    return _report(values, sizes, model, stages).write(work)


class _Training:
    """Trains a model on all files but one."""

    def __init__(
        self,
        files: Mapping[str, Path],
        workdir: Path,
        stages: Stages,
        collection: Path | None,
        preset: str,
        changes: Mapping[str, Any],
        verbose: bool,
    ) -> None:
        self.files, self.workdir, self.stages, self.verbose = files, workdir, stages, verbose
        self.collection, self.preset, self.changes = collection, preset, dict(changes)

    def without(self, name: str) -> MathAMR:
        """Train a model on all files but one, or open it if it is trained."""
        sources = [file for other, file in self.files.items() if other != name]
        sources += [self.collection] if self.collection else []
        read = [read_training_pairs(source) for source in sources]
        preset = "mini" if self.preset == "auto" else self.preset
        chosen, line = choose_training(preset, sum(len(one.train) for one in read), self.changes)
        if chosen.config is None:
            return MathAMR.from_pretrained()
        config = chosen.config.replace(**self.changes)
        path, checkpoint = self.workdir / "models" / name, self.workdir / "models" / f"{name}.training"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.stages.run(
            f"train-without-{name}",
            path,
            {"sources": [file.name for file in sources], "config": config.to_dict(), "preset": line},
            lambda: train_on_pairs(
                read, JoinedGraphs(list(map(self._graphs, sources))), config, checkpoint, verbose=self.verbose
            ).save(path),
        )
        return MathAMR.from_pretrained(path)

    def _graphs(self, source: Path) -> GraphStore:
        name = source.name.partition(".")[0]
        path = self.workdir / "pairs" / f"{name}.mathamr"
        path.parent.mkdir(parents=True, exist_ok=True)
        of = file_fingerprint(source) if source.is_file() else str(source.resolve())
        build = lambda: graphs_from_sources([source], path, verbose=self.verbose)  # noqa: E731
        self.stages.run(f"pairs-{name}", path, {"source": of}, build)
        return GraphStore(path)


def read_domain(file: Path) -> TextCollection:
    """Take questions and answers of a file of pairs."""
    pairs = sorted(read_pair_file(file), key=lambda pair: pseudo_random(pair["qid"]))[:ANSWERS]
    answers = {pair["aid"]: pair["answer"] for pair in pairs}
    questions = dict(list({pair["qid"]: pair["question"] for pair in pairs}.items())[:QUESTIONS])
    rows = dict.fromkeys((pair["qid"], pair["aid"]) for pair in pairs if pair["qid"] in questions)
    return TextCollection(
        file.name.partition(".")[0],
        lambda: ({"docno": docno, "text": text} for docno, text in answers.items()),
        pd.DataFrame(list(questions.items()), columns=["qid", "query"], dtype=str),
        pd.DataFrame(list(rows), columns=["qid", "docno"], dtype=str).assign(label=1),
        {"file": file_fingerprint(file), "questions": QUESTIONS, "answers": ANSWERS},
    )


def _measured(artifacts: TextArtifacts) -> pd.DataFrame:
    """Search with all questions: ``name``, ``qid``, ``measure``, ``value``."""
    collection = artifacts.collection
    systems = {system.name: system for system in artifacts.systems(chosen_systems([COLBERT]))}
    nested = Nested([systems[name] for name in NAMES], collection.questions, collection.qrels, MEASURE)
    fitted = nested.fit(frozenset())
    rankings = {name: one.rank(collection.questions) for name, one in fitted.items()}
    return measure_by_topic(rankings, collection.topics, collection.qrels, [MEASURE]).fillna({"value": 0.0})


def _report(
    values: Mapping[str, pd.DataFrame], sizes: Mapping[str, tuple[int, int]], model: str | None, stages: Stages
) -> Report:
    table = pd.DataFrame({"name": list(NAMES)})
    tests = []
    for name, own in values.items():
        means = means_table(own, NAMES, [str(MEASURE)])
        table[name], table[f"{name} error"] = means[str(MEASURE)], means[f"{MEASURE} error"]
        baseline = best_of(own, BASELINES, MEASURE)
        tests.append(tests_of(own, [choice(system, ()) for system in NAMES], str(MEASURE), baseline).assign(file=name))
    who = f"the model {model}" if model else "a model trained on all other files"
    asked = "; ".join(f"{name} {count} among {answers:,}" for name, (count, answers) in sizes.items())
    return Report(
        title="Other kinds of text: MRR@10 of questions that look for their own answers",
        settings={"files": list(values), "model": model or "trained without the file"},
        stages=stages.records,
        tables={FOUND: table, TESTS: pd.concat(tests, ignore_index=True)},
        about={FOUND: f"Questions among answers: {asked}. {COLBERT} search with {who}."},
        notes=NOTES,
        values={f"{name}-by-question": own for name, own in values.items()},
    )
