"""An index with the model that made it: typed queries, and one score for a pair."""

import pandas as pd
import pytest

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.index import MathAMRFormulaIndex, MathAMRIndex, ModelMismatchError
from pyterrier_mathamr.model import MathAMR

GAUSS = r"\int_0^\infty e^{-x^2}\,dx"
POSTS = [
    {"docno": "p1", "html": f'The integral <span class="math-container" id="1">{GAUSS}</span> converges.'},
    {"docno": "p2", "html": '<span class="math-container" id="2">\\frac{a}{b}</span>'},
    {"docno": "p3", "html": f'<span class="math-container" id="3">{GAUSS}</span>'},
]


@pytest.fixture(scope="module")
def model():
    return MathAMR.from_pretrained("mathamr-plus-mini")


@pytest.fixture(scope="module")
def formula_index(model, tmp_path_factory):
    index = MathAMRFormulaIndex(tmp_path_factory.mktemp("typed") / "formulas")
    (GraphBuilder() >> model.doc_encoder() >> index.indexer(visual_ids={"1": "v", "3": "v"})).index(POSTS)
    return index


def test_a_typed_formula_is_found_by_the_bundled_model_that_the_index_names(formula_index):
    found = formula_index.search(GAUSS)
    assert list(found.columns) == ["qid", "query", "docno", "post_id", "visual_id", "score", "rank"]
    # formula 3 is a separate post, like the typed one: the very same graph
    assert found.docno.tolist() == ["3", "1", "2"]
    assert found.score[0] == pytest.approx(1.0, abs=1e-6)
    assert found.score[1] < 1.0
    assert found.post_id.tolist() == ["p3", "p1", "p2"]


def test_it_is_the_pipeline_that_a_user_can_write_also_with_a_given_model(formula_index, model):
    pipeline = GraphBuilder(queries="formula") >> model.query_encoder() >> formula_index.retriever(num_results=2)
    typed = formula_index.search(f"${GAUSS}$", num_results=2)
    written = pipeline.search(GAUSS)
    pd.testing.assert_frame_equal(written[["docno", "score", "rank"]], typed[["docno", "score", "rank"]])
    assert formula_index.search(GAUSS, "B.1", model=model).equals(formula_index.search(GAUSS, "B.1"))


@pytest.mark.parametrize(
    ("made_by", "error", "message"),
    [
        (None, ConfigError, "does not name"),
        ("mine@0123456789abcdef", ConfigError, "'mine@0123"),
        ("mathamr-plus-mini@0123456789abcdef", ModelMismatchError, "0123456789abcdef"),  # a name is not enough
    ],
)
def test_an_index_of_a_model_that_is_not_at_hand_asks_for_it(tmp_path, made_by, error, message):
    index = MathAMRFormulaIndex(tmp_path / "f")
    post = {"docno": "p", "doc_embs": [[1.0] + [0.0] * 31], "formula_ids": ["1"]}
    index.indexer(model=made_by).index([post])
    with pytest.raises(error, match=message):
        index.search(GAUSS)


def test_a_query_without_a_formula_finds_nothing_and_warns_once(formula_index):
    for typed in ("", "  ", "$$", "$ $", None, r"\frac{a", "what is a group"):
        with pytest.warns(MathAMRWarning, match=r"B\.7") as warned:
            found = formula_index.search(typed, "B.7")
        assert len(warned) == 1
        assert found.empty
        assert list(found.columns) == ["qid", "query", "docno", "post_id", "visual_id", "score", "rank"]


@pytest.fixture(scope="module")
def index(model, tmp_path_factory):
    index = MathAMRIndex(tmp_path_factory.mktemp("typed") / "documents")
    (GraphBuilder() >> model.doc_encoder() >> index.indexer()).index(POSTS)
    return index


def test_a_typed_text_is_found_in_an_index_of_documents(index, model):
    query = f"The integral ${GAUSS}$ converges."
    found = index.search(query)
    assert list(found.columns) == ["qid", "query", "docno", "score", "rank"]
    pipeline = GraphBuilder() >> model.query_encoder() >> index.retriever()
    assert found.equals(pipeline.search(query)[found.columns])
    for blank in ("  ", None):
        with pytest.warns(MathAMRWarning, match="B"):
            assert index.search(blank, "B", model=model, num_results=2).empty


def test_the_scorer_of_an_index_and_the_text_scorer_of_its_model_give_a_pair_one_score(index, model):
    graphs = GraphBuilder()(pd.DataFrame(POSTS))
    queries = pd.DataFrame({"qid": ["1", "2"], "query": [f"Does ${GAUSS}$ converge?", r"Find $\frac{a}{b}$. And $x$!"]})
    topics = GraphBuilder()(queries)
    ranking = topics.merge(graphs[["docno", "graph"]], how="cross").assign(score=0.0, rank=0)
    from_texts = model.text_scorer()(ranking)
    from_index = (model.query_encoder() >> index.scorer())(ranking)
    found = from_texts.merge(from_index, on=["qid", "docno"])
    assert found["score_x"].tolist() == pytest.approx(found["score_y"].tolist(), abs=1e-9)
    assert from_texts["docno"].tolist() == from_index["docno"].tolist()
    assert found["score_x"].nunique() == 6
