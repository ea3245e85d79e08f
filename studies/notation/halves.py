"""What a second half of a row adds to a text encoder: formulas as graphs in which a variable has no letter.

::

    formula ──▶ operator tree ──▶ terms, a variable of a post one node without a letter ──▶ R-GCN ──▶ a state each
    row of a formula   Σ wᵢ vᵢ over its terms, unit length          wᵢ: a gate, so that x or n say little
    row of a post      the same over all of its terms
    G(q, d)            α · mean of the best matches of q's formulas in d  +  β · (post · post)
    trained            InfoNCE of 20 · cosine of the text vectors + G, the text vectors fixed

The graph half is compared with itself without its edges, with shuffled edges and with letters, at equal numbers of
parameters; with the same posts read with canonical letters by the text encoder; and with exact matches of structures,
by BM25 (:func:`~pyterrier_mathamr.sparse.tokens.structure_tokens`). Each is added to the model's score, and to the
engine's, at one weight, fitted on validation questions as written and with other letters.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mathamr_systems.experiments.beir import TextArtifacts
from mathamr_systems.experiments.measuring import paired_tests, rounded
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import Stages, slug, to_stderr
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.ids import pseudo_random
from pyterrier_mathamr.formula import trees_of_posts
from pyterrier_mathamr.formula.matching import is_letter, read_terms
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.model.text_encoder import TextEncoder
from pyterrier_mathamr.store import file_fingerprint
from studies.protocol.blending import (
    BOUNDED,
    MEASURE,
    STRUCTURED,
    TITLE,
    Form,
    Scores,
    by_question,
    fit,
    part_of,
    question_pairs,
    read_kind,
)
from studies.protocol.parts import parts_of

from .letters import formulas_of
from .measuring import canonical_ranking

WIDTH = 128
_RELATIONS = 12  # an operand's place, 0 to 4 or any; and back
_ANY = 5
_TEXT_SCALE = 20.0  # of the cosine of text vectors in training
_RARE = 4  # a label that fewer posts of the training part have is unknown
LETTER, UNKNOWN = 0, 1

FOUND, TESTS = "Test questions that find their answers", "Tests"
TEXT, ENGINE = "text", "words and text"
STRUCTURES, CANONICAL = "structures", "canonical letters"
RENAMED_ONES, WRITTEN_ONES = "renamed", "as written"


@dataclass(frozen=True, slots=True)
class Half:
    """A form of the graph half, and how it is trained.

    Attributes:
        edges: ``parsed``, ``shuffled`` within each formula, or ``none``.
        letters: whether a variable is labelled by its letter.
        seed: of the initial weights and the order.
        steps: batches.
        pairs: of a batch.
        rate: the highest learning rate.
    """

    edges: str = "parsed"
    letters: bool = False
    seed: int = 42
    steps: int = 240
    pairs: int = 160
    rate: float = 4e-3


VARIANTS = {
    "graph": Half(),
    "graph, no edges": Half(edges="none"),
    "graph, shuffled edges": Half(edges="shuffled"),
    "graph with letters": Half(letters=True),
}


# Graphs of posts -----------------------------------------------------------------------------------------------------


class Terms(NamedTuple):
    """The distinct sub-expressions of one formula, operands first."""

    labels: tuple[str, ...]
    shapes: tuple[int, ...]
    sizes: npt.NDArray[np.float32]
    edges: npt.NDArray[np.int64]  # [3, edges]: from, to, relation


@cache
def terms_of(latex: str) -> Terms | None:
    """Read a formula, or ``None`` if it has no operator tree."""
    tree = trees_of_posts(latex, "").opt
    if tree is None or not tree.nodes:
        return None
    read, edges = read_terms(tree), list[tuple[int, int, int]]()
    for term, operands in enumerate(read.args):
        in_any_order = read.labels[term].startswith("U!")
        for place, operand in enumerate(operands):
            relation = _ANY if in_any_order else min(place, _ANY - 1)
            edges += [(operand, term, relation), (term, operand, relation + _RELATIONS // 2)]
    found = np.array(edges, np.int64).reshape(-1, 3).T
    return Terms(tuple(read.labels), tuple(read.shapes), np.array(read.sizes, np.float32), found)


class Vocabulary:
    """Labels of terms, and how many posts of the training part have each shape."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        labels, self.shapes = Counter[str](), Counter[int]()
        for text in texts.values():
            terms = list(filter(None, map(terms_of, formulas_of(text))))
            labels.update({label for each in terms for label in each.labels})
            self.shapes.update({shape for each in terms for shape in each.shapes})
        known = sorted(label for label, posts in labels.items() if posts >= _RARE)
        self.numbers = {label: number for number, label in enumerate(known, UNKNOWN + 1)}
        self.posts = len(texts)

    def __len__(self) -> int:
        return len(self.numbers) + UNKNOWN + 1

    def label(self, name: str, letters: bool) -> int:
        """Return the number of a label."""
        return LETTER if is_letter(name) and not letters else self.numbers.get(name, UNKNOWN)

    def features(self, terms: Terms) -> npt.NDArray[np.float32]:
        """Return rarity and size of each term, and whether no post of the training part has it: ``[terms, 3]``."""
        posts = np.array([self.shapes[shape] for shape in terms.shapes], np.float32)
        rarity = np.log((self.posts + 1) / (posts + 0.5)) / 8
        return np.stack([rarity, np.log(terms.sizes) / 3, posts == 0], axis=1).astype(np.float32)


