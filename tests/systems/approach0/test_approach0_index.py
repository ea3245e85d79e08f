"""The index keeps the contract of every index of formulas; what it finds is scored one by one."""

from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.formula import FormulaPair, slt_from_latex
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.store import DamagedError, UnknownIdError
from pyterrier_mathamr.systems import ApproachZeroIndex
from pyterrier_mathamr.systems.approach0.path_lists import PathLists

LATEX = ["x^2+1", "y^2+1", "x^2+x", "y^3", "z", "x^2+1", r"\frac{a}{b}", "7", r"\int_0^1 x^2\,dx"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]
OUTPUTS = ["docno", "post_id", "visual_id", "score", "rank"]


def queries(*latex: object, column: str = "latex") -> pd.DataFrame:
    return pd.DataFrame({"qid": [str(number) for number in range(1, len(latex) + 1)], column: list(latex)})


@pytest.fixture
def index(tmp_path: Path) -> ApproachZeroIndex:
    return ApproachZeroIndex(tmp_path / "f.a0").index(POSTS)


def test_a_formula_finds_itself_first_with_all_formulas_of_its_expression(index: ApproachZeroIndex) -> None:
    found = index(queries(*LATEX))
    for qid, rows in found.groupby("qid"):
        own = [f"p{i}#0" for i, latex in enumerate(LATEX) if latex == LATEX[int(str(qid)) - 1]]
        assert rows["docno"].tolist()[: len(own)] == own
        assert rows["score"].is_monotonic_decreasing
        assert rows["rank"].tolist() == list(range(len(rows)))
    assert list(found.columns) == ["qid", "latex", *OUTPUTS]
    assert set(index.search("7")["docno"]) == {"p7#0"}  # a number is found by its type alone


def test_a_cutoff_is_the_top_of_the_whole_ranking(index: ApproachZeroIndex) -> None:
    topics = queries("x^2+1", "y^2", "z")
    whole = index.retriever(1000)(topics)
    for count in (1, 2, 3, 5):
        top = whole[whole["rank"] < count].reset_index(drop=True)
        pd.testing.assert_frame_equal(index.retriever(count)(topics), top)
        pd.testing.assert_frame_equal((index.retriever() % count).compile()(topics), top)
    one_by_one = pd.concat([index(topics[topics["qid"] == qid]) for qid in topics["qid"]], ignore_index=True)
    pd.testing.assert_frame_equal(one_by_one, whole)


def test_the_scorer_gives_what_the_retriever_gives(index: ApproachZeroIndex, tmp_path: Path) -> None:
    topics = queries("x^2+1", "y^2")
    whole = index.retriever(b1=0.8, b2=0.2, eta=0.1)(topics)
    again = index.scorer(b1=0.8, b2=0.2, eta=0.1)(whole[::-1])
    assert again["qid"].drop_duplicates().tolist() == ["2", "1"]
    scores = whole.set_index(["qid", "docno"])["score"].to_dict()
    assert again.set_index(["qid", "docno"])["score"].to_dict() == pytest.approx(scores)
    pipeline = TangentIndex(tmp_path / "t").index(POSTS) >> index.scorer()
    assert pipeline(topics)["docno"].iloc[0] == "p0#0"
    assert pt.inspect.transformer_outputs(pipeline, ["qid", "latex"]) == list(pipeline(topics).columns)
    with pytest.raises(UnknownIdError, match="elsewhere"):
        index.scorer()(whole.assign(docno="elsewhere"))
    assert list(index.scorer()(whole[:0]).columns) == list(whole.columns)


def test_an_explanation_sums_to_the_score(index: ApproachZeroIndex) -> None:
    retriever = index.retriever()
    for row in retriever(queries("x^2+1", r"\frac{y}{b}")).to_dict("records"):
        for system in (retriever, index.scorer()):
            assert system.explain(row).score == pytest.approx(row["score"])
    told = retriever.explain({"latex": "x^2+1"}, "p3#0")
    assert set(told.parts["part"]) == {"path VAR/BASE/SUBSUP", "path NUM/SUPSCRIPT/SUBSUP"}
    assert retriever.explain({"latex": "7"}, "p0#0").score == 0
    assert retriever.explain({"latex": " "}, "p0#0").parts.empty


def test_parts_are_appended_merged_deleted_and_compacted(index: ApproachZeroIndex, tmp_path: Path) -> None:
    some = ApproachZeroIndex(tmp_path / "some").index(POSTS[:3])
    some.indexer("append").index(POSTS[3:])
    topics = queries(*LATEX)
    wanted = index(topics)
    pd.testing.assert_frame_equal(some(topics), wanted)
    some.compact()
    some.verify()
    assert _arrays(some) == _arrays(index)
    few = ApproachZeroIndex(tmp_path / "few").index(POSTS[1:2])
    merged = ApproachZeroIndex.merge(tmp_path / "merged", few, ApproachZeroIndex(tmp_path / "rest").index(POSTS[2:]))
    merged.indexer("append").index(POSTS[:1])
    pd.testing.assert_frame_equal(merged(topics), wanted)
    some.delete(["p8#0"])
    pd.testing.assert_frame_equal(some(topics), ApproachZeroIndex(tmp_path / "without").index(POSTS[:8])(topics))


