"""Formulas for people.

::

    rendering    posts as HTML, their formulas as MathML
    typesetting  formulas as outlines for pictures;  paragraphs: sentences with these in place
    trees        a tree as text, or as SVG for notebooks
    boxes, key   a formula with its two trees, and what their colors mean;  formula_drawing: both as a picture
"""
