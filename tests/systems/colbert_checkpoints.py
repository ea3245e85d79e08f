"""Checkpoints of one tiny ColBERT in the forms in which they are published, written by the tests."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tiny_models import tiny_bert

DIMENSIONS = 8


def projection(seed: int = 1) -> torch.Tensor:
    """Draw the projection that all forms store."""
    return torch.randn(DIMENSIONS, 16, generator=torch.Generator().manual_seed(seed))


def stored_inline(folder: Path, architecture: str, metadata: bool = False) -> Path:
    """Write a checkpoint with ``bert.*`` and ``linear.weight``, as Stanford and Approach Zero publish them."""
    tiny_bert(folder)
    weights = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file({**weights, "linear.weight": projection()}, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "architectures": [architecture]}), "utf-8")
    if metadata:
        (folder / "artifact.metadata").write_text(json.dumps({"query_maxlen": 9, "doc_maxlen": 20}), "utf-8")
    return folder


def sentence_transformers_form(folder: Path, tmp: Path, length: int) -> Path:
    """Write the same model as sentence-transformers saves it."""
    from mathamr_systems.colbert.network import assemble

    made = assemble(tiny_bert(tmp), projection(), query_length=length, document_length=length, query_expansion=True)
    made.save_pretrained(str(folder), create_model_card=False)
    return folder


def pylate_form(folder: Path) -> Path:
    """Write the same model as PyLate 1 saves it: two modules, prefixes and lengths in one description."""
    tiny_bert(folder)
    dense = folder / "1_Dense"
    dense.mkdir()
    save_file({"linear.weight": projection()}, dense / "model.safetensors")
    described = {"in_features": 16, "out_features": DIMENSIONS, "bias": False}
    identity = "torch.nn.modules.linear.Identity"
    (dense / "config.json").write_text(json.dumps({**described, "activation_function": identity}), "utf-8")
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    options = {"query_prefix": "[unused0]", "document_prefix": "[unused1]", "query_length": 12, "document_length": 12}
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"model_type": "ColBERT", "similarity_fn_name": "MaxSim", **options}), "utf-8"
    )
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64, "do_lower_case": False}))
    return folder
