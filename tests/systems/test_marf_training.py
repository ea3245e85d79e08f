"""Training of MaRF: what is trained, what is not, and that it learns."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from marf_examples import PAIRS, POSTS, tiny_marf

from mathamr_systems import MaRF, MaRFTraining
from mathamr_systems.marf.training import MaRFRun
from pyterrier_mathamr.model.errors import TrainingError
from pyterrier_mathamr.store import UnfinishedJobError

STEPS = MaRFTraining(epochs=15, batch=6, formula_epochs=15, formula_batch=6, rate=1e-2, formula_rate=1e-2)


def state(marf: MaRF, part: str) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in marf._network.state_dict().items() if name.startswith(part)}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.parametrize("score", ["token", "passage"])
def test_both_parts_learn_a_batch_by_heart(tmp_path: Path, score: str) -> None:
    marf = tiny_marf(tmp_path, training=STEPS, output=8, formula_score=score)
    steps = marf.fit(PAIRS, POSTS, device="cpu")
    for part in ("formulas", "fusion"):
        losses = [step.loss for step in steps if step.part == part]
        assert sum(losses[-5:]) < 0.5 * sum(losses[:5])


def test_the_ratio_is_a_loss_that_falls(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path, training=replace(STEPS, loss="ratio", epochs=5, formula_epochs=1))
    losses = [step.loss for step in marf.fit(PAIRS, POSTS, device="cpu") if step.part == "fusion"]
    assert losses[-1] < losses[0]


def test_encoders_get_no_gradient_in_the_fusion_and_the_context_never(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path, output=8)
    context = {name: value.clone() for name, value in marf.context.network.state_dict().items()}
    fusion, formulas = state(marf, "fusion"), state(marf, "formulas")
    marf.fit(PAIRS, POSTS, device="cpu")
    assert same(context, marf.context.network.state_dict())
    assert not same(formulas, state(marf, "formulas"))
    assert not same(fusion, state(marf, "fusion"))
    formulas, after = state(marf, "formulas"), state(marf, "after")
    MaRFRun(marf, PAIRS, POSTS, {}, device="cpu").fusion()
    assert same(formulas, state(marf, "formulas"))
    assert not same(after, state(marf, "after"))


def test_only_formulas_of_accepted_answers_are_paired(tmp_path: Path) -> None:
    accepted = PAIRS[:3]  # PAIRS[4] has formulas, too
    training = MaRFRun(tiny_marf(tmp_path), PAIRS, POSTS, {}, formula_pairs=accepted, device="cpu")
    paired: list[tuple[str, str]] = []
    epochs = training._epochs
    training._epochs = lambda pairs, *rest: paired.extend(pairs) or epochs(pairs, *rest)  # type: ignore[func-returns-value,method-assign]
    assert training.formulas()
    assert paired == accepted
    steps = tiny_marf(tmp_path / "none").fit(PAIRS, POSTS, formula_pairs=[], device="cpu")
    assert {step.part for step in steps} == {"fusion"}


def test_the_same_pairs_make_the_same_bytes(tmp_path: Path) -> None:
    models = [tiny_marf(tmp_path / name, output=8) for name in "ab"]
    for marf in models:
        marf.fit(PAIRS, POSTS, device="cpu")
    assert models[0].identity == models[1].identity
    other = tiny_marf(tmp_path / "c", training=replace(models[0].training, seed=7), output=8)
    other.fit(PAIRS, POSTS, device="cpu")
    assert other.identity != models[0].identity


def test_a_control_has_the_context_in_place_of_formulas(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path, keys="context")
    formulas = state(marf, "formulas")
    steps = marf.fit(PAIRS, POSTS, device="cpu")
    assert {step.part for step in steps} == {"fusion"}
    assert same(formulas, state(marf, "formulas"))
    views = marf.encode(marf.readings([POSTS["d1"]]), ["d1"], precision="float32", device="cpu")
    assert len(views[0]) == 1


def test_too_few_pairs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="at least 2 pairs"):
        tiny_marf(tmp_path).fit([("d0", "d1"), ("d0", "nowhere")], POSTS)


@pytest.mark.parametrize(("part", "stop"), [("formulas", 2), ("fusion", 5)])
def test_a_killed_training_resumes_to_the_bytes_of_an_uninterrupted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, stop: int
) -> None:
    steps = MaRFTraining(epochs=3, batch=3, formula_epochs=3, formula_batch=2, formula_steps=5)
    whole, killed, again = (tiny_marf(tmp_path / name, training=steps, output=8, dropout=0.3) for name in "abc")
    wanted = whole.fit(PAIRS, POSTS, device="cpu")
    scores = {"formulas": "_formula_scores", "fusion": "_fused"}[part]
    compute, calls = getattr(MaRFRun, scores), []

    def dying(*given: Any) -> Any:
        calls.append(0)
        if len(calls) == (stop if part == "formulas" else 2 * stop):  # both sides of a batch are fused
            raise KeyboardInterrupt
        return compute(*given)

    options = {"checkpoint": tmp_path / "run", "save_every": 0.0, "device": "cpu"}
    monkeypatch.setattr(MaRFRun, scores, dying)
    with pytest.raises(KeyboardInterrupt):
        killed.fit(PAIRS, POSTS, **options)
    monkeypatch.setattr(MaRFRun, scores, compute)
    assert again.fit(PAIRS, POSTS, **options) == wanted
    assert again.identity == whole.identity
    other = tiny_marf(tmp_path / "d", training=replace(steps, seed=7), output=8, dropout=0.3)
    with pytest.raises(UnfinishedJobError):
        other.fit(PAIRS, POSTS, **options)
