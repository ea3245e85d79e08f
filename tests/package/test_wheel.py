"""What is shipped: the wheel holds the data that the package promises, and stays small."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    for name in filter(None, tracked.stdout.split("\0")):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--quiet",
        "-w",
        folder,
        source,
    ]
    subprocess.run([str(part) for part in command], check=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


@pytest.mark.parametrize(
    "name",
    [
        "py.typed",
        "pt_docs/index.rst",
        "data/sample/Posts.V1.3.xml",
        "data/sample/topics/Topics_Task1_sample.xml",
        "data/models/mathamr-plus-mini/config.json",
        "data/models/mathamr-plus-mini/weights.safetensors",
        "data/models/mathamr-plus-mini/README.md",
        "data/models/mathamr-plus-text/weights.safetensors",
        "data/models/mathamr-plus-text/README.md",
    ],
)
def test_the_wheel_holds(wheel: zipfile.ZipFile, name: str) -> None:
    assert f"pyterrier_mathamr/{name}" in wheel.namelist()


def test_the_bundled_models_take_at_most_15_mb_of_the_wheel(wheel: zipfile.ZipFile) -> None:
    packed = [info.compress_size for info in wheel.infolist() if "data/models/" in info.filename]
    assert 0 < sum(packed) <= 15_000_000


def test_the_wheel_holds_no_tests(wheel: zipfile.ZipFile) -> None:
    assert not [name for name in wheel.namelist() if name.startswith("tests/")]
