"""The official trees of a collection by formula id, in one SQLite file.

::

    tables ──▶ build: MathML to trees, in the order they come, sorted in at the end ──▶ formula_store: FormulaStore
"""
