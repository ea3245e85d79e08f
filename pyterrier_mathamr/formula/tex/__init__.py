"""LaTeX to both trees.

::

    LaTeX ──dialects, source, converter──▶ MathML of math-core ──elements (corrections)──▶ atoms ──rows──▶ both trees
                                                          symbols: roles and labels    fences, grammar, factors
"""
