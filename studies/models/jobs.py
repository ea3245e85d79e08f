"""The training runs of a study of models: each trains, indexes, searches and measures in a separate folder.

The folder ``runs/<key>`` of the work::

    stages/*.json            settings and cost of each stage
    training/                the training state, until the model is saved
    model/                   weights, vocabulary, configuration
    cost.json                the cost of training
    answers.mathamr          vectors of the answers
    measured-<key>.csv       each measure of each topic in each way; with -speed, the times of single queries
    formulas.mathamr         vectors of the formulas of all posts, and
    formulas-<key>.csv       each measure of each formula topic, if the study measures Task 2
    log.txt                  stages and progress bars

The key is a hash of the pairs and of the options that differ from the defaults, so studies share common runs.
Finished stages are not repeated. A separate process measures the peak memory of each run, and a run that
dies does not stop the others; one thread makes the result independent of the number of runs at a time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch

from mathamr_systems.experiments.measuring import KNOWN_ITEM_MEASURES, measure_by_topic, time_queries
from mathamr_systems.experiments.report import environment
from mathamr_systems.experiments.stages import Stages, peak_memory, to_stderr, write_atomically
from mathamr_systems.experiments.systems import FUSION, SINGLE, Depth, SystemSearch
from mathamr_systems.experiments.workdir import FORMULA_DEPTH, KNOWN_ITEM, Artifacts, ModelArtifacts, distinct
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr._common.running.worker import Worker
from pyterrier_mathamr.arqmath import (
    TASK1_MEASURES,
    TrainingPairs,
    known_answers,
    linked_pairs,
    read_training_pairs,
    train_on_pairs,
)
from pyterrier_mathamr.arqmath.from_sources import mine_negatives
from pyterrier_mathamr.graph import JoinedGraphs
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, fit_score_weights
from pyterrier_mathamr.store import writer_lock
from studies.artifacts import judged_formulas, pair_graphs, text_encoder
from studies.study import Recipe
from studies.tables import TIMES, VALUES, Results, measured_formulas

from .ways import WAYS

FORMULAS = "formula vectors"
_BARS = {"TQDM_MININTERVAL": "2"}  # seconds between two states of a bar in a log


def formula_label(year: str) -> str:
    """Name the formula topics of a year among the topics of all results."""
    return f"{year}, formulas"


@dataclass(frozen=True, slots=True)
class Job:
    """One training run and its measurements."""

    collection: Path  # a local ARQMath folder
    workdir: Path  # where all is kept
    config: MathAMRConfig
    recipe: Recipe  # which pairs and negatives it is trained on
    pairs: tuple[Path, ...]  # files of pairs from outside the collection that are trained on
    years: tuple[str, ...]
    ways: tuple[str, ...]  # names of the ways to search
    depth: Depth  # length of the rankings
    device: str | None = None  # where to compute; None is the best available
    task2: bool = False  # Task 2 is measured, too

    @property
    def settings(self) -> dict[str, Any]:
        """The inputs of the model: options that differ from the defaults, recipe, files of pairs."""
        choices = self.recipe.choices()
        if choices.get("pairs") == "collection":  # the same as no files of pairs
            del choices["pairs"]
        recipe = {f"recipe {name}": value for name, value in choices.items()}
        return {**self.config.choices(), **recipe, "pairs": sorted(file.name for file in self.pairs)}

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.workdir / "runs" / _digest(self.settings)

    @property
    def measured_ways(self) -> tuple[str, ...]:
        """The ways that this model has vectors for."""
        whole = self.config.virtual_nodes != "none"
        return tuple(name for name in self.ways if whole or not name.startswith((SINGLE, "doc-VN")))

    @property
    def measurement(self) -> dict[str, Any]:
        """The inputs of the measured values, in addition to the model."""
        return {
            "years": list(self.years),
            "strategies": list(self.measured_ways),
            "depth": dataclasses.asdict(self.depth),
        }

    @property
    def measured(self) -> Path:
        """The file of the measured values."""
        return self.folder / f"measured-{_digest(self.measurement)}.csv"

    @property
    def speed(self) -> Path:
        """The file of the times of single queries."""
        return self.measured.with_name(f"{self.measured.stem}-speed.csv")

    @property
    def formulas(self) -> Path:
        """The file of the measured values of Task 2."""
        return self.folder / f"formulas-{_digest({'years': list(self.years)})}.csv"

    @property
    def cost(self) -> Path:
        """The file of what training cost."""
        return self.folder / "cost.json"

    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.measured.is_file() and (not self.task2 or self.formulas.is_file())

    def to_json(self) -> str:
        """Serialize the job for another process."""
        return json.dumps({**dataclasses.asdict(self), "config": self.config.to_dict()}, default=str)

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Read the result of :meth:`to_json`."""
        fields = json.loads(text)
        return cls(
            collection=Path(fields["collection"]),
            workdir=Path(fields["workdir"]),
            config=MathAMRConfig.from_dict(fields["config"]),
            recipe=Recipe(**fields["recipe"]),
            pairs=tuple(map(Path, fields["pairs"])),
            years=tuple(fields["years"]),
            ways=tuple(fields["ways"]),
            depth=Depth(**fields["depth"]),
            device=fields["device"],
            task2=fields["task2"],
        )


