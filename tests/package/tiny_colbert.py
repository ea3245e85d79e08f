"""A ColBERT model of a few kilobytes, seeded, for the tests of the whole package."""

from pathlib import Path

import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from mathamr_systems import ColBERT, ColBERTOptions

TOKENS = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [f"{start}{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789" for start in ("", "##")]
MATH = ["$frac$", "$sum$", "$n$", "$x$", "$1$", "$2$", "$=$"]


def tiny_colbert(folder: Path) -> ColBERT:
    """Save a model whose words are letters, and open it."""
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join([*TOKENS, *LETTERS]) + "\n", "utf-8")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True)
    tokenizer.add_tokens(MATH)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model = ColBERT.new(folder, options=ColBERTOptions(dimensions=8, query_length=32, document_length=48))
    model.save(folder / "colbert")
    return ColBERT.from_pretrained(folder / "colbert")
