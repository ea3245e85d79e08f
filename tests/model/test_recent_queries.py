"""Transformers that call an encoder again for the same query: nothing is computed twice, and nothing is stale."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.recent import MOST_QUERIES
from pyterrier_mathamr.amr import DependencyAmrParser
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR
from pyterrier_mathamr.model.exact import ScoreWeights
from pyterrier_mathamr.model.networks import random_network

TOPICS = pd.DataFrame({"qid": ["1", "2"], "query": ["Solve $x+1=2$ for $x$.", "Is every group a matrix group?"]})


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that were computed: ``parse`` and ``encode``, once for each query."""
    steps: list[str] = []
    parse, encode = DependencyAmrParser.parse_posts, MathAMR.encode_queries

    def parse_posts(self, posts):
        steps.extend(["parse"] * len(posts))
        return parse(self, posts)

    def encode_queries(self, graphs, **options):
        steps.extend(["encode"] * len(graphs))
        return encode(self, graphs, **options)

    monkeypatch.setattr(DependencyAmrParser, "parse_posts", parse_posts)
    monkeypatch.setattr(MathAMR, "encode_queries", encode_queries)
    return steps


def rows(frame: pd.DataFrame) -> list[bytes]:
    return [array.tobytes() for array in frame["query_embs"]]


def test_an_adaptive_re_ranker_builds_and_encodes_each_query_once(model, graphs, tmp_path, computed) -> None:
    index = MathAMRIndex(tmp_path / "index")
    documents = [{"docno": name, "graph": graph} for name, graph in graphs.items()]
    (model.doc_encoder() >> index.indexer()).index(documents)
    scorer = GraphBuilder() >> model.query_encoder() >> index.scorer()
    pairs = pd.DataFrame([(qid, row["docno"]) for qid in "12" for row in documents[:24]], columns=["qid", "docno"])
    pairs = pairs.merge(TOPICS).assign(score=0.0)
    # as pyterrier_adaptive.GAR asks: a few documents of one query at a time
    once = pd.concat([scorer(pairs[start : start + 8]) for start in range(0, len(pairs), 8)])
    assert computed == ["parse", "encode"] * 2
    once, whole = (frame.sort_values(["qid", "docno"])["score"].tolist() for frame in (once, scorer(pairs)))
    assert once == pytest.approx(whole, abs=1e-5)


def test_what_was_asked_before_does_not_change_a_byte_and_vectors_may_be_changed_in_place(model) -> None:
    encode = GraphBuilder() >> model.query_encoder()
    wanted = rows((GraphBuilder() >> model.query_encoder())(TOPICS))
    for frame in (TOPICS[:1], TOPICS, TOPICS[1:], TOPICS):
        again = encode(frame)
        pd.testing.assert_frame_equal(again.drop(columns="query_embs"), encode(frame).drop(columns="query_embs"))
        assert rows(again) == rows(encode(frame))
        for array in again["query_embs"]:
            array[:] = 0
    assert rows(encode(TOPICS)) == wanted


def test_a_query_is_known_by_its_text_and_gets_the_qid_of_the_frame(model, computed) -> None:
    encode = GraphBuilder() >> model.query_encoder()
    first, second = encode(TOPICS), encode(TOPICS.assign(qid=["7", "8"]))
    assert computed == ["parse"] * 2 + ["encode"] * 2
    assert rows(first) == rows(second)
    assert [graph.id for graph in second["query_graph"]] == ["7", "8"]
    other = encode(TOPICS.assign(query=TOPICS["query"][::-1].tolist()))  # the same qids, other texts
    assert [len(array) for array in other["query_embs"]] == [len(array) for array in first["query_embs"][::-1]]


def test_another_option_or_model_gives_its_own_vectors(model, small, vocabulary) -> None:
    builder, encoder = GraphBuilder(), model.query_encoder()
    encode = builder >> encoder
    both = encode(TOPICS)
    builder.formulas = "opt"  # as pt.GridSearch sets parameters
    assert rows(encode(TOPICS)) == rows((GraphBuilder(formulas="opt") >> encoder)(TOPICS)) != rows(both)
    builder.formulas = "both"
    config = small.replace(seed=1)
    encoder.model = MathAMR(config, vocabulary, random_network(config, vocabulary).state_dict())
    assert rows(encode(TOPICS)) == rows((GraphBuilder() >> encoder.model.query_encoder())(TOPICS)) != rows(both)
    encoder.model = model.with_score_weights(ScoreWeights(0.5, 0.5, 0.5, 1.0))
    weighted = encode(TOPICS)
    assert rows(weighted) == rows(both)
    assert weighted["query_document_weight"].tolist() == [1.0, 1.0]


def test_equality_and_pickles_leave_recent_queries_out(model) -> None:
    stages = GraphBuilder(), model.query_encoder()
    pipeline = stages[0] >> stages[1]
    sizes = [len(pickle.dumps(stage)) for stage in stages]
    pipeline(TOPICS)
    assert [len(pickle.dumps(stage)) for stage in stages] == pytest.approx(sizes, abs=500)
    assert pipeline == GraphBuilder() >> model.query_encoder()
    assert rows(pickle.loads(pickle.dumps(pipeline))(TOPICS)) == rows(pipeline(TOPICS))


def test_only_so_many_queries_are_kept(model, graphs, computed) -> None:
    encoder, graph = model.query_encoder(), graphs["q0"]
    frames = [pd.DataFrame({"qid": [str(i)], "query_graph": [graphs[f"q{i}"]]}) for i in range(2)]
    encoder(frames[0])
    encoder(frames[1])
    many = pd.DataFrame({"qid": list(map(str, range(MOST_QUERIES - 1))), "query_graph": [graph] * (MOST_QUERIES - 1)})
    encoder(many)  # leaves room for one
    computed.clear()
    encoder(frames[1])
    assert computed == []
    encoder(frames[0])
    assert computed == ["encode"]
    encoder(pd.concat([many, many.assign(qid="x" + many["qid"])]))  # more than may be kept: the others stay
    computed.clear()
    encoder(frames[0])
    assert computed == []


def test_a_failed_parse_is_tried_again_and_a_parser_without_a_hash_is_asked_each_time() -> None:
    class Parser(DependencyAmrParser):
        calls = 0

        def parse_posts(self, posts):
            self.calls += 1
            if self.calls == 1:
                raise RuntimeError("out of memory")
            return super().parse_posts(posts)

    class Unhashable(Parser):
        __hash__ = None

    for parser, calls in ((Parser(), 2), (Unhashable(), 3)):
        builder = GraphBuilder(parser)
        with pytest.warns(MathAMRWarning, match="out of memory"):
            assert builder(TOPICS[:1])["query_graph"][0].amr.labels[0] == "amr-empty"
        for _ in range(2):
            assert builder(TOPICS[:1])["query_graph"][0].amr.labels[0] != "amr-empty"
        assert parser.calls == calls


def test_threads_share_recent_queries(model, graphs, computed) -> None:
    encoder = model.query_encoder()
    frames = [pd.DataFrame({"qid": ["1"], "query_graph": [graphs[f"q{i}"]]}) for i in range(8)]
    wanted = [rows(model.query_encoder()(frame)) for frame in frames]
    start = threading.Barrier(4)

    def ask(first: int) -> list[list[bytes]]:
        start.wait()
        return [rows(encoder(frame)) for frame in frames[first:] + frames[:first]]

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(ask, range(0, 8, 2)))
    assert answers == [wanted[first:] + wanted[:first] for first in range(0, 8, 2)]
    computed.clear()
    assert [rows(encoder(frame)) for frame in frames] == wanted
    assert computed == []
