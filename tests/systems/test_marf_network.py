"""The parts of MaRF's network, by the values of the specification and by brute force."""

import math

import pytest
import torch
from marf_examples import tiny_config
from torch import nn

from mathamr_systems import MaRFConfig
from mathamr_systems.marf.network import FormulaTransformer, GatedFusion
from mathamr_systems.marf.training import ratio_loss
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.model.losses import info_nce, maxsim


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def identity_fusion() -> GatedFusion:
    """One head, all projections the identity, FFN the identity, the gate a sigmoid."""
    fusion = GatedFusion(2, 2, heads=1)
    with torch.no_grad():
        fusion.attention.in_proj_weight.copy_(torch.eye(2).repeat(3, 1))
        fusion.attention.in_proj_bias.zero_()
        fusion.attention.out_proj.weight.copy_(torch.eye(2))
        fusion.attention.out_proj.bias.zero_()
    fusion.network, fusion.gate = nn.Identity(), nn.Sigmoid()
    return fusion.eval()


def test_the_fusion_of_the_worked_example() -> None:
    context, formula = torch.eye(2)[None], torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    fusion = identity_fusion()
    attended, shares = fusion.attention(context, formula, formula)
    assert shares[0].flatten().tolist() == pytest.approx([0.669762, 0.330238, 0.195570, 0.804430], abs=1e-6)
    assert attended[0].flatten().tolist() == pytest.approx([0.669762, 0.660477, 0.195570, 1.608859], abs=1e-6)
    fused = fusion(context, formula)[0]
    assert fused.flatten().tolist() == pytest.approx([1.443014, 0.435497, 0.107317, 2.340587], abs=1e-6)
    rows = nn.functional.normalize(fused, dim=1)
    assert rows.flatten().tolist() == pytest.approx([0.957352, 0.288926, 0.045802, 0.998951], abs=1e-6)
    query = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    assert maxsim(query, rows, torch.tensor([0, 2])).item() == pytest.approx(1.783993, abs=1e-6)
    assert maxsim(query, context[0], torch.tensor([0, 2])).item() == pytest.approx(1.8)


def test_sizes_match_the_paper() -> None:
    with torch.device("meta"):
        encoder = FormulaTransformer(31_523, MaRFConfig())
        fusion = GatedFusion(768, 512, 8)
    assert count(encoder) == 49_694_208 + 17 * 512
    assert count(fusion) == pytest.approx(4.33e6, rel=0.01)


def test_the_two_losses_of_the_worked_example() -> None:
    scores = torch.tensor([[3.0, 1.0, 2.0]])
    assert ratio_loss(scores).item() == pytest.approx(math.log(2))
    assert info_nce(scores, 1.0).item() == pytest.approx(0.407606, abs=1e-6)


def test_the_ratio_is_defined_for_scores_of_0_and_below_and_leaves_right_answers_out() -> None:
    scores = torch.tensor([[-1.0, 2.0], [3.0, 1.0]], requires_grad=True)
    loss = ratio_loss(scores)
    loss.backward()
    assert math.isfinite(loss.item())
    assert bool(torch.isfinite(scores.grad).all())
    single = torch.zeros(2, 2, dtype=torch.bool)
    assert ratio_loss(scores, single).item() == pytest.approx(0.0)


def test_an_untrained_fusion_returns_the_context_bit_for_bit() -> None:
    torch.manual_seed(0)
    context, formula = torch.randn(3, 5, 16), torch.randn(3, 4, 8)
    assert torch.equal(GatedFusion(16, 8, 2).eval()(context, formula), context)


def test_padding_of_formulas_changes_nothing() -> None:
    torch.manual_seed(0)
    encoder = FormulaTransformer(20, tiny_config(formula_layers=2)).eval()
    ids, missing = torch.randint(20, (1, 5)), torch.zeros(1, 5, dtype=torch.bool)
    single = encoder(ids, missing)
    padded = encoder(nn.functional.pad(ids, (0, 3), value=7), nn.functional.pad(missing, (0, 3), value=True))
    assert torch.allclose(single, padded[:, :5], atol=1e-6)
    fusion, context = GatedFusion(16, 8, 2).eval(), torch.randn(1, 6, 16)
    nn.init.normal_(fusion.network[-1].weight)
    mask = torch.tensor([[False] * 5 + [True] * 3])
    assert torch.allclose(fusion(context, single), fusion(context, padded, mask), atol=1e-6)


def test_formulas_are_read_in_order() -> None:
    encoder = FormulaTransformer(20, tiny_config()).eval()
    missing = torch.zeros(1, 3, dtype=torch.bool)
    forward, backward = encoder(torch.tensor([[1, 2, 3]]), missing), encoder(torch.tensor([[3, 2, 1]]), missing)
    assert not torch.allclose(forward.flip(1), backward, atol=1e-4)


@pytest.mark.parametrize(
    "options", [{"text": "html"}, {"formulas": 0}, {"dropout": 1}, {"formula_heads": 3}, {"keys": "other"}]
)
def test_options_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        MaRFConfig(**options)
