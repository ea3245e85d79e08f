"""Formulas for people.

::

    typesetting  formulas and texts as HTML, and as lines of outlines for pictures
    drawing      a formula with its two trees, and the key of a drawing
"""
