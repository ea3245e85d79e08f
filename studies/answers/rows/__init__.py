"""Rows that several studies have: the common ones, and those of formulas, structure and the text of questions."""
