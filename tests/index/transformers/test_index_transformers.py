"""The transformers over an index as PyTerrier uses them."""

import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import MissingValueError
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex, MathAMRIndexError, ModelMismatchError
from pyterrier_mathamr.store import UnknownIdError

RETRIEVERS = ("single_vector", "doc_vn", "colbert")
FACTORIES = (*RETRIEVERS, "retriever", "scorer", "vec_loader")


def small() -> MathAMRIndex:
    return MathAMRIndex.example()


SingleVectorTest = pt.testing.transformer_test_class(lambda: small().single_vector())
DocVNTest = pt.testing.transformer_test_class(lambda: small().doc_vn())
ColBERTTest = pt.testing.transformer_test_class(lambda: small().colbert())
ScorerTest = pt.testing.transformer_test_class(lambda: small().scorer())
VectorLoaderTest = pt.testing.transformer_test_class(lambda: small().vec_loader())
IndexTest = pt.testing.transformer_test_class(small)
FormulaRetrieverTest = pt.testing.transformer_test_class(lambda: MathAMRFormulaIndex.example().retriever())
FormulaIndexTest = pt.testing.transformer_test_class(MathAMRFormulaIndex.example)


def make_ranking(frame: pd.DataFrame, docnos: list[str]) -> pd.DataFrame:
    return frame.merge(pd.DataFrame({"docno": docnos, "score": 0.0, "rank": range(len(docnos))}), how="cross")


@pytest.mark.parametrize("factory", FACTORIES)
def test_inspection_opens_no_index(tmp_path, factory):
    transformer = getattr(MathAMRIndex(tmp_path / "not built"), factory)()
    for inputs in pt.inspect.transformer_inputs(transformer):
        assert pt.inspect.transformer_outputs(transformer, inputs)
    drawn = pt.schematic.transformer_schematic(transformer)
    assert 0 < len(drawn["label"]) <= 20
    assert drawn["help_url"].startswith("https://")


@pytest.mark.parametrize("strategy", RETRIEVERS)
def test_a_docno_that_no_encoding_has_is_ranked_like_any_other(tmp_path, strategy):
    rows = np.eye(4, dtype=np.float32)
    index = MathAMRIndex(tmp_path / "i")
    index.index([{"docno": "b", "doc_embs": rows[2:]}, {"docno": "\ud800x", "doc_embs": rows[:2]}])
    found = getattr(index, strategy)()(pd.DataFrame({"qid": ["1"], "query_embs": [rows[:2]]}))
    assert found["docno"].tolist() == ["\ud800x", "b"]


@pytest.mark.parametrize("strategy", [*RETRIEVERS, "scorer"])
def test_the_method_search_is_not_hidden_by_the_option_of_that_name(index, strategy):
    with pytest.warns(DeprecationWarning, match="exact=True"):
        transformer = getattr(index, strategy)(search="exact")
    with pytest.raises(pt.validate.InputValidationError, match="query_embs"):
        transformer.search("a text that nothing has encoded")
    assert pt.inspect.transformer_attributes(transformer)
    assert transformer == getattr(index, strategy)()


@pytest.mark.parametrize("strategy", RETRIEVERS)
def test_an_empty_frame_gives_the_columns_of_a_full_one(index, topics, strategy):
    retriever = getattr(index, strategy)()
    full = retriever(topics([2]))
    empty = retriever(topics([2]).iloc[:0])
    assert list(empty.columns) == list(full.columns)
    assert empty["score"].dtype == full["score"].dtype == np.float64
    assert empty["rank"].dtype == full["rank"].dtype == np.int64


@pytest.mark.parametrize("strategy", RETRIEVERS)
def test_a_ranking_is_ordered_counts_from_zero_and_keeps_the_query_s_columns(index, topics, strategy):
    frame = topics([2, 3]).assign(text="a column of the topic", query_0="an earlier form")
    found = getattr(index, strategy)(num_results=4)(frame)
    assert list(found.columns) == ["qid", "query", "query_embs", "text", "query_0", "docno", "score", "rank"]
    assert found["qid"].tolist() == ["q0"] * 4 + ["q1"] * 4
    assert found["rank"].tolist() == [0, 1, 2, 3] * 2
    assert (found.groupby("qid")["score"].diff().dropna() <= 0).all()
    assert found["docno"].map(type).eq(str).all()


