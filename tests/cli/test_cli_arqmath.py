"""`mathamr arqmath`: what a folder has, whether it is sound, what is packed, how large it is."""

import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import pyterrier_mathamr
from pyterrier_mathamr.cli import main

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["arqmath", *map(str, arguments)])


def test_status_names_what_is_there_and_where_the_rest_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = run("status", SAMPLE).output
    assert "present     posts" in output
    assert "Posts.V1.3.xml" in output
    assert "missing     topics 2022, task 1" in output
    assert "https://www.cs.rit.edu" in output
    monkeypatch.delenv("ARQMATH_HOME", raising=False)
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path))
    nowhere = run("status")
    assert (nowhere.exit_code, "ARQMATH_HOME" in nowhere.output) == (1, True)


def test_verify_ends_with_0_for_a_sound_copy_and_with_1_for_a_bad_one(tmp_path: Path) -> None:
    good = run("verify", SAMPLE, "-q")
    assert good.exit_code == 0, good.output
    assert "ok   posts: " in good.output
    (tmp_path / "Posts.V1.3.xml").write_text('<posts>\n<row Id="1" PostTypeId="1"/>\n<row Id="2" Post')
    bad = run("verify", tmp_path, "-q")
    assert bad.exit_code == 1
    assert "BAD  posts: 1 posts" in bad.output
    assert "is truncated" in bad.output
    (tmp_path / "Posts.V1.3.xml").unlink()
    assert run("verify", tmp_path, "-q").exit_code == 1


def test_convert_unpacks_and_reports_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "Posts.V1.3.zip", "w") as archive:
        archive.write(SAMPLE / "Posts.V1.3.xml", "Posts.V1.3.xml")
    assert "mathamr arqmath convert" in run("status", tmp_path).output
    assert run("convert", tmp_path, "-q").output == f"{tmp_path / 'Posts.V1.3.xml'}\n"
    assert "Nothing to unpack" in run("convert", tmp_path, "-q").output


def test_stats_are_shown_with_the_paper_s_and_a_fault_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setenv("ARQMATH_HOME", str(SAMPLE))
    output = run("stats", "-q").output
    assert [line.split()[-2:] for line in output.splitlines() if line.startswith("Task 1 topics")] == [["–", "78"]]
    assert "2,466,080" in output
    (tmp_path / "Posts.V1.3.xml").write_text('<posts>\n<row Id="1" PostTypeId="1"/>\n<row Id="2" Post')
    result = run("stats", tmp_path, "-q")
    assert result.exit_code == 0, result.output
    assert f"Warning: {tmp_path / 'Posts.V1.3.xml'}:3: " in result.stderr, "one line, without a place in the code"
