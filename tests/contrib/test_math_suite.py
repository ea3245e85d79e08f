"""The MATH suite for SuiteEval runs, reads BEIR's layout, and drops a query's own document where that is no answer."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import ir_datasets
import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr import BM25Index
from pyterrier_mathamr.posts import BeirFolder

SUITE = Path(__file__).parents[2] / "contrib" / "suiteeval" / "overlay" / "suiteeval" / "suite" / "math.py"


@pytest.fixture(scope="module")
def suite() -> ModuleType:
    pytest.importorskip("suiteeval", reason="suiteeval is not installed (extra test)")
    found = importlib.util.spec_from_file_location("suiteeval.suite.math", SUITE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def write(folder: Path, documents: dict[str, str], queries: dict[str, str], qrels: list[tuple[str, str]]) -> Path:
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", documents), ("queries", queries)):
        lines = [json.dumps({"_id": key, "title": "", "text": text}) for key, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{query}\t{document}\t1\n" for query, document in qrels)
    )
    return folder


@pytest.fixture
def folders(suite: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    texts = {"a": "alpha beta", "b": "alpha beta delta epsilon", "c": "gamma"}
    for name in suite.datasets:
        # in two collections queries are documents: in one a query's own document is relevant, in the other it is not
        own = {"a": "alpha beta"}
        queries, qrels = {
            "math/statement-to-proof": (own, [("a", "a")]),
            "math/formula-concepts": (own, [("a", "b")]),
        }.get(name, ({"q": "gamma"}, [("q", "c")]))
        suite.use_folder(name, write(tmp_path / name.rpartition("/")[2], texts, queries, qrels))
    return tmp_path


def pipelines(context: Any) -> Iterator[tuple[pt.Transformer, str]]:
    index = BM25Index(f"{context.path}/bm25")
    index.indexer().index(context.get_corpus_iter(verbose=False))
    yield index.retriever(), "BM25"


def test_a_query_does_not_find_itself_unless_that_is_the_answer(suite: ModuleType, folders: Path) -> None:
    found = suite.MATH(pipelines)
    values = {row[3]: row[1:3] for row in found.itertuples(index=False)}
    assert list(found.columns) == ["name", "nDCG@10", "RR@10", "dataset"]
    assert set(values) == {*suite.datasets, "Overall"}
    assert all(value == pytest.approx((1.0, 1.0)) for value in values.values())


def test_one_collection_and_tests_of_significance(suite: ModuleType, folders: Path) -> None:
    def two(context: Any) -> Iterator[tuple[pt.Transformer, str]]:
        for pipeline, name in pipelines(context):
            yield pipeline, name
            yield pipeline % 2, "the best two"

    found = suite.MATH(two, subset="math/formula-concepts", baseline=0)
    assert list(found["name"]) == ["BM25", "the best two"] * 2  # and overall
    assert "nDCG@10 p-value" in found


def test_documents_are_looked_up_in_the_home_of_ir_datasets(suite: ModuleType, folders: Path) -> None:
    dataset = pt.get_dataset("irds:math/formula-concepts")
    frame = pd.DataFrame({"qid": ["q"], "docno": ["c"]})
    assert list(dataset.text_loader("text")(frame)["text"]) == ["gamma"]
    assert [path.suffix for path in (folders / "home" / "math").iterdir()] == [".pklz4"]
    assert sorted(path.name for path in (folders / "formula-concepts").iterdir()) == [
        "corpus.jsonl",
        "qrels",
        "queries.jsonl",
    ]


def test_a_collection_that_is_not_there_is_named_with_its_place(
    suite: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite._File, "folders", {})
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"math/statement-to-proof/corpus\.jsonl"):
        list(ir_datasets.load("math/statement-to-proof").docs_iter())
    with pytest.raises(ValueError, match="'math/other' is none of the collections"):
        suite.use_folder("math/other", tmp_path)


@pytest.mark.parametrize("name", ["planetmath-defines", "statement-to-proof", "mathlibqr-styles", "formula-concepts"])
def test_the_suite_reads_the_judges_as_this_package_does(suite: ModuleType, shared_data: Path, name: str) -> None:
    folder = shared_data / "judges" / name
    suite.use_folder(f"math/{name}", folder)
    dataset, ours = ir_datasets.load(f"math/{name}"), BeirFolder(folder)
    texts = {doc.doc_id: (doc.title, doc.text) for doc in dataset.docs_iter()}
    assert texts == {doc["docno"]: (doc.get("title", ""), doc["text"]) for doc in ours.documents()}
    assert {query.query_id: query.text for query in dataset.queries_iter()} == dict(ours.queries())
    qrels = [(qrel.query_id, qrel.doc_id, qrel.relevance) for qrel in dataset.qrels_iter()]
    assert qrels == [tuple(row) for row in ours.judgments("test")]
