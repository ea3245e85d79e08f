"""The transformers: PyTerrier's rules, and vectors that depend only on their post."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.frames import MissingValueError, with_objects
from pyterrier_mathamr.graph import GraphBuilder, MathAMRGraph, VirtualKind, Vocabulary, graph_tensors
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, maxsim
from pyterrier_mathamr.model.exact import ScoreWeights
from pyterrier_mathamr.model.networks import random_network


def ranking(graphs, rows: list[tuple[str, str]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["qid", "docno"]).assign(score=0.0, rank=0)
    return frame.assign(
        query_graph=[graphs[name] for name in frame["qid"]], graph=[graphs[name] for name in frame["docno"]]
    )


def test_rows_are_formulas_then_sentences_then_the_document(model, graphs, vocabulary) -> None:
    for graph, rows in zip(graphs.values(), model.encode(list(graphs.values())), strict=True):
        assert rows.dtype == np.float32
        assert rows.shape == (graph.n_formulas + graph.n_sentences + 1, 8)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
        kinds = graph_tensors(graph, vocabulary).kinds.tolist()
        assert kinds == sorted(kinds)
        assert kinds[-1] == VirtualKind.DOCUMENT


def test_the_document_encoder_adds_vectors_and_formula_ids(model, graphs, vocabulary) -> None:
    frame = pd.DataFrame({"docno": ["a0", "a1"], "graph": [graphs["a0"], graphs["a1"]]}, index=[5, 9])
    result = model.doc_encoder()(frame)
    assert list(result.columns) == ["docno", "graph", "doc_embs", "formula_ids", "doc_model"]
    assert result.index.tolist() == [5, 9]
    for _, row in result.iterrows():
        assert row["formula_ids"] == list(row["graph"].formula_ids)
        np.testing.assert_allclose(row["doc_embs"], model.encode([row["graph"]])[0], atol=1e-5)
    without = model.doc_encoder()(frame.drop(columns="docno"))
    assert list(without.columns) == list(result.columns)[1:]
    np.testing.assert_array_equal(without["doc_embs"].tolist()[1], result["doc_embs"].tolist()[1])
    config = MathAMRConfig(layers=1, hidden=8, projection=4, bases=2, formulas="none")
    no_formulas = MathAMR(config, vocabulary, random_network(config, vocabulary).state_dict())
    result = no_formulas.doc_encoder()(frame)
    assert result["formula_ids"].tolist() == [[], []]
    assert len(result["doc_embs"][5]) == graphs["a0"].n_sentences + 1


def test_each_query_and_each_document_of_a_ranking_is_encoded_once(model, graphs, monkeypatch) -> None:
    counts = []
    real = MathAMR.encode
    monkeypatch.setattr(MathAMR, "encode", lambda self, g, **o: (counts.append(len(g)), real(self, g, **o))[1])
    frame = ranking(graphs, [("q0", "a0"), ("q0", "a1"), ("q1", "a1")])
    result = model.doc_encoder()(model.query_encoder()(frame))
    assert counts == [2, 2]
    np.testing.assert_array_equal(result["query_embs"][0], result["query_embs"][1])
    assert result["query_formula_ids"][2].tolist() == list(graphs["q1"].formula_ids)


def test_queries_missing_in_some_rows_take_the_graph_of_another_row(model, graphs) -> None:
    frame = ranking(graphs, [("q0", "a0"), ("q0", "a1")])
    frame["query_graph"] = [np.nan, graphs["q0"]]
    result = model.query_encoder()(frame)
    np.testing.assert_allclose(result["query_embs"][0], model.encode([graphs["q0"]])[0], atol=1e-5)
    frame["query_graph"] = [np.nan, None]
    for transformer in (model.query_encoder(), model.text_scorer()):
        with pytest.raises(MissingValueError, match="q0"):
            transformer(frame)
    with pytest.raises(MissingValueError, match="a0"):
        model.doc_encoder()(frame.assign(graph=[None, graphs["a1"]]))


def test_the_scorer_ranks_equal_scores_by_docno(model, graphs, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    eighths = {id(graph): rng.integers(-8, 9, (3, 8)).astype(np.float32) / 8 for graph in graphs.values()}
    monkeypatch.setattr(MathAMR, "encode", lambda self, g, **o: [eighths[id(one)] for one in g])  # summed exactly
    frame = ranking(graphs, [("q1", "a3"), ("q0", "a2"), ("q1", "a1")])
    twin = frame.iloc[[1]].assign(docno="a10")  # the same graph as a2 under another name
    result = model.text_scorer()(pd.concat([frame, twin]))
    assert result["qid"].tolist() == ["q1", "q1", "q0", "q0"]
    assert result["rank"].tolist() == [0, 1, 0, 1]
    assert result["docno"].tolist()[2:] == ["a10", "a2"]
    assert result["score"][2] == result["score"][3]


def test_the_scorer_ranks_by_maxsim(model, graphs) -> None:
    result = model.text_scorer()(ranking(graphs, [("q1", "a3"), ("q0", "a2"), ("q1", "a1"), ("q0", "a0")]))
    assert result["qid"].tolist() == ["q1", "q1", "q0", "q0"]
    assert result["rank"].tolist() == [0, 1, 0, 1]
    assert (result.groupby("qid")["score"].diff().dropna() <= 0).all()
    for row in result.itertuples():
        query, document = (torch.from_numpy(model.encode([graph])[0]) for graph in (row.query_graph, row.graph))
        wanted = maxsim(query, document, torch.tensor([0, len(document)])).item()
        assert row.score == pytest.approx(wanted, abs=1e-4)


def test_a_query_without_text_has_no_vectors_and_gives_every_candidate_0(model, graphs) -> None:
    with pytest.warns(MathAMRWarning, match="q9"):
        blank = GraphBuilder()([{"qid": "q9", "query": " "}])[0]["query_graph"]
    frame = ranking(graphs, [("q9", "a3"), ("q0", "a2"), ("q9", "a1")])
    frame = with_objects(frame, query_graph=[blank, graphs["q0"], blank])
    for scoring in (model, model.with_score_weights(ScoreWeights(document=2.0, blend=1.5))):
        encoded = scoring.query_encoder()(frame)
        assert [rows.shape for rows in encoded["query_embs"][[0, 2]]] == [(0, 8), (0, 8)]
        assert encoded["query_embs"][0].dtype == np.float32
        assert encoded["query_formula_ids"][0].tolist() == []
        assert len(encoded["query_embs"][1]) > 0
        scored = scoring.text_scorer()(frame)
        assert scored["docno"].tolist() == ["a1", "a3", "a2"]
        assert scored["score"].tolist()[:2] == [0.0, 0.0]
        assert scored["rank"].tolist() == [0, 1, 0]


def test_a_rank_cutoff_moves_before_the_encoders_and_changes_nothing(model, graphs) -> None:
    frame = ranking(graphs, [("q0", "a0"), ("q0", "a1"), ("q0", "a2")]).assign(score=[3.0, 2.0, 1.0], rank=[0, 1, 2])
    for transformer in (model.query_encoder(), model.doc_encoder(), model.text_scorer()):
        pipeline = transformer % 2
        after, before = pipeline(frame), pipeline.compile()(frame)  # three documents in a batch, or two
        vectors = [name for name in after.columns if name.endswith("_embs")]
        numbers = [*vectors, "score"]
        pd.testing.assert_frame_equal(after.drop(columns=numbers), before.drop(columns=numbers))
        assert after["score"].tolist() == pytest.approx(before["score"].tolist(), abs=1e-4)
        for one, other in zip(after[vectors].to_numpy().flat, before[vectors].to_numpy().flat, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


def test_an_indexing_pipeline_hands_documents_over_in_batches(model, graphs) -> None:
    seen = []

    class Collector(pt.Indexer):
        def index(self, iter):
            seen.extend(iter)

    (model.doc_encoder(batch_size=4) >> Collector()).index(
        {"docno": name, "graph": graph} for name, graph in graphs.items()
    )
    assert [row["docno"] for row in seen] == list(graphs)
    assert all(row["doc_embs"].shape[1] == 8 for row in seen)


def test_vectors_name_their_model(model, graphs, tmp_path) -> None:
    model.save(tmp_path / "small")
    saved = MathAMR.from_pretrained(tmp_path / "small")
    name, digits = model.vectors_by.split("@")
    assert (name, len(digits)) == ("unsaved", 16)
    assert saved.vectors_by == f"small@{digits}"
    weighted = model.with_score_weights(ScoreWeights(blend=0.5))
    assert weighted.identity != model.identity
    assert weighted.vectors_by == model.vectors_by
    frame = ranking(graphs, [("q0", "a0"), ("q0", "a1")])
    result = model.doc_encoder()(weighted.query_encoder()(frame))
    assert set(result["doc_model"]) == set(result["query_model"]) == {f"unsaved@{digits}"}
    other = {**model.weights(), "head.outer.bias": model.weights()["head.outer.bias"] + 1}
    assert not MathAMR(model.config, model.vocabulary, other).vectors_by.endswith(digits)
    in_cache = tmp_path / "hub" / "models--maths--amr" / "snapshots" / "4f1e"
    model.save(in_cache)
    assert MathAMR.from_pretrained(in_cache).vectors_by == f"maths/amr@{digits}"


def example_model() -> MathAMR:
    """A model made without fixtures, for PyTerrier's own test class."""
    vocabulary = Vocabulary.build([MathAMRGraph.from_penman("(s / show-01)")])
    config = MathAMRConfig(layers=1, hidden=8, projection=4, bases=2)
    return MathAMR(config, vocabulary, random_network(config, vocabulary).state_dict())


TestDocEncoder = pt.testing.transformer_test_class(lambda: example_model().doc_encoder())
TestQueryEncoder = pt.testing.transformer_test_class(lambda: example_model().query_encoder())
TestTextScorer = pt.testing.transformer_test_class(lambda: example_model().text_scorer())
