"""De-duplication by visual id, against the organizers' procedure written out plainly."""

import pickle
from pathlib import Path

import ir_measures
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.arqmath import TASK2_MEASURES, ARQMathCollection, VisualIdDeduplication, visual_qrels
from pyterrier_mathamr.formula import FormulaStore

VISUAL = {"q7": "v1", "q3": "v1", "q4": "v2", "q8": "v3"}
RANKING = pd.DataFrame(
    {
        "qid": ["B.2", "B.1", "B.1", "B.1", "B.2", "B.2"],
        "docno": ["q4", "q3", "q7", "q4", "q7", "q3"],
        "score": [0.7, 0.8, 0.9, 0.7, 0.7, 0.7],
    }
)


def kept(frame: pd.DataFrame) -> list[tuple[str, str, str, int]]:
    return [*zip(frame.qid, frame.docno, frame.formula_id, frame["rank"], strict=True)]


def test_the_first_formula_of_each_appearance_represents_all() -> None:
    assert kept(VisualIdDeduplication(VISUAL)(RANKING)) == [
        ("B.2", "v2", "q4", 0),
        ("B.2", "v1", "q7", 1),
        ("B.1", "v1", "q7", 0),
        ("B.1", "v2", "q4", 1),
    ]
    by_formula = VisualIdDeduplication(VISUAL, keep="formula")(RANKING)
    assert by_formula.docno.tolist() == ["q4", "q7", "q7", "q4"]
    assert by_formula.visual_id.tolist() == ["v2", "v1", "v1", "v2"]
    ranking = RANKING.assign(visual_id=RANKING.docno.map(VISUAL))
    assert kept(VisualIdDeduplication()(ranking)) == kept(VisualIdDeduplication(VISUAL)(RANKING))


@pytest.mark.parametrize("unknown", [None, "", float("nan")])
def test_a_formula_without_visual_id_is_left_out_with_a_warning(unknown: object) -> None:
    ranking = RANKING.assign(visual_id=["v2", "v1", "v1", unknown, "v1", "v1"])
    with pytest.warns(MathAMRWarning, match="1 of 6 formulas have no visual id and are dropped, such as q4"):
        result = VisualIdDeduplication()(ranking)
    assert [row[:2] for row in kept(result)] == [("B.2", "v2"), ("B.2", "v1"), ("B.1", "v1")]


def test_a_store_of_formulas_knows_visual_ids(tmp_path: Path) -> None:
    table = tmp_path / "1.tsv"
    table.write_text("id\tpost_id\tvisual_id\tformula\n7\t1\t71\t\n3\t1\t71\t\n4\t2\t72\t\n")
    with FormulaStore.build(tmp_path / "store", [table], []) as store:
        result = VisualIdDeduplication(store)(RANKING.assign(docno=RANKING.docno.str[1:]))
    assert result.docno.tolist() == ["72", "71", "71", "72"]


def test_an_empty_ranking_stays_empty_and_has_the_columns() -> None:
    empty = VisualIdDeduplication(VISUAL)(RANKING.iloc[:0])
    assert len(empty) == 0
    assert pd.api.types.is_string_dtype(empty.docno)
    assert list(VisualIdDeduplication(VISUAL)([])) == list(VisualIdDeduplication(VISUAL).transform_iter([])) == []
    assert {"qid", "docno", "score", "rank", "visual_id", "formula_id"} <= set(empty.columns)
    assert pt.inspect.transformer_inputs(VisualIdDeduplication()) == [["qid", "docno", "score", "visual_id"]]


def test_transformers_with_equal_parameters_are_equal_and_survive_pickling() -> None:
    one, other = VisualIdDeduplication(), VisualIdDeduplication(keep="formula")
    assert one == VisualIdDeduplication()
    assert hash(one) == hash(VisualIdDeduplication())
    assert one != other
    assert pickle.loads(pickle.dumps(other)) == other
    assert eval(repr(other), {"VisualIdDeduplication": VisualIdDeduplication}) == other
    with pytest.raises(ConfigError, match="post"):
        VisualIdDeduplication(keep="post")  # type: ignore[arg-type]


