import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.posts import post_from_any
from pyterrier_mathamr.sparse import BM25Index, TokenOptions
from pyterrier_mathamr.sparse.tokens import post_tokens
from pyterrier_mathamr.store import META, DamagedError, DuplicateIdError, signed

PLAIN = TokenOptions(stop_words=False, stem=False)
DOCUMENTS = [
    {"docno": "d2", "text": r"The harmonic series $\sum \frac{1}{n}$ diverges."},
    {"docno": "d10", "text": r"A geometric series $\sum r^n$ converges when $|r| < 1$."},
    {"docno": "d1", "text": "Every bounded sequence has a convergent subsequence."},
    {"docno": "d0", "text": "Every bounded sequence has a convergent subsequence."},
    {"docno": "d9", "text": ""},
]


@pytest.fixture
def index(tmp_path: Path) -> BM25Index:
    return BM25Index(tmp_path / "index.bm25").index(DOCUMENTS)


def queries(*texts: str) -> pd.DataFrame:
    return pd.DataFrame({"qid": [str(number) for number in range(1, len(texts) + 1)], "query": list(texts)})


def test_finds_by_words_and_by_formulas(index: BM25Index) -> None:
    results = index.retriever()(queries("bounded subsequences", r"What is $\sum r^{n}$?"))
    assert results[results.qid == "1"].docno.tolist() == ["d0", "d1"]
    assert results[results.qid == "2"].docno.tolist() == ["d10", "d2"]
    assert results[results.qid == "2"]["rank"].tolist() == [0, 1]


def test_equal_scores_are_in_order_of_docno_also_at_the_cutoff(index: BM25Index) -> None:
    assert index.retriever(1)(queries("bounded")).docno.tolist() == ["d0"]


def test_documents_without_a_common_token_and_queries_without_a_known_one_give_no_row(index: BM25Index) -> None:
    results = index.retriever()(queries("harmonic", "zygote"))
    assert results[["qid", "docno"]].to_numpy().tolist() == [["1", "d2"]]


def test_blank_queries_find_nothing_and_are_named_in_one_warning(index: BM25Index) -> None:
    topics = pd.DataFrame({"qid": list("abcde"), "query": ["", " \n", None, float("nan"), "harmonic"]})
    with pytest.warns(MathAMRWarning, match="^blank queries find nothing: 'a', 'b', 'c', 'd'") as caught:
        results = index.retriever()(topics)
    assert results[["qid", "docno"]].to_numpy().tolist() == [["e", "d2"]]
    assert len(caught) == 1
    with pytest.warns(MathAMRWarning):
        nothing = index.retriever()(topics[:4])
    assert nothing.dtypes.to_dict() == results.dtypes.to_dict() | {"query": nothing["query"].dtype}


def test_a_query_in_several_rows_is_searched_once_with_its_first_values(index: BM25Index) -> None:
    topics = pd.DataFrame(
        {"qid": ["1", "2", "1"], "query": [None, "bounded", "harmonic"], "lang": ["en", "de", None], "rank": [7, 8, 9]}
    )
    results = index.retriever()(topics)
    assert results[["qid", "query", "lang", "docno", "rank"]].to_numpy().tolist() == [
        ["1", "harmonic", "en", "d2", 0],
        ["2", "bounded", "de", "d0", 0],
        ["2", "bounded", "de", "d1", 1],
    ]


@pytest.fixture
def tuned(tmp_path: Path) -> BM25Index:
    return BM25Index(tmp_path / "tuned.bm25", preset="math").index(DOCUMENTS)


def test_an_index_is_a_standard_bm25_of_words_and_symbols_by_default(tmp_path: Path) -> None:
    posts = [{"docno": "1", "text": "The used $x$ converges"}, {"docno": "2", "text": "bounded bounded sequences"}]
    index = BM25Index(tmp_path / "i").index(posts)
    assert sorted(index.snapshot().postings.terms) == ["bound", "converg", "mathx", "sequenc"]
    assert index.snapshot().postings.lengths.tolist() == [2, 3]
    score = index(queries("bounded bounded")).score[0]
    assert score == pytest.approx(2 * np.log(2) * 2 / (2 + 0.9 * (0.6 + 0.4 * 3 / 2.5)), rel=1e-6)


