"""ColBERT's encoders: rows as the library gives them, [CLS] last, and every strategy of an index over them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch
from colbert_checkpoints import DIMENSIONS, projection
from folder_bytes import folder_bytes
from tiny_models import tiny_bert

import mathamr_systems
import pyterrier_mathamr as mathamr
from mathamr_systems import ColBERT
from mathamr_systems.colbert.network import assemble, encode_texts
from pyterrier_mathamr import MathAMRIndex, Processes
from pyterrier_mathamr._common.running.resources import one_torch_thread
from pyterrier_mathamr.model.batching import has_bfloat16
from pyterrier_mathamr.posts import document_post, post_from_any
from tests.package.tiny_colbert import tiny_colbert

WORDS = [
    *["sum", "of", "fraction", "limit", "prove", "the", "is", "less", "two", ",", ".", "$x$", "$x^2$"],
    r"$\frac{1}{2}$",
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ColBERT:
    folder = tmp_path_factory.mktemp("colbert")
    made = assemble(
        tiny_bert(folder / "bert"), projection(), query_length=16, document_length=24, query_expansion=False
    )
    ColBERT(made).save(folder / "tiny")
    return ColBERT.from_pretrained(folder / "tiny")


def posts(count: int, seed: int = 0, least: int = 1) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    texts = [" ".join(chance.choice(WORDS, chance.integers(least, 30))) for _ in range(count)]
    return pd.DataFrame({"docno": [f"d{i}" for i in range(count)], "text": texts})


def queries(count: int, seed: int = 1) -> pd.DataFrame:
    made = posts(count, seed)
    return pd.DataFrame({"qid": [f"q{i}" for i in range(count)], "query": made["text"]})


@pytest.fixture(scope="module")
def encoded(model: ColBERT) -> pd.DataFrame:
    return model.doc_encoder(precision="float32")(posts(20))


@pytest.fixture(scope="module")
def index(encoded: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> MathAMRIndex:
    index = MathAMRIndex(tmp_path_factory.mktemp("index") / "tiny")
    index.indexer().index(encoded)
    return index


def as_written(model: ColBERT, text: str) -> str:
    return model.texts.text(post_from_any(text))


def test_the_rows_of_a_query_equal_the_library_s_with_the_first_one_last(model):
    asked = queries(8)
    found = model.query_encoder(precision="float32")(asked)
    expected = model.encoder.encode_query([as_written(model, text) for text in asked["query"]], convert_to_numpy=True)
    for rows, own in zip(found["query_embs"], expected, strict=True):
        np.testing.assert_allclose(rows, np.roll(own, -1, axis=0), atol=1e-6)
        assert rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_documents_have_no_rows_of_punctuation_and_cls_is_their_last(model):
    found = model.encode(["the sum , of two .", "prove $frac$ $x$ $2$"], "document")
    names = [model.encoder.tokenizer.convert_ids_to_tokens(text.ids.tolist()) for text in found]
    assert names[0] == ["[unused1]", "the", "sum", "of", "two", "[SEP]", "[CLS]"]
    assert names[1] == ["[unused1]", "prove", "$frac$", "$x$", "$2$", "[SEP]", "[CLS]"]
    first = model.encoder.encode_document(["the sum , of two ."], convert_to_numpy=True)[0][0]
    assert model.encode(["the sum , of two ."], "document", precision="float32")[0].rows[-1] == pytest.approx(
        first, abs=1e-6
    )


def test_the_scorer_of_an_index_and_of_texts_give_the_similarity_of_the_library(model, encoded, index) -> None:
    asked = queries(5)
    ranking = asked.merge(encoded[["docno"]], how="cross")
    scored = (model.query_encoder(precision="float32") >> index.scorer())(ranking)
    texts = [as_written(model, text) for text in asked["query"]]
    rows = model.encoder.encode_query(texts)
    documents = model.encoder.encode_document([as_written(model, text) for text in encoded["text"]])
    expected = model.encoder.similarity(rows, documents).cpu().numpy()
    for qid, docno, score in scored[["qid", "docno", "score"]].itertuples(index=False):
        assert score == pytest.approx(expected[int(qid[1:]), int(docno[1:])], abs=1e-5)

    ranking = queries(4).merge(encoded[["docno", "text"]], how="cross").assign(score=0.0, rank=0)
    by_text = model.text_scorer(precision="float32")(ranking)
    by_index = (model.query_encoder(precision="float32") >> index.scorer())(ranking)
    assert by_text[["qid", "docno", "rank"]].values.tolist() == by_index[["qid", "docno", "rank"]].values.tolist()
    np.testing.assert_allclose(by_text["score"], by_index["score"], atol=1e-5)


def test_every_strategy_of_an_index_is_exact_for_the_rows(model, encoded, index):
    asked = model.query_encoder(precision="float32")(queries(6))
    rows = dict(zip(encoded["docno"], encoded["doc_embs"], strict=True))

    def brute(score) -> list[list[str]]:
        found = []
        for query in asked["query_embs"]:
            scores = {docno: np.float32(score(query.astype(np.float64), own)) for docno, own in rows.items()}
            found.append(sorted(scores, key=lambda docno: (-scores[docno], docno)))
        return found

    def ranked(retriever: pt.Transformer) -> list[list[str]]:
        result = retriever(asked)
        return [result[result["qid"] == qid]["docno"].tolist() for qid in asked["qid"]]

    by_maxsim = brute(lambda query, own: (query @ own.T.astype(np.float64)).max(axis=1).sum())
    by_cls = brute(lambda query, own: query[-1] @ own[-1].astype(np.float64))
    assert ranked(index.colbert(num_results=20)) == by_maxsim
    assert ranked(index.doc_vn(candidates=20, num_results=20)) == by_maxsim
    assert ranked(index.single_vector(num_results=20)) == by_cls


def test_an_index_knows_the_model_and_refuses_the_queries_of_another(model, encoded, index, tmp_path):
    assert set(encoded["doc_model"]) == {model.name}
    assert model.name.startswith("tiny@")
    changed = ColBERT.from_pretrained(model._source[0])
    with torch.no_grad():
        changed.encoder[1].linear.weight.add_(0.1)
    with pytest.raises(Exception, match="tiny@"):
        (changed.query_encoder() >> index.colbert())(queries(1))
    half = MathAMRIndex(tmp_path / "half")
    (model.doc_encoder() >> half.indexer(dtype="float16")).index(posts(10))
    (model.doc_encoder() >> half.indexer(mode="append")).index(posts(20).iloc[10:])
    assert len(half) == 20
    assert len((model.query_encoder() >> half.colbert(num_results=20))(queries(2))) == 40


def test_an_executor_encodes_what_a_pipeline_does_and_resumes_after_what_is_done(model, tmp_path, monkeypatch):
    monkeypatch.setattr("pyterrier_mathamr.index.indexing.PART_BYTES", 30_000)
    corpus = posts(350).to_dict("records")
    encode = model.doc_encoder(precision="float32", device="cpu", batch_size=100)
    whole = MathAMRIndex(tmp_path / "whole")
    indexer = whole.indexer(dtype="float16", resume=True)
    (encode >> indexer).index(indexer.pending(corpus))
    encoded: list[str] = []
    transform = type(encode).transform
    monkeypatch.setattr(
        type(encode), "transform", lambda self, inp: encoded.extend(inp["docno"]) or transform(self, inp)
    )

    def stopping() -> Iterator[Any]:
        yield from corpus[:320]
        raise KeyboardInterrupt

    begun = MathAMRIndex(tmp_path / "begun")
    with pytest.raises(KeyboardInterrupt):
        begun.indexer(dtype="float16", resume=True).index_encoded(stopping(), encode, executor=Processes(1))
    stored = begun.unfinished()
    assert 100 < stored < 320
    encoded.clear()
    begun.indexer(dtype="float16", resume=True).index_encoded(corpus, encode)
    assert encoded == [post["docno"] for post in corpus[stored - stored % 100 :]]
    assert folder_bytes(begun.path) == folder_bytes(whole.path)


def test_the_order_and_number_of_texts_do_not_matter(model):
    texts = [as_written(model, text) for text in posts(50)["text"]]
    together = encode_texts(model.encoder, texts, "document", precision="float32")
    for text, own in list(zip(texts, together, strict=True))[::7]:
        separate = encode_texts(model.encoder, [text], "document", precision="float32")[0]
        np.testing.assert_allclose(own.rows, separate.rows, atol=1e-6)
        np.testing.assert_array_equal(own.ids, separate.ids)
    assert encode_texts(model.encoder, [], "query") == []


def test_bfloat16_is_near_float32(model):
    if not has_bfloat16(torch.device("cpu")):
        pytest.skip("the processor has no bfloat16")
    texts = [as_written(model, text) for text in posts(20)["text"]]
    full = model.encode(texts, "document", precision="float32")
    half = model.encode(texts, "document")
    cosines = np.concatenate([(a.rows * b.rows).sum(1) for a, b in zip(full, half, strict=True)])
    assert cosines.min() > 0.99


def test_blank_missing_and_divided_texts_are_read(model) -> None:
    asked = pd.DataFrame({"qid": ["1", "2"], "query": ["", "sum"]})
    assert [rows.shape[0] for rows in model.query_encoder()(asked)["query_embs"]] == [0, 4]
    documents = pd.DataFrame({"docno": ["a", "b"], "html": ["", None]})
    assert [rows.shape for rows in model.doc_encoder()(documents)["doc_embs"]] == [(3, DIMENSIONS)] * 2
    for encoder, columns in ((model.doc_encoder(), ["docno", "text"]), (model.query_encoder(), ["qid", "query"])):
        empty = encoder(pd.DataFrame(columns=columns))
        assert list(empty.columns)[:2] == columns
        assert len(empty.columns) == 4
    assert model.query_encoder()(pd.DataFrame({"qid": ["1"], "title": ["sum"]}))["query_embs"][0].shape[0] == 4
    with pytest.raises(pt.validate.InputValidationError):
        model.query_encoder()(pd.DataFrame({"qid": ["1"], "tags": ["a"]}))

    topics = pd.DataFrame({"qid": ["1"], "title": ["the sum"], "body": ["of <i>two</i>"]})
    rows = model.query_encoder(precision="float32")(topics)["query_embs"][0]
    text = model.texts.text(document_post({"title": "the sum", "html": "of two"}))
    expected = model.encode([text], "query", precision="float32")
    np.testing.assert_allclose(rows, expected[0].rows, atol=1e-6)


def test_a_query_asked_again_is_not_encoded_again_unless_an_option_changes(model, monkeypatch) -> None:
    calls, encode = [], ColBERT.encode
    monkeypatch.setattr(
        ColBERT, "encode", lambda self, *given, **options: calls.append(1) or encode(self, *given, **options)
    )
    encoder, frame = model.query_encoder(), pd.DataFrame({"qid": ["1"], "query": ["the sum of $x$"]})
    (first,), (again,) = encoder(frame)["query_embs"], encoder(frame.assign(qid="2"))["query_embs"]
    assert len(calls) == 1
    assert first.tobytes() == again.tobytes()
    encoder.options["precision"] = "float32"
    encoder(frame)
    assert len(calls) == 2


DATED = pd.DataFrame(
    {"docno": ["a", "b", "c"], "text": ["sum of n", "a limit of 1", "x is 2"], "year": [1999, 2005, 2012]}
)
ASKED = pd.DataFrame({"qid": ["1", "2"], "query": ["the sum", "limit"]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("late")
    tiny_colbert(place / "tiny")
    return place / "tiny" / "colbert"


def test_one_line_indexes_and_searches_as_its_encoders_do(folder: Path, tmp_path: Path) -> None:
    late = mathamr_systems.LateInteraction(folder, precision="float32")
    index = late.index(tmp_path / "late.mathamr", DATED, keep=["year"], dtype="float32")
    model = ColBERT.from_pretrained(folder)
    other = mathamr.MathAMRIndex(tmp_path / "other.mathamr")
    (model.doc_encoder(precision="float32") >> other.indexer(dtype="float32")).index(DATED.to_dict("records"))
    found = late.retriever(index, num_results=2)(ASKED)
    expected = (model.query_encoder(precision="float32") >> other.retriever(num_results=2))(ASKED)
    columns = ["qid", "docno", "score", "rank"]
    pd.testing.assert_frame_equal(found[columns], expected[columns])
    assert set(late.retriever(index, where="year > 2000")(ASKED)["docno"]) == {"b", "c"}
    scored = late.text_scorer()(ASKED.merge(DATED, how="cross"))
    assert scored.groupby("qid")["docno"].first().tolist() == found.groupby("qid")["docno"].first().tolist()
