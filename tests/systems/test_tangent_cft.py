"""Tangent-CFT: formulas as sentences, training by gensim, and searching by vectors, which needs no gensim."""

import itertools
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mathamr_systems import FastTextOptions, FormulaTrees, SystemsError, TangentCFT
from mathamr_systems.tangent_cft import index as indexer
from mathamr_systems.tangent_cft import word_vectors as training
from mathamr_systems.tangent_cft.index import KEPT, cosines, quantized, squares
from mathamr_systems.tangent_cft.word_vectors import (
    EDGE,
    REPRESENTATIONS,
    UNKNOWN,
    Characters,
    Word,
    WordCorpus,
    WordVectors,
    sentences,
    train,
)
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning, MissingExtraError
from pyterrier_mathamr.formula import FormulaPair, FormulaTree, trees_from_latex
from pyterrier_mathamr.store import UnfinishedJobError, UnknownIdError


def words(text: str) -> list[Word]:
    """Tokens by spaces, words by bars; ``-a`` is the edge a, ``_`` the empty token."""
    spelled = (
        (EDGE + token[1:] if token[0] == "-" else token.strip("_") for token in word.split())
        for word in text.split("|")
    )
    return [tuple(word) for word in spelled]


def test_x_squared_plus_1_in_four_representations() -> None:
    written = sentences(trees_from_latex("x^2+1"))
    assert written == {
        "slt": words("V! x N! 2 -a | N! 2 0! _ -n | V! x + -n | V! x N! 1 -n -n | + N! 1 -n | N! 1 0! _ -n"),
        "slt_type": words("V! N! -a | N! 0! -n | V! + -n | V! N! -n -n | + N! -n | N! 0! -n"),
        "opt": words(
            "U! plus O! SUP -0 | U! plus N! 2 -0 -1 | U! plus V! 𝑥 -0 -0 | O! SUP V! 𝑥 -0 | V! 𝑥 0! _ -0"
            " | O! SUP N! 2 -1 | N! 2 0! _ -0 | U! plus N! 1 -0 | N! 1 0! _ -0"
        ),
        "opt_type": words(
            "U! O! -0 | U! N! -0 -1 | U! V! -0 -0 | O! V! -0 | V! 0! -0 | O! N! -1 | N! 0! -0 | U! N! -0 | N! 0! -0"
        ),
    }


@pytest.mark.parametrize(
    ("label", "slt", "opt", "of_type"),
    [
        ("N!3.14", "N! 3 . 1 4", "N! 3.14", "N!"),
        ("M!()1x3", "M! ()1x3", "M! ()1x3", "M!"),
        ("M!R!", "M! R", "M! R", "M!"),
        ("O!", "O!", "O!", "O!"),
        ("V!a!b", "V! a", "V! a", "V!"),
        ("=", "=", "=", "="),
        ("!", "!", "!", "!"),
    ],
)
def test_labels_become_words(label: str, slt: str, opt: str, of_type: str) -> None:
    pair = FormulaPair(FormulaTree((label,), (), kind="slt"), FormulaTree((label,), (), kind="opt"))
    assert sentences(pair) == {
        "slt": words(f"{slt} 0! _ -n"),
        "slt_type": words(f"{of_type} 0! -n"),
        "opt": words(f"{opt} 0! _ -0"),
        "opt_type": words(f"{of_type} 0! -0"),
    }


def test_a_missing_tree_has_no_sentence_and_renaming_keeps_the_sentences_of_types() -> None:
    x, y = (trees_from_latex(latex) for latex in ("x^2+1", "y^2+1"))
    assert list(sentences(FormulaPair(x.slt, None))) == ["slt", "slt_type"]
    assert sentences(FormulaPair(None, None)) == {}
    one, other = sentences(x), sentences(y)
    assert [name for name in one if one[name] == other[name]] == ["slt_type", "opt_type"]


