import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from mathamr_systems.experiments import ExperimentError
from mathamr_systems.experiments.stages import Stages


def make(path: Path, log: list[str]) -> Any:
    def build() -> None:
        log.append(path.name)
        path.write_text("made")

    return build


def test_a_finished_stage_is_not_done_again(tmp_path: Path) -> None:
    log: list[str] = []
    for resumed in (False, True):
        stages = Stages(tmp_path)
        stages.run("graphs", tmp_path / "g", {"parser": "a", "sizes": (1, 2)}, make(tmp_path / "g", log))
        assert [record.resumed for record in stages.records] == [resumed]
        assert stages.records[0].peak_mib > 1
    assert log == ["g"]


def test_a_stage_whose_artifact_is_gone_is_done_again(tmp_path: Path) -> None:
    log: list[str] = []
    Stages(tmp_path).run("graphs", tmp_path / "g", {}, make(tmp_path / "g", log))
    (tmp_path / "g").unlink()
    Stages(tmp_path).run("graphs", tmp_path / "g", {}, make(tmp_path / "g", log))
    assert log == ["g", "g"]


def test_other_settings_are_an_error_that_lists_the_changes(tmp_path: Path) -> None:
    log: list[str] = []
    Stages(tmp_path).run("train", tmp_path / "m", {"layers": 4, "seed": 1}, make(tmp_path / "m", log))
    with pytest.raises(ExperimentError) as caught:
        Stages(tmp_path).run("train", tmp_path / "m", {"layers": 2, "seed": 1}, make(tmp_path / "m", log))
    assert "layers was 4 and is now 2" in str(caught.value)
    assert "seed" not in str(caught.value)
    assert "delete" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert log == ["m"]


def test_changed_files_are_named_up_to_three_and_counted(tmp_path: Path) -> None:
    before, now = [f"old{i}" for i in range(50)], ["old0", *(f"new{i}" for i in range(101)), "old1"]

    def refused(before: list[str], now: list[str]) -> str:
        Stages(tmp_path).run("formulas", tmp_path, {"tables": before}, dict)
        with pytest.raises(ExperimentError) as caught:
            Stages(tmp_path).run("formulas", tmp_path, {"tables": now}, dict)
        (tmp_path / "stages" / "formulas.json").unlink()
        return str(caught.value)

    message = refused(before, now)
    assert "tables: removed 'old2', 'old3', 'old4' and 45 more, added 'new0', 'new1', 'new2' and 98 more." in message
    assert len(message) < 400 + len(str(tmp_path)) * 2
    assert "tables: the same in another order." in refused(before[:2], ["old1", "old0"])


def test_work_that_was_broken_off_is_taken_up_with_the_same_settings_only(tmp_path: Path) -> None:
    def broken() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Stages(tmp_path).run("train", tmp_path / "m", {"layers": 4}, broken)
    with pytest.raises(ExperimentError):
        Stages(tmp_path).run("train", tmp_path / "m", {"layers": 2}, broken)
    log: list[str] = []
    Stages(tmp_path).run("train", tmp_path / "m", {"layers": 4}, make(tmp_path / "m", log))
    assert log == ["m"]
    assert json.loads((tmp_path / "stages" / "train.json").read_text())["settings"] == {"layers": 4}
