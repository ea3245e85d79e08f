"""Training of a text encoder on pairs, from a published one and by the score that searches with it.

::

    files of pairs, ARQMath ── training parts ──▶ train ──▶ mean with the published weights ──▶ a model for each share
                            ── validation ──────▶ weights of its score, and the choice of a model
                            ── test ────────────▶ reported

    question, answer ──first window──▶ pieces ──encoder──▶ a unit row for each sentence, formula and the document
    S(Q, A) = w_sentence mean_i max_j q_i · a_j + w_document max_j q_doc · a_j + b q_doc · a_doc
    loss    = - log softmax of S over the answers of the batch        (Q to A, and A to Q)

The weights make S a mean of cosines over a temperature of 1 / 25. A batch has pairs of one kind of text, where wrong
answers are hard to distinguish from right ones. Word vectors are frozen, and so are the layers below the last
``trained`` ones. An encoder trained in this way forgets other kinds of text; averaging its weights with the initial
ones forgets less (Wortsman et al., "Robust fine-tuning of zero-shot models", CVPR 2022).
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from safetensors.torch import load_file, save_file
from torch import Tensor

from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import Stages, slug, to_stderr
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.ids import pseudo_random
from pyterrier_mathamr._common.listwise import fit_listwise
from pyterrier_mathamr._common.running.resources import keep_freed_memory
from pyterrier_mathamr.arqmath import ARQMathCollection, Pair, graphs_from_sources, read_pair_file, split_pairs
from pyterrier_mathamr.arqmath.collection import known_item_split
from pyterrier_mathamr.graph import GraphStore, MathAMRGraph, Segments, VirtualKind, segments_of
from pyterrier_mathamr.model import DEFAULT_MODEL, MathAMR
from pyterrier_mathamr.model.batching import batches_by_size, has_bfloat16
from pyterrier_mathamr.model.bert import Bert, from_transformers, load_bert, pack
from pyterrier_mathamr.model.encoding import PostSegments, windows_of
from pyterrier_mathamr.model.exact import ScoreWeights
from pyterrier_mathamr.model.packed_bert import (
    BUNDLED_FOLDER,
    LEFT,
    PACKED,
    RIGHT,
    BertSize,
    PackedBert,
    added,
    weights_file,
)
from pyterrier_mathamr.model.score_weights import score_features
from pyterrier_mathamr.model.text_encoder import PackedEncoder, local_model
from pyterrier_mathamr.store import file_fingerprint

PUBLISHED = "all-MiniLM-L6-v2"
WEIGHTS = ScoreWeights(formula=0.0, sentence=10.1329, document=2.5717, blend=11.9838, means=True)
"""Score weights in training, which were fitted for the published encoder."""

RATE, RATES = 5e-5, {2: 1e-4}
"""The highest learning rate: the usual one, and by the number of trained layers."""

_AT_ONCE = 2048  # pieces that are encoded together


@dataclass(frozen=True, slots=True)
class EncoderTraining:
    """Options of a run.

    Attributes:
        trained: how many of the last layers are trained.
        pieces: the longest window, without special pieces.
        pairs: of a batch.
        rate: the highest learning rate; it rises over the first tenth and falls to 0 on a cosine.
        decay: weight decay.
        repeats: how often the pairs of a kind are used in a run; 1 if it is not named.
        seed: of the order.
        steps: batches that are trained on; ``None`` for all.
    """

    trained: int = 6
    pieces: int = 126
    pairs: int = 48
    rate: float = RATE
    decay: float = 0.01
    repeats: tuple[tuple[str, int], ...] = (("arqmath-mini", 2), ("stackexchange", 2), ("textbooks", 2))
    seed: int = 42
    steps: int | None = None


class FirstWindow(NamedTuple):
    """The first window of a post."""

    ids: list[int]  # special pieces included
    rows: list[tuple[int, int]]  # the first piece and the end of each row; sentences first
    sentences: int  # how many rows are sentences


def first_windows(
    graphs: Mapping[str, MathAMRGraph] | GraphStore,
    names: Iterable[str],
    room: int,
    verbose: bool = False,
    cutter: PackedEncoder | None = None,
    change: Callable[[MathAMRGraph], MathAMRGraph] | None = None,
) -> dict[str, FirstWindow]:
    """Cut the first window of each post into the pieces of an encoder, whose windows get the given length.

    Args:
        graphs: posts by name.
        names: the posts.
        room: pieces of a window, without special ones.
        verbose: show progress.
        cutter: the encoder; the bundled one by default.
        change: a function of a graph whose result is read instead of it.
    """
    cutter, found = cutter or PackedEncoder(PackedBert(BUNDLED_FOLDER)), {}
    cutter.room = room
    for name in progress(list(names), "cutting texts", "posts", verbose=verbose):
        graph = graphs[name]
        found[name] = first_window(segments_of(change(graph) if change else graph), cutter)
    return found


def first_window(segments: Segments, cutter: PackedEncoder) -> FirstWindow:
    """Cut the first window of one post."""
    formulas, sentences = len(segments.of_formula), len(segments.of_sentence)
    kinds = [int(VirtualKind.FORMULA)] * formulas + [int(VirtualKind.SENTENCE)] * sentences
    window = next(windows_of([PostSegments(kinds, segments)], [0, len(kinds) + 1], cutter))
    rows = sorted(((row < formulas, low + 1, high + 1) for row, low, high in window.rows), key=lambda row: row[0])
    rows = [row for row in rows if row[2] > row[1]]
    spans = [(low, high) for _, low, high in rows]
    return FirstWindow([cutter.head, *window.ids, cutter.tail], spans, sum(not row[0] for row in rows))


class Published(NamedTuple):
    """A published encoder."""

    folder: Path  # with its config.json and tokenizer.json
    weights: dict[str, Tensor]  # float32

    @property
    def size(self) -> BertSize:
        return BertSize.read(self.folder / "config.json")


def load_published(folder: Path | None = None) -> Published:
    """Read the encoder of a folder, by default all-MiniLM-L6-v2 from the package that carries it."""
    if folder is not None:
        return Published(folder, dict(load_bert(folder, "float32", torch.device("cpu")).state_dict()))
    found = load_file(Path(local_model(PUBLISHED)) / "model.safetensors")
    size = BertSize.read(BUNDLED_FOLDER / "config.json")
    return Published(BUNDLED_FOLDER, from_transformers(found, size))


class Rows(NamedTuple):
    """The rows of some posts, one after the other; of each post its sentences, formulas, and itself."""

    vectors: Tensor  # [r, d], of unit length
    post: Tensor  # [r], the number of each row's post
    weight: Tensor  # [r], of each row as one of a query
    document: Tensor  # [posts], the last row of each


def encode(bert: Bert, windows: Sequence[FirstWindow], weights: ScoreWeights) -> Rows:
    """Encode windows, with gradient."""
    sums: list[Tensor] = [torch.empty(0)] * len(windows)
    for members in batches_by_size([len(one.ids) for one in windows], _AT_ONCE):
        lengths = [len(windows[i].ids) for i in members]
        ids = torch.tensor([windows[i].ids + [0] * (max(lengths) - len(windows[i].ids)) for i in members])
        with torch.autocast("cpu", torch.bfloat16, enabled=has_bfloat16(torch.device("cpu"))):
            states = bert(ids, torch.tensor(lengths))
        states = states.float()
        totals = F.pad(states.cumsum(1), (0, 0, 1, 0))
        for place, i in enumerate(members):
            own = totals[place]
            low, high = torch.tensor([*windows[i].rows, (0, lengths[place])]).T
            sums[i] = own[high] - own[low]
    counts = torch.tensor(list(map(len, sums)))
    weight = []
    for one in windows:
        weight += [weights.sentence / max(one.sentences, 1)] * one.sentences
        weight += [0.0] * (len(one.rows) - one.sentences) + [weights.document]
    post = torch.repeat_interleave(torch.arange(len(windows)), counts)
    return Rows(F.normalize(torch.cat(sums), dim=1), post, torch.tensor(weight), counts.cumsum(0) - 1)


def scores(queries: Rows, documents: Rows, blend: float) -> Tensor:
    """Score every document for every query: ``[q, d]``."""
    used = queries.weight > 0
    products = queries.vectors[used] @ documents.vectors.T
    best = torch.full((len(products), len(documents.document)), -2.0)
    best = best.scatter_reduce(1, documents.post.expand(len(products), -1), products, "amax")
    summed = torch.zeros(len(queries.document), best.size(1))
    summed = summed.index_add(0, queries.post[used], best * queries.weight[used].unsqueeze(1))
    return summed + blend * queries.vectors[queries.document] @ documents.vectors[documents.document].T


def batches(kinds: Mapping[str, Sequence[Pair]], options: EncoderTraining) -> list[list[Pair]]:
    """Draw batches of one kind each, none with two pairs of a question or of an answer, in random order."""
    draw, found = random.Random(options.seed), list[list[Pair]]()
    repeats = dict(options.repeats)
    for kind, pairs in kinds.items():
        for _ in range(repeats.get(kind, 1)):
            left = draw.sample(list(pairs), len(pairs))
            while left:
                batch, rest, seen = list[Pair](), list[Pair](), set[str]()
                for at, pair in enumerate(left):
                    if len(batch) == options.pairs:
                        rest += left[at:]
                        break
                    (rest if seen & set(pair) else batch).append(pair)
                    seen.update(pair)
                if len(batch) > 1:
                    found.append(batch)
                left = rest if len(rest) > 1 else []
    draw.shuffle(found)
    return found


def set_rate(optimizer: torch.optim.Optimizer, highest: float, step: int, steps: int) -> None:
    """Set the learning rate of a step: it rises over the first tenth, and falls to 0 on a cosine."""
    rise, done = min(1.0, (step + 1) / (0.1 * steps)), step / steps
    for group in optimizer.param_groups:
        group["lr"] = highest * rise * (1 + math.cos(math.pi * done)) / 2


def train(
    kinds: Mapping[str, Sequence[Pair]],
    windows: Mapping[str, FirstWindow],
    weights: ScoreWeights,
    options: EncoderTraining,
    published: Published,
    verbose: bool = True,
) -> tuple[dict[str, Tensor], list[float]]:
    """Train an encoder on pairs of question and answer; return its float32 weights and the loss of each batch."""
    torch.manual_seed(options.seed)
    keep_freed_memory()  # or a sixth of the time goes to page faults
    bert = Bert(published.size)
    bert.load_state_dict(published.weights)
    bert.requires_grad_(False)
    for layer in bert.layers[-options.trained :]:
        layer.requires_grad_(True)
    parameters = [each for each in bert.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=options.rate, weight_decay=options.decay, fused=True)
    todo, losses = batches(kinds, options)[: options.steps], list[float]()
    for step, batch in enumerate(progress(todo, "training", "batches", verbose=verbose)):
        set_rate(optimizer, options.rate, step, len(todo))
        rows = [encode(bert, [windows[pair[side]] for pair in batch], weights) for side in (0, 1)]
        found = scores(rows[0], rows[1], weights.blend)
        right = torch.arange(len(batch))
        loss = (F.cross_entropy(found, right) + F.cross_entropy(found.T, right)) / 2
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return {name: value.detach().contiguous() for name, value in bert.state_dict().items()}, losses


def mean_of(encoders: Sequence[Mapping[str, Tensor]], shares: Sequence[float] | None = None) -> dict[str, Tensor]:
    """Average the weights of encoders; each has the given share, the same by default."""
    shares = shares or [1 / len(encoders)] * len(encoders)
    return {
        name: torch.stack([share * of[name] for share, of in zip(shares, encoders, strict=True)]).sum(0)
        for name in encoders[0]
    }


def low_rank(
    trained: Mapping[str, Tensor], share: float, published: Mapping[str, Tensor], rank: int
) -> dict[str, Tensor]:
    """Factor what training changed, as float16, for ``packed_bert.read_weights``."""
    changes = dict[str, Tensor]()
    for name, weight in published.items():
        change = share * (trained[name] - weight)
        if not change.any():
            continue
        if change.dim() < 2:
            changes[name] = change.half()
            continue
        left, sizes, right = torch.linalg.svd(change, full_matrices=False)
        root = sizes[:rank].sqrt()  # in both, so that no small number falls below float16
        changes[name + LEFT] = (left[:, :rank] * root).half().contiguous()
        changes[name + RIGHT] = (root[:, None] * right[:rank]).half().contiguous()
    return changes


def with_changes(weights: Mapping[str, Tensor], changes: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Add factored changes to weights."""
    theirs, ours = ({name: weight.numpy() for name, weight in each.items()} for each in (changes, weights))
    return {**weights, **{name: torch.from_numpy(weight) for name, weight in added(theirs, ours)}}


