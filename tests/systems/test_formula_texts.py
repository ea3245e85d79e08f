"""Formulas as texts: what is written, and Task 2 by models of texts."""

from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest
from marf_examples import EXACT, fusing, tiny_marf
from pyterrier.measures import nDCG
from tiny_models import tiny_bert

from mathamr_systems import ColBERT, ColBERTOptions, FormulaQuery, MaRF, MaRFIndex, formula_documents
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import VisualIdDeduplication
from pyterrier_mathamr.fusion import ConvexFusion
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.posts import document_post, query_post

SPAN = '<span class="math-container" id="{}">{}</span>'
POSTS = [
    {"docno": "1", "html": f"<p>If {SPAN.format('f1', 'x &lt; y')} then {SPAN.format('f2', 'a&amp;b')}.</p>"},
    {"docno": "2", "html": f"<p>{SPAN.format('f3', 'x  &lt; y')}</p>"},
    {"docno": "3", "text": "no formula"},
    {"docno": "4", "text": r"typed $\frac12 x$, and $x < y$"},
]
TOPICS = pd.DataFrame(
    {
        "qid": ["B.1", "B.2"],
        "title": ["A title with $t$", ""],
        "body": [f"Is {SPAN.format('q1', 'x^2')} above {SPAN.format('q2', 'y+1')}?", "cut off"],
        "formula_id": ["q2", "q9"],
        "latex": [r"y+1 \ge 0", "x^2"],
    }
)


def test_each_appearance_is_a_document_and_a_bad_post_is_reported() -> None:
    found = list(formula_documents(POSTS))
    assert [(of["docno"], of["post_id"]) for of in found] == [("f1", "1"), ("f2", "1"), ("4#0", "4")]
    for of in found:
        (formula,) = document_post(of).formulas
        assert formula.id == of["docno"]
    assert document_post(found[0]).formulas[0].latex == "x < y"
    twice = [{"docno": "0", "text": POSTS[1]["html"]}, *POSTS]
    assert [of["post_id"] for of in formula_documents(twice, "post") if of["docno"] == "f3"] == ["0"]
    of_visual_ids = formula_documents(POSTS, visual_ids={"f1": "v", "f2": "v", "f3": "v"}, instances=2)
    assert [of["docno"] for of in of_visual_ids] == ["f1", "f2", "4#0", "4#1"]

    with pytest.warns(UserWarning, match="cannot be read"):
        found = list(formula_documents([{"docno": "0", "text": b"\xff"}, *POSTS]))
    assert len(found) == 3


def test_in_its_post_every_other_formula_is_a_mask_and_the_formula_is_kept() -> None:
    found = {of["docno"]: document_post(of) for of in formula_documents(POSTS, "post")}
    assert set(found) == {"f1", "f2", "f3", "4#0", "4#1"}
    assert found["f2"].text == "If [MASK] then FORMULA_0."
    assert found["4#1"].formulas[0].latex == "x < y"
    twice = [{"docno": str(i), "text": f"${latex}$"} for i, latex in enumerate(["n!", "n!", "n=1", "n=1"])]
    assert [of["docno"] for of in formula_documents(twice, "post")] == ["0#0", "2#0", "3#0"]  # "n!" is short
    assert len(list(formula_documents(twice, "post", instances=5))) == 4
    long = {"docno": "5", "text": " ".join(["before"] * 500 + ["$z$,"] + ["after"] * 500)}
    (only,) = formula_documents([long], "post", words=3)
    assert document_post(only).text == "before before before FORMULA_0, after after after"


