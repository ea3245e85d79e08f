"""Training data: forms of pairs, the split by question, batches, negatives, and noise."""

import pandas as pd
import pytest
import torch

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.graph import MASK_ID, collate, graph_tensors
from pyterrier_mathamr.model import MathAMR, Trainer, TrainingError, TrainingOptions
from pyterrier_mathamr.model.encoding import tensors_of
from pyterrier_mathamr.model.loop import TrainingLoop
from pyterrier_mathamr.model.losses import ContrastiveLoss, info_nce
from pyterrier_mathamr.model.pairs import (
    HardNegatives,
    PairAnswers,
    TrainingData,
    batches_of,
    columns_of,
    read_pairs,
    split_pairs,
)
from pyterrier_mathamr.model.trainer import augment, make_batch
from pyterrier_mathamr.store import UnfinishedJobError


class Arrays(dict):
    """Arrays in memory, read like a ``TensorStore``."""

    def get_many(self, ids):
        return [self[name] for name in ids]


@pytest.fixture
def never() -> dict[str, list[str]]:
    return {f"q{i}": [f"a{(i + 8) % 24}", f"a{(i + 16) % 24}"] for i in range(24)}


@pytest.fixture
def everything(never) -> dict[str, object]:
    """All arguments of ``fit``: first pairs from elsewhere, and as negatives the answers of the next four questions."""
    negatives = {f"q{i}": [f"a{(i + step) % 24}" for step in (1, 2, 3, 8)] for i in range(24)}
    return {"first": [(f"a{i}", f"q{i}") for i in range(12)], "negatives": negatives, "never": never}


@pytest.fixture
def full(small):
    """The configuration of all arguments."""
    return small.replace(hard_negatives=2, first_epochs=1, epochs=2)


def fit(config, pairs, graphs, **options) -> MathAMR:
    return Trainer(config, device="cpu").fit(pairs, graphs, verbose=False, **options)


def test_tuples_and_frames_are_the_same_pairs_without_repeats() -> None:
    frame = pd.DataFrame({"qid": [1, 2, 1], "docno": [7, 8, 7], "label": [1, 1, 1]})
    assert read_pairs(frame) == read_pairs([("1", "7"), (2, 8)]) == (("1", "7"), ("2", "8"))
    for bad in (["ab"], [7], [("1", "2", "3")], pd.DataFrame({"qid": ["1"], "answer": ["2"]})):
        with pytest.raises(TrainingError, match="pair"):
            read_pairs(bad)


def test_no_question_is_on_both_sides_of_the_split() -> None:
    pairs = [(f"q{i % 30}", f"a{i}") for i in range(90)]
    train, held = split_pairs(pairs, 0.1, 42)
    assert sorted(train + held) == sorted(pairs)
    assert len({question for question, _ in held}) == 3
    assert not {question for question, _ in held} & {question for question, _ in train}
    assert (train, held) == split_pairs(pairs, 0.1, 42) != split_pairs(pairs, 0.1, 43)
    two = [("q0", "a0"), ("q1", "a1")]
    assert len(split_pairs(two, 0.01, 0)[1]) == 1
    assert split_pairs(two, 0.0, 0) == (tuple(two), ())
    assert split_pairs(two[:1], 0.5, 0) == (tuple(two[:1]), ())


def test_every_pair_is_in_one_batch_and_batches_are_shuffled_by_seed_and_epoch(small, pairs) -> None:
    data = TrainingData.read(small, pairs, validation=pairs[:9])
    first = data.batches(small, 1)
    assert sorted(pair for batch, _ in first for pair in batch) == sorted(pairs[9:])[:15]
    assert [len(batch) for batch, _ in first] == [8, 7]
    assert [len(batch) for batch, _ in data.batches(small, 1, processes=2)] == [15]
    assert data.batches(small, 1) == first
    assert first != data.batches(small, 2)
    assert first != data.batches(small.replace(seed=7), 1)
    assert batches_of(data.held, 8) == [pairs[:8]]  # in order; a single ninth pair has no negative


def test_answers_known_to_be_right_and_the_question_itself_are_never_negatives() -> None:
    answers = PairAnswers([("q0", "a0"), ("q0", "a1"), ("q1", "a1"), ("q2", "a2")])
    batch = [("q0", "a0"), ("q1", "a1"), ("q2", "a2"), ("q0", "a1")]
    assert answers.allowed(batch).tolist() == [
        [True, False, True, False],  # q0 also has a1, twice in the batch
        [True, True, True, False],  # a1 again
        [True, True, True, True],
        [False, False, True, True],  # the same question once more
    ]
    answers = PairAnswers([("q0", "a0"), ("q1", "q0")], never={"q0": ["a1", "x"]})
    batch = [("q0", "a0"), ("q1", "q0")]  # q0 is the document that answers q1
    assert answers.allowed(batch, ["x", "y"]).tolist() == [[True, False, False, True], [True, True, True, True]]
    assert [answers.known("q0", name) for name in ("a0", "a1", "x", "q0", "y")] == [True, True, True, True, False]


