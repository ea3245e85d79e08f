"""Layers of other convolutions: trained, saved, opened, searched with, and refused where code would be run unasked."""

import json
import pickle
import sys

import pandas as pd
import pytest
import torch
from torch import nn
from torch_geometric.nn import FastRGCNConv, RGATConv, RGCNConv

from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, ModelFileError, RelationalGraphConv, Trainer
from pyterrier_mathamr.model.errors import UnsafeModelError
from pyterrier_mathamr.model.networks import RelationalLayer
from pyterrier_mathamr.store import signed


class OwnConv(RGCNConv):
    """A convolution of a user."""


def train(config: MathAMRConfig, pairs, graphs) -> MathAMR:
    return Trainer(config.replace(epochs=1), device="cpu").fit(pairs, graphs, verbose=False)


@pytest.fixture
def naming(model, tmp_path):
    """Save a model, and name another convolution in its description."""

    def save(conv: object):
        model.save(tmp_path / "model")
        content = json.loads((tmp_path / "model" / "config.json").read_text())
        content.pop("checksum")
        content["config"]["conv"] = conv
        (tmp_path / "model" / "config.json").write_bytes(signed(content))
        return tmp_path / "model"

    return save


@pytest.mark.parametrize("conv", [RGATConv, "torch_geometric.nn.FastRGCNConv"])
def test_a_convolution_of_torch_geometric_trains_saves_loads_and_indexes(conv, small, pairs, graphs, tmp_path) -> None:
    model = train(small.replace(conv=conv), pairs, graphs)
    model.save(tmp_path / "model")
    name = f"torch_geometric.nn.{conv.rpartition('.')[2] if isinstance(conv, str) else conv.__name__}"
    assert json.loads((tmp_path / "model" / "config.json").read_text())["config"]["conv"] == name
    opened = MathAMR.from_pretrained(tmp_path / "model")
    assert opened.config == model.config
    assert opened == model
    assert "attributes" not in opened.weights()
    opened.verify()
    index = MathAMRIndex(tmp_path / "index")
    (opened.doc_encoder() >> index.indexer()).index({"docno": name, "graph": graphs[name]} for name in graphs)
    query = pd.DataFrame({"qid": ["q"], "query_graph": [graphs["a3"]]})
    assert (model.query_encoder() >> index.colbert())(query)["docno"][0] == "a3"


def test_parameters_that_torch_geometric_does_not_set_are_zero(small) -> None:
    layer = RelationalLayer(small.replace(conv=RGATConv), 3)
    assert layer.conv.l2.count_nonzero() == 0
    assert layer.conv.q.count_nonzero() > 0
    assert layer.conv.w.tolist() == [1] * len(layer.conv.w)
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_name_and_a_class_are_the_same_option() -> None:
    whole = MathAMRConfig(conv=RGATConv)
    assert whole == MathAMRConfig(conv="torch_geometric.nn.RGATConv")
    assert whole == MathAMRConfig(conv="torch_geometric.nn.conv.rgat_conv.RGATConv") == eval(repr(whole))
    assert whole == MathAMRConfig.from_json(whole.to_json()) == pickle.loads(pickle.dumps(whole))
    assert MathAMRConfig(conv=RelationalGraphConv) == MathAMRConfig()
    assert MathAMRConfig().choices() == {}  # models of earlier releases keep their identity
    assert whole.essence != MathAMRConfig().essence


def test_a_class_of_one_s_own_is_opened_only_where_it_is_given(small, pairs, graphs, tmp_path) -> None:
    model, folder = train(small.replace(conv=OwnConv), pairs, graphs), tmp_path / "model"
    model.save(folder)
    with pytest.raises(UnsafeModelError, match=r"OwnConv.*conv="):
        MathAMR.from_pretrained(folder)
    with pytest.raises(UnsafeModelError, match="OwnConv"):
        MathAMR.from_pretrained(folder, conv=FastRGCNConv)
    opened = MathAMR.from_pretrained(folder, conv=OwnConv)
    opened.verify()
    assert opened == model == pickle.loads(pickle.dumps(opened))
    assert opened.config == model.config
    assert opened.encode([graphs["q0"]])[0].tobytes() == model.encode([graphs["q0"]])[0].tobytes()


@pytest.mark.parametrize(
    "conv", ["os.system", "torch_geometric.datasets.Planetoid", "RGATConv", 3, ["x"], nn.Linear(1, 1)]
)
def test_a_config_has_no_code_of_others_imported(conv, naming) -> None:
    with pytest.raises(ConfigError, match="conv"):
        MathAMRConfig(conv=conv)
    if not isinstance(conv, nn.Module):
        with pytest.raises(ModelFileError, match="layers are of the class"):
            MathAMR.from_pretrained(naming(conv))


@pytest.mark.parametrize("name", ["NoSuchConv", "GCNConv", "Sequential"])
def test_what_is_no_relational_convolution_is_a_named_error(name, naming, small) -> None:
    conv = f"torch_geometric.nn.{name}"
    for config in (small.replace(conv=conv), small.replace(conv=nn.Linear)):
        with pytest.raises(ConfigError, match="conv"):
            MathAMR.untrained(config, [])
    with pytest.raises(ConfigError, match=conv):
        MathAMR.from_pretrained(naming(conv))


def test_weights_of_another_convolution_and_a_missing_torch_geometric_are_named(naming, monkeypatch) -> None:
    folder = naming("torch_geometric.nn.RGATConv")
    with pytest.raises(ModelFileError, match="names and shapes"):
        MathAMR.from_pretrained(folder).weights()
    monkeypatch.setitem(sys.modules, "torch_geometric.nn", None)
    with pytest.raises(MissingExtraError, match="torch_geometric"):
        MathAMR.from_pretrained(folder)
