"""The troubleshooting page has the words of the errors that people see, and the errors still have them."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyterrier as pt
import pytest

import pyterrier_mathamr as mathamr
from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr.store import writer_lock

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
RANKING = pd.DataFrame([["1", "$x$", "no-such-post", 0, 1.0]], columns=["qid", "query", "docno", "rank", "score"])


def small_model(sample: SimpleNamespace) -> mathamr.MathAMR:
    config = mathamr.MathAMRConfig(hidden=16, projection=8, layers=1)
    return mathamr.MathAMR.untrained(config, sample.store.get_many(sample.store.ids()[:3]))


def locked(sample: SimpleNamespace) -> None:
    with writer_lock(sample.bm25.path.absolute()):
        sample.bm25.indexer("append").index([{"docno": "new", "text": "x"}])


def old_format(sample: SimpleNamespace) -> mathamr.BM25Index:
    shutil.copytree(sample.bm25.path, "old.bm25")
    meta = Path("old.bm25/pt_meta.json")
    meta.write_text(meta.read_text(encoding="utf-8").replace('"format_version": 3', '"format_version": 1'), "utf-8")
    return mathamr.BM25Index("old.bm25")


FAILURES: dict[str, Callable[[SimpleNamespace], object]] = {
    "is not installed; run: pip install 'pyterrier-mathamr[serve]'": lambda _: require("no_such_package", "serve"),
    "its vectors are from model": lambda sample: (
        sample.graphs >> small_model(sample).query_encoder() >> sample.index.colbert()
    ).search("$x$"),
    "it is neither a folder with a config.json nor one of the bundled models": (
        lambda _: mathamr.MathAMR.from_pretrained("mathamr-big")
    ),
    "no text; give one of html, body, text, contents, markdown, latex, not": lambda _: mathamr.SearchEngine.build(
        [{"docno": "a"}], "x.engine", model="mathamr-plus-mini", verbose=False
    ),
    "no id; give one of docno, id": lambda _: mathamr.SearchEngine.build(
        [{"text": "a"}], "x.engine", model="mathamr-plus-mini", verbose=False
    ),
    "its docno is missing": lambda _: mathamr.BM25Index("x.bm25").index([{"text": "a"}]),
    "1 id comes twice or is in it already": lambda sample: sample.bm25.indexer("append").index(sample.answers.head(1)),
    "1 id is not in it": lambda sample: (sample.encode >> sample.index.scorer())(RANKING),
    "blank queries find nothing": lambda sample: sample.bm25.search("  "),
    "queries that are not formulas find nothing": lambda sample: sample.tangent.search("two words"),
    "$ is never closed": lambda sample: sample.graphs([{"docno": "open", "text": "$x^2 is open"}]),
    "the index is empty: none of": lambda _: mathamr.TangentIndex("t.tangent").index([{"docno": "a", "text": "words"}]),
    "does not match required columns for this transformer. [TransformerMode(missing_columns=['query_embs']": (
        lambda sample: sample.index.colbert().search("$x$")
    ),
    "there is no finished": lambda _: mathamr.BM25Index("nothing.bm25").search("x"),
    "it has format": lambda sample: old_format(sample).search("x"),
    "it is being written by process": locked,
    "device='cuda' is not accepted; give None or 'cpu': torch finds 0 CUDA devices here.": (
        lambda sample: sample.index.colbert(device="cuda")
    ),
    "needs a local copy of the ARQMath release": lambda _: pt.get_dataset("irds:arqmath/2022/task1").get_topics(),
}


@pytest.mark.parametrize("words", FAILURES)
def test_an_error_has_the_words_that_the_page_explains(
    words: str, sample: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARQMATH_HOME", raising=False)
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert words in " ".join(PAGE.read_text(encoding="utf-8").split())
    with pytest.raises(Exception, match=re.escape(words)):
        FAILURES[words](sample)