class Batch(NamedTuple):
    """Graphs of some posts as one."""

    labels: Tensor  # int64 [nodes]
    features: Tensor  # float32 [nodes, 3]
    edges: Tensor  # int64 [3, edges]
    nodes: Tensor  # int64 [terms]: the node of each term of each formula
    formulas: Tensor  # int64 [terms]: its formula
    posts: Tensor  # int64 [formulas]: the post of each formula
    size: int  # posts


def batch_of(texts: Sequence[str], vocabulary: Vocabulary, half: Half) -> Batch:
    """Put the graphs of posts together; a variable is one node in all formulas of its post."""
    labels, features = list[int](), [np.empty((0, 3), np.float32)]
    edges, nodes, formulas = ([np.empty(shape, np.int64)] for shape in ((3, 0), (0,), (0,)))
    posts, draw = list[int](), np.random.default_rng(half.seed)
    for post, text in enumerate(texts):
        variables = dict[str, int]()
        for terms in filter(None, map(terms_of, dict.fromkeys(formulas_of(text)))):
            new, at = len(labels), np.arange(len(labels), len(labels) + len(terms.labels))
            for place, label in enumerate(terms.labels):
                at[place] = variables.setdefault(label, new + place) if is_letter(label) else new + place
                labels.append(vocabulary.label(label, half.letters))
            features.append(vocabulary.features(terms))
            source, target, relation = terms.edges
            if half.edges == "shuffled":
                target = draw.permutation(target)
            if half.edges != "none":
                edges.append(np.stack([at[source], at[target], relation]))
            nodes.append(at)
            formulas.append(np.full(len(at), len(posts)))
            posts.append(post)
    return Batch(
        torch.tensor(labels, dtype=torch.int64),
        torch.from_numpy(np.concatenate(features)),
        torch.from_numpy(np.concatenate(edges, axis=1)),
        torch.from_numpy(np.concatenate(nodes)),
        torch.from_numpy(np.concatenate(formulas)),
        torch.tensor(posts, dtype=torch.int64),
        len(texts),
    )


# The network ---------------------------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Rows of unit length of a batch's formulas and posts."""

    formulas: Tensor  # [formulas, WIDTH]
    masses: Tensor  # [formulas]: the sum of the gates
    posts: Tensor  # [posts, WIDTH]
    of: Tensor  # int64 [formulas]


