"""The indexes of a collection's formulas, one for each system of formula retrieval; each is made on first use.

::

    formulas-wide.tangent    symbol pairs of a wider window
    formulas.trees           trees of the formulas of all posts
    formulas.a0              paths of their operator trees
    formulas.cft             their vectors by Tangent-CFT
    formulas.inout           vectors of their nodes
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from mathamr_systems import ApproachZeroIndex, FastTextOptions, FormulaTrees, InOut, InOutIndex, TangentCFT
from mathamr_systems.experiments.workdir import Artifacts, FormulaArtifacts
from pyterrier_mathamr.model import TextEncoder
from pyterrier_mathamr.posts import document_post, plain_text, query_post
from pyterrier_mathamr.posts.topics import distinct_queries
from pyterrier_mathamr.sparse import PairOptions, TangentIndex

IN_OUT_MODEL = "in-out-mini"


@cache
def wide_tangent(shared: FormulaArtifacts) -> TangentIndex:
    """Index symbol pairs of a wider window, as in the runs of Tangent-S at ARQMath."""
    index, pairs = TangentIndex(shared.workdir / "formulas-wide.tangent"), PairOptions(window=4, ends="small")
    return shared.of_formulas("tangent, window 4", index, settings={"pairs": pairs.to_dict()}, pairs=pairs)


@cache
def formula_trees(shared: FormulaArtifacts) -> FormulaTrees:
    """Store both trees of all formulas, for systems that compare whole trees."""
    return shared.of_formulas("formula-trees", FormulaTrees(shared.workdir / "formulas.trees"))


@cache
def approach0(shared: FormulaArtifacts) -> ApproachZeroIndex:
    """Index the leaf-root paths of all formulas."""
    return shared.of_formulas("approach0", ApproachZeroIndex(shared.workdir / "formulas.a0"))


@cache
def cft(shared: FormulaArtifacts) -> TangentCFT:
    """Make vectors of all formulas by Tangent-CFT, trained on them in a few minutes."""
    training = FastTextOptions.small()
    index, settings = TangentCFT(shared.workdir / "formulas.cft"), {"training": training.to_dict()}
    return shared.of_formulas("cft", index, settings=settings, training=training)


@cache
def in_out(shared: FormulaArtifacts) -> InOutIndex:
    """Make vectors of the nodes of all formulas, by the bundled In+Out model."""
    model = InOut.from_pretrained(IN_OUT_MODEL)
    index = InOutIndex(shared.workdir / "formulas.inout", model)
    return shared.of_formulas("in-out", index, settings={"model": model.identity})


@cache
def post_texts(shared: Artifacts) -> pt.Transformer:
    """Make a scorer of visual ids: the greatest cosine of the question and a post with the formula, by their texts."""
    encoder = TextEncoder(cache=shared.workdir / "texts.sqlite", verbose=shared.verbose)
    texts = {row["docno"]: plain_text(document_post(row)) for row in shared.collection.documents()}
    with shared.stages.timed("texts of posts"):
        vectors = encoder.encode(list(texts.values())).astype(np.float32)
    rows, posts = {docno: row for row, docno in enumerate(texts)}, dict[str, list[int]]()
    for entry in shared.tangent.get_corpus_iter():
        posts.setdefault(entry["visual_id"], []).append(rows[entry["post_id"]])

    def cosines(found: pd.DataFrame) -> npt.NDArray[np.float32]:
        (topic,) = distinct_queries(found).to_dict("records")
        asked = encoder.encode([plain_text(query_post(topic))]).astype(np.float32)[0]
        of_posts = vectors @ asked
        return np.array([of_posts[posts[visual_id]].max() for visual_id in found["docno"]], dtype=np.float32)

    return pt.apply.by_query(lambda found: found.assign(score=cosines(found)))