def test_each_token_is_one_character_and_an_unknown_one_is_reported() -> None:
    characters = Characters.of_words({("V!", "x"): 2, ("V!", "x", EDGE + "n"): 1})
    assert characters.tokens == [EDGE + "n", "V!", "x"]
    spelled = characters.spell(("V!", "x", EDGE + "n"))
    assert len(set(spelled)) == 3
    assert not set(spelled) & set("<>")
    assert characters.spell(("V!", "y", "n")) == spelled[0] + UNKNOWN + UNKNOWN


FORMULAS = ["x^2+1", "y^2+1", "a+b", r"\frac{x}{y}", "x^2", r"\sin x", r"\int_0^1 f(x)\,dx", "x^2+1"]
TRAINING_POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(FORMULAS)]
TINY = FastTextOptions(dimensions=8, epochs=2, min_count=2)
BUILD = f"""
import sys
from mathamr_systems import FastTextOptions, TangentCFT
TangentCFT(sys.argv[1]).indexer(training={TINY!r}).index({TRAINING_POSTS!r})
"""


@pytest.fixture
def fasttext() -> Any:
    return pytest.importorskip("gensim.models.fasttext", reason="the extra cft is not installed")


def test_words_are_read_as_gensim_reads_them(fasttext: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[Any] = []

    def recorded(*args: Any, **options: Any) -> Any:
        models.append(fasttext.FastText(*args, **options))
        return models[0]

    monkeypatch.setattr(training, "require", lambda *_: SimpleNamespace(FastText=recorded))
    corpus = WordCorpus.of_formulas(map(trees_from_latex, FORMULAS))["slt"]
    vectors = train(corpus, TINY)
    theirs = models[0].wv
    assert list(vectors.words) == theirs.index_to_key
    untrained = np.setdiff1d(np.arange(vectors.size), vectors.buckets)
    theirs.vectors_ngrams[untrained] = 0.0  # random numbers, which are not kept
    known = sorted(set("".join(vectors.words)))
    unknown = ["".join(word) for word in itertools.product(known[:6], repeat=4)]
    assert set(vectors.words).isdisjoint(unknown)
    for word in [*vectors.words, *unknown]:
        np.testing.assert_allclose(vectors.vector(word), theirs[word], atol=1e-4)
    assert sum(bool(vectors.vector(word).any()) for word in unknown) > 100


def test_the_same_formulas_and_seed_give_the_same_bytes_in_two_processes(fasttext: Any, tmp_path: Path) -> None:
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path / "1")], check=True, env=environment)
    TangentCFT(tmp_path / "2").indexer(training=TINY).index(TRAINING_POSTS)
    there, here = (
        {file.name: file.read_bytes() for file in (tmp_path / name).rglob("*") if file.is_file()} for name in "12"
    )
    assert there == here
    assert len(here) == 3


def test_a_new_index_trains_on_its_own_formulas_and_keeps_the_encoder(fasttext: Any, tmp_path: Path) -> None:
    index = TangentCFT(tmp_path / "f").indexer(training=TINY).index(TRAINING_POSTS)
    assert len(index) == len(FORMULAS)
    assert index.search("x^2+1")["docno"].tolist()[:2] == ["p0#0", "p7#0"]
    assert index.snapshot().manifest.details["training"] == TINY.to_dict()
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == ["f"]
    before = index.snapshot().encoder().identity()
    index.indexer("append").index([{"docno": "q", "text": "And $z^2+1$."}])
    assert index.snapshot().encoder().identity() == before
    assert index.search("z^2+1")["docno"].iloc[0] == "q#0"
    other = (
        TangentCFT(tmp_path / "g").indexer(training=FastTextOptions(dimensions=4, min_count=1)).index(TRAINING_POSTS)
    )
    with pytest.raises(ConfigError, match="training"):
        index.indexer("append", model=other).index(TRAINING_POSTS)