@pytest.mark.parametrize("strategy", RETRIEVERS)
@pytest.mark.parametrize("k", [1, 3, 100])
def test_a_fused_cutoff_is_the_cutoff(index, topics, strategy, k):
    retriever = getattr(index, strategy)(num_results=5)
    pipeline = retriever % k
    assert type(pipeline.compile()) is type(retriever)
    pd.testing.assert_frame_equal(pipeline.compile()(topics([2, 3, 1])), pipeline(topics([2, 3, 1])))
    assert retriever.fuse_rank_cutoff(5) is retriever
    assert retriever.fuse_rank_cutoff(9) is retriever


def test_a_fused_cutoff_of_the_scorer_and_the_loader_is_the_cutoff(index, topics):
    frame = make_ranking(topics([2, 3]), ["d3", "d0", "d7", "d5"])
    for transformer in (index.scorer(), index.vec_loader()):
        pipeline = transformer % 2
        fused, plain = pipeline.compile()(frame), pipeline(frame)
        assert fused["docno"].tolist() == plain["docno"].tolist()
        assert len(fused) == 4
    assert (index.scorer() % 2).compile() == index.scorer(num_results=2)


def test_one_result_for_each_query_is_a_number_and_not_an_array(index, topics):
    found = index.colbert(num_results=1)(topics([2, 3]))
    assert found["score"].dtype == np.float64
    assert found["docno"].map(type).eq(str).all()
    assert len(found) == 2


def test_embeddings_missing_on_some_rows_are_taken_from_the_others(index, topics):
    frame = topics([2, 3])
    gaps = pd.concat([frame.assign(query_embs=np.nan, query=np.nan), frame], ignore_index=True)
    pd.testing.assert_frame_equal(index.colbert()(gaps), index.colbert()(frame), check_dtype=False)
    ranking = make_ranking(frame, ["d1", "d2"])
    holes = ranking.assign(query_embs=[np.nan, ranking["query_embs"][1], ranking["query_embs"][2], np.nan])
    assert index.scorer()(holes)["score"].tolist() == index.scorer()(ranking)["score"].tolist()
    with pytest.raises(MissingValueError, match="q1"):
        index.colbert()(frame.assign(query_embs=[frame["query_embs"][0], np.nan]))


def test_rankings_joined_by_plus_and_bar_are_scored(index, topics):
    frame = topics([2, 3])
    first = pt.Transformer.from_df(make_ranking(frame[["qid", "query"]], ["d1", "d4", "d2"]))
    for joined in (first + index.colbert(num_results=2), first | index.colbert(num_results=2)):
        ranked = (joined >> index.scorer())(frame)
        assert ranked["score"].notna().all()
        assert set(ranked["docno"]) >= {"d1", "d4", "d2"}


def test_the_scorer_keeps_every_row_and_column_and_duplicates(index, topics):
    frame = make_ranking(topics([2, 3]), ["d4", "d1", "d4"]).assign(text=list("abcdef"))
    scored = index.scorer()(frame)
    assert sorted(scored["text"]) == list("abcdef")
    assert list(scored.columns) == list(frame.columns)
    assert scored["rank"].tolist() == [0, 1, 2, 0, 1, 2]
    assert scored[scored["docno"] == "d4"].groupby("qid")["score"].nunique().tolist() == [1, 1]
    full = index.colbert()(topics([2, 3])).set_index(["qid", "docno"])["score"]
    assert all(full[row.qid, row.docno] == row.score for row in scored.itertuples())


def test_unknown_documents_are_named_and_not_given_another_one_s_score(index, topics):
    with pytest.raises(UnknownIdError, match="'no such'") as caught:
        index.scorer()(make_ranking(topics([2]), ["d1", "no such"]))
    assert caught.value.ids == ["no such"]
    with pytest.raises(UnknownIdError, match="'d99'"):
        index.vec_loader()(pd.DataFrame({"docno": ["d99"]}))


def test_the_loader_gives_back_what_was_indexed(index, documents):
    docs = documents([1, 3, 2, 5, 1, 4, 3, 2, 2, 5, 1, 4])
    loaded = index.vec_loader()(pd.DataFrame({"docno": ["d3", "d0", "d3"]}))
    for found, i in zip(loaded["doc_embs"], (3, 0, 3), strict=True):
        np.testing.assert_array_equal(found, docs[i]["doc_embs"])
        assert found.dtype == np.float32


