"""Searching by the vectors of formulas; the index was trained once, and nothing here needs gensim."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mathamr_systems import FormulaTrees, SystemsError, TangentCFT
from mathamr_systems.tangent_cft.index import KEPT, cosines, quantized, squares
from mathamr_systems.tangent_cft.word_vectors import REPRESENTATIONS, Characters, WordVectors
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.formula import FormulaPair, trees_from_latex
from pyterrier_mathamr.store import UnknownIdError

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


def test_the_vector_of_a_formula_is_nearest_to_itself(cft: TangentCFT) -> None:
    for number, latex in enumerate(LATEX):
        found = cft.retriever(mode="cft")(topics(latex))
        same = [f"p{i}#0" for i, other in enumerate(LATEX) if other == latex]
        assert found["docno"].tolist()[: len(same)] == same, number
        assert found["score"].iloc[0] == 1.0


def test_cft2_adds_cosines_over_ranks(cft: TangentCFT) -> None:
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


def test_options_and_bad_queries(cft: TangentCFT, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="mode"):
        cft.retriever(mode="cft3")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="candidates"):
        cft.retriever(candidates=0)
    with pytest.warns(MathAMRWarning, match="queries that are not formulas"):
        assert cft.retriever()(topics("", "x^2"))["qid"].unique().tolist() == ["1"]
    assert not TRAINED.snapshot().encoder().encode(FormulaPair(None, None)).any()


def test_cft2ted_reranks_by_edit_distance(cft: TangentCFT, tmp_path: Path) -> None:
    trees = FormulaTrees(tmp_path / "t").index(POSTS)
    pipeline = cft.retriever(mode="cft2") >> trees.edit_distance(combine="rrf")
    found = pipeline(topics("x^2+1"))
    assert found["docno"].tolist()[:2] == ["p0#0", "p4#0"]
    assert found["score"].iloc[0] == pytest.approx(2 / 61)
    assert len(found) == len(cft.retriever(mode="cft2")(topics("x^2+1")))