def test_training_that_was_interrupted_goes_on_after_the_last_representation(
    fasttext: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[int] = []

    def twice(corpus: WordCorpus, options: FastTextOptions) -> Any:
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(1)
        return train(corpus, options)

    index = TangentCFT(tmp_path / "f")
    monkeypatch.setattr(indexer, "train", twice)
    with pytest.raises(KeyboardInterrupt):
        index.indexer(training=TINY, resume=True).index(TRAINING_POSTS)
    assert not index.built()
    with pytest.raises(UnfinishedJobError, match="epochs"):
        index.indexer(training=FastTextOptions(epochs=3), resume=True).index(TRAINING_POSTS)
    again: list[int] = []
    monkeypatch.setattr(indexer, "train", lambda *of: again.append(1) or train(*of))
    index.indexer(training=TINY, resume=True).index(TRAINING_POSTS)
    assert len(again) == 2
    whole = TangentCFT(tmp_path / "g").indexer(training=TINY).index(TRAINING_POSTS)
    assert index.snapshot().encoder().identity() == whole.snapshot().encoder().identity()


def test_too_little_training_data_is_reported(fasttext: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemsError, match="1 formulas occurs 5 times"):
        TangentCFT(tmp_path / "f").index([{"docno": "1", "text": "$xyz$"}])
    with pytest.warns(MathAMRWarning, match="none of 1 posts has a formula"):
        TangentCFT(tmp_path / "g").index([{"docno": "1", "text": "nothing"}])


def test_without_gensim_training_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, extra: str) -> Any:
        raise MissingExtraError(module.partition(".")[0], extra)

    monkeypatch.setattr(training, "require", missing)
    with pytest.raises(
        ImportError, match=r"gensim is not installed; run: pip install 'pyterrier-mathamr-systems\[cft\]'"
    ):
        TangentCFT(tmp_path / "f").indexer(training=TINY).index(TRAINING_POSTS)


TRAINED = TangentCFT(Path(__file__).parents[1] / "data" / "cft-format-1")
LATEX = ["x^2+1", "y^2+1", "x^2", r"\frac{a}{b}", "x^2+1", "a+b+c", r"\sum_{i} i"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]


def built(path: Path, posts: list[dict[str, str]] = POSTS) -> TangentCFT:
    index: TangentCFT = TangentCFT(path).indexer(model=TRAINED).index(posts)
    return index


@pytest.fixture(scope="module")
def cft(tmp_path_factory: pytest.TempPathFactory) -> TangentCFT:
    return built(tmp_path_factory.mktemp("cft") / "i")


def topics(*latex: str) -> pd.DataFrame:
    return pd.DataFrame({"qid": [str(i) for i in range(len(latex))], "query": latex})


def test_the_vector_of_a_formula_is_the_mean_of_its_words_and_types_do_not_know_names() -> None:
    characters = Characters(["a", "b"])
    spelled = [characters.spell(("a",)), characters.spell(("b",))]
    nothing = np.zeros(0, dtype=np.int32)
    words = WordVectors(
        ["a", "b"], spelled, np.eye(2, dtype=np.float32), nothing, np.zeros((0, 2), np.float16), 1, (3, 6)
    )
    assert words.mean([("a",), ("b",)]).tolist() == [0.5, 0.5]
    assert words.mean([("a",), ("c",)]).tolist() == [0.5, 0.0]
    assert words.mean([]).tolist() == [0.0, 0.0]
    x, y = (TRAINED.snapshot().encoder().encode(trees_from_latex(latex)) for latex in ("x^2+1", "y^2+1"))
    assert [name for place, name in enumerate(KEPT) if np.array_equal(x[place], y[place])] == ["slt_type", "opt_type"]
    assert x[KEPT.index("sum")] == pytest.approx(x[0] + x[1] + x[2])


def test_cosines_of_int8_vectors_are_exact() -> None:
    vectors = quantized(np.array([[3.0, 4.0], [0.0, 0.0], [-6.0, -8.0], [4.0, -3.0]], dtype=np.float32))
    assert vectors.tolist() == [[95, 127], [0, 0], [-95, -127], [127, -95]]
    assert cosines(vectors, squares(vectors), vectors[0]).tolist() == [1.0, 0.0, -1.0, 0.0]
    random = quantized(np.random.default_rng(1).normal(size=(50, 1000)).astype(np.float32))
    wide = random.astype(np.int64)
    lengths = (wide**2).sum(axis=1)
    assert (
        cosines(random, squares(random), random[7]).tolist()
        == ((wide @ wide[7]) / np.sqrt(lengths.astype(np.float64) * lengths[7])).tolist()
    )


