"""Windows: every piece of a post is read once, and rows are means over their pieces."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from text_encoders import WIDTH, Contextual, Words

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.graph import GraphBuilder, GraphError, Segments, segments_of
from pyterrier_mathamr.model import MathAMR, MathAMRConfig, TextEncoder
from pyterrier_mathamr.model.encoding import PostSegments, window_features

CONFIG = MathAMRConfig(features="text", layers=0, text_dimension=WIDTH, projection=WIDTH)
POSTS = {
    "one": "Let $x + 1$ be even. Then $x$ is odd.",
    "long": "If $a = b$ then we know that $b = a$ holds. Therefore $c$ follows from $a = b$ and much more text than "
    "fits, since one sentence goes on and on. Finally $d$.",
    "no formula": "It is easy. It is clear.",
    "only a formula": "$x$",
}


@pytest.fixture(scope="module")
def graphs():
    rows = [{"docno": name, "text": text} for name, text in POSTS.items()]
    return {row["docno"]: row["graph"] for row in GraphBuilder()(rows)}


def kinds_of(graph):
    return [0] * graph.n_formulas + [1] * len(graph.sentence_texts) + [2]


def encoded(encoder, *graphs, **options):
    posts = [PostSegments(kinds_of(graph), segments_of(graph)) for graph in graphs]
    return window_features(posts, WIDTH, TextEncoder(encoder, precision="float32", **options))


def unit(row):
    return row / np.linalg.norm(row)


def plain(encoder, graph):
    """The same in loops: a window is filled with whole sentences, and rows are sums of states."""
    found = segments_of(graph)
    room = encoder.max_seq_length - 2
    cut = [encoder(text, add_special_tokens=False) for text in found.texts]
    windows, states, closed = [[]], {}, False
    for segment, pieces in enumerate(cut):
        own = [(segment, i) for i in range(len(pieces["input_ids"]))]
        if (windows[-1] and len(windows[-1]) + len(own) > room) or closed:
            windows.append([])
        closed = len(own) > room
        windows[-1] += own
        while len(windows[-1]) > room:
            windows.append(windows[-1][room:])
            windows[-2] = windows[-2][:room]
    document = np.zeros(WIDTH)
    for window in windows:
        ids = [1, *(cut[segment]["input_ids"][i] for segment, i in window), 2]
        inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.int64)}
        rows = encoder.forward(inputs)["token_embeddings"][0].double().numpy()
        document += unit(rows.mean(axis=0))
        states |= dict(zip(window, rows[1:-1], strict=True))
    rows = []
    for segment, start, end in found.of_formula:
        inside = [i for i, (low, high) in enumerate(cut[segment]["offset_mapping"]) if low < end and high > start]
        rows.append(sum((states[segment, i] for i in inside), np.zeros(WIDTH)))
    for segment in found.of_sentence:
        rows.append(sum((states[segment, i] for i in range(len(cut[segment]["input_ids"]))), np.zeros(WIDTH)))
    return np.array([unit(row if row.any() else document) for row in [*rows, document]])


@pytest.mark.parametrize("name", POSTS)
@pytest.mark.parametrize("length", [6, 14, 400])
def test_rows_are_means_over_their_pieces_and_the_document_over_its_windows(graphs, name, length):
    encoder = Contextual(length)
    assert encoded(encoder, graphs[name])[0] == pytest.approx(plain(encoder, graphs[name]), abs=2e-3)


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.sampled_from(["a", "b", ",", "$x$", "$y+1$", "word"]), max_size=9).map(" ".join), max_size=4)
)
def test_any_post_is_encoded_as_in_loops(sentences):
    text = ". ".join(f"So {sentence}" for sentence in sentences)
    graph = GraphBuilder()([{"docno": "d", "text": text}])[0]["graph"]
    encoder = Contextual(9)
    found = encoded(encoder, graph)[0]
    assert np.isfinite(found).all()
    assert found == pytest.approx(plain(encoder, graph), abs=2e-3)


def test_every_piece_is_read_once_other_posts_change_nothing_and_the_cache_is_not_read_again(graphs, tmp_path):
    encoder, second = Contextual(), Contextual()
    together = encoded(encoder, *graphs.values(), cache=tmp_path / "c.sqlite")
    texts = [text for graph in graphs.values() for text in segments_of(graph).texts]
    pieces = sum(map(len, encoder(texts, add_special_tokens=False)["input_ids"]))
    assert sum(len(window) - 2 for window in encoder.windows) == pieces
    assert all(len(window) <= encoder.max_seq_length for window in encoder.windows)
    again = encoded(second, *graphs.values(), cache=tmp_path / "c.sqlite")
    assert second.windows == []
    for graph, rows, cached in zip(graphs.values(), together, again, strict=True):
        assert encoded(encoder, graph)[0] == pytest.approx(rows, abs=2e-3)
        assert np.array_equal(rows, cached)


def test_a_formula_outside_of_sentences_is_a_separate_segment(graphs):
    graph = replace(graphs["one"], sentence_texts=("Nothing.", "Nothing."))
    assert segments_of(graph) == Segments(("Nothing.", "$x + 1$", "$x$"), (0, 0), ((1, 1, 6), (2, 1, 2)))
    found = segments_of(graphs["one"])
    assert [found.texts[segment][start:end] for segment, start, end in found.of_formula] == ["x + 1", "x"]
    with pytest.raises(GraphError, match=r"'one'.*GraphBuilder"):
        segments_of(replace(graph, latex=()))


def test_a_row_without_a_piece_is_the_document(graphs):
    graph = replace(graphs["one"], latex=(" ", "x"), sentence_texts=("FORMULA_0 FORMULA_1 is odd", ""))
    rows = encoded(Contextual(), graph)[0]
    assert np.array_equal(rows[0], rows[-1])
    assert np.array_equal(rows[3], rows[-1])
    assert not np.array_equal(rows[1], rows[-1])


def test_an_encoder_without_states_names_the_alternative(graphs):
    with pytest.raises(ConfigError, match=r"'Words'.*fast tokenizer"):
        encoded(Words(), graphs["one"])


def test_a_model_reads_windows(graphs):
    text = TextEncoder(Contextual(), precision="float32")
    model = MathAMR.untrained(CONFIG, list(graphs.values()), text=text)
    for graph, rows in zip(graphs.values(), model.encode(list(graphs.values())), strict=True):
        assert rows == pytest.approx(plain(text.model, graph), abs=3e-3)
