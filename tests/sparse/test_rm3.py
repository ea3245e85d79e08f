"""RM3 over a BM25 index, compared with its published formula; `test_other_engines` compares it with Terrier's."""

import math
import random
from collections import Counter

import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.posts import DocumentError
from pyterrier_mathamr.sparse import BM25Index, TokenOptions
from pyterrier_mathamr.store import UnknownIdError

WORDS = [f"word{i}" for i in range(100)]
CHOICE = random.Random(7)
TEXTS = {f"d{i}": CHOICE.choices(WORDS, weights=range(1, 101), k=CHOICE.randint(3, 12)) for i in range(80)}
QUERY = "word5 word99 word60 word60 unheard"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> BM25Index:
    index = BM25Index(tmp_path_factory.mktemp("rm3") / "index.bm25")
    documents = [{"docno": docno, "text": " ".join(words)} for docno, words in TEXTS.items()]
    return index.indexer(tokens=TokenOptions(stop_words=False, stem=False)).index(documents)


@pytest.fixture
def ranking(index: BM25Index) -> pd.DataFrame:
    return index.retriever(20)(pd.DataFrame({"qid": ["1", "2"], "query": [QUERY, "word50"]}))


def plain_rm3(query: str, ranking: dict[str, float], terms: int, docs: int, weight: float) -> dict[str, float]:
    """λ q(w) + (1 − λ) p(w|R), p(w|R) ∝ Σ_d exp(score) · count / length, over terms that 2 to a tenth of all have."""
    found = Counter(word for words in TEXTS.values() for word in set(words))
    model: Counter[str] = Counter()
    for docno in sorted(ranking, key=lambda docno: (-ranking[docno], docno))[:docs]:
        for word, count in Counter(TEXTS[docno]).items():
            if 2 <= found[word] < len(TEXTS) // 10:
                model[word] += math.exp(ranking[docno]) * count / len(TEXTS[docno])
    best = dict(sorted(model.items(), key=lambda item: (-item[1], item[0]))[:terms])
    asked = Counter(query.split())
    return {
        word: weight * asked[word] / asked.total() + (1 - weight) * best.get(word, 0) / sum(best.values())
        for word in {*asked, *best} & {*found}
    }


@pytest.mark.parametrize(
    "options", [{}, {"fb_terms": 2, "fb_docs": 5, "fb_lambda": 0.3}, {"fb_docs": 99, "fb_lambda": 0.0}]
)
def test_the_weights_are_those_of_the_published_formula(options, index, ranking):
    expanded = index.rm3(**options)(ranking).set_index("qid")["query_toks"]
    given = (options.get("fb_terms", 10), options.get("fb_docs", 3), options.get("fb_lambda", 0.6))
    for qid, own in ranking.groupby("qid"):
        scores = dict(zip(own["docno"], own["score"], strict=True))
        assert expanded[qid] == pytest.approx(plain_rm3(own["query"].iloc[0], scores, *given))


def test_bm25_searches_scores_and_explains_by_weighted_tokens(index: BM25Index, ranking: pd.DataFrame) -> None:
    bm25, query = index.retriever(), index.rm3()(ranking).head(1)
    single = {token: bm25(pd.DataFrame({"qid": ["1"], "query": [token]})) for token in query["query_toks"].iloc[0]}
    true: Counter[str] = Counter()
    for token, weight in query["query_toks"].iloc[0].items():
        for docno, score in zip(single[token]["docno"], single[token]["score"], strict=True):
            true[docno] += weight * score
    found = bm25(query)
    assert found.set_index("docno")["score"].to_dict() == pytest.approx(dict(true))
    assert index.scorer()(found)["score"].to_numpy() == pytest.approx(found["score"].to_numpy())
    assert bm25.explain(found.iloc[0]).score == pytest.approx(found["score"].iloc[0])
    assert bm25(query[["qid", "query_toks"]])["docno"].tolist() == found["docno"].tolist()


def test_the_text_of_the_query_stays_and_a_reset_may_follow(index: BM25Index) -> None:
    topics, bm25 = pd.DataFrame({"qid": ["1"], "title": ["word7"], "body": [QUERY], "lang": ["en"]}), index.retriever()
    pipeline = bm25 >> index.rm3() >> bm25
    found = pipeline(topics)
    whole = bm25(topics)["query"].iloc[0]
    kept = ["qid", "title", "body", "lang"]
    assert found[kept].drop_duplicates().to_dict("records") == topics.to_dict("records")
    assert found[["query", "query_0"]].drop_duplicates().to_numpy().tolist() == [[whole, whole]]
    assert (pipeline >> pt.rewrite.reset())(topics)["query"].tolist() == found["query"].tolist()
    assert index.rm3()(found)["query_toks"].iloc[0].keys() >= found["query_toks"].iloc[0].keys()


def test_a_compiled_pipeline_searches_only_for_the_documents_that_are_read(index, ranking):
    pipeline = index.retriever() >> index.rm3(fb_docs=4)
    compiled, topics = pipeline.compile(), ranking[["qid", "query"]].drop_duplicates()
    assert next(iter(compiled)).num_results == 4
    for one, other in zip(compiled(topics)["query_toks"], pipeline(topics)["query_toks"], strict=True):
        assert one == pytest.approx(other)


def test_weights_that_cancel_each_other_are_expanded_as_they_are(index: BM25Index, ranking: pd.DataFrame) -> None:
    given = {"word1": 1.0, "word2": -1.0}
    asked = ranking[ranking["qid"] == ranking["qid"].iloc[0]].drop(columns="query")
    asked = asked.assign(query_toks=[given] * len(asked))
    expanded = index.rm3(fb_lambda=1.0)(asked)["query_toks"].iloc[0]
    assert {token: expanded[token] for token in given} == given


def test_what_is_not_there_is_refused(index: BM25Index, ranking: pd.DataFrame) -> None:
    with pytest.raises(UnknownIdError, match="elsewhere"):
        index.rm3()(ranking.assign(docno="elsewhere"))
    with pytest.raises(ConfigError, match="fb_lambda"):
        index.rm3(fb_lambda=1.5)
    with pytest.raises(DocumentError, match="query_toks"):
        index.retriever()(pd.DataFrame({"qid": ["1"], "query_toks": [{"word1": "much"}]}))
