"""The study of MaRF: its controls, and its table by the share of formulas."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import pyterrier_mathamr
from mathamr_systems import MaRFConfig
from mathamr_systems.experiments import System
from mathamr_systems.experiments.systems import AnswerParts
from mathamr_systems.experiments.workdir import Artifacts
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.posts import post_from_text
from studies import answers
from studies.answers import marf
from studies.answers.rows import MATHAMR_ROW, SINGLE_ROW, TOKEN_ROW, TUNED_ROW
from studies.registry import run_study
from studies.tables import MAIN

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
SMALL = {
    "query_length": 32,
    "document_length": 48,
    "output": 8,
    "formula_layers": 1,
    "formula_heads": 2,
    "formula_width": 8,
    "formula_hidden": 8,
    "heads": 2,
    "formula_steps": 2,
    "epochs": 1,
}


def test_the_study_runs_with_both_controls(backbone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins = [System(row.name, TUNED_ROW.make) for row in (SINGLE_ROW, TOKEN_ROW, MATHAMR_ROW)]
    monkeypatch.setattr(answers, "COMMON_ROWS", (TUNED_ROW, *stand_ins))
    options = {"seeds": [1], "years": ["sample"], "verbose": False, "device": "cpu"}
    report = run_study(marf.STUDY, SAMPLE, tmp_path, changes={**SMALL, "backbone": str(backbone)}, **options)
    judged, tests = report.tables["Judged topics of sample"], report.tables["Tests"]
    trees = [marf.TREES.name, marf.TREES_OF_OTHERS.name]
    names = [marf.CONTEXT.name, marf.KEYS.name, marf.OTHERS, marf.MARF.name, *trees]
    assert judged["system"].tolist()[-6:] == names
    against = set(tests[tests["system"] == marf.MARF.name]["against"])
    assert against >= {
        marf.CONTEXT.name,
        marf.KEYS.name,
        marf.OTHERS,
        SINGLE_ROW.name,
        TOKEN_ROW.name,
        MATHAMR_ROW.name,
    }
    shares = report.tables["nDCG' by share of formula tokens"]
    assert shares["formula tokens"].tolist() == ["> 0%", "> 50%", "> 60%", "> 70%"]
    assert shares["questions"].is_monotonic_decreasing
    means = judged.set_index("system")[MAIN]
    assert np.isclose(shares.iloc[0][names].astype(float), means[names]).all()


def test_at_the_paper_s_size_candidates_are_scored_from_texts_as_they_are_from_an_index(
    backbone: Path, tmp_path: Path
) -> None:
    changes = {**SMALL, "formulas": 2, "backbone": str(backbone)}
    parts = AnswerParts(Artifacts(SAMPLE, tmp_path), "sample", ("sample",), 1, changes=changes, device="cpu")
    model, full = marf.marf_model(parts, trained=False), replace(parts, preset="full")
    with torch.no_grad():
        model._network.fusion.network[-1].bias.fill_(0.5)  # an untrained fusion adds nothing
    first = parts.shared.bm25.retriever(10)(parts.found.topics.head(3))
    of_index, of_texts = (
        marf._scorer(of, model, "own")(first).set_index(["qid", "docno"])["score"] for of in (parts, full)
    )
    assert len(of_texts) == len(first)
    assert of_texts.reindex(of_index.index).tolist() == pytest.approx(of_index.tolist(), abs=0.02)
    assert of_texts.std() > 0.1
    rankings = [of.ranking(marf.CONTEXT) for of in (parts, parts.at(seed=2), full)]
    assert rankings[0].equals(rankings[1])  # no seed changes it, but the preset does
    assert not rankings[0].equals(rankings[2])


def test_a_symbol_of_both_trees_is_a_state_and_a_post_without_formulas_has_its_context(backbone: Path) -> None:
    from studies.answers.marf_trees import SIZES, TreeMaRF

    posts = [post_from_text(text) for text in ("$x^2+1$ is", "no formula", r"$\text{$ $$")]
    config = {name: value for name, value in {**SMALL, **SIZES}.items() if name not in ("formula_steps", "epochs")}
    model = TreeMaRF.new(str(backbone), posts, config=MaRFConfig(**config), min_count=1, device="cpu")
    formula, *_ = model.readings(posts)[0].formulas
    (rows,) = model.formula_rows([formula]).values()
    assert rows.shape == (4 + 5, 100)  # x 2 + 1, and + SUP x 2 1
    assert [len(views) for views in model.encode(model.readings(posts))] == [1, 1, 1]


def test_an_unknown_option_is_refused() -> None:
    parts: Any = SimpleNamespace(preset="mini", changes={"color": 1}, seed=42)
    with pytest.raises(ConfigError, match="options of MaRF: backbone"):
        marf.marf_model(parts)


def test_formulas_come_from_other_posts_with_the_same_lengths(backbone: Path) -> None:
    from mathamr_systems import MaRF, MaRFConfig

    texts = ["$x+1$ and $a$", "$y-2$", r"$\frac{a}{b}$", "$z$", "no formula", r"$\frac{p}{q}$"]
    posts = [post_from_text(text) for text in texts]
    config = MaRFConfig(**{name: value for name, value in SMALL.items() if name not in ("formula_steps", "epochs")})
    model = MaRF.new(str(backbone), posts, config=config, min_count=1, device="cpu")
    own = model.readings(posts)
    other = marf.with_other_formulas(model, posts).readings(posts)
    for left, right in zip(own, other, strict=True):
        assert left.text == right.text
        assert not set(left.formulas) & set(right.formulas)
        assert sorted(map(len, left.formulas)) == sorted(map(len, right.formulas))
    assert model.readings(posts) == other
