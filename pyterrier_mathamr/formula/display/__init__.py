"""Formulas for people.

::

    rendering    text of posts as HTML, its formulas as MathML;  labels: what those of trees mean
    typesetting  formulas as outlines for pictures;  paragraphs: sentences with these in place
    trees        a tree as text, or as SVG for notebooks
    boxes, key   a formula with its two trees, and what their colors mean;  formula_drawing: both as a picture
"""
