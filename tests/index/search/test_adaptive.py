"""Corpus graphs and adaptive retrieval, compared with the plainest loops, and with pyterrier_adaptive where it is."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pyterrier_mathamr as mathamr
from pyterrier_mathamr import Processes
from pyterrier_mathamr.index import MathAMRIndex, adaptive
from pyterrier_mathamr.store import DamagedError, NotBuiltError, OtherArtifactError, UnknownIdError

LENGTHS = [1, 3, 2, 5, 1, 4, 3, 2] * 9


@pytest.fixture(scope="module")
def posts(documents):
    made: list[dict[str, Any]] = documents(LENGTHS)
    return made + [{**made[3], "docno": f"é{i}"} for i in range(8)]


@pytest.fixture(scope="module")
def index(tmp_path_factory, posts):
    return MathAMRIndex(tmp_path_factory.mktemp("adaptive") / "some.mathamr").index(posts)


@pytest.fixture(scope="module")
def graph(index):
    return index.corpus_graph(5)


def one_way(query, rows):
    return sum(max(float(q.astype(float) @ row.astype(float)) for row in rows) for q in query) / len(query)


def nearest(post, posts, k):
    a = post["doc_embs"]
    others = [(of["docno"], of["doc_embs"]) for of in posts if of["docno"] != post["docno"]]
    scores = [(docno, float(np.float32((one_way(a, b) + one_way(b, a)) / 2))) for docno, b in others]
    return sorted(scores, key=lambda found: (-found[1], found[0]))[:k]


def files(graph):
    return {path.name: path.read_bytes() for path in graph.path.iterdir() if path.name != "pt_meta.json"}


def test_a_graph_has_the_nearest_documents_by_symmetric_maxsim_ties_by_docno(graph, posts):
    assert graph.docnos == [post["docno"] for post in posts]
    assert (len(graph), graph.k) == (len(posts), 5)
    for number, post in enumerate(posts):
        true = nearest(post, posts, 5)
        assert graph.neighbors(post["docno"]) == [docno for docno, _ in true]
        assert graph.weights[number].tolist() == pytest.approx([score for _, score in true], abs=2e-3)
    assert graph.neighbors("nowhere") == []


def test_candidates_are_the_nearest_by_document_vectors(index, posts, tmp_path):
    found = index.corpus_graph(3, tmp_path / "graph", candidates=6)
    for post in posts[:20]:
        last = [{**of, "doc_embs": of["doc_embs"][-1:]} for of in posts]
        own = next(of for of in last if of["docno"] == post["docno"])
        near = {docno for docno, _ in nearest(own, last, 6)}
        true = nearest(post, [of for of in posts if of["docno"] in near], 3)
        assert found.neighbors(post["docno"]) == [docno for docno, _ in true]


@pytest.mark.parametrize("where", ["parts", "qdrant"])
def test_graphs_and_adaptive_retrieval_are_the_same_in_parts_and_in_qdrant(
    where, index, graph, posts, elsewhere, first, tmp_path
):
    other = elsewhere(where, posts)
    made = other.corpus_graph(5, tmp_path / "graph")
    assert all(made.neighbors(post["docno"]) == graph.neighbors(post["docno"]) for post in posts)
    for options in ({"budget": 30}, {"budget": 25, "batch_size": 1}):
        pd.testing.assert_frame_equal(other.gar(graph, **options)(first), index.gar(graph, **options)(first))
    pd.testing.assert_frame_equal(other.ladr(graph, depth=4)(first), index.ladr(graph, depth=4)(first))


def test_the_graph_is_the_same_on_workers(index, graph, tmp_path):
    assert files(index.corpus_graph(5, tmp_path / "graph", executor=Processes(2))) == files(graph)


def test_an_interrupted_build_is_resumed_and_a_finished_graph_is_returned(index, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(adaptive, "BLOCK", 16)
    work, blocks = adaptive.Neighbors.__call__, []

    def breaking(self, block):
        if len(blocks) == 3:
            raise KeyboardInterrupt
        blocks.append(block)
        return work(self, block)

    monkeypatch.setattr(adaptive.Neighbors, "__call__", breaking)
    with pytest.raises(KeyboardInterrupt):
        index.corpus_graph(5, tmp_path / "graph")
    assert not (tmp_path / "graph").exists()
    with open(tmp_path / ".graph.job" / "edges.u32.np", "ab") as torn:
        torn.write(b"half a block")
    monkeypatch.setattr(adaptive.Neighbors, "__call__", lambda self, block: blocks.append(block) or work(self, block))
    made = index.corpus_graph(5, tmp_path / "graph")
    assert files(made) == files(graph)
    assert sum(map(len, blocks)) == len(graph)
    monkeypatch.setattr(adaptive.Neighbors, "__call__", None)
    assert index.corpus_graph(5, tmp_path / "graph") == made


def test_a_graph_of_another_state_or_kind_is_refused(posts, tmp_path):
    index = MathAMRIndex(tmp_path / "some.mathamr").index(posts[:9])
    graph = index.corpus_graph(2)
    assert graph.path == (tmp_path / "some.k2.graph").absolute()
    with pytest.raises(OtherArtifactError, match="candidates"):
        index.corpus_graph(2, candidates=3)
    index.indexer("append").index(posts[9:12])
    with pytest.raises(OtherArtifactError, match="index"):
        index.corpus_graph(2)
    with pytest.raises(NotBuiltError):
        len(mathamr.CorpusGraph(tmp_path / "nothing"))
    with pytest.raises(OtherArtifactError):
        len(mathamr.CorpusGraph(index.path))
    (graph.path / "edges.u32.np").write_bytes(b"short")
    with pytest.raises(DamagedError):
        mathamr.CorpusGraph(graph.path).neighbors("d1")


def test_a_document_with_fewer_neighbors_repeats_itself_and_one_document_has_no_graph(posts, tmp_path):
    index = MathAMRIndex(tmp_path / "some.mathamr").index(posts[:3])
    graph = index.corpus_graph(4)
    assert graph.edges[0].tolist()[2:] == [0, 0]
    assert len(graph.neighbors("d0")) == 2
    with pytest.raises(mathamr.MathAMRError, match="two documents"):
        MathAMRIndex(tmp_path / "one.mathamr").index(posts[:1]).corpus_graph(4)


def test_pyterrier_adaptive_reads_a_graph(graph, posts):
    meta = json.loads((graph.path / "pt_meta.json").read_text("utf-8"))
    assert {"type": "corpus_graph", "format": "np_topk", "doc_count": len(posts), "k": 5}.items() <= meta.items()
    pytest.importorskip("pyterrier_adaptive", reason="pip install pyterrier-adaptive")
    theirs = pt.Artifact.load(graph.path)
    for post in posts:
        assert list(theirs.neighbours(post["docno"])) == graph.neighbors(post["docno"])


def scores_of(query, posts):
    return {post["docno"]: float(np.float32(one_way(query, post["doc_embs"]) * len(query))) for post in posts}


def best(scores, count=None):
    return sorted(scores, key=lambda docno: (-scores[docno], docno))[:count]


def plain_gar(ranking, true, graph, budget, turn):
    """Algorithm 1 of MacAvaney et al. (2022), with sets."""
    scored: dict[str, float] = {}
    source: dict[str, float] = {}
    pools = [list(ranking), []]
    side = 0
    while len(scored) < budget and any(pools):
        side = side if pools[side] else 1 - side
        batch = pools[side][: min(turn, budget - len(scored))]
        scored |= {docno: true[docno] for docno in batch}
        for docno in batch:
            for near in graph.neighbors(docno):
                source[near] = max(source.get(near, -9.0), true[docno])
        frontier = {docno: value for docno, value in source.items() if docno not in scored}
        pools = [[docno for docno in pools[0] if docno not in scored], best(frontier)]
        side = 1 - side
    return best(scored)


@pytest.fixture
def first(topics, posts):
    """A first stage that returns 20 documents by chance."""
    asked, rng = topics([2, 4, 1]), np.random.default_rng(5)
    rows = [
        {**row, "docno": post["docno"], "score": float(rng.random())}
        for row in asked.to_dict("records")
        for post in rng.choice(np.array(posts, dtype=object), 20, replace=False)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("budget", "turn"), [(1, 16), (17, 4), (40, 16), (1000, 3)])
def test_gar_takes_turns_between_the_ranking_and_the_frontier(budget, turn, index, graph, posts, first):
    found = index.gar(graph, budget=budget, turn=turn)(first)
    for qid, rows in first.groupby("qid"):
        true = scores_of(rows["query_embs"].iloc[0], posts)
        ranking = rows.sort_values(["score", "docno"], ascending=[False, True])["docno"].tolist()
        own = found[found["qid"] == qid]
        assert own["docno"].tolist() == plain_gar(ranking, true, graph, budget, turn)
        assert own["score"].tolist() == pytest.approx([true[docno] for docno in own["docno"]], abs=2e-6)
        assert own["rank"].tolist() == list(range(len(own)))


@pytest.mark.parametrize("depth", [None, 1, 6])
def test_ladr_scores_the_neighbors_of_the_ranking_or_of_the_best_until_there_are_no_new_ones(
    depth, index, graph, posts, first
):
    found = index.ladr(graph, depth=depth, num_results=30)(first)
    for qid, rows in first.groupby("qid"):
        true, scored = scores_of(rows["query_embs"].iloc[0], posts), set(rows["docno"])
        size, sources = 0, list(scored)
        while size < len(scored):
            sources = sources if depth is None else best({docno: true[docno] for docno in scored}, depth)
            size = len(scored)
            scored |= {near for docno in sources for near in graph.neighbors(docno)}
        assert found[found["qid"] == qid]["docno"].tolist() == best({docno: true[docno] for docno in scored}, 30)


def test_documents_that_came_later_have_no_neighbors_and_deleted_ones_are_left_out(
    graph, posts, first, documents, tmp_path
):
    index = MathAMRIndex(tmp_path / "changed").index(posts + documents([2], seed=9, name="new"))
    later = pd.concat([first, first.iloc[:1].assign(docno="new0", score=9.0)])
    assert "new0" in set(index.ladr(graph)(later)["docno"])
    gone = next(docno for docno in graph.docnos if docno not in set(first["docno"]))
    index.delete([gone])
    assert gone not in set(index.ladr(graph)(first)["docno"])
    index.delete([first["docno"].iloc[0]])
    with pytest.raises(UnknownIdError):
        index.gar(graph)(first)


def test_adaptive_stages_follow_pyterrier(index, graph, first):
    gar, ladr = index.gar(graph, budget=20), index.ladr(str(graph.path), num_results=20)
    assert gar == index.gar(graph.path, budget=20) != index.gar(graph)
    assert gar.fuse_rank_cutoff(20) is gar
    assert gar.fuse_rank_cutoff(5) is None
    pd.testing.assert_frame_equal((ladr % 5).compile()(first), (ladr % 5)(first))
    empty = first.iloc[:0]
    assert list(gar(empty).columns) == list(gar(first).columns)
    assert str(gar) == "MathAMR GAR(some, some.k5, budget=20)"
    docno = gar(first)["docno"].iloc[0]
    assert gar.explain(first.iloc[:1].drop(columns="docno"), docno).score == pytest.approx(gar(first)["score"].iloc[0])
