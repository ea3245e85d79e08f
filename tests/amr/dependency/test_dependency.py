"""The embedded parser: properties of every parse, and the meaning of some sentences."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.amr import DependencyAmrParser, decode_penman, encode_penman
from pyterrier_mathamr.amr.dependency.lexicon import by_rule, lemma
from pyterrier_mathamr.amr.dependency.syntax import MAX_TOKENS, bundled_net, tokenize, tree_heads
from pyterrier_mathamr.posts import PLACEHOLDER, post_from_html, post_from_text

PARSER = DependencyAmrParser()


HOSTILE = [
    "", " ", "?!", "...", "FORMULA_0", "FORMULA_0 FORMULA_1 FORMULA_0", "(((", '"', "a" * 5000, "x " * 1000, "1/2",
    "\x00\ud800", "FORMULA_0-module FORMULA_1's nFORMULA_2", "::snt ~e.1 / :ARG0", "não é möglich 数学",
    "http://a.b/(c)", "FORMULA_3" + " and FORMULA_3" * 400, "that which is what which that is", "no not never",
]  # fmt: skip


def check(sentences):
    answers = PARSER.parse_sentences(sentences)
    for sentence, answer in zip(sentences, answers, strict=True):
        graph = decode_penman(answer)  # decodes, hence connected: Penman reaches each node from the root
        labels = [label for label in graph.labels if label.startswith("FORMULA_")]
        assert sorted(labels) == sorted({f"FORMULA_{n}" for n in PLACEHOLDER.findall(sentence)})
        assert encode_penman(graph) == answer


WORDS = (
    "if then FORMULA_0 FORMULA_1 is not and or who what , . ? which the more than prove "
    "how many mayor of can be there X Y 3 first do-it Paris as that to"
)


def test_hostile_sentences_are_parsed_too():
    check(HOSTILE)
    assert PARSER.parse_sentences([]) == []


@given(st.lists(st.lists(st.sampled_from(WORDS.split()), max_size=14).map(" ".join), min_size=1, max_size=9))
@settings(max_examples=30)
def test_any_words_in_any_order_are_parsed(sentences):
    check(sentences)


@pytest.fixture(scope="module")
def posts(shared_data):
    rows = ET.parse(shared_data / "arqmath-mini" / "Posts.V1.3.xml").getroot()
    return [post_from_html(row.get("Body"), row.get("Title") or "") for row in rows]


def test_every_real_post_keeps_each_formula_once_and_is_read_back(posts):
    some = posts[::16]  # benchmarks/parsing.py reads all of them
    graphs = PARSER.parse_posts(some)
    assert len(graphs) == 386
    for post, graph in zip(some, graphs, strict=True):
        labels = [label for label in graph.labels if label.startswith("FORMULA_")]
        assert sorted(labels) == sorted(f"FORMULA_{i}" for i in range(len(post.formulas)))
        assert decode_penman(encode_penman(graph)) == graph
    assert not any(role == ":math" for graph in graphs for _, role, _ in graph.edges)  # none is lost and repaired


def test_the_bytes_are_the_same_twice_and_for_any_batch(posts):
    some = posts[::250]
    whole = PARSER.parse_posts(some)
    assert DependencyAmrParser().parse_posts(some) == whole
    assert [PARSER.parse_post(post) for post in some] == whole
    assert PARSER.parse_posts(some[::-1]) == whole[::-1]
    sentences = [tokenize(text) for text in ("We prove it .", "FORMULA_0 is a group", "a " * MAX_TOKENS, "x")]
    net = bundled_net()
    assert net.analyze(sentences) == [net.analyze([sentence])[0] for sentence in sentences]


def test_a_very_long_sentence_is_parsed_in_pieces():
    graph = PARSER.parse_post(post_from_text("we know $x$ is big and that is it, " * 500))
    assert sum(label.startswith("FORMULA_") for label in graph.labels) == 500
    assert graph.labels[0] == "multi-sentence"


def test_heads_are_a_tree_with_one_root_whatever_the_scores():
    rng = np.random.default_rng(0)
    for n in [1, 2, 3, 5, 17] * 15:
        scores = rng.integers(-5, 5, (n, n + 1)).astype(np.float32)
        scores[np.arange(n), np.arange(n) + 1] = -1e9
        heads = tree_heads(scores)
        assert heads.count(-1) == 1
        for token in range(n):
            for _ in range(n):
                token = heads[token] if token >= 0 else token
            assert token == -1
    assert tree_heads(np.array([[5, -9, 1], [1, 5, -9]], np.float32)) == [-1, 0]


@pytest.mark.parametrize(
    ("word", "tag", "expected"),
    [("axes", "NNS", "axis"), ("matrices", "NNS", "matrix"), ("vertices", "NNS", "vertex"), ("series", "NNS", "series"),
     ("bases", "NNS", "basis"), ("inequalities", "NNS", "inequality"), ("groups", "NNS", "group"), ("is", "VBZ", "be"),
     ("proves", "VBZ", "prove"), ("plotted", "VBN", "plot"), ("converging", "VBG", "converge"), ("tries", "VBZ", "try"),
     ("evaluated", "VBN", "evaluate"), ("simplifying", "VBG", "simplify"), ("radius", "NN", "radius")],
)  # fmt: skip
def test_lemmas_are_right_also_for_mathematics(word, tag, expected):
    assert lemma(word, tag, {}) == expected


def test_tokens_match_the_treebank_and_words_that_only_look_inflected_stay():
    sentence = "FORMULA_0-module doesn't, e.g. John's 3.5 cannot (x)"
    assert " ".join(tokenize(sentence)) == "FORMULA_0 - module does n't , e.g. John 's 3.5 can not ( x )"
    words = [("class", "NNS"), ("locus", "NN"), ("red", "VBD"), ("ring", "VBG")]
    assert [by_rule(word, tag) for word, tag in words] == ["class", "locus", "red", "ring"]
