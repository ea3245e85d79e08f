"""Text features: models that are the text encoder at step 0, and words for labels."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from text_encoders import WIDTH, Broken, Contextual, Table, Words

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.frames import with_objects
from pyterrier_mathamr.graph import GraphBuilder, GraphError, MathAMRGraph, Vocabulary, collate, segments_of
from pyterrier_mathamr.graph.structure import NodeKind
from pyterrier_mathamr.model import (
    MathAMR,
    MathAMRConfig,
    ModelError,
    TextEncoder,
    Trainer,
)
from pyterrier_mathamr.model.encoding import PostSegments, tensors_of, window_features
from pyterrier_mathamr.model.networks import (
    moments,
    principal_directions,
    random_network,
    words_of,
)
from pyterrier_mathamr.model.pairs import split_pairs


@pytest.fixture(scope="session")
def posts(graphs) -> dict[str, MathAMRGraph]:
    """The small posts with texts: their concepts as sentences, and some LaTeX."""
    made = {}
    for name, graph in graphs.items():
        words = [label for label in graph.amr.labels if label.isalpha()]
        latex = tuple(f"x_{i} + {len(words)}" for i in range(graph.n_formulas))
        sentences = tuple(f"{' '.join(words)} {i} FORMULA_{i}" for i in range(graph.n_sentences))
        made[name] = replace(graph, text=f"Title\n{' '.join(sentences)}", sentence_texts=sentences, latex=latex)
    return made


@pytest.fixture
def text() -> TextEncoder:
    return TextEncoder(Contextual())


@pytest.fixture
def config(small) -> MathAMRConfig:
    return small.replace(features="text", text_dimension=WIDTH, projection=WIDTH)


def rows_of(graph, text):
    """The text vectors of a graph's rows: formulas, sentences, document."""
    kinds = [0] * graph.n_formulas + [1] * graph.n_sentences + [2]
    return window_features([PostSegments(kinds, segments_of(graph))], WIDTH, text)[0].astype(np.float32)


@pytest.fixture(scope="module")
def untrained(posts, small) -> MathAMR:
    """A model of full width without layers."""
    config = small.replace(features="text", text_dimension=WIDTH, projection=WIDTH, layers=0)
    return MathAMR.untrained(config, list(posts.values()), text=TextEncoder(Contextual()))


def test_an_untrained_model_of_full_width_is_the_text_encoder(untrained, posts, config, text):
    layered = MathAMR.untrained(config, list(posts.values()), text=text)
    for model in (untrained, layered):
        for graph, rows in zip(posts.values(), model.encode(list(posts.values())), strict=True):
            assert rows == pytest.approx(rows_of(graph, text), abs=1e-3)
    assert ["initial.labels.weight" in model.weights() for model in (untrained, layered)] == [False, True]
    wide = torch.eye(2 * WIDTH)[:, :WIDTH]  # a trained map may lead to a larger space
    wider = untrained.config.replace(projection=2 * WIDTH)
    model = MathAMR(wider, untrained.vocabulary, {"text.project.weight": wide}, text=text)
    assert model.encode([posts["q0"]])[0][:, :WIDTH] == pytest.approx(rows_of(posts["q0"], text), abs=1e-3)


def test_a_narrow_untrained_model_keeps_the_most_of_the_inner_products(posts, config, text):
    model = MathAMR.untrained(config.replace(layers=0, projection=4), list(posts.values()), text=text)
    weight = model.weights()["text.project.weight"]
    assert weight @ weight.T == pytest.approx(torch.eye(4), abs=1e-5)
    kinds = [[], [], []]
    for graph in posts.values():
        rows = rows_of(graph, text).astype(np.float64)
        kinds[0] += [*rows[: graph.n_formulas]]
        kinds[1] += [*rows[graph.n_formulas : -1]]
        kinds[2].append(rows[-1])
    balanced = np.concatenate([np.array(rows) / len(rows) ** 0.5 for rows in kinds])
    judge = np.linalg.svd(balanced)[2][:4]
    assert abs(judge @ weight.numpy().T) == pytest.approx(np.eye(4), abs=1e-3)


