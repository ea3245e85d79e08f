"""Feedback over the rows of documents, compared with a plain loop over documents and rows."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index import MathAMRIndex, vector_prf
from pyterrier_mathamr.store import UnknownIdError

LENGTHS = [1, 3, 2, 5, 1, 4, 3, 2] * 8
EVERY_ROW = {"fb_clusters": 99}
"""As many clusters as rows, so that centers are rows."""


@pytest.fixture(scope="module")
def posts(documents):
    made: list[dict[str, Any]] = documents(LENGTHS, d=4)
    return made


@pytest.fixture(scope="module")
def index(tmp_path_factory, posts):
    return MathAMRIndex(tmp_path_factory.mktemp("feedback") / "some.mathamr").index(posts)


@pytest.fixture
def asked(topics):
    made: pd.DataFrame = topics([2, 4, 1], d=4)
    return made


def rounded(row):
    return tuple(round(number, 4) for number in row.tolist())


def plain_feedback(docnos, posts):
    """The rows of documents with ln((n + 1) / (df + 1)), counting documents that have a similar row."""
    by_name = {post["docno"]: post["doc_embs"] for post in posts}
    weights = {}
    for row in np.concatenate([by_name[docno] for docno in docnos]):
        containing = sum(max(float(row @ other) for other in rows) >= vector_prf.SIMILAR for rows in by_name.values())
        weights[rounded(row)] = math.log((len(posts) + 1) / (containing + 1))
    return weights


def test_the_rarest_rows_are_inserted_before_the_last_with_their_weights(index, posts, asked):
    ranking = index.colbert(num_results=20)(asked)
    found = index.prf(fb_docs=2, fb_embs=99, fb_beta=0.5, **EVERY_ROW)(ranking)
    for before, after in zip(asked.to_dict("records"), found.to_dict("records"), strict=True):
        own, rows, weights = before["query_embs"], after["query_embs"], after["query_weights"]
        best = ranking.loc[(ranking["qid"] == before["qid"]) & (ranking["rank"] < 2), "docno"].tolist()
        true = plain_feedback(best, posts)
        assert rows[: len(own) - 1].tolist() == own[:-1].tolist()
        assert rows[-1].tolist() == own[-1].tolist()
        assert weights[: len(own) - 1].tolist() + weights[-1:].tolist() == [1.0] * len(own)
        added = dict(zip(map(rounded, rows[len(own) - 1 : -1]), weights[len(own) - 1 : -1].tolist(), strict=True))
        assert added == pytest.approx({row: 0.5 * weight for row, weight in true.items()})
    few = index.prf(fb_docs=2, fb_embs=2, fb_beta=0.5, **EVERY_ROW)(ranking)["query_weights"].iloc[0]
    assert few[1:-1].tolist() == sorted(found["query_weights"].iloc[0][1:-1].tolist(), reverse=True)[:2]


def test_centers_are_the_directions_of_groups_the_largest_first_and_always_the_same():
    rng = np.random.default_rng(3)
    axes = np.eye(6, dtype=np.float32)[[0] * 9 + [2] * 5 + [4] * 2]
    rows = axes + rng.normal(0, 0.02, axes.shape).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    centers = vector_prf.cluster_centers(rows, 3)
    for center, group in zip(centers, (rows[:9], rows[9:14], rows[14:]), strict=True):
        mean = group.sum(axis=0)
        assert center == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)
    assert vector_prf.cluster_centers(rows, 3).tobytes() == centers.tobytes()
    same = np.repeat(rows[:1], 4, axis=0)
    assert vector_prf.cluster_centers(same, 3) == pytest.approx(same[:1])


def test_the_second_search_is_exact_and_batches_do_not_matter(index, posts, asked, assert_ranked):
    colbert = index.colbert(num_results=10)
    expanded = (colbert >> index.prf(fb_clusters=4, fb_embs=3, fb_beta=1.0))(asked)
    assert_ranked(colbert(expanded), expanded, posts, 10)
    one_by_one = (colbert >> index.prf(fb_clusters=4, fb_embs=3, fb_beta=1.0, batch_size=1))(asked)
    pd.testing.assert_frame_equal(colbert(one_by_one), colbert(expanded))
    explained = colbert.explain(expanded.iloc[0], colbert(expanded)["docno"].iloc[0])
    assert explained.score == pytest.approx(colbert(expanded)["score"].iloc[0], abs=1e-5)


@pytest.mark.parametrize("where", ["parts", "qdrant"])
def test_feedback_is_the_same_in_parts_and_in_qdrant(where, index, posts, elsewhere, asked):
    other = elsewhere(where, posts)
    ranking = index.colbert(num_results=5)(asked)
    found, true = (one.prf(fb_clusters=6)(ranking) for one in (other, index))
    for name in ("query_embs", "query_weights"):
        for one, same in zip(found[name], true[name], strict=True):
            assert one == pytest.approx(same, abs=1e-6)


def test_a_large_index_counts_in_a_sample_that_is_evenly_spread(index, posts, elsewhere):
    snapshot = index.snapshot()
    assert snapshot.texts("docno", snapshot.sample(4)) == ["d0", "d21", "d42", "d63"]
    assert len(snapshot.sample(1000)) == len(posts)
    parts = elsewhere("parts", posts)
    assert parts.snapshot().texts("docno", parts.snapshot().sample(4)) == ["d0", "d21", "d42", "d63"]


def test_weights_of_rows_stay_and_a_query_without_rows_stays_empty(index, asked):
    weighted = asked.assign(
        query_weights=[np.full(len(rows), 2.0) for rows in asked["query_embs"]], query_graph="graph"
    )
    ranking = index.colbert(num_results=5)(weighted)
    blank = ranking.tail(1).assign(qid="blank", query_embs=[np.empty((0, 4), dtype=np.float32)], query_weights=None)
    found = index.prf()(pd.concat([ranking, blank]))
    assert [weights[-1] for weights in found["query_weights"][:-1]] == [2.0] * 3
    assert (len(found["query_embs"].iloc[-1]), len(found["query_weights"].iloc[-1])) == (0, 0)
    assert "query_graph" not in found.columns


def test_a_compiled_pipeline_searches_only_for_the_documents_that_are_read(index, asked):
    pipeline = index.colbert() >> index.prf(fb_docs=2)
    compiled = pipeline.compile()
    assert next(iter(compiled)).num_results == 2
    for one, other in zip(compiled(asked)["query_embs"], pipeline(asked)["query_embs"], strict=True):
        assert one == pytest.approx(other)


def test_what_is_not_there_is_refused(index, asked):
    with pytest.raises(UnknownIdError, match="elsewhere"):
        index.prf()(index.colbert(num_results=2)(asked).assign(docno="elsewhere"))
    for option in ({"fb_beta": -1}, {"fb_docs": 0}, {"fb_embs": 2.5}):
        with pytest.raises(ConfigError, match=next(iter(option))):
            index.prf(**option)
