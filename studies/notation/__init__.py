"""How systems fare when the letters of formulas are others, and when a formula is another with the same letters."""