def test_principal_directions_have_a_sign_and_zeros_beyond_the_width():
    moment = moments(torch.tensor([[3.0, 0.0, 0.0], [0.0, -2.0, 0.0], [0.0, 0.0, 1.0]]))
    assert principal_directions(moment, 2).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert principal_directions(moment, 4)[3].tolist() == [0, 0, 0]


def test_the_graph_gets_its_share_by_training(posts, config, text):
    graphs = list(posts.values())[:6]
    vocabulary = Vocabulary.build(graphs)
    encoder = random_network(config, vocabulary)
    batch = collate(list(tensors_of(graphs, vocabulary, config, text)))
    encoder(batch)[:, 0].sum().backward()
    assert encoder.text.share.grad.abs().min() > 0
    before = encoder(batch).detach()
    with torch.no_grad():
        encoder.text.share += 0.1
    assert (encoder(batch) - before).norm(dim=1).min() > 1e-3
    encoder(batch)[:, 0].sum().backward()
    assert encoder.layers[0].conv.root.grad.abs().max() > 0
    assert encoder.text.enter.weight.grad.abs().max() > 0


def test_a_saved_model_names_its_text_encoder_and_holds_no_part_of_it(untrained, posts, text, tmp_path):
    untrained.save(tmp_path / "m")
    assert json.loads((tmp_path / "m" / "config.json").read_text())["config"]["text_model"] == "minilm-math"
    assert (tmp_path / "m" / "weights.safetensors").stat().st_size < WIDTH * WIDTH * 4 + 1000
    again = MathAMR.from_pretrained(tmp_path / "m", text=text)
    assert again == untrained
    assert np.array_equal(again.encode([posts["q0"]])[0], untrained.encode([posts["q0"]])[0])


def test_the_transformers_encode_and_score_texts(untrained, posts, text):
    frame = with_objects(
        pd.DataFrame({"qid": ["q0", "q0"], "query": "", "docno": ["a0", "a1"], "score": 0.0, "rank": 0}),
        query_graph=[posts["q0"]] * 2,
        graph=[posts["a0"], posts["a1"]],
    )
    documents, query = untrained.doc_encoder()(frame), untrained.query_encoder()(frame)
    assert documents["doc_embs"][0] == pytest.approx(rows_of(posts["a0"], text), abs=1e-3)
    ranked = untrained.text_scorer()(frame)
    expected = (query["query_embs"][0] @ documents["doc_embs"][0].T).max(axis=1).sum()
    assert ranked.set_index("docno")["score"]["a0"] == pytest.approx(expected, abs=1e-4)


def test_graphs_without_texts_and_encoders_of_another_width_or_kind_are_refused(untrained, graphs, posts, config, text):
    with pytest.raises(GraphError, match=r"graph 'q0'.* GraphBuilder"):
        untrained.encode([graphs["q0"]])
    plain = list(tensors_of([posts["q0"]], untrained.vocabulary, config.replace(features="lookup")))
    with pytest.raises(ModelError, match=r"MathAMR\.encode"):
        untrained.encoder("cpu")(collate(plain))
    some = list(posts.values())
    for changes, encoder, message in (
        ({"text_dimension": 20}, text, f"text_dimension.*{WIDTH}"),
        ({"projection": WIDTH + 1}, text, "projection"),
        ({"features": "words"}, TextEncoder(Words()), r"'Words'.*an encoder with input embeddings"),
    ):
        with pytest.raises(ConfigError, match=message):
            MathAMR.untrained(config.replace(**changes), some, text=encoder)


