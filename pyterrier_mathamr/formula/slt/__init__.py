"""Symbol layout trees (SLT): how a formula looks.

::

    Presentation MathML ──from_mathml: a rule for each element──▶ symbols: rows, groups, scripts, tables ──▶ FormulaTree
"""
