"""Pipelines as search models of MTEB, on a task that is written here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

mteb = pytest.importorskip("mteb", reason="the extra mteb is not installed", exc_type=ImportError)

from mathamr_systems.experiments import MTEBSearch  # noqa: E402
from pyterrier_mathamr._common.errors import ConfigError  # noqa: E402

CORPUS = [
    {"id": "sum", "title": "Series", "text": "The sum of a geometric series $\\sum_k q^k$ is $\\frac{1}{1-q}$."},
    {"id": "prime", "title": "", "text": "There are infinitely many primes $p$."},
    {"id": "limit", "title": "", "text": "The limit of $\\frac{\\sin x}{x}$ at zero is one."},
    {"id": "blank", "title": "", "text": ""},
]
QUERIES = [{"id": "a", "text": "sum of a geometric series"}, {"id": "b", "text": "how many primes are there"}]
RIGHT = {"a": {"sum": 1}, "b": {"prime": 1}}


def search(model: MTEBSearch, **options: Any) -> dict[str, dict[str, float]]:
    model.index(CORPUS, task_metadata=None, hf_split="test", hf_subset="default", encode_kwargs={}, num_proc=None)
    return model.search(QUERIES, **{"top_k": 10, "encode_kwargs": {}, "num_proc": None, **options})


def tiny_task() -> Any:
    """Define a retrieval task whose data are in this file."""
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    class TinyMath(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = TaskMetadata(
            name="TinyMath",
            description="Three texts",
            reference=None,
            dataset={"path": "nowhere/at-all", "revision": "1"},
            type="Retrieval",
            category="t2t",
            modalities=["text"],
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="ndcg_at_10",
            date=None,
            domains=None,
            task_subtypes=None,
            license=None,
            annotations_creators=None,
            dialect=None,
            sample_creation=None,
            bibtex_citation=None,
        )

        def load_data(self, *arguments: object, **options: object) -> None:
            split = {
                "corpus": Dataset.from_list(CORPUS),
                "queries": Dataset.from_list(QUERIES),
                "relevant_docs": RIGHT,
                "top_ranked": None,
            }
            self.dataset = {"default": {"test": split}}
            self.data_loaded = True

    return TinyMath()


@pytest.mark.parametrize("way", ["bm25", "fused"])
def test_mteb_measures_a_pipeline(way: Any) -> None:
    model = MTEBSearch.of_model(way=way)
    from mteb.models import SearchProtocol

    assert isinstance(model, SearchProtocol)
    result = mteb.evaluate(model, tiny_task(), cache=None, show_progress_bar=False, co2_tracker=False)
    scores = result.task_results[0].scores["test"][0]
    assert scores["ndcg_at_10"] == pytest.approx(1.0)
    assert model.mteb_model_meta.name == f"mathamr/mathamr-plus-text-{way}"


@pytest.mark.parametrize("way", ["single", "colbert"])
def test_each_way_to_search_finds_documents_for_each_query(way: Any, tmp_path: Path) -> None:
    model = MTEBSearch.of_model(way=way, workdir=tmp_path, meta={"training_datasets": {"ARQMath"}})
    found = search(model)
    assert set(found) == {"a", "b"}
    assert all({"sum", "prime", "limit"} <= set(scores) for scores in found.values())
    assert list(tmp_path.glob("corpus-*/documents.mathamr"))
    assert model.mteb_model_meta.training_datasets == {"ARQMath"}


def test_search_returns_the_best_or_what_is_to_be_reranked() -> None:
    found = search(MTEBSearch.of_model(way="bm25"), top_k=1)
    assert {qid: list(scores) for qid, scores in found.items()} == {"a": ["sum"], "b": ["prime"]}

    asked = {"a": ["blank", "sum", "prime"], "b": ["blank", "limit"]}
    found = search(MTEBSearch.of_model(way="bm25"), top_ranked=asked)
    assert {qid: set(scores) for qid, scores in found.items()} == {qid: set(docnos) for qid, docnos in asked.items()}
    ordered = sorted(found["a"], key=found["a"].__getitem__, reverse=True)
    assert ordered[0] == "sum"
    assert found["b"]["blank"] > found["b"]["limit"]  # neither is found: they stay in their order

    with pytest.raises(ConfigError, match="bm25, single, colbert, fused"):
        MTEBSearch.of_model(way="magic")  # type: ignore[arg-type]


def test_any_pipeline_can_be_measured_and_a_second_corpus_replaces_the_first() -> None:
    seen: list[list[Mapping[str, str]]] = []

    def build(documents: Any, folder: Path) -> Any:
        seen.append(list(documents))
        return lambda topics: pd.DataFrame(
            [(qid, seen[-1][0]["docno"], 1.0, 0) for qid in topics["qid"]], columns=["qid", "docno", "score", "rank"]
        )

    model = MTEBSearch(build, "mine")
    with pytest.raises(ConfigError, match="index"):
        model.search(QUERIES, top_k=1)
    assert search(model) == {"a": {"sum": 1.0}, "b": {"sum": 1.0}}
    model.index(CORPUS[1:])
    assert model.search(QUERIES, top_k=1)["a"] == {"prime": 1.0}
    assert seen[0][0]["title"] == "Series"
    assert "title" not in seen[0][1]
