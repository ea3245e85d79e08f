"""Distillation: the bundled text encoder learns the rows of a larger one, without labels.

::

    posts ──first window──▶ teacher ──▶ a unit row t for each sentence, formula and the post     computed once, kept
                        └─▶ student ──▶ the same rows s

    similarity    mean over rows i of KL(softmax_j tᵢ · tⱼ / τ ‖ softmax_j sᵢ · sⱼ / τ)         j: the other rows
    rows          mean over rows of 1 - cos(W s, t)                                            W is learned, too
    both          their sum
    both + pairs  and a share of the loss of pairs, by which the bundled encoder was trained

Similarities are the same in any number of dimensions (Tung and Mori, "Similarity-preserving knowledge distillation",
ICCV 2019). The linear map learns the teacher's space (Jiao et al., "TinyBERT", EMNLP 2020), so that a student with W
can encode queries for documents that the teacher encoded: two towers.

A post is read as its first window; with ``alone``, also some of its sentences and formulas, each as a text of its own.
The student starts from the bundled encoder. One of twelve layers has each of its six twice. With ``renamed`` it reads a
share of the posts with other letters and learns the rows of the post as written, so that letters mislead it less.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mathamr_systems.charts import new_figure, save
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import Stages, slug, to_stderr
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.ids import pseudo_random
from pyterrier_mathamr.arqmath import Pair, split_pairs
from pyterrier_mathamr.graph import GraphStore, MathAMRGraph, Segments, segments_of
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.model.batching import batches_by_size
from pyterrier_mathamr.model.bert import Bert, TorchBert, best_precision, load_bert
from pyterrier_mathamr.model.packed_bert import BUNDLED_FOLDER, BertSize, PackedBert, weights_file
from pyterrier_mathamr.model.text_encoder import PackedEncoder, unit_rows
from pyterrier_mathamr.store import file_fingerprint
from studies.notation.letters import renamed_graph

from .text_encoder import (
    MEASURED,
    WEIGHTS,
    EncoderTraining,
    FirstWindow,
    Measured,
    batches,
    encode,
    first_window,
    first_windows,
    graphs_of,
    mean_of,
    measured,
    model_around,
    model_of,
    pairs_of,
    posts_of,
    scores,
    set_rate,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Loss = Literal["similarity", "rows", "both", "both + pairs"]
LOSSES: tuple[Loss, ...] = get_args(Loss)

_BLOCK = 256  # posts between two files of teacher's rows
_PROJECTION = "projection"  # W, beside the weights of a student
_SMOOTHED = 10  # batches whose losses a picture averages
_FIRST = 8  # batches to which W is fitted before training
TeacherRows = npt.NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Distillation(EncoderTraining):
    """Options of a run.

    Attributes:
        trained: the student's layers, 6 or 12; all are trained.
        loss: what the student learns.
        temperature: τ of the similarities.
        of_pairs: the weight of the loss of pairs.
        renamed: the share of posts that the student reads with other letters; each batch draws its own.
        alone: sentences and formulas of each post that are also read alone.
    """

    rate: float = 1e-4
    loss: Loss = "both"
    temperature: float = 0.05
    of_pairs: float = 0.1
    renamed: float = 0.0
    alone: int = 0


def teach(
    windows: Mapping[str, FirstWindow], teacher: PackedEncoder, folder: Path, verbose: bool = False
) -> dict[str, TeacherRows]:
    """Compute the teacher's rows of windows, float16 ``[rows and the post, d]`` of unit length each.

    The rows of a block of posts are a file, so that a stopped run goes on where it was.

    Args:
        windows: windows in the teacher's pieces.
        teacher: the encoder.
        folder: where rows are kept.
        verbose: show progress.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names, found = list(windows), dict[str, TeacherRows]()
    starts = range(0, len(names), _BLOCK)
    for start in progress(starts, "encoding texts", "blocks", verbose=verbose):
        block = names[start : start + _BLOCK]
        file = folder / f"{pseudo_random(' '.join(block)):016x}.npz"
        if not file.exists():
            rows = _teacher_rows([windows[name] for name in block], teacher)
            part = file.with_suffix(".part.npz")
            np.savez(part, *rows)
            part.replace(file)
        with np.load(file) as kept:
            found |= {name: kept[f"arr_{i}"] for i, name in enumerate(block)}
    return found


