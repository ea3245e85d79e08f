"""The official trees of a collection by formula id, in one SQLite file.

::

    MathML ──tables, build──▶ sqlite_file ◀── formula_store: FormulaStore
"""
