"""In+Out: MaxSim on the grid and its combinations by hand; rankings equal a plain loop over all vectors."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from node_stand_in import HashedNodes

from mathamr_systems import InOutIndex, SystemsError
from mathamr_systems.in_out import index as node_rows
from mathamr_systems.in_out.index import NodeRows, combined, on_grid, parts
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.formula import trees_from_latex
from pyterrier_mathamr.index import ModelMismatchError
from pyterrier_mathamr.store import UnknownIdError


def vectors(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, dtype=np.float32).reshape(len(rows), -1)


def test_the_score_sums_the_greatest_cosine_of_each_node_or_its_exponential() -> None:
    found = NodeRows.of_vectors([vectors((0.6, 0.8)), vectors((-0.6, -0.8), (0.0, -1.0)), np.zeros((0, 2), np.float32)])
    scores = found.maxsim(on_grid(vectors((1, 0), (0, 1))))
    assert scores.tolist() == pytest.approx([1.4, -0.8, 0.0])
    assert found.only(1).maxsim(on_grid(vectors((1, 0), (0, 1)))).tolist() == pytest.approx([-0.8])

    found = NodeRows.of_vectors([vectors((0.6, 0.8)), vectors((1, 0)), np.zeros((0, 2), np.float32)])
    scores = found.maxsim(on_grid(vectors((1, 0), (0, 1))), 0.5)
    assert scores.tolist() == pytest.approx([np.exp(-0.8) + np.exp(-0.4), 1 + np.exp(-2), 0.0], abs=1e-6)


def test_a_vector_is_kept_once_for_each_expression() -> None:
    found = NodeRows.of_vectors([vectors((0.6, 0.8), (1, 0), (0.6, 0.8)), vectors((1, 0))])
    assert found.offsets.tolist() == [0, 2, 3]
    assert sorted(map(tuple, found.rows[:2].tolist())) == [(2400, 3200), (4000, 0)]


def test_scores_do_not_depend_on_blocks_or_neighbors(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    rows = random.standard_normal((3000, 100)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    some = np.split(rows, np.sort(random.integers(0, 3000, 200)))
    found, query = NodeRows.of_vectors(some), on_grid(rows[:9])
    whole = found.maxsim(query)
    for block in (1, 7, 64):
        monkeypatch.setattr(node_rows, "_BLOCK", block)
        assert np.array_equal(found.maxsim(query), whole)
    assert [found.only(number).maxsim(query)[0] for number in range(len(some))] == whole.tolist()
    exact = [sum((rows[:9] @ of.T.astype(np.float64)).max(axis=1)) if len(of) else 0 for of in some]
    assert whole.tolist() == pytest.approx(exact, abs=2e-3)


def test_products_on_the_grid_are_exact_in_float32() -> None:
    """The worst row of 100 numbers: all alike, each rounded up, against itself."""
    worst = np.full((1, 100), 0.1000624, dtype=np.float32)
    row = on_grid(worst).astype(np.int64)
    assert int((row * row).sum()) < 2**24


def test_the_combinations_are_those_worked_by_hand() -> None:
    scores = np.array([[1.4], [0.9]])
    assert combined("max", scores).tolist() == [1.4]
    assert combined("avg", scores).tolist() == pytest.approx([1.15])
    assert combined("f1", scores).tolist() == pytest.approx([1.0957], abs=1e-4)
    assert combined("f1", np.array([[1.4, 2.0, 0.0], [-0.9, -3.0, 0.0]])).tolist() == [0, 0, 0]
    assert combined("rrf", np.array([[3.0, 2.0, 2.0], [1.0, 5.0, 0.0]])).tolist() == pytest.approx(
        [1 / 61 + 1 / 62, 1 / 62 + 1 / 61, 1 / 62 + 1 / 63]
    )


@pytest.mark.parametrize("combine", ["max", "avg", "f1", "rrf"])
def test_a_combination_is_the_sum_of_its_parts(combine: str) -> None:
    scores = np.random.default_rng(1).standard_normal((2, 50))
    weights, values = parts(combine, scores)  # type: ignore[arg-type]
    assert np.allclose((weights * values).sum(axis=0), combined(combine, scores))  # type: ignore[arg-type]
    if combine == "f1":
        above = (scores > 0).all(axis=0)
        wanted = 2 * scores.prod(axis=0)[above] / scores.sum(axis=0)[above]
        assert combined("f1", scores)[above] == pytest.approx(wanted)


MODEL = HashedNodes()
LATEX = ["x^2+1", "x^2", r"\frac{a}{b}", "x^2+1", "x+x+y", "y", r"\int_0^\infty e^{-x^2}\,dx", "x^2+y^2+1"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]


def queries(*latex: str) -> pd.DataFrame:
    return pd.DataFrame({"qid": [str(number) for number in range(1, len(latex) + 1)], "latex": list(latex)})


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> InOutIndex:
    visual_ids = {"p0#0": "v1", "p3#0": "v1"}
    return InOutIndex(tmp_path_factory.mktemp("in-out") / "f", MODEL).indexer(visual_ids=visual_ids).index(POSTS)


def plain_scores(query: str, candidate: str, scale: str = "sum", temperature: float | None = None) -> list[float]:
    """Both scores, computed without the index."""
    found = []
    for kind, asked, other in zip(("slt", "opt"), trees_from_latex(query), trees_from_latex(candidate), strict=True):
        rows, theirs = (MODEL.encode([tree], kind)[0].astype(np.float64) for tree in (asked, other))
        best = (rows @ theirs.T).max(axis=1)
        best = best if temperature is None else np.exp((best - 1) / temperature)
        found.append(best.sum() if scale == "sum" else best.mean())
    return found


COMBINATIONS = {"max": max, "avg": lambda pair: sum(pair) / 2, "f1": lambda pair: 2 * pair[0] * pair[1] / sum(pair)}


@pytest.mark.parametrize("scale", ["sum", "mean"])
@pytest.mark.parametrize("combine", COMBINATIONS)
def test_scores_equal_a_plain_loop_over_all_formulas(index: InOutIndex, combine: str, scale: str) -> None:
    asked = ("x^2+2", r"\int_0^1 e^{-x}\,dx", "x+x")
    found = index.retriever(combine=combine, scale=scale)(queries(*asked))
    assert len(found) == len(asked) * len(LATEX)
    for row in found.itertuples():
        scores = plain_scores(row.latex, LATEX[int(row.docno[1])], scale)
        wanted = COMBINATIONS[combine](scores) if min(scores) > 0 or combine != "f1" else 0.0
        assert row.score == pytest.approx(wanted, abs=3e-3)


def test_with_a_temperature_the_terms_are_exponential_and_explain_the_score(index: InOutIndex) -> None:
    retriever = index.retriever(combine="avg", temperature=0.1)
    found = retriever(queries("x^2+2"))
    assert found["score"].is_monotonic_decreasing
    for row in found.itertuples():
        assert row.score == pytest.approx(
            sum(plain_scores(row.latex, LATEX[int(row.docno[1])], temperature=0.1)) / 2, abs=2e-2
        )
        explained = retriever.explain({"latex": row.latex}, row.docno)
        assert explained.parts["contribution"].sum() == pytest.approx(row.score, abs=1e-9)
    same = index.retriever(temperature=0.1).search("x^2").set_index("docno")["score"]
    assert same["p1#0"] == pytest.approx(3, abs=1e-3)  # every node of the operator tree is found unchanged


def test_reciprocal_ranks_come_from_both_graphs(index: InOutIndex) -> None:
    found = index.retriever(combine="rrf")(queries("x^2+2")).set_index("docno").score
    both = {latex: plain_scores("x^2+2", latex) for latex in LATEX}
    distinct = list(both.values())
    for number, latex in enumerate(LATEX):
        ranks = [1 + sum(other[of] > both[latex][of] for other in distinct) for of in (0, 1)]
        assert found[f"p{number}#0"] == pytest.approx(sum(1 / (60 + rank) for rank in ranks))


@pytest.mark.parametrize("kinds", [("slt",), ("opt",)])
def test_a_model_of_one_graph_is_scored_only_by_that(tmp_path: Path, kinds: tuple[str]) -> None:
    index = InOutIndex(tmp_path / "f", HashedNodes(kinds=kinds)).index(POSTS)  # type: ignore[arg-type]
    found = index.retriever(combine="f1")(queries("x^2"))
    place = ("slt", "opt").index(kinds[0])
    for row in found.itertuples():
        assert row.score == pytest.approx(plain_scores("x^2", LATEX[int(row.docno[1])])[place], abs=1e-3)


def test_an_explanation_names_the_match_of_each_node_of_the_query(index: InOutIndex) -> None:
    parts = index.retriever(combine="avg").explain({"latex": "x^2"}, "p0#0").parts
    layout = parts[parts["part"] == "layout graph"]
    assert sorted(layout["query"]) == ["N!2", "V!x"]
    assert layout["similarity"].tolist() == pytest.approx([1.0, 1.0], abs=1e-6)
    assert set(layout["weight"]) == {0.5}
    with pytest.raises(UnknownIdError, match="p9"):
        index.explain({"latex": "x"}, "p9#0")
    with pytest.raises(AskedError, match="no formula"):
        index.explain({"qid": "1"}, "p0#0")


def test_another_model_is_refused_and_a_missing_one_named(index: InOutIndex) -> None:
    other = InOutIndex(index.path, HashedNodes("other"))
    with pytest.raises(ModelMismatchError, match="are from model hashed, the given ones from other"):
        other.search("x")
    with pytest.raises(ConfigError, match="model='other' is not accepted"):
        other.indexer("append").index(POSTS)
    loaded = InOutIndex(index.path)
    with pytest.raises(SystemsError, match="Give it: InOutIndex"):
        loaded.search("x")
    assert len(loaded) == len(LATEX)