def test_hard_negatives_are_redrawn_each_epoch_and_are_never_known_to_be_right() -> None:
    answers = PairAnswers([("q0", "a0"), ("q0", "a1"), ("q1", "a2")], never={"q0": ["x"]})
    negatives = HardNegatives({"q0": ["a0", "x", "b", "a1", "c", "q0", "d", "b"], "q1": ["a1"]}, answers)
    pairs = [("q0", "a0"), ("q0", "a1"), ("q1", "a2")]
    assert negatives.documents(pairs) == ["b", "c", "d", "a1"]
    drawn = [negatives.draw(pairs, 2, torch.Generator().manual_seed(seed)) for seed in range(30)]
    assert {name for epoch in drawn for name in epoch["q0", "a0"]} == {"b", "c", "d"}
    assert all(len(set(epoch["q0", "a0"])) == 2 and epoch["q1", "a2"] == ["a1"] for epoch in drawn)
    assert drawn[3] == negatives.draw(pairs, 2, torch.Generator().manual_seed(3))
    assert len({str(epoch) for epoch in drawn}) > 5
    batch = [("q0", "a0"), ("q1", "a1")]  # one column for each negative, none for an answer of the batch
    columns = {("q0", "a0"): ("b", "a1"), ("q1", "a1"): ("c", "b"), ("q2", "a2"): ("d",)}
    assert columns_of(batch, columns) == ["b", "c"]


def test_every_question_sees_all_hard_negatives_but_those_known_to_be_right(small, graphs, vocabulary) -> None:
    config = small.replace(hard_negatives=1, beta=0.5, temperature=0.5)
    names = ["q0", "q1", "a0", "a1", "a5", "a8"]
    tensors = Arrays({name: graph_tensors(graphs[name], vocabulary) for name in names})
    answers = PairAnswers([("q0", "a0"), ("q1", "a1")], never={"q0": ["a8"]})
    batch = make_batch(([("q0", "a0"), ("q1", "a1")], ["a5", "a8"]), tensors, answers, config.training)
    assert len(batch.graphs) == 6
    assert batch.graphs.nodes.tolist() == collate([tensors[name] for name in names]).nodes.tolist()
    drawn = torch.randn(len(batch.graphs.virtual), 8, generator=torch.Generator().manual_seed(0))
    rows = torch.nn.functional.normalize(drawn, dim=1)
    posts = [rows[a:b] for a, b in zip(batch.graphs.offsets[:-1], batch.graphs.offsets[1:], strict=True)]
    maxsim = [[sum((q @ post.T).max().item() for q in posts[i]) / len(posts[i]) for post in posts[2:]] for i in (0, 1)]
    documents = [[(posts[i][-1] @ post[-1]).item() for post in posts[2:]] for i in (0, 1)]
    allowed = torch.tensor([[True, True, True, False], [True, True, True, True]])
    wanted = sum(0.5 * info_nce(torch.tensor(scores), 0.5, allowed).item() for scores in (maxsim, documents))
    assert ContrastiveLoss(config)(batch.contrast(rows)).item() == pytest.approx(wanted, abs=1e-5)


def test_all_of_it_moves_the_result_and_a_run_that_fails_goes_on_to_the_same_bytes(
    full, pairs, graphs, everything, tmp_path, monkeypatch
) -> None:
    whole = fit(full, pairs, graphs, **everything)
    for option, without in (("hard_negatives", "negatives"), ("first_epochs", "first")):
        fewer = {name: value for name, value in everything.items() if name != without}
        other = fit(full.replace(**{option: 0}), pairs, graphs, **fewer).weights()
        assert not torch.equal(other["head.outer.bias"], whole.weights()["head.outer.bias"])
    real = TrainingLoop._step

    def dying(self, epoch, number, *rest):
        if (epoch, number) == (2, 2):
            raise KeyboardInterrupt
        return real(self, epoch, number, *rest)

    monkeypatch.setattr(TrainingLoop, "_step", dying)
    with pytest.raises(KeyboardInterrupt):
        fit(full, pairs, graphs, checkpoint=tmp_path, save_every=0.0, **everything)
    monkeypatch.setattr(TrainingLoop, "_step", real)
    changed = {**everything, "negatives": {**everything["negatives"], "q0": ["a3"]}}
    with pytest.raises(UnfinishedJobError, match="pairs"):
        fit(full, pairs, graphs, checkpoint=tmp_path, **changed)
    assert fit(full, pairs, graphs, checkpoint=tmp_path, **everything) == whole