def test_the_preset_for_mathematics_has_pairs_other_weights_and_a_short_list_of_stop_words(tuned: BM25Index) -> None:
    assert "geometr_seri" in tuned.snapshot().postings.terms
    explicit = tuned.retriever(k1=2, b=1, query_weights="log")
    query = queries("series of series $r^n$")
    pd.testing.assert_frame_equal(tuned(query), explicit(query))
    assert tuned(query).score.tolist() != tuned.retriever(k1=0.9)(query).score.tolist()
    assert tuned.scorer()(explicit(query)).score.tolist() == pytest.approx(explicit(query).score.tolist())


def test_an_index_is_opened_as_what_it_was_built_as(index: BM25Index, tuned: BM25Index) -> None:
    for built in (index, tuned):
        opened = BM25Index(built.path)
        assert opened(queries("geometric series")).equals(built(queries("geometric series")))
        assert pt.Artifact.load(str(built.path))(queries("series")).equals(built(queries("series")))
        opened.indexer("append").index([{"docno": "new", "text": "A new series of sequences"}])
        assert ("seri_sequenc" in opened.snapshot().postings.terms) == (built is tuned)
    assert BM25Index(tuned.path, preset="math").snapshot().preset == "math"
    BM25Index(tuned.path).indexer("overwrite").index(DOCUMENTS)
    assert BM25Index(tuned.path).snapshot().preset == "standard"


def test_another_preset_than_the_stored_one_is_refused_with_the_call_that_rebuilds(index: BM25Index) -> None:
    other = BM25Index(index.path, preset="math")
    for use in (lambda: other(queries("series")), lambda: other.indexer("append").index([{"docno": "x", "text": ""}])):
        with pytest.raises(ConfigError, match=r"'standard', .*preset='math'\)\.indexer\(mode='overwrite'\)") as caught:
            use()
        assert (caught.value.option, caught.value.value) == ("preset", "math")
    with pytest.raises(ConfigError, match="preset"):
        BM25Index.merge(index.path.parent / "m", index, BM25Index(index.path.parent / "o", preset="math").index([]))
    with pytest.raises(ConfigError, match="'standard' or 'math'"):
        BM25Index(index.path, preset="strong")  # type: ignore[arg-type]
    other.indexer("overwrite").index(DOCUMENTS)
    assert other(queries("series")).docno.tolist() == ["d2", "d10"]


@pytest.mark.parametrize("preset", [None, "strong", ["math"], 1])
def test_a_stored_preset_that_is_none_is_damage(index: BM25Index, preset: object) -> None:
    content = json.loads((index.path / META).read_bytes())
    content["details"]["preset"] = preset
    (index.path / META).write_bytes(signed({name: content[name] for name in content if name != "checksum"}))
    with pytest.raises(DamagedError, match="preset"):
        BM25Index(index.path)(queries("series"))


def test_an_index_shows_its_preset_and_is_equal_to_the_same_only() -> None:
    assert repr(BM25Index("i")) == "BM25Index('i')"
    assert repr(BM25Index("i", preset="math")) == "BM25Index('i', preset='math')"
    assert BM25Index("i", preset="math") == BM25Index("i", preset="math") != BM25Index("i")
    assert len({BM25Index("i"), BM25Index("i"), BM25Index("i", preset="math")}) == 2


@pytest.mark.parametrize(("k1", "b"), [(2.0, 1.0), (0.9, 0.4), (0.0, 0.0)])
def test_scores_equal_bm25s_own_index(index: BM25Index, k1: float, b: float) -> None:
    tokens = [post_tokens(post_from_any(document["text"])) for document in DOCUMENTS]
    judge = bm25s.BM25(method="lucene", k1=k1, b=b)
    judge.index(tokens, show_progress=False)
    query = "the series sum and the series of bounded sequences"
    wanted = judge.get_scores(post_tokens(post_from_any(query)))
    results = index.retriever(k1=k1, b=b, query_weights="linear")(queries(query))
    scores = dict(zip(results.docno, results.score, strict=True))
    for document, score in zip(DOCUMENTS, wanted, strict=True):
        assert scores.get(document["docno"], 0.0) == pytest.approx(score, rel=1e-5)


def test_a_repeated_query_token_counts_by_its_logarithm_if_asked(index: BM25Index) -> None:
    retriever = index.retriever(query_weights="log")
    once = retriever(queries("harmonic")).score[0]
    thrice = retriever(queries("harmonic $x$ harmonic $x$ harmonic")).score[0]
    assert thrice == pytest.approx(once * (1 + np.log(3)), rel=1e-5)


