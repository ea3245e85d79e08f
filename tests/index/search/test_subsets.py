"""Searching a part of an index: the ranking of the documents that pass is the ranking of an index of only those."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr import Processes
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.index import EmbeddingError, MathAMRFormulaIndex, MathAMRIndex, QdrantIndex, ShardedIndex
from pyterrier_mathamr.index.search import folder
from pyterrier_mathamr.store import UnknownIdError

LENGTHS = [1, 3, 2, 5, 1, 4, 3, 2] * 10
CONDITIONS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "year == 2012": lambda post: post["year"] == 2012,
    "year >= 2012 & 'algebra' in tags": lambda post: post["year"] >= 2012 and "algebra" in post["tags"],
    "2011 < year <= 2013 | author in ['Ada', \"E & F\"]": lambda post: (
        2011 < post["year"] <= 2013 or post.get("author") in ("Ada", "E & F")
    ),
    "tags == 'topology' and (author == 'Ada' or 3.5 > grade)": lambda post: (
        "topology" in post["tags"] and (post.get("author") == "Ada" or post["grade"] < 3.5)
    ),
    "year == '2012'": lambda post: False,
    "accepted == True": lambda post: post["accepted"],
    "year > 1900": lambda post: True,
}


@pytest.fixture(scope="module")
def posts(documents):
    """Posts with columns; every third has no author, and some are the same, so that there are ties."""
    made = documents(LENGTHS)
    made += [{**made[3], "docno": f"tie{i:02}"} for i in range(20)]
    tags = [["algebra"], ["topology", "algebra"], [], np.array(["topology"])]
    for i, post in enumerate(made):
        post |= {"year": np.int64(2010 + i % 5), "tags": tags[i % 4], "grade": i % 7 / 2, "accepted": i % 2 == 0}
        if i % 3:
            post["author"] = ("Ada", "E & F")[i % 2]
    return made


KEEP = ["year", "tags", "author", "grade", "accepted"]


@pytest.fixture(scope="module", params=["folder", "int8", "parts", "qdrant"])
def index(request, tmp_path_factory, posts):
    path = tmp_path_factory.mktemp("subsets")
    rows = [{"author": None, **post} for post in posts]
    if request.param == "parts":
        for part in range(3):
            MathAMRIndex(path / f"part-{part}").indexer(keep=KEEP).index(rows[part::3])
        return ShardedIndex([path / f"part-{part}" for part in range(3)], Processes(1))
    if request.param == "qdrant":
        pytest.importorskip("qdrant_client", reason="needs the extra qdrant")
        made = QdrantIndex(path, "some")
        made.indexer(keep=KEEP).index(rows)
        return made
    dtype = "int8" if request.param == "int8" else "float32"
    return MathAMRIndex(path / "some").indexer(keep=KEEP, dtype=dtype).index(rows)


def as_stored(index, posts):
    rows = index.vec_loader()(pd.DataFrame({"docno": [post["docno"] for post in posts]}))["doc_embs"]
    return [{**post, "doc_embs": own} for post, own in zip(posts, rows, strict=True)]


def test_a_condition_on_kept_columns_ranks_the_documents_that_meet_it(index, posts, topics, assert_ranked):
    asked, stored = topics([1, 4]), as_stored(index, posts)
    ranking = asked.merge(pd.DataFrame({"docno": [post["docno"] for post in posts]}), how="cross")
    for where, meets in CONDITIONS.items():
        passing = [post for post in stored if meets(post)]
        assert_ranked(index.retriever(where=where, num_results=30)(asked), asked, passing, 30)
        assert_ranked(index.scorer(where=where)(ranking), asked, passing, 1000)


def test_a_subset_of_docnos_is_ranked_as_an_index_of_only_those(index, posts, topics, assert_ranked):
    asked = topics([2, 3, 1])
    by_document = asked.assign(query_embs=[rows[-1:] for rows in asked["query_embs"]])
    for size in (0, 1, 9, 60, 90):
        chosen = [posts[i] for i in np.random.default_rng(size).permutation(len(posts))[:size]]
        options = {"subset": [post["docno"] for post in chosen], "num_results": 8}
        inside = as_stored(index, chosen) if chosen else []
        last = [{**post, "doc_embs": post["doc_embs"][-1:]} for post in inside]
        assert_ranked(index.retriever(**options)(asked), asked, inside, 8)
        assert_ranked(index.single_vector(**options)(asked), by_document, last, 8)
        assert_ranked(index.doc_vn(1000, **options)(asked), asked, inside, 8)


def test_a_frame_gives_each_query_a_subset_of_its_own_and_a_condition_narrows_it(index, posts, topics, judge):
    asked, stored = topics([2, 3, 1]), as_stored(index, posts)
    pairs = [("q0", post["docno"]) for post in posts[::2]] + [("q1", post["docno"]) for post in posts[:40]]
    subset = pd.DataFrame(pairs, columns=["qid", "docno"]).sample(frac=1, random_state=1)
    found = index.retriever(subset=subset, where="year < 2013", num_results=12)(asked)
    for qid, inside in (("q0", stored[::2]), ("q1", stored[:40]), ("q2", [])):
        query = asked.set_index("qid").loc[qid, "query_embs"]
        true = judge(query, [post for post in inside if post["year"] < 2013])[:12]
        assert found[found["qid"] == qid]["docno"].tolist() == [docno for docno, _ in true]
    ranking = asked.merge(pd.DataFrame({"docno": [post["docno"] for post in posts]}), how="cross")
    scored = index.scorer(subset=subset, where="year < 2013", num_results=12)(ranking)
    columns = ["qid", "docno", "score", "rank"]
    pd.testing.assert_frame_equal(scored[columns], found[columns], check_dtype=False)


def test_large_subsets_are_found_by_the_scans_of_codes_and_floats_and_small_ones_without(
    tmp_path, posts, topics, monkeypatch
):
    index, asked = MathAMRIndex(tmp_path / "some").index(posts), topics([3])
    index.delete(["d5", "d8"])
    docnos = [post["docno"] for post in posts[6:90] if post["docno"] != "d8"]
    found = []
    for few, codes in ((1, 1), (10**9, 10**9), (10**9, 1)):
        monkeypatch.setattr(folder, "FEW_OF", few)
        monkeypatch.setattr(folder, "CODES_PAY", codes)
        found.append(index.retriever(subset=docnos, num_results=10)(asked))
    pd.testing.assert_frame_equal(found[0], found[1])
    pd.testing.assert_frame_equal(found[0], found[2])
    assert len(found[0]) == 10


def test_an_approximate_search_of_a_subset_fills_its_results(tmp_path, posts, topics):
    pytest.importorskip("faiss")
    index = MathAMRIndex(tmp_path / "some").index(posts)
    docnos = [post["docno"] for post in posts[60:85]]
    found = index.retriever(exact=False, hits=1, subset=docnos, num_results=20)(topics([3]))
    assert found["docno"].isin(docnos).all()
    assert len(found) == 20


def test_columns_stay_with_their_documents_through_append_delete_compact_and_merge(tmp_path, posts, topics):
    index = MathAMRIndex(tmp_path / "some").indexer(keep=["year", "tags"]).index(posts[:30])
    index.indexer("append").index(posts[30:50])
    index.delete([post["docno"] for post in posts[:40:4]])
    index.compact()
    plain = MathAMRIndex(tmp_path / "plain").index(posts[50:60])
    whole = MathAMRIndex.merge(tmp_path / "whole", index, plain)
    expected = {
        post["docno"]: (post["year"], list(post["tags"])) for i, post in enumerate(posts[:50]) if i % 4 or i > 39
    }
    for some in (index, whole):
        kept = {row["docno"]: (row["year"], row["tags"]) for row in some.get_corpus_iter() if "year" in row}
        assert kept == expected
    found = whole.retriever(where="year in (2010, 2011)")(topics([2]))
    assert set(found["docno"]) == {docno for docno, (year, _) in expected.items() if year < 2012}


def test_formulas_are_found_by_the_columns_of_their_posts(tmp_path, documents):
    posts = [{**post, "formula_ids": [f"f{i}", f"g{i}"], "year": 2000 + i} for i, post in enumerate(documents([3] * 9))]
    index = MathAMRFormulaIndex(tmp_path / "formulas").indexer(keep=["year"]).index(posts)
    asked = pd.DataFrame({"qid": ["1"], "query_formula_ids": [["x"]], "query_formula_id": ["x"]})
    asked["query_embs"] = pd.Series([posts[0]["doc_embs"]], dtype=object)
    found = index.retriever(where="year >= 2006", subset=["f1", "f7", "g8"])(asked)
    assert set(found["docno"]) == {"f7", "g8"}


@pytest.mark.parametrize(
    "where",
    ["", "year", "year = 2012", "year != 2012", "not year == 2012", "year == tags", "f(year) == 1", "year == 2012 &",
     "year + 1 == 2", "'a' == 'b'", "year in 2012", "year == None", "(" * 300 + "year == 1" + ")" * 300],
)  # fmt: skip
def test_a_condition_that_cannot_be_read_is_refused_when_the_retriever_is_made(where, tmp_path):
    with pytest.raises(ConfigError) as caught:
        MathAMRIndex(tmp_path / "some").retriever(where=where)
    assert caught.value.option == "where"


def test_unknown_columns_docnos_and_values_that_cannot_be_kept_are_named_errors(tmp_path, posts, topics):
    index = MathAMRIndex(tmp_path / "some").indexer(keep=["year"]).index(posts[:5])
    with pytest.raises(ConfigError, match="year") as caught:
        index.retriever(where="tags == 'algebra'")(topics([1]))
    assert caught.value.option == "where"
    with pytest.raises(UnknownIdError) as unknown:
        index.retriever(subset=["d1", "nowhere"])(topics([1]))
    assert unknown.value.ids == ["nowhere"]
    with pytest.raises(ConfigError):
        index.retriever(subset="d1")
    with pytest.raises(ConfigError):
        index.indexer("append", keep=["tags"]).index(posts[5:6])
    for keep in ("year", ["docno"], ["a b"], [1]):
        with pytest.raises(ConfigError):
            index.indexer(keep=keep)
    for value in (float("inf"), {"a": 1}, [["a"]], b"a"):
        with pytest.raises(EmbeddingError) as refused:
            index.indexer("append").index([{**posts[6], "year": value}])
        assert refused.value.docno == "d6"
    assert len(index) == 5


def test_an_interrupted_build_is_resumed_with_the_same_columns_only(tmp_path, posts, part_rows):
    part_rows(8)

    def broken():
        yield from posts[:20]
        raise KeyboardInterrupt

    index = MathAMRIndex(tmp_path / "some")
    with pytest.raises(KeyboardInterrupt):
        index.indexer(keep=["year"], resume=True).index(broken())
    with pytest.raises(Exception, match="keep"):
        index.indexer(keep=["tags"], resume=True).index(posts[:30])
    index.indexer(keep=["year"], resume=True).index(posts[:30])
    assert [row["year"] for row in index.get_corpus_iter()] == [post["year"] for post in posts[:30]]


def test_retrievers_of_equal_subsets_are_equal_and_their_names_are_short(tmp_path):
    index = MathAMRIndex(tmp_path / "some")
    one, same, other = (index.retriever(subset=docnos, where="a == 1") for docnos in (["x", "y"], ("x", "y"), ["x"]))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert str(one) == "MathAMR ColBERT(some, subset=2 docnos, where=a == 1)"


def test_order_of_texts_is_refused_by_qdrant_and_known_in_folders(tmp_path, posts, topics):
    pytest.importorskip("qdrant_client", reason="needs the extra qdrant")
    rows = [{**post, "date": f"20{i:02}-01-01"} for i, post in enumerate(posts[:20])]
    found = (
        MathAMRIndex(tmp_path / "some").indexer(keep=["date"]).index(rows).retriever(where="date < '2010'")(topics([1]))
    )
    assert len(found) == 10
    served = QdrantIndex(tmp_path / "qdrant", "some")
    served.indexer(keep=["date"]).index(rows)
    with pytest.raises(ConfigError) as caught:
        served.retriever(where="date < '2010'")(topics([1]))
    assert caught.value.option == "where"


def test_a_ranking_of_which_nothing_is_left_keeps_its_columns(index, topics):
    scored = index.scorer(subset=[], where="year > 1900")(topics([1]).assign(docno="d0"))
    assert scored.empty
    assert {"qid", "query", "docno", "score", "rank"} <= set(scored.columns)