def test_epochs_take_their_pairs_and_no_known_answer_or_validation_question(
    full, pairs, graphs, everything, never, monkeypatch
) -> None:
    trained, contrasted = [], set()
    real = TrainingLoop._step

    def noting(self, epoch, number, batch):
        trained.extend((epoch, pair) for pair in batch.pairs)
        documents = [*(answer for _, answer in batch.pairs), *batch.others]
        for (question, answer), row in zip(batch.pairs, batch.allowed.tolist(), strict=True):
            contrasted.update((question, name) for name, wrong in zip(documents, row, strict=True) if wrong)
            contrasted.discard((question, answer))
        return real(self, epoch, number, batch)

    monkeypatch.setattr(TrainingLoop, "_step", noting)
    everything["first"] = [("a0", "a8"), ("a1", "a9"), ("q5", "a13")]
    validation = [("q5", "a5"), ("q6", "a6")]
    fit(full, pairs, graphs, validation=validation, **everything)
    assert {pair for epoch, pair in trained if epoch == 1} == {("a0", "a8"), ("a1", "a9")}  # q5 is validation's
    assert {pair for epoch, pair in trained if epoch == 2} == {*pairs} - {*validation}
    known = {(question, name) for question, names in never.items() for name in names} | set(pairs)
    assert len(contrasted) > 100
    assert not contrasted & known


def test_arguments_and_configuration_must_agree(small, pairs, graphs, everything) -> None:
    for config, options, named in (
        (small, {"negatives": everything["negatives"]}, "hard_negatives"),
        (small.replace(hard_negatives=1), {}, "hard_negatives"),
        (small, {"first": pairs}, "first_epochs"),
        (small.replace(first_epochs=1), {}, "first_epochs"),
    ):
        with pytest.raises(ConfigError, match=named):
            fit(config, pairs, graphs, **options)
    with pytest.raises(TrainingError, match="first epochs"):
        fit(small.replace(first_epochs=1), pairs, graphs, first=pairs[:1])
    with pytest.raises(TrainingError, match="unheard"):
        fit(small.replace(hard_negatives=1), pairs, graphs, negatives={"q0": ["unheard"], "q99": ["not-asked-for"]})


def test_the_data_of_a_run_knows_every_post_it_needs(small, pairs) -> None:
    config = small.replace(hard_negatives=1)
    data = TrainingData.read(
        config, pairs[:4], validation=[pairs[3]], negatives={"q0": ["x"], "q3": ["y"], "q9": ["z"]}
    )
    assert data.trained() == ["a0", "a1", "a2", "q0", "q1", "q2"]
    assert set(data.posts()) == {*data.trained(), "q3", "a3", "x"}
    assert data.digest != TrainingData.read(config, pairs[:4], validation=[pairs[3]], negatives={}).digest


def test_masks_and_dropped_edges_have_their_rates_and_never_touch_virtual_nodes(graphs, vocabulary, small) -> None:
    batch = collate(list(tensors_of(list(graphs.values()), vocabulary, small)))

    def noisy(node_mask: float = 0.5, edge_dropout: float = 0.5, seed: int = 0):
        generator = torch.Generator().manual_seed(seed)
        return augment(batch, TrainingOptions(node_mask=node_mask, edge_dropout=edge_dropout), generator)

    def edges_of(graphs) -> set[tuple[int, int, int]]:
        return set(zip(*graphs.edge_index.tolist(), graphs.edge_type.tolist(), strict=True))

    nodes, edges = batch.nodes.clone(), edges_of(batch)
    structural = {(a, b, r) for a, b, r in edges if batch.is_virtual[a] or batch.is_virtual[b]}
    ordinary = edges - structural

    strongest = noisy(1.0, 0.999999)
    assert torch.equal(strongest.nodes[batch.is_virtual], nodes[batch.is_virtual])
    assert (strongest.nodes[~batch.is_virtual] == MASK_ID).all()
    assert edges_of(strongest) == structural

    left = edges_of(noisy())
    fates = {((a, b, r) in left, (b, a, r + 1) in left) for a, b, r in ordinary if r % 2 == 0}
    assert fates == {(True, True), (True, False), (False, True), (False, False)}  # an edge and its inverse

    results = [noisy(0.5, 0.1, seed) for seed in range(20)]
    masked = sum((result.nodes[~batch.is_virtual] == MASK_ID).double().mean().item() for result in results) / 20
    kept = sum(len(edges_of(result) - structural) for result in results) / 20
    assert masked == pytest.approx(0.5, abs=0.03)
    assert kept / len(ordinary) == pytest.approx(0.9, abs=0.02)

    none = noisy(0.0, 0.0)
    assert torch.equal(none.nodes, nodes)
    assert edges_of(none) == edges == edges_of(batch)
    assert torch.equal(batch.nodes, nodes)  # the given batch never changes
