"""Token models whose documents several processes encode: the rows of one, also of what another began."""

import pickle
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from colbert_checkpoints import projection
from folder_bytes import folder_bytes
from marf_examples import DOCUMENTS, tiny_marf
from tiny_models import tiny_bert

from pyterrier_mathamr import MathAMRIndex, Processes
from pyterrier_mathamr._common.running.resources import one_torch_thread
from pyterrier_mathamr.index import indexing
from pyterrier_mathamr.systems import ColBERT, MaRFIndex
from pyterrier_mathamr.systems.colbert.network import assemble

WORDS = ["sum", "of", "fraction", "limit", "prove", "the", "is", "less", "two"]
POSTS = [
    {"docno": f"d{i}", "text": " ".join(WORDS[(i * k) % 9] for k in range(1, 4 + i % 17)), "title": "the limit"}
    for i in range(950)
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ColBERT:
    folder = tmp_path_factory.mktemp("colbert")
    bert = tiny_bert(folder / "bert")
    ColBERT(assemble(bert, projection(), query_length=16, document_length=24, query_expansion=False)).save(
        folder / "tiny"
    )
    return ColBERT.from_pretrained(folder / "tiny")


def assert_same(found: MathAMRIndex, wanted: MathAMRIndex) -> None:
    for ours, theirs in zip(found.get_corpus_iter(), wanted.get_corpus_iter(), strict=True):
        assert (ours["docno"], ours["doc_model"]) == (theirs["docno"], theirs["doc_model"])
        np.testing.assert_allclose(ours["doc_embs"], theirs["doc_embs"], atol=1e-3)


def test_processes_encode_what_a_pipeline_does(model: ColBERT, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(indexing, "PART_BYTES", 100_000)
    encode = model.doc_encoder(precision="float32", device="cpu", batch_size=100)
    whole = MathAMRIndex(tmp_path / "whole")
    indexer = whole.indexer(dtype="float16", resume=True)
    (encode >> indexer).index(indexer.pending(POSTS))
    MathAMRIndex(tmp_path / "one").indexer(dtype="float16", resume=True).index_encoded(POSTS, encode)
    assert folder_bytes(tmp_path / "one") == folder_bytes(whole.path)
    two = MathAMRIndex(tmp_path / "two")
    two.indexer(dtype="float16").index_encoded(POSTS, encode, executor=Processes(2))
    assert_same(two, whole)

    def stopping() -> Iterator[Any]:
        yield from islice(POSTS, 860)
        raise KeyboardInterrupt

    begun = MathAMRIndex(tmp_path / "begun")
    with pytest.raises(KeyboardInterrupt):
        begun.indexer(dtype="float16", resume=True).index_encoded(stopping(), encode, executor=Processes(1))
    stored = begun.unfinished()
    assert 100 < stored < 860
    encoded: list[str] = []
    transform = type(encode).transform
    monkeypatch.setattr(
        type(encode), "transform", lambda self, inp: encoded.extend(inp["docno"]) or transform(self, inp)
    )
    begun.indexer(dtype="float16", resume=True).index_encoded(POSTS, encode)
    assert encoded == [post["docno"] for post in POSTS[stored - stored % 100 :]]
    assert folder_bytes(begun.path) == folder_bytes(whole.path)


def test_views_of_marf_are_encoded_likewise_by_a_copy(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path)
    marf.save(tmp_path / "marf")
    encode = type(marf).from_pretrained(tmp_path / "marf").doc_encoder(precision="float32", device="cpu")
    (encode >> MaRFIndex(tmp_path / "whole").indexer()).index(DOCUMENTS.to_dict("records"))
    copy = pickle.loads(pickle.dumps(encode))
    MaRFIndex(tmp_path / "copy").indexer().index_encoded(DOCUMENTS, copy)
    assert folder_bytes(tmp_path / "copy") == folder_bytes(tmp_path / "whole")