def test_title_and_body_are_the_query_where_they_are_present(index: BM25Index) -> None:
    frame = queries("harmonic", "harmonic").assign(title=["Bounded", None], body=["<p>sequence</p>", None])
    results = index.retriever()(frame)
    assert results[results.qid == "1"].docno.tolist() == ["d0", "d1"]
    assert results[results.qid == "2"].docno.tolist() == ["d2"]
    assert {"title", "body", "query"} <= set(results.columns)


def test_the_texts_of_a_ranking_s_documents_are_not_a_query(index: BM25Index) -> None:
    ranking = queries("harmonic", "geometric").merge(pd.DataFrame({"docno": ["d1", "d2", "d10"]}), how="cross")
    texts = {document["docno"]: document["text"] for document in DOCUMENTS}
    loaded = ranking.assign(body=ranking["docno"].map(texts), title="Bounded")
    plain, scored = index.scorer()(ranking), index.scorer()(loaded)
    assert scored[["qid", "docno", "score", "rank"]].equals(plain[["qid", "docno", "score", "rank"]])
    assert scored["body"].tolist() == [texts[docno] for docno in scored["docno"]]
    first = scored[scored["qid"] == "1"]
    assert index.scorer().explain(first).score == pytest.approx(first["score"][0])
    of_topics = ranking.assign(title="Every", body="sequence")
    assert index.scorer()(of_topics).groupby("docno")["score"].max().gt(0).to_dict() == {"d1": 1, "d10": 0, "d2": 0}


def test_a_document_may_be_html_with_a_title(tmp_path: Path) -> None:
    html = 'Let <span class="math-container" id="7">x^2</span> be'
    index = BM25Index(tmp_path / "i").index([{"docno": "1", "html": html, "text": "other", "title": "Parabola"}])
    assert len(index.retriever()(queries("parabola", "$x^2$", "other"))) == 2


def test_the_plain_form_knows_neither_pairs_nor_stems(tmp_path: Path) -> None:
    index = BM25Index(tmp_path / "i").indexer(tokens=PLAIN).index(DOCUMENTS)
    assert sorted(index.snapshot().postings.terms)[:3] == ["a", "bounded", "convergent"]
    assert BM25Index(tmp_path / "i").snapshot().tokens == PLAIN


def test_a_build_that_fails_leaves_the_index_that_was_there(index: BM25Index) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield DOCUMENTS[0]
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        index.indexer("overwrite").index(broken())
    with pytest.raises(DuplicateIdError, match="'d2'"):
        index.indexer("overwrite").index([DOCUMENTS[0], DOCUMENTS[0]])
    assert len(BM25Index(index.path).retriever()(queries("series"))) == 2
    assert [path.name for path in index.path.parent.iterdir()] == ["index.bm25"]


