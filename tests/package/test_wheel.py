"""What is shipped: the wheel holds the data that the package promises, and stays small."""

import email
import os
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
        "engine/page/static/index.html",
        "engine/page/static/page.js",
        "data/sample/topics/Topics_Task1_sample.xml",
        "data/models/in-out-mini/in_out.json",
        "data/models/in-out-mini/weights.safetensors",
        "data/models/mathamr-plus-mini/config.json",
        "data/models/mathamr-plus-mini/weights.safetensors",
        "data/models/mathamr-plus-mini/README.md",
        "data/models/mathamr-plus-text/weights.safetensors",
        "data/models/mathamr-plus-text/README.md",
        "data/fitted/formula-systems.json",
        "data/minilm-math/weights.safetensors",
        "data/minilm-math/tokenizer.json",
        "data/minilm-math/README.md",
    ],
)
def test_the_wheel_holds(wheel: zipfile.ZipFile, name: str) -> None:
    assert f"pyterrier_mathamr/{name}" in wheel.namelist()


def metadata(wheel: zipfile.ZipFile, name: str) -> str:
    (found,) = [file for file in wheel.namelist() if file.endswith(f".dist-info/{name}")]
    return wheel.read(found).decode()


def noticed(wheel: zipfile.ZipFile) -> dict[str, str]:
    """The data files that NOTICE names, each with its licences: a line without indent begins some."""
    found, licence = {}, ""
    for line in metadata(wheel, "licenses/NOTICE").splitlines():
        if line.startswith("  ") and not line.startswith("   "):
            found[os.path.normpath(f"pyterrier_mathamr/data/{line.strip()}")] = licence
        elif line and not line.startswith(" "):
            licence = line.partition(" (")[0]
    return found


def test_notice_names_each_data_file_and_no_other(wheel: zipfile.ZipFile) -> None:
    data = [name for name in wheel.namelist() if name.startswith("pyterrier_mathamr/data/")]
    shipped = [*data, *(name for name in wheel.namelist() if name.endswith(".woff2"))]
    assert sorted(noticed(wheel)) == sorted(name for name in shipped if not name.endswith("/"))


def test_the_metadata_name_each_licence_and_the_wheel_has_its_text(wheel: zipfile.ZipFile) -> None:
    fields = email.message_from_string(metadata(wheel, "METADATA"))
    licences = {"Apache-2.0", *" AND ".join(noticed(wheel).values()).split(" AND ")}
    assert licences == {"Apache-2.0", "CC-BY-SA-4.0", "CC0-1.0", "GFDL-1.2-or-later", "MIT", "OFL-1.1"}
    assert set(fields["License-Expression"].split(" AND ")) == licences
    assert {"LICENSE", "NOTICE"} <= set(fields.get_all("License-File"))
    assert "Apache License" in metadata(wheel, "licenses/LICENSE")
    assert "Attribution-ShareAlike 4.0 International" in metadata(wheel, "licenses/LICENSES/CC-BY-SA-4.0.txt")
    assert "CC0 1.0 Universal" in metadata(wheel, "licenses/LICENSES/CC0-1.0.txt")
    assert "GNU Free Documentation License" in metadata(wheel, "licenses/LICENSES/GFDL-1.2.txt")
    assert "SIL OPEN FONT LICENSE" in metadata(wheel, "licenses/LICENSES/OFL-1.1.txt")


@pytest.mark.parametrize(("models", "most"), [("mathamr-plus-mini/", 10_000_000), ("", 22_000_000)])
def test_the_bundled_models_stay_small(wheel: zipfile.ZipFile, models: str, most: int) -> None:
    packed = [info.compress_size for info in wheel.infolist() if f"data/models/{models}" in info.filename]
    assert 0 < sum(packed) <= most


def test_the_wheel_holds_no_tests(wheel: zipfile.ZipFile) -> None:
    assert not [name for name in wheel.namelist() if name.startswith("tests/")]
