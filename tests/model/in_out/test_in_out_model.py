"""The model: what it encodes, how it is trained, and its files."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mathamr_systems import FormulaTrees, InOut, InOutOptions
from mathamr_systems.in_out import model as training
from mathamr_systems.in_out.graphs import PAIRINGS, Condition, FormulaGraphs
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.formula import FormulaPair, FormulaTree, trees_from_latex
from pyterrier_mathamr.formula.packed_trees import PackedTrees
from pyterrier_mathamr.model import ModelFileError, ModelNotFoundError, TrainingError
from pyterrier_mathamr.model.checkpoints import EpochRecord
from pyterrier_mathamr.model.loop import Validation
from pyterrier_mathamr.store import UnfinishedJobError, signed

LATEX = [f"{a}^{n}+{b}" for a in "xyz" for n in range(2, 6) for b in "pq"] + ["x", "-x", r"\frac{a}{b}", r"\sin x"]
FORMULAS = [trees_from_latex(latex) for latex in LATEX]


def model_of(**options: object) -> InOut:
    return InOut.new(FORMULAS, InOutOptions(width=8, **options))


OPTIONS = {"epochs": 4, "batch_size": 8, "learning_rate": 0.01, "held_out": 0.2}


@pytest.fixture(scope="module")
def trained() -> tuple[InOut, list[EpochRecord]]:
    model = model_of(**OPTIONS)
    return model, model.fit(FORMULAS)


def test_each_node_has_a_unit_vector_and_a_formula_without_a_tree_none() -> None:
    trees = [FORMULAS[0].slt, None, trees_from_latex("x").slt]
    model = model_of()
    full, none, one = model.encode(trees, "slt", distinct=False)
    assert (full.shape, none.shape, one.shape) == ((4, 8), (0, 8), (1, 8))
    assert full.dtype == none.dtype == np.float32
    assert np.linalg.norm(np.concatenate([full, one]), axis=1) == pytest.approx(1)
    chain = trees_from_latex("x" * 600)
    deep = FormulaTree(("V!x",) * 1000, tuple((i, i + 1, "a") for i in range(999)), kind="slt")
    assert [len(rows) for rows in model.encode([chain.slt, deep], "slt", distinct=False)] == [600, 1000]


def test_equal_vectors_of_a_formula_are_given_once() -> None:
    tree = trees_from_latex("x+x+x").opt  # the three operands have the same surroundings
    assert [rows.shape[0] for d in (True, False) for rows in model_of().encode([tree], "opt", distinct=d)] == [2, 4]
    without = model_of(layers=0)
    slt = trees_from_latex("x+y+x").slt
    assert [len(rows) for rows in without.encode([slt], "slt")] == [3]  # x, +, y: no vector knows its surroundings


def test_vectors_do_not_depend_on_the_other_formulas_of_a_call() -> None:
    model, trees = model_of(), [pair.opt for pair in FORMULAS]
    together = model.encode(trees, "opt", distinct=False)
    separate = [model.encode([tree], "opt", distinct=False)[0] for tree in trees]
    assert all(a == pytest.approx(b, abs=1e-6) for a, b in zip(together, separate, strict=True))


@pytest.mark.parametrize("condition", PAIRINGS)
def test_a_condition_decides_which_encoders_there_are(condition: Condition) -> None:
    model = model_of(condition=condition, epochs=1)
    model.fit(FORMULAS[:8])
    wanted = {"slg": ("slt",), "opg": ("opt",)}.get(condition, ("slt", "opt"))
    assert model.kinds == wanted
    for kind in {"slt", "opt"} - set(wanted):
        with pytest.raises(ConfigError, match=rf"kind='{kind}'.*{condition!r}"):
            model.encode([], kind)


def test_training_lowers_the_loss_and_is_the_same_twice(trained, tmp_path: Path) -> None:
    model, history = trained
    again = model_of(**OPTIONS)
    begun = again.identity
    trees = FormulaTrees(tmp_path / "f").index([{"docno": str(i), "text": f"${x}$"} for i, x in enumerate(LATEX)])
    assert InOut.new(trees, again.options) == again  # formulas of an artifact
    assert len(model_of(epochs=1).fit(trees)) == 1
    assert [record.loss for record in again.fit(FORMULAS)] == [record.loss for record in history]
    assert history[-1].validation_loss < history[0].validation_loss
    assert [record.epoch for record in history] == [1, 2, 3, 4]
    assert model == again
    assert len({begun, model.identity, model_of(**OPTIONS, seed=1).identity}) == 3


def test_training_stops_early_with_the_best_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = iter([3.0, 2.0, 2.5, 2.0, 9.0])
    weights = []

    def held_out(self: training.FormulaTraining, _mean: float) -> Validation:
        weights.append(self._network["slt"].labels.weight.detach().clone())
        return Validation(*[next(losses)] * 2)

    monkeypatch.setattr(training.FormulaTraining, "_validate", held_out)
    model = model_of(patience=2, epochs=9)
    assert len(model.fit(FORMULAS)) == 4
    assert np.array_equal(model._network["slt"].labels.weight.detach(), weights[1])


def test_a_run_that_is_stopped_goes_on_to_the_same_bytes(trained, tmp_path: Path, monkeypatch) -> None:
    whole, history = trained
    real = training.FormulaTraining._epoch

    def dying(self: training.FormulaTraining, epoch: int) -> list:
        if epoch == 3:
            raise KeyboardInterrupt
        return real(self, epoch)

    monkeypatch.setattr(training.FormulaTraining, "_epoch", dying)
    with pytest.raises(KeyboardInterrupt):
        model_of(**OPTIONS).fit(FORMULAS, checkpoint=tmp_path / "run")
    monkeypatch.setattr(training.FormulaTraining, "_epoch", real)
    with pytest.raises(UnfinishedJobError, match="formulas"):
        model_of(**OPTIONS).fit(FORMULAS[:9], checkpoint=tmp_path / "run")
    for options in ({}, {}, {"fresh": True}):  # resumed, finished, begun again
        resumed = model_of(**OPTIONS)
        again = resumed.fit(FORMULAS, checkpoint=tmp_path / "run", **options)
        assert [record.loss for record in again] == [record.loss for record in history]
        assert resumed == whole


def test_the_command_trains_a_model_and_leaves_its_history(tmp_path: Path) -> None:
    FormulaTrees(tmp_path / "f").index([{"docno": str(i), "text": f"${x}$"} for i, x in enumerate(LATEX)])
    command = ["train-in-out", str(tmp_path / "f"), "-o", str(tmp_path / "m"), "-q"]
    assert "no_option" in CliRunner().invoke(main, [*command, "--set", "no_option=1"]).output
    done = CliRunner().invoke(main, [*command, "--set", "width=8", "--set", "epochs=1", "--set", "condition=outer"])
    assert done.exit_code == 0, done.output
    model = InOut.from_pretrained(tmp_path / "m")
    assert done.output == f"{tmp_path / 'm'}: In+Out model {model.identity[:12]}\n"
    assert (model.options.width, model.options.condition) == (8, "outer")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "m", "m.history.csv"]
    assert "does not exist yet" in CliRunner().invoke(main, command).output


def test_equal_graphs_are_never_in_one_batch() -> None:
    model = model_of(held_out=0.1)
    same_layout = [FormulaPair(FORMULAS[0].slt, pair.opt) for pair in FORMULAS[:8]]
    pairs = [*FORMULAS, *FORMULAS, *same_layout]
    graphs = {
        kind: FormulaGraphs.of_trees(
            PackedTrees.of_trees([getattr(pair, kind) for pair in pairs], kind), model._labels[kind]
        )
        for kind in model.kinds
    }
    run = training.FormulaTraining(model._network, graphs, model.options)
    everything = np.concatenate([run._trained, run._held_out])
    assert len(everything) == len(FORMULAS) - 1 + 7  # without "x", of one node, and each distinct one once
    for batch in run._batches(everything):
        assert all(len(np.unique(those.take(batch).numbered())) == len(batch) for those in graphs.values())


def test_too_few_formulas_and_wrong_options_are_refused() -> None:
    with pytest.raises(TrainingError, match="at least 4 different formulas of two nodes or more, found 2"):
        model_of().fit([*FORMULAS[:2], trees_from_latex("x"), FORMULAS[0], FormulaPair(None, None)])
    for name, value in (("condition", "both"), ("layers", -1), ("temperature", 0), ("batch_size", 1), ("held_out", 1)):
        with pytest.raises(ConfigError, match=name):
            InOutOptions(**{name: value})


def test_a_saved_model_is_the_same_and_shows_its_path(tmp_path: Path) -> None:
    model = model_of(condition="outer", layers=1)
    model.save(tmp_path / "m")
    again = InOut.from_pretrained(tmp_path / "m")
    assert again == model
    assert hash(again) == hash(model)
    assert again.options == model.options
    assert repr(again) == f"InOut.from_pretrained({str(tmp_path / 'm')!r})"
    assert repr(model) == f"<InOut {model.identity[:12]}>"
    seen = CliRunner().invoke(main, ["verify", str(tmp_path / "m")])
    assert seen.output == f"ok   {tmp_path / 'm'}: In+Out model {model.identity[:12]}\n"
    model.save(tmp_path / "half", dtype="float16")
    half = InOut.from_pretrained(tmp_path / "half").encode([FORMULAS[0].slt], "slt")[0]
    assert half == pytest.approx(model.encode([FORMULAS[0].slt], "slt")[0], abs=5e-3)
    with pytest.raises(ConfigError, match="does not exist yet"):
        model.save(tmp_path / "m")


def test_the_bundled_model_knows_a_formula_from_others() -> None:
    model = InOut.from_pretrained("in-out-mini")
    assert repr(model) == "InOut.from_pretrained('in-out-mini')"
    query, *others = (
        trees_from_latex(latex) for latex in ("a^2+b^2=c^2", "x^2+y^2=z^2", r"\sum_{n=1}^\infty n", "a+b")
    )
    for kind in ("slt", "opt"):
        (rows,) = model.encode([getattr(query, kind)], kind, distinct=False)
        found = model.encode([getattr(query, kind), *(getattr(other, kind) for other in others)], kind)
        scores = [float((rows @ each.T).max(axis=1).sum()) for each in found]
        assert scores[0] == pytest.approx(len(rows), abs=1e-4)
        assert scores[0] > scores[1] > scores[2]


def test_a_damaged_model_is_refused_by_the_file_that_is_at_fault(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        InOut.from_pretrained("nowhere")
    model_of().save(tmp_path / "m")
    description, weights = tmp_path / "m" / "in_out.json", tmp_path / "m" / "weights.safetensors"
    text, data = description.read_bytes(), weights.read_bytes()
    weights.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ModelFileError, match=r"weights\.safetensors: the weights differ"):
        InOut.from_pretrained(tmp_path / "m")
    seen = CliRunner().invoke(main, ["verify", str(tmp_path / "m")])
    assert "BAD" in seen.output
    assert "the weights differ" in seen.output
    weights.unlink()
    with pytest.raises(ModelFileError, match=r"weights\.safetensors"):
        InOut.from_pretrained(tmp_path / "m")
    weights.write_bytes(data)
    description.write_bytes(text.replace(b'"layers": 2', b'"layers": 1'))
    with pytest.raises(ModelFileError, match=r"in_out\.json: no In\+Out model .*checksum"):
        InOut.from_pretrained(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "model format 2, but this release reads 1"),
        ({"options": {"layer": 2}}, "layer"),
        ({"options": {"layers": -1}}, "layers=-1"),
        ({"options": {"width": 9}}, "names and shapes"),
        ({"labels": {"slt": []}}, "KeyError"),
    ],
)
def test_a_description_of_something_else_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    model_of().save(tmp_path / "m")
    path = tmp_path / "m" / "in_out.json"
    content = json.loads(path.read_bytes())
    del content["checksum"]
    path.write_bytes(signed({**content, **change}))
    with pytest.raises(ModelFileError, match=message):
        InOut.from_pretrained(tmp_path / "m")
