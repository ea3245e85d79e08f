"""BM25: scores worked by hand or by `bm25s`, presets, weightings, and what documents and queries are read."""

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


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> BM25Index:
    """An index of 1,000 documents, ten of them with the rare word, whose mean length is 4."""
    fillers = [{"docno": f"x{i}", "text": "filler filler filler filler"} for i in range(990)]
    rare = [{"docno": f"y{i}", "text": "rare filler filler"} for i in range(8)]
    rare[0]["text"] += " filler" * 4
    others = [{"docno": "twice", "text": "rare rare filler filler"}, {"docno": "long", "text": "rare" + 7 * " filler"}]
    index = BM25Index(tmp_path_factory.mktemp("plain") / "p").indexer(tokens=PLAIN)
    return index.index([*fillers, *rare, *others])


def test_documents_with_a_common_token_are_found_by_words_and_formulas_ties_by_docno(index: BM25Index) -> None:
    results = index.retriever()(queries("bounded subsequences", r"What is $\sum r^{n}$?", "harmonic", "zygote"))
    found = {qid: of.docno.tolist() for qid, of in results.groupby("qid")}
    assert found == {"1": ["d0", "d1"], "2": ["d10", "d2"], "3": ["d2"]}
    assert results[results.qid == "2"]["rank"].tolist() == [0, 1]
    assert index.retriever(1)(queries("bounded")).docno.tolist() == ["d0"]


def test_title_and_body_are_the_query_where_they_are_present(index: BM25Index) -> None:
    frame = queries("harmonic", "harmonic").assign(title=["Bounded", None], body=["<p>sequence</p>", None])
    results = index.retriever()(frame)
    assert {qid: of.docno.tolist() for qid, of in results.groupby("qid")} == {"1": ["d0", "d1"], "2": ["d2"]}
    assert {"title", "body", "query"} <= set(results.columns)
    ranking = queries("harmonic", "geometric").merge(pd.DataFrame({"docno": ["d1", "d2", "d10"]}), how="cross")
    of_topics = index.scorer()(ranking.assign(title="Every", body="sequence"))
    assert of_topics.groupby("docno")["score"].max().gt(0).to_dict() == {"d1": 1, "d10": 0, "d2": 0}


def test_a_document_is_html_or_text_with_or_without_a_title_or_empty(tmp_path: Path) -> None:
    html = 'Let <span class="math-container" id="7">x^2</span> be'
    odd = [{"docno": "none", "text": None}, {"docno": "nan", "text": float("nan")}, {"docno": "bad", "text": 5}]
    documents = [{"docno": "1", "html": html, "text": "other", "title": "Parabola"}, *odd]
    with pytest.warns(MathAMRWarning, match="'bad'"):
        index = BM25Index(tmp_path / "i").index(documents)
    assert len(index) == 4
    assert index.retriever()(queries("parabola", "$x^2$", "other", "None nan")).qid.tolist() == ["1", "2"]
    with pytest.raises(pt.validate.InputValidationError):
        BM25Index(tmp_path / "j").index([{"docno": "1", "graph": None}])
    assert not (tmp_path / "j").exists()


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


TestBM25Retriever = pt.testing.transformer_test_class(lambda: BM25Index.example().retriever())


def test_a_repeated_query_token_counts_by_its_logarithm_if_asked(index: BM25Index) -> None:
    retriever = index.retriever(query_weights="log")
    once, thrice = (retriever(queries(text)).score[0] for text in ("harmonic", "harmonic $x$ harmonic $x$ harmonic"))
    assert thrice == pytest.approx(once * (1 + np.log(3)), rel=1e-5)


@pytest.mark.parametrize(
    ("options", "twice", "long"),
    [({"k1": 2.0, "b": 0.75, "delta": 1.0}, 11.51542, 7.67695), ({"weighting": "tf-idf"}, 4.99366, 2.57737)],
)
def test_bm25_plus_and_tf_idf_give_the_values_worked_by_hand(plain, options, twice, long):
    assert plain.snapshot().postings.lengths.mean() == 4
    retriever = plain.retriever(**options)
    found = retriever(queries("rare"))
    scores = found.set_index("docno")["score"]
    assert (scores["twice"], scores["long"]) == (pytest.approx(twice, abs=1e-5), pytest.approx(long, abs=1e-5))
    assert retriever.explain(queries("rare"), "long").score == pytest.approx(scores["long"])
    assert plain.scorer(**options)(found)["score"].tolist() == pytest.approx(found["score"].tolist())
    greatest = retriever.scorer().tokens_of(post_from_any("rare")).greatest()
    assert scores.max() < greatest
    if "weighting" in options:
        assert greatest < 1.2 * np.log2(101) + 1e-6
        assert retriever(queries("rare rare"))["score"].tolist() == pytest.approx((2 * found["score"]).tolist())


def test_one_index_serves_several_weightings_in_any_order(index: BM25Index) -> None:
    separate = BM25Index(index.path).retriever()(queries("series"))
    tf_idf = index.retriever(weighting="tf-idf")(queries("series"))
    assert index.retriever()(queries("series")).equals(separate)
    assert index.retriever(k1=1.2, b=0.75)(queries("series"))["score"].tolist() != tf_idf["score"].tolist()
    assert index.retriever(weighting="tf-idf")(queries("series")).equals(tf_idf)
    assert index.retriever(k1=0.9, b=0.4, query_weights="linear")(queries("series")).equals(separate)


@pytest.mark.parametrize(
    ("name", "value"),
    [("k1", -1.0), ("k1", "2"), ("b", 1.5), ("b", float("nan")), ("query_weights", "sqrt"), ("delta", -1)],
)
def test_options_out_of_range_are_refused_when_given_and_when_set(index: BM25Index, name: str, value: object) -> None:
    for make in (index.retriever, index.scorer):
        with pytest.raises(ConfigError, match=name):
            make(**{name: value})
        with pytest.raises(ConfigError, match=name):
            make().set_parameter(name, value)
        with pytest.raises(ConfigError, match="delta"):
            make(weighting="tf-idf", delta=1.0)
        with pytest.raises(ConfigError, match="weighting"):
            make(weighting="bm26")  # type: ignore[arg-type]


def test_an_index_reads_its_queries_as_its_posts(tmp_path: Path) -> None:
    posts = [{"docno": "a", "text": "so x^2 + y^2 = 1"}, {"docno": "b", "text": "so x and y"}]
    index = BM25Index(tmp_path / "i").indexer(bare_formulas=True).index(posts)
    assert index.snapshot().read_query({"qid": "1", "query": "x^2"}).formulas != ()
    assert index(queries("y^2 + x^2")).docno.tolist() == ["a"]
    assert index.scorer()(queries("y^2 + x^2").merge(pd.DataFrame({"docno": ["a", "b"]}), how="cross")).score[0] > 0
    with pytest.raises(ConfigError, match="bare_formulas"):
        BM25Index.merge(tmp_path / "m", BM25Index(tmp_path / "j").index(posts), index)
    other = BM25Index(tmp_path / "k").indexer(tokens=PLAIN).index(DOCUMENTS)
    assert sorted(other.snapshot().postings.terms)[:3] == ["a", "bounded", "convergent"]  # no pairs, no stems
    assert BM25Index(tmp_path / "k").snapshot().tokens == PLAIN
