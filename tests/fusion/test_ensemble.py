"""A learned sum of systems and features: its weights, its candidates, and what it writes."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.listwise import NothingToFitError
from pyterrier_mathamr.fusion import Ensemble, WeightsError, ZScoreFusion, fit_fusion_weights, standard_scores

QIDS = [str(number) for number in range(8)]
TOPICS = pd.DataFrame({"qid": QIDS, "query": ["x"] * 8})
DOCNOS = [f"d{number}" for number in range(6)]
GRADES = {docno: number % 3 for number, docno in enumerate(DOCNOS)}
QRELS = pd.DataFrame(
    [{"qid": qid, "docno": docno, "label": grade} for qid in QIDS for docno, grade in GRADES.items() if docno != "d5"]
)


def table(score, docnos=DOCNOS, seed: int = 0) -> pd.DataFrame:
    noise = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            {"qid": qid, "docno": docno, "score": score(docno) + noise.normal(scale=0.3)}
            for qid in QIDS
            for docno in docnos
        ]
    ).sort_values(["qid", "score"], ascending=[True, False])


GOOD = table(lambda docno: GRADES[docno])
BAD = table(lambda docno: -GRADES[docno], seed=1)
FEW = table(lambda docno: GRADES[docno], DOCNOS[:3], seed=2)


class Scores(pt.Transformer):
    """Scores the documents that it is given by a table."""

    def __init__(self, known: pd.DataFrame) -> None:
        self.known = known

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        pt.validate.result_frame(inp, extra_columns=["query"])
        return inp.drop(columns=["score", "rank"], errors="ignore").merge(self.known, on=["qid", "docno"])


def test_a_system_that_ranks_by_the_grades_gets_weight_and_one_against_them_none() -> None:
    ensemble = Ensemble(GOOD, BAD, names=["good", "bad"])
    with pytest.raises(WeightsError):
        ensemble(TOPICS)
    ensemble.fit(TOPICS, QRELS)
    good, bad = ensemble.weights
    assert good > 0
    assert bad == 0
    found = ensemble(TOPICS).merge(QRELS, on=["qid", "docno"])
    assert (found.groupby("qid")["label"].first() == 2).all()
    with pytest.raises(NothingToFitError):  # judgments of one grade teach nothing
        ensemble.fit(TOPICS, QRELS.assign(label=0))
    pipeline = pt.apply.generic(lambda frame: frame.assign(more=1)) >> ensemble
    pipeline.fit(TOPICS, QRELS)
    assert len(pipeline(TOPICS)) == 48


def test_weights_and_coverage_depend_only_on_judged_documents() -> None:
    ensemble = Ensemble(GOOD, FEW, names=["good", "few"], ridge=0.5)
    assert ensemble.coverage == {}
    ensemble.fit(TOPICS, QRELS)
    assert ensemble.coverage == {"good": 1.0, "few": 3 / 5}
    assert ensemble.weights == pytest.approx(fit_fusion_weights([GOOD, FEW], QRELS, ridge=0.5, judged_only=True))
    first = GOOD["score"].where(GOOD["docno"] != "d5", 9.0)  # d5, which nobody judged, is in front
    changed = [GOOD.assign(score=first), FEW]
    again = fit_fusion_weights(changed, QRELS, ridge=0.5, judged_only=True)
    judged = standard_scores(changed).merge(QRELS, on=["qid", "docno"])
    assert len(judged) == 8 * 5
    assert again != pytest.approx(fit_fusion_weights(changed, QRELS, ridge=0.5))


def test_it_ranks_as_the_fusion_with_its_weights() -> None:
    found = Ensemble(GOOD, FEW, weight=[0.3, 0.7])(TOPICS)
    other = ZScoreFusion(pt.Transformer.from_df(GOOD), pt.Transformer.from_df(FEW), weight=[0.3, 0.7])(TOPICS)
    pd.testing.assert_frame_equal(found, other)


def test_a_feature_scores_all_that_the_systems_found() -> None:
    feature = table(lambda docno: GRADES[docno], DOCNOS[1:], seed=3)
    ensemble = Ensemble(FEW, BAD[BAD["docno"].isin(["d4"])], features=[Scores(feature)], weight=[0.0, 0.0, 1.0])
    found = ensemble(TOPICS)
    assert set(found["docno"]) == {"d0", "d1", "d2", "d4"}  # the feature adds none, and d0 has its lowest score
    lowest = found[found["docno"] == "d0"].set_index("qid")["score"]
    assert (lowest == found.groupby("qid")["score"].min()).all()


def test_it_is_written_with_the_names_of_its_parts_and_read_for_the_same(tmp_path: Path) -> None:
    ensemble = Ensemble(GOOD, features=[Scores(BAD)], names=["words", "graph"])
    file = tmp_path / "ensemble.json"
    with pytest.raises(WeightsError):
        ensemble.save(file)
    ensemble.fit(TOPICS, QRELS)
    ensemble.save(file)
    assert list(json.loads(file.read_text())["weights"]) == ["words", "graph"]
    again = Ensemble.load(file, {"words": GOOD}, {"graph": Scores(BAD)})
    assert again.coverage == ensemble.coverage
    pd.testing.assert_frame_equal(again(TOPICS), ensemble(TOPICS))
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(again))(TOPICS), again(TOPICS))
    with pytest.raises(WeightsError, match="an ensemble of words, graph, not of words, formulas"):
        Ensemble.load(file, {"words": GOOD}, {"formulas": Scores(BAD)})


@pytest.mark.parametrize(
    "options",
    [{"weight": [1.0]}, {"weight": [1.0, -1.0]}, {"names": ["a"]}, {"names": ["a", "a"]}, {"ridge": -1.0}],
)
def test_options_that_do_not_fit_the_parts_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Ensemble(GOOD, BAD, **options)  # type: ignore[arg-type]
