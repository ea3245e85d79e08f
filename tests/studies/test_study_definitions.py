"""The studies as data: whole, possible, and the paper's own."""

import re
from pathlib import Path

import pytest

import mathamr_systems
import pyterrier_mathamr
from mathamr_systems.experiments import published
from mathamr_systems.experiments.report import PublishedTable
from mathamr_systems.experiments.systems import Depth
from mathamr_systems.experiments.workdir import Artifacts
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model import MathAMRConfig
from studies.models import config_of, scaled_depth
from studies.models.ablations import ABLATIONS
from studies.models.paper import PAPER
from studies.models.reporting import systems_of
from studies.models.ways import WAYS
from studies.registry import find_study
from studies.study import PRESETS, Condition, Preset, Row, Setting, Study, condition

PACKAGE, SYSTEMS = Path(pyterrier_mathamr.__file__).parent, Path(mathamr_systems.__file__).parent
PLAIN = PRESETS["full"]


def config(study: Study, one: Condition, seed: int, preset: Preset = PLAIN) -> MathAMRConfig:
    shared: Artifacts = None  # type: ignore[assignment]
    return config_of(Setting(study, shared, ("2020",), (seed,), preset), one, seed)


def tables_of(study: Study) -> list[str]:
    return [number for _, numbers in study.published for number in numbers]


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize("study", [*PAPER, *ABLATIONS], ids=[study.name for study in (*PAPER, *ABLATIONS)])
def test_each_condition_is_a_valid_distinct_configuration(study: Study, preset) -> None:
    configs = [(config(study, c, 7, preset), c.recipe) for c in study.conditions]
    assert len(set(configs)) == len(configs)
    assert {made.training.seed for made, _ in configs} == {7}
    assert set(systems_of(study)) <= set(WAYS)


def test_every_table_of_results_in_the_paper_belongs_to_one_study() -> None:
    numbers = [number for study in PAPER for number in tables_of(study)]
    results = [number for number, table in published().tables.items() if table.view != "settings"]
    assert sorted(numbers) == sorted(results)
    assert len(results) == 16


@pytest.mark.parametrize("study", PAPER, ids=[study.name for study in PAPER])
def test_each_row_of_a_paper_study_is_a_row_of_the_paper_and_each_of_those_is_here(study: Study) -> None:
    cells = [row.published for row in study.rows]
    assert None not in cells
    assert len(set(cells)) == len(cells)
    for cell in cells:
        assert cell.table in tables_of(study)
        assert published().tables[cell.table].figure(cell.row, cell.column) is not None
    if study.name != "paper/4.19":
        assert {cell.row for cell in cells} == {name for name, _ in published().tables[cells[0].table].rows}


def test_the_conditions_and_baselines_are_the_papers() -> None:
    for study in PAPER:
        table = published().tables[tables_of(study)[0]]
        baselines = {row.published.row for row in study.rows if row.against is None}
        if table.baseline and table.number == "4.15":
            assert baselines == {"ColBERT MaxSim, HNSW"}
        elif table.baseline:
            assert baselines == {table.baseline}

    formulas = find_study("paper/4.7")
    assert [c.name for c in formulas.conditions] == ["None", "Both (OPT+SLT)", "OPT-only", "SLT-only"]
    assert config(formulas, formulas.conditions[0], 42) == MathAMRConfig.paper_experiments(formulas="none")
    loss = find_study("paper/4.17")
    assert [config(loss, c, 1).training.beta for c in loss.conditions] == [1.0, 0.7, 0.5, 0.3, 0.0]
    benchmark = find_study("paper/4.19")
    assert config(benchmark, benchmark.conditions[0], 42).bases == 256
    assert benchmark.task2  # tables 4.21 and 4.22 are of formulas


@pytest.mark.parametrize("study", ABLATIONS, ids=[study.name for study in ABLATIONS])
def test_an_ablation_asks_for_what_its_recipes_bring_and_has_a_model_without_message_passing(study: Study) -> None:
    assert any(config(study, c, 1).layers == 0 for c in study.conditions)
    for c in study.conditions:
        made = config(study, c, 1)
        assert (made.training.hard_negatives > 0) == (c.recipe.negatives != "none")
        assert (made.training.first_epochs > 0) == (c.recipe.pairs == "first")


def test_a_study_refuses_rows_that_it_does_not_have_and_an_unknown_name() -> None:
    one = condition("one")
    with pytest.raises(ConfigError, match="rows"):
        Study("s", "t", conditions=(one,), rows=(Row("two"),))
    with pytest.raises(ConfigError, match="against"):
        Study("s", "t", conditions=(one,), rows=(Row("one", against=("one", "ColBERT-style")),))
    with pytest.raises(ConfigError, match="conditions"):
        Study("s", "t", conditions=(one, one), rows=(Row("one"),))
    assert Study("s", "t", conditions=(one,), rows=(Row("one"),)).compared == ["one"]

    with pytest.raises(ConfigError, match=r"paper/4\.6.*ablation/layers"):
        find_study("paper/9.9")


def test_depth_shrinks_with_the_collection_and_never_below_ten() -> None:
    assert scaled_depth(33_771) == scaled_depth(1_000_000) == Depth()
    mini = scaled_depth(3_377)
    assert (mini.results, mini.candidates(1000), mini.candidates(5000)) == (100, 100, 500)
    assert scaled_depth(100).candidates(1000) == 10


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("0.497*", 0.497),
        ("0.494 ± 0.002", 0.494),
        ("5,653,808", 5653808.0),
        ("1e-4", 1e-4),
        ("–", None),
        ("Enabled", None),
    ],
)
def test_printed_cells_are_read(text: str, figure: float | None) -> None:
    table = PublishedTable("1", "", "mean", None, "row", ("value",), (("a", (text,)),))
    assert table.figure("a", "value") == figure


def test_the_papers_settings_match_the_configuration() -> None:
    for number, config in (("4.5", MathAMRConfig.paper_experiments()), ("4.18", MathAMRConfig.paper_benchmark())):
        table = published().tables[number]
        options = {
            "Hidden dimension": config.hidden,
            "Projection dimension": config.projection,
            "Number of layers": config.layers,
            "Number of bases": config.bases,
            "Batch size": config.training.batch_size,
            "Number of epochs": config.training.epochs,
            "Learning rate": config.training.learning_rate,
            "Minimum learning rate": config.training.min_learning_rate,
            "Weight decay": config.training.weight_decay,
            "Gradient clipping norm": config.training.clip,
            "Node mask probability": config.training.node_mask,
            "Edge dropout probability": config.training.edge_dropout,
        }
        for row, value in options.items():
            assert table.figure(row, "Value") == value, (number, row)
    assert published().tables["4.18"].figure("Auxiliary doc-level loss β", "Value") == 0.3


def test_published_figures_match_the_paper(shared_data: Path) -> None:
    text = (shared_data / "papers" / "000_ceb257e047fe4d6e.txt").read_text(encoding="utf-8")
    text = re.sub(r" *\\pm *", " ± ", text.replace("$", "")).replace("×10^{-", "e-").replace("}", "")
    for table in published().tables.values():
        assert table.caption.partition(".")[0].replace("*", "")[:60] in text.replace("*", "")
        for name, cells in table.rows:
            if table.view != "settings":
                assert "\t" + "\t".join(cells) in text, (table.number, name)
    cited = published().cited(published().tables["4.21"])
    assert len(cited) == 6
    assert cited[0].startswith("[60] Sumedh Vemuganti")
