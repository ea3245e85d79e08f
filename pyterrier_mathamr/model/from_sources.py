"""Training on the pairs of several sources, and In+Out on formulas: what ``mathamr train`` does."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pyterrier_mathamr.arqmath import LinkedQuestions, TrainingPairs, known_answers, linked_pairs, read_training_pairs
from pyterrier_mathamr.graph import GraphStore, MathAMRGraph
from pyterrier_mathamr.store import move, writer_lock

from .config import MathAMRConfig
from .in_out import InOut, InOutOptions
from .in_out.model import TreeCollection
from .loop import is_first
from .mathamr import MathAMR
from .saving import check_new_folder
from .text_encoder import TextEncoder
from .trainer import Trainer

Mining = Callable[[Path, Sequence[tuple[str, str]], Mapping[str, Iterable[str]]], Mapping[str, Sequence[str]]]
"""A source, its training pairs and what is never a negative, to the hard negatives of each question."""


class JoinedGraphs:
    """The graphs of several stores as one."""

    def __init__(self, stores: Sequence[GraphStore]) -> None:
        self._stores = tuple(stores)

    def __getitem__(self, key: str) -> MathAMRGraph:
        for store in self._stores[:-1]:
            if key in store:
                return store[key]
        return self._stores[-1][key]

    def __contains__(self, key: object) -> bool:
        return any(key in store for store in self._stores)


def train_on_pairs(
    sources: Sequence[TrainingPairs],
    graphs: GraphStore | JoinedGraphs,
    config: MathAMRConfig,
    checkpoint: Path,
    *,
    fresh: bool = False,
    first: Sequence[TrainingPairs] = (),
    negatives: Mapping[str, Sequence[str]] | None = None,
    never: Mapping[str, Iterable[str]] | None = None,
    device: str | None = None,
    text: TextEncoder | None = None,
    verbose: bool = False,
) -> MathAMR:
    """Train a model on the pairs of several sources."""

    def known(of: Sequence[TrainingPairs], part: Literal["train", "validation"]) -> list[tuple[str, str]]:
        pairs = (pair for source in of for pair in getattr(source, part))
        return [pair for pair in pairs if pair[0] in graphs and pair[1] in graphs]

    return Trainer(config, device=device, text=text).fit(
        known(sources, "train"),
        graphs,
        validation=known(sources, "validation") or None,
        first=known(first, "train") if first else None,
        negatives=negatives,
        never=never,
        checkpoint=checkpoint,
        fresh=fresh,
        verbose=verbose,
    )


def train_from_sources(
    sources: Sequence[Path],
    graph_store: Path,
    output: Path,
    config: MathAMRConfig,
    *,
    linked_questions: LinkedQuestions = "none",
    first: Sequence[Path] = (),
    mine: Mining | None = None,
    fresh: bool = False,
    verbose: bool = False,
) -> MathAMR:
    """Train a model on the pairs of several sources and save it.

    Answers of linked questions are never negatives of each other's questions.

    Args:
        sources: ARQMath folders and pair files.
        graph_store: the graphs of their posts.
        output: the new model. ``<output>.training`` keeps the training state until the model is saved;
            ``<output>.history.csv`` and, with the extra ``plots``, ``<output>.losses.png`` remain. Of several
            processes only the first writes.
        config: options of the model and the training.
        linked_questions: which links of an ARQMath folder become pairs of questions.
        first: sources whose pairs are trained on in the first ``first_epochs`` epochs of the configuration (at least
            1).
        mine: finds hard negatives, such as ``functools.partial(mine_negatives, "bm25")``; ``hard_negatives`` of the
            configuration (at least 1) are drawn for each pair. Called once for each source.
        fresh: discard the state of a run that was stopped.
        verbose: show progress.

    Returns:
        The model.

    Raises:
        ConfigError: ``output`` exists. WriteError: nothing can be written there.
    """
    check_new_folder(output, "output")
    checkpoint = output.with_name(f"{output.name}.training")
    if is_first():
        with writer_lock(checkpoint.absolute()):
            pass  # fail before negatives are mined if another process trains here, or nothing can be written
    graphs = GraphStore(graph_store)
    read = {source: read_training_pairs(source) for source in (*sources, *first)}
    never: defaultdict[str, set[str]] = defaultdict(set)
    negatives: dict[str, Sequence[str]] = {}
    for source, (train, validation) in read.items():
        known = [pair for pair in train if pair[0] in graphs and pair[1] in graphs]
        for question, answers in known_answers(source, (question for question, _ in (*known, *validation))).items():
            never[question] |= answers
        if mine is not None:
            negatives.update(mine(source, known, never))
    wanted = {"hard_negatives": mine is not None, "first_epochs": bool(first)}
    config = config.replace(
        **{name: 1 for name, used in wanted.items() if used and getattr(config.training, name) == 0}
    )
    pairs = [
        read[source]._replace(train=[*read[source].train, *linked_pairs(source, linked_questions)])
        for source in sources
    ]
    model = train_on_pairs(
        pairs,
        graphs,
        config,
        checkpoint,
        fresh=fresh,
        first=[read[source] for source in first],
        negatives=None if mine is None else negatives,
        never=dict(never),
        verbose=verbose,
    )
    if is_first():
        model.save(output)
        for name in ("history.csv", "losses.png"):
            if (checkpoint / name).exists():
                move(checkpoint / name, output.with_name(f"{output.name}.{name}"))
        shutil.rmtree(checkpoint)
    return model


def train_in_out(
    formulas: TreeCollection, output: Path, options: InOutOptions, *, fresh: bool = False, verbose: bool = False
) -> InOut:
    """Train an In+Out model on formulas and save it.

    Args:
        formulas: the trees, such as :class:`~pyterrier_mathamr.systems.FormulaTrees`.
        output: the new model. ``<output>.training`` keeps the training state until the model is saved;
            ``<output>.history.csv`` remains.
        options: of the model.
        fresh: discard the state of a run that was stopped.
        verbose: show progress.

    Raises:
        ConfigError: ``output`` exists. WriteError: nothing can be written there.
    """
    check_new_folder(output, "output")
    checkpoint = output.with_name(f"{output.name}.training")
    model = InOut.new(formulas, options)
    model.fit(formulas, checkpoint=checkpoint, fresh=fresh, verbose=verbose)
    model.save(output)
    move(checkpoint / "history.csv", output.with_name(f"{output.name}.history.csv"))
    shutil.rmtree(checkpoint)
    return model
