"""Every registered kind of artifact and model is verified and described, and its damage is found."""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pyterrier as pt
import pytest
from click.testing import CliRunner

import mathamr_systems
import pyterrier_mathamr as mathamr
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.store import StoredArtifact

sys.path.append(str(Path(__file__).parents[1] / "store"))
from artifact_modules import NAMES, load

PACKAGES = ("pyterrier_mathamr", "mathamr_systems")


def ours(group: str) -> dict[str, EntryPoint]:
    found = entry_points(group=group)
    return {each.name: each for each in found if each.value.startswith(PACKAGES)}


def built_artifacts() -> dict[str, Callable[[Path], Path]]:
    def build(module: str, folder: Path) -> Path:
        load(module).build(folder / "it", range(2))
        return folder / "it"

    found = {}
    for name in NAMES:
        kind = load(name).open(Path("nowhere"))
        found[f"{kind.ARTIFACT_TYPE}.{kind.ARTIFACT_FORMAT}"] = lambda folder, name=name: build(name, folder)
    return found


def mathamr_model(folder: Path) -> Path:
    mathamr.MathAMR.from_pretrained("mathamr-plus-mini").save(folder / "model")
    return folder / "model"


def in_out(folder: Path) -> Path:
    formulas = [mathamr.formula.trees_from_latex("x+y=1")]
    mathamr_systems.InOut.new(formulas, mathamr_systems.InOutOptions(width=16)).save(folder / "model")
    return folder / "model"


def colbert(folder: Path) -> Path:
    from tiny_colbert import tiny_colbert

    tiny_colbert(folder / "of")
    return folder / "of" / "colbert"


def marf(folder: Path) -> Path:
    from marf_stand_in import save_marf

    return save_marf(folder)


def two_step(folder: Path) -> Path:
    from tiny_colbert import tiny_colbert

    from mathamr_systems.two_step import QQSim

    tiny_colbert(folder / "of")
    QQSim.new(folder / "of", max_length=9).save(folder / "model")
    return folder / "model"


BUILT_MODELS = {"mathamr": mathamr_model, "in_out": in_out, "colbert": colbert, "marf": marf, "two_step": two_step}
NEEDED = {"colbert": "sentence_transformers", "two_step": "sentence_transformers", "marf": "transformers"}
BUILT_ARTIFACTS = built_artifacts()


def verify(path: Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["verify", "--quiet", str(path)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def damages(path: Path) -> Iterator[str]:
    """Damage one file of each name after the other, in three ways by turns; each is repaired before the next."""
    files = {file.name: file for file in sorted(path.rglob("*")) if file.is_file() and file.stat().st_size}
    for number, file in enumerate(files.values()):
        data = file.read_bytes()
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        how, damaged = (("flipped", flipped), ("truncated", data[:-1]), ("deleted", None))[number % 3]
        file.unlink()  # not through a link to another file
        if damaged is not None:
            file.write_bytes(damaged)
        yield f"{file.relative_to(path)} {how}"
        file.unlink(missing_ok=True)
        file.write_bytes(data)


def check(path: Path, description: str) -> None:
    code, output = verify(path)
    assert (code, output.startswith(f"ok   {path}: {description}")) == (0, True), output
    for damage in damages(path):
        code, output = verify(path)
        assert (code, output.startswith("BAD  ")) == (1, True), f"{damage}: {output}"
    assert verify(path)[0] == 0


def test_each_registered_kind_is_built_here() -> None:
    assert set(ours("pyterrier.artifact")) == set(BUILT_ARTIFACTS) - {"toy.mathamr"}
    assert set(ours("mathamr_models")) == set(BUILT_MODELS)


def test_each_kind_that_the_package_writes_is_registered() -> None:
    for package in (mathamr, mathamr_systems):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    kinds, found = [StoredArtifact], {mathamr.SearchEngine, mathamr.ShardedIndex}
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        found |= {kind} if "KIND" in vars(kind) and kind.__module__.startswith(PACKAGES) else set()
    names = {f"{kind.ARTIFACT_TYPE}.{kind.ARTIFACT_FORMAT}": kind for kind in found}
    assert {name: each.load() for name, each in ours("pyterrier.artifact").items()} == names


@pytest.mark.parametrize("name", ours("pyterrier.artifact"))
def test_an_artifact_is_opened_by_its_entry_point_verified_described_and_its_damage_found(
    name: str, tmp_path: Path
) -> None:
    path = BUILT_ARTIFACTS[name](tmp_path)
    assert type(pt.Artifact.load(str(path))) is ours("pyterrier.artifact")[name].load()
    check(path, f"{name}, ")


@pytest.mark.parametrize("name", ours("mathamr_models"))
def test_a_model_is_verified_described_and_its_damage_found(name: str, tmp_path: Path) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    kind = ours("mathamr_models")[name].load()
    path = BUILT_MODELS[name](tmp_path)
    check(path, kind.described(path))


def test_an_artifact_of_others_is_named_with_the_kinds_that_are_known(tmp_path: Path) -> None:
    (tmp_path / "pt_meta.json").write_text('{"type": "dense_index", "format": "other"}')
    code, output = verify(tmp_path)
    assert code == 1
    assert "unknown artifact type `dense_index.other`; this installation knows: " in output
    assert "sparse_index.mathamr_patterns" in output
    assert "mode=" not in output
