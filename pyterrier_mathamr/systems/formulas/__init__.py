"""Systems that rank the formulas of a collection for a formula.

::

    tangent_s/     Tangent's candidates, ranked by how well trees align
    edit_distance/ what it costs to change one tree into another
    formula_ltr/   many similarities of trees, as features to learn from
"""
