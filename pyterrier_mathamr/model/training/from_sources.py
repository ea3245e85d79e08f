"""Train a model on the pairs of several sources, optionally with hard negatives, linked questions and first pairs."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pyterrier_mathamr.arqmath.sources import LinkedQuestions, TrainingPairs, known_answers, linked_pairs, read_training_pairs
from pyterrier_mathamr.graph import GraphStore, MathAMRGraph
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, TextEncoder, Trainer, is_first
from pyterrier_mathamr.model.saving.saved_model import check_new_folder
from pyterrier_mathamr.store import move, writer_lock
from pyterrier_mathamr.systems import FormulaTrees, InOut, InOutOptions

from pyterrier_mathamr.experiments.training.negatives import Miner, mine_negatives


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


@dataclass(frozen=True, slots=True)
class FurtherTraining:
    """What a model is trained with in addition to the pairs of its sources.

    Attributes:
        negatives: how hard negatives are mined; ``hard_negatives`` of the configuration (at least 1) are drawn for
            each pair.
        negatives_from: name or folder of the model that mines, if ``negatives`` is ``model``.
        linked_questions: which links of an ARQMath folder become pairs of questions.
        first: sources whose pairs are trained on in the first ``first_epochs`` epochs of the configuration (at least
            1).
    """

    negatives: Miner | None = None
    negatives_from: str = "mathamr-plus-mini"
    linked_questions: LinkedQuestions = "none"
    first: tuple[Path, ...] = ()

    def configure(self, config: MathAMRConfig) -> MathAMRConfig:
        """Set the options without which it would have no effect to 1."""
        wanted = {"hard_negatives": self.negatives is not None, "first_epochs": bool(self.first)}
        return config.replace(**{name: 1 for name, used in wanted.items() if used and getattr(config, name) == 0})


def train_from_sources(
    sources: Sequence[Path],
    graph_store: Path,
    output: Path,
    config: MathAMRConfig,
    *,
    further: FurtherTraining | None = None,
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
        further: hard negatives, linked questions, first pairs.
        fresh: discard the state of a run that was stopped.
        verbose: show progress.

    Returns:
        The model.

    Raises:
        ConfigError: ``output`` exists. WriteError: nothing can be written there.
    """
    check_new_folder(output, "output")
    further = further or FurtherTraining()
    checkpoint = output.with_name(f"{output.name}.training")
    if is_first():
        with writer_lock(checkpoint.absolute()):
            pass  # fail before negatives are mined if another process trains here, or nothing can be written
    graphs = GraphStore(graph_store)
    pairs = [_with_links(source, further.linked_questions) for source in sources]
    never, negatives = _negatives([*sources, *further.first], further, graphs, verbose)
    options: dict[str, Any] = {"never": never, "negatives": negatives}
    if further.first:
        options["first"] = [read_training_pairs(source) for source in further.first]
    model = train_on_pairs(
        pairs, graphs, further.configure(config), checkpoint, fresh=fresh, verbose=verbose, **options
    )
    if is_first():
        model.save(output)
        for name in ("history.csv", "losses.png"):
            if (checkpoint / name).exists():
                move(checkpoint / name, output.with_name(f"{output.name}.{name}"))
        shutil.rmtree(checkpoint)
    return model


def train_in_out(
    trees: Path, output: Path, options: InOutOptions, *, fresh: bool = False, verbose: bool = False
) -> InOut:
    """Train an In+Out model on formulas and save it.

    Args:
        trees: a folder of ``FormulaTrees``.
        output: the new model. ``<output>.training`` keeps the training state until the model is saved;
            ``<output>.history.csv`` remains.
        options: of the model.
        fresh: discard the state of a run that was stopped.
        verbose: show progress.

    Raises:
        ConfigError: ``output`` exists. WriteError: nothing can be written there.
    """
    check_new_folder(output, "output")
    checkpoint, formulas = output.with_name(f"{output.name}.training"), FormulaTrees(trees)
    model = InOut.new(formulas, options)
    model.fit(formulas, checkpoint=checkpoint, fresh=fresh, verbose=verbose)
    model.save(output)
    move(checkpoint / "history.csv", output.with_name(f"{output.name}.history.csv"))
    shutil.rmtree(checkpoint)
    return model


def _with_links(source: Path, which: LinkedQuestions) -> TrainingPairs:
    """Read the pairs of a source, and those of its linked questions."""
    pairs = read_training_pairs(source)
    return pairs._replace(train=[*pairs.train, *linked_pairs(source, which)])


def _negatives(
    sources: Iterable[Path], further: FurtherTraining, graphs: GraphStore, verbose: bool
) -> tuple[dict[str, set[str]], dict[str, tuple[str, ...]] | None]:
    """Collect by question id the documents that are never negatives, and the hard negatives if wanted."""
    never: defaultdict[str, set[str]] = defaultdict(set)
    mined: dict[str, tuple[str, ...]] = {}
    model = MathAMR.from_pretrained(further.negatives_from) if further.negatives == "model" else None
    for source in sources:
        train, validation = read_training_pairs(source)
        train = [pair for pair in train if pair[0] in graphs and pair[1] in graphs]
        for question, known in known_answers(source, (question for question, _ in (*train, *validation))).items():
            never[question] |= known
        if further.negatives is not None:
            found = mine_negatives(further.negatives, source, train, never, graphs=graphs, model=model, verbose=verbose)
            mined.update(found)
    return dict(never), None if further.negatives is None else mined
