"""A checkpoint as encoders and index in one line: what its parts give one by one."""

from pathlib import Path

import pandas as pd
import pytest

import mathamr_systems
import pyterrier_mathamr as mathamr
from mathamr_systems import ColBERT
from pyterrier_mathamr.model import ModelNotFoundError
from tests.package.tiny_colbert import tiny_colbert

POSTS = pd.DataFrame(
    {"docno": ["a", "b", "c"], "text": ["sum of n", "a limit of 1", "x is 2"], "year": [1999, 2005, 2012]}
)
TOPICS = pd.DataFrame({"qid": ["1", "2"], "query": ["the sum", "limit"]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("late")
    tiny_colbert(place / "tiny")
    return place / "tiny" / "colbert"


def test_one_line_indexes_and_searches_as_its_encoders_do(folder: Path, tmp_path: Path) -> None:
    late = mathamr_systems.LateInteraction(folder, precision="float32")
    index = late.index(tmp_path / "late.mathamr", POSTS, keep=["year"], dtype="float32")
    model = ColBERT.from_pretrained(folder)
    other = mathamr.MathAMRIndex(tmp_path / "other.mathamr")
    (model.doc_encoder(precision="float32") >> other.indexer(dtype="float32")).index(POSTS.to_dict("records"))
    found = late.retriever(index, num_results=2)(TOPICS)
    expected = (model.query_encoder(precision="float32") >> other.retriever(num_results=2))(TOPICS)
    columns = ["qid", "docno", "score", "rank"]
    pd.testing.assert_frame_equal(found[columns], expected[columns])
    assert set(late.retriever(index, where="year > 2000")(TOPICS)["docno"]) == {"b", "c"}
    scored = late.text_scorer()(TOPICS.merge(POSTS, how="cross"))
    assert scored.groupby("qid")["docno"].first().tolist() == found.groupby("qid")["docno"].first().tolist()


def test_documents_are_appended_and_a_missing_checkpoint_is_a_named_error(folder: Path, tmp_path: Path) -> None:
    late = mathamr_systems.LateInteraction(str(folder))
    late.index(tmp_path / "late.mathamr", POSTS[:2])
    assert len(late.index(tmp_path / "late.mathamr", POSTS[2:], mode="append")) == 3
    with pytest.raises(ModelNotFoundError):
        mathamr_systems.LateInteraction(tmp_path / "nothing")
