"""The bundled ``mathamr-plus-small``: trained, joined, and measured on kinds of text that it was not trained on.

    python benchmarks/small_model.py ARQMATH_MINI math-train.jsonl.gz stackexchange.jsonl.gz --folder F \
        --judges stacks-project.jsonl.gz textbooks.jsonl.gz                            half an hour on one core
    python benchmarks/small_model.py ARQMATH_MINI PAIRS.jsonl.gz … --folder F --only ""   five minutes: the model alone

Its second part is the condition *bags with edges, outside first* of ``best/lookup``: bags of labels and labelled edges,
trained on pairs from outside and then on those of the collection. Joined with ``mathamr-plus-mini`` at equal shares,
with score weights fitted to the collection's validation questions, it is ``F/small``. For each file of pairs the same
is done without it, ``F/small-without-NAME``, and that model measured on the file (``--protocol domains``), so that
nothing is measured on what was trained on; ``--judges`` are files that are measured alone, by the model itself. A model
that is in ``F`` is not trained again, so an interrupted run goes on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyterrier_mathamr.experiments.artifacts.jobs import build_graphs
from pyterrier_mathamr.experiments.protocol.beyond.domains import run_domains
from pyterrier_mathamr.experiments.sources import known_answers, read_training_pairs
from pyterrier_mathamr.experiments.studies import find_study
from pyterrier_mathamr.experiments.studies.ablations import OUTSIDE_FIRST
from pyterrier_mathamr.experiments.training.from_sources import JoinedGraphs, train_on_pairs
from pyterrier_mathamr.graph import GraphStore
from pyterrier_mathamr.model import JoinedMathAMR, MathAMR, fit_score_weights


class Recipe:
    """How the model is made.

    Args:
        collection: an ARQMath folder.
        files: of pairs, by name.
        folder: where everything is kept.
        seed: of the training.
        mini: the model that is joined.
    """

    def __init__(self, collection: Path, files: dict[str, Path], folder: Path, seed: int, mini: str) -> None:
        self.collection, self.files, self.folder, self.seed, self.mini = collection, files, folder, seed, mini
        self.pairs = read_training_pairs(collection)

    def graphs(self, source: Path) -> GraphStore:
        """Build the graphs of a source, or open them."""
        path = self.folder / f"{source.name.partition('.')[0]}.mathamr"
        return GraphStore(path) if path.exists() else build_graphs([source], path, verbose=True)

    def edges(self, without: str | None) -> MathAMR:
        """Train the second part, or open it.

        Args:
            without: the name of a file that is left out.
        """
        path = self.folder / _name("edges", without)
        if not path.exists():
            study = find_study("best/lookup")
            condition = next(one for one in study.conditions if one.name == OUTSIDE_FIRST)
            files = [file for name, file in self.files.items() if name != without]
            questions = (question for question, _ in self.pairs.train)
            train_on_pairs(
                [self.pairs],
                JoinedGraphs([self.graphs(source) for source in (self.collection, *files)]),
                study.config(condition, self.seed),
                path.with_suffix(".training"),
                first=[read_training_pairs(file) for file in files],
                never=known_answers(self.collection, questions),
                verbose=True,
            ).save(path, dtype="float16")
        return MathAMR.from_pretrained(path)

    def small(self, without: str | None) -> Path:
        """Join the parts and fit their weights, or find the model.

        Args:
            without: see :meth:`edges`.
        """
        path = self.folder / _name("small", without)
        if not path.exists():
            joined = JoinedMathAMR([MathAMR.from_pretrained(self.mini), self.edges(without)])
            fit_score_weights(joined, self.pairs.validation, self.graphs(self.collection)).save(path, dtype="float16")
        return path


def _name(kind: str, without: str | None) -> str:
    return kind if without is None else f"{kind}-without-{without}"


def main() -> None:
    """Read the options; make the model, and measure it without each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path, help="the small collection, arqmath-mini")
    parser.add_argument("pairs", type=Path, nargs="+", help="files of pairs")
    parser.add_argument("--folder", type=Path, required=True, help="where everything is kept")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--mini", default="mathamr-plus-mini", help="the model that is joined")
    parser.add_argument("--judges", type=Path, nargs="*", default=[], help="files of pairs that are not trained on")
    parser.add_argument("--only", help="names of files to measure, with commas; all by default")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    files = {file.name.partition(".")[0]: file for file in given.pairs}
    recipe = Recipe(given.collection, files, given.folder, given.seed, given.mini)
    print(recipe.small(None), flush=True)
    judges = {file.name.partition(".")[0]: file for file in given.judges}
    measured = {**files, **judges}
    for name in measured if given.only is None else filter(None, given.only.split(",")):
        model = recipe.small(name if name in files else None)
        report = run_domains([measured[name]], given.folder / "domains" / name, model=str(model))
        print(report.to_markdown(), flush=True)


if __name__ == "__main__":
    main()
