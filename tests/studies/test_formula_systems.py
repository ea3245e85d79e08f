"""The rows of Task 2: which are chosen, what is fitted on what, and what a missing extra does."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyterrier as pt
import pytest

import pyterrier_mathamr
from mathamr_systems import ColBERT, FormulaFeatures, FormulaTrees, MaRF
from mathamr_systems.experiments import ExperimentError, Report, task2
from mathamr_systems.experiments.measuring import FLOOR, TimedPipeline, time_queries
from mathamr_systems.experiments.systems import System
from mathamr_systems.experiments.task2 import MATHAMR, FormulaParts, SearchedYear
from mathamr_systems.experiments.workdir import TANGENT, Artifacts
from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr.posts import post_from_text
from studies.answers import colbert, marf
from studies.formulas import systems
from studies.formulas.language_models import language_models
from studies.formulas.systems import (
    ALL_SYSTEMS,
    FUSED,
    LTR,
    TANGENT_S,
    VARIANTS,
    browsing_systems,
    compare_browsing,
    compare_formulas,
    shipped_weights,
    task2_systems,
)

EQUAL, NAMES, FUSIONS = f"{TANGENT} + {MATHAMR}", list(ALL_SYSTEMS), {FUSED: ALL_SYSTEMS[FUSED].fuses}
SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
NDCG = "nDCG(judged_only=True)@1000"
OPTIONS = {"model": "mathamr-plus-mini", "verbose": False}


@pytest.fixture(scope="module")
def two_years(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, with the judgments of five of its topics for each of two years."""
    folder = tmp_path_factory.mktemp("two-years")
    for file in (file for file in SAMPLE.rglob("*") if file.is_file()):
        for name in {file.name.replace("sample", year) for year in ("odd", "even")}:
            target = folder / file.relative_to(SAMPLE).with_name(name)
            target.parent.mkdir(exist_ok=True)
            text = file.read_text(encoding="utf-8")
            if name.startswith("qrels"):
                of_year = [line for line in text.splitlines() if int(line.split()[0][2:]) % 4 == 2 + ("odd" in name)]
                text = "\n".join([*of_year, ""])
            target.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("systems") / "work"


