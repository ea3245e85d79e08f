"""Distillation of the text encoder: losses, the teacher's rows, a student's start, and the study on a few pairs."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from pyterrier_mathamr import GraphBuilder
from pyterrier_mathamr.arqmath import Pair, known_item_split
from pyterrier_mathamr.model.bert import Bert, TorchBert, load_bert
from pyterrier_mathamr.model.packed_bert import BUNDLED_FOLDER
from pyterrier_mathamr.model.text_encoder import PackedEncoder, local_model
from pyterrier_mathamr.posts import post_from_text
from studies.__main__ import main
from studies.models import distillation, text_encoder
from studies.models.distillation import Distillation, bundled, distill, read_alone, similarity_loss, teach
from studies.models.text_encoder import first_windows, mean_of
from studies.notation.letters import renamed_graph

CPU = torch.device("cpu")
TEXTS = {
    f"{side}{i}": f"The {word} of $x_{i}$. It is {side}." for i, word in enumerate(("prime", "limit")) for side in "qa"
}


def teacher() -> PackedEncoder:
    return PackedEncoder(TorchBert(BUNDLED_FOLDER, "float32", CPU))


def windows() -> dict[str, text_encoder.FirstWindow]:
    made = GraphBuilder().build({name: post_from_text(text) for name, text in TEXTS.items()})
    return first_windows(dict(zip(TEXTS, made, strict=True)), TEXTS, 126)


def test_the_loss_of_similarities_is_the_divergence_of_how_rows_see_each_other() -> None:
    student, right = (torch.nn.functional.normalize(torch.randn(5, d), dim=1) for d in (3, 4))
    expected = []
    for i in range(5):
        others = [j for j in range(5) if j != i]
        p, q = (torch.softmax(rows[others] @ rows[i] / 0.1, 0) for rows in (right, student))
        expected.append(float((p * (p / q).log()).sum()))
    assert float(similarity_loss(student, right, 0.1)) == pytest.approx(np.mean(expected), rel=1e-4)
    rotated = right @ torch.linalg.qr(torch.randn(4, 4)).Q
    assert float(similarity_loss(rotated, right, 0.1)) == pytest.approx(0, abs=1e-5)


def test_the_teachers_rows_are_those_of_its_model_and_are_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distillation, "_BLOCK", 3)
    network, cut = teacher(), windows()
    found = teach(cut, network, tmp_path)
    with torch.no_grad():
        rows = text_encoder.encode(load_bert(BUNDLED_FOLDER, "float32", CPU), list(cut.values()), text_encoder.WEIGHTS)
    assert np.concatenate(list(found.values())) == pytest.approx(rows.vectors.numpy(), abs=2e-3)
    first, _ = sorted(tmp_path.iterdir())
    first.unlink()  # as if stopped before it was written
    computed: list[int] = []
    states = network.network.states
    monkeypatch.setattr(network.network, "states", lambda texts: computed.append(len(texts)) or states(texts))
    again = teach(cut, network, tmp_path)
    assert sum(computed) in (1, 3)
    assert all(np.array_equal(again[name], rows) for name, rows in found.items())


def test_a_student_has_each_layer_twice_and_encoders_are_averaged() -> None:
    (small, weights), (large, twice) = bundled(6), bundled(12)
    assert (small.num_hidden_layers, large.num_hidden_layers) == (6, 12)
    for i in range(12):
        assert torch.equal(twice[f"layers.{i}.up.weight"], weights[f"layers.{i // 2}.up.weight"])

    weights = {"a": torch.tensor([1.0, 2.0])}
    assert mean_of([weights, {"a": torch.tensor([3.0, 6.0])}], [0.75, 0.25])["a"].tolist() == [1.5, 3.0]


@pytest.mark.parametrize("loss", [loss for loss in distillation.LOSSES if loss != "rows"])  # W fits so few rows exactly
def test_a_student_comes_closer_to_its_teacher(tmp_path: Path, loss: distillation.Loss) -> None:
    cut = windows()
    other = np.random.default_rng(0).permutation(384)  # of the numbers of each row: the student must learn new ones
    taught = {name: np.where(other < 192, rows, 0) for name, rows in teach(cut, teacher(), tmp_path).items()}
    pairs = {"textbooks": [Pair(f"q{i}", f"a{i}") for i in (0, 1)]}
    options = Distillation(loss=loss, repeats=(("textbooks", 6),))
    losses = distill(pairs, cut, taught, options, verbose=False).losses
    assert np.mean(losses[-3:]) < losses[0]


def test_a_student_that_reads_other_letters_learns_the_rows_of_the_post_as_written(tmp_path: Path) -> None:
    made = GraphBuilder().build({name: post_from_text(text) for name, text in TEXTS.items()})
    graphs = dict(zip(TEXTS, made, strict=True))
    cut, others = windows(), first_windows(graphs, TEXTS, 126, change=renamed_graph)
    assert all(cut[name].ids != other.ids and len(cut[name].rows) == len(other.rows) for name, other in others.items())
    taught = teach(cut, teacher(), tmp_path)
    right = torch.from_numpy(np.concatenate(list(taught.values())).astype(np.float32))
    options = Distillation(loss="rows", renamed=1.0, repeats=(("textbooks", 12),))
    pairs = {"textbooks": [Pair(f"q{i}", f"a{i}") for i in (0, 1)]}
    student = distill(pairs, cut, taught, options, verbose=False, renamed=others)

    def likeness(weights: dict[str, torch.Tensor]) -> float:
        bert = Bert(bundled(6)[0])
        bert.load_state_dict(weights)
        with torch.no_grad():
            rows = text_encoder.encode(bert, list(others.values()), text_encoder.WEIGHTS).vectors
        return float((rows * right).sum(1).mean())

    assert likeness(student.encoder) > likeness(bundled(6)[1])


def test_sentences_and_formulas_are_read_alone_once_for_teacher_and_student() -> None:
    graphs = dict(
        zip(TEXTS, GraphBuilder().build({name: post_from_text(text) for name, text in TEXTS.items()}), strict=True)
    )
    ours, theirs = read_alone(graphs, list(TEXTS), 2, 126), read_alone(graphs, list(TEXTS), 2, 126, cutter=teacher())
    assert {name: list(texts) for name, texts in ours.items()} == {name: list(texts) for name, texts in theirs.items()}
    assert all(1 <= len(texts) <= 2 for texts in ours.values())
    assert all(window.sentences == len(window.rows) == 1 for texts in ours.values() for window in texts.values())


def test_the_study_distills_measures_and_resumes(tmp_path: Path) -> None:
    published = Path(local_model(text_encoder.PUBLISHED))
    teacher = published if published.is_dir() else BUNDLED_FOLDER  # published and packed weights are read alike
    ids = [name for name in map(str, range(100)) if known_item_split(name) != "train"][:4]
    ids += [name for name in map(str, range(100)) if known_item_split(name) == "train"][:4]
    pairs = [
        {"qid": i, "question": f"Why is ${i} = x$?", "aid": f"a{i}", "answer": f"A number is ${i} = y$."} for i in ids
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    command = ["distillation", str(file), "--teacher", str(teacher), "--workdir", str(tmp_path / "w")]
    command += [
        "--losses",
        "rows",
        "--seeds",
        "1,2",
        "--renamed",
        "0,0.5",
        "--steps",
        "1",
        "--alone",
        "2",
        "--answers",
        "5",
        "--quiet",
    ]
    for _ in range(2):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
    for row in (
        "minilm-math",
        "teacher",
        "rows, 6 layers, 2 alone, 1 steps, seed 1, two towers",
        "rows, 6 layers, 50% renamed, 2 alone, 1 steps, mean of 2 seeds",
    ):
        assert row in done.output
    report = json.loads((tmp_path / "w" / "report.json").read_text())
    assert "rows, 6 layers, 50% renamed, 2 alone, 1 steps, seed 2" in (tmp_path / "w" / "losses.svg").read_text()
    assert [one["resumed"] for one in report["stages"] if one["name"].startswith("distilling")] == [True] * 4