def _teacher_rows(windows: Sequence[FirstWindow], teacher: PackedEncoder) -> list[TeacherRows]:
    found = [np.empty((0, teacher.width), np.float16)] * len(windows)
    for members in batches_by_size([len(one.ids) for one in windows], teacher.at_once):
        for i, states in zip(members, teacher.network.states([windows[i].ids for i in members]), strict=True):
            until = np.concatenate([np.zeros((1, states.shape[1]), np.float32), states.cumsum(axis=0)])
            low, high = np.array([*windows[i].rows, (0, len(states))]).T
            found[i] = unit_rows(until[high] - until[low]).astype(np.float16)
    return found


def read_alone(
    graphs: Mapping[str, MathAMRGraph] | GraphStore,
    names: Sequence[str],
    most: int,
    room: int,
    verbose: bool = False,
    cutter: PackedEncoder | None = None,
) -> dict[str, dict[str, FirstWindow]]:
    """Cut some sentences and formulas of each post, with the smallest SHA-256, as texts of their own, given by text.

    Args:
        graphs: posts by name.
        names: the posts.
        most: texts of each post.
        room: pieces of a window, without special ones.
        verbose: show progress.
        cutter: the encoder; the bundled one by default.
    """
    cutter, found = cutter or PackedEncoder(PackedBert(BUNDLED_FOLDER)), {}
    cutter.room = room
    for name in progress(list(names) if most else [], "cutting texts", "posts", verbose=verbose):
        graph = graphs[name]
        segments = segments_of(graph)
        texts = {*(segments.texts[number] for number in segments.of_sentence), *(f"${latex}$" for latex in graph.latex)}
        chosen = sorted(filter(str.strip, texts), key=pseudo_random)[:most]
        found[name] = {text: first_window(Segments((text,), (0,), ()), cutter) for text in chosen}
    return found


def similarity_loss(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Compare how each row sees the others: the mean of KL(softmax t tᵀ / τ ‖ softmax s sᵀ / τ), diagonals aside."""
    same = torch.eye(len(student), dtype=torch.bool)
    seen, right = (
        F.log_softmax((rows @ rows.T / temperature).masked_fill(same, -math.inf), dim=1).masked_fill(same, 0.0)
        for rows in (student, teacher)
    )
    return (right.exp().masked_fill(same, 0.0) * (right - seen)).sum(1).mean()


def doubled(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Put each layer of an encoder twice."""
    found = dict[str, Tensor]()
    for name, weight in weights.items():
        if name.startswith("layers."):
            _, number, rest = name.split(".", 2)
            found |= {f"layers.{2 * int(number) + copy}.{rest}": weight.clone() for copy in (0, 1)}
        else:
            found[name] = weight
    return found


class Student(NamedTuple):
    """A distilled encoder."""

    encoder: dict[str, Tensor]  # float32 weights
    projection: Tensor  # W, float32 [d of the teacher, d]
    losses: list[float]  # of each batch


def bundled(layers: int) -> tuple[BertSize, dict[str, Tensor]]:
    """Return the size and the float32 weights of the bundled encoder, of six layers or twelve."""
    size = BertSize.read(BUNDLED_FOLDER / "config.json")
    weights = dict(load_bert(BUNDLED_FOLDER, "float32", torch.device("cpu")).state_dict())
    if layers == size.num_hidden_layers:
        return size, weights
    return size._replace(num_hidden_layers=2 * size.num_hidden_layers), doubled(weights)


def distill(
    kinds: Mapping[str, Sequence[Pair]],
    windows: Mapping[str, FirstWindow],
    taught: Mapping[str, TeacherRows],
    options: Distillation,
    verbose: bool = True,
    renamed: Mapping[str, FirstWindow] = MappingProxyType({}),
    alone: Mapping[str, Mapping[str, FirstWindow]] = MappingProxyType({}),
) -> Student:
    """Train a student on the teacher's rows of the posts of pairs.

    Args:
        kinds: pairs of each kind of text.
        windows: of their posts.
        taught: the teacher's rows of these windows.
        options: of the run.
        verbose: show progress.
        renamed: windows with other letters of posts that may be read so, with the same rows.
        alone: sentences and formulas of posts, which ``taught`` has as well.
    """
    torch.manual_seed(options.seed)
    draw = random.Random(options.seed)
    size, weights = bundled(options.trained)
    bert = Bert(size)
    bert.load_state_dict(weights)
    bert.requires_grad_(False)
    bert.layers.requires_grad_(True)
    todo = batches(kinds, options)[: options.steps]
    with torch.no_grad():  # W starts as the best map of the rows of some batches
        some = [name for batch in todo[:_FIRST] for pair in batch for name in pair]
        start = encode(bert, [windows[name] for name in some], WEIGHTS).vectors
        projection = nn.Parameter(torch.linalg.lstsq(start, _rows(taught, some)).solution.T.contiguous())
    parameters = [each for each in bert.parameters() if each.requires_grad] + [projection]
    optimizer = torch.optim.AdamW(parameters, lr=options.rate, weight_decay=options.decay, fused=True)

    def window(name: str) -> FirstWindow:
        is_renamed = name in renamed and draw.random() < options.renamed
        return (renamed if is_renamed else windows)[name]

    losses = list[float]()
    for step, batch in enumerate(progress(todo, "training", "batches", verbose=verbose)):
        set_rate(optimizer, options.rate, step, len(todo))
        sides = [[pair[side] for pair in batch] for side in (0, 1)]
        rows = [encode(bert, [window(name) for name in names], WEIGHTS) for names in sides]
        short = {text: window for names in sides for name in names for text, window in alone.get(name, {}).items()}
        vectors = [one.vectors for one in rows]
        vectors += [encode(bert, list(short.values()), WEIGHTS).vectors] if short else []
        own, right = torch.cat(vectors), _rows(taught, [*sides[0], *sides[1], *short])
        loss = torch.zeros(())
        if options.loss != "rows":
            loss = loss + similarity_loss(own, right, options.temperature)
        if options.loss != "similarity":
            loss = loss + 1 - F.cosine_similarity(own @ projection.T, right).mean()
        if options.loss == "both + pairs":
            found, answers = scores(rows[0], rows[1], WEIGHTS.blend), torch.arange(len(batch))
            loss = loss + options.of_pairs * (F.cross_entropy(found, answers) + F.cross_entropy(found.T, answers)) / 2
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())
    trained = {name: value.detach().contiguous() for name, value in bert.state_dict().items()}
    return Student(trained, projection.detach(), losses)


