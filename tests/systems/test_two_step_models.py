"""QQSim and QASim on tiny models: vectors, indexes, scores, training, folds, files."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch
from tiny_models import tiny_bert

from mathamr_systems import FitOptions, QASim, QQSim
from mathamr_systems.two_step.networks import PairLosses, random_batches
from mathamr_systems.two_step.similarity import TARGETS, Example, split_folds
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.fusion import ModifiedRRF
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.graph.mathamr import EMPTY_AMR
from pyterrier_mathamr.index import MathAMRIndex, ModelMismatchError
from pyterrier_mathamr.model.errors import ModelFileError, TrainingError
from pyterrier_mathamr.store import signed

QUESTIONS = pd.DataFrame(
    {
        "docno": ["q1", "q2", "q3"],
        "title": ["the sum of x", "prove the limit", "less than two"],
        "body": ["x is less , prove the sum of y", "the limit is two", None],
    }
)
PAIRS = [("the sum of x", "sum of x"), ("prove the limit", "the limit of y"), ("is x less", "x less y")]
EXAMPLES = [
    (f"{question} the sum", f"{answer} {number}", target)
    for question in ("prove", "limit", "fraction", "two")
    for number in ("x", "y")
    for answer, target in (("sum of the limit", 1.0), ("less , . less", 0.0))
]
STEP = FitOptions(epochs=1, batch_size=4, learning_rate=1e-3)
GRAPH = MathAMRGraph.from_penman("(s / sum :ARG1 (l / limit))")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def titles(bert: Path) -> QQSim:
    return QQSim.new(bert, max_length=12)


@pytest.fixture
def qasim(bert: Path) -> QASim:
    return QASim.new(bert, max_length=24, seed=1)


def test_views_read_their_part_of_a_question_and_a_question_without_it_is_similar_to_none(bert: Path) -> None:
    row = {"title": "the sum of $x$", "body": "prove two"}
    views = ("title", "head", "tail", "whole")
    texts = {view: QQSim.new(bert, view).text(row) for view in views}  # type: ignore[arg-type]
    assert texts == {
        "title": "the sum of $x$",
        "head": "prove two",
        "tail": "prove two",
        "whole": "the sum of $x$\nprove two",
    }
    assert QQSim.new(bert, "head").text({"query": "the $y$"}) == "the $y$"
    assert QQSim.new(bert, "title", "mathamr").text({"query_graph": GRAPH}) == "sum limit"
    assert [QQSim.new(bert, view).network.max_seq_length for view in views] == [128, 128, 128, 256]  # type: ignore[arg-type]

    long, end = "sum " * 30 + "limit prove two", "sum sum limit prove two"
    head, tail = (QQSim.new(bert, view, max_length=7) for view in ("head", "tail"))  # type: ignore[arg-type]
    assert np.allclose(head.encode([long]), head.encode(["sum " * 5]), atol=1e-2)
    assert np.allclose(tail.encode([long]), tail.encode([end]), atol=1e-2)
    assert not np.allclose(head.encode([long]), tail.encode([long]), atol=1e-2)

    encoded = QQSim.new(bert, "head").doc_encoder()(QUESTIONS)
    assert [bool(np.any(rows)) for rows in encoded["doc_embs"]] == [True, True, False]
    assert encoded["doc_embs"][0].shape == (1, 16)
    empty = QQSim.new(bert, "title", "mathamr").query_encoder()(
        pd.DataFrame({"qid": ["1", "2"], "query_graph": [GRAPH, MathAMRGraph(EMPTY_AMR)]})
    )
    assert [rows.shape for rows in empty["query_embs"]] == [(1, 16), (0, 16)]


def test_questions_are_found_by_one_vector_each(titles: QQSim, bert: Path, tmp_path: Path) -> None:
    index = MathAMRIndex(tmp_path / "titles")
    (titles.doc_encoder() >> index.indexer()).index(QUESTIONS)
    search = titles.query_encoder() >> index.single_vector()
    topics = pd.DataFrame({"qid": ["t", "blank"], "title": ["prove the limit", " "], "body": ["", ""]})
    found = search(topics)
    assert set(found["qid"]) == {"t"}
    assert found["docno"].tolist()[0] == "q2"
    vectors = titles.encode([*QUESTIONS["title"], "prove the limit"])
    best = dict(zip(found["docno"], found["score"], strict=True))
    assert [best[docno] for docno in QUESTIONS["docno"]] == pytest.approx((vectors[:3] @ vectors[3]).tolist(), abs=1e-5)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert ModifiedRRF([search, search])(topics)["score"].max() <= 2 / 61 + 1e-6
    other = QQSim.new(bert, "head")
    with pytest.raises(ModelMismatchError):
        (other.query_encoder() >> index.single_vector())(topics.assign(body="x"))


def test_training_lowers_both_losses_and_keeps_the_best_epoch(titles: QQSim, bert: Path) -> None:
    batch = random_batches(PAIRS, set(PAIRS), 4, np.random.default_rng(0))[0]

    def losses() -> list[float]:
        of = PairLosses(titles.network.eval())
        return [float(of.contrastive(batch).detach()), float(of.ranking(PAIRS).detach())]

    before = losses()
    titles.fit(PAIRS, FitOptions(epochs=4, learning_rate=1e-2, seed=3))
    assert all(after < first for after, first in zip(losses(), before, strict=True))

    model = QQSim.new(bert, max_length=12)
    history = model.fit(PAIRS, FitOptions(epochs=3, learning_rate=5e-2), validation=PAIRS[:2])
    held_out = [epoch.validation for epoch in history]
    assert PairLosses(model.network.eval()).held_out(PAIRS[:2], 64) == pytest.approx(min(filter(None, held_out)))


def test_the_identity_follows_weights_however_they_are_written(titles: QQSim, qasim: QASim) -> None:
    for model in (titles, qasim):
        before = model.identity()
        assert model.identity() == before
        weight = next(model.network.parameters())
        with torch.no_grad():
            weight += 1
        after = model.identity()
        assert after != before
        weight.data = weight.data - 1.5
        assert model.identity() not in (before, after)


def test_negatives_are_never_known_pairs_in_either_order() -> None:
    pairs = [("a", "b"), ("c", "d"), ("e", "f")]
    known = {*pairs, ("d", "a"), ("c", "f")}
    for seed in range(20):
        for batch in random_batches(pairs, known, 2, np.random.default_rng(seed)):
            assert set(batch.similar) <= set(pairs)
            for left, right in batch.others:
                assert (left, right) not in known
                assert (right, left) not in known


def test_only_the_last_layers_are_trained_if_asked(bert: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    tiny_bert(tmp_path)
    config = BertConfig.from_pretrained(tmp_path)
    config.num_hidden_layers = 3
    BertModel(config).save_pretrained(tmp_path)
    model = QQSim.new(tmp_path)
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    model.fit(PAIRS, FitOptions(epochs=2, learning_rate=1e-2, layers=1))
    changed = {name for name, value in model.network.state_dict().items() if not value.equal(before[name])}
    assert any("layer.2" in name for name in changed)
    assert not any("layer.0" in name or "layer.1" in name or "embeddings" in name for name in changed)


def test_answers_are_scored_once_for_each_pair_between_0_and_1_graphs_too(qasim: QASim, bert: Path) -> None:
    ranking = pd.DataFrame(
        {
            "qid": ["1", "1", "2", "1"],
            "title": "the sum",
            "body": ["of x", "of x", "of y", "of x"],
            "docno": ["a", "b", "a", "a"],
            "text": ["prove two", "limit", "prove two", "prove two"],
            "score": 1.0,
        }
    )
    scored = qasim.scorer()(ranking)
    assert scored["score"].between(0, 1).all()
    assert scored["qid"].tolist() == ["1", "1", "1", "2"]
    own = dict(zip(zip(scored["qid"], scored["docno"], strict=True), scored["score"], strict=True))
    assert own["1", "a"] == pytest.approx(qasim.scores([("the sum\nof x", "prove two")])[0], abs=1e-3)
    assert qasim.scorer().explain(scored.iloc[0]).score == pytest.approx(scored["score"].iloc[0], abs=1e-3)
    empty = qasim.scorer()(ranking.head(0))
    assert {"score", "rank"} <= set(empty.columns)

    model = QASim.new(bert, form="mathamr", max_length=20)
    ranking = pd.DataFrame({"qid": ["1"], "docno": ["a"], "query_graph": [GRAPH], "graph": [GRAPH]})
    assert model.scorer()(ranking)["score"][0] == pytest.approx(model.scores([("sum limit", "sum limit")])[0])


@pytest.mark.parametrize("topic", [{"title": "the sum", "body": "of x"}, {"query": "the sum\nof x"}])
def test_the_html_of_an_answer_is_not_a_question(
    qasim: QASim, monkeypatch: pytest.MonkeyPatch, topic: dict[str, str]
) -> None:
    ranking = pd.DataFrame({"qid": "1", **topic, "docno": ["a", "b"], "html": ["prove two", "limit"], "score": 1.0})
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(qasim, "scores", lambda pairs, **_: asked.extend(pairs) or np.zeros(len(pairs)))
    qasim.scorer().explain(qasim.scorer()(ranking).iloc[1])
    answers = ["prove two", "limit", "limit"]
    assert [(" ".join(question.split()), answer) for question, answer in asked] == [
        ("the sum of x", answer) for answer in answers
    ]


@pytest.mark.parametrize("kind", ["cross", "bi"])
def test_qasim_learns_what_fits(bert: Path, kind: str) -> None:
    model = QASim.new(bert, kind, max_length=24)  # type: ignore[arg-type]
    model.fit(EXAMPLES, FitOptions(epochs=4, batch_size=8, learning_rate=2e-2), folds=None)
    scores = model.scores([example[:2] for example in EXAMPLES])
    fits = np.array([example[2] for example in EXAMPLES]) == 1
    assert scores[fits].min() > scores[~fits].max()


def test_the_ranking_loss_is_an_option_and_half_targets_are_accepted(qasim: QASim, bert: Path) -> None:
    examples = [*EXAMPLES, ("prove", "x", TARGETS[1])]
    assert len(qasim.fit(examples, STEP, loss="bce+mnrl")) == 1
    assert len(QASim.new(bert, "bi", max_length=24).fit(examples, STEP)) == 1
    with pytest.raises(ConfigError, match="loss"):
        qasim.fit(examples, STEP, loss="mse")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="targets"):
        qasim.fit([("prove", "x", 3)], STEP)
    with pytest.raises(TrainingError):
        qasim.fit([], STEP)


def test_folds_keep_the_answers_of_a_question_together() -> None:
    examples = [Example(f"q{i % 7}", f"a{i}", 1.0) for i in range(40)]
    held_out = [split_folds(examples, 3, fold)[1] for fold in range(3)]
    assert sorted(example.answer for fold in held_out for example in fold) == sorted(e.answer for e in examples)
    for training, held in (split_folds(examples, 3, fold) for fold in range(3)):
        assert held
        assert not {example.question for example in training} & {example.question for example in held}
    assert split_folds(examples, 3) == split_folds(examples, 3)
    assert split_folds(examples[:1], 10) == (examples[:1], [])
    assert split_folds(examples, None) == (examples, [])
    with pytest.raises(ConfigError, match="fold"):
        split_folds(examples, 3, 3)


@pytest.mark.parametrize("name", ["model", "view", "form", "max_length", "format", "type"])
def test_a_description_with_another_value_is_a_named_error(tmp_path: Path, name: str) -> None:
    described = {"format": 2, "type": "QQSim", "model": "QQSim", "view": "title", "form": "raw", "max_length": 9}
    (tmp_path / "two_step.json").write_bytes(signed(described))
    with pytest.raises(ModelFileError, match="no language model"):  # the description is right
        QQSim.from_pretrained(tmp_path)
    odd = [{**described, name: value} for value in (None, -1, 10**400, [], {}, "", "../../outside", True)]
    for changed in (*odd, {of: value for of, value in described.items() if of != name}):
        (tmp_path / "two_step.json").write_bytes(signed(changed))
        with pytest.raises(ModelFileError, match=r"two_step\.json.*no QQSim"):
            QQSim.from_pretrained(tmp_path)


TestQASimScorer = pt.testing.transformer_test_class(lambda: QASim(SimpleNamespace()).scorer())
TestQuestionDocEncoder = pt.testing.transformer_test_class(
    lambda: QQSim(SimpleNamespace(tokenizer=SimpleNamespace())).doc_encoder()
)
TestQuestionQueryEncoder = pt.testing.transformer_test_class(
    lambda: QQSim(SimpleNamespace(tokenizer=SimpleNamespace())).query_encoder()
)
