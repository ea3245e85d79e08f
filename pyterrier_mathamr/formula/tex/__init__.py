"""LaTeX to both trees.

::

    LaTeX ──converter──▶ MathML of math-core ──elements──▶ atoms ──grammar──▶ both trees
"""