def _rows(taught: Mapping[str, TeacherRows], names: Sequence[str]) -> Tensor:
    return torch.from_numpy(np.concatenate([taught[name] for name in names]).astype(np.float32))


def run_distillation(
    sources: Sequence[Path],
    teacher: Path,
    workdir: Path,
    *,
    losses: Sequence[Loss] = LOSSES,
    layers: Sequence[int] = (6,),
    seeds: Sequence[int] = (42,),
    shares: Sequence[float] = (1.0,),
    renamed: Sequence[float] = (0.0,),
    alone: int = 0,
    most: int | None = None,
    steps: int | None = None,
    size: Measured = MEASURED,
    verbose: bool = True,
) -> Report:
    """Distill an encoder into students, and measure the score of models that use them.

    Args:
        sources: files of pairs and ARQMath folders, each a kind of text; their training parts are read.
        teacher: folder of the larger encoder, which must cut texts into the same pieces.
        workdir: where graphs, the teacher's rows, weights, models and ``report.md`` are kept; finished stages, and
            blocks of the teacher's rows, are not repeated. ``losses.svg`` is a picture of all losses.
        losses: what students learn, a run for each.
        layers: of the students, 6 or 12, a run for each.
        seeds: seeds, a run for each.
        shares: how far each student goes from its initial weights to the trained ones, 1 for all the way; each share
            is a model, and so is the mean of a student's seeds.
        renamed: shares of the posts that students read with other letters, a run for each.
        alone: sentences and formulas of each post that students also read alone.
        most: pairs of each kind, those with the smallest SHA-256 of their question's id; ``None`` for all.
        steps: batches that each student is trained on; ``None`` for all.
        size: how many posts a model is measured on.
        verbose: report each stage on stderr, with progress bars.
    """
    stages = Stages(workdir, to_stderr if verbose else None)
    store, origin = graphs_of(sources, workdir, stages, verbose)
    pairs = pairs_of(sources)
    train_on = {
        kind: sorted(split_pairs(of_kind, "train"), key=lambda pair: pseudo_random(pair.question_id))[:most]
        for kind, of_kind in pairs.items()
    }
    names, room = sorted(posts_of(train_on.values()), key=pseudo_random), Distillation().pieces
    device = torch.device("cpu")
    network = PackedEncoder(TorchBert(teacher, best_precision(device), device), teacher)
    with stages.timed("teaching"):
        theirs = first_windows(store, names, room, verbose, network)
        taught = teach(theirs, network, workdir / "teacher", verbose)
        of_texts = read_alone(store, names, alone, room, verbose, network)
        texts = {text: window for own in of_texts.values() for text, window in own.items()}
        taught |= teach(texts, network, workdir / "teacher-alone", verbose)
    windows = first_windows(store, names, room, verbose)
    if differ := [name for name in names if windows[name].rows != theirs[name].rows]:
        raise ConfigError("teacher", str(teacher), f"an encoder that cuts {differ[0]} into the same pieces")

    others = first_windows(store, names if any(renamed) else (), room, verbose, change=renamed_graph)
    others = {  # a window that ends elsewhere may have other rows
        name: other
        for name, other in others.items()
        if (len(other.rows), other.sentences) == (len(windows[name].rows), windows[name].sentences)
    }

    of_texts = read_alone(store, names, alone, room, verbose)
    folder = workdir / "models"
    large = model_around(teacher, folder / "teacher")
    models: dict[str, MathAMR | tuple[MathAMR, MathAMR]] = {
        "minilm-math": model_of(bundled(6)[1], folder / "start"),
        "teacher": large,
    }
    of_runs = dict[str, list[float]]()
    for loss, count, letters in product(losses, layers, renamed):
        name = f"{loss}, {count} layers" + f", {letters:.0%} renamed" * (letters > 0) + f", {alone} alone" * (alone > 0)
        name, found = name + f", {steps} steps" * bool(steps), list[dict[str, Tensor]]()
        for seed in seeds:
            options = Distillation(trained=count, loss=loss, seed=seed, renamed=letters, alone=alone, steps=steps)
            file = workdir / "students" / f"{slug(name)}-{seed}.safetensors"

            def fit(options: Distillation = options, file: Path = file) -> None:
                student = distill(train_on, windows, taught, options, verbose, others, of_texts)
                file.parent.mkdir(exist_ok=True)
                file.with_suffix(".json").write_text(json.dumps(student.losses))
                save_file({**student.encoder, _PROJECTION: student.projection}, file)

            made_from = {**origin, "teacher": file_fingerprint(weights_file(teacher)), "most": most, **asdict(options)}
            stages.run(f"distilling-{file.stem}", file, made_from, fit)
            of_runs[f"{name}, seed {seed}"] = json.loads(file.with_suffix(".json").read_text())
            weights = load_file(file)
            projection = weights.pop(_PROJECTION)
            found.append(weights)
            for share in shares:
                own = f"{name}, seed {seed}, share {share:g}"
                models[own] = model_of(mean_of([bundled(count)[1], weights], [1 - share, share]), folder / slug(own))
            if loss != "similarity":
                own = f"{name}, seed {seed}, two towers"
                models[own] = model_of(weights, folder / slug(own), projection), large
        if len(found) > 1:
            own = f"{name}, mean of {len(found)} seeds"
            models[own] = model_of(mean_of(found), folder / slug(own))
    save(draw_losses(of_runs), workdir / "losses.svg")
    return measured("Distillation of the text encoder", models, pairs, store, stages, size, verbose).write(workdir)


def draw_losses(runs: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the loss of each run as the mean of the last ten batches, relative to that of the first ten.

    Losses of different kinds have different units, so that only their falls can be compared.
    """
    figure = new_figure(7, 3.5)
    panel = figure.subplots()
    for name, losses in runs.items():
        last = min(_SMOOTHED, len(losses))
        smooth = np.convolve(losses, np.ones(last) / last, mode="valid")
        panel.plot(np.arange(last, len(losses) + 1), smooth / smooth[0], label=name)
    panel.set(xlabel="batches", ylabel=f"loss / loss of the first {_SMOOTHED}", ylim=(0, None))
    panel.legend(fontsize=8)
    return figure
