"""Formulas for people.

::

    trees        labels in words; a tree as text, or as SVG for notebooks
    typesetting  formulas and texts as HTML, and as lines of outlines for pictures
    drawing      a formula with its two trees, and the key of a drawing
"""
