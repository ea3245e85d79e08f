"""Language models of a few kilobytes, seeded, that tests write to a folder."""

from pathlib import Path

import torch
from transformers import BertConfig, BertModel, BertTokenizerFast, PreTrainedTokenizerFast, Qwen3Config, Qwen3Model

SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["sum", "of", "fraction", "limit", "prove", "the", "is", "x", "y", "less", "two", ",", "."]
MATH = ["$frac$", "$x$", "$sup$", "$1$", "$2$"]


def bert_tokenizer(folder: Path) -> BertTokenizerFast:
    """Make a WordPiece tokenizer of 25 tokens, five of them math tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join([*SPECIAL, *WORDS]) + "\n", "utf-8")
    tokenizer = BertTokenizerFast(str(vocabulary), do_lower_case=True)
    tokenizer.add_tokens(MATH)
    return tokenizer


def tiny_bert(folder: Path, seed: int = 0) -> Path:
    """Write a BERT of one layer, 16 wide, with its tokenizer."""
    tokenizer = bert_tokenizer(folder)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_qwen3(folder: Path, seed: int = 0) -> Path:
    """Write a causal Qwen3 of two layers, 32 wide, 4 heads and 2 for keys and values, with a tokenizer of words."""
    of_bert = bert_tokenizer(folder)
    (folder / "vocab.txt").unlink()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=of_bert.backend_tokenizer, pad_token="[PAD]", unk_token="[UNK]", eos_token="[SEP]"
    )
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    Qwen3Model(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
