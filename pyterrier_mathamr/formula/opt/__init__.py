"""Operator trees (OPT): what a formula means.

::

    Content MathML ──from_mathml: a rule for each element──▶ nodes: operators with operands ──▶ FormulaTree
                     names: the label of each operator        applications: f(x) as a function, on request
"""
