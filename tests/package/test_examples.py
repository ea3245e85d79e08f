"""The scripts under examples/ run unchanged, each in an empty folder."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
SAYS = {
    "quickstart": ["| BM25 % 100 >> scorer", "1. answer "],
    "rerank_terrier": ["| BM25 + MaxSim + document"],
    "train_variant": ["operator trees: epoch ", "p-value corrected"],
}


def test_each_example_is_known_here() -> None:
    assert [path.stem for path in EXAMPLES] == sorted(SAYS)


@pytest.mark.filterwarnings("ignore:There are shared pipeline components")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_prints_its_results(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("Stemmer", reason="the extra bm25 is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    output = capsys.readouterr().out
    assert all(words in output for words in SAYS[path.stem])
