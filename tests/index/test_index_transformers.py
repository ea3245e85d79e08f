"""The transformers over an index as PyTerrier uses them."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pyterrier_mathamr as mathamr
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import MissingValueError
from pyterrier_mathamr.index import (
    MathAMRFormulaIndex,
    MathAMRIndex,
    MathAMRIndexError,
    ModelMismatchError,
    indexing,
    transformers,
)
from pyterrier_mathamr.store import UnknownIdError

RETRIEVERS = ("single_vector", "doc_vn", "colbert")
FACTORIES = (*RETRIEVERS, "retriever", "scorer", "vec_loader")
SAME = pd.testing.assert_frame_equal


def small():
    return MathAMRIndex.example()


SingleVectorTest = pt.testing.transformer_test_class(lambda: small().single_vector())
DocVNTest = pt.testing.transformer_test_class(lambda: small().doc_vn())
ColBERTTest = pt.testing.transformer_test_class(lambda: small().colbert())
ScorerTest = pt.testing.transformer_test_class(lambda: small().scorer())
VectorLoaderTest = pt.testing.transformer_test_class(lambda: small().vec_loader())
IndexTest = pt.testing.transformer_test_class(small)
FormulaRetrieverTest = pt.testing.transformer_test_class(lambda: MathAMRFormulaIndex.example().retriever())
FormulaIndexTest = pt.testing.transformer_test_class(MathAMRFormulaIndex.example)


def make_ranking(frame, docnos):
    return frame.merge(pd.DataFrame({"docno": docnos, "score": 0.0, "rank": range(len(docnos))}), how="cross")


def test_inspection_opens_no_index_and_drawing_needs_no_network(tmp_path):
    for factory in FACTORIES:
        transformer = getattr(MathAMRIndex(tmp_path / "not built"), factory)()
        for inputs in pt.inspect.transformer_inputs(transformer):
            assert pt.inspect.transformer_outputs(transformer, inputs)
        drawn = pt.schematic.transformer_schematic(transformer)
        assert 0 < len(drawn["label"]) <= 20
        assert drawn["help_url"].startswith("https://")
    indexer = MathAMRIndex(tmp_path / "x").indexer()
    assert pt.inspect.indexer_inputs(indexer) == [["docno", "doc_embs"]]
    assert pt.schematic.draw(pt.schematic.transformer_schematic(indexer))
    with pytest.raises(ConfigError, match="mode"):
        MathAMRIndex(tmp_path / "x").indexer("replace")


@pytest.mark.parametrize("factory", FACTORIES)
def test_equal_transformers_hash_alike_survive_pickling_and_are_rebuilt_by_their_repr(index, factory):
    one, other, elsewhere = (
        getattr(of, factory)() for of in (index, MathAMRIndex(str(index.path)), MathAMRIndex("elsewhere"))
    )
    assert one == other != elsewhere
    assert hash(one) == hash(other)
    assert factory == "vec_loader" or one != getattr(index, factory)(verbose=True)
    len(index)  # opens it
    assert pickle.loads(pickle.dumps(one)) == one
    assert eval(repr(one), {**vars(transformers), "MathAMRIndex": MathAMRIndex}) == one


def test_equal_indexers_hash_alike_survive_pickling_and_are_rebuilt_by_their_repr(tmp_path):
    for kind in (MathAMRIndex, MathAMRFormulaIndex):
        one, equal = (kind(tmp_path / "x").indexer("append", dtype="float16") for _ in range(2))
        for other in (equal, pickle.loads(pickle.dumps(one)), eval(repr(one), {**vars(indexing), kind.__name__: kind})):
            assert one == other
            assert hash(one) == hash(other)
        assert one != kind(tmp_path / "x").indexer("append")
        assert one != kind(tmp_path / "y").indexer("append", dtype="float16")


def test_an_option_that_cannot_be_is_refused_by_name_when_it_is_given_and_when_it_is_set(index):
    counts = [(name, bad, 7) for name in ("num_results", "batch_size", "candidates") for bad in (0, 2.5, True, "5")]
    for named, bad, good in (*counts, ("exact", "quickly", False), ("device", "tpu", "cpu")):
        retriever = index.doc_vn()
        for refused in (partial(index.doc_vn, **{named: bad}), partial(retriever.set_parameter, named, bad)):
            with pytest.raises(ConfigError) as caught:
                refused()
            assert (caught.value.option, caught.value.value) == (named, bad)
        assert retriever == index.doc_vn()
        retriever.set_parameter(named, good)
        assert retriever == index.doc_vn(**{named: good})


def test_a_scorer_is_exact_and_a_pipeline_search_needs_an_encoder(index):
    assert index.scorer(exact=True) == index.scorer()
    with pytest.raises(ConfigError, match="exact"):
        index.scorer(exact=False)
    with pytest.raises(pt.validate.InputValidationError, match="query_embs"):
        index.colbert().search("a text that nothing has encoded")


@pytest.mark.parametrize("strategy", RETRIEVERS)
def test_a_ranking_is_ordered_counts_from_zero_and_has_each_query_once_with_its_columns(index, topics, strategy):
    frame = topics([2, 3]).assign(text="a column of the topic", query_0="an earlier form")
    retriever = getattr(index, strategy)(num_results=4)
    found = retriever(frame)
    SAME(found, retriever(pd.concat([frame, frame.iloc[[0]].assign(text="another")], ignore_index=True)))
    assert list(found.columns) == ["qid", "query", "query_embs", "text", "query_0", "docno", "score", "rank"]
    assert found["qid"].tolist() == ["q0"] * 4 + ["q1"] * 4
    assert found["rank"].tolist() == [0, 1, 2, 3] * 2
    assert (found.groupby("qid")["score"].diff().dropna() <= 0).all()
    for some in (found, retriever(frame.iloc[:0]), getattr(index, strategy)(num_results=1)(frame)):
        assert list(some.columns) == list(found.columns)
        assert (some["score"].dtype, some["rank"].dtype) == (np.float64, np.int64)
        assert pd.api.types.is_string_dtype(some["docno"])


def test_an_empty_frame_gives_an_empty_frame(index, topics):
    frame = topics([2])
    ranking = make_ranking(frame, ["d1"])
    stages = [(getattr(index, name)(), ranking) for name in ("scorer", "vec_loader", "text_loader")]
    for stage, given in (*stages, (index.single_vector(), frame), (index.colbert(), frame)):
        assert list(stage.transform_iter([])) == []
        full, empty = stage(given), stage(given.iloc[:0])
        assert list(empty.columns) == list(full.columns)
        assert pd.api.types.is_string_dtype(empty["docno"])


@pytest.mark.parametrize("k", [0, 1, 3, 100])
def test_a_fused_cutoff_is_the_cutoff(index, topics, k):
    frame = topics([2, 3, 1])
    ranking = make_ranking(frame, ["d3", "d0", "d7", "d5"])
    for strategy in RETRIEVERS:
        retriever = getattr(index, strategy)(num_results=5)
        fused = (retriever % k).compile()
        SAME(fused(frame), (retriever % k)(frame))
        assert k == 0 or type(fused) is type(retriever)
        assert retriever.fuse_rank_cutoff(5) is retriever.fuse_rank_cutoff(9) is retriever
    for stage, given in ((index, frame), (index, ranking), (index.scorer(), ranking), (index.vec_loader(), ranking)):
        fused, cut = (of(given).drop(columns="doc_embs", errors="ignore") for of in ((stage % k).compile(), stage % k))
        assert fused.equals(cut)
    if k:
        assert (index.scorer() % k).compile() == index.scorer(num_results=k)
        formulas = MathAMRFormulaIndex.example()
        assert (formulas % k).compile() == formulas.retriever(num_results=k)


def test_the_index_as_a_scorer_cuts_nothing_off(index, topics):
    assert len(index(make_ranking(topics([2]), ["d1"] * 1100))) == 1100


def test_embeddings_missing_on_some_rows_are_taken_from_the_others(index, topics):
    frame = topics([2, 3])
    gaps = pd.concat([frame.assign(query_embs=np.nan, query=np.nan), frame], ignore_index=True)
    SAME(index.colbert()(gaps), index.colbert()(frame), check_dtype=False)
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
    full = index.colbert()(topics([2, 3])).set_index(["qid", "docno"])["score"]
    assert all(full[row.qid, row.docno] == row.score for row in scored.itertuples())


def test_unknown_documents_are_named_and_not_given_another_one_s_score(index, topics):
    with pytest.raises(UnknownIdError, match="'no such'") as caught:
        index.scorer()(make_ranking(topics([2]), ["d1", "no such"]))
    assert caught.value.ids == ["no such"]
    for loader in (index.vec_loader(), index.text_loader()):
        with pytest.raises(UnknownIdError, match="'d99'"):
            loader(pd.DataFrame({"docno": ["d99"]}))
    assert [name in index for name in ("d3", "d99", 3)] == [True, False, False]


def test_the_loaders_give_back_what_was_indexed(index, documents):
    docs = documents([1, 3, 2, 5, 1, 4, 3, 2, 2, 5, 1, 4])
    loaded = index.vec_loader()(pd.DataFrame({"docno": ["d3", "d0", "d3"]}))
    for found, i in zip(loaded["doc_embs"], (3, 0, 3), strict=True):
        np.testing.assert_array_equal(found, docs[i]["doc_embs"])
        assert found.dtype == np.float32
    formulas, frame = MathAMRFormulaIndex.example(), pd.DataFrame({"docno": ["f3", "f1"]})
    loaded = formulas.text_loader()(frame)
    assert loaded.to_dict("list") == {"docno": ["f3", "f1"], "post_id": ["d2", "d1"], "visual_id": ["", ""]}
    assert list(formulas.text_loader("post_id")(frame).columns) == ["docno", "post_id"]
    SAME(pt.text.get_text(formulas)(frame), loaded)
    assert small().text_loader()(pd.DataFrame({"docno": ["d1", "d3"]}))["formula_ids"].tolist() == [["f1", "f2"], []]
    with pytest.raises(ConfigError, match=r"fields='text' .* 'formula_ids'; .* dataset.text_loader"):
        index.text_loader(["text"])


def test_the_index_called_directly_goes_by_the_columns(index, topics):
    frame = topics([2])
    ranking = make_ranking(frame, ["d1", "d4"])
    SAME(index(frame), index.retriever()(frame))
    SAME(index(ranking), index.scorer()(ranking))
    assert "doc_embs" in index(pd.DataFrame({"docno": ["d1"]}))
    with pytest.raises(pt.validate.InputValidationError):
        index(pd.DataFrame({"query": ["no vectors"]}))


@pytest.mark.parametrize("empty", [np.empty((0, 8), np.float32), np.empty((0, 0), np.float32)])
def test_a_query_without_vectors_finds_nothing_and_its_candidates_score_zero(index, topics, empty):
    frame = topics([2, 2, 3])
    frame["query_embs"] = pd.Series([frame["query_embs"][0], empty, frame["query_embs"][2]], dtype=object)
    frame = frame.assign(query_weights=[[1.0, 2.0], [], [1.0, 0.5, 1.0]], query_document_weight=1.5)
    for strategy in RETRIEVERS:
        retriever = getattr(index, strategy)(num_results=3)
        SAME(retriever(frame), retriever(frame.iloc[[0, 2]]))
        assert retriever(frame.iloc[[1]]).empty
    ranking = make_ranking(frame, ["d3", "d10", "d1"])
    scored = index.scorer()(ranking)
    of_empty = scored[scored["qid"] == "q1"]
    assert of_empty["docno"].tolist() == ["d1", "d10", "d3"]
    assert of_empty["score"].tolist() == [0.0] * 3
    others = scored[scored["qid"] != "q1"].reset_index(drop=True)
    SAME(others, index.scorer()(ranking[ranking["qid"] != "q1"]))


def test_a_query_s_bad_vectors_are_refused_naming_the_query(index, topics):
    for value, reason in (
        (np.ones((2, 3), np.float32), "3 dimensions"),
        (np.full((2, 8), np.nan, np.float32), "NaN"),
        (np.ones(8, np.float32), r"shape \(8,\)"),
        ("text", "not an array"),
    ):
        frame = topics([2, 2]).assign(query_embs=pd.Series([topics([2])["query_embs"][0], value], dtype=object))
        with pytest.raises(MathAMRIndexError, match=f"query 'q1': .*{reason}"):
            index.colbert()(frame)


def test_the_hash_distinguishes_models_and_the_name_does_not(tmp_path, documents, topics):
    index = MathAMRIndex(tmp_path / "x")
    index.index({**doc, "doc_model": "mini@0f"} for doc in documents([2, 1]))
    assert index.model == "mini@0f"
    assert {doc["doc_model"] for doc in index.get_corpus_iter()} == {"mini@0f"}
    ranking = make_ranking(topics([2]), ["d0"])
    for searched, given in (*((getattr(index, name)(), topics([2])) for name in RETRIEVERS), (index.scorer(), ranking)):
        assert len(searched(given.assign(query_model="a copy@0f")))
        with pytest.raises(ModelMismatchError, match=r"mini@0f.*mini@99"):
            searched(given.assign(query_model="mini@99"))


@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_a_stream_with_vectors_of_two_models_changes_nothing(tmp_path, documents, mode):
    index = MathAMRIndex(tmp_path / "x")
    if mode != "create":
        index.index({**doc, "doc_model": "mini@0f"} for doc in documents([2, 1]))
    models = ("mini@0f", "other@1e")
    stream = [{**doc, "doc_model": of} for doc, of in zip(documents([1, 2], name="e"), models, strict=True)]
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


def test_vectors_and_what_describes_them_are_dropped_and_nothing_else(index, topics):
    asked = topics([2, 3]).assign(query_model="some", query_weights=[[1.0, 2.0], [1.0, 1.0, 1.0]])
    found = index.retriever(num_results=3)(asked)
    left = (index.retriever(num_results=3) >> mathamr.drop_query_embs())(asked)
    pd.testing.assert_frame_equal(left, found[["qid", "query", "docno", "score", "rank"]])
    loaded = index.vec_loader()(left).assign(formula_ids=None)
    pd.testing.assert_frame_equal(mathamr.drop_doc_embs()(loaded), left)
    with pytest.raises(pt.validate.InputValidationError):
        mathamr.drop_doc_embs()(left)
    assert mathamr.drop_query_embs() == mathamr.drop_query_embs() != mathamr.drop_doc_embs()