def _arrays(index: ApproachZeroIndex) -> dict[str, list[object]]:
    return {name: array.tolist() for name, array in index.snapshot().expressions.payload.arrays().items()}


@pytest.mark.parametrize("latex", [r"\frac{a", "plain words", None, " "])
def test_what_is_no_formula_finds_nothing_with_a_warning(index: ApproachZeroIndex, latex: object) -> None:
    with pytest.warns(MathAMRWarning, match="^1 query.ies. find nothing, since they are no formula: '1'"):
        found = index(queries(latex, "x^2"))
    assert set(found["qid"]) == {"2"}


def test_formulas_without_operator_tree_are_kept_and_never_found(tmp_path: Path) -> None:
    class Store:
        path = tmp_path / "formulas"

        def get_many(self, ids: list[str]) -> dict[str, FormulaPair]:
            return {name: FormulaPair(slt_from_latex("x"), None) for name in ids if name in ("1", "q")}

        def visual_ids(self, ids: list[str]) -> dict[str, str]:
            return {}

    span = '<span class="math-container" id="{}">{}</span>'
    store = Store()
    posts = [{"docno": "p", "html": span.format(1, "") + span.format(2, "x")}]
    index = ApproachZeroIndex(tmp_path / "f").indexer(store=store).index(posts)  # type: ignore[arg-type]
    assert len(index) == 2
    assert index.search("x")["docno"].tolist() == ["2"]
    asked = queries("").assign(formula_id="q")
    with pytest.warns(MathAMRWarning, match="no operator tree: '1'"):
        assert index.retriever(store=store)(asked).empty  # type: ignore[arg-type]


def test_hostile_formulas(tmp_path: Path) -> None:
    hostile = [
        "+".join("a" * 600),
        "x" + "^{x" * 300 + "}" * 300,
        r"\sqrt{" * 150 + "x" + "}" * 150,
        "=".join("x" * 600),
        r"\unknown{x}",
    ]
    posts = [{"docno": f"h{i}", "text": f"${latex}$"} for i, latex in enumerate(hostile)]
    with pytest.warns(MathAMRWarning):
        index = ApproachZeroIndex(tmp_path / "f").index(posts)
    for number, latex in enumerate(hostile):
        found = index.search(latex)
        assert found["docno"].iloc[0] == f"h{number}#0"
        assert index.explain({"latex": latex}, f"h{number}#0").score == pytest.approx(found["score"].iloc[0])


def test_no_rows_and_no_formulas(index: ApproachZeroIndex, tmp_path: Path) -> None:
    full = index(queries("x"))
    assert index(queries())[OUTPUTS].dtypes.equals(full[OUTPUTS].dtypes)
    assert index(queries(r"\begin{pmatrix}\end{pmatrix}+\Gamma!"))[OUTPUTS].dtypes.equals(full[OUTPUTS].dtypes)
    empty = ApproachZeroIndex(tmp_path / "empty").index([])
    assert list(empty.search("x").columns) == ["qid", "query", *OUTPUTS]
    with pytest.warns(MathAMRWarning, match="none of 1 posts has a formula"):
        ApproachZeroIndex(tmp_path / "words").index([{"docno": "1", "text": "nothing"}])


@pytest.mark.parametrize(("name", "value"), [("num_results", 0), ("eta", 1.1), ("b1", -0.1), ("b2", "high")])
def test_options_out_of_range_are_refused(index: ApproachZeroIndex, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        index.retriever(**{name: value})  # type: ignore[arg-type]


def test_damage_is_told(index: ApproachZeroIndex) -> None:
    part = index.snapshot().parts[0]
    whole = PathLists.of_part(part).arrays()
    for name, values in (("path_keys", whole["path_keys"][::-1]), ("firsts", whole["firsts"] + 64)):
        arrays = {**whole, name: values}
        changed = type("Changed", (), {"path": part.path, "__getitem__": lambda self, of, arrays=arrays: arrays[of]})()
        with pytest.raises(DamagedError, match=name):
            PathLists.of_part(changed)


def test_it_is_an_artifact_equal_by_path(index: ApproachZeroIndex) -> None:
    assert repr(index) == f"ApproachZeroIndex({str(index.path)!r})"
    assert index.retriever(5, eta=0.2) == index.retriever(5, eta=0.2) != index.retriever(5)
