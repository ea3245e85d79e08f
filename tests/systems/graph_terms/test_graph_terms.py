"""Terms of graphs, and rankings by them, compared with scores that are computed one by one."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pyterrier_mathamr import GraphBuilder
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import MissingValueError
from pyterrier_mathamr.graph import EMPTY_AMR, MathAMRGraph
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.store import DuplicateIdError, ExistsError, UnfinishedJobError, UnknownIdError
from pyterrier_mathamr.systems import GraphTermsIndex, terms_of_graph
from pyterrier_mathamr.systems.graph_terms import FIELDS

TEXTS = {
    "d2": r"The harmonic series $\sum \frac{1}{n}$ diverges.",
    "d10": r"A geometric series $\sum r^n$ converges when $|r| < 1$.",
    "d1": "Every bounded sequence has a convergent subsequence.",
    "d0": "Every bounded sequence has a convergent subsequence.",
    "d9": "",
    "d4": r"If $x^2+1=0$ and $x^2+1=0$ then $x=i$.",
    "d5": r"Solve $x^2+1=0$, as in the harmonic series.",
}
QUERIES = pd.DataFrame(
    {"qid": ["1", "2", "3"], "query": ["a bounded sequence", r"Solve $x^2+1=0$ and $y^2+1=0$", "zygote"]}
)


@pytest.fixture(scope="module")
def graphs() -> dict[str, MathAMRGraph]:
    """The graphs of the documents."""
    built = GraphBuilder()(pd.DataFrame({"docno": list(TEXTS), "text": list(TEXTS.values())}))
    return dict(zip(built["docno"], built["graph"], strict=True))


@pytest.fixture(scope="module")
def queries() -> pd.DataFrame:
    """The queries with their graphs."""
    found: pd.DataFrame = GraphBuilder()(QUERIES)
    return found


def rows(graphs: dict[str, MathAMRGraph], *docnos: str) -> list[dict[str, Any]]:
    return [{"docno": docno, "graph": graphs[docno]} for docno in docnos or graphs]


@pytest.fixture
def index(graphs: dict[str, MathAMRGraph], tmp_path: Path) -> GraphTermsIndex:
    return GraphTermsIndex(tmp_path / "index.graphterms").index(rows(graphs))


def by_hand(
    graphs: dict[str, MathAMRGraph], query: MathAMRGraph, weights: dict[str, float], k1: float = 2.0, b: float = 1.0
) -> dict[str, float]:
    """Score each document by its definition, without an index."""
    scores = dict.fromkeys(graphs, 0.0)
    for field, weight in weights.items():
        counts = {docno: Counter(terms_of_graph(graph).of(field)) for docno, graph in graphs.items()}  # type: ignore[arg-type]
        mean = sum(of.total() for of in counts.values()) / len(counts)
        for term, times in Counter(terms_of_graph(query).of(field)).items():  # type: ignore[arg-type]
            found_in = sum(term in of for of in counts.values())
            rarity = math.log(1 + (len(counts) - found_in + 0.5) / (found_in + 0.5))
            for docno, of in ((docno, of) for docno, of in counts.items() if term in of):
                length = k1 * (1 - b + b * of.total() / mean)
                scores[docno] += weight * (1 + math.log(times)) * rarity * of[term] / (of[term] + length)
    return scores


def ranked(scores: dict[str, float]) -> list[tuple[str, float]]:
    found = [(docno, score) for docno, score in scores.items() if score > 0]
    return sorted(found, key=lambda pair: (-round(pair[1], 5), pair[0]))


def test_the_terms_of_a_graph_are_those_of_the_definition() -> None:
    graph = MathAMRGraph.from_penman(
        "(s / solve-01 :mode imperative :ARG1 (e / equation :ARG0-of (m / mean-01) "
        ":mod (f / FORMULA_0 :opt (p / U!plus :op0 (x / V!x) :op0 (y / V!x)) :slt (u / V!x :slt-n (w / +)))) "
        ":ARG2 (g / FORMULA_1 :slt (v / V!y)) :ARG3 (h / FORMULA_7))"
    )
    terms = terms_of_graph(graph)
    assert terms.edges == (
        ["FORMULA|:opt|U!plus", "U!plus|:op0|V!x", "U!plus|:op0|V!x", "FORMULA|:slt|V!x", "V!x|:slt-n|+"],
        ["FORMULA|:slt|V!y"],
    )
    assert terms.nodes == (["U!plus", "V!x", "V!x", "V!x", "+"], ["V!y"])
    assert terms.concepts == ["solve-01", "imperative", "equation", "mean-01", "FORMULA_7"]  # no formula of the graph
    assert terms.relations == [
        "solve-01|:mode|imperative",
        "solve-01|:ARG1|equation",
        "mean-01|:ARG0|equation",
        "equation|:mod|FORMULA",
        "solve-01|:ARG2|FORMULA",
        "solve-01|:ARG3|FORMULA_7",
    ]
    assert terms.of("edges") == [*terms.edges[0], *terms.edges[1]]
    assert not any(terms_of_graph(MathAMRGraph(EMPTY_AMR)).of(field) for field in FIELDS)


@pytest.mark.parametrize(
    ("weights", "k1", "b"),
    [
        (dict.fromkeys(FIELDS, 1.0), 2.0, 1.0),
        ({"edges": 1.0}, 2.0, 1.0),
        ({"relations": 0.5, "nodes": 3.0}, 0.9, 0.4),
        ({"concepts": 0.0, "edges": 1.0}, 1.2, 0.0),
    ],
)
def test_rankings_are_those_of_scores_by_definition(
    index: GraphTermsIndex,
    graphs: dict[str, MathAMRGraph],
    queries: pd.DataFrame,
    weights: dict[str, float],
    k1: float,
    b: float,
) -> None:
    options: dict[str, Any] = {"fields": list(weights), "weights": list(weights.values()), "k1": k1, "b": b}
    found = index.retriever(**options)(queries)
    everything = queries.merge(pd.DataFrame({"docno": list(graphs)}), how="cross")
    scored = index.scorer(**options)(everything).set_index(["qid", "docno"])["score"]
    for qid, graph in zip(queries["qid"], queries["query_graph"], strict=True):
        wanted = by_hand(graphs, graph, weights, k1, b)
        own = found[found["qid"] == qid]
        assert own["docno"].tolist() == [docno for docno, _ in ranked(wanted)]
        assert own["rank"].tolist() == list(range(len(own)))
        for docno, score in zip(own["docno"], own["score"], strict=True):
            assert score == pytest.approx(wanted[docno], rel=1e-5)
        assert scored[qid].to_dict() == pytest.approx(wanted, rel=1e-5)


def test_equal_scores_are_in_order_of_docno_also_at_the_cutoff(index: GraphTermsIndex, queries: pd.DataFrame) -> None:
    found = index.retriever()(queries.iloc[:1])
    assert found["docno"].tolist()[:2] == ["d0", "d1"]
    assert found["score"][0] == found["score"][1]
    assert (index % 1).compile()(queries.iloc[:1])["docno"].tolist() == ["d0"]


def test_a_query_without_a_graph_is_named(index: GraphTermsIndex, queries: pd.DataFrame) -> None:
    broken = queries.assign(query_graph=[queries["query_graph"][0], None, queries["query_graph"][2]])
    with pytest.raises(MissingValueError, match=r"query_graph.*'2'"):
        index.retriever()(broken)
    with pytest.raises(MissingValueError, match=r"query_graph.*'2'"):
        index.scorer()(broken.assign(docno="d0"))


def test_a_ranking_is_scored_also_where_some_rows_have_no_graph(index: GraphTermsIndex, queries: pd.DataFrame) -> None:
    ranking = index.retriever()(queries)
    gaps = ranking.assign(query_graph=ranking["query_graph"].where(~ranking["qid"].duplicated()))
    again = index.scorer()(gaps)
    assert again[["qid", "docno", "rank"]].equals(ranking[["qid", "docno", "rank"]])
    with pytest.raises(UnknownIdError, match="nowhere"):
        index.scorer()(queries.assign(docno="nowhere"))


def test_options_that_do_not_fit_are_refused(index: GraphTermsIndex) -> None:
    for options, said in (
        ({"weights": [1, 2]}, "weights.*4 numbers"),
        ({"weights": [1, 2, 3, -1]}, "weights"),
        ({"fields": []}, "fields"),
        ({"fields": ["words"]}, "fields.*edges, nodes, concepts, relations"),
        ({"fields": ["edges", "edges"]}, "each once"),
        ({"k1": -1}, "k1"),
        ({"b": 2}, "b="),
    ):
        for make in (index.retriever, index.scorer):
            with pytest.raises(ConfigError, match=said):
                make(**options)  # type: ignore[arg-type]


def test_the_parts_of_a_score_are_formulas_concepts_and_relations(
    index: GraphTermsIndex, graphs: dict[str, MathAMRGraph], queries: pd.DataFrame
) -> None:
    query = {**queries.iloc[1].to_dict(), "docno": "d5", "graph": graphs["d5"]}
    found = index.explain(query)
    wanted = by_hand(graphs, query["query_graph"], dict.fromkeys(FIELDS, 1.0))["d5"]
    assert found.score == pytest.approx(wanted, rel=1e-5)
    assert set(found.parts["part"]) == {"edges", "nodes", "concept", "relation"}
    edges = found.parts[found.parts["part"] == "edges"].set_index("query_row")
    assert edges["query"].to_dict() == {0: "x^2+1=0", 1: "y^2+1=0"}
    assert set(edges["document"]) == {"x^2+1=0"}
    assert edges["contribution"][0] > edges["contribution"][1] > 0
    assert "solve-01" in set(found.parts["query"])
    unread = index.explain(query | {"graph": None})
    assert unread.score == pytest.approx(found.score)
    assert set(unread.parts["document"]) == {""}


def search(index: GraphTermsIndex, queries: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([index.retriever(count)(queries)[["qid", "docno", "score", "rank"]] for count in (2, 1000)])


def arrays(index: GraphTermsIndex) -> list[bytes]:
    return [(index.path / part.meta.name / "arrays.safetensors").read_bytes() for part in index.snapshot().parts]


def test_after_any_changes_it_ranks_as_one_built_anew(
    graphs: dict[str, MathAMRGraph], queries: pd.DataFrame, tmp_path: Path
) -> None:
    index = GraphTermsIndex(tmp_path / "index").index(rows(graphs, "d2", "d10", "d1"))
    with pytest.raises(ExistsError):
        index.index(rows(graphs))
    index.indexer("append").index(rows(graphs, "d4", "d0"))
    with pytest.raises(DuplicateIdError, match="'d4'"):
        index.indexer("append").index(rows(graphs, "d5", "d4"))
    index.delete(["d10", "d4"])
    index.indexer("append").index(rows(graphs, "d5", "d4", "d9"))
    anew = GraphTermsIndex(tmp_path / "anew").index(rows(graphs, "d2", "d1", "d0", "d5", "d4", "d9"))
    pd.testing.assert_frame_equal(search(index, queries), search(anew, queries), check_exact=True)
    assert [row["docno"] for row in index.get_corpus_iter()] == ["d2", "d1", "d0", "d5", "d4", "d9"]
    index.compact()
    assert arrays(index) == arrays(anew)
    index.verify()
    index.indexer("overwrite").index(rows(graphs, "d9"))
    assert len(index) == 1
    assert search(index, queries).empty


def test_merged_indexes_rank_as_one_built_of_all_documents(
    graphs: dict[str, MathAMRGraph], queries: pd.DataFrame, tmp_path: Path
) -> None:
    one = GraphTermsIndex(tmp_path / "1").index(rows(graphs, "d2", "d10"))
    two = GraphTermsIndex(tmp_path / "2").index(rows(graphs, "d5", "d4", "d1"))
    two.delete(["d4"])
    merged = GraphTermsIndex.merge(tmp_path / "merged", one, two)
    anew = GraphTermsIndex(tmp_path / "anew").index(rows(graphs, "d2", "d10", "d5", "d1"))
    pd.testing.assert_frame_equal(search(merged, queries), search(anew, queries), check_exact=True)
    assert arrays(merged) == arrays(anew)
    with pytest.raises(DuplicateIdError, match="'d2'"):
        GraphTermsIndex.merge(tmp_path / "no", one, anew)


class StoppedError(Exception):
    """What interrupts a stream."""


def until(stop: int, stream: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield from stream[:stop]
    raise StoppedError


def test_an_interrupted_build_goes_on_with_the_same_graphs_only(
    graphs: dict[str, MathAMRGraph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse, "PART_BYTES", 1)
    monkeypatch.setattr(sparse, "BATCH", 2)
    stream, index = rows(graphs), GraphTermsIndex(tmp_path / "index")
    with pytest.raises(StoppedError):
        index.indexer(resume=True).index(until(5, stream))
    assert not index.built()
    assert index.unfinished() == 4
    changed = [stream[0] | {"graph": graphs["d5"]}, *stream[1:]]
    with pytest.raises(UnfinishedJobError):
        index.indexer(resume=True).index(changed)
    index.indexer(resume=True).index(stream)
    monkeypatch.undo()
    assert arrays(index) == arrays(GraphTermsIndex(tmp_path / "anew").index(stream))


def test_a_document_without_a_graph_is_named_and_nothing_is_indexed(
    graphs: dict[str, MathAMRGraph], tmp_path: Path
) -> None:
    index = GraphTermsIndex(tmp_path / "index")
    with pytest.raises(MissingValueError, match="'bad'"):
        index.index([*rows(graphs, "d2"), {"docno": "bad", "graph": None}])
    assert not index.built()


def test_what_it_holds_is_one_line(index: GraphTermsIndex) -> None:
    assert f"{index}".startswith(f"{index!r}: 7 documents, ")
    assert " relations, " in f"{index}"