@pytest.fixture(scope="module")
def tiny(backbone: Path) -> Iterator[None]:
    """Tiny language models instead of the presets'."""
    config, training = marf.PRESETS["mini"]
    options, how = colbert.PRESETS["mini"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(colbert.BACKBONES, "mini", str(backbone))
        patch.setitem(colbert.PRESETS, "mini", (replace(options, query_length=64, document_length=64), how))
        patch.setattr(marf, "MINI_LM", str(backbone))
        patch.setitem(marf.PRESETS, "mini", (replace(config, output=8), replace(training, formula_steps=2)))
        yield


@pytest.fixture(scope="module", autouse=True)
def few_timed() -> Iterator[None]:
    """Time two queries of each system."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task2, "time_queries", partial(time_queries, most=2))
        yield


@pytest.fixture(scope="module")
def report(two_years: Path, workdir: Path, tiny: None, few_timed: None) -> Report:
    """All systems."""
    return compare_formulas(two_years, "odd,even", workdir, systems=["all"], **OPTIONS)


def test_a_fusion_brings_its_parts_and_the_weights_of_the_package_match() -> None:
    def chosen(*names: str) -> list[str]:
        return [system.name for system in task2_systems(names) or ()]

    assert chosen(EQUAL) == [TANGENT, MATHAMR, EQUAL]
    assert set(chosen("fused")) == {*FUSIONS[FUSED], FUSED}
    assert chosen("ALL") == NAMES
    assert chosen("variants") == [TANGENT, *VARIANTS]

    fitted = [name for name, system in {**ALL_SYSTEMS, **VARIANTS}.items() if system.fit]
    shipped = shipped_weights()
    fusions = {name: system.fuses for name, system in ALL_SYSTEMS.items() if system.fuses and name != EQUAL}
    assert set(shipped) == {*fitted, *fusions}
    assert {name: tuple(shipped[name]) for name in fusions} == fusions
    assert tuple(shipped[LTR]) == FormulaFeatures(FormulaTrees("none")).names

    assert not [part for system in ALL_SYSTEMS.values() for part in system.fuses if ALL_SYSTEMS[part].fit]


def test_every_system_is_measured_and_the_pooled_test_is_against_the_baseline(report: Report, workdir: Path) -> None:
    table = report.tables["Task 2"]
    assert table["year"].drop_duplicates().tolist() == ["odd", "even", "all years"]
    for _, block in table.groupby("year"):
        assert block["name"].tolist() == [*NAMES, FLOOR]
        assert block[NDCG].between(0.5, 1).all()
    assert set(report.tables["Time of a query"]["name"]) == set(NAMES)
    topics = table.drop_duplicates("year").set_index("year")["topics"]
    assert topics["odd"] + topics["even"] == topics["all years"] == 10
    of = table[table["name"] == MATHAMR].set_index("year")[NDCG]
    pooled = (of["odd"] * topics["odd"] + of["even"] * topics["even"]) / 10
    assert of["all years"] == pytest.approx(pooled)

    table = report.tables["Task 2"]
    means = table[table["year"] == "all years"].set_index("name")[NDCG]
    differences = next(table for name, table in report.tables.items() if name.startswith("Differences"))
    assert differences["name"].tolist() == list(NAMES[1:])
    expected = (means[list(NAMES[1:])] - means[TANGENT]).tolist()
    assert differences["difference"].tolist() == pytest.approx(expected, abs=5e-5)  # the table has four decimals
    assert ((differences["p corrected"] >= differences["p"]) & (differences["p corrected"] <= 1)).all()

    run_weights, shipped = shipped_weights(workdir / "task-2" / "weights.json"), shipped_weights()
    assert run_weights
    assert {name: list(of) for name, of in run_weights.items()} == {name: list(shipped[name]) for name in run_weights}


def test_means_over_seeds_equal_the_means_of_single_runs(two_years: Path, workdir: Path, tiny: None) -> None:
    names = ["ColBERT", "MaRF", TANGENT_S]

    def found(*seeds: int) -> Report:
        return compare_formulas(two_years, "odd,even", workdir, systems=names, seeds=seeds, **OPTIONS)

    both, second = found(42, 43), found(43)
    table = both.tables["Means over seeds"].set_index("name")
    assert list(table.index) == ["ColBERT", "MaRF"]  # the other is not trained
    assert both.settings["seeds"] == [42, 43]
    for name in table.index:  # the rows of a report are of the first seed
        rows = [of.tables["Task 2"].set_index(["name", "year"])[NDCG] for of in (both, second)]
        values = [of[name, "all years"] for of in rows]
        assert table.loc[name, NDCG] == pytest.approx(sum(values) / 2)
        assert table.loc[name, f"{NDCG} std"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    trained = {file.read_bytes() for file in workdir.glob("answers/made/colbert-*/model.safetensors")}
    assert len(trained) == 2  # which may rank these few formulas alike
    with pytest.raises(ConfigError, match="seeds"):
        found()


def test_at_the_paper_s_size_marf_orders_what_tangent_finds(
    two_years: Path, workdir: Path, tiny: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(marf.PRESETS, "published", marf.PRESETS["mini"])
    parts = FormulaParts(Artifacts(two_years, workdir, verbose=False), None, None, "odd")  # type: ignore[arg-type]
    full = {system.name: system for system in task2_systems(["MaRF"], language_models(preset="full")) or ()}
    assert not full["MaRF"].known  # only the candidates of the topics are encoded
    first, found = (full[name].make(parts).whole(parts.topics.head(2)) for name in (TANGENT, "MaRF"))
    assert set(zip(found["qid"], found["docno"], strict=True)) == set(zip(first["qid"], first["docno"], strict=True))
    assert found["docno"].tolist() != first["docno"].tolist()


def test_weights_are_fitted_only_on_the_other_years(report: Report, two_years: Path, workdir: Path) -> None:
    def weights(found: Report) -> list[list[float]]:
        table = found.tables["Fitted weights"].set_index("name").loc[FUSED]
        return [table[table["year"] == year]["weight"].tolist() for year in ("odd", "even")]

    file = two_years / "qrels" / "qrels.arqmath-even-task2.txt"
    before, text = weights(report), file.read_text()
    turned = [" ".join([*line.split()[:3], str(3 - int(line.split()[3]))]) for line in text.splitlines()]
    try:
        file.write_text("\n".join([*turned, ""]))
        after = weights(compare_formulas(two_years, "odd,even", workdir, systems=[FUSED], **OPTIONS))
    finally:
        file.write_text(text)
    assert after[1] == before[1]  # its own judgments change nothing
    assert after[0] != before[0]  # the other year's rankings do


def test_a_single_year_has_the_weights_of_the_package(two_years: Path, workdir: Path, report: Report) -> None:
    found = compare_formulas(two_years, "odd", workdir, systems=[FUSED], **OPTIONS)
    weights = found.tables["Fitted weights"].set_index("of")["weight"]
    assert weights.to_dict() == dict(shipped_weights()[FUSED])
    assert list(found.tables) == ["Task 2", "Fitted weights", "Time of a query"]  # nothing to pool


def test_a_reranker_scores_all_that_the_other_parts_of_a_fusion_find() -> None:
    topics = pd.DataFrame({"qid": ["1"], "title": [""], "body": ["$x$"]})
    year = SearchedYear(SimpleNamespace(topics=topics))
    for name, docno in (("a", "u"), ("b", "v")):
        year.rankings[name] = pd.DataFrame({"qid": ["1"], "docno": [docno], "score": [1.0], "rank": [0]})
    year.rankings["c"] = year.rankings["a"]
    year.scorers["c"] = pt.apply.doc_score(lambda row: float(row["body"] == "$x$") + (row["docno"] == "v"))
    *own, scored = year.scored(["a", "b", "c"])
    assert [ranking["docno"].tolist() for ranking in own] == [["u"], ["v"]]
    assert scored.set_index("docno")["score"].to_dict() == {"u": 1.0, "v": 2.0}


def test_variants_are_rows_with_the_weights_of_the_other_year(two_years: Path, workdir: Path) -> None:
    fitted = [name for name, system in VARIANTS.items() if system.fit]
    found = compare_formulas(two_years, "odd,even", workdir, systems=fitted, **OPTIONS)
    assert found.tables["Task 2"]["name"].drop_duplicates().tolist() == [TANGENT, *fitted, FLOOR]
    weights = found.tables["Fitted weights"]
    assert weights.groupby(["name", "year"]).size().to_dict() == {
        (name, year): 7 for name in fitted for year in ("odd", "even")
    }


def test_a_missing_extra_is_named_in_its_row_and_the_rest_is_measured(
    two_years: Path, workdir: Path, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(parts: FormulaParts) -> TimedPipeline:
        raise MissingExtraError("gensim", "cft")

    monkeypatch.setattr(systems, "ALL_SYSTEMS", {**ALL_SYSTEMS, TANGENT_S: System(TANGENT_S, make)})
    found = compare_formulas(two_years, "odd,even", workdir, systems=[FUSED], **OPTIONS)
    table = found.tables["Task 2"]
    odd = table[table["year"] == "odd"].set_index("name")[NDCG]
    chosen = [name for name in NAMES if name in (*FUSIONS[FUSED], FUSED)]
    assert list(odd.index) == [
        *(f"{name}: needs the extra cft" if name == TANGENT_S else name for name in chosen),
        FLOOR,
    ]
    assert odd.isna().tolist() == [name == TANGENT_S for name in (*chosen, FLOOR)]
    assert any("pip install 'pyterrier-mathamr-systems[cft]'" in remark for remark in found.remarks["Task 2"])
    assert TANGENT_S not in set(found.tables["Fitted weights"]["of"])  # fused without it
    assert TANGENT_S not in set(found.tables["Time of a query"]["name"])


def test_weights_are_read_as_written_and_damage_is_named(tmp_path: Path) -> None:
    file = tmp_path / "weights.json"
    file.write_text(json.dumps({"format": 1, "fitted on": "sample", "weights": {"LtR": {"a": 0.25, "b": -1.5}}}))
    assert shipped_weights(file) == {"LtR": {"a": 0.25, "b": -1.5}}
    for content in ('{"format": 2, "weights": {}}', '{"format": 1}', "[]", "no JSON"):
        file.write_text(content)
        with pytest.raises(ExperimentError, match=r"weights\.json"):
            shipped_weights(file)
    file.write_text(json.dumps({"format": 1, "weights": {"LtR": {"a": float("nan")}}}))
    with pytest.raises(ExperimentError, match="finite"):
        shipped_weights(file)


def test_in_out_is_measured_with_each_combination(tmp_path: Path) -> None:
    names = ["In+Out", "In+Out (avg)", "In+Out (rrf)"]
    table = compare_formulas(SAMPLE, "sample", tmp_path, model="mathamr-plus-mini", systems=names, verbose=False)
    values = table.tables["Task 2"].set_index("name")[NDCG]
    assert list(values.index) == ["Tangent", *names, FLOOR]
    assert values[names].min() > values[FLOOR]
    assert values[names].nunique() == 3
    assert (tmp_path / "formulas.inout" / "pt_meta.json").is_file()


def test_models_that_were_trained_elsewhere_search_ntcir12(backbone: Path, tmp_path: Path) -> None:
    example = Path(__file__).parents[1] / "data" / "ntcir12"
    config = replace(marf.PRESETS["mini"][0], query_length=64, document_length=64, output=8, heads=2)
    posts = [post_from_text(text) for text in ("$x^2+1$", "$y=2$")]
    MaRF.new(str(backbone), posts, config=config, min_count=1, device="cpu").save(tmp_path / "marf")
    options = replace(colbert.PRESETS["mini"][0], query_length=64, document_length=64)
    ColBERT.new(backbone, options=options).save(tmp_path / "colbert")
    report = compare_browsing(
        example,
        tmp_path / "work",
        systems=[TANGENT],
        trained=[tmp_path / "marf", tmp_path / "colbert"],
        model="mathamr-plus-mini",
        verbose=False,
    )
    table = report.tables["Formula browsing"]
    models = table[table["name"].isin(["ColBERT", "MaRF", "MaRF, formula encoder only"])]
    assert len(models) == 3 * table["topics"].nunique()
    assert models["Bpref partial"].between(0, 1).all()


def test_all_systems_search_formulas_with_wildcards(tmp_path: Path) -> None:
    example = Path(__file__).parents[1] / "data" / "ntcir12"
    names = list(browsing_systems(["all"]))
    assert MATHAMR not in names
    report = compare_browsing(example, tmp_path, systems=["all"], model="mathamr-plus-mini", verbose=False)
    table = report.tables["Formula browsing"].dropna(subset="Bpref partial")  # a missing extra has no figures
    missing = [name for name in names if name not in set(table["name"])]
    assert [name for name in missing if not name.startswith("CFT2")] == []
    wildcards = table[table["topics"] == "wildcards"]
    assert (wildcards["number"] == 2).all()
    assert wildcards["Bpref partial"].between(0, 1).all()
    assert (wildcards["Bpref partial"] > 0).all()
    with pytest.raises(ConfigError, match=r"all, or some of: Tangent; "):
        browsing_systems(["Tangent-CFT"])