def test_the_index_called_directly_goes_by_the_columns(index, topics):
    frame = topics([2])
    ranking = make_ranking(frame, ["d1", "d4"])
    pd.testing.assert_frame_equal(index(frame), index.retriever()(frame))
    pd.testing.assert_frame_equal(index(ranking), index.scorer()(ranking))
    assert "doc_embs" in index(pd.DataFrame({"docno": ["d1"]}))
    with pytest.raises(pt.validate.InputValidationError):
        index(pd.DataFrame({"query": ["no vectors"]}))


@pytest.mark.parametrize("factory", FACTORIES)
def test_equal_transformers_hash_alike_and_survive_pickling(index, factory):
    one = getattr(index, factory)()
    other = getattr(MathAMRIndex(str(index.path)), factory)()
    elsewhere = getattr(MathAMRIndex("elsewhere"), factory)()
    assert one == other
    assert hash(one) == hash(other)
    assert one != elsewhere
    assert factory == "vec_loader" or one != getattr(index, factory)(verbose=True)
    len(index)  # opens it
    assert pickle.loads(pickle.dumps(one)) == one
    assert str(index.path) in repr(one)


@pytest.mark.parametrize("kind", [MathAMRIndex, MathAMRFormulaIndex])
def test_equal_indexers_hash_alike_survive_pickling_and_are_rebuilt_by_their_repr(kind, tmp_path):
    from pyterrier_mathamr.index import indexing

    one = kind(tmp_path / "x").indexer("append", dtype="float16")
    for other in (kind(tmp_path / "x").indexer("append", dtype="float16"), pickle.loads(pickle.dumps(one))):
        assert one == other
        assert hash(one) == hash(other)
    assert one == eval(repr(one), {**vars(indexing), kind.__name__: kind})
    assert one != kind(tmp_path / "x").indexer("append")
    assert one != kind(tmp_path / "y").indexer("append", dtype="float16")


def test_the_repr_rebuilds(index):
    from pyterrier_mathamr.index import transformers

    for factory in FACTORIES:
        transformer = getattr(index, factory)()
        assert eval(repr(transformer), {**vars(transformers), "MathAMRIndex": MathAMRIndex}) == transformer


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"num_results": 0}, "num_results"),
        ({"num_results": 2.5}, "num_results"),
        ({"batch_size": -1}, "batch_size"),
        ({"search": "quickly"}, "search"),
        ({"exact": "quickly"}, "exact"),
        ({"device": "tpu"}, "device"),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(index, options, named):
    with pytest.raises(ConfigError, match=named):
        index.colbert(**options)
    if len(options) == 1:
        retriever = index.colbert()
        with pytest.raises(ConfigError, match=named):
            retriever.set_parameter(named, options[named])
        assert retriever == index.colbert()


def test_search_is_another_name_of_exact_for_one_release(index):
    approximate = index.colbert(exact=False)
    for name in ("approximate", "hnsw"):
        with pytest.warns(DeprecationWarning, match="exact=False"):
            assert index.colbert(search=name) == approximate != index.colbert()
    retriever = index.colbert()
    with pytest.warns(DeprecationWarning, match="exact=False"):
        retriever.set_parameter("search", "hnsw")
    assert retriever == approximate
    with pytest.raises(ConfigError, match="exact"):
        index.scorer().set_parameter("exact", False)
    with pytest.raises(ConfigError, match="exact"):
        index.scorer(exact=False)


@pytest.mark.parametrize("name", ["candidates", "batch_size", "num_results"])
def test_a_count_is_refused_when_it_is_set(index, name):
    retriever = index.doc_vn()
    for bad in (0, 3.5, True, "5"):
        with pytest.raises(ConfigError, match=name):
            retriever.set_parameter(name, bad)
    retriever.set_parameter(name, np.int64(7))
    assert retriever == index.doc_vn(**{name: 7})


@pytest.mark.parametrize("factory", [*RETRIEVERS, "scorer"])
def test_a_cutoff_at_zero_returns_nothing(index, topics, factory):
    frame = topics([2])
    frame = make_ranking(frame, ["d1", "d2"]) if factory == "scorer" else frame
    for stage in (getattr(index, factory)() % 0, (getattr(index, factory)() % 0).compile()):
        assert stage(frame).empty


@pytest.mark.parametrize("k", [0, 2, 5])
def test_a_cutoff_of_an_index_is_fused_and_takes_queries_and_rankings(index, topics, k):
    frame = topics([2, 3])
    compiled = (index % k).compile()
    if k:
        assert not any(isinstance(stage, pt.RankCutoff) for stage in getattr(compiled, "_transformers", [compiled]))
    for given in (frame, make_ranking(frame, ["d1", "d4", "d2"])):
        pd.testing.assert_frame_equal(compiled(given), (index % k)(given))
    assert len(index(make_ranking(frame.iloc[[0]], ["d1"] * 1100))) == 1100
    formulas = MathAMRFormulaIndex.example()
    if k:
        assert (formulas % k).compile() == formulas.retriever(num_results=k)


