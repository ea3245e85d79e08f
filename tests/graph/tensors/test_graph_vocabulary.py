"""The vocabulary: the paper's normalization, stable numbers, a format that does not change by accident."""

import json
import pickle

import pytest
from graph_examples import whole

from pyterrier_mathamr.graph import MASK_ID, GraphError, MathAMRGraph, Vocabulary
from pyterrier_mathamr.graph.structure import NodeKind
from pyterrier_mathamr.graph.tensors import UNK_ID, normalise, number_token

CONCEPT, CONSTANT, OPT, SLT = NodeKind


def graph(text):
    return MathAMRGraph.from_penman(text)


def test_labels_are_normalized_as_in_the_paper():
    for kind, labels in {
        CONCEPT: {"continuity": "continu", "ponies": "poni", "solve-01": "solve-01", "FORMULA_12": "[FORMULA]",
                  "have-rel-role-91": "have-rel-role-91", "WWW.example.org": "[URL]", "url-entity": "url-ent", "": ""},
        CONSTANT: {"ﬁeld": "field", "continuity": "continuity", "FORMULA_12": "[FORMULA]", "https://x/1": "[URL]"},
        OPT: {"V!𝑥": "V!x", "T!continuity": "T!continuity"},
        SLT: {"V!ℝ": "V!R", "FORMULA_12": "FORMULA_12", "T!http://x": "[URL]"},
    }.items():  # fmt: skip
        assert {label: normalise(label, kind) for label in labels} == labels


@pytest.mark.parametrize(
    ("token", "texts"),
    [
        ("[UNKNUM_INT]", ["3", "-12", "N!1729", "1,000,000", "N!1&comma;000"]),
        ("[UNKNUM_DEC]", ["3.14", "N!.5", "2.", "1e-9", "6.02E23"]),
        ("[UNKNUM_RAT]", ["1/2", "1⁄2"]),  # NFKC of ½
        (None, ["V!3", "N!a", "1,00", "2012-10-03", "solve-01", ".", ""]),
    ],
)
def test_numbers_are_recognized_by_type(token, texts):
    assert {text: number_token(text) for text in texts} == dict.fromkeys(texts, token)


def test_numbers_seen_five_times_have_their_own_id_and_rarer_ones_that_of_their_type():
    texts = ["(a / b :quant 7)"] * 5 + ["(a / b :quant 8)"] * 4 + ['(a / b :quant 1.5 :op1 "1/3")']
    vocabulary = Vocabulary.build(map(graph, texts))
    ids = [vocabulary.node_id(label, CONSTANT) for label in ("7", "8", "9999", "1.5", "1/3")]
    assert [vocabulary.nodes[i] for i in ids] == ["7", "[UNKNUM_INT]", "[UNKNUM_INT]", "[UNKNUM_DEC]", "[UNKNUM_RAT]"]


def test_the_most_frequent_labels_stay_and_ties_go_by_the_alphabet():
    texts = ["(a / zebra)"] * 3 + ["(a / bee)"] * 2 + ["(a / ant)"] * 2 + ["(a / cow)"]
    vocabulary = Vocabulary.build(map(graph, texts), size=12)
    assert vocabulary.nodes[10:] == ("zebra", "ant")
    assert vocabulary.node_id("cow", CONCEPT) == UNK_ID


def test_special_tokens_have_the_same_ids_in_every_vocabulary():
    vocabulary = Vocabulary.build([])
    assert vocabulary.nodes == (
        *("[UNK]", "[MASK]", "VIRTUAL_FORMULA", "VIRTUAL_SENTENCE", "VIRTUAL_DOCUMENT"),
        *("[FORMULA]", "[URL]", "[UNKNUM_INT]", "[UNKNUM_DEC]", "[UNKNUM_RAT]"),
    )
    assert (UNK_ID, MASK_ID) == (0, 1)
    for label in ("[UNK]", "[MASK]", "VIRTUAL_DOCUMENT"):  # a post cannot name a virtual node
        assert vocabulary.node_id(label, CONSTANT) == UNK_ID
    assert vocabulary.relations[2:6] == (
        ":virtual_formula", ":virtual_formula*", ":virtual_sentence", ":virtual_sentence*"
    )  # fmt: skip


def test_roles_seen_five_times_have_their_own_id_and_rarer_ones_are_unknown():
    rare = graph("(a / b :ARG0 (c / d) :snt200 (e / f))")
    graphs = [graph("(a / b :ARG0 (c / d))"), *[rare] * 4]
    assert ":snt200" in Vocabulary.build(graphs, min_role_count=1).relations
    assert ":snt200" in Vocabulary.build([*graphs, rare]).relations
    vocabulary = Vocabulary.build(graphs)
    assert vocabulary.relations[10:] == (":ARG0", ":ARG0*")
    assert vocabulary.role_ids([":snt200", ":ARG0"]) == [0, 10]


@pytest.mark.parametrize("name", ["vocabulary.json", "vocabulary.json.gz"])
def test_saving_gives_the_same_bytes_and_loading_the_same_vocabulary(tmp_path, name):
    graphs = [whole(), graph('(a / "漢字 \\"x" :mod-of (e / f))')]
    vocabulary = Vocabulary.build(graphs, min_role_count=1)
    assert Vocabulary.build(reversed(graphs), min_role_count=1) == vocabulary
    assert vocabulary.node_id("V!𝑥", OPT) == vocabulary.node_id("V!x", SLT) != UNK_ID
    assert vocabulary.relations[10::2] == tuple(role.removesuffix("*") for role in vocabulary.relations[11::2])
    assert ":mod" in vocabulary.relations
    vocabulary.save(tmp_path / name)
    first = (tmp_path / name).read_bytes()
    vocabulary.save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    loaded = Vocabulary.load(tmp_path / name)
    assert (loaded, loaded.hash, hash(loaded)) == (vocabulary, vocabulary.hash, hash(vocabulary))
    assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary


def test_the_hash_changes_with_any_label_role_or_order():
    a = Vocabulary.build([graph("(a / bee :ARG0 (c / cow))")], min_role_count=1)
    b = Vocabulary.build([graph("(a / bee :ARG1 (c / cow))")], min_role_count=1)
    c = Vocabulary(a.nodes[:-2] + a.nodes[:-3:-1], a.relations)
    assert len({a.hash, b.hash, c.hash}) == 3
    with pytest.raises(GraphError, match="twice"):
        Vocabulary((*a.nodes, "a", "a"), a.relations)


def test_the_meaning_of_ids_has_not_changed():
    # If this fails, models made before no longer fit: raise VOCABULARY_FORMAT or NORMALISATION_VERSION, on purpose,
    # or undo the change. Then put the new hash here.
    assert Vocabulary.build([whole()], min_number_count=1, min_role_count=1).hash == (
        "ab792ccfd0adb58956731a1c376716d5aaebfbf8c9d8247952b430f98b4b217d"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"not json", "JSONDecodeError"),
        (b"{}", "KeyError"),
        (b"[]", "TypeError"),
        (json.dumps({"format": 99, "normalisation": 1, "nodes": [], "roles": []}).encode(), "this release reads"),
        (json.dumps({"format": 1, "normalisation": 0, "nodes": [], "roles": []}).encode(), "this release reads"),
        (json.dumps({"format": 1, "normalisation": 1, "nodes": ["a"], "roles": []}).encode(), "special tokens"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_with_the_reason(tmp_path, content, reason):
    path = tmp_path / "vocabulary.json"
    path.write_bytes(content)
    with pytest.raises(GraphError, match=reason):
        Vocabulary.load(path)
