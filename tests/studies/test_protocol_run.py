"""The protocol on the bundled sample, its topics given out as two years."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import pyterrier_mathamr
from mathamr_systems.experiments import Report, System
from mathamr_systems.experiments.choosing import CROSSED_BM25, CROSSED_FUSION, Fitted, Training
from mathamr_systems.experiments.systems import BASELINES, COLBERT, DOC_VN, FUSION, SINGLE, TASK1, TUNED
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import ARQMathCollection, known_item_split
from studies.__main__ import main
from studies.protocol.catalogue import LEARNED, WEIGHED, protocol_systems
from studies.protocol.overview import CROSSED, FOLDS, KNOWN, LINKED, MB, MS, OVERVIEW, PARTS, draw_systems
from studies.protocol.protocol_run import CHOSEN, TESTS, run_protocol
from studies.tables import MAIN

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
SHORT = "nDCG'"


def learn(training: Training) -> Fitted:
    best = max((CROSSED_BM25, SINGLE), key=lambda name: training.mean(training.part(name)))
    return Fitted({"best": best}, training.part(best).rank)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("protocol")
    collection = Path(shutil.copytree(SAMPLE, folder / "sample"))
    for file in collection.glob("*/*sample*"):
        for year in ("2020", "2022"):
            shutil.copy(file, file.with_name(file.name.replace("sample", year)))
        file.unlink()
    questions = [post.id for post in ARQMathCollection(collection).questions()]
    test = next(name for name in questions if known_item_split(name) == "test")
    other = next(name for name in questions if name != test)
    links = f"question_id\trelated_question_id\ttype\trelated_title\n{other}\t{test}\tduplicate\tx\n"
    (collection / "links.tsv").write_text(links, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LEARNED, "Best of two", System("Best of two", learn, against=(CROSSED_BM25, SINGLE)))
        names = [
            "single VECTOR",
            "cross-validated bm25+colbert-style",
            "cross-validated bm25 + tf-idf",
            "best of two",
            "tangent",
            "doc-vn + maxsim (k = 1000)",
            "tuned bm25 with questions",
            "IN+OUT BY BEST FORMULA + cross-validated bm25",
            *(name for name in LEARNED if name == "Ensemble" or name.startswith("Ensemble without")),
        ]
        return run_protocol(collection, folder / "work", systems=names, model="mathamr-plus-mini", verbose=False)


def test_every_system_is_measured_once_for_each_topic_with_its_error(report: Report) -> None:
    names = [
        *BASELINES,
        CROSSED_BM25,
        SINGLE,
        COLBERT,
        CROSSED_FUSION,
        "TF-IDF",
        f"{CROSSED_BM25} + TF-IDF",
        "Best of two",
        "Tangent",
        DOC_VN,
        "tuned BM25 with questions",
        "In+Out by best formula",
        f"In+Out by best formula + {CROSSED_BM25}",
        *(name for name in LEARNED if name == "Ensemble" or name.startswith("Ensemble without")),
        WEIGHED,
    ]
    for caption in (CROSSED, FOLDS):
        assert report.tables[caption]["name"].tolist() == names
        values = report.values[f"{caption.lower().replace(' ', '-')}-by-topic"]
        counts = values[values["measure"] == MAIN].groupby("name")["qid"].agg(["size", "nunique"])
        assert counts.to_numpy().tolist() == [[report.settings["topics"]] * 2] * len(names)
    table = report.tables[CROSSED].set_index("name")
    assert table.loc[TUNED, MAIN] == pytest.approx(0.7945, abs=0.01)
    assert table.loc[TUNED, f"{SHORT} 2020"] == table.loc[TUNED, f"{SHORT} 2022"]

    values = report.values["years-crossed-by-topic"]
    own = values[(values["name"] == TUNED) & (values["measure"] == MAIN)]["value"]
    row = report.tables[CROSSED].set_index("name").loc[TUNED]
    assert row[MAIN] == pytest.approx(own.mean())
    assert row[f"{MAIN} error"] == pytest.approx(own.sem())
    assert f"{row[MAIN]:.4f} ± {row[f'{MAIN} error']:.4f}" in report.to_markdown()


def test_equal_years_choose_the_same_and_fusions_are_tested_against_their_parts(report: Report) -> None:
    chosen = report.tables[CHOSEN]
    crossed = chosen[chosen["folds"].str.contains("→")]
    assert {CROSSED_BM25, CROSSED_FUSION, f"{CROSSED_BM25} + TF-IDF", "Best of two", DOC_VN, "Ensemble"} <= set(
        crossed["system"]
    )
    assert crossed["folds"].str.startswith("2022 → 2020; 2020 → 2022").all()
    tests = report.tables[TESTS]
    own = tests[(tests["table"] == CROSSED) & (tests["system"] == f"{CROSSED_BM25} + TF-IDF")]
    assert own["against"].tolist() == [CROSSED_BM25, "TF-IDF"]


def test_known_items_leave_out_what_reads_questions_and_duplicates_do_not(report: Report) -> None:
    known = report.tables[KNOWN].set_index("name")
    assert known.loc[TUNED, "RR@10"] == pytest.approx(0.6806, abs=0.01)
    assert 0 < known.loc["Tangent", "RR@10"] < known.loc[TUNED, "RR@10"]  # only formulas, by the questions' own trees
    assert set(report.tables[LINKED]["name"]) - set(known.index) == {"tuned BM25 with questions"}
    assert "1 test questions have a duplicate" in report.about[LINKED]
    assert report.tables[LINKED]["RR@10 of duplicates"].between(0, 1).all()


def test_the_cost_of_a_query_and_the_loss_of_each_part_are_shown(report: Report) -> None:
    table, crossed = report.tables[OVERVIEW].set_index("name"), report.tables[CROSSED].set_index("name")
    assert not any("without" in name for name in table.index)
    assert table[MAIN].to_dict() == crossed.loc[table.index, MAIN].to_dict()
    assert table.loc[TUNED, "known item"] == report.tables[KNOWN].set_index("name").loc[TUNED, "RR@10"]
    assert table.loc["tuned BM25 with questions", "known item"] != table.loc["tuned BM25 with questions", "known item"]
    assert (table[MS] > 0).all()
    both = table.loc["Ensemble", [MS, MB]]
    parts = table.loc[[CROSSED_BM25, COLBERT, "Tangent"], [MS, MB]].sum()
    assert both.to_numpy() == pytest.approx(parts.to_numpy())
    fused = table.loc[f"{CROSSED_BM25} + TF-IDF", MB]
    assert fused == pytest.approx(table.loc[[CROSSED_BM25, "TF-IDF"], MB].sum())
    assert table.loc[WEIGHED, MB] == pytest.approx(table.loc[CROSSED_FUSION, MB])  # the index of words is kept once

    lost = report.tables[PARTS].set_index("without")
    assert lost.index.tolist() == [CROSSED_BM25, COLBERT, "Tangent"]
    crossed = report.tables[CROSSED].set_index("name")[MAIN]
    assert lost.loc[COLBERT, CROSSED] == pytest.approx(crossed["Ensemble"] - crossed[f"Ensemble without {COLBERT}"])
    assert (lost[f"{CROSSED} error"] >= 0).all()


def test_all_systems_are_drawn(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = draw_systems(report.tables[OVERVIEW], MAIN, MS, CROSSED_BM25, tmp_path)
    assert [path.name for path in drawn] == ["systems.png", "cost.png"]
    assert all(path.stat().st_size > 10_000 for path in drawn)
    assert draw_systems(report.tables[OVERVIEW].iloc[:0], MAIN, MS, CROSSED_BM25, tmp_path) == []


def test_systems_are_chosen_by_name_with_their_parts_before_them() -> None:
    assert list(protocol_systems(None)) == [
        *BASELINES,
        CROSSED_BM25,
        *[CROSSED_FUSION if name == FUSION else name for name in TASK1 if name not in BASELINES],
    ]
    found = protocol_systems([f"mathamr-plus-text+cross-validated bm25 + {DOC_VN}", CROSSED_FUSION])
    assert list(found) == [
        *(*BASELINES, CROSSED_BM25, "mathamr-plus-text", DOC_VN, f"mathamr-plus-text + {CROSSED_BM25} + {DOC_VN}"),
        *(COLBERT, CROSSED_FUSION),
    ]
    assert found[CROSSED_FUSION] == (CROSSED_BM25, COLBERT)
    assert found[DOC_VN] == ()
    assert {"MaRF", "mathamr-plus-text", CROSSED_FUSION} <= set(protocol_systems(["all"]))
    with pytest.raises(ConfigError, match="nothing"):
        protocol_systems(["nothing"])
    with pytest.raises(ConfigError, match="nothing"):
        protocol_systems(["BM25+nothing"])

    assert "SVM-rank" in protocol_systems(["SVM-rank"])
    with pytest.raises(ConfigError, match="judgments of the other years"):
        protocol_systems(["BM25 + SVM-rank"])


def test_a_single_year_and_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--years 2020,2022"):
        run_protocol(SAMPLE, tmp_path / "work", years="2022", verbose=False)
    assert not (tmp_path / "work").exists()

    options = ["crossed", str(SAMPLE), "--workdir", str(tmp_path / "work"), "--systems"]
    done = CliRunner().invoke(main, [*options, "tuned BM25, then ColBERT; no such system;"])
    assert "--systems no such system is not accepted" in done.output
    done = CliRunner().invoke(main, [*options, "tuned BM25, then ColBERT"])
    assert "--systems tuned BM25 is not accepted" in done.output
