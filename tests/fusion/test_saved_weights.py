"""Files of learned weights: a checksum, one step, and errors that name what is wrong."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyterrier as pt
import pytest
from click.testing import CliRunner

from mathamr_systems import ListwiseRanker, PairwiseRanker
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.fusion import Ensemble, LinearBlend, WeightsError
from pyterrier_mathamr.store import WriteError, signed

SYSTEM = pt.Transformer.from_df(pd.DataFrame({"qid": ["1"], "docno": ["a"], "score": [1.0], "rank": [0]}))


class Saved(NamedTuple):
    """An object to save, and how to load it."""

    thing: Any
    load: Callable[[Path], Any]


KINDS = {
    "blend": Saved(LinearBlend((SYSTEM,), weights=(0.25, 3.0)), lambda path: LinearBlend.load(path, (SYSTEM,))),
    "ensemble": Saved(
        Ensemble(SYSTEM, SYSTEM, names=["words", "graph"], weight=[0.5, 2.0]),
        lambda path: Ensemble.load(path, {"words": SYSTEM, "graph": SYSTEM}),
    ),
    "ranker": Saved(PairwiseRanker(0.5, names=["a", "b"], weights=[1.0, -2.0]), PairwiseRanker.load),
    "listwise": Saved(ListwiseRanker(weights=[1.0, 2.0]), ListwiseRanker.load),
}

ODD_VALUES = [None, -1, 10**400, float("nan"), [], [None], {}, {"a": []}, "", "../../outside", True, [True], [10**400]]


@pytest.fixture(params=KINDS)
def saved(request: pytest.FixtureRequest) -> Saved:
    return KINDS[request.param]


def learned(thing: Any) -> object:
    return thing.weight if isinstance(thing, Ensemble) else thing.weights


def verify(path: Path) -> str:
    return CliRunner().invoke(main, ["verify", str(path)]).output


def test_saved_weights_are_read_again_and_verified(saved: Saved, tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    file.write_text("an older file")
    saved.thing.save(file)
    assert [entry.name for entry in tmp_path.iterdir()] == ["it.json"]
    assert learned(saved.load(file)) == learned(saved.thing)
    assert verify(file) == f"ok   {file}: {type(saved.thing).__name__}\n"


def test_each_changed_byte_and_another_format_is_a_named_error_and_a_fault(saved: Saved, tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    saved.thing.save(file)
    whole = file.read_bytes()
    changed = [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in range(0, len(whole), 3)]
    for number, data in enumerate([*changed, *(whole[:end] for end in range(0, len(whole), 17))]):
        file.write_bytes(data)
        with pytest.raises(WeightsError, match=r"it\.json"):
            saved.load(file)
        if number % 50 == 0:
            assert verify(file).startswith("BAD  "), data
    file.write_bytes(signed({**json.loads(whole), "format": 1}))
    with pytest.raises(WeightsError, match="format 1, but this release reads 2"):
        saved.load(file)
    assert verify(file).startswith("BAD  ")


def test_a_field_that_is_missing_or_mistyped_is_a_named_error(saved: Saved, tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    saved.thing.save(file)
    whole = json.loads(file.read_bytes())
    del whole["checksum"]
    for name in whole:
        file.write_bytes(signed({key: value for key, value in whole.items() if key != name}))
        if name in ("weights", "type", "format", "coverage"):
            with pytest.raises(WeightsError, match=name):
                saved.load(file)
        for value in ODD_VALUES:
            file.write_bytes(signed({**whole, name: value}))
            with suppress(WeightsError):  # and nothing else; some values are right, such as no weights of no parts
                saved.load(file)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, blend = tmp_path / "it.json", KINDS["blend"].thing
    blend.save(file)
    before = file.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyterrier_mathamr.store.files.sync_file", full)
    with pytest.raises(WriteError, match="No space left"):
        blend.save(file)
    assert file.read_bytes() == before


def test_a_file_of_another_class_is_refused(tmp_path: Path) -> None:
    KINDS["ranker"].thing.save(tmp_path / "it.json")
    for name in ("blend", "ensemble", "listwise"):
        with pytest.raises(WeightsError, match="'PairwiseRanker'"):
            KINDS[name].load(tmp_path / "it.json")
