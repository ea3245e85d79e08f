"""A language model of letters, which studies train in seconds."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of letters, with the tokens that ColBERT puts in front of queries and documents."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("letters")
    letters = [f"{start}{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789" for start in ("", "##")]
    words = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(words), intermediate_size=32, max_position_embeddings=64, **sizes)
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    return folder
