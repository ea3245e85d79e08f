"""The scripts under examples/ run unchanged, each in an empty folder."""

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from tiny_colbert import tiny_colbert

from pyterrier_mathamr import MathAMRIndex

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAYS = {
    "late_interaction": ["222 documents", "| BM25 % 100 >> MaxSim |"],
    "quickstart": ["| BM25 % 100 >> scorer", "1. answer "],
    "rerank_terrier": ["| BM25 + MaxSim + document"],
    "train_variant": ["operator trees: epoch ", "attention: epoch ", "p-value corrected"],
}


def test_each_example_is_known_here() -> None:
    assert [path.stem for path in EXAMPLES] == sorted(SAYS)


@pytest.mark.filterwarnings("ignore:There are shared pipeline components")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_prints_its_results(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = []
    if path.stem == "late_interaction":
        pytest.importorskip("sentence_transformers", reason="the extra text is not installed")
        tiny_colbert(tmp_path / "model")
        arguments = [str(tmp_path / "model" / "colbert")]
    monkeypatch.setattr("sys.argv", [str(path), *arguments])
    runpy.run_path(str(path), run_name="__main__")
    output = capsys.readouterr().out
    assert all(words in output for words in SAYS[path.stem])


def test_an_index_of_a_multi_vector_model_gives_the_scores_of_the_model(tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="the extra text is not installed")
    tiny_colbert(tmp_path / "model")
    model = library.MultiVectorEncoder(str(tmp_path / "model" / "colbert"), device="cpu")
    texts = [f"the {word} of {other}" for word in ("sum", "limit", "norm", "rank") for other in "nxyzabk"]
    documents = model.encode_document(texts, convert_to_numpy=True)
    (query,) = model.encode_query(["a limit of x"], convert_to_numpy=True)
    index = MathAMRIndex(tmp_path / "index.mathamr")
    for mode, some in (("create", range(20)), ("append", range(20, len(texts)))):
        index.indexer(mode=mode).index({"docno": str(i), "doc_embs": documents[i]} for i in some)
    found = index.colbert()(pd.DataFrame({"qid": ["q"]}).assign(query_embs=[query]))
    scores = model.similarity([query], documents).numpy()[0]
    assert len(found) == len(texts)
    assert found["score"].to_numpy() == pytest.approx(scores[found["docno"].to_numpy(dtype=int)], abs=1e-5)
    assert np.all(np.diff(found["score"]) <= 0)


def test_the_examples_of_the_page_on_late_interaction_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    library = pytest.importorskip("sentence_transformers", minversion="6", reason="the extra text is not installed")
    page = (ROOT / "docs" / "archive" / "late-interaction.md").read_text("utf-8")
    tiny_colbert(tmp_path / "model")
    monkeypatch.chdir(tmp_path)

    class PyLate:  # which cannot be installed beside this release
        def __init__(self, name: str) -> None:
            self.model = library.MultiVectorEncoder(name, device="cpu")

        def encode(self, texts: list[str], *, is_query: bool) -> list[np.ndarray]:
            encode = self.model.encode_query if is_query else self.model.encode_document
            return encode(texts, convert_to_numpy=True)

    monkeypatch.setitem(sys.modules, "pylate", SimpleNamespace(models=SimpleNamespace(ColBERT=PyLate)))
    blocks, names = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.DOTALL), dict[str, object]()
    for code in blocks:
        exec(re.sub("(hf:)?lightonai/GTE-ModernColBERT-v1", "model/colbert", code), names)
    assert len(blocks) == capsys.readouterr().out.count("docno") == 2
    assert len(MathAMRIndex("late-interaction.mathamr")) == len(MathAMRIndex("pylate.mathamr")) == 222