@pytest.mark.parametrize("strategy", RETRIEVERS)
@pytest.mark.parametrize("empty", [np.empty((0, 8), np.float32), np.empty((0, 0), np.float32)])
def test_a_query_without_vectors_finds_nothing_and_its_candidates_score_zero(index, topics, strategy, empty):
    frame = topics([2, 2, 3])
    frame["query_embs"] = pd.Series([frame["query_embs"][0], empty, frame["query_embs"][2]], dtype=object)
    frame = frame.assign(query_weights=[[1.0, 2.0], [], [1.0, 0.5, 1.0]], query_document_weight=1.5)
    retriever = getattr(index, strategy)(num_results=3)
    found = retriever(frame)
    pd.testing.assert_frame_equal(found, retriever(frame.iloc[[0, 2]]))
    assert retriever(frame.iloc[[1]]).empty
    ranking = make_ranking(frame, ["d3", "d10", "d1"])
    scored = index.scorer()(ranking)
    of_empty = scored[scored["qid"] == "q1"]
    assert of_empty["docno"].tolist() == ["d1", "d10", "d3"]
    assert of_empty["score"].tolist() == [0.0] * 3
    others = scored[scored["qid"] != "q1"].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, index.scorer()(ranking[ranking["qid"] != "q1"]))


@pytest.mark.parametrize("factory", ["single_vector", "colbert", "scorer", "vec_loader", "text_loader"])
def test_no_rows_are_no_rows_again(index, topics, factory):
    stage = getattr(index, factory)()
    assert list(stage.transform_iter([])) == []
    frame = topics([2])
    ranking = make_ranking(frame, ["d1"])
    given = ranking if factory in ("scorer", "vec_loader", "text_loader") else frame
    full, empty = stage(given), stage(given.iloc[:0])
    assert list(empty.columns) == list(full.columns)
    assert pd.api.types.is_string_dtype(empty["docno"])


@pytest.mark.parametrize("strategy", RETRIEVERS)
def test_a_qid_in_two_rows_is_one_query_with_all_columns_of_the_topic(index, topics, strategy):
    frame = topics([2, 3]).assign(lang=["en", "de"])
    retriever = getattr(index, strategy)(num_results=2)
    found = retriever(pd.concat([frame, frame.iloc[[0]].assign(lang="fr")], ignore_index=True))
    pd.testing.assert_frame_equal(found, retriever(frame))
    assert found["lang"].tolist() == ["en", "en", "de", "de"]


def test_a_frame_of_documents_is_indexed(tmp_path, documents, topics):
    docs = documents([1, 3, 2])
    frame = pd.DataFrame({"docno": [doc["docno"] for doc in docs]})
    frame["doc_embs"] = [doc["doc_embs"] for doc in docs]
    expected = MathAMRIndex(tmp_path / "a").index(docs).colbert()(topics([2]))
    for index, fill in (
        (MathAMRIndex(tmp_path / "b"), lambda index: index.index(frame)),
        (MathAMRIndex(tmp_path / "c"), lambda index: index.indexer().index(frame)),
    ):
        fill(index)
        pd.testing.assert_frame_equal(index.colbert()(topics([2])), expected)


def test_a_docno_is_in_an_index_or_not(index, tmp_path):
    assert "d3" in index
    assert "d99" not in index
    assert 3 not in index


def test_an_index_loads_the_texts_that_it_stores_and_names_those_that_it_does_not(index):
    formulas = MathAMRFormulaIndex.example()
    frame = pd.DataFrame({"docno": ["f3", "f1"]})
    loaded = formulas.text_loader()(frame)
    assert loaded.to_dict("list") == {"docno": ["f3", "f1"], "post_id": ["d2", "d1"], "visual_id": ["", ""]}
    assert list(formulas.text_loader("post_id")(frame).columns) == ["docno", "post_id"]
    pd.testing.assert_frame_equal(pt.text.get_text(formulas)(frame), loaded)
    assert small().text_loader()(pd.DataFrame({"docno": ["d1", "d3"]}))["formula_ids"].tolist() == [["f1", "f2"], []]
    with pytest.raises(ConfigError, match=r"fields='text' .* 'formula_ids'; .* dataset.text_loader"):
        index.text_loader(["text"])
    with pytest.raises(UnknownIdError, match="d99"):
        index.text_loader()(pd.DataFrame({"docno": ["d99"]}))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.zeros((2, 3), np.float32) + 1, "3 dimensions"),
        (np.full((2, 8), np.nan, np.float32), "NaN"),
        (np.ones(8, np.float32), r"shape \(8,\)"),
        ("text", "not an array"),
    ],
)
def test_a_query_s_bad_vectors_are_refused_naming_the_query(index, topics, value, reason):
    frame = topics([2, 2]).assign(query_embs=pd.Series([topics([2])["query_embs"][0], value], dtype=object))
    with pytest.raises(MathAMRIndexError, match=f"query 'q1': .*{reason}"):
        index.colbert()(frame)