def test_a_document_without_the_needed_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(pt.validate.InputValidationError):
        BM25Index(tmp_path / "i").index([{"docno": "1", "graph": None}])
    assert not (tmp_path / "i").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_results", 0),
        ("num_results", 3.5),
        ("k1", -1.0),
        ("k1", "2"),
        ("b", 1.5),
        ("b", float("nan")),
        ("query_weights", "sqrt"),
    ],
)
def test_options_out_of_range_are_refused_when_given_and_when_set(index: BM25Index, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        index.retriever(**{name: value})
    with pytest.raises(ConfigError, match=name):
        index.retriever().set_parameter(name, value)


def test_missing_text_counts_as_empty(tmp_path: Path) -> None:
    index = BM25Index(tmp_path / "i").index([{"docno": "1", "text": None}, {"docno": "2", "text": float("nan")}])
    assert len(index) == 2
    assert index.retriever()(pd.DataFrame({"qid": ["1"], "query": ["None nan"]})).empty


def test_an_unreadable_post_warns_and_counts_as_empty(tmp_path: Path) -> None:
    with pytest.warns(MathAMRWarning, match="'bad'"):
        index = BM25Index(tmp_path / "i").index([{"docno": "bad", "text": 5}])
    assert len(index) == 1


def test_an_index_reads_its_queries_as_its_posts(tmp_path: Path) -> None:
    posts = [{"docno": "a", "text": "so x^2 + y^2 = 1"}, {"docno": "b", "text": "so x and y"}]
    index = BM25Index(tmp_path / "i").indexer(bare_formulas=True).index(posts)
    assert index.snapshot().read_query({"qid": "1", "query": "x^2"}).formulas != ()
    assert index(queries("y^2 + x^2")).docno.tolist() == ["a"]
    assert index.scorer()(queries("y^2 + x^2").merge(pd.DataFrame({"docno": ["a", "b"]}), how="cross")).score[0] > 0
    with pytest.raises(ConfigError, match="bare_formulas"):
        BM25Index.merge(tmp_path / "m", BM25Index(tmp_path / "j").index(posts), index)


TestBM25Retriever = pt.testing.transformer_test_class(lambda: BM25Index.example().retriever())
TestBM25Index = pt.testing.transformer_test_class(BM25Index.example)


def test_bm25_plus_gives_the_values_worked_by_hand(tmp_path: Path) -> None:
    fillers = [{"docno": f"x{i}", "text": "filler filler filler filler"} for i in range(990)]
    rare = [{"docno": f"y{i}", "text": "rare filler filler filler"} for i in range(8)]
    twice = [{"docno": "twice", "text": "rare rare filler filler"}]
    long = [{"docno": "long", "text": "rare" + 7 * " filler"}]
    index = BM25Index(tmp_path / "p").indexer(tokens=PLAIN).index([*fillers, *rare, *twice, *long])
    plus = index.retriever(k1=2.0, b=0.75, delta=1.0)
    found = plus(queries("rare")).set_index("docno")["score"]
    assert found["twice"] == pytest.approx(11.51542, rel=2e-3)  # the mean length is 4.004, not 4
    assert found["long"] == pytest.approx(7.67695, rel=2e-3)
    assert plus.explain(queries("rare"), "long").score == pytest.approx(found["long"])
    scored = index.scorer(k1=2.0, b=0.75, delta=1.0)(plus(queries("rare")))
    assert scored["score"].tolist() == pytest.approx(plus(queries("rare"))["score"].tolist())
    assert found.max() < plus.scorer().tokens_of(post_from_any("rare")).greatest()
    with pytest.raises(ConfigError, match="delta"):
        index.retriever(delta=-1)


def test_tf_idf_gives_the_values_worked_by_hand(tmp_path: Path) -> None:
    fillers = [{"docno": f"x{i}", "text": "filler filler filler filler"} for i in range(990)]
    rare = [{"docno": f"y{i}", "text": "rare filler filler"} for i in range(8)]  # so that the mean length is 4
    rare[0]["text"] += " filler" * 4
    twice = [{"docno": "twice", "text": "rare rare filler filler"}]
    long = [{"docno": "long", "text": "rare" + 7 * " filler"}]
    index = BM25Index(tmp_path / "p").indexer(tokens=PLAIN).index([*fillers, *rare, *twice, *long])
    assert index.snapshot().postings.lengths.mean() == 4
    tf_idf = index.retriever(weighting="tf-idf")
    found = tf_idf(queries("rare"))
    by_docno = found.set_index("docno")["score"]
    assert by_docno["twice"] == pytest.approx(4.99366, abs=1e-5)
    assert by_docno["long"] == pytest.approx(2.57737, abs=1e-5)
    assert tf_idf.explain(queries("rare"), "long").score == pytest.approx(2.57737, abs=1e-5)
    assert tf_idf.scorer()(found)["score"].tolist() == found["score"].tolist()
    assert by_docno.max() < tf_idf.scorer().tokens_of(post_from_any("rare")).greatest() < 1.2 * np.log2(101) + 1e-6
    assert tf_idf(queries("rare rare"))["score"].tolist() == pytest.approx((2 * found["score"]).tolist())


def test_one_index_serves_several_weightings_in_any_order(tmp_path: Path) -> None:
    index = BM25Index(tmp_path / "i").index(DOCUMENTS)
    separate = BM25Index(tmp_path / "i").retriever()(queries("series"))
    tf_idf = index.retriever(weighting="tf-idf")(queries("series"))
    assert index.retriever()(queries("series")).equals(separate)
    assert index.retriever(k1=1.2, b=0.75)(queries("series"))["score"].tolist() != tf_idf["score"].tolist()
    assert index.retriever(weighting="tf-idf")(queries("series")).equals(tf_idf)
    assert index.retriever(k1=0.9, b=0.4, query_weights="linear")(queries("series")).equals(separate)


@pytest.mark.parametrize("make", ["retriever", "scorer"])
def test_tf_idf_has_no_delta(index: BM25Index, make: str) -> None:
    with pytest.raises(ConfigError, match="delta"):
        getattr(index, make)(weighting="tf-idf", delta=1.0)
    with pytest.raises(ConfigError, match="weighting"):
        getattr(index, make)(weighting="bm26")