def save_encoder(packed: bytes, folder: Path, layers: int = 6, like: Path = BUNDLED_FOLDER) -> None:
    """Write a folder that ``TextEncoder`` opens, with the tokenizer and the other numbers of another encoder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PACKED).write_bytes(packed)
    for name in ("tokenizer.json", "sentence_bert_config.json"):  # the second has the length of a window
        if (like / name).is_file():
            shutil.copyfile(like / name, folder / name)
    size = {**json.loads((like / "config.json").read_bytes()), "num_hidden_layers": layers}
    (folder / "config.json").write_text(json.dumps(size, indent=2) + "\n")


# The study -----------------------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """How many posts of a kind of text are read to measure a model."""

    questions: int = 150  # of each part, validation and test
    answers: int = 1000  # among which they look for their own


MEASURED = Measured()

VALIDATION, TEST, FITTED = "Validation questions", "Test questions", "Weights"
FEATURES = ("formulas", "sentences", "document", "product of document vectors")


class Kind(NamedTuple):
    """The questions and answers of one kind of text."""

    asked: list[str]  # validation questions, then test questions
    validation: int  # how many of them are validation questions
    answers: list[str]
    right: npt.NDArray[np.bool_]  # [questions, answers]


def run_encoders(
    sources: Sequence[Path],
    workdir: Path,
    *,
    start: Path | None = None,
    layers: Sequence[int] = (6,),
    seeds: Sequence[int] = (42,),
    shares: Sequence[float] = (0.5,),
    rank: int | None = None,
    steps: int | None = None,
    size: Measured = MEASURED,
    verbose: bool = True,
) -> Report:
    """Train encoders on the training part of sources, and measure the score of models that use them.

    Args:
        sources: files of pairs and ARQMath folders, each a kind of text.
        workdir: where graphs, weights, models, tables and ``report.md`` are kept; finished stages are not repeated.
        start: folder of the encoder to train, such as all-mpnet-base-v2; ``None`` for all-MiniLM-L6-v2.
        layers: how many of the last layers are trained, a run for each.
        seeds: seeds, a run for each.
        shares: of the trained weights in the mean with the published ones, a model for each. With several seeds there
            are models of the mean of their weights, too.
        rank: of what training adds to a matrix; ``encoders`` in ``workdir`` then has the factors of each model, too.
            ``None`` for all of it.
        steps: batches that each is trained on; ``None`` for all.
        size: how many posts a model is measured on.
        verbose: report each stage on stderr, with progress bars.
    """
    stages = Stages(workdir, to_stderr if verbose else None)
    store, origin = graphs_of(sources, workdir, stages, verbose)
    pairs = pairs_of(sources)
    train_on = {kind: split_pairs(of_kind, "train") for kind, of_kind in pairs.items()}
    published = load_published(start)
    if start:  # no other encoder's training may be resumed
        origin["start"] = file_fingerprint(weights_file(start))
    cutter = PackedEncoder(PackedBert(published.folder), published.folder)
    cut = cache(lambda room: first_windows(store, posts_of(train_on.values()), room, verbose, cutter))
    models = {"as published": model_of(published.weights, workdir / "models" / "published", like=published.folder)}
    for trained in layers:
        of_seeds = dict[str, dict[str, Tensor]]()
        for seed in seeds:
            options = EncoderTraining(trained=trained, rate=RATES.get(trained, RATE), seed=seed, steps=steps)
            file = workdir / "encoders" / f"{trained}-layers-{seed}.safetensors"

            def fit(options: EncoderTraining = options, file: Path = file) -> None:
                found, losses = train(train_on, cut(options.pieces), WEIGHTS, options, published, verbose)
                file.parent.mkdir(exist_ok=True)
                file.with_suffix(".json").write_text(json.dumps(losses))
                save_file(found, file)

            stages.run(f"training-{file.stem}", file, {**origin, **asdict(options)}, fit)
            of_seeds[f"{trained} layers, seed {seed}"] = load_file(file)
        if len(seeds) > 1:
            of_seeds[f"{trained} layers, mean of {len(seeds)} seeds"] = mean_of(list(of_seeds.values()))
        for (name, weights), share in product(of_seeds.items(), shares):
            label = f"{name}, share {share:g}" + f", rank {rank}" * bool(rank)
            if rank:
                changes = low_rank(weights, share, published.weights, rank)
                save_file(changes, workdir / "encoders" / f"{slug(label)}.safetensors")
                found = with_changes(published.weights, changes)
            else:
                found = mean_of([published.weights, weights], [1 - share, share])
            models[label] = model_of(found, workdir / "models" / slug(label), like=published.folder)
    title = "Training of the text encoder"
    return measured(title, models, pairs, store, stages, size, verbose).write(workdir)


def measured(
    title: str,
    models: Mapping[str, MathAMR | tuple[MathAMR, MathAMR]],
    pairs: Mapping[str, Sequence[Pair]],
    store: GraphStore,
    stages: Stages,
    size: Measured,
    verbose: bool,
) -> Report:
    """Fit the score of each model to the validation questions of all kinds, and measure it on both parts.

    A pair of models encodes the questions with the first, the answers with the second.
    """
    kinds = {kind: kind_of(of_kind, size) for kind, of_kind in pairs.items()}
    rows: dict[str, list[dict[str, object]]] = {VALIDATION: [], TEST: [], FITTED: []}
    for name, model in models.items():
        with stages.timed(f"measuring {name}"):
            asks, answers = model if isinstance(model, tuple) else (model, model)
            features = {
                kind: score_features(
                    asks, store.get_many(of.asked), store.get_many(of.answers), documents=answers, verbose=verbose
                )
                for kind, of in kinds.items()
            }
        held = [(features[kind][i], of.right[i]) for kind, of in kinds.items() for i in range(of.validation)]
        fitted = fit_listwise(held)
        ranks = {kind: reciprocal_ranks(features[kind] @ fitted, of.right) for kind, of in kinds.items()}
        for table in (VALIDATION, TEST):
            means = {}
            for kind, of in kinds.items():
                part = slice(of.validation) if table == VALIDATION else slice(of.validation, None)
                means[kind] = float(ranks[kind][part].mean())
            rows[table].append({"name": name, **means, "mean": float(np.mean(list(means.values())))})
        rows[FITTED].append({"name": name, **dict(zip(FEATURES, fitted, strict=True))})
    return Report(
        title=title,
        settings={"kinds": list(kinds), **size._asdict()},
        stages=stages.records,
        tables={name: pd.DataFrame(of) for name, of in rows.items()},
        about={VALIDATION: "RR@10.", TEST: "RR@10.", FITTED: "Of the parts of the score."},
        notes=(
            f"At most {size.questions} validation and {size.questions} test questions of each kind of text, with the "
            f"smallest SHA-256 of their id, search for their own answers among {size.answers:,} (all, if a kind has "
            "fewer).",
            "The weights of each score are fitted to the validation questions of all kinds. The row with the highest "
            "mean on these is the one to ship.",
        ),
    )


def kind_of(pairs: Sequence[Pair], size: Measured = MEASURED) -> Kind:
    """Choose the questions of both parts, and the answers."""
    ordered = sorted(pairs, key=lambda pair: pseudo_random(pair.question_id))
    asked: dict[str, list[str]] = {"validation": [], "test": []}
    for pair in ordered:
        of_part = asked.get(known_item_split(pair.question_id))
        if of_part is not None and pair.question_id not in of_part and len(of_part) < size.questions:
            of_part.append(pair.question_id)
    questions = [*asked["validation"], *asked["test"]]
    places = {name: place for place, name in enumerate(questions)}
    right = [pair for pair in ordered if pair.question_id in places]
    needed = len({pair.answer_id for pair in right})
    answers = list(dict.fromkeys(pair.answer_id for pair in [*right, *ordered]))[: max(size.answers, needed)]
    of_answer = {name: place for place, name in enumerate(answers)}
    marks = np.zeros((len(questions), len(answers)), dtype=np.bool_)
    for pair in right:
        marks[places[pair.question_id], of_answer[pair.answer_id]] = True
    return Kind(questions, len(asked["validation"]), answers, marks)


def reciprocal_ranks(scores: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return 1 / rank of the first right answer of each question, 0 after the tenth: float64 ``[questions]``."""
    best = np.where(right, scores, -np.inf).max(axis=1, keepdims=True)
    rank = 1 + (scores > best).sum(axis=1)
    return np.where(rank <= 10, 1 / rank, 0.0)


