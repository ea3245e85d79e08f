"""Training by gensim, and reading what it trained without gensim."""

import itertools
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mathamr_systems import FastTextOptions, SystemsError, TangentCFT
from mathamr_systems.tangent_cft import index as indexer
from mathamr_systems.tangent_cft import word_vectors as training
from mathamr_systems.tangent_cft.word_vectors import WordCorpus, train
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning, MissingExtraError
from pyterrier_mathamr.formula import trees_from_latex
from pyterrier_mathamr.store import UnfinishedJobError

LATEX = ["x^2+1", "y^2+1", "a+b", r"\frac{x}{y}", "x^2", r"\sin x", r"\int_0^1 f(x)\,dx", "x^2+1"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]
TINY = FastTextOptions(dimensions=8, epochs=2, min_count=2)
BUILD = f"""
import sys
from mathamr_systems import FastTextOptions, TangentCFT
TangentCFT(sys.argv[1]).indexer(training={TINY!r}).index({POSTS!r})
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
    corpus = WordCorpus.of_formulas(map(trees_from_latex, LATEX))["slt"]
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
    contents = []
    for seed in ("1", "2"):
        path = tmp_path / seed
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
        subprocess.run([sys.executable, "-c", BUILD, str(path)], check=True, env=environment)
        contents.append({file.name: file.read_bytes() for file in path.rglob("*") if file.is_file()})
    assert contents[0] == contents[1]
    assert len(contents[0]) == 3


def test_a_new_index_trains_on_its_own_formulas_and_keeps_the_encoder(fasttext: Any, tmp_path: Path) -> None:
    index = TangentCFT(tmp_path / "f").indexer(training=TINY).index(POSTS)
    assert len(index) == len(LATEX)
    assert index.search("x^2+1")["docno"].tolist()[:2] == ["p0#0", "p7#0"]
    assert index.snapshot().manifest.details["training"] == TINY.to_dict()
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == ["f"]
    before = index.snapshot().encoder().identity()
    index.indexer("append").index([{"docno": "q", "text": "And $z^2+1$."}])
    assert index.snapshot().encoder().identity() == before
    assert index.search("z^2+1")["docno"].iloc[0] == "q#0"
    other = TangentCFT(tmp_path / "g").indexer(training=FastTextOptions(dimensions=4, min_count=1)).index(POSTS)
    with pytest.raises(ConfigError, match="training"):
        index.indexer("append", model=other).index(POSTS)


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
        index.indexer(training=TINY, resume=True).index(POSTS)
    assert not index.built()
    with pytest.raises(UnfinishedJobError, match="epochs"):
        index.indexer(training=FastTextOptions(epochs=3), resume=True).index(POSTS)
    again: list[int] = []
    monkeypatch.setattr(indexer, "train", lambda *of: again.append(1) or train(*of))
    index.indexer(training=TINY, resume=True).index(POSTS)
    assert len(again) == 2
    whole = TangentCFT(tmp_path / "g").indexer(training=TINY).index(POSTS)
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
        TangentCFT(tmp_path / "f").indexer(training=TINY).index(POSTS)


@pytest.mark.parametrize(
    "option", ["dimensions", "epochs", "context", "negatives", "min_ngram", "max_ngram", "min_count", "seed"]
)
def test_options_are_checked(option: str) -> None:
    with pytest.raises(ConfigError, match=option):
        FastTextOptions(**{option: -1})
    with pytest.raises(ConfigError, match="dimensions"):
        FastTextOptions(dimensions=1001)
