"""The official trees of a collection by formula id, in one SQLite file.

::

    tables of MathML ──build──▶ sqlite_file ◀── formula_store: FormulaStore
"""