def test_a_topic_is_its_formula_with_or_without_its_question() -> None:
    formula_only = FormulaQuery()(TOPICS)
    assert "title" not in formula_only.columns
    assert "body" not in formula_only.columns
    assert [query_post(row).formulas[0].latex for row in formula_only.to_dict("records")] == [r"y+1 \ge 0", "x^2"]
    within, cut = (query_post(row) for row in FormulaQuery("post")(TOPICS).to_dict("records"))
    assert within.text.split() == ["A", "title", "with", "[MASK]", "Is", "[MASK]", "above", "FORMULA_0?"]
    assert within.formulas[0].latex == r"y+1 \ge 0"  # the column has the whole of what the question cuts off
    assert cut.text == "FORMULA_0"
    for context in ("formula", "post"):
        once = FormulaQuery(context)(TOPICS)
        assert FormulaQuery(context)(once).equals(once)
    typed = FormulaQuery()(pd.DataFrame({"qid": ["1", "2"], "query": ["$x < y$", " "]}))
    assert [len(query_post(row).formulas) for row in typed.to_dict("records")] == [1, 0]


@pytest.fixture(scope="module")
def colbert(tmp_path_factory: pytest.TempPathFactory) -> ColBERT:
    return ColBERT.new(tiny_bert(tmp_path_factory.mktemp("bert")), options=ColBERTOptions(dimensions=8))


@pytest.mark.parametrize("context", ["formula", "post"])
def test_colbert_ranks_formulas_in_pipelines(colbert: ColBERT, tmp_path: Path, context: str) -> None:
    index = MathAMRIndex(tmp_path / "index")
    (colbert.doc_encoder() >> index.indexer()).index(formula_documents(POSTS, context))
    query = FormulaQuery(context) >> colbert.query_encoder()
    search = query >> index.colbert(num_results=10)
    assert set(search(TOPICS)["docno"]) == {of["docno"] for of in formula_documents(POSTS, context)}
    again = search % 2 >> query >> index.scorer()
    assert again(TOPICS)["docno"].tolist() == (search % 2)(TOPICS)["docno"].tolist()
    assert "latex" in pt.inspect.transformer_outputs(search, list(TOPICS.columns))
    fused = ConvexFusion(search, again, alpha=0.5) >> VisualIdDeduplication(
        {of["docno"]: of["docno"] for of in formula_documents(POSTS, context)}
    )
    qrels = pd.DataFrame({"qid": ["B.1", "B.2"], "docno": ["f1", "f2"], "label": [1, 1]})
    table = pt.Experiment([search, fused], TOPICS, qrels, [nDCG @ 10])
    assert table["nDCG@10"].iloc[1] > 0


def test_marf_ranks_formulas_with_or_without_its_text_encoder(tmp_path: Path) -> None:
    marf = fusing(tiny_marf(tmp_path))
    formula_only = marf.formulas_alone()
    assert formula_only.name != marf.name
    for model, width in ((marf, marf.dimensions), (formula_only, 8)):
        index = MaRFIndex(tmp_path / f"index-{width}")
        (model.doc_encoder(**EXACT) >> index.indexer(dtype="float32")).index(formula_documents(POSTS))
        found = (FormulaQuery() >> model.query_encoder(**EXACT) >> index.retriever())(TOPICS)
        assert len(found) == 6
        assert found["query_embs"].iloc[0].shape[1] == width


def test_a_model_of_only_the_formula_encoder_reads_no_text(tmp_path: Path) -> None:
    formula_only = tiny_marf(tmp_path).formulas_alone()
    encode = formula_only.doc_encoder(**EXACT)
    frame = pd.DataFrame({"docno": ["a", "b", "c"], "text": [r"one $x^2+1$", r"quite another $x^2+1$", "none"]})
    first, second, none = encode(frame)["doc_views"]
    assert (first[0] == second[0]).all()
    assert none[0].shape == (1, 8)
    index = MaRFIndex(tmp_path / "index")
    (encode >> index.indexer()).index(frame)
    assert len(index) == 3
    blank = formula_only.query_encoder(**EXACT)(pd.DataFrame({"qid": ["1"], "query": ["words only"]}))
    assert len(blank["query_embs"].iloc[0]) == 0
    formula_only.save(tmp_path / "saved")
    assert MaRF.from_pretrained(tmp_path / "saved").identity == formula_only.identity
    with pytest.raises(ConfigError, match="store"):
        formula_only.doc_encoder(store="parts")