FORMULA = st.integers(0, 25).map(str)
RUNS = st.dictionaries(
    st.sampled_from(["B.1", "B.2", "B.3"]),
    st.dictionaries(FORMULA, st.integers(0, 6).map(float), min_size=1),
    min_size=1,
)
GRADES = st.dictionaries(
    st.sampled_from(["B.1", "B.2", "B.4"]),
    st.dictionaries(st.integers(0, 9).map("v{}".format), st.integers(0, 3), min_size=1),
    min_size=1,
)


def deduplicated(scores: dict[str, float], visual: dict[str, str]) -> dict[str, float]:
    """Replace each formula by its visual id and keep the first of each, from the top downward."""
    result: dict[str, float] = {}
    order = list(scores)
    for formula in sorted(order, key=lambda formula: (-scores[formula], order.index(formula))):
        if formula in visual and visual[formula] not in result:
            result[visual[formula]] = scores[formula]
    return result


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.errors.MathAMRWarning")
@settings(max_examples=40)
@given(RUNS, GRADES, st.dictionaries(FORMULA, st.integers(0, 9).map("v{}".format)))
def test_ranking_and_measures_match_the_plain_procedure(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]], visual: dict[str, str]
) -> None:
    rows = [(qid, docno, score) for qid, scores in run.items() for docno, score in scores.items()]
    result = VisualIdDeduplication(visual)(pd.DataFrame(rows, columns=["qid", "docno", "score"]))
    expected = {qid: deduplicated(scores, visual) for qid, scores in run.items()}
    flat = [(qid, docno, score) for qid, scores in expected.items() for docno, score in scores.items()]
    assert [*zip(result.qid, result.docno, result.score, strict=True)] == flat

    frame = result.rename(columns={"qid": "query_id", "docno": "doc_id"})
    ours = {(m.query_id, m.measure): m.value for m in ir_measures.iter_calc(TASK2_MEASURES, qrels, frame)}
    theirs = {(m.query_id, m.measure): m.value for m in ir_measures.iter_calc(TASK2_MEASURES, qrels, expected)}
    assert ours == theirs
    assert {topic for topic, _ in ours} == set(qrels)


def test_the_grade_of_an_appearance_is_the_best_of_its_instances() -> None:
    judged = [("B.1", "q3", 1), ("B.1", "q7", 3), ("B.1", "q4", 0), ("B.2", "q3", 0), ("B.2", "other", 3)]
    qrels = pd.DataFrame(judged, columns=["qid", "docno", "label"])
    assert visual_qrels(qrels, VISUAL).to_numpy().tolist() == [["B.1", "v1", 3], ["B.1", "v2", 0], ["B.2", "v1", 0]]


@pytest.mark.parametrize(("year", "same", "all_"), [(2020, 0.95, 0.99), (2022, 0.98, 1.0)])
def test_judgments_by_visual_id_are_near_the_published_ones(
    shared_data: Path, year: int, same: float, all_: float
) -> None:
    # The published ones know instances that are not in this part of the collection, and later visual ids.
    collection = ARQMathCollection(shared_data / "arqmath-mini")
    rows = [(q.query_id, q.doc_id, q.relevance) for q in collection.qrels(year, 2)]
    ours = visual_qrels(pd.DataFrame(rows, columns=["qid", "docno", "label"]), collection.visual_ids())
    published = {(q.query_id, q.doc_id): q.relevance for q in collection.qrels(year, 2, judged="visual", complete=True)}
    found = [(published.get((r.qid, r.docno)), r.label) for r in ours.itertuples()]
    assert sum(theirs == label for theirs, label in found) / len(found) >= same
    assert sum(theirs is not None for theirs, _ in found) / len(found) >= all_