def test_queries_of_another_model_are_refused_with_both_names(tmp_path, documents, topics):
    index = MathAMRIndex(tmp_path / "x")
    index.indexer(model="mini").index(documents([2, 1]))
    assert index.model == "mini"
    assert len(index.colbert()(topics([2]).assign(query_model="mini"))) == 2
    with pytest.raises(ModelMismatchError, match=r"mini.*large"):
        index.colbert()(topics([2]).assign(query_model="large"))


def test_the_hash_tells_models_apart_and_the_name_does_not(tmp_path, documents, topics):
    index = MathAMRIndex(tmp_path / "x")
    index.index({**doc, "doc_model": "mini@0f"} for doc in documents([2, 1]))
    assert index.model == "mini@0f"
    assert {doc["doc_model"] for doc in index.get_corpus_iter()} == {"mini@0f"}
    for searched in (index.colbert(), index.single_vector(), index.doc_vn()):
        assert len(searched(topics([2]).assign(query_model="a copy@0f"))) == 2
        with pytest.raises(ModelMismatchError, match=r"mini@0f.*mini@99"):
            searched(topics([2]).assign(query_model="mini@99"))
    ranking = make_ranking(topics([2]), ["d0"])
    assert len(index.scorer()(ranking.assign(query_model="a copy@0f"))) == 1
    with pytest.raises(ModelMismatchError, match=r"mini@0f.*mini@99"):
        index.scorer()(ranking.assign(query_model="mini@99"))


@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_a_stream_with_vectors_of_two_models_changes_nothing(tmp_path, documents, mode):
    index = MathAMRIndex(tmp_path / "x")
    if mode != "create":
        index.index({**doc, "doc_model": "mini@0f"} for doc in documents([2, 1]))
    stream = [
        {**doc, "doc_model": name}
        for doc, name in zip(documents([1, 2], name="e"), ("mini@0f", "other@1e"), strict=True)
    ]
    with pytest.raises(ModelMismatchError, match=r"mini@0f.*other@1e"):
        index.indexer(mode).index(stream)
    assert index.built() == (mode != "create")
    if index.built():
        assert {doc["docno"] for doc in index.get_corpus_iter()} == {"d0", "d1"}
    with pytest.raises(ModelMismatchError, match=r"third.*mini@0f"):
        index.indexer("overwrite", model="third").index(stream[:1])


def test_nothing_is_printed_unless_asked(index, topics, capfd):
    frame = topics([2, 3])
    for factory in RETRIEVERS:
        getattr(index, factory)()(frame)
    index.scorer()(make_ranking(frame, ["d1"]))
    assert capfd.readouterr() == ("", "")
    index.colbert(verbose=True, batch_size=1)(frame)
    assert "MathAMR ColBERT" in capfd.readouterr().err


def test_an_experiment_runs_over_all_strategies(index, topics):
    qrels = pd.DataFrame({"qid": ["q0", "q1"], "docno": ["d1", "d2"], "label": [1, 1]})
    table = pt.Experiment(
        [getattr(index, name)() for name in RETRIEVERS], topics([2, 3]), qrels, ["map"], names=list(RETRIEVERS)
    )
    assert table["map"].between(0.01, 1).all()


def test_an_indexer_says_what_it_needs_and_is_drawn_without_network(tmp_path):
    indexer = MathAMRIndex(tmp_path / "x").indexer()
    assert pt.inspect.indexer_inputs(indexer) == [["docno", "doc_embs"]]
    assert pt.schematic.draw(pt.schematic.transformer_schematic(indexer))
    with pytest.raises(ConfigError, match="mode"):
        MathAMRIndex(tmp_path / "x").indexer("replace")
