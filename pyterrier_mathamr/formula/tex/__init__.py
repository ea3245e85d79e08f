"""LaTeX to both trees.

::

    LaTeX ──source, converter──▶ MathML of math-core ──elements (corrections)──▶ atoms ──fences, grammar──▶ both trees
"""
