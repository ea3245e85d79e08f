"""MaxSim on the grid and the four combinations; values worked by hand."""

import numpy as np
import pytest

from mathamr_systems.in_out import index as node_rows
from mathamr_systems.in_out.index import NodeRows, combined, on_grid, parts, ranks


def vectors(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, dtype=np.float32).reshape(len(rows), -1)


def test_the_score_sums_the_greatest_cosine_of_each_node() -> None:
    found = NodeRows.of_vectors([vectors((0.6, 0.8)), vectors((-0.6, -0.8), (0.0, -1.0)), np.zeros((0, 2), np.float32)])
    scores = found.maxsim(on_grid(vectors((1, 0), (0, 1))))
    assert scores.tolist() == pytest.approx([1.4, -0.8, 0.0])
    assert found.only(1).maxsim(on_grid(vectors((1, 0), (0, 1)))).tolist() == pytest.approx([-0.8])


def test_a_temperature_makes_of_each_cosine_exp_of_what_it_lacks_to_1() -> None:
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


def test_equal_scores_share_the_best_of_their_ranks() -> None:
    assert ranks(np.array([2.0, 3.0, 2.0, 1.0])).tolist() == [2, 1, 2, 4]


@pytest.mark.parametrize("combine", ["max", "avg", "f1", "rrf"])
def test_a_combination_is_the_sum_of_its_parts(combine: str) -> None:
    scores = np.random.default_rng(1).standard_normal((2, 50))
    weights, values = parts(combine, scores)  # type: ignore[arg-type]
    assert np.allclose((weights * values).sum(axis=0), combined(combine, scores))  # type: ignore[arg-type]
    if combine == "f1":
        above = (scores > 0).all(axis=0)
        wanted = 2 * scores.prod(axis=0)[above] / scores.sum(axis=0)[above]
        assert combined("f1", scores)[above] == pytest.approx(wanted)
