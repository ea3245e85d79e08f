"""Every indexer has the same rule for ids: integers are texts, and what is no id is one named error."""

from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mathamr_systems import FormulaTrees, InOutIndex, MaRFIndex, TangentCFT, ThreadStore
from pyterrier_mathamr import GraphBuilder, MathAMR, MathAMRIndex, QdrantIndex, SearchEngine, ShardedIndex
from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.graph import GraphStore, MathAMRGraph
from pyterrier_mathamr.posts import DocumentError
from pyterrier_mathamr.sparse import BM25Index, TangentIndex
from pyterrier_mathamr.store import InvalidIdError

CFT = Path(__file__).parents[1] / "data" / "cft-format-1"
ABSENT = object()
BAD = [None, float("nan"), pd.NA, ABSENT, "", " ", "\u00a0", "a\nb", "a\tb", "a\0", "\x7fa", "a\x85b", "\x1b[31m",
       "a\u2028b", "a\u2029", 7.0, True, np.True_, b"a", ["a"]]  # fmt: skip
RECORD = {
    "text": "number $x^2$",
    "kind": "question",
    "graph": MathAMRGraph(decode_penman("(a / number)")),
    "doc_embs": np.eye(2, dtype=np.float32),
    "doc_views": [np.eye(2, dtype=np.float32)],
}
"""A document with what each of the indexers reads."""

Index = Callable[[Path, Iterable[dict[str, Any]]], Any]


class Symbols:
    """A model that gives every symbol the same vector."""

    identity, kinds = "symbols", ("slt", "opt")

    def encode(self, trees: Any, kind: str, *, distinct: bool = True) -> list[np.ndarray]:
        return [np.ones((len(tree.nodes), 1), dtype=np.float32) for tree in trees]


def registered() -> dict[str, Index]:
    """The indexers of all registered artifacts that are built of documents, and of artifacts elsewhere."""
    ours = [
        of
        for of in entry_points(group="pyterrier.artifact")
        if of.value.startswith(("pyterrier_mathamr", "mathamr_systems"))
    ]
    found = {of.name: of.load() for of in ours}
    others: dict[str, Index | None] = {
        "node_vector_index.mathamr_in_out": lambda path, rows: InOutIndex(path, Symbols()).index(rows),
        "cft_model.mathamr": lambda path, rows: TangentCFT(path).indexer(model=TangentCFT(CFT)).index(rows),
        "search_engine.mathamr": lambda path, rows: SearchEngine.build(
            rows, path, model="mathamr-plus-mini", verbose=False
        ),
        "sharded_index.mathamr": lambda path, rows: (
            MathAMRIndex(path / "part-000000").index(rows) and ShardedIndex.join(path)
        ),
        "qdrant": lambda path, rows: QdrantIndex(path, "documents").index(rows),
        "a pipeline": lambda path, rows: (
            GraphBuilder()
            >> MathAMR.from_pretrained("mathamr-plus-mini").doc_encoder()
            >> MathAMRIndex(path).indexer(resume=True)
        ).index(rows),
        "formula_store.mathamr": None,  # of official tables, whose ids are read from files
        "posts.mathamr": None,  # of the engine
        "tensor_store.mathamr": None,  # of graphs
        "training_checkpoint.mathamr": None,
    }
    plain = {name: lambda path, rows, kind=kind: kind(path).index(rows) for name, kind in found.items()}
    return {name: index for name, index in {**plain, **others}.items() if index is not None}


INDEXERS = registered()


def document(docno: object) -> dict[str, Any]:
    named = {**RECORD, "formula_ids": [f"of {docno!r}"]}
    return named if docno is ABSENT else {"docno": docno, **named}


def stored(index: Any) -> list[str]:
    if isinstance(index, SearchEngine):
        return index.docnos()
    rows = ({"docno": post.id} for post in index) if isinstance(index, ThreadStore) else index.get_corpus_iter()
    return [row.get("post_id", row["docno"]) for row in rows]


