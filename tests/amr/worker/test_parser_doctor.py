"""The doctor's findings on a foreign environment, and the neural parsers from the command line."""

import json
import sys

import pytest
from click.testing import CliRunner
from folder_bytes import folder_bytes

from mathamr_systems import examine
from pyterrier_mathamr.cli import main

PACKAGES = {"transition-neural-parser": "0.5.4", "torch": "1.13.1+cu117", "numpy": "1.22.0", "fairseq": "0.10.2",
            "torch-scatter": "2.1.1"}  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def install(folder, packages):
    for name, version in packages.items():
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if "torch" in packages:
        (folder / "torch.py").write_text("class cuda:\n    device_count = staticmethod(lambda: 2)\n")


@pytest.fixture
def torch_home(tmp_path, monkeypatch):
    home = tmp_path / "torch"
    monkeypatch.setenv("TORCH_HOME", str(home))
    return home


def files_of_the_parser(home):
    folder = home / "DATA/AMR3.0/models/both_doc+sen_trainsliding_ws400x100/seed42"
    own = (folder / "checkpoint_smatch_top5-avg.pt", folder / "machine_config.json")
    for file in (*own, home / "hub/pytorch_fairseq_main/hubconf.py", home / "pytorch_fairseq/0123.4567/model.pt"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def test_a_whole_environment_is_found_whole_and_a_broken_one_is_reported_with_the_reason(
    foreign_python, tmp_path, torch_home
):
    install(tmp_path / "packages", PACKAGES)
    files_of_the_parser(torch_home)
    findings = examine("transition", str(foreign_python))
    assert [finding.what for finding in findings if not finding.good and finding.needed] == []
    listed = " | ".join(finding.what for finding in findings)
    assert "torch 1.13.1+cu117 | numpy 1.22.0 | fairseq 0.10.2" in listed
    assert "it can be imported | 2 CUDA devices" in listed
    assert listed.endswith("model.pt")
    result = run("doctor", "--python", foreign_python)
    assert result.exit_code == 0, result.output
    assert "MISSING" not in result.output
    (tmp_path / "packages/torch.py").write_text("raise OSError('libcudart.so.11.0: cannot open shared object file')\n")
    bad = [finding.what for finding in examine("transition", str(foreign_python)) if not finding.good]
    assert "importing it fails: OSError: libcudart.so.11.0: cannot open shared object file" in bad


@pytest.mark.parametrize(
    ("change", "remedy"),
    [({"fairseq": None}, "pip install fairseq==0.10.2"),
     ({"torch-scatter": None}, "pip install torch-scatter==2.1.1 -f https://data.pyg.org/whl/torch-1.13.1+cu117.html"),
     ({"numpy": "1.24.1"}, "at most 1.23.5: pip install numpy==1.23.5"),
     ({"torch": "2.4.0"}, "pip install torch==1.13.1"),
     ({"transition-neural-parser": "0.6.0"}, "pip install transition-neural-parser==0.5.4")],
)  # fmt: skip
def test_missing_parts_and_wrong_versions_are_named_with_a_remedy(foreign_python, tmp_path, torch_home, change, remedy):
    files_of_the_parser(torch_home)
    install(tmp_path / "packages", {name: found for name, found in {**PACKAGES, **change}.items() if found})
    (finding,) = [finding for finding in examine("transition", str(foreign_python))
                  if finding.needed and not finding.good]  # fmt: skip
    assert next(iter(change)) in finding.what
    assert finding.remedy.endswith(remedy)
    result = run("doctor", "--python", foreign_python)
    assert result.exit_code == 1
    assert f"MISSING  {finding.what}\n         {finding.remedy}\n" in result.output
    assert result.output.endswith("The parser transition cannot run yet. Install the parts listed as MISSING above.\n")


def test_weights_that_the_first_parse_downloads_are_a_note(foreign_python, tmp_path, torch_home):
    install(tmp_path / "packages", PACKAGES)
    result = run("doctor", "--python", foreign_python)
    assert result.exit_code == 0
    assert result.output.count("the first parse downloads") == 3
    assert "machine_config" not in result.output
    given = run("doctor", "--python", foreign_python, "--model", tmp_path / "own/checkpoint.pt")
    assert given.exit_code == 1
    assert f"MISSING  nothing at {tmp_path}/own/checkpoint.pt" in given.output


def test_an_interpreter_that_is_none_is_named(tmp_path, broken_python, monkeypatch):
    assert "cannot be run" in run("doctor", "--python", tmp_path / "nowhere").output
    echo = tmp_path / "echo"
    echo.write_text("#!/bin/sh\necho something else\n")
    echo.chmod(0o755)
    assert "does not run the worker" in run("doctor", "--python", echo).output
    monkeypatch.delenv("MATHAMR_TRANSITION_PYTHON", raising=False)
    assert "pass --python or set MATHAMR_TRANSITION_PYTHON" in run("doctor", "--parser", "transition").output


def test_without_arguments_every_parser_is_examined(monkeypatch):
    monkeypatch.delenv("MATHAMR_TRANSITION_PYTHON", raising=False)
    result = run("doctor")
    assert result.exit_code == 0, result.output
    assert "parser dependency\nok       the embedded parser works" in result.output
    assert "parser transition\nMISSING  no interpreter was given" in result.output
    assert f"parser amrlib\nok       {sys.executable} is Python" in result.output
    assert run("doctor", "--parser", "dependency").exit_code == 0
    assert run("doctor", "--parser", "transition").exit_code == 1


def test_amrlib_in_this_environment_or_another(foreign_python, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model/amrlib_meta.json").touch()
    install(tmp_path / "packages", {"amrlib": "0.7.1", "torch": "2.4.0", "transformers": "4.40.0", "penman": "1.3.0"})
    found = examine("amrlib", str(foreign_python), str(tmp_path / "model"))
    remedies = [finding.remedy for finding in found if finding.needed and not finding.good]
    assert remedies == ["pip install 'amrlib>=0.8.1'"]
    missing = examine("amrlib", str(foreign_python), str(tmp_path / "none"))
    assert f"nothing at {tmp_path}/none/amrlib_meta.json" in [finding.what for finding in missing]


@pytest.fixture
def pair_file(tmp_path):
    pairs = [{"qid": f"q{i}", "question": f"Slow is ${i}x$. Why is it?", "aid": f"a{i}",
              "answer": "Fail it does." if i % 5 == 0 else f"Number {i} by ${i}$."} for i in range(12)]  # fmt: skip
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    return path


@pytest.mark.filterwarnings("default::pyterrier_mathamr._common.errors.MathAMRWarning")
def test_graphs_are_built_from_the_command_line_and_their_parses_kept(foreign_python, marks, pair_file, tmp_path):
    options = ["--parser", "transition", "--parser-python", foreign_python, "--parser-device", "cpu", "-q"]
    done = run("graphs", pair_file, "-o", tmp_path / "first", *options)
    assert done.exit_code == 0, done.output
    assert "the embedded parser is used" in done.output
    assert "24 graphs\nThe parser failed on 1 text; the embedded one parsed them" in done.output
    (tmp_path / "first.parses").rename(tmp_path / "second.parses")
    (marks / "parsed").unlink()
    assert run("graphs", pair_file, "-o", tmp_path / "second", *options).exit_code == 0
    assert not (marks / "parsed").exists()
    assert folder_bytes(tmp_path / "second") == folder_bytes(tmp_path / "first")


def test_the_embedded_parser_accepts_no_options_of_the_others(pair_file, tmp_path):
    refused = run("graphs", pair_file, "-o", tmp_path / "graphs", "--parser-device", "cpu")
    assert refused.exit_code == 2
    assert "--parser-device" in refused.output
    unknown = run("graphs", pair_file, "-o", tmp_path / "graphs", "--parser", "tea-leaves", "-q")
    assert unknown.exit_code == 1
    assert "'dependency', 'amrlib', 'transition'" in unknown.output