class GraphHalf(nn.Module):
    """An R-GCN of two layers over operator trees (Schlichtkrull et al., ESWC 2018) with a gate for each term."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.labels, self.features = nn.Embedding(labels, WIDTH), nn.Linear(3, WIDTH)
        self.own = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.relations = nn.ParameterList(
            nn.Parameter(torch.randn(_RELATIONS, WIDTH, WIDTH) / math.sqrt(WIDTH)) for _ in range(2)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.value = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Sequential(nn.Linear(WIDTH + 3, 32), nn.ReLU(), nn.Linear(32, 1))
        self.scales = nn.Parameter(torch.tensor([2.3, 2.3]))  # logarithms of α and β

    def forward(self, batch: Batch) -> Rows:
        states = self.norms[0](self.labels(batch.labels) + self.features(batch.features))
        for own, weights, norm in zip(self.own, self.relations, self.norms[1:], strict=True):
            messages = torch.zeros_like(states)
            for relation, weight in enumerate(weights):
                source, target = batch.edges[:2, batch.edges[2] == relation]
                count = torch.bincount(target, minlength=len(states))[target].unsqueeze(1)
                messages = messages.index_add(0, target, states[source] @ weight / count.sqrt())
            states = norm(states + F.gelu(own(states) + messages / 2))
        gates = F.softplus(self.gate(torch.cat([states, batch.features], dim=1)))
        values, formulas = self.value(states) * gates, len(batch.posts)
        of_formulas = torch.zeros(formulas, WIDTH).index_add(0, batch.formulas, values[batch.nodes])
        masses = torch.zeros(formulas).index_add(0, batch.formulas, gates[batch.nodes, 0])
        of_posts = torch.zeros(batch.size, WIDTH).index_add(0, batch.posts, of_formulas)
        return Rows(F.normalize(of_formulas, dim=1), masses, F.normalize(of_posts, dim=1), batch.posts)

    def scores(self, queries: Rows, documents: Rows) -> Tensor:
        """Compute G: float32 ``[queries, documents]``; formulas of a query count by their masses."""
        best = torch.zeros(len(queries.formulas), len(documents.posts)).scatter_reduce(
            1, documents.of.expand(len(queries.formulas), -1), queries.formulas @ documents.formulas.T, "amax"
        )
        total = torch.zeros(len(queries.posts)).index_add(0, queries.of, queries.masses)
        shares = (queries.masses / total[queries.of]).unsqueeze(1)
        mean = torch.zeros(len(queries.posts), len(documents.posts)).index_add(0, queries.of, best * shares)
        alpha, beta = self.scales.exp()
        found: Tensor = alpha * mean + beta * queries.posts @ documents.posts.T
        return found


def train(
    kinds: Mapping[str, Sequence[tuple[str, str]]],
    texts: Mapping[str, str],
    vectors: Mapping[str, npt.NDArray[np.float16]],
    vocabulary: Vocabulary,
    half: Half,
    verbose: bool = True,
) -> GraphHalf:
    """Train a graph half on pairs of posts by name, each batch of one kind, beside fixed vectors of their texts."""
    torch.manual_seed(half.seed)
    draw, batches = random.Random(half.seed), list[list[tuple[str, str]]]()
    while len(batches) < half.steps:
        once = list[list[tuple[str, str]]]()
        for pairs in kinds.values():
            drawn = draw.sample(list(pairs), len(pairs))
            once += [drawn[start : start + half.pairs] for start in range(0, len(drawn), half.pairs)]
        batches += draw.sample(once, len(once))
    network = GraphHalf(len(vocabulary))
    optimizer = torch.optim.AdamW(network.parameters(), lr=half.rate, weight_decay=0.01)
    for step, batch in enumerate(progress(batches[: half.steps], "training", "batches", verbose=verbose)):
        for group in optimizer.param_groups:
            group["lr"] = half.rate * min(1, (step + 1) / 30) * (1 + math.cos(math.pi * step / half.steps)) / 2
        sides = [[pair[side] for pair in batch] for side in (0, 1)]
        rows = [network(batch_of([texts[name] for name in names], vocabulary, half)) for names in sides]
        text = [torch.from_numpy(np.stack([vectors[name] for name in names]).astype(np.float32)) for names in sides]
        found = network.scores(*rows) + _TEXT_SCALE * text[0] @ text[1].T
        right = torch.arange(len(batch))
        loss = (F.cross_entropy(found, right) + F.cross_entropy(found.T, right)) / 2
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return network


@torch.no_grad()
def scored(
    network: GraphHalf, vocabulary: Vocabulary, half: Half, queries: Mapping[str, str], documents: Mapping[str, str]
) -> pd.DataFrame:
    """Score all documents for all queries: float32, a row for each query and a column for each document."""

    def rows(texts: Mapping[str, str]) -> list[Rows]:
        all_texts = list(texts.values())
        parts = (all_texts[start : start + 256] for start in range(0, len(all_texts), 256))
        return [network(batch_of(part, vocabulary, half)) for part in parts]

    found = rows(documents)
    scores = [torch.cat([network.scores(query, document) for document in found], dim=1) for query in rows(queries)]
    return pd.DataFrame(torch.cat(scores).numpy(), index=list(queries), columns=list(documents))


# The study -----------------------------------------------------------------------------------------------------------


def run_halves(
    sources: Sequence[str | Path],
    workdir: str | Path,
    *,
    model: str,
    seeds: Sequence[int] = (42, 43, 44),
    steps: int = 240,
    most: int = 2700,
    verbose: bool = True,
) -> Report:
    """Train graph halves of all variants, and measure what each adds to a model of text and to the engine's score.

    Args:
        sources: files of pairs and ARQMath folders, each a kind of text.
        workdir: where indexes, weights, tables and ``report.md`` are kept; finished stages are not repeated, nor are
            those of :func:`~studies.protocol.blending.run_blending` in the same folder.
        model: name or folder of a trained model of text.
        seeds: of graph halves.
        steps: batches of a training.
        most: training pairs of each kind, those with the smallest SHA-256 of their question's id.
        verbose: report each stage on stderr, with progress bars.
    """
    work, say = Path(workdir), to_stderr if verbose else None
    stages, encoder, name = Stages(work, say), MathAMR.from_pretrained(model), Path(model).name
    kinds, texts = dict[str, list[tuple[str, str]]](), dict[str, str]()
    for source in map(Path, sources):
        pairs = [row for row in question_pairs(source) if part_of(row[0]) == "train" and not row[0].endswith(TITLE)]
        chosen = sorted(pairs, key=lambda row: pseudo_random(row[0]))[:most]
        kinds[source.name.partition(".")[0]] = [(qid, docno) for qid, _, docno, _ in chosen]
        for qid, question, docno, answer in chosen:
            texts |= {qid: question, docno: answer}
    if not texts:
        raise ConfigError("sources", list(map(str, sources)), "sources with questions of the training part")
    with stages.timed("formulas"):
        vocabulary = Vocabulary(texts)
    cached = TextEncoder("minilm-math", cache=work / "text-vectors")
    with stages.timed("text vectors"):
        vectors = dict(zip(texts, cached.encode(list(texts.values())), strict=True))
    origin = [file_fingerprint(one) if one.is_file() else one.name for one in map(Path, sources)]
    halves = dict[str, tuple[Half, GraphHalf]]()
    for variant, seed in product(VARIANTS, seeds):
        half = replace(VARIANTS[variant], seed=seed, steps=steps)
        file = work / "halves" / f"{slug(variant)}-{seed}.safetensors"

        def fit_half(half: Half = half, file: Path = file) -> None:
            network = train(kinds, texts, vectors, vocabulary, half, verbose)
            file.parent.mkdir(exist_ok=True)
            save_file(dict(network.state_dict()), file)

        stages.run(f"training-{file.stem}", file, {"sources": origin, "most": most, **asdict(half)}, fit_half)
        network = GraphHalf(len(vocabulary))
        network.load_state_dict(load_file(file))
        halves[_key(variant, seed)] = half, network

    found = dict[str, Scores]()
    for source in map(Path, sources):
        collection = read_kind(source)
        of_kind = Stages(work / "kinds" / collection.name, say)
        of_kind.records = stages.records
        parts = parts_of(TextArtifacts(collection, encoder, of_kind, verbose, suffix=f"-{name}"))
        queries = dict(zip(collection.topics["qid"], collection.topics["query"], strict=True))
        documents = {row["docno"]: row["text"] for row in collection.documents()}
        of_canonical = Stages(work / "kinds" / f"{collection.name}-canonical", say)
        of_canonical.records = stages.records
        ranked = canonical_ranking(collection, encoder, name, of_canonical, len(documents), verbose)
        added = {CANONICAL: ranked.pivot(index="qid", columns="docno", values="score")} | {
            key: scored(network, vocabulary, half, queries, documents) for key, (half, network) in halves.items()
        }
        columns = {key: _looked_up(table, parts.scores) for key, table in added.items()}
        found |= by_question(replace(parts, scores=parts.scores.assign(**columns)), collection.name)
    return _report(found, seeds, model, stages).write(work / f"{name}-halves")


def _looked_up(table: pd.DataFrame, candidates: pd.DataFrame) -> npt.NDArray[np.float64]:
    rows, columns = (
        names.get_indexer(pd.Index(candidates[of])) for names, of in ((table.index, "qid"), (table.columns, "docno"))
    )
    return table.to_numpy(np.float64)[rows, columns]


def _added(seeds: Sequence[int]) -> dict[str, list[Callable[[Scores], npt.NDArray[np.float64]]]]:
    """List what is added to text, by name; of a graph half for each seed."""

    def of_half(key: str) -> Callable[[Scores], npt.NDArray[np.float64]]:
        return lambda of: of.parts.scores[key].to_numpy(np.float64) / _TEXT_SCALE

    assert STRUCTURED.structures is not None
    return {
        STRUCTURES: [STRUCTURED.structures],
        CANONICAL: [lambda of: of.parts.scores[CANONICAL].to_numpy(np.float64) / of.most_graph],
        **{variant: [of_half(_key(variant, seed)) for seed in seeds] for variant in VARIANTS},
    }


def _key(variant: str, seed: int) -> str:
    return f"{variant}, seed {seed}"


def _report(kinds: Mapping[str, Scores], seeds: Sequence[int], model: str, stages: Stages) -> Report:
    values, weights = list[pd.DataFrame](), list[tuple[str, float]]()

    def measure(name: str, form: Form) -> Form:
        """Fit a form, measure it on the test questions, and return it as fitted."""
        fitted = fit(form, kinds)
        weights.append((name, fitted.structures))
        for kind, of in kinds.items():
            own = of.reciprocal_ranks(form.score(of, *fitted.setting))
            frame = pd.DataFrame(
                {"name": name, "kind": kind, "qid": [f"{kind} {qid}" for qid in of.qids], "value": own}
            )
            values.append(frame[[part_of(qid) == "test" for qid in of.qids]])
        return replace(form, odds=(fitted.odds,))

    for base, form in ((TEXT, replace(BOUNDED, odds=(0.0,))), (ENGINE, BOUNDED)):
        own = measure(base, form)
        for name, parts in _added(seeds).items():
            for part in parts:
                measure(f"{base}, {name}", replace(own, structures=part))
    every = pd.concat(values, ignore_index=True).assign(measure=str(MEASURE))
    every["letters"] = np.where(every["kind"].str.endswith(RENAMED_ONES), RENAMED_ONES, WRITTEN_ONES)
    means = every.groupby(["name", "kind"], sort=False)["value"].mean().unstack("kind")[list(kinds)]
    both = (
        every.groupby(["name", "letters", "kind"])["value"]
        .mean()
        .groupby(["name", "letters"])
        .mean()
        .unstack("letters")
    )
    table = both[[WRITTEN_ONES, RENAMED_ONES]].join(means).loc[list(dict.fromkeys(every["name"]))].reset_index()
    table.insert(
        1, "weight", table["name"].map(pd.DataFrame(weights, columns=["name", "w"]).groupby("name")["w"].mean())
    )
    tests = []
    for letters, of_letters in every.groupby("letters"):
        against = [(name, name.partition(", ")[0]) for name in table["name"] if ", " in name]
        against += [
            (f"{base}, graph", f"{base}, {other}") for base in (TEXT, ENGINE) for other in (STRUCTURES, CANONICAL)
        ]
        tests.append(paired_tests(of_letters, against, str(MEASURE)).assign(letters=letters))
    return Report(
        title="What is added to text",
        settings={"kinds": list(kinds), "model": model, "seeds": list(seeds)},
        stages=stages.records,
        tables={FOUND: table, TESTS: rounded(pd.concat(tests, ignore_index=True))},
        about={FOUND: f"{MEASURE}; means over kinds and seeds, and the weight, fitted on validation questions."},
        values={"by-question": every},
    )