def graphs_of(
    sources: Sequence[Path], workdir: Path, stages: Stages, verbose: bool
) -> tuple[GraphStore, dict[str, object]]:
    """Build the graphs of all posts, and return them with what they were made from."""
    origin: dict[str, object] = {"sources": [file_fingerprint(one) if one.is_file() else one.name for one in sources]}
    store = GraphStore(workdir / "graphs.mathamr")
    stages.run(
        "graphs", store.path, origin, lambda: graphs_from_sources(sources, store.path, workers=None, verbose=verbose)
    )
    return store, origin


def pairs_of(sources: Iterable[Path]) -> dict[str, list[Pair]]:
    """Read the pairs of question and answer of each kind of text."""
    return {
        source.name.partition(".")[0]: list(ARQMathCollection(source).pairs())
        if source.is_dir()
        else [Pair(pair["qid"], pair["aid"]) for pair in read_pair_file(source)]
        for source in sources
    }


def posts_of(pairs: Iterable[Sequence[Pair]]) -> list[str]:
    """List the posts of pairs, each once."""
    return list(dict.fromkeys(name for of_kind in pairs for pair in of_kind for name in pair))


def model_of(
    weights: Mapping[str, Tensor], folder: Path, projection: Tensor | None = None, like: Path = BUNDLED_FOLDER
) -> MathAMR:
    """Save a model whose rows are an encoder's vectors, unchanged or projected, in a folder with the encoder."""
    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))
    with TemporaryDirectory() as scratch:
        save_encoder(pack(weights), Path(scratch), layers, like)
        return model_around(Path(scratch), folder, projection)


def model_around(encoder: Path, folder: Path, projection: Tensor | None = None) -> MathAMR:
    """Save a model whose rows are the vectors of an encoder, of which it has a copy."""
    default, width = MathAMR.from_pretrained(DEFAULT_MODEL), BertSize.read(encoder / "config.json").hidden_size
    with weights_file(encoder).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    name = f"encoder-{digest[:8]}"  # part of the model's identity
    matrix = torch.eye(width) if projection is None else projection
    if not folder.exists():
        config = default.config.replace(text_model=name, text_dimension=width, projection=len(matrix))
        MathAMR(config, default.vocabulary, dict.fromkeys(default.weights(), matrix)).save(folder, dtype="float16")
    shutil.copytree(encoder, folder / name, dirs_exist_ok=True)
    return MathAMR.from_pretrained(folder)
