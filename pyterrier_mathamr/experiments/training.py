"""Training from sources, with hard negatives, linked questions and pairs of other domains where they are asked for."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, is_first
from pyterrier_mathamr.store import move, writer_lock

from .jobs import train_on_pairs
from .negatives import Miner, mine_negatives
from .sources import LinkedQuestions, TrainingPairs, known_answers, linked_pairs, read_training_pairs


@dataclass(frozen=True, slots=True)
class FurtherTraining:
    """What a model is trained with beside the pairs of its sources.

    Attributes:
        negatives: how hard negatives are mined; ``hard_negatives`` of the configuration, or 1, are drawn for each pair.
        negatives_from: name or folder of the model that mines, where ``negatives`` is ``model``.
        linked_questions: which links of an ARQMath folder make further pairs of questions.
        first: sources whose pairs are trained in the first ``first_epochs`` epochs of the configuration, or 1.
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

    Answers of linked questions are never negatives of each other's questions, whatever else is asked for.

    Args:
        sources: ARQMath folders and pair files.
        graph_store: the graphs of their posts.
        output: the new model; ``<output>.training`` keeps the state until it is whole, ``<output>.history.csv`` and,
            with the extra ``plots``, ``<output>.losses.png`` stay. Of several processes the first one writes.
        config: the model's and the training's options.
        further: hard negatives, linked questions, first pairs.
        fresh: begin anew, whatever run was stopped at ``<output>.training``.
        verbose: show progress.

    Returns:
        The model.

    Raises:
        ConfigError: there is something at ``output`` already. WriteError: nothing can be written there.
    """
    if output.exists():
        raise ConfigError("output", str(output), "a folder that does not exist yet")
    further = further or FurtherTraining()
    checkpoint = output.with_name(f"{output.name}.training")
    if is_first():
        with writer_lock(checkpoint.absolute()):
            pass  # where another process trains, or nothing can be written, say so before negatives are mined
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
        keep_history(checkpoint, output)
        shutil.rmtree(checkpoint)
    return model


def keep_history(checkpoint: Path, output: Path) -> None:
    """Move the losses of a run, as table and picture, from its checkpoint to beside its model: ``<output>.losses.png``.

    Args:
        checkpoint: what ``fit`` wrote.
        output: the model's folder.
    """
    for name in ("history.csv", "losses.png"):
        if (checkpoint / name).exists():
            move(checkpoint / name, output.with_name(f"{output.name}.{name}"))


def _with_links(source: Path, which: LinkedQuestions) -> TrainingPairs:
    """Read the pairs of a source, and those of its linked questions."""
    pairs = read_training_pairs(source)
    return pairs._replace(train=[*pairs.train, *linked_pairs(source, which)])


def _negatives(
    sources: Iterable[Path], further: FurtherTraining, graphs: GraphStore, verbose: bool
) -> tuple[dict[str, set[str]], dict[str, tuple[str, ...]] | None]:
    """Collect what is never a negative and, where asked for, hard negatives: each by question id."""
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
