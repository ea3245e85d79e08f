"""Trees come back as they were read, whatever was done to the folder."""

from pathlib import Path

import numpy as np
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.formula import trees_from_latex
from pyterrier_mathamr.store import DamagedError, UnknownIdError
from pyterrier_mathamr.systems import FormulaTrees
from pyterrier_mathamr.systems.formula_trees import TreePairs

LATEX = ["x^2+1", "x^2", r"\frac{a}{b}", "x^2+1", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "y"]
POSTS = [{"docno": f"p{i}", "text": f"Let ${latex}$ be."} for i, latex in enumerate(LATEX)]


def assert_same(trees: FormulaTrees, posts: list[dict[str, str]]) -> None:
    assert sorted(entry["docno"] for entry in trees.get_corpus_iter()) == [f"{post['docno']}#0" for post in posts]
    for post in posts:
        assert trees.get(f"{post['docno']}#0") == trees_from_latex(LATEX[int(post["docno"][1:])])


def test_trees_are_kept_once_for_each_expression(tmp_path: Path) -> None:
    trees = FormulaTrees(tmp_path / "f").index(POSTS)
    assert_same(trees, POSTS)
    assert len(trees) == 6
    assert len(trees.snapshot().expressions.payload.slt) == 5
    with pytest.raises(UnknownIdError, match="elsewhere"):
        trees.get("elsewhere")


def test_trees_are_appended_deleted_merged_and_compacted(tmp_path: Path) -> None:
    trees = FormulaTrees(tmp_path / "f").index(POSTS[:3])
    trees.indexer("append").index(POSTS[3:])
    assert_same(trees, POSTS)
    trees.delete(["p1#0"])
    left = [post for post in POSTS if post["docno"] != "p1"]
    assert_same(trees, left)
    trees.compact()
    assert_same(trees, left)
    trees.verify()
    others = FormulaTrees(tmp_path / "g").index(POSTS[1:2])
    merged = FormulaTrees.merge(tmp_path / "h", trees, others)
    assert_same(merged, POSTS)
    again = FormulaTrees(tmp_path / "i").index(POSTS)
    for kind in ("slt", "opt"):
        ours, theirs = (getattr(of.snapshot().expressions.payload, kind) for of in (merged, again))
        assert [ours.tree(i) for i in range(len(ours))] == [theirs.tree(i) for i in range(len(theirs))]
        assert list(ours.names) == sorted(ours.names)


def test_an_interrupted_build_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyterrier_mathamr.sparse import index as sparse

    monkeypatch.setattr(sparse, "PART_BYTES", 1)
    monkeypatch.setattr(sparse, "BATCH", 1)

    def broken() -> object:
        yield from POSTS[:3]
        raise KeyboardInterrupt

    trees = FormulaTrees(tmp_path / "f")
    with pytest.raises(KeyboardInterrupt):
        trees.indexer(resume=True).index(broken())
    assert trees.unfinished() > 0
    assert_same(trees.indexer(resume=True).index(POSTS), POSTS)


def test_damage_is_told_and_an_empty_collection_warns(tmp_path: Path) -> None:
    trees = FormulaTrees(tmp_path / "f").index(POSTS)
    part = trees.snapshot().parts[0]
    whole = TreePairs.of_part(part)
    arrays = {**whole.arrays(), "slt_parents": np.zeros_like(whole.slt.parents)}
    changed = type("Changed", (), {"path": part.path, "__getitem__": lambda self, name: arrays[name]})()
    with pytest.raises(DamagedError, match="slt_parents"):
        TreePairs.of_part(changed)
    with pytest.warns(MathAMRWarning, match="none of 1 posts has a formula"):
        FormulaTrees(tmp_path / "g").index([{"docno": "1", "text": "nothing"}])


def test_trees_are_an_artifact(tmp_path: Path) -> None:
    trees = FormulaTrees(tmp_path / "f").index(POSTS)
    loaded = pt.Artifact.load(str(trees.path))
    assert isinstance(loaded, FormulaTrees)
    assert_same(loaded, POSTS)
