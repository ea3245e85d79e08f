"""Systems that rank the formulas of a collection for a formula.

::

    expressions/     what their indexes share: posts to formulas, each distinct expression stored once
      tangent/       TangentIndex, TangentRetriever: pairs of symbols
      approach0/     ApproachZeroIndex and its retriever: leaf-root paths of operator trees
    trees/           both trees of each formula, in a few arrays
      tangent_s/     Tangent's candidates, ranked by how well trees align
      edit_distance/ what it costs to change one tree into another
      cft/           vectors that fastText learns from pairs of symbols
      formula_ltr/   many similarities of trees, as features to learn from
      in_out/        a vector for each symbol, learned from formulas alone
"""