def _digest(settings: Mapping[str, Any]) -> str:
    """Name settings by 12 hexadecimal digits."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


Jobs = dict[tuple[str, int], Job]
"""The runs of a study by condition and seed."""


def run_job(job: Job, *, say: Callable[[str], None] | None = None, verbose: bool = False) -> None:
    """Do a job, or the rest of it."""
    with writer_lock(job.folder, wait=True):
        shared, stages = Artifacts(job.collection, job.workdir, pairs=job.pairs), Stages(job.folder, say)
        own = ModelArtifacts(shared, stages, verbose=verbose)
        model = _model(job, own)
        index, identity = own.answers(model), {"model": model.identity}
        measured, formulas = job.measured, job.formulas
        stages.run(
            measured.stem, measured, {**identity, **job.measurement}, lambda: measure_job(job, shared, model, index)
        )
        if job.task2:
            settings = {**identity, "years": list(job.years)}
            stages.run(formulas.stem, formulas, settings, lambda: measure_formulas(job, own, model))


def _model(job: Job, own: ModelArtifacts) -> MathAMR:
    settings = {**job.settings, "collection": str(own.shared.collection.path.resolve())}
    text = text_encoder(own.shared, job.config)
    return own.model(settings, lambda checkpoint: _train(job, own, checkpoint), text)


def _train(job: Job, own: ModelArtifacts, checkpoint: Path) -> MathAMR:
    """Train, and record the cost before the model is saved, so that no model lacks its cost."""
    shared, verbose = own.shared, own.verbose
    graphs = JoinedGraphs([shared.graphs, *pair_graphs(shared)])
    data = training_data(job, own)
    model = train_on_pairs(
        data.sources,
        graphs,
        job.config,
        checkpoint,
        first=data.first,
        negatives=data.negatives,
        never=data.never,
        device=job.device,
        text=text_encoder(shared, job.config),
        verbose=verbose,
    )
    write_atomically(job.cost, json.dumps(_cost(model, checkpoint), indent=1) + "\n")
    if job.recipe.fitted:
        validation = [pair for source in data.sources for pair in source.validation]
        model = fit_score_weights(model, validation, graphs, device=job.device, verbose=verbose)
    return model


class TrainingData(NamedTuple):
    """The training data of a job."""

    sources: list[TrainingPairs]  # pairs for training and early stopping
    first: list[TrainingPairs]  # pairs of the first epochs
    negatives: Mapping[str, Sequence[str]] | None = None  # hard negatives by question id, or None
    never: Mapping[str, Iterable[str]] | None = None  # documents by question id that are never its negatives, or None


def training_data(job: Job, own: ModelArtifacts) -> TrainingData:
    """Read the pairs of a job and mine its hard negatives, with the model of another job if its recipe requires it."""
    recipe, graphs = job.recipe, own.shared.graphs
    collection, *others = [read_training_pairs(source) for source in (job.collection, *job.pairs)]
    mined = collection.train
    collection = collection._replace(train=[*mined, *linked_pairs(job.collection, recipe.links)])
    data = TrainingData([collection], others) if recipe.pairs == "first" else TrainingData([collection, *others], [])
    if recipe.negatives == "none" and recipe.links == "none":
        return data
    data = data._replace(never=known_answers(job.collection, (question for question, _ in collection.train)))
    if recipe.negatives == "none" or data.never is None:
        return data
    model = None
    if recipe.negatives == "model":
        config, without = job.config.replace(hard_negatives=0), Recipe(pairs=recipe.pairs, links=recipe.links)
        base = dataclasses.replace(job, config=config, recipe=without)  # may be a run of the same study
        with writer_lock(base.folder, wait=True):
            model = _model(base, dataclasses.replace(own, stages=Stages(base.folder)))
    return data._replace(
        negatives=mine_negatives(recipe.negatives, job.collection, mined, data.never, graphs=graphs, model=model)
    )


def _cost(model: MathAMR, checkpoint: Path) -> dict[str, object]:
    """Compute what training cost, from its history and this process."""
    history = json.loads((checkpoint / "history.json").read_text(encoding="utf-8"))
    losses, seconds = ([record[name] for record in history] for name in ("validation_loss", "seconds"))
    gpu = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else None
    return {
        "epochs": len(history),
        "best epoch": 1 + losses.index(min(losses)),
        "seconds per epoch": sum(seconds) / len(history),
        "share of waiting": sum(record["waiting"] * record["seconds"] for record in history) / sum(seconds),
        "parameters": sum(tensor.numel() for tensor in model.encoder("cpu").parameters()) + 1,  # and the temperature
        "peak MiB": round(peak_memory(), 1),
        "peak GPU MiB": gpu,
        "history": history,
        "environment": environment(),
    }


def measure_job(job: Job, shared: Artifacts, model: MathAMR, index: MathAMRIndex) -> None:
    """Search with each way, and write the values by topic and the times of single queries."""
    ways = {name: WAYS[name] for name in job.measured_ways}
    search = SystemSearch(model, index, shared.bm25, shared.tuned, ways, job.depth, job.device)
    if FUSION in ways:
        search.fit(shared.questions("validation"))
    parts = []
    for name in (KNOWN_ITEM, *job.years):
        known = name == KNOWN_ITEM
        found = shared.questions("test") if known else shared.topics(name)
        topics = search.encode(found)
        rankings = search.rankings(topics)
        measures = KNOWN_ITEM_MEASURES if known else TASK1_MEASURES
        parts.append(measure_by_topic(rankings, topics, found.qrels, measures).assign(topics=name))
    write_atomically(job.speed, _speed(job, shared, search).to_csv(index=False))
    table = pd.concat(parts, ignore_index=True).rename(columns={"name": "system"}).fillna({"value": 0.0})
    write_atomically(job.measured, table[["topics", "system", "qid", "measure", "value"]].to_csv(index=False))


def _speed(job: Job, shared: Artifacts, search: SystemSearch) -> pd.DataFrame:
    """Time single queries from their text to their ranking; a text encoder computes every vector, without a cache."""
    text = text_encoder(shared, job.config, cached=False)
    plain = dataclasses.replace(search, model=MathAMR.from_pretrained(job.folder / "model", text=text))
    table = time_queries(plain.pipelines(shared.topic_formulas(job.years[0])), shared.topics(job.years[0]).topics)
    table.insert(2, "queries per second", 1000 / table.pop("ms per query"))
    return table.rename(columns={"name": "system"})


def measure_formulas(job: Job, own: ModelArtifacts, model: MathAMR) -> None:
    """Index the vectors of all formulas, search for the formula topics, and write the values by topic."""
    index, parts = own.formulas(model), []
    for year in job.years:
        found = judged_formulas(own.shared, year)
        encode = found.graphs.loader(side="query") >> model.query_encoder(device=job.device)
        ranking = distinct(encode >> index.retriever(num_results=FORMULA_DEPTH))(found.topics)
        parts.append(measured_formulas({FORMULAS: ranking}, found).assign(topics=formula_label(year)))
    write_atomically(job.formulas, pd.concat(parts, ignore_index=True).to_csv(index=False))


def run_jobs(
    jobs: Jobs, workers: int, executor: Executor | None, say: Callable[[str], None], *, verbose: bool = False
) -> dict[tuple[str, int], str]:
    """Do the unfinished jobs, and return why some failed; one that fails does not stop the others."""
    rest = [job for job in jobs.values() if not job.finished()]
    say(f"{len(jobs)} runs, {len(jobs) - len(rest)} finished before")
    folders: dict[Path, list[Job]] = {}
    for job in rest:
        folders.setdefault(job.folder, []).append(job)
    if isinstance(executor, Processes):
        workers, executor = executor.slots, None
    if executor is not None:
        failed = _spread(folders, executor, say)
    elif workers == 0:
        failed = {}
        for job in rest:
            run_job(job, say=say, verbose=verbose)
    else:
        failed = _in_processes(folders, workers, say)
    return {key: failed[job.folder] for key, job in jobs.items() if job.folder in failed}


def _in_processes(folders: Mapping[Path, Sequence[Job]], workers: int, say: Callable[[str], None]) -> dict[Path, str]:
    """Do the jobs of each folder one after another, several folders at a time, each job in a separate process."""
    failed, stopped, running = dict[Path, str](), threading.Event(), dict[Path, Worker[[str], None]]()

    def do(folder: Path) -> str:
        if stopped.is_set():
            return ""
        say(f"{name_of(folders[folder][0])}: begins")
        return do_jobs(folders[folder], lambda worker: running.__setitem__(folder, worker))

    finished, started = 0, time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        asked = {pool.submit(do, folder): folder for folder in folders}
        try:
            for done in as_completed(asked):
                folder, reason = asked[done], done.result()
                if reason:
                    failed[folder] = reason
                else:
                    finished += 1
                took = f"after {time.perf_counter() - started:.0f} s"
                say(f"{name_of(folders[folder][0])}: {f'failed {took}: {reason}' if reason else f'finished {took}'}")
        except KeyboardInterrupt as error:
            stopped.set()
            for worker in list(running.values()):
                worker.stop()
            kept = next(iter(folders.values()))[0].workdir
            error.add_note(f"{finished} finished runs and the checkpoints of the others are kept in {kept}")
            raise
    return failed


def _spread(folders: Mapping[Path, Sequence[Job]], executor: Executor, say: Callable[[str], None]) -> dict[Path, str]:
    """Do jobs on the nodes of a cluster: each in a separate process on the node that has room for it."""
    failed: dict[Path, str] = {}
    if folders:
        first = next(iter(folders.values()))[0]
        first.folder.mkdir(parents=True, exist_ok=True)
        seen = first.folder / "job.json"
        seen.write_text(first.to_json(), encoding="utf-8")
        if not executor.sees(seen):
            raise ConfigError("workdir", str(first.workdir), "a folder that all nodes of the cluster share")
    with closing(executor.map(do_jobs, folders.values())) as done:
        for (folder, of), reason in zip(folders.items(), done, strict=True):
            if reason:
                failed[folder] = reason
            say(f"{name_of(of[0])}: {f'failed: {reason}' if reason else 'finished'}")
    return failed


def do_jobs(jobs: Sequence[Job], started: Callable[[Worker[[str], None]], object] = lambda worker: None) -> str:
    """Do jobs one after another, each in a separate process; return why one failed, or nothing."""
    for job in jobs:
        job.folder.mkdir(parents=True, exist_ok=True)
        worker = Worker(do_job, one_thread=True, log=job.folder / "log.txt")
        started(worker)
        try:
            worker(job.to_json())
        except Exception as error:  # whatever it is, the other runs go on
            return str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        finally:
            worker.stop()
    return ""


def do_job(text: str) -> None:
    """Do a job of :meth:`Job.to_json` in a separate process."""
    os.environ.update(_BARS)
    torch.set_num_threads(1)
    run_job(Job.from_json(text), say=to_stderr, verbose=True)


def name_of(job: Job) -> str:
    """Name a job for its lines: folder, settings, seed."""
    options = ", ".join(f"{name}={value}" for name, value in job.settings.items() if name not in ("pairs", "seed"))
    return f"{job.folder.name} ({options or 'defaults'}; seed {job.config.training.seed})"


def read_results(jobs: Jobs) -> Results:
    """Read the files of finished jobs."""
    values, speed, costs = [], [], []
    for (condition, seed), job in jobs.items():
        if not job.finished():
            continue
        marks: dict[str, Any] = {"condition": condition, "seed": seed}
        values.append(pd.read_csv(job.measured, dtype={"qid": str, "topics": str}).assign(**marks))
        if job.task2:
            values.append(pd.read_csv(job.formulas, dtype={"qid": str, "topics": str}).assign(**marks))
        speed.append(pd.read_csv(job.speed).assign(**marks))
        costs.append({**marks, "run": job.folder.name, **_costs_of(job)})
    return Results(
        pd.concat(values, ignore_index=True) if values else pd.DataFrame(columns=VALUES),
        pd.concat(speed, ignore_index=True)
        if speed
        else pd.DataFrame(columns=["condition", "seed", "system", "queries", *TIMES]),
        pd.DataFrame(costs),
    )


def _costs_of(job: Job) -> dict[str, float]:
    """Read the cost of a run and the size of its index."""
    cost = json.loads(job.cost.read_text(encoding="utf-8"))
    index = MathAMRIndex(job.folder / "answers.mathamr")
    size = sum(file.stat().st_size for file in index.path.rglob("*") if file.is_file())
    vectors = sum(len(entry.rows) for entry in index.entries())
    kept = {name: value for name, value in cost.items() if isinstance(value, (int, float))}
    return {**kept, "index bytes": size, "vectors": vectors}
