"""The contents of source distribution and wheel: they hold the data that the package promises, and stay small."""

import email
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LARGEST = 50_000_000  # bytes of a file on PyPI


def built(folder: Path, below: str) -> Path:
    """What git tracks below a folder of the repository as a source distribution, and the wheel that is built of it."""
    source = folder / "source"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT / below, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    for name in filter(None, tracked.stdout.split("\0")):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / below / name).read_bytes())
    # `make dist` does the same in environments of their own, which need the network
    backend = f"import setuptools.build_meta; setuptools.build_meta.build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", backend], cwd=source, check=True, capture_output=True)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", folder]
    subprocess.run([str(part) for part in (*command, next(folder.glob("*.tar.gz")))], check=True)
    return folder


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("dist"), ".")


@pytest.fixture(scope="module")
def wheel(dist: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(dist.glob("*.whl")))


@pytest.fixture(scope="module")
def sdist(dist: Path) -> list[str]:
    """The files of the source distribution, by their paths below its only folder."""
    with tarfile.open(next(dist.glob("*.tar.gz"))) as tar:
        return [member.name.partition("/")[2] for member in tar.getmembers() if member.isfile()]


MODELS = ("mathamr-plus-mini", "mathamr-plus-text", "mathamr-plus-text-large")
HELD = {
    *("py.typed", "pt_docs/index.rst", "engine/page/static/index.html", "engine/page/static/page.js"),
    *("data/sample/Posts.V1.3.xml", "data/sample/topics/Topics_Task1_sample.xml", "data/stop-words/terrier.txt"),
    *(f"data/minilm-math/{name}" for name in ("weights.safetensors", "tokenizer.json", "README.md")),
    *(f"data/mpnet-math/{name}" for name in ("changes.safetensors", "README.md")),
    *(f"data/models/{model}/{name}" for model in MODELS for name in ("config.json", "weights.safetensors")),
    *(f"data/models/{model}/README.md" for model in MODELS),
}


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert {f"pyterrier_mathamr/{name}" for name in HELD} <= set(names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"pyterrier_mathamr"}


def metadata(wheel: zipfile.ZipFile, name: str) -> str:
    (found,) = [file for file in wheel.namelist() if file.endswith(f".dist-info/{name}")]
    return wheel.read(found).decode()


def noticed(wheel: zipfile.ZipFile) -> dict[str, str]:
    """The data files that NOTICE names, each with its licenses: a line without indent begins some."""
    found, license = {}, ""
    for line in metadata(wheel, "licenses/NOTICE").splitlines():
        if line.startswith("  ") and not line.startswith("   "):
            found[os.path.normpath(f"pyterrier_mathamr/data/{line.strip()}")] = license
        elif line and not line.startswith(" "):
            license = line.partition(" (")[0]
    return found


def test_notice_names_each_data_file_and_no_other(wheel: zipfile.ZipFile) -> None:
    data = [name for name in wheel.namelist() if name.startswith("pyterrier_mathamr/data/")]
    shipped = [*data, *(name for name in wheel.namelist() if name.endswith(".woff2"))]
    assert sorted(noticed(wheel)) == sorted(name for name in shipped if not name.endswith("/"))


def test_the_metadata_name_each_licence_and_the_wheel_has_its_text(wheel: zipfile.ZipFile) -> None:
    fields = email.message_from_string(metadata(wheel, "METADATA"))
    licenses = {"Apache-2.0", *" AND ".join(noticed(wheel).values()).split(" AND ")}
    assert licenses == {"Apache-2.0", "CC-BY-SA-4.0", "CC0-1.0", "GFDL-1.2-or-later", "MIT", "MPL-1.1", "OFL-1.1"}
    assert set(fields["License-Expression"].split(" AND ")) == licenses
    assert {"LICENSE", "NOTICE"} <= set(fields.get_all("License-File"))
    for file, title in {
        "LICENSE": "Apache License",
        "LICENSES/CC-BY-SA-4.0.txt": "Attribution-ShareAlike 4.0 International",
        "LICENSES/CC0-1.0.txt": "CC0 1.0 Universal",
        "LICENSES/GFDL-1.2.txt": "GNU Free Documentation License",
        "LICENSES/MPL-1.1.txt": "MOZILLA PUBLIC LICENSE",
        "LICENSES/OFL-1.1.txt": "SIL OPEN FONT LICENSE",
    }.items():
        assert title in metadata(wheel, f"licenses/{file}")


def test_the_source_distribution_holds_the_package_of_the_wheel_and_what_describes_it(
    sdist: list[str], wheel: zipfile.ZipFile
) -> None:
    others = sorted(name for name in sdist if not name.startswith(("pyterrier_mathamr", "LICENSES/")))
    described = ["CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "NOTICE", "PKG-INFO", "README.md"]
    assert others == [*described, "constraints.txt", "pyproject.toml", "setup.cfg"]
    package = {name for name in sdist if name.startswith("pyterrier_mathamr/")}
    assert package == {name for name in wheel.namelist() if name.startswith("pyterrier_mathamr/")}
    version = email.message_from_string(metadata(wheel, "METADATA"))["Version"]
    assert f"\n## [{version}] - " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_both_and_the_bundled_models_are_small_and_twine_accepts_them(dist: Path, wheel: zipfile.ZipFile) -> None:
    for models, most in (("mathamr-plus-mini/", 10_000_000), ("", 22_000_000)):
        packed = [info.compress_size for info in wheel.infolist() if f"data/models/{models}" in info.filename]
        assert 0 < sum(packed) <= most
    files = [path for path in dist.iterdir() if path.is_file()]
    assert len(files) == 2
    assert max(path.stat().st_size for path in files) <= LARGEST
    pytest.importorskip("twine", reason="twine is not installed (extra test)")
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, files)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(built(tmp_path_factory.mktemp("systems"), "systems").glob("*.whl")))


def test_the_wheel_of_the_systems_holds_them_and_their_data_of_the_same_release(
    wheel: zipfile.ZipFile, systems: zipfile.ZipFile
) -> None:
    names = systems.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {
        "mathamr_systems",
        "pyterrier_mathamr_systems",
    }
    data = [name for name in names if name.startswith("mathamr_systems/data/")]
    assert {name.replace("mathamr_systems", "pyterrier_mathamr") for name in data} == set(noticed(systems))
    assert {"mathamr_systems/py.typed", "mathamr_systems/__init__.pyi"} <= set(names)
    fields, own = (email.message_from_string(metadata(one, "METADATA")) for one in (wheel, systems))
    assert own["Version"] == fields["Version"]
    assert "pyterrier-mathamr" in own.get_all("Requires-Dist")
