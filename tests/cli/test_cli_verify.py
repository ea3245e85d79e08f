"""``mathamr verify``: one line for each fault, one for what is sound."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pyterrier_mathamr.cli import main
from pyterrier_mathamr.store import Cache

DATA = Path(__file__).parent.parent / "data"


def verify(*paths: Path) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, paths)])


@pytest.fixture
def sound(tmp_path: Path) -> dict[str, Path]:
    for name in ("formula-store-format-2", "training-checkpoint-format-2"):
        shutil.copytree(DATA / name, tmp_path / name)
    shutil.copyfile(DATA / "cache-format-2.sqlite", tmp_path / "cache")
    model = DATA.parent.parent / "pyterrier_mathamr/data/models/mathamr-plus-text"
    shutil.copytree(model, tmp_path / "model")
    return {
        "formula_store.mathamr, 1 rows": tmp_path / "formula-store-format-2",
        "training_checkpoint.mathamr, 1 rows": tmp_path / "training-checkpoint-format-2/state",
        "cache, 1 values": tmp_path / "cache",
        "model 4582ade5": tmp_path / "model",
    }


def test_sound_artifacts_are_ok_with_their_counts_and_each_fault_is_a_line(
    sound: dict[str, Path], tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "damaged")
    cache.add({b"one": b"value 1", b"two": b"value 2"})
    cache.path.write_bytes(cache.path.read_bytes().replace(b"value 2", b"value 3"))
    result = verify(cache.path)
    assert (result.exit_code, result.output.count("BAD  ")) == (1, 1)
    result = verify(*sound.values())
    assert result.exit_code == 0, result.output
    for line, (contents, path) in zip(result.output.splitlines(), sound.items(), strict=True):
        assert line.startswith(f"ok   {path}: {contents}")
    for file in ("formulas.sqlite", "state.safetensors", "weights.safetensors", "vocabulary.json.gz"):
        (found,) = tmp_path.rglob(file)
        data = found.read_bytes()
        found.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    result = verify(*sound.values())
    lines = [line[:5] for line in result.output.splitlines()]
    assert (result.exit_code, lines.count("BAD  "), lines.count("ok   ")) == (1, 4, 1)
    assert "3 of 4 failed. Rebuild" in result.output


def test_a_foreign_artifact_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/pt_meta.json").write_text('{"type": "dense_index", "format": "flex"}')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/pt_meta.json").write_text("[" * 100_000)
    (tmp_path / "file").write_text("text")
    paths = [tmp_path / name for name in ("empty", "foreign", "broken", "file", "none")]
    result = verify(*paths)
    assert result.exit_code == 1
    lines = result.output.splitlines()
    for line, path in zip(lines, paths, strict=False):
        assert line.startswith("BAD  ")
        assert str(path) in line
    assert "dense_index.flex" in lines[1]
    assert verify(DATA / "formula-store-format-1.sqlite").exit_code == 1
