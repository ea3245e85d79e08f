"""Searching and keeping views: exact by brute force, in any order of building."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from marf_examples import DOCUMENTS, EXACT, POSTS, QUERIES, fusing, tiny_marf
from pyterrier.measures import RR, R

from mathamr_systems import MaRFIndex, SystemsError
from mathamr_systems.marf import index as marf_index
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import MissingValueError
from pyterrier_mathamr.explain import explain_score
from pyterrier_mathamr.fusion import ZScoreFusion
from pyterrier_mathamr.index import EmbeddingError
from pyterrier_mathamr.index.errors import ModelMismatchError
from pyterrier_mathamr.model import exact_maxsim
from pyterrier_mathamr.sparse import BM25Index
from pyterrier_mathamr.store import DuplicateIdError, UnknownIdError

_NAMES = ["a", "a!", "b#0", "c", "x", "é"]


def documents(count: int = 40, seed: int = 0, d: int = 6) -> list[dict[str, object]]:
    """Make documents of one to four views; some are equal."""
    random = np.random.default_rng(seed)
    names = [*_NAMES, *(f"d{i}" for i in range(count - len(_NAMES)))]
    made = []
    for name in names:
        rows = random.standard_normal((int(random.integers(1, 9)), d)).astype(np.float32)
        views = [rows + random.standard_normal(rows.shape).astype(np.float32) for _ in range(random.integers(1, 5))]
        made.append({"docno": name, "doc_views": views, "doc_formulas": [f"$f{k}$" for k in range(len(views))]})
    made[3]["doc_views"], made[3]["doc_formulas"] = made[0]["doc_views"], made[0]["doc_formulas"]
    return made


def queries(d: int = 6) -> pd.DataFrame:
    random = np.random.default_rng(9)
    rows = [random.standard_normal((n, d)).astype(np.float32) for n in (4, 1, 7)]
    return pd.DataFrame({"qid": ["1", "2", "3"]}).assign(query_embs=pd.Series(rows, dtype=object))


def brute_force(docs: list[dict[str, object]], asked: pd.DataFrame) -> pd.DataFrame:
    found = []
    for qid, rows in zip(asked["qid"], asked["query_embs"], strict=True):
        for doc in docs:
            views = [of.astype(np.float16).astype(np.float32) for of in doc["doc_views"]]
            offsets = np.cumsum([0, *map(len, views)])
            score = float(np.float32(exact_maxsim(rows, np.concatenate(views), offsets).mean()))
            found.append({"qid": qid, "docno": doc["docno"], "score": score})
    frame = pd.DataFrame(found).sort_values(["qid", "score", "docno"], ascending=[True, False, True], kind="stable")
    return frame.assign(rank=frame.groupby("qid").cumcount()).reset_index(drop=True)


@pytest.fixture
def index(tmp_path: Path) -> MaRFIndex:
    return MaRFIndex(tmp_path / "index").index(documents())


@pytest.mark.parametrize("most", [1, 5, 1000])
def test_the_retriever_finds_what_brute_force_finds(index: MaRFIndex, most: int) -> None:
    wanted = brute_force(documents(), queries())
    found = index.retriever(num_results=most)(queries())
    wanted = wanted[wanted["rank"] < most].reset_index(drop=True)
    assert found[["qid", "docno", "score", "rank"]].equals(wanted)


@pytest.mark.parametrize("most", [3, 1000])
def test_a_subset_of_documents_is_ranked_with_all_of_their_views(index: MaRFIndex, most: int) -> None:
    chosen = documents()[::3]
    docnos = [str(doc["docno"]) for doc in chosen]
    wanted = brute_force(chosen, queries())
    wanted = wanted[wanted["rank"] < most].reset_index(drop=True)
    found = index.retriever(num_results=most, subset=docnos)(queries())
    assert found[["qid", "docno", "score", "rank"]].equals(wanted)
    with pytest.raises(ConfigError):
        index.retriever(where="year == 2020")(queries())


def test_the_scorer_scores_all_views_of_a_candidate(index: MaRFIndex) -> None:
    ranking = brute_force(documents(), queries())
    shuffled = ranking.sample(frac=0.5, random_state=1).assign(score=0.0)
    found = index.scorer()(shuffled.merge(queries(), on="qid"))
    wanted = shuffled.drop(columns=["score", "rank"]).merge(ranking, on=["qid", "docno"])
    both = found.merge(wanted, on=["qid", "docno"])
    assert len(both) == len(shuffled)
    assert (both["score_x"] == both["score_y"]).all()
    assert index(queries())["docno"].tolist() == ranking["docno"].tolist()


def test_parts_deleting_and_merging_keep_documents_whole(index: MaRFIndex, tmp_path: Path) -> None:
    more = [{**doc, "docno": f"more {doc['docno']}"} for doc in documents(10, seed=3)]
    index.indexer("append").index(more)
    everything = [*documents(), *more]
    assert len(index) == 50
    assert "b#0" in index
    assert "b" not in index
    index.delete(["c", "d3"])
    left = [doc for doc in everything if doc["docno"] not in ("c", "d3")]
    wanted = brute_force(left, queries())
    for one in (index, MaRFIndex.merge(tmp_path / "merged", index)):
        assert one.retriever()(queries())[["qid", "docno", "score", "rank"]].equals(wanted)
        assert sorted(doc["docno"] for doc in one.get_corpus_iter()) == sorted(doc["docno"] for doc in left)
    index.compact()
    assert index.retriever()(queries())["docno"].tolist() == wanted["docno"].tolist()
    by_docno = {doc["docno"]: doc for doc in index.get_corpus_iter()}
    assert by_docno["x"]["doc_formulas"] == everything[4]["doc_formulas"]
    with pytest.raises(UnknownIdError, match="d3"):
        index.delete(["d3"])
    index.verify()


@pytest.mark.parametrize(
    ("views", "formulas", "why"),
    [
        ([], None, "at least one view"),
        ("rows", None, "at least one view"),
        ([np.ones(3)], None, "shape"),
        ([np.ones((2, 3))], ["a", "b"], "1 views but 2"),
        ([np.full((2, 3), np.nan)], None, "NaN"),
    ],
)
def test_bad_views_are_refused_by_docno(tmp_path: Path, views: object, formulas: object, why: str) -> None:
    with pytest.raises(EmbeddingError, match=rf"'bad.*{why}"):
        MaRFIndex(tmp_path / "index").index([{"docno": "bad", "doc_views": views, "doc_formulas": formulas}])


def test_a_docno_twice_another_model_and_too_many_rows_are_refused(
    tmp_path: Path, index: MaRFIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    doc = documents()[0]
    with pytest.raises(DuplicateIdError, match="a#0"):
        MaRFIndex(tmp_path / "other").index([doc, doc])
    other = MaRFIndex(tmp_path / "other").index([{**doc, "doc_model": "MaRF@one"}])
    with pytest.raises(ModelMismatchError):
        other.retriever()(queries().assign(query_model="MaRF@other"))

    monkeypatch.setattr(marf_index, "MOST_ROWS", 39)
    with pytest.raises(SystemsError, match="first stage"):
        index.retriever()(queries())


def test_text_scorer_and_index_agree_and_explain(tmp_path: Path) -> None:
    marf = fusing(tiny_marf(tmp_path))
    index = MaRFIndex(tmp_path / "index")
    (marf.doc_encoder(**EXACT) >> index.indexer(dtype="float32")).index(DOCUMENTS)
    asked = pd.concat([QUERIES, pd.DataFrame({"qid": ["blank"], "query": [" "]})])
    ranking = asked.merge(DOCUMENTS, how="cross").assign(score=0.0, rank=0)
    direct = marf.text_scorer(**EXACT)(ranking)
    stored = (marf.query_encoder(**EXACT) >> index.scorer())(ranking)
    both = direct.merge(stored, on=["qid", "docno"])
    assert np.allclose(both["score_x"], both["score_y"], atol=1e-5)
    assert (direct[direct["qid"] == "blank"]["score"] == 0).all()
    row = direct.iloc[0]
    assert marf.text_scorer(**EXACT).explain(row).score == pytest.approx(row["score"], abs=1e-5)
    assert index.search("the sum of $x^2$", model=marf)["docno"].nunique() == len(POSTS)


def test_empty_queries_keep_the_column_of_weights_and_documents_need_a_text(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path, query_formulas="all")
    empty = marf.query_encoder()(QUERIES.iloc[:0])
    assert {"query_embs", "query_model", "query_weights"} <= set(empty.columns)
    with pytest.raises(pt.validate.InputValidationError):
        marf.doc_encoder()(pd.DataFrame({"docno": ["1"]}))


@pytest.mark.parametrize("options", [{}, {"keys": "context"}, {"query_formulas": "all"}, {"output": 6}])
def test_views_that_are_computed_from_parts_score_as_texts_do(tmp_path: Path, options: dict[str, object]) -> None:
    marf = fusing(tiny_marf(tmp_path, **options))
    index = MaRFIndex(tmp_path / "parts")
    (marf.doc_encoder(store="parts", **EXACT) >> index.indexer()).index(DOCUMENTS.to_dict("records"))
    assert len(index) == len(DOCUMENTS)
    ranking = QUERIES.merge(DOCUMENTS, how="cross").assign(score=0.0, rank=0)
    wanted = marf.text_scorer(**EXACT)(ranking)
    asked = marf.query_encoder(**EXACT)(ranking.drop(columns="text"))
    found = index.parts_scorer(marf, **EXACT)(asked)
    assert found[["qid", "docno", "rank"]].equals(wanted[["qid", "docno", "rank"]])
    assert found["score"].tolist() == pytest.approx(wanted["score"].tolist(), abs=1e-5)
    row = found.iloc[0]
    assert index.parts_scorer(marf, **EXACT).explain(row).score == pytest.approx(row["score"], abs=1e-5)
    assert index.parts_scorer(marf)(asked[:0]).empty


def test_views_from_parts_compose_with_cuts_fusions_and_experiments(tmp_path: Path) -> None:
    marf = fusing(tiny_marf(tmp_path))
    index = MaRFIndex(tmp_path / "parts")
    (marf.doc_encoder(store="parts", **EXACT) >> index.indexer()).index(DOCUMENTS)
    words = BM25Index(tmp_path / "words").index(DOCUMENTS).retriever()
    rerank = marf.query_encoder(**EXACT) >> index.parts_scorer(marf, **EXACT)
    pipeline = words % 3 >> rerank
    topics = pd.DataFrame({"qid": ["1", "2"], "query": ["the sum of $x^2$", "limit of two"]})
    found = pipeline(topics)
    assert found.groupby("qid").size().max() <= 3
    for row in found.to_dict("records"):
        assert explain_score(pipeline, row, row["docno"]).score == pytest.approx(row["score"], abs=1e-5)
    qrels = pd.DataFrame({"qid": ["1", "2"], "docno": ["d1", "d5"], "label": 1})
    systems = [words, pipeline, pipeline % 1, ZScoreFusion(words, pipeline)]
    table = pt.Experiment(systems, topics, qrels, [RR, R @ 1], names=list("abcd"), validate="error")
    assert table["RR"].between(0.1, 1).all()
    assert {"docno", "score", "rank", "query_embs"} <= set(pt.inspect.transformer_outputs(pipeline, ["qid", "query"]))


def test_parts_and_views_are_refused_for_each_other(tmp_path: Path) -> None:
    marf = fusing(tiny_marf(tmp_path))
    parts, views = MaRFIndex(tmp_path / "parts"), MaRFIndex(tmp_path / "views")
    (marf.doc_encoder(store="parts", **EXACT) >> parts.indexer()).index(DOCUMENTS.to_dict("records"))
    (marf.doc_encoder(**EXACT) >> views.indexer()).index(DOCUMENTS.to_dict("records"))
    ranking = marf.query_encoder(**EXACT)(QUERIES.merge(DOCUMENTS[["docno"]], how="cross").assign(score=0.0, rank=0))
    with pytest.raises(ModelMismatchError, match="parts"):
        parts.scorer()(ranking)
    with pytest.raises(ModelMismatchError, match="parts"):
        views.parts_scorer(marf)(ranking)
    with pytest.raises(ModelMismatchError):
        parts.parts_scorer(marf)(ranking.assign(query_model="MaRF@other"))
    with pytest.raises(UnknownIdError, match="zz"):
        parts.parts_scorer(marf)(ranking.assign(docno="zz"))
    with pytest.raises(MissingValueError, match="query_embs"):
        parts.parts_scorer(marf)(ranking.assign(query_embs=None))
    with pytest.raises(ConfigError, match="store"):
        marf.doc_encoder(store="all")
