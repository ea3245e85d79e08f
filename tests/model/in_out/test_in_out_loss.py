"""Equations 2 and 3, by worked values and by loops."""

import math

import pytest
import torch

from mathamr_systems.in_out.graphs import PAIRINGS, TREE_OF, Condition, GraphName
from mathamr_systems.in_out.model import Block, contrast

TWO_NODES = Block(torch.eye(2, dtype=torch.float64), torch.tensor([0, 1, 2]))
EQUAL_NODES = Block(torch.eye(2, dtype=torch.float64)[[0, 0]], torch.tensor([0, 1, 2]))


@pytest.mark.parametrize(
    ("block", "with_negatives", "with_positive"),
    [(TWO_NODES, -10.0, 0.0000454), (EQUAL_NODES, 0.0, math.log(2))],
)
def test_the_positive_is_not_in_the_sum_unless_asked(block: Block, with_negatives: float, with_positive: float) -> None:
    blocks: dict[GraphName, Block] = {"slg": block, "opg": block}
    pairings = PAIRINGS["slg+opg"]
    assert contrast(blocks, pairings).item() == pytest.approx(with_negatives, abs=1e-9)
    assert contrast(blocks, pairings, positive_in_sum=True).item() == pytest.approx(with_positive, rel=1e-3)


def drawn(chance: torch.Generator) -> tuple[list[torch.Tensor], Block]:
    graphs = [
        torch.nn.functional.normalize(torch.randn(nodes, 4, generator=chance, dtype=torch.float64), dim=1)
        for nodes in torch.randint(1, 4, (3,), generator=chance).tolist()
    ]
    return graphs, Block(torch.cat(graphs), torch.tensor([0, *map(len, graphs)]).cumsum(0))


def plain(graphs: dict[GraphName, list[torch.Tensor]], condition: Condition, tau: float) -> float:
    """Both equations as they are printed."""
    by_first: dict[GraphName, list[float]] = {}
    for first, second in PAIRINGS[condition]:
        losses = []
        for i, formula in enumerate(graphs[first]):
            for z in formula:
                best = [max(float(z @ other) for other in graph) for graph in graphs[second]]
                below = sum(math.exp(best[k] / tau) for k in range(len(best)) if k != i)
                losses.append(-math.log(math.exp(best[i] / tau) / below))
        by_first.setdefault(first, []).append(sum(losses) / len(losses))
    halves = [sum(means) / len(means) for means in by_first.values()]
    return sum(halves) / len(halves)


@pytest.mark.parametrize("condition", PAIRINGS)
def test_the_loss_of_each_condition_is_that_of_the_equations(condition: Condition) -> None:
    chance = torch.Generator().manual_seed(3)
    made = {name: drawn(chance) for name in TREE_OF}
    blocks = {name: block for name, (_, block) in made.items()}
    wanted = plain({name: graphs for name, (graphs, _) in made.items()}, condition, 0.5)
    assert contrast(blocks, PAIRINGS[condition], 0.5).item() == pytest.approx(wanted, rel=1e-9)
