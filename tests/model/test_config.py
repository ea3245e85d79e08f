"""The configuration: the paper's tables, refusals, and the way to JSON and YAML and back."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model import MathAMRConfig, ScoreOptions, TextOptions, TrainingOptions, VocabularyOptions


def test_the_defaults_are_the_paper_s_experiments_and_the_benchmark_differs_in_four_values() -> None:
    table_4_5 = {
        "hidden": 64, "projection": 32, "layers": 4, "bases": 64, "initialisation": "zero", "learned": "embedding",
        "batch_size": 32, "epochs": 7, "learning_rate": 1e-4, "min_learning_rate": 1e-5, "weight_decay": 1e-3,
        "temperature": 0.05, "clip": 1.0, "patience": 3, "node_mask": 0.1, "edge_dropout": 0.1,
        "normalise_scores": True, "validation_share": 0.1, "formulas": "both", "auxiliary": "none", "beta": 1.0,
    }  # fmt: skip
    options = MathAMRConfig.paper_experiments().to_dict()
    assert {name: options[name] for name in table_4_5} == table_4_5
    assert MathAMRConfig.paper_experiments() == MathAMRConfig()
    benchmark = MathAMRConfig.paper_benchmark().choices()
    assert benchmark == {"bases": 256, "batch_size": 16, "learning_rate": 5e-4, "beta": 0.3}


@pytest.mark.parametrize(
    "condition",
    [
        *({"formulas": value} for value in ("both", "opt", "slt", "none")),  # 4.6
        {"virtual_nodes": "hierarchy"}, {"virtual_nodes": "none"}, {"virtual_nodes": "global"},  # 4.9
        {"virtual_nodes": "global", "beta": 0.0},  # a single vector
        *({"auxiliary": value} for value in ("none", "sequential", "circular", "full")),  # 4.10
        *({"initialisation": value, "learned": "embedding"} for value in ("zero", "random")),  # 4.13
        *({"initialisation": "mean", "learned": value} for value in ("none", "projection", "typed_projection")),
        *({"beta": value} for value in (1.0, 0.7, 0.5, 0.3)),  # 4.17
        {"bases": 256, "batch_size": 16, "learning_rate": 5e-4, "beta": 0.3, "seed": 4},  # 4.18
        {"bases": None, "features": "words"},
    ],
)  # fmt: skip
def test_each_condition_of_the_paper_s_tables_is_the_same_in_each_form(condition, tmp_path) -> None:
    text = "".join(f"{name}: {'null' if value is None else value}\n" for name, value in condition.items())
    config = MathAMRConfig(**condition)
    (tmp_path / "c.yaml").write_text(text)
    (tmp_path / "c.json").write_text(config.to_json())
    assert MathAMRConfig.from_yaml(text) == config == MathAMRConfig.from_json(config.to_json())
    assert MathAMRConfig.from_file(tmp_path / "c.yaml") == config == MathAMRConfig.from_file(tmp_path / "c.json")
    assert hash(MathAMRConfig.from_dict(config.to_dict())) == hash(config)
    assert pickle.loads(pickle.dumps(config)) == config == eval(repr(config))


def test_unknown_options_are_all_named() -> None:
    for options in ({"laiers": 2, "heads": 8, "hidden": 32}, {"training": {"laiers": 2, "heads": 8, "beta": 0.5}}):
        with pytest.raises(ConfigError, match=r"\['heads', 'laiers'\].*give .*beta") as caught:
            MathAMRConfig.from_dict(options)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_an_option_is_given_by_its_group_or_its_own_name_and_read_from_its_group() -> None:
    flat = MathAMRConfig(
        layers=2, batch_size=16, beta=0.3, features="words", kind_weights=[1, 2, 3], vocabulary_size=99
    )
    groups = {"text": TextOptions(features="words"), "vocabulary": VocabularyOptions(vocabulary_size=99)}
    training, score = TrainingOptions(batch_size=16, beta=0.3), ScoreOptions(kind_weights=(1, 2, 3))
    assert flat == MathAMRConfig(layers=2, training=training, score=score, **groups)
    assert flat == MathAMRConfig(layers=2, batch_size=16, training={"beta": 0.3}, score=flat.score, **groups)
    assert (flat.training.beta, flat.text.features) == (0.3, "words")
    read = MathAMRConfig.from_yaml("layers: 2\ntraining:\n  learning_rate: 1e-3\n  beta: 0.5\n")
    assert read.replace(beta=0.3).training == TrainingOptions(learning_rate=1e-3, beta=0.3)
    assert flat.replace(training=TrainingOptions()) == flat.replace(batch_size=32, beta=1.0)
    assert list(flat.to_dict())[:3] == ["formulas", "virtual_nodes", "auxiliary"]
    assert flat.choices()["kind_weights"] == (1, 2, 3)
    with pytest.raises(AttributeError, match="heads"):
        _ = flat.heads
    with pytest.raises(ConfigError, match="training=3"):
        MathAMRConfig(training=3)
    with pytest.raises(ConfigError, match="batch_size"):
        TrainingOptions(batch_size=1)
    numpy = MathAMRConfig(layers=np.int64(2), beta=np.float32(0.5))
    assert MathAMRConfig.from_json(numpy.to_json()) == numpy == MathAMRConfig(layers=2, beta=0.5)


@pytest.mark.parametrize(
    ("option", "bad", "good"),
    [
        ("formulas", "mathml", "opt"),
        ("virtual_nodes", "two", "global"),
        ("auxiliary", None, "circular"),
        ("initialisation", "ones", "random"),
        ("learned", "typed", "typed_projection"),
        ("layers", -1, 0),
        ("layers", 1.5, 1),
        ("hidden", 0, 1),
        ("bases", 0, None),
        ("node_mask", 1.1, 1.0),
        ("edge_dropout", 1.0, 0.99),
        ("temperature", 0.0, 1e-3),
        ("temperature", float("nan"), 1.0),
        ("beta", 1.01, 0),
        ("batch_size", 1, 2),
        ("learning_rate", "1e-4", 1e-3),
        ("clip", 0, 0.5),
        ("seed", True, 1),
        ("validation_share", 1, 0),
    ],
)
def test_a_value_out_of_range_is_refused_and_its_neighbor_taken(option, bad, good) -> None:
    with pytest.raises(ConfigError, match=option):
        MathAMRConfig.from_dict({option: bad})
    assert MathAMRConfig.from_dict({option: good}).to_dict()[option] == good


@pytest.mark.parametrize(
    ("named", "options"),
    [
        ("beta", {"virtual_nodes": "none", "beta": 0.3}),
        ("auxiliary", {"virtual_nodes": "global", "auxiliary": "full"}),
        ("min_learning_rate", {"learning_rate": 1e-6}),
        ("word_residual", {"features": "lookup", "word_residual": True}),
        ("word_residual", {"features": "text", "word_residual": True}),
        ("word_residual", {"features": "words", "word_residual": True, "virtual_nodes": "global"}),
    ],
)
def test_options_that_contradict_each_other_are_refused(named, options) -> None:
    with pytest.raises(ConfigError, match=named):
        MathAMRConfig(**options)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *((MathAMRConfig.from_json, text) for text in ("", "[1]", '{"layers": 2', '{"layers": NaN}')),
        *((MathAMRConfig.from_yaml, text) for text in ("", "- 1", "a: [", "layers")),
    ],
)
def test_text_that_is_not_a_configuration_is_refused(read, text) -> None:
    with pytest.raises(ConfigError):
        read(text)


def test_the_configuration_in_the_guide_to_training_is_read() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    [written] = re.findall(r"cat > model.yaml <<'END'\n(.*?)END\n", guide, flags=re.DOTALL)
    assert MathAMRConfig.from_yaml(written) != MathAMRConfig()
