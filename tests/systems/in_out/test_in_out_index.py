"""Rankings are those of a plain loop over the vectors of all formulas, whatever was done to the folder."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from node_stand_in import HashedNodes

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.explain import AskedError
from pyterrier_mathamr.formula import trees_from_latex
from pyterrier_mathamr.index import ModelMismatchError
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.store import META, FormatError, UnknownIdError
from pyterrier_mathamr.systems import InOutIndex, SystemsError

MODEL = HashedNodes()
LATEX = ["x^2+1", "x^2", r"\frac{a}{b}", "x^2+1", "x+x+y", "y", r"\int_0^\infty e^{-x^2}\,dx", "x^2+y^2+1"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]
CHAIN = "+".join("x" * 300)  # a layout tree of 599 levels
TREES = "1" + "".join("+\\frac{1}{1" for _ in range(150)) + "}" * 150


def queries(*latex: str) -> pd.DataFrame:
    return pd.DataFrame({"qid": [str(number) for number in range(1, len(latex) + 1)], "latex": list(latex)})


@pytest.fixture
def index(tmp_path: Path) -> InOutIndex:
    visual_ids = {"p0#0": "v1", "p3#0": "v1"}
    return InOutIndex(tmp_path / "f", MODEL).indexer(visual_ids=visual_ids).index(POSTS)


def plain(query: str, candidate: str, scale: str = "sum") -> list[float]:
    """Both scores, computed without the index."""
    found = []
    for kind, asked, other in zip(("slt", "opt"), trees_from_latex(query), trees_from_latex(candidate), strict=True):
        rows, theirs = (MODEL.encode([tree], kind)[0].astype(np.float64) for tree in (asked, other))
        best = (rows @ theirs.T).max(axis=1)
        found.append(best.sum() if scale == "sum" else best.mean())
    return found


COMBINATIONS = {"max": max, "avg": lambda pair: sum(pair) / 2, "f1": lambda pair: 2 * pair[0] * pair[1] / sum(pair)}


@pytest.mark.parametrize("scale", ["sum", "mean"])
@pytest.mark.parametrize("combine", COMBINATIONS)
def test_scores_are_those_of_a_plain_loop_over_all_formulas(index: InOutIndex, combine: str, scale: str) -> None:
    asked = ("x^2+2", r"\int_0^1 e^{-x}\,dx", "x+x")
    found = index.retriever(combine=combine, scale=scale)(queries(*asked))
    assert len(found) == len(asked) * len(LATEX)
    for row in found.itertuples():
        scores = plain(row.latex, LATEX[int(row.docno[1])], scale)
        wanted = COMBINATIONS[combine](scores) if min(scores) > 0 or combine != "f1" else 0.0
        assert row.score == pytest.approx(wanted, abs=3e-3)


def test_reciprocal_ranks_are_those_of_both_graphs(index: InOutIndex) -> None:
    found = index.retriever(combine="rrf")(queries("x^2+2")).set_index("docno").score
    both = {latex: plain("x^2+2", latex) for latex in LATEX}
    distinct = list(both.values())
    for number, latex in enumerate(LATEX):
        ranks = [1 + sum(other[of] > both[latex][of] for other in distinct) for of in (0, 1)]
        assert found[f"p{number}#0"] == pytest.approx(sum(1 / (60 + rank) for rank in ranks))


@pytest.mark.parametrize("combine", ["max", "avg", "f1", "rrf"])
def test_nothing_ranks_above_the_query_itself(index: InOutIndex, combine: str) -> None:
    found = index.retriever(combine=combine)(queries(*LATEX))
    best = found.groupby("qid")["score"].max()
    for qid, latex in enumerate(LATEX, 1):
        of_query = found[found["qid"] == str(qid)].set_index("docno")["score"]
        assert of_query[f"p{qid - 1}#0"] == best[str(qid)]
        if combine == "max":
            assert best[str(qid)] == max(len(tree.nodes) for tree in trees_from_latex(latex))


def test_every_formula_of_an_expression_is_found_in_order_of_ids_with_its_columns(index: InOutIndex) -> None:
    found = index.search("x^2 + 1")
    assert list(found.columns) == ["qid", "query", "docno", "post_id", "visual_id", "score", "rank"]
    assert found[["docno", "post_id", "visual_id"]].to_numpy().tolist()[:2] == [
        ["p0#0", "p0", "v1"],
        ["p3#0", "p3", "v1"],
    ]
    assert found["rank"].tolist() == list(range(len(LATEX)))
    assert len(index.snapshot().expressions.payload) == len(LATEX) - 1


def test_queries_together_are_scored_as_one_by_one_and_documents_in_any_order(
    index: InOutIndex, tmp_path: Path
) -> None:
    topics = queries(*LATEX, "z", CHAIN)
    whole = index.retriever()(topics)
    alone = pd.concat([index.retriever()(topics.iloc[i : i + 1]) for i in range(len(topics))], ignore_index=True)
    pd.testing.assert_frame_equal(whole, alone)
    other = InOutIndex(tmp_path / "g", MODEL).index(POSTS[::-1]).retriever()(topics)
    pd.testing.assert_frame_equal(whole.drop(columns="visual_id"), other.drop(columns="visual_id"))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_cutoff_is_the_top_of_the_whole_ranking(index: InOutIndex, count: int) -> None:
    whole = index.retriever(1000)(queries(*LATEX))
    cut = whole[whole["rank"] < count].reset_index(drop=True)
    pd.testing.assert_frame_equal((index.retriever() % count).compile()(queries(*LATEX)), cut)


@pytest.mark.parametrize("kinds", [("slt",), ("opt",)])
def test_a_model_of_one_graph_is_scored_by_that_alone(tmp_path: Path, kinds: tuple[str]) -> None:
    index = InOutIndex(tmp_path / "f", HashedNodes(kinds=kinds)).index(POSTS)  # type: ignore[arg-type]
    found = index.retriever(combine="f1")(queries("x^2"))
    place = ("slt", "opt").index(kinds[0])
    for row in found.itertuples():
        assert row.score == pytest.approx(plain("x^2", LATEX[int(row.docno[1])])[place], abs=1e-3)


@pytest.mark.parametrize("combine", ["max", "avg", "f1", "rrf"])
@pytest.mark.parametrize("scale", ["sum", "mean"])
def test_the_parts_of_an_explanation_sum_to_the_score(index: InOutIndex, combine: str, scale: str) -> None:
    retriever = index.retriever(combine=combine, scale=scale)
    for _, row in retriever(queries("x^2+2", "y")).iterrows():
        assert retriever.explain(row).score == pytest.approx(row["score"], rel=1e-12)


def test_an_explanation_says_what_each_node_of_the_query_meets(index: InOutIndex) -> None:
    parts = index.retriever(combine="avg").explain({"latex": "x^2"}, "p0#0").parts
    layout = parts[parts["part"] == "layout graph"]
    assert sorted(layout["query"]) == ["N!2", "V!x"]
    assert layout["similarity"].tolist() == pytest.approx([1.0, 1.0], abs=1e-6)
    assert set(layout["weight"]) == {0.5}
    with pytest.raises(UnknownIdError, match="p9"):
        index.explain({"latex": "x"}, "p9#0")
    with pytest.raises(AskedError, match="no formula"):
        index.explain({"qid": "1"}, "p0#0")


def test_expressions_are_appended_deleted_merged_and_compacted(index: InOutIndex, tmp_path: Path) -> None:
    whole = index.retriever()(queries("x^2+2")).drop(columns="visual_id")
    grown = InOutIndex(tmp_path / "g", MODEL).index(POSTS[:4])
    grown.indexer("append").index(POSTS[4:])
    pd.testing.assert_frame_equal(grown.retriever()(queries("x^2+2")).drop(columns="visual_id"), whole)
    grown.delete(["p1#0"])
    left = whole[whole.docno != "p1#0"].reset_index(drop=True).assign(rank=range(len(LATEX) - 1))
    pd.testing.assert_frame_equal(grown.retriever()(queries("x^2+2")).drop(columns="visual_id"), left)
    grown.compact()
    grown.verify()
    others = InOutIndex(tmp_path / "h", MODEL).index(POSTS[1:2])
    merged = InOutIndex.merge(tmp_path / "i", grown, others)
    pd.testing.assert_frame_equal(merged.retriever()(queries("x^2+2")).drop(columns="visual_id"), whole)


def test_an_interrupted_build_goes_on_and_gives_the_same_bytes(
    index: InOutIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse, "PART_BYTES", 1)
    monkeypatch.setattr(sparse, "BATCH", 1)

    def broken() -> object:
        yield from POSTS[:3]
        raise KeyboardInterrupt

    again = InOutIndex(tmp_path / "again", MODEL)
    indexer = again.indexer(resume=True, visual_ids={"p0#0": "v1", "p3#0": "v1"})
    with pytest.raises(KeyboardInterrupt):
        indexer.index(broken())
    assert again.unfinished() > 0
    indexer.index(POSTS)
    one, other = (next(of.path.rglob("arrays*")).read_bytes() for of in (index, again))
    assert one == other


def test_chains_of_600_levels_and_deep_fractions_pass(tmp_path: Path) -> None:
    index = InOutIndex(tmp_path / "f", MODEL).index([{"docno": "p", "text": f"${CHAIN}$ ${TREES}$ $x$"}])
    assert index.search(CHAIN).docno[0] == "p#0"
    assert index.search(TREES).docno[0] == "p#1"


def test_another_model_is_refused_and_a_missing_one_named(index: InOutIndex) -> None:
    other = InOutIndex(index.path, HashedNodes("other"))
    with pytest.raises(ModelMismatchError, match="are from model hashed, the given ones from other"):
        other.search("x")
    with pytest.raises(ConfigError, match="model='other' is not accepted"):
        other.indexer("append").index(POSTS)
    loaded = InOutIndex(index.path)
    with pytest.raises(SystemsError, match="Give it: InOutIndex"):
        loaded.search("x")
    assert len(loaded) == len(LATEX)


def test_an_index_of_another_release_is_refused(index: InOutIndex) -> None:
    meta = index.path / META
    meta.write_text(meta.read_text().replace('"format_version": 1', '"format_version": 99'))
    with pytest.raises(FormatError, match="99"):
        InOutIndex(index.path, MODEL).search("x")


@pytest.mark.parametrize("latex", [r"\frac{a", "plain words", "x}", None, float("nan"), " "])
def test_what_is_no_formula_finds_nothing_and_is_named_in_one_warning(index: InOutIndex, latex: object) -> None:
    topics = pd.DataFrame({"qid": ["1", "2"], "latex": [latex, "x^2"]})
    with pytest.warns(MathAMRWarning, match="^1 query.ies. find nothing, since they are no formula: '1'") as caught:
        assert set(index(topics).qid) == {"2"}
    assert len(caught) == 1


def test_an_index_of_nothing_finds_nothing(index: InOutIndex, tmp_path: Path) -> None:
    with pytest.warns(MathAMRWarning, match="none of 1 posts has a formula"):
        empty = InOutIndex(tmp_path / "g", MODEL).index([{"docno": "1", "text": "nothing"}])
    outputs = ["docno", "post_id", "visual_id", "score", "rank"]
    assert empty(queries("x"))[outputs].dtypes.equals(index(queries("x"))[outputs].dtypes)
    assert empty(queries("x")).empty


def test_it_is_copied_compared_and_shown(index: InOutIndex) -> None:
    retriever = index.retriever(5, combine="f1")
    assert pickle.loads(pickle.dumps(retriever)) == retriever
    assert repr(index) == f"InOutIndex({str(index.path)!r}, {MODEL!r})"
    assert index.counts()[:2] == ["8 formulas", "7 expressions"]
    with pytest.raises(ConfigError, match="combine='min' is not accepted"):
        index.retriever(combine="min")  # type: ignore[arg-type]