@pytest.mark.parametrize("name", INDEXERS)
def test_an_integer_is_the_text_of_its_digits_and_what_is_no_id_is_the_same_error(name: str, tmp_path: Path) -> None:
    if name == "qdrant":
        pytest.importorskip("qdrant_client")
    index = INDEXERS[name](tmp_path / "index", map(document, [7, np.int64(8), 10**30, "009", " a b "]))
    assert sorted(stored(index)) == sorted(["7", "8", str(10**30), "009", " a b "])
    whole = ("sparse_index.mathamr_bm25", "multi_vector_index.mathamr")  # one kind of fault each for the others
    for docno in BAD if name in whole else (ABSENT, "a\nb", 7.0):
        with pytest.raises(InvalidIdError) as caught:
            INDEXERS[name](tmp_path / "other", [document(docno)])
        assert isinstance(caught.value, DocumentError)
    with pytest.raises(InvalidIdError):
        INDEXERS[name](tmp_path / "other", pd.DataFrame([document(None)]))


def test_the_error_names_the_document_and_the_fault(tmp_path: Path) -> None:
    with pytest.raises(InvalidIdError) as caught:
        BM25Index(tmp_path / "index").index([document("a"), document("b\n")])
    assert caught.value.place == "document 2"
    assert "its docno 'b\\n' has a control character at place 2" in caught.value.reason


def test_an_engine_leaves_out_posts_without_an_id_and_keeps_the_others(tmp_path: Path) -> None:
    posts = [document(docno) for docno in (7, *BAD)]
    with pytest.warns(UserWarning, match=f"{len(BAD)} of {len(BAD) + 1} posts were left out"):
        engine = SearchEngine.build(posts, tmp_path / "engine", model="mathamr-plus-mini", verbose=False)
    assert engine.docnos() == ["7"]


def test_topics_have_the_same_rule(tmp_path: Path) -> None:
    graphs = GraphStore(tmp_path / "graphs")
    topic = {"query_graph": RECORD["graph"]}
    for qid in BAD:
        with pytest.raises(InvalidIdError):
            graphs.index([{**topic, **({} if qid is ABSENT else {"qid": qid})}])
    assert graphs.index([{**topic, "qid": 7}]).ids() == ["7"]


def test_an_id_of_html_with_a_line_break_is_one_line(tmp_path: Path) -> None:
    span = '<span class="math-container" id="\n7\tb ">x</span> <span class="math-container" id="\n">y</span>'
    index = TangentIndex(tmp_path / "index").index([{"docno": "a", "html": span}])
    assert sorted(row["docno"] for row in index.get_corpus_iter()) == ["7 b", "a#1"]


def test_a_formula_id_has_the_same_rule(tmp_path: Path) -> None:
    documents = [{**document("a"), "formula_ids": [7, ""]}]
    assert next(iter(MathAMRIndex(tmp_path / "index").index(documents).get_corpus_iter()))["formula_ids"] == ["7", ""]
    for bad in ("a\nb", " ", 7.0):
        with pytest.raises(InvalidIdError):
            MathAMRIndex(tmp_path / "other").index([{**document("a"), "formula_ids": [bad]}])


def test_an_integer_finds_the_document_of_its_digits(tmp_path: Path) -> None:
    post = {**document(7), "text": 'number <span class="math-container" id="7">x^2</span>', "doc_model": "m"}
    kinds = (BM25Index, MathAMRIndex, MaRFIndex, ThreadStore, FormulaTrees, TangentIndex, GraphStore)
    bm25, vectors, views, threads, trees, tangent, graphs = (
        kind(tmp_path / kind.__name__).index([post]) for kind in kinds
    )
    sharded = ShardedIndex([vectors.path])
    for index in (bm25, vectors, views, threads, trees, tangent, graphs, sharded):
        assert 7 in index
        assert np.int64(7) in index
        assert [other for other in (8, 7.0, True, None, float("nan"), ["7"]) if other in index] == []
    ranking = pd.DataFrame({"qid": [1], "docno": [7], "query": "number $x^2$", "score": 1.0, "rank": 0})
    encoded = ranking.assign(query_embs=[np.eye(2, dtype=np.float32)], query_model="m")
    scored = [
        bm25.scorer()(ranking), vectors.scorer()(encoded), vectors.vec_loader()(ranking), views.scorer()(encoded),
        sharded.scorer()(encoded), graphs.loader()(ranking),
        threads.questions()(ranking), threads.text_loader()(ranking), threads.answers()(ranking),
    ]  # fmt: skip
    assert [list(map(str, of["docno"])) for of in scored] == [["7"]] * 8 + [[]]
    graphs.delete([7])  # type: ignore[list-item]
    assert len(graphs) == 0
