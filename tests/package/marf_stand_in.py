"""A MaRF of a few numbers over a BERT of letters, for the sample."""

from pathlib import Path

import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from mathamr_systems import MaRF, MaRFConfig
from pyterrier_mathamr.posts import post_from_text

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def save_marf(folder: Path) -> Path:
    """Write a model whose fusion has random weights."""
    bert = folder / "letters"
    bert.mkdir()
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    (bert / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(pieces), max_position_embeddings=64, **sizes)).save_pretrained(bert)
    BertTokenizerFast(str(bert / "vocab.txt")).save_pretrained(bert)
    config = MaRFConfig(
        query_length=32,
        document_length=48,
        formula_layers=1,
        formula_heads=2,
        formula_width=8,
        formula_hidden=8,
        heads=2,
        formulas=2,
        output=8,
    )
    marf = MaRF.new(str(bert), [post_from_text(r"$\frac{x}{2} + 1$")], config=config, min_count=1, device="cpu")
    torch.nn.init.normal_(marf._network.fusion.network[-1].weight)
    marf.save(folder / "marf")
    return folder / "marf"
