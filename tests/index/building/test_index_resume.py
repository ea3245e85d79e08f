"""Jobs that stop: what they had finished is taken up again, by position, and never another's."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from folder_bytes import folder_bytes
from index_folders import docnos, names

from pyterrier_mathamr.index import EmbeddingError, MathAMRFormulaIndex, MathAMRIndex
from pyterrier_mathamr.store import DuplicateIdError, UnfinishedJobError


def corpus(count, **more):
    return [{"docno": f"d{i}", "text": f"text of {i}", **more} for i in range(count)]


class Encoder(pt.Transformer):
    """Makes vectors that depend on the batch, as floating point does; stops on request."""

    def __init__(self, stop_at=None, shift=0.0, formulas=False):
        super().__init__()
        self.stop_at, self.shift, self.formulas = stop_at, shift, formulas
        self.batches: list[list[str]] = []

    def transform(self, inp):
        if self.stop_at is not None and len(self.batches) == self.stop_at:
            raise KeyboardInterrupt
        self.batches.append(inp["docno"].tolist())
        numbers = [int(docno[1:]) for docno in inp["docno"]]
        rows = [np.array([[1.0, n % 7 + self.shift], [0.5, n / 9], [n, len(inp)]], np.float32) for n in numbers]
        frame = inp.assign(doc_embs=pd.Series(rows, index=inp.index, dtype=object))
        if self.formulas:  # every third document has none, and every eighth one that d0 has, too
            ids = [[[], [f"f{n}"], [f"f{n}a", "f0" if n % 8 == 7 else f"f{n}b"]][n % 3] for n in numbers]
            frame["formula_ids"] = pd.Series(ids, index=inp.index, dtype=object)
        return frame


def run(indexer, docs, encoder, batch_size=10):
    pending = indexer.pending(docs, batch_size)

    def encoded():
        while batch := [doc for _, doc in zip(range(batch_size), pending, strict=False)]:
            yield from encoder(pd.DataFrame(batch)).to_dict("records")

    indexer.index(encoded())


@pytest.mark.parametrize("kind", [MathAMRIndex, MathAMRFormulaIndex])
@pytest.mark.parametrize(("stop_at", "rows"), [(6, 6), (3, 31), (4, 10_000)])
@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.errors.MathAMRWarning")
def test_a_resumed_job_makes_the_same_batches_and_the_same_bytes(part_rows, tmp_path, kind, stop_at, rows):
    part_rows(rows, d=2)
    docs, formulas = corpus(67), kind is MathAMRFormulaIndex
    plain, whole = kind(tmp_path / "plain"), Encoder(formulas=formulas)
    run(plain.indexer(resume=True), docs, whole)
    index = kind(tmp_path / "x")
    for stop in (stop_at, 0):  # it stops twice
        with pytest.raises(KeyboardInterrupt):
            run(index.indexer(resume=True), docs, Encoder(stop, formulas=formulas))
    last = Encoder(formulas=formulas)
    run(index.indexer(resume=True), docs, last)
    assert all(batch in whole.batches for batch in last.batches)
    if rows == 6:
        assert len(last.batches) < len(whole.batches)
    assert folder_bytes(index.path) == folder_bytes(plain.path)
    assert names(tmp_path) == ["plain", "x"]


def test_a_pipeline_is_handed_the_same_batches_again(part_rows, tmp_path):
    part_rows(30, d=2)
    docs, index, first = corpus(450), MathAMRIndex(tmp_path / "x"), Encoder(stop_at=3)
    indexer = index.indexer(resume=True)
    with pytest.raises(KeyboardInterrupt):
        (first >> indexer).index(indexer.pending(docs))
    assert index.unfinished() >= 200
    indexer, second = index.indexer(resume=True), Encoder()
    (second >> indexer).index(indexer.pending(docs))
    assert [batch[0] for batch in second.batches] == ["d300", "d400"]
    assert len(index) == 450


def test_rows_that_come_again_are_skipped_where_they_are_the_same(part_rows, tmp_path, documents):
    part_rows(3)
    docs = documents([1, 2, 1, 2, 1])
    index = MathAMRIndex(tmp_path / "x")
    with pytest.raises(EmbeddingError):
        index.indexer(resume=True).index([*docs[:4], {"docno": "bad", "doc_embs": np.zeros((1, 8))}, *docs[4:]])
    assert names(tmp_path) == [".x.job"]
    with pytest.raises(DuplicateIdError, match="'d0'"):
        index.indexer(resume=True).index([*docs, docs[0]])
    near = [{**doc, "doc_embs": doc["doc_embs"] + np.float32(9e-6)} for doc in docs[:2]]
    index.indexer(resume=True).index([*near, *docs[2:]])
    assert folder_bytes(index.path) == folder_bytes(MathAMRIndex(tmp_path / "y").index(docs).path)


@pytest.mark.parametrize(
    "change",
    [
        lambda doc: {**doc, "doc_embs": doc["doc_embs"] + 2e-4},
        lambda doc: {**doc, "doc_embs": doc["doc_embs"][::-1]},
        lambda doc: {**doc, "doc_embs": doc["doc_embs"][:1]},
        lambda doc: {**doc, "formula_ids": ["f"]},
    ],
)
def test_rows_that_come_again_as_others_are_refused(part_rows, tmp_path, documents, change):
    part_rows(3)
    docs, index = documents([2, 2, 2, 2]), MathAMRIndex(tmp_path / "x")

    def dying():
        yield from docs[:3]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.indexer(resume=True).index(dying())
    with pytest.raises(UnfinishedJobError, match="'d1'"):
        index.indexer(resume=True).index([docs[0], change(docs[1]), *docs[2:]])
    with pytest.raises(UnfinishedJobError, match=r"\['d1'\]"):
        index.indexer(resume=True).index([docs[0], *docs[2:]])
    assert not index.built()
    index.indexer(resume=True).index(docs)
    assert docnos(index) == ["d0", "d1", "d2", "d3"]


def test_a_document_that_changed_since_is_refused_before_it_is_encoded(part_rows, tmp_path):
    part_rows(6, d=2)
    docs, index = corpus(40), MathAMRIndex(tmp_path / "x")
    with pytest.raises(KeyboardInterrupt):
        run(index.indexer(resume=True), docs, Encoder(stop_at=3))
    changed = [*docs[:5], {**docs[5], "text": "another"}, *docs[6:]]
    with pytest.raises(UnfinishedJobError, match="'d5'"):
        run(index.indexer(resume=True), changed, Encoder())
    with pytest.raises(DuplicateIdError, match="'d3'"):
        run(index.indexer(resume=True), [*docs[:20], docs[3], *docs[20:]], Encoder())
    with pytest.raises(UnfinishedJobError, match="rows without these"):
        run(index.indexer(resume=True), docs[10:], Encoder())
    run(index.indexer(resume=True), docs, Encoder())
    assert len(index) == 40


@pytest.mark.parametrize(
    ("mode", "other"),
    [("create", {"model": "another"}), ("overwrite", {"dtype": "float16"}), ("create", {"sources": {"graphs": "b"}})],
)
def test_the_work_of_another_job_is_refused_or_discarded_and_never_taken(part_rows, tmp_path, mode, other):
    part_rows(12, d=2)
    docs, index = corpus(30), MathAMRIndex(tmp_path / "x")
    options, encoder = {"model": "a model", "sources": {"graphs": ("a", 1)}}, Encoder(shift=1.0)
    with pytest.raises(KeyboardInterrupt):
        run(index.indexer(mode, resume=True, **options), docs, Encoder(stop_at=2))
    with pytest.raises(UnfinishedJobError, match=next(iter(other))):
        run(index.indexer(mode, resume=True, **{**options, **other}), docs, encoder)
    assert not encoder.batches  # nothing was encoded in vain
    assert index.unfinished() >= 15
    resume = mode == "create"  # or else it discards the work itself
    if resume:
        index.discard()
    run(index.indexer(mode, resume=resume, **{**options, **other}), docs, encoder)
    assert len(encoder.batches) == 3


def test_the_model_that_records_name_must_be_that_of_the_finished_work(part_rows, tmp_path):
    part_rows(6, d=2)
    docs, index = corpus(40, doc_model="one@1"), MathAMRIndex(tmp_path / "x")
    with pytest.raises(KeyboardInterrupt):
        run(index.indexer(resume=True), docs, Encoder(stop_at=3))
    with pytest.raises(UnfinishedJobError, match=r"model: one@1, not two@2"):
        index.indexer(resume=True).index(
            {"docno": f"d{i}", "doc_embs": np.ones((1, 2)), "doc_model": "two@2"} for i in range(3)
        )
    run(index.indexer(resume=True), docs, Encoder())
    assert index.model == "one@1"


def test_unfinished_documents_are_not_taken_for_formulas(part_rows, tmp_path):
    part_rows(6, d=2)
    with pytest.raises(KeyboardInterrupt):
        run(MathAMRIndex(tmp_path / "x").indexer(resume=True), corpus(40), Encoder(stop_at=3))
    formulas = MathAMRFormulaIndex(tmp_path / "x")
    with pytest.raises(UnfinishedJobError, match="entries: documents, not formulas"):
        run(formulas.indexer(resume=True), corpus(40), Encoder(formulas=True))


def test_a_reader_keeps_its_snapshot_and_sees_changes_when_it_looks_again(tmp_path, documents, topics):
    index, reader = MathAMRIndex(tmp_path / "x"), MathAMRIndex(tmp_path / "x")
    index.index(documents([2, 1]))
    snapshot, frame = reader.snapshot(), topics([2])
    before = index.colbert()(frame)
    index.indexer("overwrite").index(documents([3, 1, 1], name="e"))
    assert snapshot.texts("docno", np.arange(2)) == ["d1", "d0"]
    rows, _ = snapshot.rows(np.arange(2))
    assert len(rows) == 3
    assert set(before["docno"]) == {"d0", "d1"}
    assert len(reader) == 3
    assert set(reader.colbert()(frame)["docno"]) == {"e0", "e1", "e2"}