def test_vectors_of_one_formula_are_nearest_and_rankings_are_fused(cft: TangentCFT) -> None:
    for number, latex in enumerate(LATEX):
        found = cft.retriever(mode="cft")(topics(latex))
        same = [f"p{i}#0" for i, other in enumerate(LATEX) if other == latex]
        assert found["docno"].tolist()[: len(same)] == same, number
        assert found["score"].iloc[0] == 1.0

    found = cft.retriever(mode="cft2")(topics("x^2+1")).set_index("docno")["score"]
    pair, docnos = trees_from_latex("x^2+1"), ["p0#0", "p1#0", "p2#0", "p3#0", "p5#0", "p6#0"]  # each expression once
    of_each = cft.cosines(pair, docnos)
    expected = np.zeros(len(docnos))
    for column in of_each.T:
        for rank, place in enumerate(sorted(range(len(docnos)), key=lambda i: (-column[i], docnos[i])), 1):
            expected[place] += max(0.0, column[place]) / (60 + rank)
    assert [found[docno] for docno in docnos] == pytest.approx(expected.tolist())
    few = cft.retriever(mode="cft2", candidates=1)(topics("x^2+1"))
    assert few["docno"].tolist() == ["p0#0", "p4#0"]


def test_cosines_have_a_column_for_each_representation(cft: TangentCFT) -> None:
    pair = trees_from_latex("y^2+1")
    found = cft.cosines(pair, ["p1#0", "p0#0", "p0#0"])
    assert found.shape == (3, len(REPRESENTATIONS))
    assert found.dtype == np.float64
    assert found[0].tolist() == [1.0, 1.0, 1.0, 1.0]
    assert found[1].tolist() == found[2].tolist()
    assert (found[1, :2] < 1).all()
    assert found[1, 2:].tolist() == [1.0, 1.0]
    assert cft.cosines(FormulaPair(pair.slt, None), ["p1#0"]).tolist() == [[1.0, 0.0, 1.0, 0.0]]
    numbers = cft.snapshot().expressions_of(["p1#0", "p0#0", "p0#0"])
    assert cft.cosines(pair, numbers).tolist() == found.tolist()
    assert cft.cosines(pair, []).shape == (0, 4)
    with pytest.raises(UnknownIdError, match="elsewhere"):
        cft.cosines(pair, ["elsewhere"])


def test_the_encoder_outlives_the_formulas_it_came_with(tmp_path: Path) -> None:
    index = built(tmp_path / "f", POSTS[:2])
    index.indexer("append").index(POSTS[2:])
    index.delete(["p0#0", "p1#0"])
    assert index.search("x^2+1")["docno"].iloc[0] == "p4#0"
    with pytest.raises(UnknownIdError, match="nowhere"):
        index.delete(["nowhere"])
    index.delete([entry["docno"] for entry in index.get_corpus_iter()])
    assert index.search("x^2+1").empty
    with pytest.raises(SystemsError, match="all of its formulas were deleted"):
        index.indexer("append").index(POSTS)


def test_cft2ted_reranks_by_edit_distance(cft: TangentCFT, tmp_path: Path) -> None:
    trees = FormulaTrees(tmp_path / "t").index(POSTS)
    pipeline = cft.retriever(mode="cft2") >> trees.edit_distance(combine="rrf")
    found = pipeline(topics("x^2+1"))
    assert found["docno"].tolist()[:2] == ["p0#0", "p4#0"]
    assert found["score"].iloc[0] == pytest.approx(2 / 61)
    assert len(found) == len(cft.retriever(mode="cft2")(topics("x^2+1")))
