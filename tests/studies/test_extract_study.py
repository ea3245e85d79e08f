"""The study of extracts: their source posts, within the limit, in a file that the lab accepts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyterrier_mathamr
from mathamr_systems import CosineScorer
from pyterrier_mathamr.arqmath import read_answers
from pyterrier_mathamr.arqmath.runs import ANSWER_LIMIT
from pyterrier_mathamr.model import TextEncoder
from studies import answers
from studies.answers import extract
from studies.answers.extract import OF_ALL, SOURCES, Extract
from studies.answers.rows import TUNED_ROW
from studies.registry import run_study
from studies.study import Study

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"


class Lengths:
    """Encodes a text by its length."""

    def encode(self, texts: Sequence[str], /, **options: Any) -> Any:
        angles = np.array([len(text) / 1200 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "COMMON_ROWS", (TUNED_ROW,))
        patch.setattr(extract, "_scorer", lambda name, parts: CosineScorer(TextEncoder(Lengths())))
        ways = [
            Extract(TUNED_ROW, posts, start) for posts in ("original", "rerank") for start in ("beginning", "middle")
        ]
        remapped = [Extract(TUNED_ROW, "remap"), Extract(TUNED_ROW, judged=False)]
        patch.setattr(extract, "EXTRACTS", (*ways, *remapped))
        study = Study("answers/extract", "A test", "answers", more=extract.source_tables)
        folder = tmp_path_factory.mktemp("extract")
        report = run_study(study, SAMPLE, folder, years=["sample"], verbose=False)
    files = sorted((folder / "answers" / "made").glob("extract*/answers.tsv"))
    assert len(files) == 6
    for file in files:
        assert read_answers(file)["qanswer"].str.len().max() <= ANSWER_LIMIT
    return report.tables


def test_every_topic_is_answered_from_its_first_post(tables: dict[str, pd.DataFrame]) -> None:
    found = tables[SOURCES].set_index(["posts", "start"])
    assert list(found.index) == [
        *(("original", "beginning"), ("original", "middle"), ("rerank", "beginning"), ("rerank", "middle")),
        ("remap", "beginning"),
    ]
    assert (found["answered"] == 1).all()
    assert (found["longest"] <= ANSWER_LIMIT).all()
    assert (found["sources judged"].drop(("remap", "beginning")) == 1).all()
    assert found["P@1 by source"].between(0, 1).all()

    found = tables[SOURCES].set_index(["posts", "start"])["P@1 by source"]
    assert found["original", "beginning"] == found["original", "middle"]
    first = tables[OF_ALL].iloc[0]
    assert (first["ranking"], first["difference"], first["p"]) == ("BM25, tuned for mathematics", 0, 1)


def test_a_source_that_is_not_judged_counts_nothing() -> None:
    qrels = pd.DataFrame({"qid": ["1", "1", "2", "3"], "docno": ["a", "b", "c", "d"], "label": [2, 1, 3, 0]})

    class Parts:
        found = (pd.DataFrame({"qid": ["1", "2", "3"]}), qrels, None)

    answers = pd.DataFrame({"qid": ["1", "2"], "sources": ["a", "z"], "qanswer": ["abc", "ab"]})
    found = extract.grades_of(answers, Parts())  # type: ignore[arg-type]
    assert found["good"].tolist() == [1, 0, 0]
    assert found["grade"].isna().tolist() == [False, True, True]
    assert found["answered"].tolist() == [True, True, False]
    assert found["characters"].tolist()[:2] == [3, 2]
