"""Common to all models that are trained here: a killed training resumes to the same bytes; files; refusals."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import marf_examples
import numpy as np
import pytest
from colbert_checkpoints import stored_inline
from marf_examples import EXACT, POSTS, fusing, tiny_marf
from tiny_models import tiny_bert, tiny_qwen3

from mathamr_systems import (
    ColBERT,
    ColBERTOptions,
    ColBERTTraining,
    FitOptions,
    FormulaContexts,
    MaRF,
    MaRFTraining,
    MathAMRSentenceBERT,
    QASim,
    QQSim,
)
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.running.resources import one_torch_thread
from pyterrier_mathamr.model.errors import ModelFileError, ModelNotFoundError, UnsafeModelError
from pyterrier_mathamr.model.loop import TrainingLoop
from pyterrier_mathamr.store import UnfinishedJobError

SUBJECTS = ("sum", "limit", "fraction", "prove", "less", "two")
ANSWERED = [
    {"qid": f"q{i}", "question": f"{word} of $x^{i}$ is", "aid": f"a{i}", "answer": f"the {word} , $\\frac{{1}}{{2}}$"}
    for i, word in enumerate(SUBJECTS)
]
NEGATIVES = {f"q{i}": [f"a{(i + 1) % 6}", f"a{i}"] for i in range(6)}
QUESTIONS = [("the sum of x", "sum of x"), ("prove the limit", "the limit of y"), ("is x less", "x less y")]
GRADED = [
    (f"prove the {query}", f"{answer} {number}", target)
    for query in ("sum", "limit", "fraction", "two")
    for number in ("x", "y")
    for answer, target in ((f"the {query} of", 1.0), ("less , .", 0.0))
]


class Kind(NamedTuple):
    """A model of tiny size: how it is made and trained, and what must be equal for a copy."""

    new: Callable[..., Any]  # from a folder for a language model, epochs and seed
    fit: Callable[..., Any]  # the history
    encode: Callable[[Any], np.ndarray]
    stop: int  # the step in which training is killed


def colbert(train: Any) -> Kind:
    def new(folder: Path, epochs: int = 2, seed: int = 0) -> ColBERT:
        training = ColBERTTraining(train, epochs=epochs, batch_size=2, learning_rate=0.01, warmup=0.2, seed=seed)
        options = ColBERTOptions(dimensions=8, query_length=16, document_length=20, min_count=1, math=True)
        return ColBERT.new(tiny_bert(folder), options=options, training=training)

    def fit(model: ColBERT, **kept: Any) -> list[float]:
        return model.fit(ANSWERED, negatives=NEGATIVES, **kept).history

    return Kind(new, fit, rows_of_query, 3 if train == "last" else 5)


def rows_of_query(model: ColBERT) -> np.ndarray:
    return model.encode(["the sum of two"], "query", precision="float32")[0].rows


def marf(stop: int, causal: bool = False, **options: Any) -> Kind:
    def new(folder: Path, epochs: int = 3, seed: int = 42) -> MaRF:
        training = MaRFTraining(epochs=epochs, batch=3, formula_epochs=3, formula_batch=2, formula_steps=5, seed=seed)
        backbone = (tiny_qwen3 if causal else tiny_bert)(folder)
        return tiny_marf(folder, backbone, training=training, output=8, dropout=0.3, **options)

    def fit(model: MaRF, **kept: Any) -> Any:
        return model.fit(marf_examples.PAIRS, POSTS, device="cpu", **kept)

    def encode(model: MaRF) -> np.ndarray:
        return np.concatenate(model.encode(model.readings([POSTS["d1"]]), ["d1"], **EXACT)[0])

    return Kind(new, fit, encode, stop)


def two_step(make: Callable[..., Any], given: Any, stop: int, batch: int = 6, **fitting: Any) -> Kind:
    known: dict[int, tuple[int, int]] = {}

    def new(folder: Path, epochs: int = 2, seed: int = 0) -> Any:
        model = make(tiny_bert(folder))
        known[id(model)] = epochs, seed
        return model

    def fit(model: Any, **kept: Any) -> Any:
        epochs, seed = known[id(model)]
        options = FitOptions(epochs=epochs, batch_size=batch, learning_rate=1e-2, seed=seed)
        return model.fit(given, options, **fitting, **kept)

    def encode(model: Any) -> np.ndarray:
        return model.scores([("sum", "limit")]) if isinstance(model, QASim) else model.encode(["the sum of x"])

    return Kind(new, fit, encode, stop)


KINDS = {
    "ColBERT, last layer": colbert("last"),
    "ColBERT, all layers": colbert("all"),
    "MaRF, in formulas": marf(2),
    "MaRF, in fusion": marf(7, causal=True),
    "QQSim": two_step(lambda bert: QQSim.new(bert, "tail", max_length=9), QUESTIONS * 3, 3, validation=QUESTIONS[:2]),
    "QASim, cross": two_step(
        lambda bert: QASim.new(bert, "cross", "mathamr", max_length=24), GRADED, 4, loss="bce+mnrl", folds=4
    ),
    "QASim, bi": two_step(lambda bert: QASim.new(bert, "bi", max_length=24), GRADED, 4, folds=4),
    "Sentence-BERT": two_step(
        lambda bert: MathAMRSentenceBERT.new(bert, "text+opt", 3, max_length=20), GRADED, 4, batch=8, folds=4
    ),
}


def identity(model: Any) -> str:
    return model.identity() if callable(model.identity) else model.identity


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield


ALIKE = ("QASim, bi", "Sentence-BERT")  # they train as QQSim does


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in ALIKE else ()) for name in KINDS]
)
def test_a_killed_training_resumes_to_the_bytes_of_an_uninterrupted_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, steps, killed_in, whole = KINDS[name], list[int](), [0], TrainingLoop._step

    def counted(loop: Any, *given: Any) -> float:
        steps.append(1)
        if len(steps) == killed_in[0]:
            raise KeyboardInterrupt
        return whole(loop, *given)

    def trained(**kept: Any) -> tuple[str, Any]:
        steps.clear()
        model = kind.new(tmp_path / "bert", **{of: kept.pop(of) for of in ("epochs", "seed") if of in kept})
        history = kind.fit(model, **kept)
        return identity(model), history

    monkeypatch.setattr(TrainingLoop, "_step", counted)
    wanted, all_steps = trained(), len(steps)
    kept: dict[str, Any] = {"checkpoint": tmp_path / "run", "save_every": 0.0}
    killed_in[0] = kind.stop
    with pytest.raises(KeyboardInterrupt):
        trained(**kept)
    killed_in[0] = 0
    assert trained(**kept) == wanted
    assert len(steps) == all_steps - (kind.stop - 1)
    with pytest.raises(UnfinishedJobError):
        trained(epochs=4, **kept)
    assert trained(seed=7)[0] != wanted[0]


def foreign_colbert(folder: Path) -> ColBERT:
    return ColBERT.from_pretrained(stored_inline(folder, "ColBERT"), query_length=12)


@pytest.mark.parametrize("name", [*KINDS, "ColBERT of others"])
def test_a_saved_model_is_equal_to_the_bit(name: str, tmp_path: Path) -> None:
    kind = KINDS.get(name, Kind(foreign_colbert, list, rows_of_query, 0))
    model = kind.new(tmp_path / "bert")
    if isinstance(model, MaRF):
        fusing(model)
    elif name != "ColBERT of others":
        kind.fit(model)
    model.save(tmp_path / "saved")
    again = type(model).from_pretrained(tmp_path / "saved")
    assert identity(again) == identity(model)
    assert kind.encode(again).tobytes() == kind.encode(model).tobytes()
    if isinstance(model, (ColBERT, MaRF)):
        assert again == model
        with pytest.raises(ConfigError, match="does not exist"):
            model.save(tmp_path / "saved")
    for options in ("options", "training", "view", "form", "kind", "representation", "window", "max_length"):
        if not (options == "training" and isinstance(model, ColBERT)):  # which is not kept
            assert getattr(again, options, None) == getattr(model, options, None)
    if isinstance(model, ColBERT):
        assert again.name == f"saved@{model.identity[:16]}"
    if isinstance(model, MathAMRSentenceBERT):
        assert again.contexts() == FormulaContexts("text+opt", 3)


def test_a_folder_of_another_model_or_of_none_is_refused(tmp_path: Path) -> None:
    bert = tiny_bert(tmp_path / "bert")
    QQSim.new(bert).save(tmp_path / "titles")
    for model in (QQSim, QASim, MathAMRSentenceBERT):
        with pytest.raises(ModelFileError):
            model.from_pretrained(bert)
    with pytest.raises(ModelFileError, match=r"QASim\.save"):
        QASim.from_pretrained(tmp_path / "titles")
    with pytest.raises(ModelNotFoundError, match=r"marf\.json"):
        MaRF.from_pretrained(tmp_path)


@pytest.mark.parametrize("new", [ColBERT.new, MaRF.new, QQSim.new, QASim.new, MathAMRSentenceBERT.new])
def test_a_language_model_that_is_not_there_or_not_safe_is_refused(new: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="no-such-model"):
        new("no-such-model-anywhere")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(UnsafeModelError):
        new(str(tmp_path))
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises((ModelFileError, ModelNotFoundError)):
        new(str(tmp_path))
