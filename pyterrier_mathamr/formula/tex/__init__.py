"""LaTeX to both trees.

::

    LaTeX ──source, converter──▶ MathML of math-core ──elements──▶ atoms ──grammar──▶ both trees
"""
