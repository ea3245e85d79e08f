"""Graphs end to end, judged by PyTorch Geometric's own batching."""

from dataclasses import replace

import pytest
import torch
from graph_examples import one_sentence, whole
from torch_geometric.data import Batch, Data

from pyterrier_mathamr.graph import GraphError, Vocabulary, collate, graph_tensors

VOCABULARY = Vocabulary.build([whole(), one_sentence()], min_role_count=1)
TENSORS = [graph_tensors(whole(), VOCABULARY), graph_tensors(one_sentence(), VOCABULARY)] * 2


def judge_of(graphs):
    """The batch that PyTorch Geometric makes; it shifts ``virtual_index`` with the nodes."""
    return Batch.from_data_list(
        [
            Data(
                x=torch.from_numpy(graph.nodes),
                edge_index=torch.from_numpy(graph.edges).long(),
                edge_type=torch.from_numpy(graph.relations),
                virtual_index=torch.from_numpy(graph.virtual).long(),
                kinds=torch.from_numpy(graph.kinds),
                num_nodes=len(graph.nodes),
            )
            for graph in graphs
        ]
    )


def test_a_batch_equals_that_of_pytorch_geometric():
    batch, judge = collate(TENSORS), judge_of(TENSORS)
    assert torch.equal(batch.nodes, judge.x)
    assert torch.equal(batch.edge_index, judge.edge_index)
    assert torch.equal(batch.edge_type, judge.edge_type)
    assert torch.equal(batch.virtual, judge.virtual_index)
    assert torch.equal(batch.kinds, judge.kinds)
    assert len(batch) == 4
    assert batch.offsets.tolist() == [0, 7, 10, 17, 20]
    assert {field.dtype for field in (batch.nodes, batch.edge_index, batch.virtual, batch.offsets)} == {torch.int64}


def test_text_features_are_put_end_to_end_or_refused_where_some_graphs_have_none():
    rows = [torch.full((len(tensors.virtual), 2), float(i)).half() for i, tensors in enumerate(TENSORS)]
    graphs = [replace(tensors, features=row.numpy()) for tensors, row in zip(TENSORS, rows, strict=True)]
    batch = collate(graphs)
    assert torch.equal(batch.features, torch.cat(rows))
    assert torch.equal(batch.to("cpu").features, batch.features)
    assert collate(TENSORS).to("cpu").features is None
    with pytest.raises(GraphError, match="no graphs"):
        collate([])
    with pytest.raises(GraphError, match="some without"):
        collate([graphs[0], TENSORS[1]])
    with pytest.raises(GraphError, match=r"features of shape \(2, 2\)"):
        replace(TENSORS[0], features=rows[0][:2].numpy())


def test_only_added_nodes_are_virtual():
    assert collate([TENSORS[1]]).is_virtual.tolist() == [False] * 8 + [True] * 3
    representatives = graph_tensors(one_sentence(), VOCABULARY, virtual_nodes="none")
    assert not collate([representatives]).is_virtual.any()
    assert collate([graph_tensors(one_sentence(), VOCABULARY, virtual_nodes="global")]).is_virtual.sum() == 1
