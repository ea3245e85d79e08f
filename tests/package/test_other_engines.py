"""Terrier, PISA and Anserini before MathAMR+ in pipelines of every kind; each is skipped where it cannot run.

``make test-baselines`` installs them. Where ``MATHAMR_BASELINES`` is ``required``, none may be missing.
"""

import importlib
import os
import re
import runpy
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pyterrier_mathamr as mathamr
from pyterrier_mathamr.sparse import TokenOptions

NEEDED = os.environ.get("MATHAMR_BASELINES") == "required"
ROOT = Path(__file__).parents[2]
WORDS = "limit of a sequence"


def need(module, package):
    """Skip a test for want of a package, or fail."""
    if NEEDED:
        importlib.import_module(module)
    pytest.importorskip(module, reason=f"{package} is not installed; `make test-baselines` installs it")


@cache
def java_fault():
    """Start Java, and return why it does not; tests fetch no jars."""
    pt.java.mavenresolver.offline()
    try:
        pt.java.init()
    except Exception as error:  # Java and the engines raise many kinds
        return error
    return None


def start_java():
    need("jnius_config", "pyterrier[java]")  # importing jnius would start Java without the engines' jars
    if (error := java_fault()) is not None:
        if NEEDED:
            raise error
        pytest.skip(f"Java does not start: {error}")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The bundled sample and its vectors by the small model."""
    folder, dataset = tmp_path_factory.mktemp("engines"), pt.get_dataset("irds:arqmath/sample/task1")
    answers = [{"docno": post["docno"], "text": post["text"]} for post in dataset.get_corpus_iter(verbose=False)]
    model, graphs = mathamr.MathAMR.from_pretrained("mathamr-plus-mini"), mathamr.GraphBuilder()
    index = (graphs >> model.doc_encoder() >> mathamr.MathAMRIndex(folder / "vectors").indexer()).index(answers)
    topics, qrels, encode = dataset.get_topics("text"), dataset.get_qrels(), graphs >> model.query_encoder()
    return SimpleNamespace(folder=folder, answers=answers, topics=topics, qrels=qrels, encode=encode, index=index)


@pytest.fixture(scope="module", params=["terrier", "pisa", "anserini"])
def engine(request):
    """The name of an engine that runs here."""
    if request.param != "terrier":
        need(f"pyterrier_{request.param}", f"pyterrier-{request.param}")
    if request.param != "pisa":
        start_java()
    return request.param


@pytest.fixture(scope="module")
def bm25(engine, sample):
    """A retriever of another engine over the sample."""
    path = str(sample.folder / engine)
    if engine == "terrier":
        index = pt.terrier.TerrierIndex(path)
        index.index(sample.answers)
        # Terrier's query language has no LaTeX
        return pt.rewrite.tokenise() >> index.bm25() >> pt.rewrite.reset()
    if engine == "pisa":
        index = importlib.import_module("pyterrier_pisa").PisaIndex(path, text_field="text")
        index.index(sample.answers)
    else:
        index = importlib.import_module("pyterrier_anserini").AnseriniIndex(path)
        index.indexer().index(sample.answers)
    return index.bm25()


@pytest.fixture(scope="module")
def colbert(sample):
    return sample.encode >> sample.index.colbert()


def pairs(ranking):
    return set(zip(ranking["qid"], ranking["docno"], strict=True))


def scores(ranking):
    return ranking.set_index(["qid", "docno"])["score"].sort_index()


def test_the_scorer_gives_what_the_engine_found_the_scores_of_maxsim(bm25, sample, colbert):
    found = bm25(sample.topics)
    reranked = (bm25 % 100 >> sample.encode >> sample.index.scorer())(sample.topics)
    assert pairs(reranked) == pairs(found[found["rank"] < 100])
    expected = scores(colbert(sample.topics))
    assert scores(reranked).to_numpy() == pytest.approx(expected[scores(reranked).index].to_numpy(), abs=1e-5)
    assert (reranked.sort_values(["qid", "rank"]).groupby("qid")["score"].diff().dropna() <= 0).all()


def test_its_score_and_ours_are_features_that_a_model_learns_from(bm25, sample):
    linear = pytest.importorskip("sklearn.linear_model")
    given = pt.apply.doc_score(lambda row: row["score"])
    features = bm25 % 50 >> sample.encode >> given ** sample.index.scorer() ** sample.index.scorer(vectors="document")
    found, plain = features(sample.topics), (bm25 % 50)(sample.topics)
    table = found.set_index(["qid", "docno"])["features"].sort_index()
    assert np.stack(table)[:, 0] == pytest.approx(scores(plain).to_numpy())
    assert np.stack(table).shape == (len(plain), 3)
    learned = features >> pt.ltr.apply_learned_model(linear.LinearRegression())
    learned.fit(sample.topics.iloc[::2], sample.qrels)
    assert pairs(learned(sample.topics)) == pairs(plain)


def test_our_ranking_in_unions_intersections_concatenations_and_weighted_sums(bm25, sample, colbert):
    left, right = bm25 % 20, colbert % 20
    theirs, ours = pairs(left(sample.topics)), pairs(right(sample.topics))
    assert pairs((left | right)(sample.topics)) == theirs | ours
    assert pairs((left & right)(sample.topics)) == theirs & ours
    joined = (left ^ right)(sample.topics)
    assert pairs(joined) == theirs | ours
    assert pairs(joined[joined["rank"] < 20]) >= theirs
    theirs, ours = scores(bm25(sample.topics)), scores(colbert(sample.topics))
    found = scores((0.3 * bm25 + 0.7 * colbert)(sample.topics))
    both = theirs.index.intersection(ours.index)
    assert len(both)
    assert found[both].to_numpy() == pytest.approx((0.3 * theirs[both] + 0.7 * ours[both]).to_numpy(), rel=1e-5)


@pytest.mark.filterwarnings("ignore:There are shared pipeline components")
def test_an_experiment_in_a_tree_has_the_values_of_the_plain_one(bm25, sample):
    encoded = bm25 % 50 >> sample.encode
    systems = [bm25, encoded >> sample.index.scorer(), encoded >> sample.index.scorer(vectors="document")]
    tables = [
        pt.Experiment(systems, sample.topics, sample.qrels, mathamr.TASK1_MEASURES, names=list("abc"), plan=plan)
        for plan in ("linear", "tree")
    ]
    pd.testing.assert_frame_equal(*(table.sort_index(axis=1) for table in tables))


def test_inspection_tells_what_goes_in_and_comes_out_also_of_a_search_by_words(bm25, sample, colbert):
    reranked = bm25 % 10 >> sample.encode >> sample.index.scorer()
    for pipeline in (reranked, bm25 % 5 | colbert % 5):
        assert ["qid", "query"] in pt.inspect.transformer_inputs(pipeline)
        found = pipeline(sample.topics)
        assert set(pt.inspect.transformer_outputs(pipeline, ["qid", "query"])) == set(found.columns)
    expected = reranked(pd.DataFrame({"qid": ["1"], "query": [WORDS]}))
    pd.testing.assert_frame_equal(reranked.search(WORDS)[["docno", "score"]], expected[["docno", "score"]])


def test_four_threads_find_what_one_finds(engine, bm25, sample):
    # Threads must not call Java at once: a method of pyjnius belongs to the object that any thread last took it from
    # (kivy/pyjnius#563). What comes after the first stage runs in all four.
    guard = nullcontext() if engine == "pisa" else Lock()
    rerank = sample.encode >> sample.index.scorer()

    def search(topic):
        with guard:
            found = (bm25 % 20)(topic)
        return rerank(found)

    topics = [sample.topics.iloc[[row]] for row in range(len(sample.topics))]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(search, topics))
    expected = list(map(bm25 % 20 >> rerank, topics))
    columns = ["qid", "docno", "score", "rank"]
    pd.testing.assert_frame_equal(pd.concat(found)[columns], pd.concat(expected)[columns])


@pytest.mark.filterwarnings("ignore:There are shared pipeline components")
def test_the_example_runs_with_terrier(tmp_path, monkeypatch, capsys):
    start_java()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["rerank_terrier.py", "--terrier"])
    runpy.run_path(str(ROOT / "examples" / "rerank_terrier.py"), run_name="__main__")
    assert "| BM25 + MaxSim + document" in capsys.readouterr().out


def test_rm3_gives_the_terms_and_weights_of_terrier(sample, tmp_path):
    start_java()
    clean = {post["docno"]: " ".join(re.findall(r"\b[a-z]{3,12}\b", post["text"].lower())) for post in sample.answers}
    posts = [{"docno": docno, "text": text} for docno, text in clean.items()]
    terrier, index = pt.terrier.TerrierIndex(str(tmp_path / "terrier")), mathamr.BM25Index(tmp_path / "ours")
    terrier.index(posts)
    index.indexer(tokens=TokenOptions(stem="porter", formulas=False)).index(posts)
    topics = pd.DataFrame({"qid": list("12"), "query": ["does this series converge", "limit of a continuous function"]})
    ranking = index.retriever(num_results=10)(topics)
    for options in ({"fb_terms": 1000}, {"fb_terms": 1000, "fb_docs": 5, "fb_lambda": 0.3}):  # no ties at a cutoff
        theirs = pt.rewrite.RM3(terrier.index_ref(), **options)(ranking)
        for query, ours in zip(theirs["query"], index.rm3(**options)(ranking)["query_toks"], strict=True):
            terms = dict(term.split("^") for term in query.split()[1:])
            assert ours == pytest.approx({term: float(weight) for term, weight in terms.items()}, abs=1e-7)
