"""Approach Zero: the scorer, explanations, and formulas without operator trees."""

from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest

from mathamr_systems import ApproachZeroIndex
from mathamr_systems.approach0.path_lists import PathLists
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.formula import FormulaPair, slt_from_latex
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.store import DamagedError, UnknownIdError

LATEX = ["x^2+1", "y^2+1", "x^2+x", "y^3", "z", "x^2+1", r"\frac{a}{b}", "7", r"\int_0^1 x^2\,dx"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]
OUTPUTS = ["docno", "post_id", "visual_id", "score", "rank"]


def queries(*latex: object, column: str = "latex") -> pd.DataFrame:
    return pd.DataFrame({"qid": [str(number) for number in range(1, len(latex) + 1)], column: list(latex)})


@pytest.fixture
def index(tmp_path: Path) -> ApproachZeroIndex:
    return ApproachZeroIndex(tmp_path / "f.a0").index(POSTS)


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
    explained = retriever.explain({"latex": "x^2+1"}, "p3#0")
    assert set(explained.parts["part"]) == {"path VAR/BASE/SUBSUP", "path NUM/SUPSCRIPT/SUBSUP"}
    assert retriever.explain({"latex": "7"}, "p0#0").score == 0
    assert retriever.explain({"latex": " "}, "p0#0").parts.empty


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
    with pytest.warns(MathAMRWarning, match="without an operator tree find nothing: '1'"):
        assert index.retriever(store=store)(asked).empty  # type: ignore[arg-type]


def test_damage_is_reported(index: ApproachZeroIndex) -> None:
    part = index.snapshot().parts[0]
    whole = PathLists.of_part(part).arrays()
    for name, values in (("path_keys", whole["path_keys"][::-1]), ("firsts", whole["firsts"] + 64)):
        arrays = {**whole, name: values}
        changed = type("Changed", (), {"path": part.path, "__getitem__": lambda self, of, arrays=arrays: arrays[of]})()
        with pytest.raises(DamagedError, match=name):
            PathLists.of_part(changed)
