"""The official trees of a collection by formula id, in one SQLite file.

::

    MathML ──tables, numbering──▶ build ──▶ sqlite_file ◀── formula_store: FormulaStore
                                   └─ staging: trees in the order they come, sorted in at the end
"""