def test_labels_start_from_the_words_of_the_text_encoder_which_is_then_not_needed(posts, graphs, config, tmp_path):
    text = Table()
    model = MathAMR.untrained(config.replace(features="words", hidden=WIDTH), list(posts.values()), text=text)
    table, vocabulary = model.weights()["initial.labels.weight"], model.vocabulary
    group, limit = (vocabulary.node_id(word, NodeKind.CONCEPT) for word in ("group", "limit"))
    words = text.word_vectors(sorted({words_of(label) for label in vocabulary.spellings(posts.values())} - {""}))
    center = words.mean(axis=0)
    scale = np.linalg.norm(words - center, axis=1).mean()
    judge = (text.word_vectors(["group", "limit"]) - center) / scale
    assert table[[group, limit]].numpy() == pytest.approx(judge, abs=1e-3)
    assert not table[:5].any()  # unknown, masked and virtual nodes
    model.save(tmp_path / "m")
    assert len(MathAMR.from_pretrained(tmp_path / "m", text=TextEncoder(Broken())).encode([graphs["q0"]])[0]) > 1


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("prove-01", "prove"),
        ("multi-sentence", "multi sentence"),
        ("V!x", "x"),
        ("U!eq", "eq"),
        ("N!-2", "2"),
        ("&comma;", ","),
        ("-", "-"),
        ("FORMULA_3", "formula"),
        ("", ""),
    ],
)
def test_labels_are_written_as_words(label, words):
    assert words_of(label) == words


def test_an_untrained_model_of_text_gives_the_vectors_of_the_encoder_in_the_box(posts):
    text = TextEncoder(device="cpu", precision="float32")
    graph = posts["q0"]
    config = MathAMRConfig(features="text", layers=0, projection=384)
    model = MathAMR.untrained(config, [graph], text=text)
    kinds = [0] * graph.n_formulas + [1] * graph.n_sentences + [2]
    rows = window_features([PostSegments(kinds, segments_of(graph))], 384, text)
    assert model.encode([graph], device="cpu")[0] == pytest.approx(rows[0].astype(np.float32), abs=1e-3)


@pytest.mark.parametrize("layers", [0, 1])
def test_training_starts_from_the_text_encoder_moves_away_and_is_read_again_without_it(
    posts, pairs, config, text, layers, tmp_path
):
    trainer = Trainer(config.replace(layers=layers, projection=6, epochs=1), device="cpu", text=text)
    model = trainer.fit(pairs, posts, verbose=False, checkpoint=tmp_path)
    trained = sorted({name for pair in split_pairs(pairs, 0.1, config.training.seed)[0] for name in pair})
    first = MathAMR.untrained(trainer.config, [posts[name] for name in trained], text=text).weights()
    weight = model.weights()["text.project.weight"]
    assert not torch.equal(weight, first["text.project.weight"])
    assert (weight - first["text.project.weight"]).norm() < 0.2 * weight.norm()
    assert model.text is text
    assert len(model.encode([posts["q0"]])[0]) == posts["q0"].n_formulas + posts["q0"].n_sentences + 1
    trainer.text = TextEncoder(Broken())
    again = trainer.fit(pairs, posts, verbose=False, checkpoint=tmp_path)
    assert all(torch.equal(tensor, again.weights()[name]) for name, tensor in model.weights().items())


def test_the_bundled_text_model_distinguishes_the_answer_from_another():
    build = GraphBuilder()
    question, answer, other = build(
        [
            {"docno": "q", "text": "How do I prove that $\\sqrt{2}$ is irrational?"},
            {"docno": "a", "text": "Suppose $\\sqrt{2} = p/q$ in lowest terms. Then both are even, a contradiction."},
            {"docno": "b", "text": "The eigenvalues of a symmetric matrix $A = A^T$ are real."},
        ]
    )
    model = MathAMR.from_pretrained("mathamr-plus-text", text=TextEncoder(device="cpu"))
    rows = [row[-1] for row in model.encode([of["graph"] for of in (question, answer, other)], device="cpu")]
    assert rows[0].shape == (384,)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.1
    assert model.score_weights is not None
